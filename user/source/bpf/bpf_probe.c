/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bpf_probe.c - inside the bpf source: whom the kernel side traces, and the probes on the files
 * that they map, for as long as these are wanted. Knows no record.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "../../util/msg.h"
#include "../../util/table/array.h"
#include "bpf_inside.h"
#include "bpf_maps.h"
#include "../host.h"
#include "../owners.h"
#include "../pids.h"
#include "cudatrace.skel.h" /* behind control.h, whose structs it holds */

/* Links for single processes: to take one off, the kernel visits the memory of each process that has the file, for each
 * function, so n processes take n * n visits; and a call of each goes through n links. */
#define PID_LINKS_MAX 2
#define PID_LINKS_APART 8     /* where others record the calls of further processes */
#define DESCRIPTORS_MAX 65536 /* whatever the limit of open files is */
#define DESCRIPTORS_KEPT 1024

/* ---- whom ---- */

int bpf_probe_pids(struct bpf_source *b)
{
	int i, known;

	for (i = 0; i < b->plan->npids; i++) {
		pid_t tgid = bpf_maps_tgid(b->plan->pids[i]);

		if (tgid < 0) {
			if (!b->plan->apart)
				msg_error("there is no process %d here: give a pid that `ps` shows "
					  "in this pid namespace",
					  b->plan->pids[i]);
			return tgid;
		}
		if (!array_room(b->pids, b->npids))
			return -ENOMEM;
		/* Two threads of one process would make two links. */
		for (known = 0; known < b->npids && b->pids[known] != tgid; known++)
			;
		b->pids[known] = tgid;
		b->npids += known == b->npids;
	}
	return 0;
}

/* Links for single processes: they find a process by its main thread's memory, which is gone
 * when that thread has ended. */
static bool want_pid_links(const struct bpf_source *b)
{
	char status[4096];

	if (!b->npids || b->npids > (b->plan->apart ? PID_LINKS_APART : PID_LINKS_MAX) ||
	    b->plan->follow)
		return false;
	for (int i = 0; i < b->npids; i++) {
		if (host_status(b->plan->pids[i], status, sizeof(status)) ||
		    !host_status_line(status, "VmSize"))
			return false;
	}
	return attach_kind_pid_links(b->kind);
}

void bpf_probe_links(struct bpf_source *b)
{
	b->per_process = want_pid_links(b);
}

static int add_to_kernel(struct bpf_source *b, pid_t pid)
{
	int err = bpf_maps_add_pid(b->skel, pid, b->plan->follow);

	if (!err && b->plan->apart && owners_of(b->plan->owners, pid) == OWNER_BOTH)
		err = bpf_maps_beside(b->skel, pid);
	return err;
}

static int trace_pids(struct bpf_source *b)
{
	int i, err;

	for (i = 0; i < b->npids; i++) {
		err = add_to_kernel(b, b->pids[i]);
		if (err &&
		    b->plan->apart) /* it may have ended since it was given: others say what is not seen */
			return err;
		if (err == -ESRCH) {
			msg_error("process %d has ended; see 'ps' for those that run", b->pids[i]);
			return err;
		}
		/* it is gone meanwhile, which the check says, or is there, but not for BPF programs */
		if (err == -ENOENT && !pids_check(b->pids[i], false))
			msg_error("process %d cannot be traced: the kernel, or the sandbox that "
				  "this runs in, hides it from BPF programs; "
				  "trace another one, or run cudatrace outside of the sandbox",
				  b->pids[i]);
		if (err == -ENOENT)
			return err;
		if (err) {
			msg_error("process %d cannot be traced: %s", b->pids[i], strerror(-err));
			return err;
		}
	}
	return 0;
}

/* ---- where ---- */

/* Tells the kernel side what is to be read of the arguments of the file's operators. */
static void tell_tensors(struct bpf_source *b, const struct probe_file *f)
{
	for (int i = 0; i < f->scan.nprobes && b->plan->shapes; i++) {
		const struct elf_probe *p = &f->scan.probes[i];

		if (p->tensors)
			b->skel->bss->tensors[p->symbol % CT_SYMBOLS] = p->tensors;
	}
}

