/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * record.c - checks a record before anything looks at it: sizes, the words and the pieces of memory that it announces.
 *
 * What a call record holds depends on its function's capture spec, so the specs are compiled here once each, at the
 * first record of a function. Knows the wire and the specs; knows no source.
 */
#include <errno.h>
#include <string.h>

#include "event.h"

struct layout {
	bool known, bad;
	uint8_t nwords, nreads;
	struct {
		uint8_t kind;
		uint16_t len, elem;
	} reads[CT_MAX_READS];
};

static struct layout layouts[CT_MAX_FUNCS];

static const struct layout *layout_of(unsigned int func)
{
	struct layout *l = &layouts[func];
	struct ct_spec spec;

	if (l->known)
		return l;
	memset(&spec, 0, sizeof(spec));
	l->bad = api_spec((int)func, API_ARCH_HERE, true, &spec) != 0 || spec.nreads > CT_MAX_READS;
	l->known = true;
	l->nwords = spec.nwords;
	l->nreads = l->bad ? 0 : spec.nreads;
	for (int i = 0; i < l->nreads; i++) {
		l->reads[i].kind = spec.reads[i].kind;
		l->reads[i].len = spec.reads[i].len;
		l->reads[i].elem = spec.reads[i].elem;
	}
	return l;
}

/* Bytes that read i takes at `at`, of which `left` remain; 0: malformed. */
static size_t read_bytes(const struct layout *l, int i, const char *at, size_t left)
{
	uint64_t head;
	size_t n;

	if (l->reads[i].kind == CT_READ_BYTES) {
		n = l->reads[i].len;
	} else {
		if (left < sizeof(head))
			return 0;
		memcpy(&head, at, sizeof(head));
		head &= ~CT_STR_CUT;
		if (head > l->reads[i].len)
			return 0;
		n = (size_t)head + sizeof(head);
	}
	n = (n + 7) & ~(size_t)7;
	return n <= left ? n : 0;
}

static int check_call(const struct ct_call *c)
{
	const struct layout *l;
	const char *at;
	size_t left;

	if (c->h.size < sizeof(*c) || c->h.size > sizeof(*c) + CT_DATA_MAX || c->func >= api_nfuncs ||
	    c->func >= CT_MAX_FUNCS)
		return -EBADMSG;
	l = layout_of(c->func);
	if (l->bad || c->nwords < l->nwords || c->nwords > CT_MAX_WORDS || c->got >> l->nreads)
		return -EBADMSG;
	left = c->h.size - sizeof(*c);
	if (left < c->nwords * 8u)
		return -EBADMSG;
	if (!c->got)
		return 0;
	at = (const char *)&c->words[c->nwords];
	left -= c->nwords * 8u;
	for (int i = 0; i < l->nreads; i++) {
		size_t n;

		if (!(c->got >> i & 1))
			continue;
		n = read_bytes(l, i, at, left);
		if (!n)
			return -EBADMSG;
		at += n;
		left -= n;
	}
	return 0;
}

int record_check(const void *rec, size_t avail)
{
	const struct ct_hdr *h = rec;

	if (avail < sizeof(*h) || h->size > avail || h->size < sizeof(*h) || h->size % 8)
		return -EBADMSG;
	switch (h->kind) {
	case CT_CALL:
	case CT_ENTER:
		return check_call(rec);
	case CT_PROCESS:
	case CT_EXEC:
		if (h->size < sizeof(struct ct_process) ||
		    !memchr(((const struct ct_process *)rec)->comm, '\0', CT_COMM_LEN))
			return -EBADMSG;
		return 0;
	case CT_FORK:
		return h->size < sizeof(struct ct_fork) ? -EBADMSG : 0;
	case CT_EXIT:
		return h->size < sizeof(struct ct_exit) ? -EBADMSG : 0;
	case CT_LOST:
		return h->size < sizeof(struct ct_lost) ? -EBADMSG : 0;
	default:
		/* Kinds are append-only: one that is not known here has at least the head, and sinks pass it over. */
		return 0;
	}
}
