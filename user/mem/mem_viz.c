/* SPDX-License-Identifier: BSD-2-Clause */
/* mem_viz.c - see mem_viz.h. */
#include <errno.h>
#include <stdlib.h>

#include "../util/msg.h"
#include "../util/table/array.h"
#include "mem_viz.h"

void mem_viz_open(struct mem_viz *v)
{
	*v = (struct mem_viz){ .state = { .process = UINT32_MAX } };
	viz_history_open(&v->history, 0);
}

void mem_viz_close(struct mem_viz *v)
{
	viz_history_close(&v->history);
	viz_state_free(&v->state);
}

void mem_viz_changed(struct mem_viz *v, const struct block_change *c)
{
	/* a process may say anything */
	if (c->bytes > UINT64_MAX - c->address)
		v->odd++;
	else
		viz_history_add(&v->history, c);
}

/* ---- what a process holds ---- */

/* The most that a process had allocated, on all devices together; 0: it reported nothing. */
static uint64_t peak_of(const struct ledger *l, uint32_t process)
{
	uint64_t peak = 0;

	for (uint32_t i = 0; i < l->blocks.totals.n; i++) {
		const struct blocks_total *t = blocks_total(&l->blocks, i);

		if (t->process == process)
			peak += t->peak + t->ooms + 1; /* no sum of numbers below 2^60 overflows */
	}
	return peak;
}

static void add_blocks(struct viz_state *s, const struct ledger *l, uint32_t total)
{
	uint16_t device = (uint16_t)blocks_total(&l->blocks, total)->device;
	struct block *list;
	size_t n;

	list = blocks_held(&l->blocks, total, &n);
	for (size_t i = 0; i < n; i++) {
		bool odd = list[i].bytes > UINT64_MAX - list[i].address;
		struct viz_block *b = odd ? NULL : array_add(s->blocks, s->nblocks);

		if (odd)
			continue; /* counted when it was reported */
		if (!b) {
			s->incomplete = true;
			break;
		}
		*b = (struct viz_block){ list[i].address, list[i].bytes, list[i].site, device };
	}
	s->incomplete |= !list && blocks_total(&l->blocks, total)->n;
	free(list);
}

/* The first block in a segment; NULL: it has none. */
static const struct viz_block *block_in(const struct viz_state *s, const struct blocks_span *span)
{
	size_t at = array_before(s->blocks, s->nblocks, x, x->address < span->address);

	return at < s->nblocks && s->blocks[at].address < span->end ? &s->blocks[at] : NULL;
}

static void add_segments(struct viz_state *s, const struct ledger *l)
{
	struct blocks_span *spans;
	size_t n;

	spans = blocks_spans(&l->account.live, s->process, &n);
	for (size_t i = 0; i < n; i++) {
		const struct viz_block *b = block_in(s, &spans[i]);
		struct viz_segment *g;

		if (!b && !spans[i].own)
			continue;
		g = array_add(s->segments, s->nsegments);
		if (!g) {
			s->incomplete = true;
			break;
		}
		*g = (struct viz_segment){ .address = spans[i].address,
					   .end = spans[i].end,
					   .site = spans[i].site,
					   .device = b ? b->device : spans[i].device,
					   .mapped = spans[i].space == API_SPACE_MAPPED };
	}
	free(spans);
}

static int mem_viz_by_address(const void *a, const void *b)
{
	const struct viz_block *x = a, *y = b;

	return x->address != y->address ? (x->address < y->address ? -1 : 1) : 0;
}

static void take_state(struct viz_state *s, const struct ledger *l, uint32_t process)
{
	viz_state_free(s);
	s->process = process;
	for (uint32_t i = 0; i < l->blocks.totals.n; i++) {
		const struct blocks_total *t = blocks_total(&l->blocks, i);

		if (t->process == process && !t->ended)
			add_blocks(s, l, i);
	}
	if (s->nblocks)
		qsort(s->blocks, s->nblocks, sizeof(*s->blocks), mem_viz_by_address);
	add_segments(s, l);
}

void mem_viz_ends(struct mem_viz *v, const struct ledger *l, uint32_t process)
{
	uint64_t peak = peak_of(l, process);

	if (peak <= v->peak)
		return;
	v->peak = peak;
	take_state(&v->state, l, process);
}

/* ---- the file ---- */

/* Where the device of a segment is not known, it is the first one of which blocks were reported. */
static void settle_devices(struct mem_viz *v, const struct ledger *l)
{
	uint16_t device = 0;

	for (uint32_t i = l->blocks.totals.n; i--;)
		if (blocks_total(&l->blocks, i)->process == v->state.process)
			device = (uint16_t)blocks_total(&l->blocks, i)->device;
	for (size_t i = 0; i < v->history.n; i++)
		if (v->history.at[i].device >= VIZ_DEVICES)
			v->history.at[i].device = device;
	for (size_t i = 0; i < v->state.nsegments; i++)
		if (v->state.segments[i].device >= VIZ_DEVICES)
			v->state.segments[i].device = device;
}

static bool frame(void *ctx, uint32_t site, uint32_t i, struct viz_frame *to)
{
	const struct ledger *l = ctx;
	const struct site *s = sites_get(l->sites, site);
	const struct site_frame *f = i < s->nframes ? &s->frames[i] : NULL;

	if (!f)
		return false;
	to->function = f->function ? f->function : "??";
	to->file = f->file ? f->file : f->object ? f->object : "??";
	to->line = f->line;
	return true;
}

/* Says what is not in the file. */
static void say_missing(const struct mem_viz *v, const struct ledger *l)
{
	const struct account_process *p = &l->account.processes[v->state.process];
	uint32_t others = 0;

	for (uint32_t i = 0; i < l->account.nprocesses; i++)
		others += i != v->state.process && peak_of(l, i);
	if (others)
		msg_warn("memory-viz: only process %u (%s) is in the file; %u other%s blocks too: "
			 "choose one with -p",
			 p->shown_pid, p->comm, others, others == 1 ? " has" : "s have");
	if (v->history.left_out)
		msg_warn("memory-viz: the oldest %llu events are not in the file: it has the "
			 "newest %zu",
			 (unsigned long long)v->history.left_out, v->history.n);
	if (v->odd)
		msg_warn("memory-viz: %llu event%s at addresses that do not exist %s not in the "
			 "file",
			 (unsigned long long)v->odd, v->odd == 1 ? "" : "s",
			 v->odd == 1 ? "is" : "are");
	if (v->state.incomplete)
		msg_warn("memory-viz: blocks are missing in the file: there is not enough memory");
}

int mem_viz_write(struct mem_viz *v, const struct ledger *l, struct out *o,
		  uint64_t realtime_offset_ns)
{
	struct viz viz = { .history = &v->history,
			   .state = &v->state,
			   .realtime_offset_ns = realtime_offset_ns,
			   .nsites = sites_n(l->sites),
			   .frame = frame,
			   .ctx = (void *)(uintptr_t)l };

	for (uint32_t i = 0; i < l->account.nprocesses; i++)
		if (l->account.processes[i].used && !l->account.processes[i].ended)
			mem_viz_ends(v, l, i);
	if (!v->peak)
		msg_warn("memory-viz: no program reported blocks of PyTorch's allocator: the file "
			 "is empty");
	settle_devices(v, l);
	viz_state_arrange(&v->state, &v->history);
	if (v->peak)
		say_missing(v, l);
	return viz_write(o, &viz);
}
