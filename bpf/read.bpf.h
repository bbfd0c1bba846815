/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * read.bpf.h - reads the target's memory as a function's capture spec says, without faulting.
 * What is not resident is described by a CT_ABSENT record.
 */
#ifndef CT_READ_BPF_H
#define CT_READ_BPF_H

#define VM_SHARED 0x8
#define S_IFMT 0170000
#define S_IFREG 0100000
#define ABSENT_TRIES 4
#define EBUSY 16
#define I_CTIME_QUERIED \
	(1U             \
	 << 31) /* from <linux/fs.h> of Linux 6.13 and later: these bits do not belong to the time */

/* Files of which something was absent in a process. User space is told of a file's first absence at
 * once, and a program that it has started waits until user space has the file open, because the
 * program may end or unmap the file next. */
struct absent_file {
	__u32 tgid, pad;
	__u64 dev, ino;
};
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct absent_file);
	__type(value, __u32);
} absent_files SEC(".maps");

static __always_inline void inode_ctime(struct inode *inode, struct ct_absent *a)
{
	struct inode___6_6 *newer = (void *)inode;
	struct inode___old *old = (void *)inode;

	if (bpf_core_field_exists(inode->i_ctime_sec)) {
		a->ctime_sec = BPF_CORE_READ(inode, i_ctime_sec);
		a->ctime_nsec = BPF_CORE_READ(inode, i_ctime_nsec) & ~I_CTIME_QUERIED;
	} else if (bpf_core_field_exists(newer->__i_ctime)) {
		a->ctime_sec = BPF_CORE_READ(newer, __i_ctime.tv_sec);
		a->ctime_nsec = BPF_CORE_READ(newer, __i_ctime.tv_nsec);
	} else {
		a->ctime_sec = BPF_CORE_READ(old, i_ctime.tv_sec);
		a->ctime_nsec = BPF_CORE_READ(old, i_ctime.tv_nsec);
	}
}

static long describe_absent(struct task_struct *task, struct vm_area_struct *vma,
			    struct ct_absent *a)
{
	struct inode *inode = vma->vm_file ? BPF_CORE_READ(vma, vm_file, f_inode) : NULL;

	a->flags = CT_ABSENT_OTHER;
	/* others may write to shared memory without a change of the file's time */
	if (!inode || vma->vm_flags & VM_SHARED ||
	    (BPF_CORE_READ(inode, i_mode) & S_IFMT) != S_IFREG)
		return 0;
	if (bpf_core_field_exists(struct vm_userfaultfd_ctx, ctx) &&
	    BPF_CORE_READ(vma, vm_userfaultfd_ctx.ctx))
		return 0;
	a->flags = CT_ABSENT_FILE | (vma->anon_vma ? CT_ABSENT_WRITTEN : 0);
	a->offset = (vma->vm_pgoff << 12) + (a->address - vma->vm_start);
	a->left = vma->vm_end - a->address;
	a->dev = BPF_CORE_READ(inode, i_sb, s_dev);
	a->magic = BPF_CORE_READ(inode, i_sb, s_magic);
	a->ino = BPF_CORE_READ(inode, i_ino);
	a->size = BPF_CORE_READ(inode, i_size);
	inode_ctime(inode, a);
	return 0;
}

/* Says that a read for the next call did not find its memory. It is sent also if nothing else can
 * be read in its place, so that what was said of an earlier call is not taken for this one's. Returns
 * whether user space is told of this file for the first time. Not static, so that the verifier checks
 * it once. */
__noinline int send_absent(__u32 func, __u32 read, __u64 addr)
{
	__u64 id = bpf_get_current_pid_tgid();
	struct absent_file file = {};
	struct ct_absent a = {};
	__u32 i, one = 1;

	a.h.kind = CT_ABSENT;
	a.h.pid = id >> 32;
	a.h.tid = id;
	a.h.start_ns = a.h.end_ns = bpf_ktime_get_ns();
	a.func = func;
	a.read = read;
	a.address = addr;
	for (i = 0; i < ABSENT_TRIES; i++) {
		a.flags = 0;
		if (bpf_find_vma(bpf_get_current_task_btf(), addr, describe_absent, &a, 0) !=
		    -EBUSY)
			break;
		a.flags = CT_ABSENT_BUSY;
	}
	if (!(a.flags & CT_ABSENT_FILE)) {
		send(&a.h, sizeof(a), false, BPF_RB_NO_WAKEUP);
		return 0;
	}
	file.tgid = id >> 32;
	file.dev = a.dev;
	file.ino = a.ino;
	if (!bpf_map_update_elem(&absent_files, &file, &one, BPF_NOEXIST)) {
		send(&a.h, sizeof(a), false, BPF_RB_FORCE_WAKEUP);
		return 1;
	}
	send(&a.h, sizeof(a), false, BPF_RB_NO_WAKEUP);
	return 0;
}

/* Stops the thread until user space has looked, if it is one of a program that was started by us. */
static __always_inline void wait_to_be_read(void)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;

	if (config.stop_on_map && bpf_map_lookup_elem(&pids, &tgid))
		halt(CT_HALT_READ);
}

/* Not in send_absent(): both together would take too much of the stack (512 bytes). */
static __always_inline void absent(__u32 func, __u32 read, __u64 addr)
{
	if (send_absent(func, read, addr))
		wait_to_be_read();
}

#define READS_BYTES(f, r, to, n, from) bpf_probe_read_user(to, n, (void *)(from))
#define READS_STRING(to, n, from) bpf_probe_read_user_str(to, n, (void *)(from))
#define READS_OWN(to, n, from) bpf_probe_read_kernel(to, n, from)
#define READS_FAILED(func, i, from) absent(func, i, from)
#define READS_SPEC const volatile
#include "../capture/reads.h"

struct more {
	struct ct_more r;
	char bytes[CT_MORE_PIECE];
};

/* Sends what was cut off when a string was read: the rest of the string is at ptr, from its byte
 * number `offset` on. Not static, so that the verifier checks it once. */
__noinline int send_more(__u32 func, __u32 read, __u64 ptr, __u32 offset)
{
	__u64 id = bpf_get_current_pid_tgid();
	struct more *m;
	__u32 last, i;
	long n;

	for (i = 0; i < CT_NAME_MAX / CT_MORE_PIECE;
	     i++, offset += CT_MORE_PIECE - 1, ptr += CT_MORE_PIECE - 1) {
		m = bpf_ringbuf_reserve(&ring, sizeof(*m), 0);
		if (!m)
			return 0; /* the piece is missing: the name stays cut */
		n = bpf_probe_read_user_str(m->bytes, CT_MORE_PIECE, (void *)ptr);
		if (n <= 0) {
			bpf_ringbuf_discard(m, BPF_RB_NO_WAKEUP);
			absent(func, read, ptr);
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

/* Makes the reads at the entry or at the return of a call, and sends what was cut off a kernel's
 * name. */
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
