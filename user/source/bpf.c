/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bpf.c - the source of calls: loads the kernel side, has files found and attached, and reads the ring buffer.
 *
 * Order of events: choose the kind of probe, load, tell the kernel whom to trace, watch processes begin and end, find
 * and attach what is mapped, and only then set `ready`, so that all functions begin to be seen at the same moment. A
 * program that is started here waits before its execve(2) until then.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "../util/msg.h"
#include "../util/types.h"
#include "cudatrace.skel.h"
#include "attach.h"
#include "host.h"
#include "backlog.h"
#include "bpf_maps.h"
#include "chatty.h"
#include "launch.h"
#include "pythons.h"
#include "links.h"
#include "ring.h"
#include "snapshot.h"
#include "source.h"
#include "tallies.h"

#define DRAIN_MAX 200000 /* records in one drain(): the loop has other things to do too */
#define BACKLOG_BYTES (512ULL << 20)
#define PID_LINKS_MAX 8
#define MUTED_MAX 256
#define LD_SO_MAX 16

struct ld_so {
	uint64_t dev, ino;
	struct link_set links;
};

struct bpf_source {
	const struct capture_plan *plan;
	struct cudatrace_bpf *skel;
	enum attach_kind kind;
	struct attach *attach;
	struct discover *discover;
	struct launch *launch;
	struct ring ring;
	struct backlog *backlog; /* with stacks; NULL: the ring is read directly */
	struct chatty *chatty;
	uint64_t pair_ns; /* what an empty pair of probes costs a call; 0: not known */
	struct tallies *tallies; /* NULL: calls are not counted in the kernel */
	struct pythons *pythons; /* NULL: no Python frames are wanted */
	pid_t *pids; /* thread groups, in our namespace */
	int npids;
	bool per_process; /* links for single processes */
	bool stopped, launch_ended, saw_exit;
	struct ld_so ld_so[LD_SO_MAX];
	int nld_so;
	uint64_t received, calls, malformed, safe_ns;
	uint64_t swept; /* losses after which the counts of ended processes were looked for */
	const char *muted[MUTED_MAX + 1];
	int nmuted;
	void *inflight; /* records of the calls that had not returned when tracing ended */
	size_t inflight_len;
	/* during drain() */
	emit_fn emit;
	void *emit_ctx;
	int emit_err; /* of a record that was made while processes were looked at */
};

static int print_libbpf(enum libbpf_print_level level, const char *fmt, va_list args)
{
	if (msg_verbose < 2 || (level == LIBBPF_DEBUG && msg_verbose < 3))
		return 0;
	return vfprintf(stderr, fmt, args);
}

/* ---- loading --------------------------------------------------------------------------------------------- */

static int set_specs(struct bpf_source *b)
{
	const struct capture_plan *plan = b->plan;
	int i, err;

	for (i = 0; i < api_nfuncs && i < CT_MAX_FUNCS; i++) {
		if (!plan_has(plan->capture, i))
			continue;
		err = api_spec(i, API_ARCH_HERE, plan_has(plan->shown, i), &b->skel->rodata->specs[i]);
		if (err) {
			msg_error("the table's row for %s does not fit the capture limits", api_funcs[i].name);
			return err;
		}
		if (plan_has(plan->awaited, i))
			b->skel->rodata->specs[i].flags |= CT_S_ALWAYS;
		/* what is only counted is not read */
		if (plan->count && !(b->skel->rodata->specs[i].flags & (CT_S_ALWAYS | CT_S_INNER)))
			b->skel->rodata->specs[i].nreads = b->skel->rodata->specs[i].nentry = 0;
		if (plan->stack && !plan->threads && plan_has(plan->shown, i))
			b->skel->rodata->specs[i].more |= CT_S_STACK;
	}
	return 0;
}

static uint32_t pid_ns_inum(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) ? 0 : st.st_ino;
}

