/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_links.c - the kinds of links for kernels before 6.6, on whatever kernel runs this: a program
 * that counts is put on 400 functions of this very file, and every call must be counted once for
 * its entry and once for its return, on each CPU and in a child; nothing is counted after the links
 * are closed, and no trace event is left behind.
 *
 * tests/vm/run.sh runs it as root in a virtual machine. Not for a machine that is needed: what
 * is wrong in this room is a crash of the kernel, or a lock in it that is never released.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/bpf.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../user/source/probe/links.h"
#include "../unit/unit.h"

#define FUNC(n)                                                    \
	static __attribute__((noinline, used)) int func_##n(int x) \
	{                                                          \
		__asm__ volatile("" : "+r"(x));                    \
		return x + 1;                                      \
	}
#define NAME(n) func_##n,
/* clang-format off */
#define TEN(m, p) m(p##0) m(p##1) m(p##2) m(p##3) m(p##4) m(p##5) m(p##6) m(p##7) m(p##8) m(p##9)
#define HUNDRED(m, p)                                                                                                  \
	TEN(m, p##0) TEN(m, p##1) TEN(m, p##2) TEN(m, p##3) TEN(m, p##4) TEN(m, p##5) TEN(m, p##6) TEN(m, p##7)           \
	TEN(m, p##8) TEN(m, p##9)
#define NFUNCS 400

HUNDRED(FUNC, 1) HUNDRED(FUNC, 2) HUNDRED(FUNC, 3) HUNDRED(FUNC, 4)
static int (*const funcs[NFUNCS])(int) = { HUNDRED(NAME, 1) HUNDRED(NAME, 2) HUNDRED(NAME, 3) HUNDRED(NAME, 4) };
/* clang-format on */

#ifdef __x86_64__
/* Begins with a lock prefix, which the kernel refuses to put a uprobe on. Never called. */
void locked(void);
__asm__(".text; .globl locked; .type locked, @function; locked: lock incl (%rsp); ret; .size "
	"locked, .-locked");
#endif

static struct elf_probe probes[NFUNCS];
static uint64_t *hits; /* two counters in a map: entries, returns */
static struct attach_progs progs;
static int self_fd;

/* The offset in the file of an address in this program. */
struct place {
	uintptr_t address;
	uint64_t offset;
};

static int find_place(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct place *p = arg;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + ph->p_vaddr;

		if (ph->p_type == PT_LOAD && p->address >= start &&
		    p->address < start + ph->p_memsz)
			p->offset = p->address - start + ph->p_offset;
	}
	return 1; /* the first object is the program */
}

static uint64_t offset_of(uintptr_t address)
{
	struct place p = { .address = address };

	dl_iterate_phdr(find_place, &p);
	return p.offset;
}

/* A program that adds 1 to the counter at `off`. Sleepable, as cudatrace's are. */
static int load_counter(int map_fd, int off)
{
	struct bpf_insn prog[] = {
		{ .code = BPF_LD | BPF_IMM | BPF_DW,
		  .dst_reg = 1,
		  .src_reg = BPF_PSEUDO_MAP_VALUE,
		  .imm = map_fd },
		{ .imm = off },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 2, .imm = 1 },
		{ .code = BPF_STX | BPF_ATOMIC | BPF_DW,
		  .dst_reg = 1,
		  .src_reg = 2,
		  .imm = BPF_ADD },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .prog_flags = BPF_F_SLEEPABLE);

	return bpf_prog_load(BPF_PROG_TYPE_KPROBE, "count", "GPL", prog, ARRAY_LEN(prog), &opts);
}

static bool set_up(void)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	int map_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "hits", 4, 16, 1, &opts);

	if (map_fd < 0)
		return false;
	hits = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, map_fd, 0);
	if (hits == MAP_FAILED)
		return false;
	progs.entry_fd = load_counter(map_fd, 0);
	progs.return_fd = load_counter(map_fd, 8);
	self_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	for (int i = 0; i < NFUNCS; i++)
		probes[i] =
			(struct elf_probe){ .offset = offset_of((uintptr_t)funcs[i]), .func = i };
	return progs.entry_fd >= 0 && progs.return_fd >= 0 && self_fd >= 0;
}

static void call_all(int n)
{
	for (int i = 0; i < n; i++)
		if (funcs[i](i) != i + 1)
			abort();
}

static bool counted(uint64_t entries, uint64_t returns)
{
	if (hits[0] == entries && hits[1] == returns)
		return true;
	printf("  counted %llu entries, %llu returns; expected %llu, %llu\n",
	       (unsigned long long)hits[0], (unsigned long long)hits[1],
	       (unsigned long long)entries, (unsigned long long)returns);
	return false;
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static void set_close(struct link_set *set)
{
	for (int i = 0; i < set->nfds; i++)
		close(set->fds[i]);
	links_removed(set);
}

/* How many offsets are defined in events of ours; -1: no tracefs. */
static int events_left(const char *tracefs)
{
	char path[64], line[256];
	int n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/uprobe_events", tracefs);
	f = fopen(path, "re");
	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f))
		n += strstr(line, ":cudatrace/") != NULL;
	fclose(f);
	return n;
}

