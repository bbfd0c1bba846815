/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * attach.c - decides what goes into a set of links (one set per file, group and process), asks links_*.c to make it, and
 * takes everything off again.
 *
 * Two groups per file: class QUERY, which can be muted, and the rest, which is never re-linked, so that a call that
 * blocks never loses its return. Closing one link waits for an RCU grace period or two; hence all are closed in parallel.
 */
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "../api/api.h"
#include "../util/msg.h"
#include "links.h"

#define CLOSE_THREADS 128
#define CLOSE_STACK (64 * 1024)
#define LINGER_US 200000 /* of replaced links, for the calls in flight */

struct file_set {
	struct link_set links;
	struct elf_probe *probes;
	int nprobes;
	pid_t pid;
	enum attach_kind kind;
	unsigned generation;
	bool query, entry_only;
};

struct attach_file {
	struct file_set *sets;
	int nsets;
};

struct attach {
	enum attach_kind kind;
	struct attach_progs progs;
	const struct capture_plan *plan;
	struct probe_file **files;
	int nfiles;
	uint64_t muted[PLAN_WORDS]; /* functions taken off again */
};

static const char *const kind_names[] = { "none", "session", "multi", "tracefs", "perf" };

const char *attach_kind_name(enum attach_kind kind)
{
	return kind < ARRAY_LEN(kind_names) ? kind_names[kind] : "?";
}

static int make_links(enum attach_kind kind, const struct attach_progs *progs, const struct link_target *t,
		      struct link_set *set, int *bad)
{
	switch (kind) {
	case ATTACH_SESSION:
		return links_session(progs, t, set, bad);
	case ATTACH_MULTI:
		return links_multi(progs, t, set, bad);
	case ATTACH_TRACEFS:
		return links_tracefs(progs, t, set, bad);
	case ATTACH_PERF:
		return links_perf(progs, t, set, bad);
	default:
		return -EINVAL;
	}
}

/* ---- which kind does this kernel have? ------------------------------------------------------------------ */

/* What the trial links sit on. Never called but by the trial itself. */
__attribute__((noinline)) static void trial_function(void)
{
	__asm__ volatile("" ::: "memory");
}

/*
 * What a pair of probes is timed on. It begins as CUDA's functions do, with an instruction that the kernel emulates: one that it has to
 * step, as a bare return, costs several times more.
 */
#ifdef __x86_64__
void attach_timed(void);
__asm__(".text\n.p2align 4\n.type attach_timed, @function\n"
	"attach_timed:\n\tpush %rbp\n\tpop %rbp\n\tret\n"
	".size attach_timed, . - attach_timed\n");
#else
__attribute__((noinline)) static void attach_timed(void)
{
	__asm__ volatile("nop" ::: "memory");
}
#endif

struct own_offset {
	uintptr_t addr;
	uint64_t offset;
};

static int find_own(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct own_offset *own = arg;
	int i;

	(void)size;
	for (i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + ph->p_vaddr;

		if (ph->p_type == PT_LOAD && own->addr >= start && own->addr < start + ph->p_filesz) {
			own->offset = own->addr - start + ph->p_offset;
			return 1;
		}
	}
	return 0;
}

static uint64_t trial_offset(void (*function)(void))
{
	struct own_offset own = { .addr = (uintptr_t)function };

	dl_iterate_phdr(find_own, &own);
	return own.offset;
}

static int trial_prog(int expected_type, bool sleepable, const struct bpf_insn *insns, int ninsns)
{
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = expected_type,
		    .prog_flags = sleepable ? BPF_F_SLEEPABLE : 0);
	int fd = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "ct_trial", "Dual BSD/GPL", insns, ninsns, &opts);

	return fd < 0 ? -errno : fd;
}

static int expected_type(enum attach_kind kind)
{
	return kind == ATTACH_SESSION ? 57 : kind == ATTACH_MULTI ? 48 : 0;
}