static int load(struct bpf_source *b)
{
	const struct capture_plan *plan = b->plan;
	struct cudatrace_bpf *skel = cudatrace_bpf__open();
	struct ct_config *config;
	bool session = b->kind == ATTACH_SESSION;
	/* Plain pairs beside sessions (attach.c says for which files), unless only one of them is asked for or of use. */
	bool pair = !session || (!plan->probe_kind && !plan->cmd && !plan->cgroup_id && (b->per_process || !b->npids));
	int err;

	if (!skel) {
		err = -errno;
		msg_error("the BPF object cannot be opened: %s", strerror(-err));
		return err;
	}
	b->skel = skel;
	config = &skel->rodata->config;
	config->filter_pids = b->npids || plan->cmd;
	config->follow = plan->follow || plan->cmd;
	config->enter = plan->enter;
	config->nested = plan->nested;
	config->no_return = plan->no_return;
	config->failed_only = plan->failed_only;
	config->stacks = plan->stack != PLAN_STACK_NONE;
	config->frame_pointers = plan->stack == PLAN_STACK_ADDRESSES;
	config->python = plan->stack && plan->python;
	config->min_duration_ns = plan->min_duration_ns;
	config->min_size_bytes = plan->min_size_bytes;
	config->cgroup_id = plan->cgroup_id;
	config->by_address = b->kind == ATTACH_TRACEFS;
	config->count = plan->count;
	config->count_by = plan->count_by;
	config->hist = plan->hist;
	config->sizes = plan->sizes;
	config->sleepable = attach_sleepable(b->kind);
	config->stop_on_map = plan->cmd != NULL;
	config->ns_inum = pid_ns_inum();
	err = set_specs(b);
	if (err)
		return err;
	bpf_program__set_autoload(skel->progs.ct_session, session);
	bpf_program__set_autoload(skel->progs.ct_enter, pair);
	bpf_program__set_autoload(skel->progs.ct_exit, pair);
	bpf_program__set_autoload(skel->progs.ct_dl_state, plan->cmd != NULL);
	bpf_program__set_autoload(skel->progs.ct_threads, plan->threads);
	if (session)
		bpf_program__set_expected_attach_type(skel->progs.ct_session, ATTACH_TYPE_SESSION);
	if (session || b->kind == ATTACH_MULTI)
		bpf_program__set_expected_attach_type(skel->progs.ct_dl_state, ATTACH_TYPE_MULTI);
	if (session || b->kind == ATTACH_MULTI) {
		bpf_program__set_expected_attach_type(skel->progs.ct_enter, ATTACH_TYPE_MULTI);
		bpf_program__set_expected_attach_type(skel->progs.ct_exit, ATTACH_TYPE_MULTI);
	}
	if (!config->sleepable) {
		bpf_program__set_flags(skel->progs.ct_enter, 0);
		bpf_program__set_flags(skel->progs.ct_exit, 0);
		bpf_program__set_flags(skel->progs.ct_dl_state, 0);
	}
	bpf_map__set_max_entries(skel->maps.ring, plan->ring_bytes);
	if (plan->count)
		bpf_map__set_max_entries(skel->maps.tallies, plan->tallies_max ? plan->tallies_max : TALLIES_MAX);
	if (plan->count && plan->hist)
		bpf_map__set_max_entries(skel->maps.hists, TALLIES_HISTS);
	if (plan->count && plan->sizes)
		bpf_map__set_max_entries(skel->maps.sizes, (plan->tallies_max ? plan->tallies_max : TALLIES_MAX) / 10);
	if (!config->by_address) {
		bpf_map__set_max_entries(skel->maps.by_offset, 1);
		bpf_map__set_max_entries(skel->maps.by_address, 1);
	}
	if (!config->python) {
		bpf_map__set_max_entries(skel->maps.pythons, 1);
		bpf_map__set_max_entries(skel->maps.py_sent, 1);
		bpf_map__set_max_entries(skel->maps.py_buffers, 1);
	}
	err = cudatrace_bpf__load(skel);
	if (err == -EMFILE)
		msg_error("the BPF programs need more open files than this shell allows: raise `ulimit -n`");
	else if (err && !host_has_btf())
		msg_error("this kernel does not tell its types (/sys/kernel/btf/vmlinux is missing): one with CONFIG_DEBUG_INFO_BTF=y is needed");
	else if (err)
		msg_error("the kernel refused the BPF programs (%s): run `cudatrace doctor` to see what is missing, or -vv for the kernel's own words",
			  strerror(-err));
	if (err)
		return err;
	/* Processes that begin and end. The links live as long as the skeleton. */
	err = cudatrace_bpf__attach(skel);
	if (err)
		msg_error("the kernel's process tracepoints cannot be attached (%s): run `cudatrace doctor`", strerror(-err));
	return err;
}

