/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bpf_launch.c - inside the bpf source: a program that is started here is stopped where it, or a
 * child, maps something, until that has its probes. Knows processes, no record.
 */
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "../../proc/elf_read.h"
#include "../../util/msg.h"
#include "../../util/now.h"
#include "bpf_inside.h"
#include "bpf_maps.h"
#include "../host.h"
#include "../probe/priv.h"
#include "cudatrace.skel.h" /* behind control.h, whose structs it holds */

#define PTRACE_LOOK_NS 50000000ULL /* how long a program's symbols are searched */

_Static_assert((int)CT_HALT_MAPPED >= (int)LAUNCH_ASKED, "no other number is asked for");

static void on_stop(void *ctx, pid_t pid, pid_t tid, int why)
{
	struct bpf_source *b = ctx;

	(void)tid;
	if (b->stopped)
		return;
	/* Something that a call was given is not in memory: its file is opened while the program
	 * cannot end or unmap it. */
	if (why == CT_HALT_READ) {
		bpf_drain_held(b);
		return;
	}
	if (why == LAUNCH_EXEC)
		bpf_loader_watch(b, pid);
	discover_scan_pid(b->discover, pid);
	bpf_drain_mapped(b, pid);
}

/* The last three: the leak checker of a sanitizer stops the threads of its process by ptrace. */
static const char *const ptrace_names[] = { "ptrace", "__asan_init", "__hwasan_init", "__lsan_",
					    NULL };

static int note_ptrace(void *ctx, const struct elf_sym *s)
{
	for (int i = 0; ptrace_names[i]; i++)
		*(bool *)ctx |= !strncmp(s->name, ptrace_names[i], strlen(ptrace_names[i])) &&
				(i || !strcmp(s->name, "ptrace"));
	return 0;
}

/* A debugger, a program with a sandbox, a crash handler or a leak checker: a process has one tracer. Of a
 * static program the function itself is there. */
static bool uses_ptrace(pid_t pid)
{
	struct elf_file elf = { 0 };
	struct statfs fs;
	bool uses = false;
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return false;
	if (!fstatfs(fd, &fs) && fs.f_type != FUSE_SUPER_MAGIC && !elf_file_open(&elf, fd)) {
		elf.until_ns = now_ns() + PTRACE_LOOK_NS;
		elf_symbols(&elf, elf_has_section(&elf, SHT_DYNSYM) ? SHT_DYNSYM : SHT_SYMTAB,
			    ptrace_names, note_ptrace, &uses);
	}
	elf_file_close(&elf);
	close(fd);
	return uses;
}

static bool leaves(void *ctx, pid_t pid)
{
	struct bpf_source *b = ctx;
	struct host_task t = { .comm = "?" };

	if (!uses_ptrace(pid))
		return false;
	if (!b->loose) {
		host_task(pid, &t);
		msg_note("process %d (%s) uses ptrace itself: it and what it starts are traced as "
			 "with -p",
			 pid, t.comm);
	}
	b->loose = true;
	return true;
}

static void on_fork(void *ctx, pid_t parent, pid_t child)
{
	struct bpf_source *b = ctx;

	(void)parent;
	if (!b->stopped)
		discover_add_pid(b->discover, child);
}

/* ---- questions of threads, on the tracer ---- */

/* A thread that asks polls in the kernel, and a kernel without preemption does not take its processor
 * from it: when it makes room it must be the tracer's turn, before its own. */
static int ask_fd(void *ctx)
{
	priv_first();
	return ((struct bpf_source *)ctx)->halts.map_fd;
}

static bool next_ask(void *ctx, struct launch_ask *ask)
{
	struct bpf_source *b = ctx;
	char record[RING_TAKEN(sizeof(struct ct_halt))];
	struct ct_halt halt;

	while (ring_take(&b->halts, record, sizeof(record)) == sizeof(record)) {
		memcpy(&halt, record + sizeof(uint64_t), sizeof(halt));
		__atomic_add_fetch(&b->skel->bss->halts_taken, 1, __ATOMIC_RELEASE);
		/* One that has given up runs again, and a stop could interrupt a system call. */
		if (!halt.ns_tid || now_ns() - halt.at_ns > CT_HALT_NS)
			continue;
		ask->tid = (pid_t)halt.ns_tid;
		ask->why = (int)halt.why;
		ask->number = halt.number;
		return true;
	}
	return false;
}

static void interrupted(void *ctx, const struct launch_ask *ask)
{
	struct bpf_source *b = ctx;

	__atomic_store_n(&b->skel->bss->halted[ask->number % CT_HALTS], ask->number,
			 __ATOMIC_RELEASE);
}

/* Not before the fork: a child that has the perf events of a trial open would keep its probes on
 * while they are removed (links_tracefs.c). */
static int on_forked(void *ctx)
{
	struct bpf_source *b = ctx;
	int err = bpf_load_all(b);

	if (err)
		return err;
	err = ring_open(&b->halts, bpf_map__fd(b->skel->maps.halts),
			bpf_map__max_entries(b->skel->maps.halts));
	if (err)
		msg_error("the questions of threads cannot be read: %s", strerror(-err));
	return err;
}

/* It has gone on until now, as one that did not wait: what it has mapped may have had no probes. */
static void bpf_launch_let_go(void *ctx, pid_t pid)
{
	struct bpf_source *b = ctx;
	__u32 tgid = bpf_maps_initial_pid(b->skel, pid);
	int map = bpf_map__fd(b->skel->maps.loads);
	struct ct_load load = { 0 };
	struct host_task t;

	/* what has ended by now cannot be looked at */
	if (!tgid || host_task(pid, &t)) {
		bpf_unprobed_somebody(b, now_ns());
		return;
	}
	bpf_map_lookup_elem(map, &tgid, &load);
	load.passed_ns = now_ns();
	bpf_map_update_elem(map, &tgid, &load, BPF_ANY);
}

static const struct launch_ops launch_ops = {
	.on_forked = on_forked,
	.on_stop = on_stop,
	.leaves = leaves,
	.on_fork = on_fork,
	.ask_fd = ask_fd,
	.next_ask = next_ask,
	.interrupted = interrupted,
	.let_go = bpf_launch_let_go,
};

int bpf_launch_open(struct bpf_source *b)
{
	const struct capture_plan *plan = b->plan;

	int err = launch_open(&b->launch, plan->cmd, plan->user, plan->env, plan->follow,
			      &launch_ops, b);

	priv_first_set();
	return err;
}

int bpf_launch_trace(struct bpf_source *b)
{
	int err = bpf_maps_add_pid(b->skel, launch_pid(b->launch), false);

	b->skel->bss->tracer_tgid = bpf_maps_initial_pid(b->skel, launch_tracer(b->launch));
	if (!err)
		err = discover_add_pid(b->discover, launch_pid(b->launch));
	if (err < 0) {
		msg_error("the started program cannot be traced: %s", strerror(-err));
		return err;
	}
	return 0;
}

void bpf_launch_close(struct bpf_source *b)
{
	/* The loaders first: nobody is stopped then when the tracer lets the processes go. */
	bpf_loader_close(b);
	if (b->launch)
		launch_close(b->launch);
	b->launch = NULL;
	ring_close(&b->halts);
}
