/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * read.bpf.h - reads the target's memory as a function's capture spec says, without faulting first, then by
 * bpf_copy_from_user where the kernel lets uprobe programs sleep.
 */
#ifndef CT_READ_BPF_H
#define CT_READ_BPF_H

static __always_inline long read_user(void *dst, __u32 len, __u64 addr)
{
	long err = bpf_probe_read_user(dst, len, (void *)addr);

	if (err && config.sleepable)
		err = bpf_copy_from_user(dst, len, (void *)addr);
	return err;
}

static __always_inline long read_user_str(void *dst, __u32 len, __u64 addr)
{
	long n = bpf_probe_read_user_str(dst, len, (void *)addr);
	char c;

	if (n >= 0 || !config.sleepable)
		return n;
	/* Fault the string's first page in, and the next one should it reach there; then try again. */
	if (bpf_copy_from_user(&c, 1, (void *)addr))
		return n;
	n = bpf_probe_read_user_str(dst, len, (void *)addr);
	if (n >= 0)
		return n;
	if (bpf_copy_from_user(&c, 1, (void *)((addr | 4095) + 1)))
		return n;
	return bpf_probe_read_user_str(dst, len, (void *)addr);
}

/* A word that a read refers to: an argument, or a field of an earlier read. start[] holds where each read's bytes begin
 * in data[], ~0 when it failed. */
static __always_inline bool read_source(struct frame *f, const __u16 *start, __u8 from, __u16 off, __u64 *val)
{
	__u32 at;

	if (from & CT_FROM_READ) {
		at = start[from & 7];
		if (at == 0xffff)
			return false;
		at += off;
	} else {
		at = (from & (CT_MAX_WORDS - 1)) * 8;
	}
	if (at > CT_DATA_MAX)
		return false;
	bpf_probe_read_kernel(val, 8, (void *)f->data + at);
	return true;
}

/* Carries out the reads of one side of a call as its spec says, appending to the frame. Not static: verified once, whoever calls. */
__noinline int do_reads(struct frame *f, __u32 func, __u32 when)
{
	__u16 start[8] = { 0xffff, 0xffff, 0xffff, 0xffff, 0xffff, 0xffff, 0xffff, 0xffff };
	const volatile struct ct_spec *spec;
	__u32 i, len, off, nreads, bytes;
	__u64 ptr, count;
	long n;

	if (!f || func >= CT_MAX_FUNCS)
		return 0;
	spec = &specs[func];
	nreads = spec->nreads;
	for (i = 0; i < CT_MAX_READS; i++) {
		const volatile struct ct_read *r = &spec->reads[i];

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
			if (read_user((void *)f->data + off, len, ptr))
				continue;
			start[i & 7] = off;
			f->len = off + ((len + 7) & ~7U);
		} else if (r->kind == CT_READ_STR) {
			if (!len || off + 8 + len > CT_DATA_MAX)
				break;
			n = read_user_str((void *)f->data + off + 8, len, ptr);
			if (n <= 0 || n > CT_READ_MAX)
				continue;
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
			if (!bytes || read_user((void *)f->data + off + 8, bytes, ptr))
				continue;
			count = count * r->elem > bytes ? bytes | CT_STR_CUT : bytes;
			*(__u64 *)((void *)f->data + (off & ~7U)) = count;
			f->len = off + 8 + ((bytes + 7) & ~7U);
		}
		f->rec.got |= 1U << i;
	}
	return 0;
}

struct more {
	struct ct_more r;
	char bytes[CT_MORE_PIECE];
};

/*
 * Sends what a string read cut off: the string goes on at ptr, its byte number `offset`. Each piece is made resident
 * before the ring is reserved, since a reservation holds up every later record. Not static: the verifier looks at it once.
 */
__noinline int send_more(__u32 func, __u32 read, __u64 ptr, __u32 offset)
{
	__u64 id = bpf_get_current_pid_tgid();
	struct more *m;
	__u32 last, i;
	long n;
	char c;

	for (i = 0; i < CT_NAME_MAX / CT_MORE_PIECE; i++, offset += CT_MORE_PIECE - 1, ptr += CT_MORE_PIECE - 1) {
		if (config.sleepable && bpf_copy_from_user(&c, 1, (void *)ptr))
			return 0;
		/* the next page may not be there when the string ends in this one */
		if (config.sleepable && (ptr & 4095) + CT_MORE_PIECE > 4096)
			bpf_copy_from_user(&c, 1, (void *)((ptr | 4095) + 1));
		m = bpf_ringbuf_reserve(&ring, sizeof(*m), 0);
		if (!m)
			return 0; /* the piece is missing: the name stays cut */
		n = bpf_probe_read_user_str(m->bytes, CT_MORE_PIECE, (void *)ptr);
		if (n <= 0) {
			bpf_ringbuf_discard(m, BPF_RB_NO_WAKEUP);
			return 0;
		}
		last = n < CT_MORE_PIECE;
		m->r.h.size = sizeof(*m);
		m->r.h.kind = CT_MORE;
		m->r.h.flags = 0;
		m->r.h.lost = 0;
		m->r.h.pid = id >> 32;
		m->r.h.tid = id;
		m->r.h.start_ns = m->r.h.end_ns = bpf_ktime_get_ns();
		m->r.func = func;
		m->r.read = read;
		m->r.last = last;
		m->r.offset = offset;
		m->r.len = n - 1;
		m->r.pad = 0;
		bpf_ringbuf_submit(m, BPF_RB_NO_WAKEUP);
		if (last)
			return 0;
	}
	return 0;
}

/* The reads of one side of a call, and what they cut off of a kernel's name. */
static __always_inline void do_reads_whole(struct frame *f, __u32 func, __u32 when, __u8 more)
{
	if (!(more & CT_S_WHOLE_NAME)) {
		do_reads(f, func, when);
		return;
	}
	f->cut_len = 0;
	do_reads(f, func, when);
	if (f->cut_len)
		send_more(func, f->cut_read, f->cut_at, f->cut_len);
}

#endif