/* ---- finding and attaching --------------------------------------------------------------------------------- */

static int attach_found(void *ctx, struct probe_file *f, pid_t pid)
{
	struct bpf_source *b = ctx;
	int i, err = 0;

	if (b->stopped)
		return 0;
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
	if (err)
		msg_warn("%s: cannot be probed (%s): its calls will not be seen", f->path, strerror(-err));
	else
		msg_verb("%s: %d functions probed (CUDA %d.%d%s)", f->path, f->attached, f->scan.version / 1000,
			 f->scan.version % 1000 / 10, f->scan.role == ELF_STATIC ? ", linked statically" : "");
	(void)pid;
	return 0;
}

static struct attach_progs progs_of(struct bpf_source *b)
{
	struct attach_progs p;

	/* -1 for what was not loaded. */
	p.session_fd = bpf_program__fd(b->skel->progs.ct_session);
	p.entry_fd = bpf_program__fd(b->skel->progs.ct_enter);
	p.return_fd = bpf_program__fd(b->skel->progs.ct_exit);
	return p;
}

/* The thread groups of what the user gave: a thread's id stands for its process. */
static int check_pids(struct bpf_source *b)
{
	int i, known, err;

	if (!b->plan->npids)
		return 0;
	b->pids = calloc(b->plan->npids, sizeof(*b->pids));
	if (!b->pids)
		return -ENOMEM;
	for (i = 0; i < b->plan->npids; i++) {
		pid_t tgid = bpf_maps_tgid(b->plan->pids[i]);

		if (tgid < 0) {
			err = tgid;
			msg_error("there is no process %d here: give a pid that `ps` shows in this pid namespace",
				  b->plan->pids[i]);
			return err;
		}
		/* Two threads of one process would make two links. */
		for (known = 0; known < b->npids && b->pids[known] != tgid; known++)
			;
		b->pids[known] = tgid;
		b->npids += known == b->npids;
	}
	return 0;
}

/* Links for single processes: they find a process by its main thread's memory, which is gone when that thread has ended. */
static bool want_pid_links(const struct bpf_source *b)
{
	char status[4096];

	if (!b->npids || b->npids > PID_LINKS_MAX || b->plan->follow)
		return false;
	for (int i = 0; i < b->npids; i++) {
		if (host_status(b->plan->pids[i], status, sizeof(status)) || !host_status_line(status, "VmSize"))
			return false;
	}
	return attach_pid_links_work(b->kind);
}

static int trace_pids(struct bpf_source *b)
{
	int i, err;

	for (i = 0; i < b->npids; i++) {
		err = bpf_maps_add_pid(b->skel, b->pids[i], b->plan->follow);
		if (err == -ESRCH) {
			msg_error("process %d cannot be traced: it has ended", b->pids[i]);
			return err;
		}
		if (err) {
			msg_error("process %d cannot be traced: %s", b->pids[i], strerror(-err));
			return err;
		}
	}
	return 0;
}

static int one_record(void *ctx, const void *data, size_t size);

static long read_records(struct bpf_source *b)
{
	return b->backlog ? backlog_read(b->backlog, DRAIN_MAX, one_record, b) :
			    ring_read(&b->ring, DRAIN_MAX, one_record, b);
}

/* ---- a program that is started here --------------------------------------------------------------------------- */

