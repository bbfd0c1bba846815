/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * states.c - the source of host states: why threads are off the CPU, and where they are while they are on it.
 * It takes what bpf/host.bpf.c sends and makes CT_HOST_SEGMENT records of it, each behind the CT_PY_STACK or
 * CT_USER_STACK from which the resolve stage gets its stack.
 *
 * The kernel side watches the threads. This file does what only user space can do: it finds Python in each
 * process that has a watched thread, and gives each watched thread a clock by which it is sampled.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "../../proc/python_gil.h"
#include "../../util/msg.h"
#include "../../util/now.h"
#include "../../util/table/chains.h"
#include "../bpf/bpf_maps.h"
#include "../bpf/ring.h"
#include "../host.h"
#include "../python_seek.h"
#include "../source.h"
#include "host.skel.h"
#include "states_record.h"

#define STATES_HZ 199		/* samples a second of a thread that is on the CPU */
#define CLOCKS_MAX 4096		/* threads that are sampled at a time */
#define OWNERS_MAX 1024		/* processes in which Python is looked for */
#define BYTES (1 << 16)		/* of records that are taken at once */
#define FORGET_NS 1000000000ULL /* between two looks at which of them have ended */
#define TRIES 9
#define TRY_NS 20000000ULL /* until the second look; each one waits for twice as long */
/* What a thread may take to hand over a record that it has begun. */
#define UNDER_WAY_NS 1000000ULL

struct thread {
	struct chain_link link; /* hash: the thread's number */
	int fd;			/* of its clock; -1: none */
};

struct owner {
	struct chain_link link; /* hash: the process's number */
	bool told;		/* its CT_PROCESS was handed out */
	uint32_t tgid, ns_tgid;
	unsigned int tries; /* TRIES: Python is found, or there is none */
	uint64_t next_ns;
};

struct states {
	struct host_bpf *skel;
	struct ring ring;
	struct python_seek *seek;
	struct chains threads, owners;
	unsigned int nclocks;
	uint64_t unsampled; /* threads without a clock */
	bool left_out;	    /* a process found no place as an owner */
	uint64_t forgot_ns; /* when owners were last forgotten */
	uint64_t look_ns;   /* when an owner is to be looked at next; UINT64_MAX: none is */
	uint64_t start_ns, complete_ns, lost, malformed, received;
	void *last; /* where threads were at the end */
	size_t last_len, last_at;
	bool stopped, full_drain;
	const struct capture_plan *plan;
	const bool *paused;
	size_t len, at; /* of what was taken */
	char bytes[BYTES] __attribute__((aligned(8)));
};

/* ---- clocks ---- */

static int open_clock(uint32_t ns_tid, int prog_fd)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
					.size = sizeof(attr),
					.config = PERF_COUNT_SW_CPU_CLOCK,
					.freq = 1,
					.sample_freq = STATES_HZ };
	int fd = (int)syscall(SYS_perf_event_open, &attr, (pid_t)ns_tid, -1, -1,
			      PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return -1;
	if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, prog_fd) || ioctl(fd, PERF_EVENT_IOC_ENABLE, 0)) {
		close(fd);
		return -1;
	}
	return fd;
}

static void end_thread(struct states *s, struct thread *t)
{
	if (!t)
		return;
	if (t->fd >= 0) {
		close(t->fd);
		s->nclocks--;
	}
	chains_remove(&s->threads, &t->link);
	free(t);
}

static void see_thread(struct states *s, uint32_t tid, uint32_t ns_tid)
{
	struct thread *t;

	if (chains_find(&s->threads, tid) || s->threads.n >= 4 * CLOCKS_MAX)
		return;
	t = calloc(1, sizeof(*t));
	if (!t || chains_add(&s->threads, &t->link, tid)) {
		free(t);
		return;
	}
	errno = EMFILE;
	t->fd = s->nclocks < CLOCKS_MAX && ns_tid
			? open_clock(ns_tid, bpf_program__fd(s->skel->progs.ct_host_sample))
			: -1;
	s->nclocks += t->fd >= 0;
	s->unsampled += t->fd < 0 && errno != ESRCH; /* ended */
}

/* ---- Python ---- */

/* Returns true when the process need not be looked at again. */
static bool look(struct states *s, struct owner *o)
{
	struct ct_host_python p = { .gil_from = 0 };
	struct target *t;
	int err = python_seek_look(s->seek, (pid_t)o->ns_tgid, &p.py);

	if (err <= 0)
		return err < 0;
	err = target_open(&t, (pid_t)o->ns_tgid, 0);
	if (err)
		return true;
	err = python_gil(t, &p);
	target_close(t);
	if (err == -EAGAIN)
		return false;
	s->skel->bss->host_have_pythons = 1;
	return !bpf_map_update_elem(bpf_map__fd(s->skel->maps.host_pythons), &o->tgid, &p, BPF_ANY);
}

