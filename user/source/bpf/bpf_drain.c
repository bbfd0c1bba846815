/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bpf_drain.c - inside the bpf source: the kernel side's records out of the ring, the calls
 * under way, the sums and the losses, handed out in an order that the stages can rely on. The parts that watch processes, Pythons or throttled functions learn here what a record says about them; knows
 * no link and no ELF file.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "../../event/holes/holes.h"
#include "../../util/msg.h"
#include "../../util/now.h"
#include "bpf_inside.h"
#include "bpf_maps.h"
#include "../cgroup.h"
#include "../host.h"
#include "cudatrace.skel.h" /* behind control.h, whose structs it holds */

#define DRAIN_MAX 200000 /* records in one drain(): the loop has other things to do too */
#define BACKLOG_BYTES (256ULL << 20)
#define BACKLOG_STACK_BYTES (512ULL << 20)
/* How often it is looked, after the stop, whether calls have returned: after 1 ms, 2, 4 and so on. */
#define GRACE_FIRST_US 1000
#define GRACE_LAST_US 32000
#define GRACE_US 60000
#define GRACE_BUSY_US 500000
#define GRACE_AGE_NS 100000000ULL /* what has lasted longer than this is not waited for */

static uint64_t backlog_bytes(const struct capture_plan *plan)
{
	return cgroup_memory_part(plan->stack ? BACKLOG_STACK_BYTES : BACKLOG_BYTES);
}

static struct call_counts *open_call_counts(struct bpf_source *b)
{
	struct cudatrace_bpf *skel = b->skel;

	return call_counts_open(b->plan,
				&(struct call_counts_maps){
					.call_counts_fd = bpf_map__fd(skel->maps.call_counts),
					.entries_fd = bpf_map__fd(skel->maps.entries),
					.freed_fd = bpf_map__fd(skel->maps.freed),
					.hists_fd = bpf_map__fd(skel->maps.hists),
					.sizes_fd = bpf_map__fd(skel->maps.sizes),
					.shares_fd = skel->rodata->config.entries_each
							     ? bpf_map__fd(skel->maps.shares)
							     : -1,
					.held_fd = bpf_map__fd(skel->maps.held),
					.entries_max = bpf_map__max_entries(skel->maps.entries),
					.held_max = bpf_map__max_entries(skel->maps.held),
					.hists_max = bpf_map__max_entries(skel->maps.hists),
					.used = (uint64_t *)&skel->bss->entries_used,
					.freed = (uint64_t *)&skel->bss->freed_given,
					.hist_places = skel->bss->hist_places,
					.hists_given = (uint64_t *)&skel->bss->hists_given,
				});
}

int bpf_drain_open(struct bpf_source *b)
{
	const struct capture_plan *plan = b->plan;
	bool samples = b->skel->rodata->config.samples;
	int err;

	if (plan->count || samples) {
		b->call_counts = open_call_counts(b);
		if (!b->call_counts)
			return -ENOMEM;
		b->pair_ns = attach_kind_pair_ns(b->kind, plan->no_return);
	}
	err = samples ? bpf_muted_open(b) : 0;
	if (err)
		return err;
	err = ring_open(&b->ring, bpf_map__fd(b->skel->maps.ring), plan->ring_bytes);
	if (err) {
		msg_error("the ring buffer of %u bytes cannot be mapped: %s", plan->ring_bytes,
			  strerror(-err));
		return err;
	}
	b->backlog = backlog_open(&b->ring, plan->stack ? BACKLOG_EARLY : BACKLOG_LATE,
				  backlog_bytes(plan));
	if (!b->backlog) {
		msg_error("not enough memory for the queue of records");
		return -ENOMEM;
	}
	return 0;
}

/* ---- the ring ---- */

