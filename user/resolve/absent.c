/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * absent.c - see absent.h. A call's capture spec says what each of its reads is. If the pointer of
 * a read is in an earlier read that is missing too, it is not completed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../proc/filed.h"
#include "absent.h"
#include "../../wire/control.h"

#define KEPT 256 /* reads that are kept, of all threads together */

struct kept {
	uint64_t used; /* when it was last used, by the use counter; 0: free */
	struct ct_absent a;
};

struct absent {
	emit_fn more;
	void *ctx;
	struct filed *filed;
	uint64_t clock, missing, filled;
	uint64_t unshown; /* of calls that have no row, and not filled */
	uint32_t nused;
	struct kept kept[KEPT];
	char text[CT_NAME_MAX + CT_READ_MAX];
	_Alignas(struct ct_more) char piece[sizeof(struct ct_more) + CT_MORE_PIECE + 8];
	union {
		struct ct_call call;
		char room[sizeof(struct ct_call) + CT_DATA_MAX + 8];
	};
};

struct absent *absent_open(emit_fn more, void *ctx, filed_recent_fn recent, void *recent_ctx)
{
	struct absent *ab = calloc(1, sizeof(*ab));

	if (!ab)
		return NULL;
	ab->more = more;
	ab->ctx = ctx;
	ab->filed = filed_open(recent, recent_ctx);
	if (!ab->filed) {
		free(ab);
		return NULL;
	}
	return ab;
}

void absent_close(struct absent *ab)
{
	if (!ab)
		return;
	filed_close(ab->filed);
	free(ab);
}

void absent_idle(struct absent *ab)
{
	filed_idle(ab->filed);
}

void absent_drop(struct absent *ab)
{
	for (int i = 0; i < KEPT && ab->nused; i++) {
		ab->nused -= ab->kept[i].used != 0;
		ab->kept[i].used = 0;
	}
}

static bool is_of(const struct ct_absent *a, uint32_t pid, uint32_t tid, uint16_t func)
{
	return a->h.tid == tid && a->h.pid == pid && a->func == func;
}

void absent_add(struct absent *ab, struct target *t, const struct ct_absent *a)
{
	char byte;
	struct kept *k = NULL, *oldest = &ab->kept[0];

	for (int i = 0; i < KEPT && !k; i++) {
		struct kept *at = &ab->kept[i];

		if (!at->used ||
		    (is_of(&at->a, a->h.pid, a->h.tid, a->func) && at->a.read == a->read))
			k = at;
		if (at->used < oldest->used)
			oldest = at;
	}
	k = k ? k : oldest;
	ab->nused += !k->used;
	k->used = ++ab->clock;
	k->a = *a;
	/* read now: before the call's record comes, the program may end or unmap the file */
	filed_read(ab->filed, t, a, 0, &byte, 1);
}

static struct kept *absent_find(struct absent *ab, const struct ct_call *c, int read)
{
	for (int i = 0; i < KEPT && ab->nused; i++)
		if (ab->kept[i].used && is_of(&ab->kept[i].a, c->h.pid, c->h.tid, c->func) &&
		    (read < 0 || ab->kept[i].a.read == read))
			return &ab->kept[i];
	return NULL;
}

bool absent_has(struct absent *ab, const struct ct_call *c)
{
	return ab->nused && absent_find(ab, c, -1);
}

/* ---- one read ---- */

/* A call's record, and where its reads are in it; NULL: not there. */
struct reads {
	const struct ct_call *call;
	const char *at[CT_MAX_READS];
};

/* Gets the word that a read refers to: one of the call's own, or in an earlier read. */
static bool word_of(const struct reads *in, uint8_t from, uint16_t off, uint64_t *word)
{
	unsigned int read = from & ~CT_FROM_READ;

	if (from & CT_FROM_READ) {
		if (read >= CT_MAX_READS || !in->at[read])
			return false;
		memcpy(word, in->at[read] + off, sizeof(*word));
		return true;
	}
	if (from == CT_FROM_RETURN) {
		*word = (uint64_t)in->call->ret;
		return true;
	}
	if (from >= in->call->nwords)
		return false;
	*word = in->call->words[from];
	return true;
}

/* Sends the part of the string that the record does not have, as pieces that begin at byte
 * `offset`. */
static int send_pieces(struct absent *ab, const struct ct_call *c, int read, const char *text,
		       uint32_t len, uint32_t offset)
{
	struct ct_more *m = (struct ct_more *)ab->piece;
	int err = 0;

	for (uint32_t at = 0; !err && at < len; at += CT_MORE_PIECE - 1) {
		uint32_t n = len - at < CT_MORE_PIECE - 1 ? len - at : CT_MORE_PIECE - 1;

		memset(ab->piece, 0, sizeof(ab->piece));
		m->h = (struct ct_hdr){ .size = (uint16_t)(sizeof(*m) + ((n + 7) & ~7u)),
					.kind = CT_MORE,
					.pid = c->h.pid,
					.tid = c->h.tid,
					.start_ns = c->h.start_ns,
					.end_ns = c->h.start_ns };
		m->func = c->func;
		m->read = (uint8_t)read;
		m->last = at + n == len;
		m->offset = offset + at;
		m->len = n;
		memcpy(m->bytes, text + at, n);
		err = ab->more(ab->ctx, &m->h);
	}
	return err;
}

