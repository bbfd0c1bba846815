/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bpf_load.c - inside the bpf source: the kernel side is configured by the plan and loaded:
 * constants, capture specs, which programs, how large the maps. Knows no file and no process.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "../../util/msg.h"
#include "bpf_inside.h"
#include "bpf_maps.h"
#include "cudatrace.skel.h" /* behind control.h, whose structs it holds */
#include "../cgroup.h"
#include "../host.h"
#include "../probe/priv.h"

#define DESCRIPTORS_MIN 128 /* programs, maps, links and files of a short trace take some 70 */

#define SAMPLED_ENTRIES 8192 /* functions that are counted in windows, of so many processes */
#define PROGRESS_MAX 16384   /* processes */
#define HALTS_BYTES 65536    /* a page, or some; a question takes 32 */
/* Bytes of a counted key: its sums, its places in the hash tables. All of them take at most this part of
 * the memory that we may take, and histograms that. */
#define ENTRY_COST 512
#define ENTRIES_PART 4
#define HISTS_PART 32

/* What libbpf says, and of the kernel what it passes on, line by line: a line end may be one of a
 * file's name too, and what comes behind it must not begin a line. */
static int print_libbpf(enum libbpf_print_level level, const char *fmt, va_list args)
{
	char *text, *line, *rest;

	if (msg_verbose < 2 || (level == LIBBPF_DEBUG && msg_verbose < 3) ||
	    vasprintf(&text, fmt, args) < 0)
		return 0;
	rest = text + (strncmp(text, "libbpf: ", 8) ? 0 : 8);
	while ((line = strsep(&rest, "\n")))
		if (*line)
			msg_verb("libbpf: %s", line);
	free(text);
	return 0;
}

/* Older kernels ask for more than CAP_BPF and CAP_PERFMON: says for what. False: that is not
 * what is missing. */
static bool says_missing(enum attach_kind kind, bool asked)
{
	char missing[64], kernel[128];

	if (!*priv_missing_for(kind, missing, sizeof(missing)))
		return false;
	msg_error(
		"probes of kind %s%s need %s too on Linux %s: run cudatrace as root, or give it %s",
		attach_kind_name(kind), asked ? "" : ", the best that this kernel has,", missing,
		host_kernel(kernel, sizeof(kernel)), strchr(missing, ',') ? "these" : "that");
	return true;
}

/* Which kind was refused to us, if it was for want of a capability. */
static bool says_refused(const char *want)
{
	bool perf = want && !strcmp(want, attach_kind_name(ATTACH_PERF));
	int multi = want ? 0 : attach_kind_try(attach_kind_name(ATTACH_MULTI));

	/* where the kernel has the better ones, and does not let us, something else forbids it */
	return multi != -EPERM && multi != -EACCES &&
	       says_missing(perf ? ATTACH_PERF : ATTACH_TRACEFS, want);
}

int bpf_load_kind(struct bpf_source *b)
{
	const char *want = b->plan->probe_kind;
	int kind;

	libbpf_set_strict_mode(LIBBPF_STRICT_ALL);
	libbpf_set_print(print_libbpf);
	/* A session program's return cannot be left out from the start; plain links can. */
	if (b->plan->no_return && !want)
		want = "multi";
	kind = attach_kind_try(want);
	if (kind < 0 && want && !b->plan->probe_kind)
		kind = attach_kind_try(NULL);
	if (kind == ATTACH_SESSION && b->plan->no_return) {
		msg_error("--probe-kind session has return probes: with --no-return use multi");
		return -EINVAL;
	}
	if (kind == -EMFILE)
		msg_error("probes need more open files than this shell allows: raise `ulimit -n`");
	if (kind == -EMFILE)
		return kind;
	if ((kind == -EPERM || kind == -EACCES) && says_refused(b->plan->probe_kind))
		return kind;
	if (kind < 0) {
		msg_error("this kernel offers no %s probes to us (%s): run `cudatrace doctor`",
			  want ? want : "user-space", strerror(-kind));
		return kind;
	}
	b->kind = kind;
	return 0;
}