static int attach_found(void *ctx, struct probe_file *f, pid_t pid)
{
	struct bpf_source *b = ctx;
	int i, err = 0;

	if (b->stopped)
		return 0;
	tell_tensors(b, f);
	if (b->kind == ATTACH_TRACEFS) {
		err = bpf_maps_add_offsets(bpf_map__fd(b->skel->maps.by_offset), f);
		b->skel->bss->address_gen++;
	}
	if (err)
		goto out;
	if (!b->per_process)
		err = attach_file(b->attach, f, 0);
	for (i = 0; b->per_process && i < b->npids && !err; i++) {
		err = attach_file(b->attach, f, b->pids[i]);
		if (err == -ESRCH)
			err = 0; /* gone meanwhile */
	}
out:
	if (err && err != -EMFILE && err != -ENFILE) /* those are said of the user, once */
		msg_warn("%s: cannot be probed (%s): its calls will not be seen", f->path,
			 strerror(-err));
	else if (!err && !b->plan->on_demand)
		msg_verb("%s: %d functions probed (%s %d.%d or later%s)", f->path, f->attached,
			 api_domains[f->scan.domain].product, f->scan.version / 1000,
			 f->scan.version % 1000 / 10,
			 f->scan.role == ELF_STATIC ? ", linked statically" : "");
	b->loaded |= !err && pid;
	/* a call of the file's functions may have begun while its probes were placed */
	b->skel->data->reach_round++;
	return err;
}

static unsigned cost_of(void *ctx, const struct probe_file *f)
{
	const struct bpf_source *b = ctx;

	return attach_cost(b->attach, f, b->per_process ? b->npids : 0) + b->per_process;
}

static unsigned closing(void *ctx)
{
	(void)ctx;
	return attach_closing();
}

static void let_go(void *ctx, struct probe_file *f, bool rewritten)
{
	struct bpf_source *b = ctx;

	attach_release(b->attach, f, rewritten);
	if (b->kind == ATTACH_TRACEFS) {
		bpf_maps_drop_offsets(bpf_map__fd(b->skel->maps.by_offset), f);
		b->skel->bss->address_gen++;
	}
}

static void silent(void *ctx, const struct elf_scan *scan)
{
	struct bpf_source *b = ctx;

	if (!b->stopped)
		attach_silent(b->attach, scan);
}

static void stripped(void *ctx, const char *path, const struct elf_scan *scan)
{
	struct bpf_source *b = ctx;

	if (!b->stopped && elf_unnamed(scan, b->plan->shown))
		strings_add(&b->stripped, path, strlen(path));
}

static const struct discover_ops discover_ops = {
	.found = attach_found,
	.silent = silent,
	.stripped = stripped,
	.cost = cost_of,
	.closing = closing,
	.gone = let_go,
	.mapped = bpf_drain_mapped,
};

int bpf_probe_open(struct bpf_source *b)
{
	/* -1 for what was not loaded. */
	const struct attach_progs progs = {
		.session_fd = bpf_program__fd(b->skel->progs.ct_session),
		.entry_fd = bpf_program__fd(b->skel->progs.ct_enter),
		.return_fd = bpf_program__fd(b->skel->progs.ct_exit),
	};
	int err = trace_pids(b);

	if (!err)
		err = attach_open(&b->attach, b->kind, &progs, b->plan);
	if (!err && !b->plan->cmd && b->per_process && bpf_maps_want_sessions(b->skel))
		attach_sessions(b->attach);
	if (!err)
		err = discover_open(&b->discover, b->plan, bpf_program__fd(b->skel->progs.ct_maps),
				    &discover_ops, b);
	/* another program may begin in a process before it maps them: bpf_probe_anew() */
	if (!err && b->per_process)
		discover_keep_open(b->discover);
	return err;
}

static unsigned open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

/* The links of files take descriptors. Some are kept for what else the trace needs: answers over
 * HTTP, agents, a file that is read. */
static unsigned descriptors_for_files(void)
{
	unsigned have = open_descriptors(), kept;
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl))
		return 0;
	if (rl.rlim_cur < rl.rlim_max) {
		rl.rlim_cur = rl.rlim_max;
		if (setrlimit(RLIMIT_NOFILE, &rl))
			getrlimit(RLIMIT_NOFILE, &rl);
	}
	if (rl.rlim_cur > DESCRIPTORS_MAX)
		rl.rlim_cur = DESCRIPTORS_MAX;
	kept = (unsigned)rl.rlim_cur / 4 < DESCRIPTORS_KEPT ? (unsigned)rl.rlim_cur / 4
							    : DESCRIPTORS_KEPT;
	return rl.rlim_cur > have + kept ? (unsigned)rl.rlim_cur - have - kept : 1;
}