bool attach_sleepable(enum attach_kind kind)
{
	static const struct bpf_insn nothing[] = {
		{ .code = 0xb7 }, /* r0 = 0 */
		{ .code = 0x95 }, /* exit */
	};
	int fd = trial_prog(expected_type(kind), true, nothing, ARRAY_LEN(nothing));

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

static void set_close(struct link_set *set)
{
	while (set->nfds)
		close(set->fds[--set->nfds]);
	links_removed(set);
}

int attach_single(enum attach_kind kind, int prog_fd, int file_fd, uint64_t offset, struct link_set *set)
{
	struct elf_probe probe = { .offset = offset };
	struct link_target t = { .file_fd = file_fd, .probes = &probe, .nprobes = 1, .entry_only = true };
	struct attach_progs progs = { prog_fd, -1, -1 };
	int bad;

	return make_links(kind == ATTACH_SESSION ? ATTACH_MULTI : kind, &progs, &t, set, &bad);
}

void attach_single_close(struct link_set *set)
{
	set_close(set);
}

struct later {
	struct link_set set;
	unsigned delay_us;
};

static void *close_later(void *arg)
{
	struct later *later = arg;

	if (later->delay_us)
		usleep(later->delay_us);
	set_close(&later->set);
	free(later);
	return NULL;
}

/* Closing a link waits for the kernel's grace periods (40 ms and more): done on the side. */
static void set_close_later(const struct link_set *set, unsigned delay_us)
{
	struct later *copy = malloc(sizeof(*copy));
	struct link_set here = *set;
	pthread_t thread;

	if (copy) {
		copy->set = *set;
		copy->delay_us = delay_us;
		if (!pthread_create(&thread, NULL, close_later, copy)) {
			pthread_detach(thread);
			return;
		}
		free(copy);
	}
	set_close(&here);
}

#define PAIR_ROUNDS 9
#define PAIR_CALLS 100

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

/* The quickest of some rounds: what else ran meanwhile is in the others. */
static uint64_t time_trial(void)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < PAIR_ROUNDS; i++) {
		uint64_t begin = now_ns(), ns;

		for (int k = 0; k < PAIR_CALLS; k++)
			attach_timed();
		ns = now_ns() - begin;
		best = ns < best ? ns : best;
	}
	return best / PAIR_CALLS;
}

/* Tries the kind; with pair_ns it says what a call of a probed function costs more than one of a function that is not. */
static int try_kind(enum attach_kind kind, bool entry_only, uint64_t *pair_ns)
{
	static const struct bpf_insn nothing[] = { { .code = 0xb7 }, { .code = 0x95 } };
	struct elf_probe probe = { .offset = trial_offset(pair_ns ? attach_timed : trial_function) };
	struct link_target t = { .probes = &probe, .nprobes = 1, .entry_only = entry_only };
	struct attach_progs progs = { -1, -1, -1 };
	uint64_t bare_ns = pair_ns ? time_trial() : 0, probed_ns;
	struct link_set set;
	int err, bad;

	t.file_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	if (t.file_fd < 0)
		return -errno;
	progs.entry_fd = progs.return_fd = progs.session_fd = err =
		trial_prog(expected_type(kind), false, nothing, ARRAY_LEN(nothing));
	if (err < 0)
		goto out;
	err = make_links(kind, &progs, &t, &set, &bad);
	if (!err && pair_ns) {
		probed_ns = time_trial();
		*pair_ns = probed_ns > bare_ns ? probed_ns - bare_ns : 0;
	}
	if (!err)
		set_close_later(&set, 0);
out:
	if (progs.entry_fd >= 0)
		close(progs.entry_fd);
	close(t.file_fd);
	return err;
}

uint64_t attach_pair_ns(enum attach_kind kind, bool entry_only)
{
	uint64_t ns = 0;

	if (kind != ATTACH_SESSION && kind != ATTACH_MULTI)
		return 0;
	/* a session has no entry alone */
	return try_kind(entry_only ? ATTACH_MULTI : kind, entry_only, &ns) ? 0 : ns;
}

