/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * reads.h - carries out the reads of a function's capture spec. Compiled twice: for the kernel side,
 * and for the hooks inside a process, so that both make the same record of a call.
 *
 * Who includes it defines before: struct frame (data, len, cut_at, cut_len, cut_read, rec.got),
 * specs[], BOUND(), __always_inline, __noinline, and how memory is read:
 *
 *	READS_BYTES(f, r, to, n, from)	0: n bytes have been copied
 *	READS_STRING(to, n, from)	the bytes of a string with its NUL, at most n; not more than 0:
 *					it cannot be read. The last of n bytes is always a NUL.
 *	READS_OWN(to, n, from)		copies from the frame itself
 *	READS_FAILED(func, i, from)	the memory of read i is not there
 *	READS_SPEC			how an element of specs[] is qualified
 */
#ifndef CT_READS_H
#define CT_READS_H

/* A word that a read refers to: an argument, what the call returned, or a field of an earlier read. start[] holds where
 * each read's bytes begin in data[], ~0 when it failed. */
static __always_inline bool read_source(struct frame *f, const __u16 *start, __u8 from, __u16 off,
					__u64 *val)
{
	__u32 at;

	if (from & CT_FROM_READ) {
		at = start[from & 7];
		if (at == 0xffff)
			return false;
		at += off;
	} else if (from == CT_FROM_RETURN) {
		*val = (__u64)f->rec.ret;
		return true;
	} else {
		at = (from & 31) * 8;
	}
	if (at > CT_DATA_MAX)
		return false;
	READS_OWN(val, 8, (void *)f->data + at);
	return true;
}

/* Carries out the reads of one side of a call as its spec says, appending to the frame. Not
 * static: verified once for all callers. */
__noinline int do_reads(struct frame *f, __u32 func, __u32 when)
{
	__u16 start[8] = { 0xffff, 0xffff, 0xffff, 0xffff, 0xffff, 0xffff, 0xffff, 0xffff };
	READS_SPEC struct ct_spec *spec;
	__u32 i, len, off, nreads, bytes;
	__u64 ptr, count;
	long n;

	if (!f)
		return 0;
	BOUND(func, CT_MAX_FUNCS - 1);
	spec = &specs[func];
	nreads = spec->nreads;
	for (i = 0; i < CT_MAX_READS; i++) {
		READS_SPEC struct ct_read *r = &spec->reads[i];

		if (i >= nreads)
			break;
		if (r->when != when)
			continue;
		off = f->len;
		len = r->len;
		if (len > CT_READ_MAX || off > CT_DATA_MAX - 8)
			break;
		if (!read_source(f, start, r->from, r->off, &ptr) || !ptr)
			continue;
		if (r->kind == CT_READ_BYTES) {
			if (!len || off + len > CT_DATA_MAX)
				break;
			if (READS_BYTES(f, r, (void *)f->data + off, len, ptr)) {
				READS_FAILED(func, i, ptr);
				continue;
			}
			start[i & 7] = off;
			f->len = off + ((len + 7) & ~7U);
		} else if (r->kind == CT_READ_STR) {
			if (!len || off + 8 + len > CT_DATA_MAX)
				break;
			n = READS_STRING((void *)f->data + off + 8, len, ptr);
			if (n <= 0 || n > CT_READ_MAX) {
				READS_FAILED(func, i, ptr);
				continue;
			}
			count = n;
			if (n == len) {
				count |= CT_STR_CUT;
				f->cut_at = ptr + n - 1;
				f->cut_len = n - 1;
				f->cut_read = i;
			}
			*(__u64 *)((void *)f->data + (off & ~7U)) = count;
			f->len = off + 8 + ((n + 7) & ~7U);
		} else {
			if (!read_source(f, start, r->count_from, r->count_off, &count))
				continue;
			count = (__u32)count;
			bytes = len;
			if (count * r->elem < len)
				bytes = count * r->elem;
			if (off + 8 + len > CT_DATA_MAX || bytes > CT_READ_MAX)
				break;
			if (!bytes)
				continue;
			if (READS_BYTES(f, r, (void *)f->data + off + 8, bytes, ptr)) {
				READS_FAILED(func, i, ptr);
				continue;
			}
			count = count * r->elem > bytes ? bytes | CT_STR_CUT : bytes;
			*(__u64 *)((void *)f->data + (off & ~7U)) = count;
			f->len = off + 8 + ((bytes + 7) & ~7U);
		}
		f->rec.got |= 1U << i;
	}
	return 0;
}

#endif
