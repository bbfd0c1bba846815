/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * sums.h - adds a call to the sums of its key. Compiled for the kernel side, for the hooks inside a
 * process, and for user space, so that all count in the same way.
 *
 * Who includes it defines before: __always_inline, and how a word of the sums is changed, which
 * others may do at the same moment:
 *
 *	SUMS_ADD(word, n)		adds; SUMS_ADD32: to a word of 32 bits
 *	SUMS_FETCH_ADD(word, n)		the same; its value is what the word was before
 *	SUMS_SWAP(word, was, to)	true: the word was `was`, and is now `to`
 *	SUMS_CGROUP()			the cgroup of the calling thread
 *	SUMS_SPEC			how a capture spec is qualified
 */
#ifndef CT_SUMS_H
#define CT_SUMS_H

/* What is known of a call when it is counted. */
struct call {
	const __u64 *words;
	__u32 tgid, tid;
	__u32 start; /* of the process, as in struct ct_count_key */
};

static __always_inline __u64 word_at(const struct call *c, __u8 word)
{
	return word < CT_MAX_WORDS ? c->words[word & (CT_MAX_WORDS - 1)] : 0;
}

static __always_inline __u8 sub_of(const struct call *c, SUMS_SPEC struct ct_spec *spec)
{
	__u8 sub = 0;

	if (spec->kind_word < CT_MAX_WORDS)
		sub = word_at(c, spec->kind_word) & CT_SUB_KIND;
	/* 0, 1 and 2 are the default streams */
	if (spec->stream_word < CT_MAX_WORDS && word_at(c, spec->stream_word) > 2)
		sub |= CT_SUB_STREAM;
	return sub;
}

static __always_inline __u64 by_of(const struct call *c, SUMS_SPEC struct ct_spec *spec, __u8 how)
{
	switch (how) {
	case CT_BY_THREAD: return c->tid;
	case CT_BY_KERNEL: return word_at(c, spec->func_word);
	case CT_BY_STREAM: return word_at(c, spec->stream_word);
	case CT_BY_CGROUP: return SUMS_CGROUP();
	}
	return 0;
}

static __always_inline void key_of(struct ct_count_key *key, const struct call *c, __u32 func,
				   SUMS_SPEC struct ct_spec *spec, __u8 how)
{
	__builtin_memset(key, 0, sizeof(*key));
	key->tgid = c->tgid;
	key->start = c->start;
	key->func = func;
	key->sub = sub_of(c, spec);
	key->how = how;
	key->by = by_of(c, spec, how);
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

/* CT_SIZE_MOST where the product is not less. Both numbers are at most that. In parts of 24 bits, with one branch: each
 * further one would double what the verifier of the kernel has to follow. */
static __always_inline __u64 product(__u64 a, __u64 b)
{
	__u64 high = (a >> 24) * (b >> 24);
	__u64 middle = (a >> 24) * (b & 0xffffff) + (a & 0xffffff) * (b >> 24);

	return high | middle >> 24 ? CT_SIZE_MOST : a * b;
}

/* Returns false for what cannot be, or would come near the sum's end: it is not added. */
static __always_inline bool add_size_to(__u64 *sum, __u64 size)
{
	if (size >= CT_SIZE_MOST || *(volatile __u64 *)sum >= CT_SUM_MOST)
		return false;
	SUMS_ADD(sum, size);
	return true;
}

/* The product of the three sizes of a launch's grid (which 0) or block (which 1). */
static __always_inline __u64 volume_of(const struct call *c, SUMS_SPEC struct ct_spec *spec,
				       __u32 which)
{
	__u32 at = spec->grid_word;

	if (at > CT_MAX_WORDS - 6)
		return 0;
	if (spec->grid_how == CT_GRID_DIM3) {
		at += which * 2;
		return product(product((__u32)word_at(c, at), word_at(c, at) >> 32),
			       (__u32)word_at(c, at + 1));
	}
	at += which * 3;
	return product(product((__u32)word_at(c, at), (__u32)word_at(c, at + 1)),
		       (__u32)word_at(c, at + 2));
}

/* Updates the minimum (stored as its complement, so that an entry can start with zeros) and the
 * maximum. Others may do the same at this moment. */
static __always_inline void raise(__u64 *most, __u64 v)
{
	for (int i = 0; i < 4; i++) {
		__u64 seen = *(volatile __u64 *)most;

		if (v <= seen || SUMS_SWAP(most, seen, v))
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
	SUMS_ADD(&n->ns, ns);
	before = SUMS_FETCH_ADD(&n->squares[0], low);
	high += before + low < before;
	if (high)
		SUMS_ADD(&n->squares[1], high);
	raise(&n->min_not, ~ns);
	raise(&n->max_ns, ns);
}

static __always_inline void add_size(struct ct_sizes *s, __u32 row, __u64 v)
{
	__u32 b = v > 1 ? log2_u64(v - 1) + 1 : 0;

	if (!add_size_to(&s->sum[row], v))
		return;
	b = b < CT_SIZE_BUCKETS ? b : CT_SIZE_BUCKETS - 1;
	SUMS_ADD32(&s->n[row][b], 1);
}

/* Counts the call itself, but not its duration. */
static __always_inline void add_call(struct ct_sums *n, const struct call *c,
				     SUMS_SPEC struct ct_spec *spec, bool failed)
{
	bool fits = true;

	SUMS_ADD(&n->calls, 1);
	if (failed)
		SUMS_ADD(&n->failed, 1);
	if (spec->flags & CT_S_MATCH_SIZE && !failed)
		fits = add_size_to(&n->bytes, word_at(c, spec->size_word));
	if (spec->grid_how) {
		fits = add_size_to(&n->threads,
				   product(volume_of(c, spec, 0), volume_of(c, spec, 1)));
		fits &= add_size_to(&n->shared, word_at(c, spec->shared_word));
	}
	if (!fits)
		SUMS_ADD32(&n->odd, 1);
}

#endif