int attach_probe_kind(const char *want)
{
	int kind, err = -EOPNOTSUPP;

	for (kind = ATTACH_SESSION; kind <= ATTACH_PERF; kind++) {
		if (want && strcmp(want, kind_names[kind]))
			continue;
		err = try_kind(kind, false, NULL);
		if (!err)
			return kind;
		msg_verb("no %s probes here: %s", kind_names[kind], strerror(-err));
	}
	return err;
}

static void *call_trial(void *arg)
{
	(void)arg;
	trial_function();
	return NULL;
}

/*
 * Does a link for one process see all its threads? From Linux 6.6 to 6.9 its filter compared the task instead of the
 * address space and dropped every other thread (fixed by commit 46ba0e49b642). Tried with a second thread of our own and
 * a program that counts.
 */
bool attach_pid_links_work(enum attach_kind kind)
{
	struct elf_probe probe = { .offset = trial_offset(trial_function) };
	struct link_target t = { .probes = &probe, .nprobes = 1, .pid = getpid(), .entry_only = true };
	struct attach_progs progs = { -1, -1, -1 };
	struct link_set set;
	__u64 hits = 0;
	__u32 zero = 0;
	pthread_t thread;
	int map, bad;

	/* Kernels with session links are younger than the fault. */
	if (kind != ATTACH_MULTI)
		return kind == ATTACH_SESSION;
	map = bpf_map_create(BPF_MAP_TYPE_ARRAY, "ct_trial", 4, 8, 1, NULL);
	t.file_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	if (map >= 0 && t.file_fd >= 0) {
		struct bpf_insn count[] = {
			{ .code = 0x18, .dst_reg = 1, .src_reg = 2, .imm = map }, /* r1 = &map[0] */
			{ 0 },
			{ .code = 0xb7, .dst_reg = 2, .imm = 1 },
			{ .code = 0x7b, .dst_reg = 1, .src_reg = 2 }, /* *r1 = 1 */
			{ .code = 0xb7 },
			{ .code = 0x95 },
		};

		progs.entry_fd = progs.return_fd = progs.session_fd = trial_prog(expected_type(kind), false, count, ARRAY_LEN(count));
	}
	if (progs.entry_fd >= 0 && !make_links(kind, &progs, &t, &set, &bad)) {
		if (!pthread_create(&thread, NULL, call_trial, NULL))
			pthread_join(thread, NULL);
		bpf_map_lookup_elem(map, &zero, &hits);
		set_close_later(&set, 0);
	}
	if (progs.entry_fd >= 0)
		close(progs.entry_fd);
	if (t.file_fd >= 0)
		close(t.file_fd);
	if (map >= 0)
		close(map);
	return hits == 1;
}

/* ---- attaching ------------------------------------------------------------------------------------------- */

int attach_open(struct attach **out, enum attach_kind kind, const struct attach_progs *progs,
		const struct capture_plan *plan)
{
	struct attach *a = calloc(1, sizeof(*a));

	if (!a)
		return -ENOMEM;
	a->kind = kind;
	a->progs = *progs;
	a->plan = plan;
	*out = a;
	return 0;
}

static struct file_set *add_set(struct attach_file *af)
{
	struct file_set *sets = realloc(af->sets, (af->nsets + 1) * sizeof(*sets));

	if (!sets)
		return NULL;
	af->sets = sets;
	memset(&sets[af->nsets], 0, sizeof(*sets));
	return &sets[af->nsets++];
}

struct group {
	struct attach *a;
	struct attach_file *af;
	struct probe_file *f;
	pid_t pid;
	enum attach_kind kind;
	bool query, entry_only;
	int nbad;
	const char *bad_name;
	int bad_err;
};

