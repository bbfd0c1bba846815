/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * read_tensors.h - the shapes and types of the tensors among an operator's arguments, for its record.
 * Compiled twice: for the kernel side, and for the hooks inside a process. At most six arguments are
 * read, a bounded number of bytes of each. A tensor of which anything does not agree is not known.
 *
 * Who includes it has included reads.h before, and defines:
 *
 *	TENSORS_READ(to, n, from)	0: n bytes of the program's memory have been copied
 */
#ifndef CT_TENSORS_H
#define CT_TENSORS_H

#define SIZE_MAX_OF_TENSOR (1LL << 48)

/*
 * Two parts of a TensorImpl, read one after the other, because the stack of a BPF program is small
 * (Linux 6.1 allows 512 bytes for all functions that are under way). Between them are the strides
 * and the storage's offset.
 */
struct tensor_sizes {
	__u64 rank;
	__s64 sizes[CT_TENSOR_RANK_MAX]; /* if the rank is no higher */
};
#define TENSOR_BETWEEN (8 * CT_TENSOR_RANK_MAX + 8)
struct tensor_type {
	__u64 numel;
	__u8 type[2];
	__u8 more[6];
};

static __always_inline void add_word(struct frame *f, __u64 word)
{
	__u32 len = f->len;

	if (len > CT_DATA_MAX - 8)
		return;
	*(__u64 *)((void *)f->data + (len & ~7U)) = word;
	f->len = len + 8;
}

/* Adds the TensorImpl at an address; 0: there is none. Not static: verified once. */
__noinline int add_tensor(struct frame *f, __u64 at, __u32 plan)
{
	struct tensor_sizes p;
	struct tensor_type t;
	__u64 numel = 1;
	__u32 i;

	if (!f)
		return 0;
	if (!at)
		goto unknown;
	at += CT_TENSORS_RANK_WORD(plan) * 8;
	if (TENSORS_READ(&p, sizeof(p), at) ||
	    TENSORS_READ(&t, sizeof(t), at + sizeof(p) + TENSOR_BETWEEN) ||
	    p.rank > CT_TENSOR_RANK_MAX)
		goto unknown;
	for (i = 0; i < sizeof(t.more); i++)
		if (2 + i == CT_TENSORS_BYTE(plan) && t.more[i] & CT_TENSORS_BITS(plan))
			goto unknown;
	for (i = 0; i < CT_TENSOR_RANK_MAX; i++) {
		if (i >= p.rank)
			break;
		if (p.sizes[i] < 0 || p.sizes[i] > SIZE_MAX_OF_TENSOR)
			goto unknown;
		numel *= p.sizes[i];
	}
	if (numel != t.numel || t.type[1])
		goto unknown;
	add_word(f, p.rank | (__u64)t.type[0] << 8);
	for (i = 0; i < CT_TENSOR_RANK_MAX; i++)
		if (i < p.rank)
			add_word(f, p.sizes[i]);
	return 0;
unknown:
	add_word(f, CT_TENSOR_UNKNOWN);
	return 0;
}

/* Adds a list of n tensors: how many, and the first ones. */
static __always_inline void add_list(struct frame *f, __u64 at, __u64 n, __u32 plan)
{
	__u64 each = n < CT_TENSOR_EACH ? n : CT_TENSOR_EACH, tensor;

	add_word(f, CT_TENSOR_LIST | each << 8 | n << 32);
	for (__u32 i = 0; i < CT_TENSOR_EACH; i++) {
		if (i >= each)
			break;
		if (TENSORS_READ(&tensor, sizeof(tensor), at + 8 * i))
			tensor = 0;
		add_tensor(f, tensor, plan);
	}
}

/* Adds what one register has; next: the register behind it. */
static __always_inline void add_argument(struct frame *f, __u32 how, __u64 value, __u64 next,
					 __u32 plan)
{
	__u64 words[3] = { 0 };

	if (how == CT_TENSORS_LIST && plan & CT_TENSORS_BY_REFERENCE) {
		if (TENSORS_READ(words, sizeof(words), value) || (__u32)words[2]) {
			add_word(f, CT_TENSOR_UNKNOWN);
			return;
		}
		value = words[0];
		next = words[1];
	}
	if (how == CT_TENSORS_LIST)
		add_list(f, value, next, plan);
	else if (TENSORS_READ(words, how == CT_TENSORS_OPTIONAL ? 16 : 8, value))
		add_word(f, CT_TENSOR_UNKNOWN);
	else if (how == CT_TENSORS_OPTIONAL && !(words[1] & 0xff))
		add_word(f, CT_TENSOR_NONE);
	else
		add_tensor(f, words[0], plan);
}

/* Of the registers one more than there are is looked at. */
static __always_inline void add_tensors(struct frame *f, const __u64 regs[CT_TENSORS_REGS + 1],
					__u32 plan)
{
	for (int i = 0; i < CT_TENSORS_REGS; i++)
		if (CT_TENSORS_REG(plan, i))
			add_argument(f, CT_TENSORS_REG(plan, i), regs[i], regs[i + 1], plan);
}

#endif