static int one_record(void *ctx, const void *data, size_t size)
{
	struct bpf_source *b = ctx;
	const struct ct_hdr *h = data;
	int err;

	b->received++;
	if (record_check(data, size)) {
		b->malformed++;
		return 0;
	}
	b->safe_ns = h->end_ns;
	b->calls += h->kind == CT_CALL || h->kind == CT_ENTER;
	if (b->pythons && (h->kind == CT_EXEC || h->kind == CT_EXIT))
		pythons_gone(b->pythons, h->pid);
	if (b->pythons && (h->kind == CT_EXEC || h->kind == CT_PROCESS) && !b->stopped)
		pythons_look(b->pythons, ((const struct ct_process *)data)->ns_pid, h->pid);
	if (h->kind == CT_EXIT && b->call_counts) {
		bpf_muted_ended(b, h->pid, h->end_ns);
		call_counts_ended(b->call_counts, h->pid, h->end_ns);
	}
	if (h->kind == CT_EXIT && b->plan->apart && host_initial_pid_ns())
		bpf_probe_gone(b, (pid_t)h->pid);
	if (h->kind == CT_FORK && b->plan->follow && (!b->launch || b->loose) && !b->stopped)
		discover_add_pid(b->discover, ((const struct ct_fork *)data)->child_ns_pid);
	else if (h->kind == CT_CALL)
		bpf_muted_call(b, data);
	err = b->emit(b->emit_ctx, h);
	return err ? err : source_paused(b->whole ? b->full : b->paused);
}

static long read_records(struct bpf_source *b)
{
	return backlog_read(b->backlog, DRAIN_MAX, one_record, b);
}

/* Hands out the records of ct_inflight. */
static int emit_inflight(const void *records, size_t len, emit_fn emit, void *ctx)
{
	const char *at = records, *end = at + len;
	int err = 0;

	while (!err && end - at >= (ssize_t)sizeof(struct ct_hdr)) {
		const struct ct_hdr *h = (const void *)at;

		if (record_check(h, end - at))
			break;
		at += h->size;
		err = emit(ctx, h);
	}
	return err;
}

/* All processes that were to be traced have ended. The kernel side keeps the set. */
static bool targets_ended(struct bpf_source *b)
{
	__u32 next;

	if (b->launch && (!b->launch_ended || !b->loose))
		return b->launch_ended;
	if (!b->launch && !b->plan->npids)
		return false;
	return bpf_map_get_next_key(bpf_map__fd(b->skel->maps.pids), NULL, &next) != 0;
}

/* States how many functions have no probes because of the kind of probes, when that has changed. */
static int state_left_out(struct bpf_source *b, emit_fn emit, void *ctx)
{
	struct ct_hole hole = hole_of(0, CT_HOLE_CALLS, CT_HOLE_REFUSED, CT_HOLE_KIND);

	hole.count = attach_left_out(b->attach);
	if (hole.count == b->left_out)
		return 0;
	b->left_out = hole.count;
	return emit(ctx, &hole.h);
}

/* States each function once whose calls are not seen, or not under its name, whatever the probes. */
static int state_silent(struct bpf_source *b, enum ct_hole_reason reason, emit_fn emit, void *ctx)
{
	bool indirect = reason == CT_HOLE_INDIRECT;
	enum attach_unseen why = indirect ? ATTACH_INDIRECT : ATTACH_SHARED_CODE;
	const char *name;
	int err = 0;

	while (!err && (name = attach_unseen_next(b->attach, why, b->silent[indirect]))) {
		struct hole_text t = { .hole = hole_of(0, CT_HOLE_CALLS, CT_HOLE_REFUSED, reason) };

		t.hole.count = 1;
		hole_say(&t, name);
		err = emit(ctx, &t.hole.h);
	}
	return err;
}

/* States each file once whose runtime has no symbols, and whose functions were not found. */
static int state_stripped(struct bpf_source *b, emit_fn emit, void *ctx)
{
	int err = 0;

	while (!err && b->stated_stripped < b->stripped.n) {
		struct hole_text t = { .hole = hole_of(0, CT_HOLE_CALLS, CT_HOLE_REFUSED,
						       CT_HOLE_STRIPPED) };

		t.hole.count = 1;
		hole_say(&t, strings_get(&b->stripped, b->stated_stripped++));
		err = emit(ctx, &t.hole.h);
	}
	return err;
}

