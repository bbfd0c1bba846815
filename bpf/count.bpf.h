/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * count.bpf.h - calls that are counted and not sent: nothing crosses to user space until it asks. One hash for all CPUs,
 * with atomic adds: a map per CPU would not fit a machine of 128. An entry is made at the first call of its kind.
 */
#ifndef CT_COUNT_BPF_H
#define CT_COUNT_BPF_H

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct ct_tally_key);
	__type(value, struct ct_sums);
} tallies SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct ct_tally_key);
	__type(value, struct ct_hist);
} hists SEC(".maps");

const struct ct_hist no_durations;

volatile __u32 count_by_now; /* enum ct_by; with CT_BY_ASKED */

static __always_inline __u64 word_at(const struct frame *f, __u8 word)
{
	return word < CT_MAX_WORDS ? f->data[word & (CT_MAX_WORDS - 1)] : 0;
}

static __always_inline __u8 sub_of(const struct frame *f, const volatile struct ct_spec *spec)
{
	__u8 sub = 0;

	if (spec->kind_word < CT_MAX_WORDS)
		sub = word_at(f, spec->kind_word) & CT_SUB_KIND;
	/* 0, 1 and 2 are the default streams */
	if (spec->stream_word < CT_MAX_WORDS && word_at(f, spec->stream_word) > 2)
		sub |= CT_SUB_STREAM;
	return sub;
}

static __always_inline __u8 how_now(void)
{
	return config.count_by == CT_BY_ASKED ? (__u8)count_by_now : config.count_by;
}

static __always_inline __u64 by_of(const struct thread *t, const struct frame *f, const volatile struct ct_spec *spec, __u8 how)
{
	switch (how) {
	case CT_BY_THREAD:
		return (__u32)t->id;
	case CT_BY_KERNEL:
		return word_at(f, spec->func_word);
	case CT_BY_STREAM:
		return word_at(f, spec->stream_word);
	case CT_BY_CGROUP:
		return bpf_get_current_cgroup_id();
	}
	return 0;
}

/* Threads of a launch: what its two sizes multiply to. */
static __always_inline __u64 threads_of(const struct frame *f, const volatile struct ct_spec *spec)
{
	__u32 at = spec->grid_word;

	if (at > CT_MAX_WORDS - 6)
		return 0;
	if (spec->grid_how == CT_GRID_DIM3)
		return (__u64)(__u32)word_at(f, at) * (word_at(f, at) >> 32) * (__u32)word_at(f, at + 1) *
		       (__u32)word_at(f, at + 2) * (word_at(f, at + 2) >> 32) * (__u32)word_at(f, at + 3);
	return (__u64)(__u32)word_at(f, at) * (__u32)word_at(f, at + 1) * (__u32)word_at(f, at + 2) *
	       (__u32)word_at(f, at + 3) * (__u32)word_at(f, at + 4) * (__u32)word_at(f, at + 5);
}

static __always_inline void add_time(struct ct_sums *n, __u64 ns)
{
	__u64 square = ns * ns, before, seen;

	if (ns >> 32)
		square = ~0ULL; /* over 4 s: that square alone would overflow */
	__sync_fetch_and_add(&n->timed, 1);
	__sync_fetch_and_add(&n->ns, ns);
	before = __sync_fetch_and_add(&n->squares[0], square);
	if (before + square < before)
		__sync_fetch_and_add(&n->squares[1], 1);
	/* kept as its complement, so that an entry may begin as zeros */
	seen = n->min_ns;
	if (~ns > seen)
		__sync_val_compare_and_swap(&n->min_ns, seen, ~ns);
	seen = n->max_ns;
	if (ns > seen)
		__sync_val_compare_and_swap(&n->max_ns, seen, ns);
}

static __noinline int count_duration(const struct ct_tally_key *key, __u64 ns)
{
	struct ct_hist *h;
	__u32 b;

	if (!key)
		return 0;
	h = bpf_map_lookup_elem(&hists, key);
	if (!h) {
		bpf_map_update_elem(&hists, key, &no_durations, BPF_NOEXIST);
		h = bpf_map_lookup_elem(&hists, key);
	}
	if (!h)
		return 0; /* the sums are there, and say how many calls have no place in the histogram */
	b = ct_hist_bucket(ns);
	if (b < CT_HIST_BUCKETS)
		__sync_fetch_and_add(&h->n[b], 1);
	return 0;
}

/* The call in the frame is over, or, `timed` false, all that will be known of it is. */
static __always_inline void count_call(struct thread *t, struct frame *f, __u32 func, bool failed, bool timed)
{
	const volatile struct ct_spec *spec = &specs[func & (CT_MAX_FUNCS - 1)];
	__u8 how = how_now();
	struct ct_tally_key key = {
		.tgid = t->id >> 32,
		.start = t->start,
		.func = func,
		.sub = sub_of(f, spec),
		.how = how,
		.by = by_of(t, f, spec, how),
	};
	struct ct_sums *n = bpf_map_lookup_elem(&tallies, &key);

	if (!n) {
		struct ct_sums none = {};

		bpf_map_update_elem(&tallies, &key, &none, BPF_NOEXIST);
		n = bpf_map_lookup_elem(&tallies, &key);
	}
	if (!n) {
		COUNT(lost[CT_LOSS_TALLY]);
		return;
	}
	__sync_fetch_and_add(&n->calls, 1);
	if (failed)
		__sync_fetch_and_add(&n->failed, 1);
	if (timed)
		add_time(n, f->rec.h.end_ns - f->rec.h.start_ns);
	if (spec->flags & CT_S_MATCH_SIZE && !failed)
		__sync_fetch_and_add(&n->bytes, word_at(f, spec->size_word));
	if (spec->grid_how) {
		__sync_fetch_and_add(&n->threads, threads_of(f, spec));
		__sync_fetch_and_add(&n->shared, word_at(f, spec->shared_word));
	}
	if (timed && config.hist)
		count_duration(&key, f->rec.h.end_ns - f->rec.h.start_ns);
}

#endif