static void look_again(struct states *s, uint64_t now)
{
	if (now < s->look_ns)
		return;
	s->look_ns = UINT64_MAX;
	chains_each(&s->owners, link)
	{
		struct owner *o = (struct owner *)link;

		if (o->tries < TRIES && o->next_ns <= now) {
			o->next_ns = now + (TRY_NS << o->tries);
			o->tries = look(s, o) ? TRIES : o->tries + 1;
		}
		if (o->tries < TRIES && o->next_ns < s->look_ns)
			s->look_ns = o->next_ns;
	}
}

/* Makes room for others: processes that have ended. */
static void forget_ended(struct states *s)
{
	uint64_t now = now_ns();

	if (now - s->forgot_ns < FORGET_NS)
		return;
	s->forgot_ns = now;
	chains_each(&s->owners, link)
	{
		if (!kill((pid_t)((struct owner *)link)->ns_tgid, 0) || errno != ESRCH)
			continue;
		chains_remove(&s->owners, link);
		free(link);
	}
}

static void see_process(struct states *s, const struct ct_host_raw *r)
{
	struct owner *o = (struct owner *)chains_find(&s->owners, r->tgid);

	if (o && r->what != CT_HOST_RAW_EXEC)
		return;
	if (!o) {
		if (!r->ns_tgid || r->what == CT_HOST_RAW_EXIT)
			return;
		if (s->owners.n >= OWNERS_MAX)
			forget_ended(s);
		if (s->owners.n >= OWNERS_MAX) {
			s->left_out = true;
			return;
		}
		o = calloc(1, sizeof(*o));
		if (!o || chains_add(&s->owners, &o->link, r->tgid)) {
			free(o);
			return;
		}
	}
	o->tgid = r->tgid;
	o->ns_tgid = r->ns_tgid;
	o->tries = 0;
	o->next_ns = s->look_ns = 0;
}

/* ---- records ---- */

/* The processes that were named say themselves what they are, at their first call. */
static bool is_named(const struct states *s, uint32_t ns_tgid)
{
	if (s->plan->program > 0 && (uint32_t)s->plan->program == ns_tgid)
		return true;
	for (int i = 0; i < s->plan->npids; i++)
		if ((uint32_t)s->plan->pids[i] == ns_tgid)
			return true;
	return false;
}

/* What another process is, that somebody waited for: its stacks are resolved by this. */
static int tell_process(struct states *s, const struct ct_host_raw *r, emit_fn emit, void *ctx)
{
	struct owner *o = (struct owner *)chains_find(&s->owners, r->tgid);
	struct ct_process p = { .h = { .size = sizeof(p),
				       .kind = CT_PROCESS,
				       .pid = r->tgid,
				       .tid = r->tgid,
				       .start_ns = r->off_ns,
				       .end_ns = r->off_ns },
				.start_boottime_ns = r->begun_ns,
				.ns_pid = r->ns_tgid };
	char status[4096];
	const char *line;

	if (!o || o->told || is_named(s, r->ns_tgid))
		return 0;
	o->told = true;
	if (host_status((pid_t)r->ns_tgid, status, sizeof(status)))
		return 0;
	line = host_status_line(status, "Uid");
	p.uid = line ? (uint32_t)strtoul(line, NULL, 10) : 0;
	line = host_status_line(status, "Gid");
	p.gid = line ? (uint32_t)strtoul(line, NULL, 10) : 0;
	line = host_status_line(status, "PPid");
	p.ppid = line ? (uint32_t)strtoul(line, NULL, 10) : 0;
	line = host_status_line(status, "Name");
	snprintf(p.comm, sizeof(p.comm), "%.*s", line ? (int)strcspn(line, "\n") : 0,
		 line ? line : "");
	return emit(ctx, &p.h);
}

static int hole(struct states *s, enum ct_hole_reason reason, enum ct_hole_state state,
		uint64_t count, emit_fn emit, void *ctx)
{
	struct ct_hole h = { .h = { .size = sizeof(h),
				    .kind = CT_HOLE,
				    .start_ns = s->start_ns,
				    .end_ns = s->start_ns },
			     .until_ns = CT_HOLE_OPEN,
			     .count = count,
			     .layer = CT_HOLE_HOST,
			     .state = (uint8_t)state,
			     .reason = (uint8_t)reason };

	return emit(ctx, &h.h);
}