/* Probes _dl_debug_state of the dynamic loaders that the stopped process maps. */
static void watch_ld_so(struct bpf_source *b, pid_t pid)
{
	uint64_t dev, ino, offset;
	int i, fd;

	fd = bpf_maps_open_ld_so(pid, &dev, &ino, &offset);
	if (fd < 0)
		return;
	for (i = 0; i < b->nld_so; i++)
		if (b->ld_so[i].dev == dev && b->ld_so[i].ino == ino)
			goto out;
	if (b->nld_so < LD_SO_MAX) {
		struct ld_so *l = &b->ld_so[b->nld_so];
		int err = attach_single(b->kind, bpf_program__fd(b->skel->progs.ct_dl_state), fd, offset, &l->links);

		if (err) {
			msg_warn("the dynamic loader of process %d cannot be watched (%s): the first calls into a library loaded later may be missed",
				 pid, strerror(-err));
			goto out;
		}
		l->dev = dev;
		l->ino = ino;
		b->nld_so++;
	}
out:
	close(fd);
}

/* Its mappings are worth a look, for stacks, now: a launched process is stopped meanwhile. */
static void on_mapped(void *ctx, pid_t pid)
{
	struct bpf_source *b = ctx;
	struct ct_hdr map = { .size = sizeof(map), .kind = CT_MAP };

	uint32_t initial;
	long n;

	if (!b->plan->stack || b->stopped)
		return;
	initial = bpf_maps_initial_pid(b->skel, pid);
	if (b->pythons && initial)
		pythons_look(b->pythons, pid, initial);
	if (!b->emit || !initial)
		return;
	/* What was sent before belongs to the mappings of before. */
	do
		n = read_records(b);
	while (n == -EINTR || n == DRAIN_MAX);
	if (n < 0 && !b->emit_err)
		b->emit_err = n;
	map.pid = map.tid = initial;
	map.start_ns = map.end_ns = b->safe_ns;
	if (!b->emit_err)
		b->emit_err = b->emit(b->emit_ctx, &map);
}

static void on_stop(void *ctx, pid_t pid, pid_t tid, bool exec)
{
	struct bpf_source *b = ctx;

	(void)tid;
	if (b->stopped)
		return;
	if (exec)
		watch_ld_so(b, pid);
	discover_scan_pid(b->discover, pid);
	on_mapped(b, pid);
}

static void on_fork(void *ctx, pid_t parent, pid_t child)
{
	struct bpf_source *b = ctx;

	(void)parent;
	if (!b->stopped)
		discover_add_pid(b->discover, child);
}

static const struct launch_ops launch_ops = { .on_stop = on_stop, .on_fork = on_fork };

/* Every probed file keeps a descriptor, and every CPU takes one. */
static void raise_nofile(void)
{
	struct rlimit rl;

	if (!getrlimit(RLIMIT_NOFILE, &rl) && rl.rlim_cur < rl.rlim_max) {
		rl.rlim_cur = rl.rlim_max;
		setrlimit(RLIMIT_NOFILE, &rl);
	}
}

/* ---- the source's operations ----------------------------------------------------------------------------------- */

static int choose_kind(struct bpf_source *b)
{
	const char *want = b->plan->probe_kind;
	int kind;

	/* A session program's return cannot be left out from the start; plain links can. */
	if (b->plan->no_return && !want)
		want = "multi";
	kind = attach_probe_kind(want);
	if (kind < 0 && want && !b->plan->probe_kind)
		kind = attach_probe_kind(NULL);
	if (kind == ATTACH_SESSION && b->plan->no_return) {
		msg_error("--probe-kind session has return probes: with --no-return use multi");
		return -EINVAL;
	}
	if (kind < 0) {
		msg_error("this kernel offers no %s probes to us (%s): run `cudatrace doctor`", want ? want : "user-space",
			  strerror(-kind));
		return kind;
	}
	b->kind = kind;
	return 0;
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
	msg_verb("%d functions of %d files probed by %d %s links", functions, n, links, attach_kind_name(b->kind));
	if (!functions && b->npids)
		for (i = 0; i < b->npids; i++)
			msg_note(b->plan->threads ? "process %d has not loaded CUDA: no thread of it can be in a call" :
						    "process %d has not loaded CUDA yet: waiting for it",
				 b->pids[i]);
}

