/* SPDX-License-Identifier: BSD-2-Clause */
/* hooks_ring.c - see hooks_ring.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../util/now.h"
#include "../../util/table/array.h"
#include "../../event/event.h"
#include "../agent/agent_process.h"
#include "../agent/agent_tids.h"
#include "hooks_ring.h"

#define BATCH_RECORDS 200000
#define BATCH_BYTES (64 << 20)
#define PIECE_BYTES 36864    /* that are packed before they are taken */
#define PUBLISH_BYTES 65536u /* that are read before the writer is told */
#define SKIPS_MAX 16
/* that nobody has written in a ring: an entry that its thread has not begun, and the rest of pages */
#define HOLE_MAX (HOOKS_RECORD_MAX + 8192u)
#define SWEEP_NS 1000000000ULL

/* ---- the batch ---- */

struct batch_record {
	uint64_t end_ns;
	size_t at;
	uint32_t n; /* the order in which they were added */
};
struct hooks_batch {
	char *bytes;
	size_t len, cap;
	struct batch_record *entries;
	size_t n, room, next;
	size_t sorted; /* entries that are: what comes while they are handed out comes behind them */
};

struct hooks_batch *hooks_batch_open(void)
{
	return calloc(1, sizeof(struct hooks_batch));
}

void hooks_batch_close(struct hooks_batch *b)
{
	if (!b)
		return;
	free(b->bytes);
	free(b->entries);
	free(b);
}

bool hooks_batch_full(const struct hooks_batch *b)
{
	return b->n >= BATCH_RECORDS || b->len >= BATCH_BYTES;
}

int hooks_batch_add(struct hooks_batch *b, const struct ct_hdr *h)
{
	if (!array_fit(b->bytes, b->cap, b->len + h->size) ||
	    !array_fit(b->entries, b->room, b->n + 1))
		return -ENOMEM;
	memcpy(b->bytes + b->len, h, h->size);
	b->entries[b->n] = (struct batch_record){ h->end_ns, b->len, (uint32_t)b->n };
	b->len += h->size;
	b->n++;
	return 0;
}

static int by_end(const void *a, const void *b)
{
	const struct batch_record *x = a, *y = b;

	if (x->end_ns != y->end_ns)
		return x->end_ns < y->end_ns ? -1 : 1;
	return x->n < y->n ? -1 : x->n > y->n;
}

int hooks_batch_emit(struct hooks_batch *b, emit_fn emit, void *ctx)
{
	while (b->next < b->n) {
		const struct batch_record *e;
		int err;

		if (b->next == b->sorted) {
			qsort(b->entries + b->next, b->n - b->next, sizeof(*b->entries), by_end);
			b->sorted = b->n;
		}
		e = &b->entries[b->next++];
		err = emit(ctx, (const struct ct_hdr *)(b->bytes + e->at));
		if (err)
			return err;
	}
	b->n = b->next = b->sorted = b->len = 0;
	return 0;
}

/* ---- the area ---- */

/* Bytes of the area that are on pages which somebody has written: [from, to). */
struct stretch {
	size_t from, to;
};

/* The first ones belong to whoever moves records, the last to whoever takes them. */
struct block {
	uint64_t tail, reported_tail, lost;
	uint64_t mark;		/* where the head was at hooks_ring_mark() */
	uint64_t stuck_ns;	/* since when an entry is not complete; 0: none is */
	struct stretch written; /* of its ring */
	bool there;		/* atomic: somebody has written to its head */
	/* begins of calls that were shown while they lasted: they stay what they were, whatever
	 * the clock has been found to do since */
	struct {
		uint64_t ticks, ns;
	} reported[CT_MAX_FRAMES], stack; /* and of the call whose stack came last */
};
_Static_assert(PIECE_BYTES >= HOOKS_PACKED_MAX(HOOKS_RECORD_MAX), "a record of any size fits");
struct hooks_ring {
	struct hooks_ring_opts o;
	struct hooks_area *area;
	size_t bytes;
	int fd; /* of the area */
	struct block *blocks;
	uint64_t received, malformed, swept_ns;
	uint64_t muted_at_end[HOOKS_MUTED];
	bool ended;	      /* the trace: what is counted after that does not count */
	uint32_t phase, used; /* what the area must say; the most blocks that it has said */
	bool sealed;	      /* atomic: no page of the area can be taken away any more */
	bool broken; /* atomic: what is in the rings makes no sense, and is not read again */
	bool bad;    /* this was told, or a record that was moved made none */
};

