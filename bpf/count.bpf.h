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

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct ct_tally_key);
	__type(value, struct ct_sizes);
} sizes SEC(".maps");

/* What an entry begins as: not on the stack, of which a call's whole chain has 512 bytes. */
const struct ct_hist no_durations;
const struct ct_sums no_sums;
const struct ct_sizes no_sizes;

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

/* What a launch's grid (0) or block (1) multiplies to. */
static __always_inline __u64 volume_of(const struct frame *f, const volatile struct ct_spec *spec, __u32 which)
{
	__u32 at = spec->grid_word;

	if (at > CT_MAX_WORDS - 6)
		return 0;
	if (spec->grid_how == CT_GRID_DIM3) {
		at += which * 2;
		return (__u64)(__u32)word_at(f, at) * (word_at(f, at) >> 32) * (__u32)word_at(f, at + 1);
	}
	at += which * 3;
	return (__u64)(__u32)word_at(f, at) * (__u32)word_at(f, at + 1) * (__u32)word_at(f, at + 2);
}

/* The least (kept as its complement, so that an entry may begin as zeros) and the most: other CPUs may be at it too. */
static __always_inline void raise(__u64 *most, __u64 v)
{
	for (int i = 0; i < 4; i++) {
		__u64 seen = *(volatile __u64 *)most;

		if (v <= seen || __sync_val_compare_and_swap(most, seen, v) == seen)
			return;
	}
}

static __always_inline void add_time(struct ct_sums *n, __u64 ns)
{
	__u64 low = ns * ns, high = 0, before;

	if (ns >> 32) { /* over 4 s: the square has two words */
		__u64 upper = ns >> 32, lower = ns & 0xffffffff, cross = upper * lower;

		low = lower * lower;
		high = upper * upper + (cross >> 31);
		high += low + (cross << 33) < low;
		low += cross << 33;
	}
	__sync_fetch_and_add(&n->timed, 1);
	__sync_fetch_and_add(&n->ns, ns);
	before = __sync_fetch_and_add(&n->squares[0], low);
	high += before + low < before;
	if (high)
		__sync_fetch_and_add(&n->squares[1], high);
	raise(&n->min_ns, ~ns);
	raise(&n->max_ns, ns);
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

static __always_inline __u32 log2_u64(__u64 v)
{
	__u32 n = 0;

	if (v >> 32) {
		n += 32;
		v >>= 32;
	}
	if (v >> 16) {
		n += 16;
		v >>= 16;
	}
	if (v >> 8) {
		n += 8;
		v >>= 8;
	}
	if (v >> 4) {
		n += 4;
		v >>= 4;
	}
	if (v >> 2) {
		n += 2;
		v >>= 2;
	}
	return n + (__u32)(v >> 1);
}

static __always_inline void add_size(struct ct_sizes *s, __u32 row, __u64 v)
{
	__u32 b = v > 1 ? log2_u64(v - 1) + 1 : 0;

	__sync_fetch_and_add(&s->sum[row], v);
	b = b < CT_SIZE_BUCKETS ? b : CT_SIZE_BUCKETS - 1;
	__sync_fetch_and_add(&s->n[row][b], 1);
}

/* One value for copies, two for launches. */
static __noinline int count_sizes(const struct ct_tally_key *key, __u64 first, __u64 second)
{
	struct ct_sizes *s;

	if (!key)
		return 0;
	s = bpf_map_lookup_elem(&sizes, key);
	if (!s) {
		bpf_map_update_elem(&sizes, key, &no_sizes, BPF_NOEXIST);
		s = bpf_map_lookup_elem(&sizes, key);
	}
	if (!s) {
		COUNT(lost[CT_LOSS_TALLY]);
		return 0;
	}
	add_size(s, 0, first);
	if (key->by == CT_OF_LAUNCHES)
		add_size(s, 1, second);
	return 0;
}

/* What a launch or a copy asks for. The key becomes that of the sizes. */
static __always_inline void count_asked(struct ct_tally_key *key, const struct frame *f, const volatile struct ct_spec *spec)
{
	if (spec->grid_how) {
		key->func = 0;
		key->sub = 0;
		key->by = CT_OF_LAUNCHES;
		count_sizes(key, volume_of(f, spec, 0), volume_of(f, spec, 1));
	} else if (spec->more & CT_S_COPIES && spec->size_word < CT_MAX_WORDS) {
		key->sub &= CT_SUB_KIND;
		key->by = CT_OF_COPIES;
		count_sizes(key, word_at(f, spec->size_word), 0);
	}
}

/* The call in the frame is over, or, `timed` false, all that will be known of it is. */
static __noinline int count_call(struct thread *t, struct frame *f, __u32 func, bool failed, bool timed)
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
		bpf_map_update_elem(&tallies, &key, &no_sums, BPF_NOEXIST);
		n = bpf_map_lookup_elem(&tallies, &key);
	}
	if (!n) {
		COUNT(lost[CT_LOSS_TALLY]);
		return 0;
	}
	__sync_fetch_and_add(&n->calls, 1);
	if (failed)
		__sync_fetch_and_add(&n->failed, 1);
	if (timed)
		add_time(n, f->rec.h.end_ns - f->rec.h.start_ns);
	if (spec->flags & CT_S_MATCH_SIZE && !failed)
		__sync_fetch_and_add(&n->bytes, word_at(f, spec->size_word));
	if (spec->grid_how) {
		__sync_fetch_and_add(&n->threads, volume_of(f, spec, 0) * volume_of(f, spec, 1));
		__sync_fetch_and_add(&n->shared, word_at(f, spec->shared_word));
	}
	if (config.sizes && !failed)
		count_asked(&key, f, spec);
	if (timed && config.hist) {
		key.func = func;
		key.sub = sub_of(f, spec);
		key.by = by_of(t, f, spec, how);
		if (config.hist == CT_HIST_BY_FUNCTION) {
			key.tgid = key.start = 0;
			key.sub = 0;
			key.how = 0;
			key.by = 0;
		}
		count_duration(&key, f->rec.h.end_ns - f->rec.h.start_ns);
	}
	return 0;
}

#endif
