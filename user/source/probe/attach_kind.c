/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * attach_kind.c - see attach_kind.h. What the kernel can do is tried on functions of this very
 * program, by programs of a few instructions. Knows no file of a target.
 */
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "../../util/msg.h"
#include "../../util/now.h"
#include "../../util/thread.h"
#include "links.h"

#define PAIR_ROUNDS 9
#define PAIR_CALLS 100

static const char *const kind_names[] = { "none", "session", "multi", "tracefs", "perf" };

const char *attach_kind_name(enum attach_kind kind)
{
	return kind < ARRAY_LEN(kind_names) ? kind_names[kind] : "?";
}

/* ---- on what it is tried ---- */

/* What the trial links sit on. Never called but by the trial itself. What counts coverage would put an
 * instruction with a lock prefix at its begin, which the kernel refuses to probe. */
__attribute__((noinline, no_profile_instrument_function)) static void trial_function(void)
{
	__asm__ volatile("" ::: "memory");
}

/*
 * What a pair of probes is timed on. It begins as CUDA's functions do, with an instruction that
 * the kernel emulates: one that it has to step, as a bare return, costs several times more.
 */
#ifdef __x86_64__
void attach_kind_timed(void);
__asm__(".text\n.p2align 4\n.type attach_kind_timed, @function\n"
	"attach_kind_timed:\n\tpush %rbp\n\tpop %rbp\n\tret\n"
	".size attach_kind_timed, . - attach_kind_timed\n");
#else
__attribute__((noinline)) static void attach_kind_timed(void)
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

		if (ph->p_type == PT_LOAD && own->addr >= start &&
		    own->addr < start + ph->p_filesz) {
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

static const struct bpf_insn nothing[] = {
	{ .code = 0xb7 }, /* r0 = 0 */
	{ .code = 0x95 }, /* exit */
};

static int trial_prog(int expected_type, const struct bpf_insn *insns, int ninsns)
{
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = expected_type);
	int fd = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "ct_trial", "Dual BSD/GPL", insns, ninsns,
			       &opts);

	return fd < 0 ? -errno : fd;
}

static int expected_type(enum attach_kind kind)
{
	return kind == ATTACH_SESSION ? ATTACH_TYPE_SESSION
	       : kind == ATTACH_MULTI ? ATTACH_TYPE_MULTI
				      : 0;
}

/* ---- trials ---- */

/* The quickest of some rounds: what else ran meanwhile is in the others. */
static uint64_t time_trial(void)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < PAIR_ROUNDS; i++) {
		uint64_t begin = clock_ns(CLOCK_MONOTONIC), ns;

		for (int k = 0; k < PAIR_CALLS; k++)
			attach_kind_timed();
		ns = clock_ns(CLOCK_MONOTONIC) - begin;
		best = ns < best ? ns : best;
	}
	return best / PAIR_CALLS;
}

/* Tries the kind; with pair_ns it says what a call of a probed function costs more than one of a
 * function that is not. */
static int try_kind(enum attach_kind kind, bool entry_only, uint64_t *pair_ns)
{
	struct elf_probe probe = { .offset = trial_offset(pair_ns ? attach_kind_timed
								  : trial_function) };
	struct link_target t = { .probes = &probe, .nprobes = 1, .entry_only = entry_only };
	struct attach_progs progs = { -1, -1, -1 };
	uint64_t bare_ns = pair_ns ? time_trial() : 0, probed_ns;
	struct link_set set;
	int err, bad;

	t.file_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	if (t.file_fd < 0)
		return -errno;
	progs.entry_fd = progs.return_fd = progs.session_fd = err =
		trial_prog(expected_type(kind), nothing, ARRAY_LEN(nothing));
	if (err < 0)
		goto out;
	err = links_make(kind, &progs, &t, &set, &bad);
	if (!err && pair_ns) {
		probed_ns = time_trial();
		*pair_ns = probed_ns > bare_ns ? probed_ns - bare_ns : 0;
	}
	if (!err)
		links_close_later(&set, 0);
out:
	if (progs.entry_fd >= 0)
		close(progs.entry_fd);
	close(t.file_fd);
	return err;
}

uint64_t attach_kind_pair_ns(enum attach_kind kind, bool entry_only)
{
	uint64_t ns = 0;

	if (kind != ATTACH_SESSION && kind != ATTACH_MULTI)
		return 0;
	/* a session cannot have only an entry */
	return try_kind(entry_only ? ATTACH_MULTI : kind, entry_only, &ns) ? 0 : ns;
}

int attach_kind_try(const char *want)
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
 * Does a link for one process see all its threads? From Linux 6.6 to 6.9 its filter compared the
 * task instead of the address space and dropped every other thread (fixed by commit
 * 46ba0e49b642). Tried with a second thread of our own and a program that counts.
 */
bool attach_kind_pid_links(enum attach_kind kind)
{
	struct elf_probe probe = { .offset = trial_offset(trial_function) };
	struct link_target t = {
		.probes = &probe, .nprobes = 1, .pid = getpid(), .entry_only = true
	};
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

		progs.entry_fd = progs.return_fd = progs.session_fd =
			trial_prog(expected_type(kind), count, ARRAY_LEN(count));
	}
	if (progs.entry_fd >= 0 && !links_make(kind, &progs, &t, &set, &bad)) {
		if (!thread_start(&thread, "ct-trial", 0, call_trial, NULL))
			pthread_join(thread, NULL);
		bpf_map_lookup_elem(map, &zero, &hits);
		links_close_later(&set, 0);
	}
	if (progs.entry_fd >= 0)
		close(progs.entry_fd);
	if (t.file_fd >= 0)
		close(t.file_fd);
	if (map >= 0)
		close(map);
	return hits == 1;
}
