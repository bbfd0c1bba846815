/* SPDX-License-Identifier: BSD-2-Clause */
/* hooks_ring.c - see hooks_ring.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../util/now.h"
#include "../../util/table/array.h"
#include "../agent/agent_tids.h"
#include "hooks_ring.h"

#define BATCH_RECORDS 200000
#define BATCH_BYTES (64 << 20)
#define RECORD_MAX 4096 /* bytes of any record that comes this way */
#define SWEEP_NS 1000000000ULL

/* ---- the batch ---- */

struct entry {
	uint64_t end_ns;
	size_t at;
	uint32_t n; /* the order in which they were added */
};
struct hooks_batch {
	char *bytes;
	size_t len, cap;
	struct entry *entries;
	size_t n, room, next;
	bool sorted;
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
	b->entries[b->n] = (struct entry){ h->end_ns, b->len, (uint32_t)b->n };
	b->len += h->size;
	b->n++;
	b->sorted = false;
	return 0;
}

static int by_end(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->end_ns != y->end_ns)
		return x->end_ns < y->end_ns ? -1 : 1;
	return x->n < y->n ? -1 : x->n > y->n;
}

int hooks_batch_emit(struct hooks_batch *b, emit_fn emit, void *ctx)
{
	if (!b->sorted && b->n > b->next)
		qsort(b->entries + b->next, b->n - b->next, sizeof(*b->entries), by_end);
	b->sorted = true;
	while (b->next < b->n) {
		const struct entry *e = &b->entries[b->next++];
		int err = emit(ctx, (const struct ct_hdr *)(b->bytes + e->at));

		if (err)
			return err;
	}
	b->n = b->next = b->len = 0;
	return 0;
}

/* ---- the area ---- */

struct block {
	uint64_t tail, lost, received;
	uint64_t stuck_ns; /* since when an entry is not complete; 0: none is */
	/* begins of calls that were shown while they lasted: they stay what they were, whatever
	 * the clock has been found to do since */
	struct {
		uint64_t ticks, ns;
	} told[CT_MAX_FRAMES];
};
struct hooks_ring {
	struct hooks_ring_opts o;
	struct hooks_area *area;
	size_t bytes;
	struct block *blocks;
	uint64_t received, malformed, lost, swept_ns;
	uint64_t safe_ns; /* of the last record that was read */
	bool bad;
};