/* Python among what runs already: of the processes that are named, or of all. */
static int look_for_pythons(struct bpf_source *b)
{
	const struct ct_task *tasks;
	void *rows = NULL;
	ssize_t n;

	if (!b->plan->stack || !b->plan->python)
		return 0;
	b->pythons = pythons_open(bpf_map__fd(b->skel->maps.pythons));
	if (!b->pythons)
		return -ENOMEM;
	n = bpf_maps_read_iter(bpf_program__fd(b->skel->progs.ct_tasks), &rows);
	if (n < 0)
		return n;
	tasks = rows;
	for (ssize_t i = 0; i < n / (ssize_t)sizeof(*tasks); i++) {
		__u32 unused;

		if (tasks[i].tid != tasks[i].tgid || !tasks[i].ns_tgid || tasks[i].ended)
			continue;
		if (!(b->npids || b->plan->cmd) ||
		    !bpf_map_lookup_elem(bpf_map__fd(b->skel->maps.pids), &tasks[i].tgid, &unused))
			pythons_look(b->pythons, tasks[i].ns_tgid, tasks[i].tgid);
	}
	free(rows);
	return 0;
}

static void open_notes(struct bpf_source *b)
{
	struct probe_file **files;
	int links, functions, n = discover_files(b->discover, &files), i;

	attach_totals(b->attach, &links, &functions);
	for (i = 0; b->plan->on_demand && i < n; i++)
		functions += files[i]->scan.nprobes;
	if (b->plan->on_demand)
		msg_verb("%d functions of %d files, none probed yet", functions, n);
	else
		msg_verb("%d functions of %d files probed by %d %s links", functions, n, links,
			 attach_kind_name(b->kind));
	if (!functions && b->npids && plan_any(b->plan->capture))
		for (i = 0; i < b->npids; i++)
			msg_note(b->plan->on_demand
					 ? "process %d has not loaded CUDA: no thread of it can be "
					   "in a call"
					 : "process %d has not loaded CUDA yet: waiting for it",
				 b->pids[i]);
}

int bpf_probe_scan(struct bpf_source *b)
{
	int err;

	discover_limit(b->discover, descriptors_for_files());
	err = discover_scan(b->discover);
	if (err < 0) {
		if (!b->plan->library)
			msg_error("the mapped files cannot be listed: %s", strerror(-err));
		return err;
	}
	err = look_for_pythons(b);
	if (err)
		return err;
	for (int i = 0; i < b->npids && b->skel->rodata->config.hold; i++)
		bpf_loader_watch(b, b->pids[i]);
	open_notes(b);
	return 0;
}

void bpf_probe_want_sessions(struct bpf_source *b)
{
	if (!b->skel->bss->wants_sessions || b->sessions || b->kind != ATTACH_SESSION)
		return;
	b->sessions = true;
	msg_verb("a program has %s: each call's return probe is decided at its entry from here on",
		 b->skel->bss->wants_sessions & CT_WANTS_DISPATCH
			 ? "its system calls become signals (syscall user dispatch)"
			 : "an alternate signal stack");
	attach_sessions(b->attach);
}

static int add_process(struct bpf_source *b, pid_t pid)
{
	int i = 0;

	while (i < b->npids && b->pids[i] != pid)
		i++;
	if (i == b->npids && !array_room(b->pids, b->npids))
		return -ENOMEM;
	b->pids[i] = pid;
	b->npids += i == b->npids;
	return add_to_kernel(b, pid);
}

void bpf_probe_gone(struct bpf_source *b, pid_t pid)
{
	if (b->attach)
		attach_gone(b->attach, pid);
	for (int i = 0; i < b->npids; i++)
		if (b->pids[i] == pid)
			b->pids[i--] = b->pids[--b->npids];
}

int bpf_probe_take(struct bpf_source *b, pid_t pid)
{
	struct probe_file **files;
	int n = discover_files(b->discover, &files), err = add_process(b, pid);

	/* files that it maps and that are not known yet get their probes for all processes that are traced */
	for (int i = 0; i < n && !err; i++) {
		if (probe_file_open(files[i]))
			continue; /* nobody maps it any more */
		err = attach_file(b->attach, files[i], pid);
		probe_file_shut(files[i]);
	}
	if (!err)
		err = discover_add_pid(b->discover, pid);
	if (!err && b->skel->rodata->config.hold)
		bpf_loader_watch(b, pid);
	return err < 0 ? err : 0;
}

void bpf_probe_anew(struct bpf_source *b, pid_t pid)
{
	struct probe_file **files;
	int n = discover_files(b->discover, &files), err;

	bpf_loader_watch(b, pid);
	for (int i = 0; b->per_process && i < n; i++) {
		err = attach_anew(b->attach, files[i], pid);
		if (err && err != -ESRCH)
			msg_warn("%s: cannot be probed in the program that process %d became (%s): "
				 "its calls will not be seen",
				 files[i]->path, pid, strerror(-err));
	}
}