/* What the kernel side had no room for. */
static int tell_lost(struct states *s, emit_fn emit, void *ctx)
{
	uint64_t lost = s->skel->bss->host_lost + s->skel->bss->host_unwatched + s->malformed;

	if (lost == s->lost)
		return 0;
	s->lost = lost;
	return hole(s, CT_HOLE_RECORDS, CT_HOLE_LOST, lost, emit, ctx);
}

static int one(struct states *s, const void *bytes, size_t size, emit_fn emit, void *ctx)
{
	const struct ct_host_raw *r = bytes;
	int err;

	if (size < offsetof(struct ct_host_raw, frames)) {
		s->malformed++;
		return 0;
	}
	s->received++;
	see_process(s, r);
	if (r->what == CT_HOST_RAW_EXIT)
		end_thread(s, (struct thread *)chains_find(&s->threads, r->tid));
	else if (!s->stopped)
		see_thread(s, r->tid, r->ns_tid);
	err = tell_process(s, r, emit, ctx);
	if (err)
		return err;
	err = states_emit(r, size, emit, ctx);
	s->malformed += err == -EBADMSG;
	return err == -EBADMSG ? 0 : err;
}

/* Hands out what was taken. Returns 0, or emit's. */
static int hand_out(struct states *s, emit_fn emit, void *ctx)
{
	while (s->at < s->len && !source_paused(s->paused)) {
		const char *at = s->bytes + s->at;
		uint64_t size;
		int err;

		memcpy(&size, at, sizeof(size));
		s->at += RING_TAKEN(size);
		err = one(s, at + sizeof(size), size, emit, ctx);
		if (err)
			return err;
	}
	return 0;
}

static int states_drain(struct source *src, emit_fn emit, void *ctx)
{
	struct states *s = src->priv;
	uint64_t now = now_ns();
	int err = 0;

	if (!s->stopped)
		look_again(s, now);
	while (!err && !source_paused(s->paused)) {
		if (s->at == s->len) {
			s->at = 0;
			s->len = ring_take(&s->ring, s->bytes, sizeof(s->bytes));
		}
		if (!s->len)
			break;
		err = hand_out(s, emit, ctx);
	}
	while (!err && s->stopped && !s->len && s->last_at < s->last_len &&
	       !source_paused(s->paused)) {
		err = one(s, (char *)s->last + s->last_at, sizeof(struct ct_host_raw), emit, ctx);
		s->last_at += sizeof(struct ct_host_raw);
	}
	if (!err)
		err = tell_lost(s, emit, ctx);
	if (!s->len && s->last_at == s->last_len)
		s->complete_ns = now - UNDER_WAY_NS;
	return err ? err : s->stopped && !s->len && s->last_at == s->last_len ? 1 : 0;
}

static uint64_t states_complete(struct source *src)
{
	return ((struct states *)src->priv)->complete_ns;
}

/* ---- life ---- */

static int want(struct states *s, pid_t pid)
{
	uint32_t key = (uint32_t)pid;
	uint8_t value = 1;

	return bpf_map_update_elem(bpf_map__fd(s->skel->maps.host_wanted), &key, &value, BPF_ANY)
		       ? -errno
		       : 0;
}

/* 16 KiB; with larger pages one page. */
static uint64_t stack_bytes(void)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	return page > 16384 ? page : 16384;
}

/* Does task storage have memory of its own, so that it may be made under the lock of a run queue (Linux 6.4)? */
static bool storage_is_safe(void)
{
	struct btf *btf = btf__load_vmlinux_btf();
	int id = btf ? btf__find_by_name_kind(btf, "bpf_local_storage_map", BTF_KIND_STRUCT) : -1;
	const struct btf_type *type = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;
	bool safe = false;

	for (uint16_t i = 0; type && i < btf_vlen(type); i++) {
		const char *name = btf__name_by_offset(btf, btf_members(type)[i].name_off);

		safe = safe || (name && !strcmp(name, "selem_ma"));
	}
	btf__free(btf);
	return safe;
}

static int load(struct states *s)
{
	bool by_tid = !storage_is_safe();
	struct stat st;
	int err;

	s->skel = host_bpf__open();
	if (!s->skel)
		return -errno;
	s->skel->rodata->ns_inum = stat("/proc/self/ns/pid", &st) ? 0 : (uint32_t)st.st_ino;
	s->skel->rodata->nr_futex = SYS_futex;
	s->skel->rodata->stack_bytes = stack_bytes();
	s->skel->rodata->our_pid = (uint32_t)getpid();
	s->skel->rodata->by_tid = by_tid;
	if (!by_tid) /* it takes its memory at once */
		bpf_map__set_max_entries(s->skel->maps.host_table, 1);
	states_fd_calls((uint64_t *)s->skel->rodata->fd_calls);
	bpf_program__set_autoattach(s->skel->progs.ct_host_sample, false);
	bpf_program__set_autoattach(s->skel->progs.ct_host_begin, false);
	bpf_program__set_autoattach(s->skel->progs.ct_host_end, false);
	err = host_bpf__load(s->skel);
	return err ? err
		   : ring_open(&s->ring, bpf_map__fd(s->skel->maps.host_ring),
			       bpf_map__max_entries(s->skel->maps.host_ring));
}