static int make_area(size_t bytes)
{
	int fd = memfd_create("cudatrace-hooks", MFD_CLOEXEC | MFD_ALLOW_SEALING), err;

	if (fd < 0)
		return -errno;
	/* its size stays: a page that is taken away would crash its reader. The last seals come when the
	 * process has mapped it: seal(). */
	if (!ftruncate(fd, (off_t)bytes) && !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

struct hooks_ring *hooks_ring_open(const struct hooks_ring_opts *o, int *fd)
{
	struct hooks_ring *r = calloc(1, sizeof(*r));

	*fd = -ENOMEM;
	if (!r)
		return NULL;
	r->o = *o;
	r->bytes = hooks_area_bytes(o->threads, o->ring_bytes, o->cells);
	r->blocks = calloc(o->threads, sizeof(*r->blocks));
	r->area = MAP_FAILED;
	r->fd = -1;
	*fd = r->blocks ? make_area(r->bytes) : -ENOMEM;
	if (*fd >= 0) {
		r->area = mmap(NULL, r->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
			       *fd, 0);
		r->fd = r->area == MAP_FAILED ? -1 : fcntl(*fd, F_DUPFD_CLOEXEC, 0);
		if (r->fd < 0) {
			close(*fd);
			*fd = r->area == MAP_FAILED ? -ENOMEM : -EMFILE;
		}
	}
	if (*fd < 0) {
		hooks_ring_close(r);
		return NULL;
	}
	hooks_ring_tick(r);
	return r;
}

static void break_off(struct hooks_ring *r)
{
	__atomic_store_n(&r->broken, true, __ATOMIC_RELEASE);
}

/* The program may write over the area. What only we write must be as it was, and what only grows must
 * not be smaller. */
static void check_area(struct hooks_ring *r)
{
	uint32_t used = __atomic_load_n(&r->area->blocks, __ATOMIC_ACQUIRE);

	if (__atomic_load_n(&r->area->phase, __ATOMIC_RELAXED) != r->phase || used < r->used ||
	    used > r->o.threads)
		break_off(r);
	else
		r->used = used;
}

void hooks_ring_tick(struct hooks_ring *r)
{
	uint64_t second = r->o.clock ? hooks_clock_ticks(r->o.clock, 1000000000) : 0;
	uint64_t tick = second ? (uint64_t)(((unsigned __int128)1000000000 << 32) / second)
			       : 1ULL << 32;

	__atomic_store_n(&r->area->tick_ns, tick, __ATOMIC_RELAXED);
}

void hooks_ring_close(struct hooks_ring *r)
{
	if (!r)
		return;
	if (r->area != MAP_FAILED)
		munmap(r->area, r->bytes);
	if (r->fd >= 0)
		close(r->fd);
	free(r->blocks);
	free(r);
}

/* Hooks that only count do not look at the phase. This is read before the phase changes, so that no
 * call counts that was made after the end; twice, so that little time is in between. */
static void end_counts(struct hooks_ring *r)
{
	for (int again = 0; again < 2; again++)
		for (uint32_t i = 0; i < HOOKS_MUTED; i++)
			if (!again || r->muted_at_end[i])
				r->muted_at_end[i] = hooks_ring_muted(r, i);
}

void hooks_ring_bell(const struct hooks_ring *r)
{
	if (!r)
		return;
	__atomic_add_fetch(&r->area->bell, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &r->area->bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void hooks_ring_phase(struct hooks_ring *r, enum ct_phase phase)
{
	if (phase != CT_PHASE_RUNNING && !r->ended)
		end_counts(r);
	r->ended = phase != CT_PHASE_RUNNING;
	r->phase = (uint32_t)phase;
	__atomic_store_n(&r->area->phase, (__u32)phase, __ATOMIC_SEQ_CST);
}

void hooks_ring_nested(struct hooks_ring *r, bool on)
{
	__atomic_store_n(&r->area->inner, on, __ATOMIC_RELAXED);
}

void hooks_ring_count_by(struct hooks_ring *r, uint8_t by)
{
	__atomic_store_n(&r->area->count_by, by, __ATOMIC_RELAXED);
}

pid_t hooks_ring_pid(const struct hooks_ring *r)
{
	return r->o.pid;
}

static uint32_t used_blocks(const struct hooks_ring *r)
{
	uint32_t n = __atomic_load_n(&r->area->blocks, __ATOMIC_ACQUIRE);

	return n < r->o.threads ? n : r->o.threads;
}

static struct hooks_thread *thread_at(const struct hooks_ring *r, uint32_t i)
{
	return hooks_block(r->area, i, r->o.ring_bytes);
}

/* ---- pages that somebody has written ----
 *
 * A page of the area that nobody has written comes into being when it is read, and is then charged to
 * the reader. So the process is not believed what it has written: the kernel is asked, and it is asked
 * only once for a page, because pages cannot be taken away after seal(). */

/* From here on pages of the area are not taken away, by hole punching. The process has mapped it: it
 * could not do so later. */
static bool seal(const struct hooks_ring *ring)
{
	struct hooks_ring *r = (struct hooks_ring *)ring;

	if (__atomic_load_n(&r->sealed, __ATOMIC_ACQUIRE))
		return true;
	if (fcntl(r->fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) &&
	    !(fcntl(r->fd, F_GET_SEALS) & F_SEAL_FUTURE_WRITE)) {
		break_off(r); /* the process has forbidden it */
		return false;
	}
	__atomic_store_n(&r->sealed, true, __ATOMIC_RELEASE);
	return true;
}

/* The first byte from this place on that somebody has written, or the area's size. */
static size_t written_from(const struct hooks_ring *r, struct stretch *s, size_t at)
{
	off_t data, hole;

	if (at >= s->from && at < s->to)
		return at;
	data = lseek(r->fd, (off_t)at, SEEK_DATA);
	hole = data < 0 ? -1 : lseek(r->fd, data, SEEK_HOLE);
	if (hole < 0)
		return r->bytes;
	s->from = (size_t)data;
	s->to = (size_t)hole;
	return s->from;
}

static bool is_written(const struct hooks_ring *r, struct stretch *s, const void *from, size_t n)
{
	size_t at = (size_t)((const char *)from - (const char *)r->area);

	if (at >= s->from && at + n > s->to)
		*s = (struct stretch){ 0 }; /* there may be more now */
	return written_from(r, s, at) == at && at + n <= s->to;
}

/* Bytes of the area: where they are, or in copy[], with 0 where nobody has written. */
static const void *bytes_at(const struct hooks_ring *r, struct stretch *s, const void *from,
			    size_t n, void *copy)
{
	ssize_t got;

	if (is_written(r, s, from, n))
		return from;
	got = pread(r->fd, copy, n, (const char *)from - (const char *)r->area);
	if (got < (ssize_t)n)
		memset((char *)copy + (got > 0 ? got : 0), 0, n - (size_t)(got > 0 ? got : 0));
	return copy;
}

/* The first block from this one on that has been in use, or their number. Of its head, the first page
 * may be read. */
static uint32_t next_block(const struct hooks_ring *r, uint32_t i)
{
	uint32_t n = used_blocks(r);

	while (i < n && seal(r) && !__atomic_load_n(&r->blocks[i].there, __ATOMIC_RELAXED)) {
		size_t at = (size_t)((char *)thread_at(r, i) - (char *)r->area), data;
		struct stretch s = { 0 };

		data = written_from(r, &s, at);
		if (data == at)
			__atomic_store_n(&r->blocks[i].there, true, __ATOMIC_RELAXED);
		else if (data >= at + hooks_block_bytes(r->o.ring_bytes))
			i += (uint32_t)((data - at) / hooks_block_bytes(r->o.ring_bytes));
		else
			i++;
	}
	return i < n && __atomic_load_n(&r->sealed, __ATOMIC_RELAXED) ? i : n;
}

#define EACH_BLOCK(r, i) \
	for (uint32_t i = next_block(r, 0); i < used_blocks(r); i = next_block(r, i + 1))

#define COUNT_MAX (UINT64_MAX >> 20) /* no process makes as many calls in a year */

static uint64_t load(const __u64 *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

/* A counter of the process's, which may have written any number: one that cannot be true, above `most`,
 * is counted as what makes no sense. */
static uint64_t at_most(struct hooks_ring_counts *out, const __u64 *word, uint64_t most)
{
	uint64_t n = load(word);

	if (n <= most)
		return n;
	losses_add(&out->malformed, 1);
	return 0;
}

static uint64_t said(struct hooks_ring_counts *out, const __u64 *word)
{
	return at_most(out, word, COUNT_MAX);
}

void hooks_ring_counts(const struct hooks_ring *r, struct hooks_ring_counts *out)
{
	memset(out, 0, sizeof(*out));
	out->received = r->received;
	out->malformed = r->malformed;
	out->no_block = said(out, &r->area->no_block);
	out->deep = said(out, &r->area->too_deep);
	out->left = said(out, &r->area->left);
	out->scopes_dropped = said(out, &r->area->scopes_dropped);
	/* the engine counts each function that it has room for once */
	out->interrupted = at_most(out, &r->area->interrupted, HOOKS_FUNCS_MAX);
	EACH_BLOCK(r, i)
	{
		const struct hooks_thread *t = thread_at(r, i);

		losses_add(&out->lost, said(out, &t->lost));
		losses_add(&out->folded, said(out, &t->folded));
		losses_add(&out->filtered, said(out, &t->filtered));
		losses_add(&out->deep, said(out, &t->deep));
		losses_add(&out->left, said(out, &t->left));
		losses_add(&out->no_cell, said(out, &t->no_cell));
		losses_add(&out->no_stack, said(out, &t->no_stack));
		losses_add(&out->unfinished, said(out, &t->unfinished));
		losses_add(&out->forgets, said(out, &t->forgets));
		losses_add(&out->scopes_dropped, said(out, &t->scopes_dropped));
		losses_add(&out->scopes_unbegun, said(out, &t->scopes_unbegun));
		losses_add(&out->folded, said(out, &t->muted[HOOKS_MUTED]));
		for (int k = 0; k <= HOOKS_MUTED; k++)
			losses_add(&out->folded, said(out, &t->muted_inside[k]));
	}
}

uint64_t hooks_ring_gone_ns(const struct hooks_ring *r)
{
	uint64_t at = load(&r->area->gone), now = now_ns();

	if (!at)
		return 0;
	at = r->o.clock ? hooks_clock_ns(r->o.clock, at) : agent_process_ours(at, r->o.ahead_ns);
	return at && at < now ? at : now;
}

uint64_t hooks_ring_interrupted(const struct hooks_ring *r)
{
	uint64_t n = load(&r->area->interrupted);

	return n <= HOOKS_FUNCS_MAX ? n : 0;
}

bool hooks_ring_in_vfork(const struct hooks_ring *r)
{
	return load(&r->area->in_vfork);
}

uint64_t hooks_ring_muted(const struct hooks_ring *r, uint32_t number)
{
	uint64_t calls = 0;

	if (r->ended)
		return r->muted_at_end[number];
	EACH_BLOCK(r, i)
	calls += load(&thread_at(r, i)->muted[number]);
	return calls < HOOKS_CALLS_MAX ? calls : HOOKS_CALLS_MAX;
}

void hooks_ring_cells(struct hooks_ring *r, hooks_cell_fn fn, void *ctx)
{
	struct ct_entry *cells = hooks_cells(r->area, r->o.threads, r->o.ring_bytes);
	size_t begin = (size_t)((char *)cells - (char *)r->area);
	union hooks_extra *extras = hooks_extras(cells, r->o.cells);
	uint32_t n = __atomic_load_n(&r->area->cells, __ATOMIC_ACQUIRE);
	struct stretch s = { 0 }, s_extras = { 0 };

	for (uint32_t i = 0; i < n && i < r->o.cells && seal(r); i++) {
		union hooks_extra copy;
		struct ct_entry e;
		size_t at = begin + i * sizeof(e), data = written_from(r, &s, at);

		/* a cell is not on two pages */
		if (data != at) {
			i = (uint32_t)((data - begin) / sizeof(e)) - 1;
			continue;
		}
		if (!__atomic_load_n(&cells[i].key.tgid, __ATOMIC_ACQUIRE))
			continue;
		memcpy(&e, &cells[i], sizeof(e));
		e.key.tgid = (uint32_t)r->o.pid;
		memset(e.key.pad, 0, sizeof(e.key.pad));
		if (e.key.how == CT_BY_THREAD) {
			uint32_t tid = agent_tids_find(r->o.tids, (uint32_t)e.key.by);

			e.key.by = tid ? tid : (uint32_t)e.key.by;
		}
		fn(ctx, &e, bytes_at(r, &s_extras, &extras[i], sizeof(copy), &copy));
	}
}

/* ---- records ---- */

/* Raw records for the call's stack, which come before the call. */
static bool is_stack(const struct ct_hdr *h)
{
	return h->kind == CT_USER_STACK || h->kind == CT_PY_STACK || h->kind == CT_PY_CODE;
}

static bool is_of_layer(const struct ct_hdr *h)
{
	return h->kind == CT_LAYER_BEGIN || h->kind == CT_LAYER_END;
}

static bool allowed(const struct hooks_ring *r, const struct ct_hdr *h)
{
	if (h->flags & CT_F_BEFORE || (h->flags & CT_F_SCOPE && !r->o.layers))
		return false;
	return h->kind == CT_CALL || h->kind == CT_ENTER || h->kind == CT_MORE ||
	       h->kind == CT_THREAD_NAME || is_stack(h) || (is_of_layer(h) && r->o.layers);
}

/* Its ids and times as ours, and nothing in it that only we may say. */
static void own(struct hooks_ring *r, struct block *b, struct ct_hdr *h, uint64_t now)
{
	if (r->o.clock) {
		uint64_t ticks = h->start_ns;

		h->start_ns = hooks_clock_ns(r->o.clock, ticks);
		for (int i = 0; i < CT_MAX_FRAMES; i++)
			if (b->reported[i].ticks == ticks && ticks)
				h->start_ns = b->reported[i].ns;
		/* a stack belongs to the call that began at the same time, to the nanosecond */
		if (b->stack.ticks == ticks && ticks) {
			h->start_ns = b->stack.ns;
		} else if (is_stack(h)) {
			b->stack.ticks = ticks;
			b->stack.ns = h->start_ns;
		}
		h->end_ns = hooks_clock_ns(r->o.clock, h->end_ns);
	} else {
		h->start_ns = agent_process_ours(h->start_ns, r->o.ahead_ns);
		h->end_ns = agent_process_ours(h->end_ns, r->o.ahead_ns);
	}
	/* what came while this was at work is later than when it began */
	if (h->end_ns > now && h->end_ns > (now = now_ns()))
		h->end_ns = now;
	if (h->start_ns > h->end_ns)
		h->start_ns = h->end_ns;
	h->pid = (uint32_t)r->o.pid;
	h->tid = agent_tids_find(r->o.tids, h->tid);
	h->lost = 0;
	h->flags &= CT_F_UNFINISHED | CT_F_NO_RETURN | CT_F_PER_THREAD | CT_F_HIDDEN | CT_F_SCOPE;
	if (h->kind != CT_CALL && h->kind != CT_ENTER)
		h->flags &= is_of_layer(h) ? CT_F_SCOPE : 0;
	if (h->kind == CT_THREAD_NAME)
		((struct ct_thread_name *)h)->comm[CT_COMM_LEN - 1] = '\0';
}

/* What was lost since the last record rides in the next one's header. */
static uint16_t take_lost(struct hooks_ring *r, const struct hooks_thread *t, struct block *b)
{
	uint64_t now = load(&t->lost), lost = now - b->lost;

	if (now < b->lost) {
		break_off(r);
		return 0;
	}
	if (lost > 0xffff)
		lost = 0xffff;
	b->lost += lost;
	return (uint16_t)lost;
}

/* How many bytes from this one on nobody has written. */
static size_t gap_at(const struct hooks_ring *r, struct block *b, const char *place)
{
	size_t at = (size_t)(place - (const char *)r->area);

	return written_from(r, &b->written, at) - at;
}

/* An entry whose tag is not there: nobody completes it if its thread was killed, or left its
 * handler by longjmp. The next one that is complete, if any. */
static bool resume(struct hooks_ring *r, struct hooks_thread *t, struct block *b, bool last)
{
	uint64_t head = __atomic_load_n(&t->head, __ATOMIC_ACQUIRE), at;
	const char *ring = hooks_ring(t);

	if (head - b->tail > r->o.ring_bytes)
		break_off(r);
	if (head == b->tail || hooks_ring_broken(r))
		return false;
	if (!b->stuck_ns)
		b->stuck_ns = now_ns();
	if (!last && now_ns() - b->stuck_ns < SWEEP_NS)
		return false;
	for (at = b->tail + 8; at < head; at += 8) {
		size_t in = at & (r->o.ring_bytes - 1), left = r->o.ring_bytes - in;
		size_t gap = gap_at(r, b, ring + in);
		uint64_t tag;

		gap = gap < left ? gap : left;
		if (gap > HOLE_MAX) {
			break_off(r);
			return false;
		}
		if (gap) {
			at += gap - 8;
			continue;
		}
		tag = load((const __u64 *)(ring + in));
		if (tag == hooks_tag(at) || tag == hooks_skip(at))
			break;
	}
	at = at < head ? at : head;
	b->tail = at;
	b->stuck_ns = 0;
	return true;
}

static void publish(struct hooks_thread *t, struct block *b)
{
	b->reported_tail = b->tail;
	__atomic_store_n(&t->tail, b->tail, __ATOMIC_RELEASE);
}

/* The next complete entry, which begins at b->tail: its place in the ring; -1: there is none. */
static ssize_t next_entry(struct hooks_ring *r, struct hooks_thread *t, struct block *b, bool last)
{
	const char *ring = hooks_ring(t);

	/* Entries are separated by a ring's end, or by some that nobody completes. An area of which
	 * more is skipped is changed all the time. */
	for (int skipped = 0; skipped < SKIPS_MAX; skipped++) {
		size_t at = b->tail & (r->o.ring_bytes - 1);
		uint64_t tag = 0;

		if (__atomic_load_n(&t->head, __ATOMIC_ACQUIRE) == b->tail)
			return -1;
		if (!gap_at(r, b, ring + at))
			tag = __atomic_load_n((const __u64 *)(ring + at), __ATOMIC_ACQUIRE);
		if (tag == hooks_tag(b->tail))
			return (ssize_t)at;
		if (tag == hooks_skip(b->tail)) {
			b->tail += r->o.ring_bytes - at;
		} else if (!resume(r, t, b, last)) {
			return -1;
		}
	}
	return -1;
}

void hooks_ring_mark(struct hooks_ring *r, uint32_t i)
{
	r->blocks[i].mark = __atomic_load_n(&thread_at(r, i)->head, __ATOMIC_ACQUIRE);
}

bool hooks_ring_behind(const struct hooks_ring *r, uint32_t i)
{
	const struct block *b = &r->blocks[i];

	return !hooks_ring_broken(r) && (int64_t)(b->mark - b->tail) > 0;
}

size_t hooks_ring_move(struct hooks_ring *r, uint32_t i, bool last, void *to, size_t room)
{
	struct hooks_thread *t = thread_at(r, i);
	struct block *b = &r->blocks[i];
	struct hooks_pack pack = { 0 };
	const char *ring = hooks_ring(t);
	char copy[HOOKS_RECORD_MAX];
	uint64_t begin = b->tail;
	size_t n = 0;
	ssize_t at;

	if (next_block(r, i) != i)
		return 0;
	while (!hooks_ring_broken(r) && b->tail - begin < r->o.ring_bytes &&
	       (at = next_entry(r, t, b, last)) >= 0) {
		size_t left = r->o.ring_bytes - (size_t)at;
		const char *rest = ring + at + 8 + sizeof(struct ct_hdr);
		struct ct_hdr head;

		b->stuck_ns = 0;
		if (left >= 8 + sizeof(head))
			memcpy(&head, bytes_at(r, &b->written, ring + at + 8, sizeof(head), copy),
			       sizeof(head));
		if (left < 8 + sizeof(head) || head.size < sizeof(head) || head.size % 8 ||
		    head.size > HOOKS_RECORD_MAX || head.size > left - 8) {
			break_off(r);
			break;
		}
		if (room - n < HOOKS_PACKED_MAX(head.size))
			break;
		head.lost = take_lost(r, t, b);
		rest = bytes_at(r, &b->written, rest, head.size - sizeof(head), copy);
		n += hooks_pack_put(&pack, (char *)to + n, &head, rest);
		b->tail += hooks_entry_bytes(head.size);
		if (b->tail - b->reported_tail >= PUBLISH_BYTES)
			publish(t, b);
	}
	if (b->tail != b->reported_tail)
		publish(t, b);
	return n;
}

int hooks_ring_take(struct hooks_ring *r, uint32_t i, const void *from, size_t bytes,
		    struct hooks_batch *batch)
{
	union {
		struct ct_hdr h;
		char bytes[HOOKS_RECORD_MAX];
	} copy;
	struct hooks_pack pack = { 0 };
	uint64_t now = now_ns();

	for (size_t at = 0; at < bytes && !r->bad;) {
		uint16_t lost;
		int err;

		at += hooks_pack_get(&pack, (const char *)from + at, copy.bytes);
		if (!allowed(r, &copy.h) || record_check(&copy.h, copy.h.size)) {
			break_off(r);
			return -EBADMSG;
		}
		lost = copy.h.lost;
		own(r, &r->blocks[i], &copy.h, now);
		copy.h.lost = lost;
		err = hooks_batch_add(batch, &copy.h);
		if (err)
			return err;
		r->received += copy.h.kind == CT_CALL || copy.h.kind == CT_ENTER;
	}
	return 0;
}

bool hooks_ring_broken(const struct hooks_ring *r)
{
	return __atomic_load_n(&r->broken, __ATOMIC_ACQUIRE);
}

bool hooks_ring_turned_bad(struct hooks_ring *r)
{
	if (!r->bad)
		check_area(r);
	if (r->bad || !hooks_ring_broken(r))
		return false;
	r->bad = true;
	r->malformed++;
	return true;
}

uint32_t hooks_ring_block(const struct hooks_ring *r, uint32_t from)
{
	uint32_t i = next_block(r, from);

	return i < used_blocks(r) ? i : UINT32_MAX;
}

uint32_t hooks_ring_size(const struct hooks_ring *r)
{
	return r->o.ring_bytes;
}

static int read_block(struct hooks_ring *r, uint32_t i, struct hooks_batch *batch, bool last)
{
	uint64_t piece[PIECE_BYTES / 8];
	int err = 0;

	while (!err && !hooks_batch_full(batch)) {
		size_t n = hooks_ring_move(r, i, last, piece, sizeof(piece));

		if (!n)
			break;
		err = hooks_ring_take(r, i, piece, n, batch);
	}
	return err ? err : hooks_ring_turned_bad(r) ? -EBADMSG : 0;
}

int hooks_ring_read(struct hooks_ring *r, struct hooks_batch *batch, bool last)
{
	EACH_BLOCK(r, i)
	{
		int err = r->bad ? 0 : read_block(r, i, batch, last);

		if (err) {
			hooks_ring_turned_bad(r);
			return err;
		}
	}
	return hooks_batch_full(batch);
}

/* ---- calls under way ---- */

static int inflight_of(struct hooks_ring *r, struct block *b, const struct hooks_thread *t,
		       uint16_t with, uint64_t min_age_ns, uint64_t end_ns,
		       struct hooks_batch *batch)
{
	uint32_t depth = __atomic_load_n(&t->depth, __ATOMIC_ACQUIRE);
	uint64_t now = now_ns();
	int err = 0;

	for (uint32_t i = 0; i < depth && i < CT_MAX_FRAMES && err != -ENOMEM; i++) {
		struct hooks_call f;
		struct ct_call *c = &f.rec;
		struct stretch s = { 0 };
		uint64_t ticks;

		memmove(&f, bytes_at(r, &s, &t->calls[i], sizeof(f), &f), sizeof(f));
		if (!f.owed || f.len > CT_DATA_MAX || f.len % 8)
			continue;
		c->h.kind = CT_CALL;
		c->h.flags = (uint16_t)((c->h.flags & CT_F_PER_THREAD) | with |
					(c->h.flags & CT_F_HIDDEN));
		c->h.end_ns = c->h.start_ns;
		c->ret = 0;
		if (r->o.layers && f.len <= CT_PLAN_MAX) {
			f.data[f.len / 8] = f.scope;
			f.len += 8;
			c->h.flags |= CT_F_SCOPE;
		}
		c->h.size = (uint16_t)(sizeof(*c) + f.len);
		if (record_check(&c->h, c->h.size))
			continue;
		ticks = c->h.start_ns;
		own(r, b, &c->h, now);
		b->reported[i].ticks = ticks;
		b->reported[i].ns = c->h.start_ns;
		c->h.flags |= with;
		c->h.end_ns = end_ns > c->h.start_ns ? end_ns : c->h.start_ns;
		if (c->h.end_ns - c->h.start_ns < min_age_ns)
			continue;
		err = hooks_batch_add(batch, &c->h);
	}
	return err;
}

int hooks_ring_inflight(struct hooks_ring *r, uint16_t with, uint64_t min_age_ns, uint64_t end_ns,
			int thread, struct hooks_batch *batch)
{
	int err = 0;

	EACH_BLOCK(r, i)
	{
		const struct hooks_thread *t = thread_at(r, i);

		if (err || r->bad)
			break;
		if ((thread < 0 || (uint32_t)thread == i) &&
		    __atomic_load_n(&t->owner, __ATOMIC_ACQUIRE) == HOOKS_USED)
			err = inflight_of(r, &r->blocks[i], t, with, min_age_ns, end_ns, batch);
	}
	return err;
}

int hooks_ring_returning(struct hooks_ring *r, uint64_t age_ns)
{
	uint64_t now = now_ns();
	int n = 0;

	EACH_BLOCK(r, i)
	{
		const struct hooks_thread *t = thread_at(r, i);
		uint32_t depth = __atomic_load_n(&t->depth, __ATOMIC_ACQUIRE);
		struct stretch s = { 0 };
		struct ct_hdr h, copy;
		uint64_t start;

		if (!depth || depth > CT_MAX_FRAMES)
			continue;
		memcpy(&h, bytes_at(r, &s, &t->calls[depth - 1].rec.h, sizeof(h), &copy),
		       sizeof(h));
		start = h.start_ns;
		start = r->o.clock ? hooks_clock_ns(r->o.clock, start)
				   : agent_process_ours(start, r->o.ahead_ns);
		n += now - start < age_ns;
	}
	return n;
}

int hooks_ring_sweep(struct hooks_ring *r, hooks_rest_fn rest, void *ctx,
		     struct hooks_batch *under_way)
{
	uint64_t now = now_ns();
	int err = 0;

	if (now - r->swept_ns < SWEEP_NS || r->bad)
		return 0;
	r->swept_ns = now;
	EACH_BLOCK(r, i)
	{
		struct hooks_thread *t = thread_at(r, i);
		uint32_t tid =
			agent_tids_find(r->o.tids, __atomic_load_n(&t->tid, __ATOMIC_ACQUIRE));
		char path[64];

		if (err < 0)
			break;
		if (__atomic_load_n(&t->owner, __ATOMIC_ACQUIRE) != HOOKS_USED || !t->tid)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%u", (int)r->o.pid, tid);
		if (tid && !access(path, F_OK))
			continue;
		err = rest(ctx, r, i);
		if (err)
			continue;
		err = hooks_ring_inflight(r, CT_F_UNFINISHED, 0, now, (int)i, under_way);
		t->depth = 0;
		t->tid = 0;
		__atomic_store_n(&t->owner, HOOKS_FREE, __ATOMIC_RELEASE);
	}
	return err < 0 ? err : 0;
}

int hooks_ring_rest(void *batch, struct hooks_ring *r, uint32_t block)
{
	return read_block(r, block, batch, true);
}