typedef int (*links_fn)(const struct attach_progs *, const struct link_target *, struct link_set *,
			int *);

static void check_kind(const char *name, links_fn make, int n)
{
	struct link_target t = { .file_fd = self_fd, .probes = probes, .nprobes = n };
	struct link_set set;
	double start, made;
	uint64_t want = 0;
	cpu_set_t cpus;
	int bad;

	hits[0] = hits[1] = 0;
	start = now();
	CHECK(make(&progs, &t, &set, &bad) == 0);
	made = now();
	for (int cpu = 0; cpu < 2; cpu++) {
		CPU_ZERO(&cpus);
		CPU_SET(cpu, &cpus);
		if (sched_setaffinity(0, sizeof(cpus), &cpus))
			continue;
		call_all(n);
		want += n;
	}
	fflush(stdout);
	if (!fork()) {
		call_all(n);
		_exit(0);
	}
	wait(NULL);
	want += n;
	CHECK(counted(want, want));
	printf("  %s: %d functions attached in %.3f s", name, n, made - start);
	start = now();
	set_close(&set);
	printf(", detached in %.3f s\n", now() - start);
	call_all(n);
	CHECK(counted(want, want));

	hits[0] = hits[1] = 0;
	t.nprobes = 1;
	t.entry_only = true;
	CHECK(make(&progs, &t, &set, &bad) == 0);
	call_all(1);
	CHECK(counted(1, 0));
	set_close(&set);
}

/* A set with a probe that cannot be: nothing of it stays. */
static void check_refused(links_fn make, uint64_t offset)
{
	struct elf_probe some[3] = { probes[0], { .offset = offset }, probes[1] };
	struct link_target t = { .file_fd = self_fd, .probes = some, .nprobes = 3 };
	struct link_set set;
	int bad = 99;

	hits[0] = hits[1] = 0;
	CHECK(make(&progs, &t, &set, &bad) < 0);
	CHECK(bad == -1 || bad == 1);
	CHECK(!set.fds && !set.nfds && !set.event[0]);
	call_all(2);
	CHECK(counted(0, 0));
}

/* The same place twice in one event: refused, and the culprit is named. */
static void check_twice(void)
{
	struct elf_probe some[3] = { probes[0], probes[1], probes[0] };
	struct link_target t = { .file_fd = self_fd, .probes = some, .nprobes = 3 };
	struct link_set set;
	int bad = 99;

	CHECK(links_tracefs(&progs, &t, &set, &bad) == -EEXIST);
	CHECK(bad == 2);
	CHECK(!set.fds && !set.nfds && !set.event[0]);
}

/* The events of a tracer that was killed go; those of one that lives stay, and go on counting. */
static void check_stale(const char *tracefs)
{
	struct link_target t = { .file_fd = self_fd, .probes = probes, .nprobes = 5 };
	struct link_set set;
	int bad;

	fflush(stdout);
	if (!fork()) {
		if (links_tracefs(&progs, &t, &set, &bad))
			_exit(1);
		raise(SIGKILL);
	}
	wait(NULL);
	CHECK(events_left(tracefs) == 10);
	t.nprobes = 3;
	CHECK(links_tracefs(&progs, &t, &set, &bad) == 0);
	CHECK(events_left(tracefs) == 16);
	attach_sweep_stale();
	CHECK(events_left(tracefs) == 6);
	hits[0] = hits[1] = 0;
	call_all(5);
	CHECK(counted(3, 3));
	set_close(&set);
	CHECK(events_left(tracefs) == 0);
}

int main(void)
{
	char tracefs[] = "/tmp/test_links.XXXXXX";

	if (geteuid()) {
		printf("skip test_links: needs root\n");
		return unit_end();
	}
	if (!set_up()) {
		printf("skip test_links: this kernel does not load sleepable uprobe programs: %s\n",
		       strerror(errno));
		return unit_end();
	}
	/* To look at uprobe_events from outside; the code under test finds its own way. */
	if (!mkdtemp(tracefs) || unshare(CLONE_NEWNS) ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		tracefs[0] = '\0';
	if (tracefs[0] && mount("tracefs", tracefs, "tracefs", 0, NULL)) {
		rmdir(tracefs);
		tracefs[0] = '\0';
	}
	attach_sweep_stale();
	if (tracefs[0]) {
		check_kind("tracefs", links_tracefs, NFUNCS);
		check_refused(links_tracefs, 1ULL << 40);
		check_twice();
	} else {
		printf("skip test_links: no tracefs here\n");
	}
	check_kind("perf", links_perf, 4);
	check_refused(links_perf, 1ULL << 40);
#ifdef __x86_64__
	if (tracefs[0])
		check_refused(links_tracefs, offset_of((uintptr_t)locked));
	check_refused(links_perf, offset_of((uintptr_t)locked));
#endif
	if (tracefs[0]) {
		check_stale(tracefs);
		umount2(tracefs, MNT_DETACH);
		rmdir(tracefs);
	}
	return unit_end();
}