static int source_open(struct source *s, const struct capture_plan *plan)
{
	struct bpf_source *b = calloc(1, sizeof(*b));
	struct attach_progs progs;
	int err;

	if (!b)
		return -ENOMEM;
	s->priv = b;
	b->plan = plan;
	b->chatty = chatty_open(plan);
	if (!b->chatty)
		return -ENOMEM;
	libbpf_set_strict_mode(LIBBPF_STRICT_ALL);
	libbpf_set_print(print_libbpf);
	err = check_pids(b);
	if (err)
		return err;
	err = choose_kind(b);
	if (err)
		return err;
	/* Only where tracefs is used at all: its locks are the whole machine's. */
	if (b->kind == ATTACH_TRACEFS)
		attach_sweep_stale();
	b->per_process = want_pid_links(b);
	err = load(b);
	if (err)
		return err;
	if (plan->count)
		b->tallies = tallies_open(plan, bpf_map__fd(b->skel->maps.tallies), bpf_map__fd(b->skel->maps.hists),
					  bpf_map__fd(b->skel->maps.sizes));
	if (plan->count && !b->tallies)
		return -ENOMEM;
	if (plan->count)
		b->pair_ns = attach_pair_ns(b->kind, plan->no_return);
	err = ring_open(&b->ring, bpf_map__fd(b->skel->maps.ring), plan->ring_bytes);
	if (err) {
		msg_error("the ring buffer of %u bytes cannot be mapped: %s", plan->ring_bytes, strerror(-err));
		return err;
	}
	if (plan->stack) {
		b->backlog = backlog_open(&b->ring, BACKLOG_BYTES);
		if (!b->backlog) {
			msg_error("no memory for the stacks to wait in");
			return -ENOMEM;
		}
	}
	err = trace_pids(b);
	if (err)
		return err;
	progs = progs_of(b);
	err = attach_open(&b->attach, b->kind, &progs, plan);
	if (err)
		return err;
	err = discover_open(&b->discover, plan, bpf_program__fd(b->skel->progs.ct_maps), attach_found, b);
	if (err)
		return err;
	discover_on_mapped(b->discover, on_mapped);
	if (plan->cmd) {
		err = launch_open(&b->launch, plan->cmd, plan->user, plan->env, &launch_ops, b);
		if (err)
			return err;
		err = bpf_maps_add_pid(b->skel, launch_pid(b->launch), false);
		if (!err)
			err = discover_add_pid(b->discover, launch_pid(b->launch));
		if (err < 0) {
			msg_error("the started program cannot be traced: %s", strerror(-err));
			return err;
		}
	}
	/* Not before the fork: the program keeps the limits that it was given. */
	raise_nofile();
	err = discover_scan(b->discover);
	if (err < 0) {
		if (!plan->library)
			msg_error("the mapped files cannot be listed: %s", strerror(-err));
		return err;
	}
	err = look_for_pythons(b);
	if (err)
		return err;
	open_notes(b);
	return 0;
}

static int source_start(struct source *s)
{
	struct bpf_source *b = s->priv;

	b->skel->bss->ready = true;
	msg_verb("ready");
	return b->launch ? launch_start(b->launch) : 0;
}

static int source_fds(struct source *s, int *fd, int max)
{
	struct bpf_source *b = s->priv;
	int n = 0;

	if (max > 0)
		fd[n++] = b->ring.map_fd;
	return n + discover_fds(b->discover, fd + n, max - n);
}

static void mute(struct bpf_source *b, int func, uint32_t pid)
{
	struct probe_file **files;
	int i, n = discover_files(b->discover, &files), muted = 0;

	/* No call of it may be in flight when its links go: its return, and the end of its frame, would go with them. */
	b->skel->bss->muted[func] = true;
	for (i = 0; i < n; i++)
		muted += attach_mute(b->attach, files[i], func);
	if (!muted)
		return;
	if (b->nmuted < MUTED_MAX)
		b->muted[b->nmuted++] = api_funcs[func].name;
	msg_note("%s muted for %s from here on: process %u calls it %llu times a second (-e %s or --keep-chatty keeps it)",
		 api_funcs[func].name, b->per_process ? "the traced processes" : "all processes of its library", pid,
		 (unsigned long long)chatty_rate(b->chatty), api_funcs[func].name);
}