/* Reads the rest of a string whose beginning is in the record. */
static bool fill_rest(struct absent *ab, struct target *t, const struct reads *in,
		      const struct ct_absent *a, const struct ct_read *r)
{
	uint64_t start, offset;
	ssize_t n;
	size_t len;

	if (!word_of(in, r->from, r->off, &start) || a->address <= start ||
	    a->address - start > CT_NAME_MAX)
		return false;
	offset = a->address - start;
	n = filed_read(ab->filed, t, a, 0, ab->text, CT_NAME_MAX);
	len = n > 0 ? strnlen(ab->text, (size_t)n) : 0;
	if (n <= 0 || len == (size_t)n)
		return false;
	return !send_pieces(ab, in->call, a->read, ab->text, (uint32_t)len, (uint32_t)offset);
}

/* Writes the read's bytes to `out`, as the kernel side would have done; `out` has `room` bytes.
 * Returns the number of bytes; 0: none. */
static size_t fill(struct absent *ab, struct target *t, const struct reads *in,
		   const struct ct_absent *a, const struct ct_spec *spec, char *out, size_t room)
{
	const struct ct_read *r = &spec->reads[a->read];
	uint64_t start, head = 0, count;
	size_t len = r->len, padded;
	ssize_t n;

	if (!word_of(in, r->from, r->off, &start) || start != a->address || len > CT_READ_MAX)
		return 0;
	if (r->kind == CT_READ_ARRAY) {
		if (!word_of(in, r->count_from, r->count_off, &count))
			return 0;
		count = (uint32_t)count * (uint64_t)r->elem;
		len = count < len ? count : len;
		head = count > len ? len | CT_STR_CUT : len;
	}
	padded = (len + 7) & ~(size_t)7;
	if (!len || padded + (r->kind == CT_READ_BYTES ? 0 : 8) > room)
		return 0;
	n = filed_read(ab->filed, t, a, 0, ab->text,
		       r->kind == CT_READ_STR && spec->more & CT_S_WHOLE_NAME ? CT_NAME_MAX : len);
	if (r->kind == CT_READ_STR && n > 0) {
		size_t whole = strnlen(ab->text, (size_t)n);

		if (whole == (size_t)n && whole < len)
			return 0; /* it does not end within the mapping, so it is not a string */
		head = whole < len ? whole + 1 : len | CT_STR_CUT;
		if (whole >= len && whole < (size_t)n && spec->more & CT_S_WHOLE_NAME &&
		    send_pieces(ab, in->call, a->read, ab->text + len - 1,
				(uint32_t)(whole - len + 1), (uint32_t)len - 1))
			return 0;
		len = whole < len ? whole + 1 : len;
		padded = (len + 7) & ~(size_t)7;
	} else if (n < (ssize_t)len) {
		return 0;
	}
	memset(out, 0, r->kind == CT_READ_BYTES ? padded : padded + 8);
	if (r->kind != CT_READ_BYTES) {
		memcpy(out, &head, 8);
		out += 8;
	}
	memcpy(out, ab->text, len);
	if (r->kind == CT_READ_STR)
		out[len - 1] = '\0';
	return r->kind == CT_READ_BYTES ? padded : padded + 8;
}

/* ---- the call ---- */

/* Returns how many bytes a read takes in a checked record. */
static size_t read_bytes(const struct ct_read *r, const char *at)
{
	uint64_t head;

	if (r->kind == CT_READ_BYTES)
		return (r->len + 7u) & ~7u;
	memcpy(&head, at, 8);
	return 8 + (((head & ~CT_STR_CUT) + 7) & ~7ULL);
}

const struct ct_call *absent_fill(struct absent *ab, struct target *t, const struct ct_call *c)
{
	bool last = c->h.kind != CT_ENTER && !(c->h.flags & CT_F_PENDING), any = false;
	const char *from = (const char *)&c->words[c->nwords], *end = (const char *)c + c->h.size;
	struct reads in = { .call = c };
	struct ct_spec spec = { 0 };
	char *to;

	if (c->h.size > sizeof(*c) + CT_DATA_MAX || c->h.flags & CT_F_STACK ||
	    api_spec(c->func, API_ARCH_HERE, true, &spec))
		return c;
	memcpy(ab->room, c, (size_t)(from - (const char *)c));
	to = ab->room + (from - (const char *)c);
	for (int i = 0; i < spec.nreads && i < CT_MAX_READS; i++) {
		size_t n = c->got >> i & 1 ? read_bytes(&spec.reads[i], from) : 0;
		struct kept *k = absent_find(ab, c, i);
		bool done = false;

		memcpy(to, from, n);
		in.at[i] = n ? to : NULL;
		from += n;
		to += n;
		if (k && n) {
			done = fill_rest(ab, t, &in, &k->a, &spec.reads[i]);
		} else if (k) {
			/* what comes after it needs room too */
			n = fill(ab, t, &in, &k->a, &spec, to,
				 (size_t)(ab->room + sizeof(*c) + CT_DATA_MAX - to - (end - from)));
			in.at[i] = n ? to : NULL;
			to += n;
			done = n != 0;
			any = any || done;
			ab->call.got |= done ? 1u << i : 0;
		}
		if (k && last) {
			if (c->h.flags & CT_F_HIDDEN) {
				ab->unshown += k->a.flags && !done;
			} else {
				ab->missing += k->a.flags != 0;
				ab->filled += done;
			}
			k->used = 0;
			ab->nused--;
		}
	}
	if (!any)
		return c;
	/* the word about scopes */
	memcpy(to, from, (size_t)(end - from));
	to += end - from;
	ab->call.h.size = (uint16_t)(to - ab->room);
	return &ab->call;
}

void absent_totals(const struct absent *ab, uint64_t *missing, uint64_t *filled, uint64_t *unshown)
{
	*missing = ab->missing;
	*filled = ab->filled;
	*unshown = ab->unshown;
}