static int state_unseen(struct bpf_source *b, emit_fn emit, void *ctx)
{
	int err;

	if (b->stopped) /* what is closed says nothing more */
		return 0;
	err = state_left_out(b, emit, ctx);
	if (!err)
		err = state_silent(b, CT_HOLE_INDIRECT, emit, ctx);
	if (!err)
		err = state_silent(b, CT_HOLE_SHARED_CODE, emit, ctx);
	if (!err)
		err = state_stripped(b, emit, ctx);
	return err;
}

int bpf_drain(struct bpf_source *b, emit_fn emit, void *ctx)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	unsigned long mark = backlog_mark(b->backlog); /* after `now` */
	bool ended;
	long n;

	b->emit = emit;
	b->emit_ctx = ctx;
	if (!b->stopped) {
		uint64_t asked = bpf_loader_asked(b);

		if (b->launch && !b->launch_ended)
			b->launch_ended = launch_poll(b->launch) == 1;
		discover_drain(b->discover);
		bpf_probe_want_sessions(b);
		bpf_loader_answer(b, asked);
	}
	if (b->emit_err) {
		int err = b->emit_err;

		b->emit_err = 0;
		return err;
	}
	if (source_paused(b->full))
		return 0;
	/* Asked before reading: what the last process sent is then in the ring already. */
	ended = targets_ended(b);
	n = read_records(b);
	if (n < 0)
		return n;
	b->complete_ns = backlog_complete(b->backlog, mark, now, b->safe_ns, b->complete_ns);
	if (source_paused(b->paused))
		return 0;
	if (b->inflight_len && n < DRAIN_MAX) {
		int err = emit_inflight(b->inflight, b->inflight_len, emit, ctx);

		b->inflight_len = 0;
		if (err)
			return err;
	}
	if (!b->stopped || n < DRAIN_MAX) {
		int err = bpf_unprobed_emit(b, emit, ctx);

		if (err)
			return err;
	}
	/* behind the records that it belongs to */
	if (!b->stopped || n < DRAIN_MAX) {
		int err = state_unseen(b, emit, ctx);

		if (!err)
			err = bpf_muted_step(b, emit, ctx);

		if (err)
			return err;
	}
	return ended && n < DRAIN_MAX;
}

void bpf_drain_held(struct bpf_source *b)
{
	long n;

	/* a program is not stopped for as long as the reader of the output likes */
	if (!b->emit || source_paused(b->full))
		return;
	b->whole = true;
	do
		n = read_records(b);
	while (n == DRAIN_MAX);
	b->whole = false;
	if (n < 0 && !b->emit_err)
		b->emit_err = n;
}

void bpf_drain_mapped(void *ctx, pid_t pid)
{
	struct bpf_source *b = ctx;
	struct ct_hdr map = { .size = sizeof(map), .kind = CT_MAP };
	uint32_t initial;

	/* for stacks, now: a launched process is stopped meanwhile */
	if (!b->plan->stack || b->stopped)
		return;
	initial = bpf_maps_initial_pid(b->skel, pid);
	if (b->pythons && initial)
		pythons_look(b->pythons, pid, initial);
	if (!b->emit || !initial)
		return;
	/* What was sent before belongs to the mappings of before. */
	bpf_drain_held(b);
	map.pid = map.tid = initial;
	map.start_ns = map.end_ns = b->safe_ns;
	if (!b->emit_err)
		b->emit_err = b->emit(b->emit_ctx, &map);
}

/* ---- asked for ---- */

int bpf_drain_pending(struct bpf_source *b, uint64_t min_age_ns, emit_fn emit, void *ctx)
{
	void *records = NULL;
	ssize_t n;
	int err;

	if (b->stopped)
		return 0;
	b->skel->bss->inflight_min_ns = min_age_ns;
	n = bpf_maps_read_iter(bpf_program__fd(b->skel->progs.ct_inflight), &records);
	if (n < 0)
		return n;
	err = emit_inflight(records, n, emit, ctx);
	free(records);
	return err;
}

/* How many threads are inside of a call that began shortly before the stop; *waiting: those of
 * them that wait for a CPU. */
