/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * viz_write.c - see viz.h: the snapshot, as torch.cuda.memory._snapshot() describes it:
 *
 *   {'segments': [{'device': 0, 'address': 1, 'total_size': 2, ...,
 *                  'blocks': [{'address': 1, 'size': 2, 'state': 'inactive', 'frames': []}]}],
 *    'device_traces': [[{'action': 'alloc', 'addr': 1, 'size': 2, 'frames': [...]}]]}
 *
 * The frames of a call site are written once, and referred to from then on.
 */
#include <errno.h>
#include <stdlib.h>

#include "pickle.h"
#include "viz.h"

#define SMALL_SEGMENT (2u << 20) /* what the allocator takes from CUDA for small blocks */

enum key {
	ACTION,
	ACTIVE_SIZE,
	ADDR,
	ADDRESS,
	ALLOCATED_SIZE,
	BLOCKS,
	DEVICE,
	DEVICE_FREE,
	DEVICE_TRACES,
	FILENAME,
	FRAMES,
	IS_EXPANDABLE,
	LINE,
	NAME,
	REQUESTED_SIZE,
	SEGMENT_POOL_ID,
	SEGMENT_TYPE,
	SEGMENTS,
	SIZE,
	STATE,
	STREAM,
	TIME_US,
	TOTAL_SIZE,
	/* values that are often the same */
	V_ALLOC,
	V_FREE_REQUESTED,
	V_FREE_COMPLETED,
	V_SEGMENT_ALLOC,
	V_SEGMENT_FREE,
	V_SEGMENT_MAP,
	V_SEGMENT_UNMAP,
	V_OOM,
	V_SMALL,
	V_LARGE,
	V_ACTIVE,
	V_INACTIVE,
	KEYS
};

static const char *const keys[KEYS] = {
	[ACTION] = "action",
	[ACTIVE_SIZE] = "active_size",
	[ADDR] = "addr",
	[ADDRESS] = "address",
	[ALLOCATED_SIZE] = "allocated_size",
	[BLOCKS] = "blocks",
	[DEVICE] = "device",
	[DEVICE_FREE] = "device_free",
	[DEVICE_TRACES] = "device_traces",
	[FILENAME] = "filename",
	[FRAMES] = "frames",
	[IS_EXPANDABLE] = "is_expandable",
	[LINE] = "line",
	[NAME] = "name",
	[REQUESTED_SIZE] = "requested_size",
	[SEGMENT_POOL_ID] = "segment_pool_id",
	[SEGMENT_TYPE] = "segment_type",
	[SEGMENTS] = "segments",
	[SIZE] = "size",
	[STATE] = "state",
	[STREAM] = "stream",
	[TIME_US] = "time_us",
	[TOTAL_SIZE] = "total_size",
	[V_ALLOC] = "alloc",
	[V_FREE_REQUESTED] = "free_requested",
	[V_FREE_COMPLETED] = "free_completed",
	[V_SEGMENT_ALLOC] = "segment_alloc",
	[V_SEGMENT_FREE] = "segment_free",
	[V_SEGMENT_MAP] = "segment_map",
	[V_SEGMENT_UNMAP] = "segment_unmap",
	[V_OOM] = "oom",
	[V_SMALL] = "small",
	[V_LARGE] = "large",
	[V_ACTIVE] = "active_allocated",
	[V_INACTIVE] = "inactive",
};

struct writer {
	struct pickle p;
	const struct viz *viz;
	uint32_t *sites; /* number + 1 of the frames that were written; 0: not yet */
};

static void viz_write_number(struct writer *w, enum key key, uint64_t v)
{
	pickle_key(&w->p, key);
	pickle_number(&w->p, v);
}

static void word(struct writer *w, enum key key, enum key value)
{
	pickle_key(&w->p, key);
	pickle_key(&w->p, value);
}

static void frames(struct writer *w, uint32_t site)
{
	const struct viz *v = w->viz;
	struct pickle_list list;
	struct viz_frame f;

	pickle_key(&w->p, FRAMES);
	site = site < v->nsites ? site : 0;
	if (w->sites[site]) {
		pickle_again(&w->p, w->sites[site] - 1);
		return;
	}
	pickle_list(&w->p, &list);
	w->sites[site] = pickle_keep(&w->p) + 1;
	for (uint32_t i = 0; v->frame(v->ctx, site, i, &f); i++) {
		pickle_item(&w->p, &list);
		pickle_dict(&w->p);
		pickle_key(&w->p, FILENAME);
		pickle_text(&w->p, f.file);
		viz_write_number(w, LINE, f.line);
		pickle_key(&w->p, NAME);
		pickle_text(&w->p, f.function);
		pickle_dict_end(&w->p);
	}
	pickle_list_end(&w->p, &list);
}

/* ---- what is held ---- */

static void block(struct writer *w, struct pickle_list *list, uint64_t from, uint64_t to,
		  const struct viz_block *b)
{
	if (from >= to)
		return;
	pickle_item(&w->p, list);
	pickle_dict(&w->p);
	viz_write_number(w, ADDRESS, from);
	viz_write_number(w, SIZE, to - from);
	viz_write_number(w, REQUESTED_SIZE, b ? to - from : 0);
	word(w, STATE, b ? V_ACTIVE : V_INACTIVE);
	frames(w, b ? b->site : 0);
	pickle_dict_end(&w->p);
}

/* What lies where in a segment; what the program says may overlap, and end behind it. */
static uint64_t clip(const struct viz_segment *g, const struct viz_block *b, uint64_t *at)
{
	uint64_t from = b->address > *at ? b->address : *at,
		 end = b->bytes > g->end - b->address ? g->end : b->address + b->bytes;

	*at = end > from ? end : *at;
	return end > from ? end - from : 0;
}

