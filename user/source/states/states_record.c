/* SPDX-License-Identifier: BSD-2-Clause */
/* states_record.c - see states_record.h. */
#include <errno.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "states_record.h"

#define UNINTERRUPTIBLE 2 /* the kernel's TASK_UNINTERRUPTIBLE */

/* What a thread waits for that is blocked in a system call. */
static const struct call_row {
	int nr;
	uint8_t reason; /* CT_HOST_FILE: as its descriptor says */
} calls[] = {
	{ SYS_read, CT_HOST_FILE },
	{ SYS_write, CT_HOST_FILE },
	{ SYS_pread64, CT_HOST_FILE },
	{ SYS_pwrite64, CT_HOST_FILE },
	{ SYS_readv, CT_HOST_FILE },
	{ SYS_writev, CT_HOST_FILE },
	{ SYS_preadv, CT_HOST_FILE },
	{ SYS_pwritev, CT_HOST_FILE },
	{ SYS_preadv2, CT_HOST_FILE },
	{ SYS_pwritev2, CT_HOST_FILE },
	{ SYS_ioctl, CT_HOST_FILE },
	{ SYS_flock, CT_HOST_FILE },
	{ SYS_getdents64, CT_HOST_FILE },
	{ SYS_ftruncate, CT_HOST_FILE },
	{ SYS_fallocate, CT_HOST_FILE },
	{ SYS_readahead, CT_HOST_FILE },
	{ SYS_fadvise64, CT_HOST_FILE },
	{ SYS_fstat, CT_HOST_FILE },
	{ SYS_recvfrom, CT_HOST_FILE },
	{ SYS_recvmsg, CT_HOST_FILE },
	{ SYS_sendto, CT_HOST_FILE },
	{ SYS_sendmsg, CT_HOST_FILE },
	{ SYS_accept, CT_HOST_FILE },
	{ SYS_accept4, CT_HOST_FILE },
	{ SYS_connect, CT_HOST_FILE },
	{ SYS_splice, CT_HOST_FILE },
	{ SYS_fsync, CT_HOST_SYNC },
	{ SYS_fdatasync, CT_HOST_SYNC },
	{ SYS_sync_file_range, CT_HOST_SYNC },
	{ SYS_syncfs, CT_HOST_SYNC },
	{ SYS_futex, CT_HOST_LOCK },
	{ SYS_nanosleep, CT_HOST_SLEEP },
	{ SYS_clock_nanosleep, CT_HOST_SLEEP },
	{ SYS_wait4, CT_HOST_CHILD },
	{ SYS_waitid, CT_HOST_CHILD },
	{ SYS_ppoll, CT_HOST_POLL },
	{ SYS_pselect6, CT_HOST_POLL },
	{ SYS_epoll_pwait, CT_HOST_POLL },
#ifdef SYS_epoll_wait
	{ SYS_epoll_wait, CT_HOST_POLL },
	{ SYS_poll, CT_HOST_POLL },
	{ SYS_select, CT_HOST_POLL },
	{ SYS_getdents, CT_HOST_FILE },
#endif
};

static const struct call_row *row_of(int nr)
{
	for (unsigned int i = 0; i < ARRAY_LEN(calls); i++)
		if (calls[i].nr == nr)
			return &calls[i];
	return NULL;
}

void states_fd_calls(uint64_t words[CT_HOST_SYSCALLS / 64])
{
	memset(words, 0, CT_HOST_SYSCALLS / 8);
	for (unsigned int i = 0; i < ARRAY_LEN(calls); i++)
		if ((calls[i].reason == CT_HOST_FILE || calls[i].reason == CT_HOST_SYNC) &&
		    calls[i].nr < CT_HOST_SYSCALLS)
			words[calls[i].nr / 64] |= 1ULL << calls[i].nr % 64;
}

static uint8_t of_descriptor(uint16_t mode)
{
	return S_ISFIFO(mode)	? CT_HOST_PIPE
	       : S_ISSOCK(mode) ? CT_HOST_SOCKET
	       : S_ISCHR(mode)	? CT_HOST_DEVICE
				: CT_HOST_FILE;
}

static uint8_t reason_of(const struct ct_host_raw *r)
{
	const struct call_row *row = row_of(r->nr);

	if (r->flags & CT_HOST_F_GIL)
		return CT_HOST_GIL;
	if (r->nr < 0)
		return r->state & UNINTERRUPTIBLE ? CT_HOST_FAULT : CT_HOST_OTHER;
	if (!row)
		return CT_HOST_OTHER;
	if (row->reason != CT_HOST_FILE)
		return row->reason;
	/* an eventfd and its like is no file, whatever its mode says */
	return r->mode && r->magic != ANON_INODE_FS_MAGIC ? of_descriptor(r->mode) : CT_HOST_OTHER;
}