static int one_record(void *ctx, const void *data, size_t size)
{
	struct bpf_source *b = ctx;
	const struct ct_hdr *h = data;

	b->received++;
	if (record_check(data, size)) {
		b->malformed++;
		return 0;
	}
	b->safe_ns = h->end_ns;
	b->calls += h->kind == CT_CALL || h->kind == CT_ENTER;
	if (b->pythons && (h->kind == CT_EXEC || h->kind == CT_EXIT))
		pythons_gone(b->pythons, h->pid);
	if (b->pythons && (h->kind == CT_EXEC || h->kind == CT_PROCESS) && !b->stopped)
		pythons_look(b->pythons, ((const struct ct_process *)data)->ns_pid, h->pid);
	if (h->kind == CT_EXIT && b->tallies)
		tallies_ended(b->tallies, h->pid, h->end_ns);
	if (h->kind == CT_EXIT)
		b->saw_exit = true;
	else if (h->kind == CT_FORK && b->plan->follow && !b->launch && !b->stopped)
		discover_add_pid(b->discover, ((const struct ct_fork *)data)->child_ns_pid);
	else if (h->kind == CT_CALL && !b->stopped && chatty_call(b->chatty, data))
		mute(b, ((const struct ct_call *)data)->func, h->pid);
	return b->emit(b->emit_ctx, h);
}

/* Hands out the records of ct_inflight. */
static int emit_inflight(const void *records, size_t len, emit_fn emit, void *ctx)
{
	const char *at = records, *end = at + len;
	int err = 0;

	while (!err && end - at >= (ssize_t)sizeof(struct ct_hdr)) {
		const struct ct_hdr *h = (const void *)at;

		if (record_check(h, end - at))
			break;
		at += h->size;
		err = emit(ctx, h);
	}
	return err;
}

static int source_pending(struct source *s, uint64_t min_age_ns, emit_fn emit, void *ctx)
{
	struct bpf_source *b = s->priv;
	void *records = NULL;
	ssize_t n;
	int err;

	if (b->stopped)
		return 0;
	b->skel->bss->inflight_min_ns = min_age_ns;
	n = bpf_maps_read_iter(bpf_program__fd(b->skel->progs.ct_inflight), &records);
	if (n < 0)
		return n;
	err = emit_inflight(records, n, emit, ctx);
	free(records);
	return err;
}

static int source_threads(struct source *s, struct snapshot *snap)
{
	struct bpf_source *b = s->priv;
	struct snapshot_from from = {
		.threads_fd = bpf_program__fd(b->skel->progs.ct_threads),
		.maps_fd = bpf_program__fd(b->skel->progs.ct_maps),
		.pids = b->pids,
		.npids = b->npids,
	};
	struct probe_file **files;

	from.nfiles = discover_files(b->discover, &files);
	from.files = files;
	return snapshot_take(snap, &from);
}

/* All processes that were to be traced have ended. The kernel side keeps the set. */
static bool targets_ended(struct bpf_source *b)
{
	__u32 next;

	if (b->launch)
		return b->launch_ended;
	if (!b->npids)
		return false;
	return bpf_map_get_next_key(bpf_map__fd(b->skel->maps.pids), NULL, &next) != 0;
}

static int source_drain(struct source *s, emit_fn emit, void *ctx)
{
	struct bpf_source *b = s->priv;
	bool ended;
	long n;

	b->emit = emit;
	b->emit_ctx = ctx;
	if (!b->stopped) {
		if (b->launch && !b->launch_ended)
			b->launch_ended = launch_poll(b->launch) == 1;
		discover_drain(b->discover);
	}
	if (b->emit_err) {
		int err = b->emit_err;

		b->emit_err = 0;
		return err;
	}
	/* Asked before reading: what the last process sent is then in the ring already. */
	ended = targets_ended(b);
	n = read_records(b);
	if (n < 0)
		return n;
	if (b->inflight_len && n < DRAIN_MAX) {
		int err = emit_inflight(b->inflight, b->inflight_len, emit, ctx);

		b->inflight_len = 0;
		if (err)
			return err;
	}
	return ended && n < DRAIN_MAX;
}

static uint64_t source_safe(struct source *s)
{
	return ((struct bpf_source *)s->priv)->safe_ns;
}