/* Attaches probes[0..n): in one set, or, where one of them spoils it, in as few as it takes to leave that one out. */
static int attach_range(struct group *g, struct elf_probe *probes, int n)
{
	struct link_target t = { .file_fd = g->f->fd, .probes = probes, .nprobes = n, .pid = g->pid,
				 .entry_only = g->entry_only };
	struct file_set *set;
	struct link_set links;
	int err, bad;

	if (!n)
		return 0;
	err = make_links(g->kind, &g->a->progs, &t, &links, &bad);
	if (!err) {
		set = add_set(g->af);
		if (!set) {
			set_close(&links);
			return -ENOMEM;
		}
		set->links = links;
		set->pid = g->pid;
		set->query = g->query;
		set->kind = g->kind;
		set->entry_only = g->entry_only;
		set->probes = calloc(n, sizeof(*probes));
		if (!set->probes)
			return -ENOMEM;
		memcpy(set->probes, probes, n * sizeof(*probes));
		set->nprobes = n;
		g->f->attached += n;
		return 0;
	}
	/* The process is gone, or we are out of something: no probe is to blame. */
	if (err == -ESRCH || err == -ENOMEM || err == -EMFILE || err == -EPERM || err == -EACCES)
		return err;
	if (n == 1) {
		if (!g->nbad++) {
			g->bad_name = api_funcs[probes->func].name;
			g->bad_err = err;
		}
		return 0;
	}
	if (bad < 0 || bad >= n)
		bad = n / 2;
	else if (bad == 0)
		bad = 1;
	err = attach_range(g, probes, bad);
	return err ? err : attach_range(g, probes + bad, n - bad);
}

/*
 * Where session links are to be had, are they the better ones for this file? A session spares a call the return probe that
 * it does not need: a driver call inside a runtime call, and any call of a process that is not traced. For a call that does
 * need it, a plain pair is a tenth cheaper (docs/benchmarks.md).
 */
static enum attach_kind kind_for(const struct attach *a, const struct probe_file *f, pid_t pid)
{
	const struct capture_plan *plan = a->plan;
	bool others = !pid && (plan->npids || plan->cmd || plan->cgroup_id);

	if (a->kind != ATTACH_SESSION || a->progs.entry_fd < 0 || others || f->scan.role == ELF_DRIVER)
		return a->kind;
	return ATTACH_MULTI;
}

/* Must be spared a return probe. A session's entry program sees to that itself. */
static bool wants_no_return(enum attach_kind kind, const struct elf_probe *p)
{
	return kind != ATTACH_SESSION && (api_funcs[p->func].flags & (CT_S_CALLBACK | API_ENTRY_ONLY));
}

static int attach_group(struct attach *a, struct probe_file *f, pid_t pid, bool query, bool calls_back)
{
	struct group g = { .a = a, .f = f, .af = f->attach, .pid = pid, .query = query, .kind = kind_for(a, f, pid),
			   .entry_only = a->plan->no_return || calls_back };
	struct elf_probe *probes = calloc(f->scan.nprobes + 1, sizeof(*probes));
	int i, n = 0, can, err;

	if (!probes)
		return -ENOMEM;
	for (i = 0; i < f->scan.nprobes; i++) {
		const struct elf_probe *p = &f->scan.probes[i];

		if (p->query != query || wants_no_return(g.kind, p) != calls_back || plan_has(a->muted, p->func))
			continue;
		if (a->kind == ATTACH_PERF && (query || api_funcs[p->func].class == API_INTERNAL))
			continue;
		/* One bad offset fails a whole link, or never fires. */
		can = p->offset ? elf_can_probe(f->fd, p->offset) : 0;
		if (can <= 0) {
			g.bad_name = api_funcs[p->func].name;
			g.bad_err = can ? can : -EOPNOTSUPP;
			g.nbad++;
			continue;
		}
		probes[n++] = *p;
	}
	err = attach_range(&g, probes, n);
	if (!err && g.nbad)
		msg_warn("%s: %s%s cannot carry a probe (%s) and will not be seen", f->path, g.bad_name,
			 g.nbad > 1 ? " and others" : "", strerror(-g.bad_err));
	free(probes);
	return err;
}

int attach_file(struct attach *a, struct probe_file *f, pid_t pid)
{
	struct probe_file **files;
	int group, err = 0;

	if (!f->attach) {
		files = realloc(a->files, (a->nfiles + 1) * sizeof(*files));
		if (!files)
			return -ENOMEM;
		a->files = files;
		f->attach = calloc(1, sizeof(struct attach_file));
		if (!f->attach)
			return -ENOMEM;
		files[a->nfiles++] = f;
	}
	for (group = 0; group < 4 && !err; group++)
		err = attach_group(a, f, pid, group & 1, group & 2);
	if (err && f->attached <= 0)
		f->attached = err;
	return err;
}