static void of_sample(struct ct_host_segment *s, const struct ct_host_raw *r)
{
	s->state = CT_HOST_SAMPLED;
	s->reason = r->flags & CT_HOST_F_GC	     ? CT_HOST_GC
		    : !(r->flags & CT_HOST_F_KERNEL) ? CT_HOST_USER
		    : r->nr < 0			     ? CT_HOST_FAULTING
						     : CT_HOST_SYSCALL;
}

static void of_wait(struct ct_host_segment *s, const struct ct_host_raw *r)
{
	s->state = r->flags & CT_HOST_F_THROTTLED ? CT_HOST_THROTTLED
		   : !r->state			  ? CT_HOST_READY
						  : CT_HOST_BLOCKED;
	s->wake_ns = r->wake_ns;
	s->by = r->wakes;
	s->other_pid = r->waker_tgid;
	s->other_tid = r->waker;
	memcpy(s->other, r->other, sizeof(s->other));
	if (s->state != CT_HOST_BLOCKED)
		return;
	s->reason = reason_of(r);
	s->ino = s->reason == CT_HOST_LOCK || s->reason == CT_HOST_GIL ? r->arg : r->ino;
	s->magic = r->magic;
	memcpy(s->object, r->name, sizeof(s->object));
	if (s->reason == CT_HOST_GIL && r->holder) {
		s->other_pid = r->tgid;
		s->other_tid = r->holder;
		s->other[0] = '\0';
	}
}

static int emit_stack(const struct ct_host_raw *r, const struct ct_hdr *h, emit_fn emit, void *ctx)
{
	union {
		struct ct_py_stack py;
		struct ct_user_stack native;
		char room[sizeof(struct ct_user_stack) + sizeof(r->ips) + sizeof(r->frames)];
	} s;

	memset(&s, 0, sizeof(s));
	s.py.h = *h;
	s.py.h.end_ns = h->start_ns;
	if (r->nframes) {
		s.py.h.kind = CT_PY_STACK;
		s.py.n = r->nframes;
		s.py.last = 1;
		s.py.cut = r->nframes == CT_HOST_FRAMES;
		memcpy(s.py.frames, r->frames, r->nframes * sizeof(r->frames[0]));
		s.py.h.size = (uint16_t)(sizeof(s.py) + r->nframes * sizeof(r->frames[0]));
		return emit(ctx, &s.py.h);
	}
	if (!r->nips)
		return 0;
	s.native.h.kind = CT_USER_STACK;
	s.native.how = CT_STACK_ADDRESSES;
	s.native.ip = r->ips[0];
	s.native.len = (uint32_t)(r->nips * sizeof(r->ips[0]));
	s.native.cut = r->nips == CT_HOST_IPS;
	memcpy(s.native.bytes, r->ips, s.native.len);
	s.native.h.size = (uint16_t)(sizeof(s.native) + s.native.len);
	return emit(ctx, &s.native.h);
}

int states_emit(const struct ct_host_raw *r, size_t size, emit_fn emit, void *ctx)
{
	struct ct_host_segment s = { .h = { .size = sizeof(s),
					    .kind = CT_HOST_SEGMENT,
					    .pid = r->tgid,
					    .tid = r->tid,
					    .start_ns = r->off_ns,
					    .end_ns = r->end_ns },
				     .run_ns = r->on_ns,
				     .folded = r->folded,
				     .folded_ns = r->folded_ns,
				     .syscall = r->nr };
	int err;

	if (size < offsetof(struct ct_host_raw, frames) || r->nframes > CT_HOST_FRAMES ||
	    r->nips > CT_HOST_IPS ||
	    size - offsetof(struct ct_host_raw, frames) < r->nframes * sizeof(r->frames[0]) ||
	    r->end_ns < r->off_ns)
		return -EBADMSG;
	memcpy(s.comm, r->comm, sizeof(s.comm));
	switch (r->what) {
	case CT_HOST_RAW_SAMPLE: of_sample(&s, r); break;
	case CT_HOST_RAW_OFF: of_wait(&s, r); break;
	case CT_HOST_RAW_NOW:
		if (r->off_ns < r->end_ns)
			of_wait(&s, r);
		else
			s.state = CT_HOST_RUNNING;
		break;
	case CT_HOST_RAW_EXIT: s.state = CT_HOST_RUNNING; break;
	default: return 0;
	}
	s.comm[sizeof(s.comm) - 1] = s.other[sizeof(s.other) - 1] = s.object[sizeof(s.object) - 1] =
		'\0';
	err = emit_stack(r, &s.h, emit, ctx);
	return err ? err : emit(ctx, &s.h);
}