static int make_area(size_t bytes)
{
	int fd = memfd_create("cudatrace-hooks", MFD_CLOEXEC | MFD_ALLOW_SEALING), err;

	if (fd < 0)
		return -errno;
	/* its size stays: a page that is taken away would crash who reads it */
	if (!ftruncate(fd, (off_t)bytes) &&
	    !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
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
	*fd = r->blocks ? make_area(r->bytes) : -ENOMEM;
	if (*fd >= 0) {
		r->area = mmap(NULL, r->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
			       *fd, 0);
		if (r->area == MAP_FAILED) {
			close(*fd);
			*fd = -ENOMEM;
		}
	}
	if (*fd < 0) {
		hooks_ring_close(r);
		return NULL;
	}
	hooks_ring_tick(r);
	return r;
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
	free(r->blocks);
	free(r);
}

void hooks_ring_phase(struct hooks_ring *r, enum ct_phase phase)
{
	__atomic_store_n(&r->area->phase, (__u32)phase, __ATOMIC_SEQ_CST);
}

void hooks_ring_inner(struct hooks_ring *r, bool on)
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

static uint64_t load(const __u64 *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

void hooks_ring_counts(const struct hooks_ring *r, struct hooks_ring_counts *out)
{
	memset(out, 0, sizeof(*out));
	out->received = r->received;
	out->malformed = r->malformed;
	out->lost = r->lost;
	out->no_block = load(&r->area->no_block);
	for (uint32_t i = 0; i < used_blocks(r); i++) {
		const struct hooks_thread *t = thread_at(r, i);

		out->lost += load(&t->lost) - r->blocks[i].lost;
		out->folded += load(&t->folded);
		out->filtered += load(&t->filtered);
		out->deep += load(&t->deep);
		out->no_cell += load(&t->no_cell);
		out->unfinished += load(&t->unfinished);
		out->forgets += load(&t->forgets);
	}
}

void hooks_ring_cells(struct hooks_ring *r, hooks_cell_fn fn, void *ctx)
{
	struct ct_entry *cells = hooks_cells(r->area, r->o.threads, r->o.ring_bytes);
	uint32_t n = __atomic_load_n(&r->area->cells, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < n && i < r->o.cells; i++) {
		struct ct_entry e;

		if (!__atomic_load_n(&cells[i].key.tgid, __ATOMIC_ACQUIRE))
			continue;
		memcpy(&e, &cells[i], sizeof(e));
		e.key.tgid = (uint32_t)r->o.pid;
		memset(e.key.pad, 0, sizeof(e.key.pad));
		if (e.key.how == CT_BY_THREAD) {
			uint32_t tid = agent_tids_find(r->o.tids, (uint32_t)e.key.by);

			e.key.by = tid ? tid : (uint32_t)e.key.by;
		}
		fn(ctx, &e, &hooks_extras(cells, r->o.cells)[i]);
	}
}

/* ---- records ---- */

static bool allowed(const struct ct_hdr *h)
{
	return (h->kind == CT_CALL || h->kind == CT_ENTER || h->kind == CT_MORE ||
		h->kind == CT_THREAD_NAME) &&
	       !(h->flags & CT_F_BEFORE);
}

/* Its ids and times as ours, and nothing in it that only we may say. */
static void own(struct hooks_ring *r, const struct block *b, struct ct_hdr *h, uint64_t now)
{
	if (r->o.clock) {
		uint64_t ticks = h->start_ns;

		h->start_ns = hooks_clock_ns(r->o.clock, ticks);
		for (int i = 0; i < CT_MAX_FRAMES; i++)
			if (b->told[i].ticks == ticks && ticks)
				h->start_ns = b->told[i].ns;
		h->end_ns = hooks_clock_ns(r->o.clock, h->end_ns);
	}
	/* what came while this was at work is later than when it began */
	if (h->end_ns > now && h->end_ns > (now = now_ns()))
		h->end_ns = now;
	if (h->start_ns > h->end_ns)
		h->start_ns = h->end_ns;
	h->pid = (uint32_t)r->o.pid;
	h->tid = agent_tids_find(r->o.tids, h->tid);
	h->lost = 0;
	h->flags &= CT_F_UNFINISHED | CT_F_NO_RETURN | CT_F_PER_THREAD | CT_F_HIDDEN;
	if (h->kind != CT_CALL && h->kind != CT_ENTER)
		h->flags = 0;
	if (h->kind == CT_THREAD_NAME)
		((struct ct_thread_name *)h)->comm[CT_COMM_LEN - 1] = '\0';
}

/* Checks a copy, whose size is known to be that of the memory, and adds it. */
static int take(struct hooks_ring *r, const struct block *b, struct ct_hdr *h, uint16_t size,
		uint16_t lost, uint64_t now, struct hooks_batch *batch)
{
	h->size = size;
	if (!allowed(h) || record_check(h, size))
		return -EBADMSG;
	own(r, b, h, now);
	h->lost = lost;
	return hooks_batch_add(batch, h);
}

/* What was lost since the last record rides in the next one's header. */
static uint16_t take_lost(struct hooks_ring *r, const struct hooks_thread *t, struct block *b)
{
	uint64_t lost = load(&t->lost) - b->lost;

	if (lost > 0xffff)
		lost = 0xffff;
	b->lost += lost;
	r->lost += lost;
	return (uint16_t)lost;
}

/* An entry whose tag is not there: nobody completes it if its thread was killed, or left its
 * handler by longjmp. The next one that is complete, if any. */
static bool resume(const struct hooks_ring *r, struct hooks_thread *t, struct block *b, bool last)
{
	uint64_t head = __atomic_load_n(&t->head, __ATOMIC_ACQUIRE), at;
	const char *ring = hooks_ring(t);

	if (head == b->tail || head - b->tail > r->o.ring_bytes)
		return false;
	if (!b->stuck_ns)
		b->stuck_ns = now_ns();
	if (!last && now_ns() - b->stuck_ns < SWEEP_NS)
		return false;
	for (at = b->tail + 8; at < head; at += 8) {
		uint64_t tag = load((const __u64 *)(ring + (at & (r->o.ring_bytes - 1))));

		if (tag == hooks_tag(at) || tag == hooks_skip(at))
			break;
	}
	b->tail = at;
	b->stuck_ns = 0;
	return true;
}

static int read_block(struct hooks_ring *r, uint32_t i, struct hooks_batch *batch, bool last)
{
	struct hooks_thread *t = thread_at(r, i);
	struct block *b = &r->blocks[i];
	const char *ring = hooks_ring(t);
	union {
		struct ct_hdr h;
		char bytes[RECORD_MAX];
	} copy;
	uint64_t now = now_ns();
	int err = 0;

	while (!err && !hooks_batch_full(batch)) {
		size_t at = b->tail & (r->o.ring_bytes - 1), left = r->o.ring_bytes - at;
		uint64_t tag = __atomic_load_n((const __u64 *)(ring + at), __ATOMIC_ACQUIRE);
		uint16_t size, lost;

		if (tag == hooks_skip(b->tail)) {
			b->tail += left;
			continue;
		}
		if (tag != hooks_tag(b->tail)) {
			if (resume(r, t, b, last))
				continue;
			break;
		}
		b->stuck_ns = 0;
		if (left < 8 + sizeof(copy.h))
			return -EBADMSG;
		memcpy(&copy.h, ring + at + 8, sizeof(copy.h));
		size = copy.h.size;
		if (size < sizeof(copy.h) || size % 8 || size > RECORD_MAX || size > left - 8)
			return -EBADMSG;
		memcpy(copy.bytes, ring + at + 8, size);
		b->tail += hooks_entry_bytes(size);
		lost = take_lost(r, t, b);
		err = take(r, b, &copy.h, size, lost, now, batch);
		if (err)
			return err;
		r->received += copy.h.kind == CT_CALL || copy.h.kind == CT_ENTER;
		r->safe_ns = copy.h.end_ns;
	}
	__atomic_store_n(&t->tail, b->tail, __ATOMIC_RELEASE);
	return err;
}

int hooks_ring_read(struct hooks_ring *r, struct hooks_batch *batch, bool last)
{
	for (uint32_t i = 0; i < used_blocks(r) && !r->bad; i++) {
		int err = read_block(r, i, batch, last);

		if (err) {
			r->bad = true;
			r->malformed += err == -EBADMSG;
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
		uint64_t ticks;

		memcpy(&f, &t->calls[i], sizeof(f));
		if (!f.owed || f.len > CT_DATA_MAX || f.len % 8)
			continue;
		c->h.kind = CT_CALL;
		c->h.flags = (uint16_t)((c->h.flags & CT_F_PER_THREAD) | with |
					(c->h.flags & CT_F_HIDDEN));
		c->h.end_ns = c->h.start_ns;
		c->ret = 0;
		c->h.size = (uint16_t)(sizeof(*c) + f.len);
		if (record_check(&c->h, c->h.size))
			continue;
		ticks = c->h.start_ns;
		own(r, b, &c->h, now);
		b->told[i].ticks = ticks;
		b->told[i].ns = c->h.start_ns;
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

	for (uint32_t i = 0; i < used_blocks(r) && !err && !r->bad; i++) {
		const struct hooks_thread *t = thread_at(r, i);

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

	for (uint32_t i = 0; i < used_blocks(r); i++) {
		const struct hooks_thread *t = thread_at(r, i);
		uint32_t depth = __atomic_load_n(&t->depth, __ATOMIC_ACQUIRE);
		uint64_t start;

		if (!depth || depth > CT_MAX_FRAMES)
			continue;
		start = load(&t->calls[depth - 1].rec.h.start_ns);
		if (r->o.clock)
			start = hooks_clock_ns(r->o.clock, start);
		n += now - start < age_ns;
	}
	return n;
}

int hooks_ring_sweep(struct hooks_ring *r, struct hooks_batch *batch, struct hooks_batch *under_way)
{
	uint64_t now = now_ns();
	int err = 0;

	if (now - r->swept_ns < SWEEP_NS || r->bad)
		return 0;
	r->swept_ns = now;
	for (uint32_t i = 0; i < used_blocks(r) && !err; i++) {
		struct hooks_thread *t = thread_at(r, i);
		uint32_t tid =
			agent_tids_find(r->o.tids, __atomic_load_n(&t->tid, __ATOMIC_ACQUIRE));
		char path[64];

		if (__atomic_load_n(&t->owner, __ATOMIC_ACQUIRE) != HOOKS_USED || !t->tid)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%u", (int)r->o.pid, tid);
		if (tid && !access(path, F_OK))
			continue;
		err = read_block(r, i, batch, true);
		if (!err)
			err = hooks_ring_inflight(r, CT_F_UNFINISHED, 0, now, (int)i, under_way);
		t->depth = 0;
		t->tid = 0;
		__atomic_store_n(&t->owner, HOOKS_FREE, __ATOMIC_RELEASE);
	}
	if (err == -EBADMSG)
		r->bad = true;
	return err;
}