int attach_mute(struct attach *a, struct probe_file *f, int func)
{
	struct attach_file *af = f->attach;
	int i, j, n, muted = 0, err, bad;

	plan_add(a->muted, func);
	for (i = 0; af && i < af->nsets; i++) {
		struct file_set *set = &af->sets[i];
		struct link_target t = { .file_fd = f->fd, .probes = set->probes, .pid = set->pid,
					 .entry_only = set->entry_only };
		struct link_set old = set->links;

		if (!set->query)
			continue;
		for (j = n = 0; j < set->nprobes; j++)
			if (set->probes[j].func != func)
				set->probes[n++] = set->probes[j];
		if (n == set->nprobes)
			continue;
		muted += set->nprobes - n;
		f->attached -= set->nprobes - n;
		set->nprobes = t.nprobes = n;
		t.generation = ++set->generation;
		memset(&set->links, 0, sizeof(set->links));
		/* The new link first, then the old one goes, once the calls that it saw begin have returned (a session's
		 * return is lost with its link): no call of the others is missed. */
		if (n) {
			err = make_links(set->kind, &a->progs, &t, &set->links, &bad);
			if (err)
				msg_warn("%s: class query is no longer seen: re-linking failed (%s)", f->path, strerror(-err));
		}
		if (set->kind == ATTACH_SESSION || set->kind == ATTACH_MULTI)
			set_close_later(&old, LINGER_US);
		else
			set_close(&old);
	}
	return muted;
}

void attach_totals(const struct attach *a, int *links, int *functions)
{
	int i, j;

	*links = *functions = 0;
	for (i = 0; a && i < a->nfiles; i++) {
		const struct attach_file *af = a->files[i]->attach;

		for (j = 0; j < af->nsets; j++) {
			*links += af->sets[j].links.nfds;
			*functions += af->sets[j].nprobes;
		}
	}
}

/* ---- detaching ------------------------------------------------------------------------------------------- */

struct closing {
	int *fds;
	int n, next;
};

static void *close_some(void *arg)
{
	struct closing *c = arg;
	int i;

	while ((i = __atomic_fetch_add(&c->next, 1, __ATOMIC_RELAXED)) < c->n)
		close(c->fds[i]);
	return NULL;
}

static void close_all(int *fds, int n)
{
	pthread_t threads[CLOSE_THREADS];
	struct closing c = { .fds = fds, .n = n };
	pthread_attr_t attr;
	int i, nthreads = 0;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, CLOSE_STACK);
	for (i = 0; i < CLOSE_THREADS && i < n - 1; i++)
		if (!pthread_create(&threads[nthreads], &attr, close_some, &c))
			nthreads++;
	close_some(&c);
	for (i = 0; i < nthreads; i++)
		pthread_join(threads[i], NULL);
	pthread_attr_destroy(&attr);
}

void attach_close(struct attach *a)
{
	int i, j, k, n = 0, *fds, functions;

	if (!a)
		return;
	attach_totals(a, &n, &functions);
	fds = calloc(n + 1, sizeof(*fds));
	for (n = i = 0; i < a->nfiles; i++) {
		struct attach_file *af = a->files[i]->attach;

		for (j = 0; fds && j < af->nsets; j++) {
			for (k = 0; k < af->sets[j].links.nfds; k++)
				fds[n++] = af->sets[j].links.fds[k];
			af->sets[j].links.nfds = 0;
		}
	}
	if (fds)
		close_all(fds, n);
	for (i = 0; i < a->nfiles; i++) {
		struct attach_file *af = a->files[i]->attach;

		for (j = 0; j < af->nsets; j++) {
			set_close(&af->sets[j].links);
			free(af->sets[j].probes);
		}
		free(af->sets);
		free(af);
		a->files[i]->attach = NULL;
	}
	free(fds);
	free(a->files);
	free(a);
}