static int set_specs(struct bpf_source *b)
{
	const struct capture_plan *plan = b->plan;
	int i, err;

	for (i = 0; i < api_nfuncs && i < CT_MAX_FUNCS; i++) {
		if (!plan_has(plan->capture, i))
			continue;
		err = api_spec(i, API_ARCH_HERE, plan_has(plan->shown, i),
			       &b->skel->rodata->specs[i]);
		if (err) {
			msg_error("the table's row for %s does not fit the capture limits",
				  api_funcs[i].name);
			return err;
		}
		if (api_funcs[i].layer && !api_layer_reports(&api_funcs[i])) {
			b->skel->rodata->config.layers = 1;
			b->skel->rodata->config.shapes = plan->shapes;
			continue;
		}
		if (plan_has(plan->awaited, i))
			b->skel->rodata->specs[i].flags |= CT_S_ALWAYS;
		/* what is only counted is not read */
		if (plan->count && !(b->skel->rodata->specs[i].flags & (CT_S_ALWAYS | CT_S_NESTED)))
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

/* May anything be so throttled that it is counted in windows? Not where the probes of a function
 * cannot be taken off by themselves. */
static bool samples(const struct bpf_source *b)
{
	const struct capture_plan *plan = b->plan;

	if (plan->max_cost_optional && b->kind != ATTACH_SESSION && b->kind != ATTACH_MULTI) {
		msg_note("the cost of the probes is not limited on this kernel: that needs probes "
			 "that can be switched on and off quickly (Linux 6.6 or later)");
		return false;
	}
	for (int i = 0; i < api_nfuncs && !plan->keep_chatty && !plan->filter.failed_only &&
			b->kind != ATTACH_PERF;
	     i++)
		if ((api_funcs[i].class == API_QUERY || plan_has(plan->on_duty, i)) &&
		    plan_has(plan->shown, i) && !plan_has(plan->named, i))
			return true;
	return false;
}

static void configure(struct bpf_source *b)
{
	struct ct_config *config = &b->skel->rodata->config;
	const struct capture_plan *plan = b->plan;

	config->filter_pids = b->npids || plan->cmd;
	config->follow = plan->follow;
	config->enter = plan->enter;
	config->nested = plan->nested;
	config->no_return = plan->no_return;
	config->stacks = plan->stack != PLAN_STACK_NONE;
	config->frame_pointers = plan->stack == PLAN_STACK_ADDRESSES;
	config->python_only = plan_python_only(plan);
	config->python = plan->stack && plan->python;
	config->filter = plan->filter;
	config->cgroup_id = plan->cgroup_id;
	config->by_address = b->kind == ATTACH_TRACEFS;
	config->count = plan->count;
	config->count_by = plan->count_by;
	config->hist = plan->count ? plan->hist : CT_HIST_NONE;
	config->sizes = plan->sizes;
	config->memory = plan->memory;
	config->entries = plan->call_counts_max ? plan->call_counts_max : CALL_COUNTS_MAX;
	config->samples = samples(b);
	/* calls that are counted in windows, and not sent, are told apart by thread where one
	 * thread is asked for */
	if (config->samples && !plan->count)
		config->count_by = plan->one_thread ? CT_BY_THREAD : CT_BY_FUNCTION;
	config->entries = plan->count ? config->entries : SAMPLED_ENTRIES;
	config->entries = cgroup_memory_fit(config->entries, ENTRY_COST, ENTRIES_PART);
	config->entries_each = plan->count ? plan->call_counts_each : 0;
	config->stop_on_map = plan->cmd != NULL;
	/* Not where the agent is brought in: its own dlopen() would wait for us, who are busy
	 * bringing it in. */
	config->hold = (b->npids || plan->cmd) && !plan->library && !plan->threads &&
		       !plan->device.kinds;
	/* a program that is started here waits for its probes */
	config->images = !plan->cmd && !plan->threads;
	config->reach = plan->threads;
	config->ns_inum = pid_ns_inum();
}

/*
 * The program is allowed to sleep, and never does: it calls no helper that may. A link of kind multi
 * runs such a program faster: a call with both probes took 1 460 ns in place of 1 520 (kernel
 * 6.18, medians of 9 interleaved rounds).
 */
static void make_sleepable(struct bpf_program *prog)
{
	bpf_program__set_flags(prog, bpf_program__flags(prog) | BPF_F_SLEEPABLE);
}

/* Which programs there are to be, and what they are to be attached as. */
static void choose_programs(struct bpf_source *b)
{
	const struct capture_plan *plan = b->plan;
	struct cudatrace_bpf *skel = b->skel;
	bool session = b->kind == ATTACH_SESSION;
	/* Plain pairs beside sessions (attach.c says for which files) in processes that are named, unless
	 * only one of them is asked for or of use. A plain return probe is in every process that has the file,
	 * and ends one that makes SIGSYS of its system calls; nobody has asked for that of all the others. Where
	 * only threads matter, what a call costs does not: the kernel takes longer to check two programs than
	 * all the rest does. */
	bool pair = !session ||
		    (!plan->probe_kind && !plan->cmd && !plan->threads && b->per_process);

	bpf_program__set_autoload(skel->progs.ct_session, session);
	bpf_program__set_autoload(skel->progs.ct_enter, pair);
	bpf_program__set_autoload(skel->progs.ct_exit, pair);
	bpf_program__set_autoload(skel->progs.ct_dl_state, plan->cmd || skel->rodata->config.hold);
	bpf_program__set_autoload(skel->progs.ct_threads, plan->threads);
	if (session)
		bpf_program__set_expected_attach_type(skel->progs.ct_session, ATTACH_TYPE_SESSION);
	if (session || b->kind == ATTACH_MULTI)
		bpf_program__set_expected_attach_type(skel->progs.ct_dl_state, ATTACH_TYPE_MULTI);
	if (!session && b->kind != ATTACH_MULTI)
		return;
	bpf_program__set_expected_attach_type(skel->progs.ct_enter, ATTACH_TYPE_MULTI);
	bpf_program__set_expected_attach_type(skel->progs.ct_exit, ATTACH_TYPE_MULTI);
	make_sleepable(skel->progs.ct_enter);
	make_sleepable(skel->progs.ct_exit);
	make_sleepable(skel->progs.ct_session);
	/* To put the first probe on after a while the kernel waits for an RCU grace period
	 * (percpu_down_write() of dup_mmap_sem), which does not end while a thread waits in a
	 * program that may not sleep. */
	make_sleepable(skel->progs.ct_dl_state);
}

/* Allocations that are remembered at a time: where there are many sums most are of functions
 * that take nothing. */
static uint32_t held_max(uint32_t entries)
{
	uint32_t some = entries / 4 > CALL_COUNTS_MAX ? entries / 4 : CALL_COUNTS_MAX;

	return entries < some ? entries : some;
}

static void size_maps(struct bpf_source *b)
{
	const struct capture_plan *plan = b->plan;
	struct cudatrace_bpf *skel = b->skel;
	uint32_t entries = skel->rodata->config.entries;

	bpf_map__set_max_entries(skel->maps.ring, plan->ring_bytes);
	bpf_map__set_max_entries(skel->maps.looks, (uint32_t)sysconf(_SC_PAGESIZE));
	bpf_map__set_max_entries(skel->maps.halts, HALTS_BYTES);
	if (skel->rodata->config.samples)
		bpf_map__set_max_entries(skel->maps.progress, PROGRESS_MAX);
	if (plan->count || skel->rodata->config.samples) {
		bpf_map__set_max_entries(skel->maps.entries, entries);
		bpf_map__set_max_entries(skel->maps.freed, entries);
		bpf_map__set_max_entries(skel->maps.call_counts, entries);
	}
	if (skel->rodata->config.entries_each)
		bpf_map__set_max_entries(skel->maps.shares, entries / 10);
	if (plan->count && plan->hist)
		bpf_map__set_max_entries(skel->maps.hists,
					 plan->hist == CT_HIST_BY_KEY
						 ? cgroup_memory_fit(CT_HISTS_MAX,
								     sizeof(struct ct_hist),
								     HISTS_PART)
						 : (uint32_t)api_nfuncs);
	if (plan->memory)
		bpf_map__set_max_entries(skel->maps.held, held_max(entries));
	if (plan->count && plan->sizes)
		bpf_map__set_max_entries(skel->maps.sizes, entries / 10);
	if (!skel->rodata->config.images)
		bpf_map__set_max_entries(skel->maps.images, 1);
	if (!skel->rodata->config.hold && !plan->cmd)
		bpf_map__set_max_entries(skel->maps.loads, 1);
	if (!skel->rodata->config.by_address) {
		bpf_map__set_max_entries(skel->maps.by_offset, 1);
		bpf_map__set_max_entries(skel->maps.by_address, 1);
	}
	if (!skel->rodata->config.python) {
		bpf_map__set_max_entries(skel->maps.pythons, 1);
		bpf_map__set_max_entries(skel->maps.py_sent, 1);
		bpf_map__set_max_entries(skel->maps.py_buffers, 1);
	}
}

static const char too_old[] =
	"this kernel, Linux %s, is too old: it has no bpf_loop(), which came with Linux 5.17; "
	"6.1 or later is needed, or --source=hooks";

/* May this process have as many open files as the programs and maps are? */
static bool has_descriptors(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= DESCRIPTORS_MIN;
}

int bpf_load(struct bpf_source *b)
{
	struct cudatrace_bpf *skel = cudatrace_bpf__open();
	char kernel[128];
	int err;

	if (!skel) {
		err = -errno;
		msg_error("the BPF object cannot be opened: %s", strerror(-err));
		return err;
	}
	b->skel = skel;
	configure(b);
	err = set_specs(b);
	if (err)
		return err;
	choose_programs(b);
	size_maps(b);
	err = cudatrace_bpf__load(skel);
	/* libbpf asks the kernel what it can do on the way, and takes a refusal for want of a
	 * descriptor as its answer */
	if (err == -EMFILE || (err && !has_descriptors()))
		msg_error("the BPF programs need more open files than this shell allows: raise "
			  "`ulimit -n`");
	else if (err && !host_has_btf())
		msg_error("this kernel has no type information (/sys/kernel/btf/vmlinux is "
			  "missing): one with CONFIG_DEBUG_INFO_BTF=y is needed");
	else if (err && !host_has_bpf_loop())
		msg_error(too_old, host_kernel(kernel, sizeof(kernel)));
	else if (err && host_is_confidential())
		msg_error("this kernel's lockdown is 'confidentiality', which keeps the kernel's "
			  "memory from BPF programs: boot with lockdown=integrity, or without it");
	else if (err && !says_missing(b->kind, b->plan->probe_kind))
		msg_error("the kernel refused the BPF programs (%s): run `cudatrace doctor` to see "
			  "what is missing, or -vv for the kernel's own messages",
			  strerror(-err));
	if (err)
		return err;
	skel->bss->tracer_tgid = bpf_maps_initial_pid(skel, getpid());
	/* Processes that begin and end. The links live as long as the skeleton. */
	err = cudatrace_bpf__attach(skel);
	if (err)
		msg_error("the kernel's process tracepoints cannot be attached (%s): run "
			  "`cudatrace doctor`",
			  strerror(-err));
	return err;
}