static int states_open(struct source *src, const struct capture_plan *plan)
{
	struct states *s = calloc(1, sizeof(*s));
	char kernel[128];
	int err;

	src->priv = s;
	if (!s) {
		msg_error("no memory");
		return -ENOMEM;
	}
	s->paused = src->paused;
	s->plan = plan;
	s->look_ns = UINT64_MAX;
	s->seek = python_seek_open();
	err = s->seek ? load(s) : -ENOMEM;
	for (int i = 0; !err && i < plan->npids; i++)
		err = want(s, bpf_maps_tgid(plan->pids[i]) > 0 ? bpf_maps_tgid(plan->pids[i])
							       : plan->pids[i]);
	if (!err && plan->program > 0)
		err = want(s, plan->program);
	if (err)
		msg_error("what threads wait for cannot be seen on Linux %s (%s): it needs Linux "
			  "5.18 with BTF, and root",
			  host_kernel(kernel, sizeof(kernel)), strerror(-err));
	return err;
}

static int states_start(struct source *src)
{
	struct states *s = src->priv;
	void *rows = NULL;
	ssize_t n;
	int err = host_bpf__attach(s->skel);

	if (err) {
		msg_error("what threads wait for cannot be seen: %s", strerror(-err));
		return err;
	}
	s->start_ns = s->complete_ns = now_ns();
	n = bpf_maps_read_iter(bpf_program__fd(s->skel->progs.ct_host_begin), &rows);
	for (size_t at = 0; n > 0 && at + sizeof(struct ct_host_raw) <= (size_t)n;
	     at += sizeof(struct ct_host_raw)) {
		const struct ct_host_raw *r = (const void *)((char *)rows + at);

		see_process(s, r);
		see_thread(s, r->tid, r->ns_tid);
	}
	free(rows);
	if (n < 0) {
		msg_error("what threads wait for cannot be seen: %s", strerror((int)-n));
		return (int)n;
	}
	look_again(s, now_ns());
	return 0;
}

static int states_fds(struct source *src, int *fd, int max)
{
	(void)src, (void)fd, (void)max;
	return 0; /* nobody is woken: the loop's timer comes often enough */
}

static void states_stop(struct source *src)
{
	struct states *s = src->priv;
	ssize_t n;

	if (s->stopped)
		return;
	n = bpf_maps_read_iter(bpf_program__fd(s->skel->progs.ct_host_end), &s->last);
	s->last_len = n > 0 ? (size_t)n / sizeof(struct ct_host_raw) * sizeof(struct ct_host_raw)
			    : 0;
	chains_each(&s->threads, link) end_thread(s, (struct thread *)link);
	host_bpf__detach(s->skel);
	if (s->unsampled)
		msg_warn(s->unsampled == 1
				 ? "at least %llu thread was not sampled: which code of it ran is "
				   "not known"
				 : "at least %llu threads were not sampled: which code of theirs "
				   "ran is not known",
			 (unsigned long long)s->unsampled);
	if (s->left_out)
		msg_warn("%d processes at a time are looked at: stacks of others are not known",
			 OWNERS_MAX);
	s->stopped = true;
}

static void states_losses(struct source *src, struct losses *l)
{
	l->sent += ((struct states *)src->priv)->received;
}

static void states_close(struct source *src)
{
	struct states *s = src->priv;

	if (!s)
		return;
	chains_each(&s->threads, link) end_thread(s, (struct thread *)link);
	chains_close(&s->threads);
	chains_each(&s->owners, link)
	{
		chains_remove(&s->owners, link);
		free(link);
	}
	chains_close(&s->owners);
	if (s->skel) {
		ring_close(&s->ring);
		host_bpf__destroy(s->skel);
	}
	python_seek_close(s->seek);
	free(s->last);
	free(s);
	src->priv = NULL;
}

const struct source_ops source_states = {
	.name = "states",
	.open = states_open,
	.start = states_start,
	.fds = states_fds,
	.drain = states_drain,
	.complete = states_complete,
	.stop = states_stop,
	.losses = states_losses,
	.close = states_close,
};