static void source_stop(struct source *s)
{
	struct bpf_source *b = s->priv;
	ssize_t n;
	int i;

	if (!b || b->stopped)
		return;
	b->stopped = true;
	if (b->skel && b->skel->bss) {
		b->skel->bss->ready = false;
		b->skel->bss->inflight_min_ns = 0;
		n = bpf_maps_read_iter(bpf_program__fd(b->skel->progs.ct_inflight), &b->inflight);
		b->inflight_len = n > 0 ? n : 0;
	}
	/* The loaders first: nobody is stopped then when the tracer lets the processes go. */
	for (i = 0; i < b->nld_so; i++)
		attach_single_close(&b->ld_so[i].links);
	b->nld_so = 0;
	if (b->launch)
		launch_close(b->launch);
	b->launch = NULL;
	attach_close(b->attach);
	b->attach = NULL;
}

static void source_losses(struct source *s, struct losses *l)
{
	struct bpf_source *b = s->priv;

	struct probe_file **files;
	int n = b->discover ? discover_files(b->discover, &files) : 0;

	for (int i = 0; i < n; i++)
		l->files += files[i]->attached > 0;
	bpf_maps_counters(bpf_map__fd(b->skel->maps.counters), l);
	l->lost[CT_LOSS_READ] += b->malformed;
	l->received = b->received;
	/* Whatever reached the ring was read. */
	l->sent = b->calls;
	l->calls = b->calls + l->lost[CT_LOSS_RING];
	l->pair_ns = b->pair_ns;
}

static int source_status(struct source *s)
{
	struct bpf_source *b = s->priv;

	return b->launch && b->launch_ended ? launch_status(b->launch) : -1;
}

static void source_signal(struct source *s, int sig)
{
	struct bpf_source *b = s->priv;

	if (b->launch)
		launch_signal(b->launch, sig);
}

static ssize_t all_tasks(void *ctx, void **tasks)
{
	struct bpf_source *b = ctx;

	return bpf_maps_read_iter(bpf_program__fd(b->skel->progs.ct_tasks), tasks);
}

static int source_tallies(struct source *s, emit_fn emit, void *ctx)
{
	struct bpf_source *b = s->priv;
	struct losses l = { 0 };

	if (!b->tallies)
		return 0;
	/* an end that found no room in the ring, or sums that found none in the map */
	bpf_maps_counters(bpf_map__fd(b->skel->maps.counters), &l);
	if (l.untold + l.lost[CT_LOSS_TALLY] != b->swept)
		tallies_sweep(b->tallies, all_tasks, b);
	b->swept = l.untold + l.lost[CT_LOSS_TALLY];
	return tallies_read(b->tallies, emit, ctx);
}

static void source_count_by(struct source *s, uint8_t by)
{
	struct bpf_source *b = s->priv;

	b->skel->bss->count_by_now = by;
}

static void source_inner(struct source *s, bool on)
{
	((struct bpf_source *)s->priv)->skel->bss->want_inner = on;
}

static uint64_t source_forgets(struct source *s)
{
	return ((struct bpf_source *)s->priv)->skel->bss->forgets;
}

static const char *const *source_muted(struct source *s)
{
	return ((struct bpf_source *)s->priv)->muted;
}

static void source_close(struct source *s)
{
	struct bpf_source *b = s->priv;

	if (!b)
		return;
	source_stop(s);
	discover_close(b->discover);
	backlog_close(b->backlog);
	ring_close(&b->ring);
	cudatrace_bpf__destroy(b->skel);
	chatty_close(b->chatty);
	tallies_close(b->tallies);
	pythons_close(b->pythons);
	free(b->inflight);
	free(b->pids);
	free(b);
	s->priv = NULL;
}

const struct source_ops source_bpf = {
	.name = "bpf",
	.open = source_open,
	.start = source_start,
	.fds = source_fds,
	.drain = source_drain,
	.safe_until_ns = source_safe,
	.stop = source_stop,
	.losses = source_losses,
	.status = source_status,
	.signal = source_signal,
	.pending = source_pending,
	.threads = source_threads,
	.tallies = source_tallies,
	.count_by = source_count_by,
	.inner = source_inner,
	.forgets = source_forgets,
	.muted = source_muted,
	.close = source_close,
};