static int count_returning(struct bpf_source *b, int *waiting)
{
	void *rows = NULL;
	const __u32 *waits;
	ssize_t n;

	n = bpf_maps_read_iter(bpf_program__fd(b->skel->progs.ct_returning), &rows) /
	    (ssize_t)sizeof(*waits);
	waits = rows;
	*waiting = 0;
	for (ssize_t i = 0; i < n; i++)
		*waiting += waits[i] != 0;
	free(rows);
	return n > 0 ? (int)n : 0;
}

/* Waits for the calls that are about to return: for all a short time, for those whose thread has
 * no CPU a longer one. A call that had lasted for long when tracing stopped may last for long
 * yet. */
static void let_return(struct bpf_source *b)
{
	unsigned wait_us = GRACE_FIRST_US, waited_us = 0;
	int waiting;

	b->skel->bss->closing_ns = GRACE_AGE_NS;
	while (count_returning(b, &waiting) && waited_us < (waiting ? GRACE_BUSY_US : GRACE_US)) {
		usleep(wait_us);
		waited_us += wait_us;
		wait_us = wait_us < GRACE_LAST_US ? wait_us * 2 : wait_us;
	}
}

void bpf_drain_last(struct bpf_source *b)
{
	bool running = b->skel->bss->phase == CT_PHASE_RUNNING;
	ssize_t n;

	if (running) {
		b->skel->bss->stopped_ns = b->stopped_ns = clock_ns(CLOCK_MONOTONIC);
		__atomic_store_n(&b->skel->bss->phase, CT_PHASE_CLOSING, __ATOMIC_SEQ_CST);
		let_return(b);
	}
	__atomic_store_n(&b->skel->bss->phase, CT_PHASE_CLOSED, __ATOMIC_SEQ_CST);
	if (!running)
		return;
	b->skel->bss->inflight_min_ns = 0;
	n = bpf_maps_read_iter(bpf_program__fd(b->skel->progs.ct_inflight), &b->inflight);
	b->inflight_len = n > 0 ? n : 0;
}

static ssize_t all_tasks(void *ctx, void **tasks)
{
	struct bpf_source *b = ctx;

	return bpf_maps_read_iter(bpf_program__fd(b->skel->progs.ct_tasks), tasks);
}

uint64_t bpf_drain_until(const struct bpf_source *b)
{
	return b->stopped_ns ? b->stopped_ns : clock_ns(CLOCK_MONOTONIC);
}

int bpf_drain_call_counts(struct bpf_source *b, emit_fn emit, void *ctx)
{
	struct losses l = { 0 };

	if (!b->call_counts || !b->plan->count)
		return 0;
	/* an end that found no room in the ring, or sums that found none in the map */
	bpf_maps_counters(bpf_map__fd(b->skel->maps.counters), &l);
	if (l.unreported + l.lost[CT_LOSS_COUNTS] != b->swept)
		call_counts_sweep(b->call_counts, all_tasks, b);
	b->swept = l.unreported + l.lost[CT_LOSS_COUNTS];
	return call_counts_read(b->call_counts, bpf_drain_until(b), emit, ctx);
}

void bpf_drain_losses(struct bpf_source *b, struct losses *l)
{
	struct probe_file **files;
	int n = b->discover ? discover_files(b->discover, &files) : 0;

	l->code = b->loaded ? LOSSES_CODE_LOADED : LOSSES_CODE_NONE;
	for (int i = 0; i < n; i++) {
		l->files += files[i]->attached > 0;
		/* one that is installed is there before anybody loads it */
		if (files[i]->attached > 0 && files[i]->seen.pid)
			l->code = LOSSES_CODE_LOADED;
	}
	l->refused += b->discover ? discover_refused(b->discover) : 0;
	bpf_maps_counters(bpf_map__fd(b->skel->maps.counters), l);
	l->lost[CT_LOSS_READ] += b->malformed;
	l->received = b->received;
	/* Whatever reached the ring was read. */
	l->sent = b->calls;
	l->calls = b->calls + l->lost[CT_LOSS_RING];
	l->pair_ns = b->pair_ns;
	bpf_muted_cost(b, &l->probes);
}

void bpf_drain_close(struct bpf_source *b)
{
	backlog_close(b->backlog);
	ring_close(&b->ring);
	call_counts_close(b->call_counts);
	free(b->inflight);
}