static uint64_t used_of(const struct viz_state *s, const struct viz_segment *g)
{
	uint64_t at = g->address, used = 0;

	for (size_t i = 0; i < g->n; i++)
		used += clip(g, &s->blocks[g->first + i], &at);
	return used;
}

static void blocks(struct writer *w, const struct viz_state *s, const struct viz_segment *g)
{
	struct pickle_list list;
	uint64_t at = g->address, before, bytes;

	pickle_key(&w->p, BLOCKS);
	pickle_list(&w->p, &list);
	for (size_t i = 0; i < g->n; i++) {
		const struct viz_block *b = &s->blocks[g->first + i];

		before = at;
		bytes = clip(g, b, &at);
		if (bytes) {
			block(w, &list, before, at - bytes, NULL);
			block(w, &list, at - bytes, at, b);
		}
	}
	block(w, &list, at, g->end, NULL);
	pickle_list_end(&w->p, &list);
}

static void segment(struct writer *w, const struct viz_state *s, const struct viz_segment *g)
{
	uint64_t used = used_of(s, g), size = g->end - g->address;

	pickle_dict(&w->p);
	viz_write_number(w, DEVICE, g->device);
	viz_write_number(w, ADDRESS, g->address);
	viz_write_number(w, TOTAL_SIZE, size);
	viz_write_number(w, ALLOCATED_SIZE, used);
	viz_write_number(w, ACTIVE_SIZE, used);
	viz_write_number(w, REQUESTED_SIZE, used);
	viz_write_number(w, STREAM, 0);
	word(w, SEGMENT_TYPE, size <= SMALL_SEGMENT ? V_SMALL : V_LARGE);
	pickle_key(&w->p, SEGMENT_POOL_ID);
	pickle_pair(&w->p, 0, 0);
	pickle_key(&w->p, IS_EXPANDABLE);
	pickle_bool(&w->p, g->mapped);
	frames(w, g->site);
	blocks(w, s, g);
	pickle_dict_end(&w->p);
}

/* ---- what was done ---- */

static void entry(struct writer *w, struct pickle_list *list, const struct block_change *e,
		  enum key action)
{
	pickle_item(&w->p, list);
	pickle_dict(&w->p);
	word(w, ACTION, action);
	/* of memory that could not be had there is no address */
	viz_write_number(w, e->what == BLOCK_NO_MEMORY ? DEVICE_FREE : ADDR, e->address);
	viz_write_number(w, SIZE, e->bytes);
	viz_write_number(w, STREAM, 0);
	viz_write_number(w, TIME_US, (e->at_ns + w->viz->realtime_offset_ns) / 1000);
	frames(w, e->site);
	pickle_dict_end(&w->p);
}

static void entries(struct writer *w, uint32_t device)
{
	static const enum key actions[] = {
		[BLOCK_TAKEN] = V_ALLOC,
		[BLOCK_GIVEN_BACK] = V_FREE_COMPLETED,
		[BLOCK_SEGMENT_TAKEN] = V_SEGMENT_ALLOC,
		[BLOCK_SEGMENT_GIVEN_BACK] = V_SEGMENT_FREE,
		[BLOCK_SEGMENT_MAPPED] = V_SEGMENT_MAP,
		[BLOCK_SEGMENT_UNMAPPED] = V_SEGMENT_UNMAP,
		[BLOCK_NO_MEMORY] = V_OOM,
	};
	const struct viz_history *h = w->viz->history;
	struct pickle_list list;

	pickle_list(&w->p, &list);
	for (size_t i = 0; i < h->n; i++) {
		const struct block_change *e = viz_history_at(h, i);

		if (e->process != w->viz->state->process || e->device != device)
			continue;
		if (e->what == BLOCK_GIVEN_BACK)
			entry(w, &list, e, V_FREE_REQUESTED);
		entry(w, &list, e, actions[e->what]);
	}
	pickle_list_end(&w->p, &list);
}

/* Number of devices: a list has a place for each one up to the last. */
static uint32_t devices_of(const struct viz *v)
{
	uint32_t n = 0;

	for (size_t i = 0; i < v->history->n; i++) {
		const struct block_change *e = viz_history_at(v->history, i);

		if (e->process == v->state->process && e->device >= n && e->device < VIZ_DEVICES)
			n = e->device + 1u;
	}
	for (size_t i = 0; i < v->state->nsegments; i++) {
		uint16_t device = v->state->segments[i].device;

		if (device >= n && device < VIZ_DEVICES)
			n = device + 1u;
	}
	return n;
}

int viz_write(struct out *o, const struct viz *v)
{
	struct writer w = { .viz = v, .sites = calloc(v->nsites + 1, sizeof(*w.sites)) };
	int err = pickle_begin(&w.p, o, keys, KEYS);
	uint32_t devices = devices_of(v);
	struct pickle_list list;

	if (err || !w.sites) {
		pickle_end(&w.p);
		free(w.sites);
		return -ENOMEM;
	}
	pickle_dict(&w.p);
	pickle_key(&w.p, SEGMENTS);
	pickle_list(&w.p, &list);
	for (size_t i = 0; i < v->state->nsegments; i++) {
		pickle_item(&w.p, &list);
		segment(&w, v->state, &v->state->segments[i]);
	}
	pickle_list_end(&w.p, &list);
	pickle_key(&w.p, DEVICE_TRACES);
	pickle_list(&w.p, &list);
	for (uint32_t d = 0; d < devices; d++) {
		pickle_item(&w.p, &list);
		entries(&w, d);
	}
	pickle_list_end(&w.p, &list);
	pickle_dict_end(&w.p);
	pickle_end(&w.p);
	free(w.sites);
	return out_error(o);
}
