/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * count.bpf.h - calls that are counted and not sent. User space reads the sums when it wants them;
 * no per-call event is sent. All CPUs share one set of sums and use atomic adds, because a per-CPU
 * map would be too large on a machine with 128 CPUs. The first call with a new key creates the
 * key's entry.
 */
#ifndef CT_COUNT_BPF_H
#define CT_COUNT_BPF_H

/* The sums, as an array: user space maps it and reads it without a system call. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ct_entry);
} entries SEC(".maps");

/* The index in `entries` of each key. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct ct_count_key);
	__type(value, __u32);
} call_counts SEC(".maps");

/* A ring of the indices in `entries` that are free again: user space adds to it (`freed_given`),
 * and the kernel side takes from it. Entries that were never used are taken first. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64); /* an array's elements are 8 bytes wide in any case */
} freed SEC(".maps");
__u64 entries_used, freed_given, freed_taken;
__u64 entry_spare[4];

/* How many entries each process has whose key has a `by`. This needs a limit: a program may have
 * any number of kernels. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct ct_progress_key);
	__type(value, __u32);
} shares SEC(".maps");

/* The last index found for a process and function. It is only a hint: the key in the entry is
 * compared. */
#define HINTS 4096
__u32 hints[HINTS];

/* The index is in struct ct_sums, or it is the function's row (CT_HIST_BY_FUNCTION), so a call
 * needs no second lookup. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ct_hist);
} hists SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct ct_count_key);
	__type(value, struct ct_sizes);
} sizes SEC(".maps");

/* Memory that a counted call allocated and that is not freed yet. A call that frees does not say
 * the size, so it is looked up here. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct ct_held_key);
	__type(value, __u64); /* bytes */
} held SEC(".maps");

/* Free indices in `hists`: user space gives them (`given`), and the kernel side takes them in
 * order. If two CPUs make the same entry at once, the index that is left over is kept in
 * `hist_spare`, + 1. */
__u32 hist_places[CT_HISTS_MAX];
__u64 hists_given, hists_taken;
__u64 hist_spare[4];

/* The initial value of an entry. It is not on the stack, because all functions of a call chain
 * share 512 bytes of stack. */
const struct ct_sizes no_sizes;

volatile __u32 count_by_now; /* enum ct_by; with CT_BY_ASKED */

/* ---- what sampling is estimated from ---- */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct ct_progress_key);
	__type(value, __u64);
} progress SEC(".maps");

/* Counts a call of a function that is not sampled, if it is not inside another call. */
static __noinline int count_progress(__u32 tgid, __u32 start)
{
	struct ct_progress_key key = { tgid, start };
	__u64 *n = bpf_map_lookup_elem(&progress, &key), one = 1;

	if (n)
		__sync_fetch_and_add(n, 1);
	else
		bpf_map_update_elem(&progress, &key, &one, BPF_NOEXIST);
	return 0;
}

/* Which functions are called inside which other functions, and about how often. If the outer
 * function's probe is detached, theirs must be too, or their calls would look as if the program had
 * made them. */
struct ct_inside inside[CT_MAX_FUNCS][CT_INSIDE_MAX];

/* Not static: the verifier checks it once. */
__noinline int note_inside(__u32 outer, __u32 func)
{
	struct ct_inside *list;

	if (outer >= CT_MAX_FUNCS)
		return 0;
	list = inside[outer];
	for (int i = 0; i < CT_INSIDE_MAX; i++) {
		if (!list[i].func)
			list[i].func = func + 1;
		if (list[i].func != func + 1)
			continue;
		list[i].calls++;
		return 0;
	}
	/* a program's first call starts the driver, whose calls fill the list: a function that is
	 * called more often takes the last place */
	list += CT_INSIDE_MAX - 1;
	if (list->calls)
		list->calls--;
	if (!list->calls)
		list->func = 0;
	return 0;
}

/* The argument words of a call at its entry; words[most]. */
static __always_inline void copy_words(struct pt_regs *ctx, __u64 *words, __u32 nwords, __u64 sp,
				       const __u32 most)
{
	words[0] = PT_REGS_PARM1(ctx);
	words[1] = PT_REGS_PARM2(ctx);
	words[2] = PT_REGS_PARM3(ctx);
	words[3] = PT_REGS_PARM4(ctx);
	words[4] = PT_REGS_PARM5(ctx);
#if defined(__TARGET_ARCH_x86)
	words[5] = ctx->r9;
#else
	words[5] = ctx->regs[5];
	words[6] = ctx->regs[6];
	words[7] = ctx->regs[7];
#endif
	if (nwords > REG_WORDS) {
		__u64 n = (nwords - REG_WORDS) * 8;

		BOUND(n, (most - REG_WORDS) * 8);
		/* The stack is resident: it has just been written. */
		if (bpf_probe_read_user(&words[REG_WORDS], n, (void *)STACK_ARGS(sp)))
			__builtin_memset(&words[REG_WORDS], 0, (most - REG_WORDS) * 8);
	}
}

#define SUMS_ADD(word, n) ((void)__sync_fetch_and_add(word, n))
#define SUMS_ADD32(word, n) SUMS_ADD(word, n)
#define SUMS_FETCH_ADD(word, n) __sync_fetch_and_add(word, n)
#define SUMS_SWAP(word, was, to) (__sync_val_compare_and_swap(word, was, to) == (was))
#define SUMS_CGROUP() bpf_get_current_cgroup_id()
#define SUMS_SPEC const volatile
#include "../wire/sums.h"

static __always_inline __u8 how_now(void)
{
	return config.count_by == CT_BY_ASKED ? (__u8)count_by_now : config.count_by;
}

static __always_inline void count_duration(const struct ct_sums *n, __u32 func, __u64 ns)
{
	__u32 place = config.hist == CT_HIST_BY_FUNCTION ? func : (__u32)n->hist - 1,
	      b = ct_hist_bucket(ns);
	struct ct_hist *h = bpf_map_lookup_elem(&hists, &place);

	/* without a histogram the sums are still kept, and say how many calls are missing in it */
	if (h && b < CT_HIST_BUCKETS)
		__sync_fetch_and_add(&h->n[b], 1);
}

static __always_inline __u64 take_spare(__u64 *spare)
{
	for (int i = 0; i < 4; i++) {
		__u64 place = *(volatile __u64 *)&spare[i] ? __sync_lock_test_and_set(&spare[i], 0)
							   : 0;

		if (place)
			return place;
	}
	return 0;
}

static __always_inline void put_spare(__u64 *spare, __u64 place)
{
	for (int i = 0; i < 4 && place; i++)
		if (__sync_val_compare_and_swap(&spare[i], 0, place) == 0)
			return;
}

/* The sequence number of the next given item, or ~0 if there is none. */
static __always_inline __u64 take_next(__u64 *taken, __u64 *given)
{
	for (int i = 0; i < 8; i++) {
		__u64 n = *(volatile __u64 *)taken;

		if (n >= *(volatile __u64 *)given)
			break;
		if (__sync_val_compare_and_swap(taken, n, n + 1) == n)
			return n;
	}
	return ~0ULL;
}

/* Takes an index in `hists`: returns it + 1, or 0 if none is free. */
static __always_inline __u64 take_hist(void)
{
	__u64 place = take_spare(hist_spare), n;

	if (place)
		return place;
	n = take_next(&hists_taken, &hists_given);
	return n == ~0ULL ? 0 : hist_places[n & (CT_HISTS_MAX - 1)] + 1;
}

/* Takes an index in `entries`: returns it + 1, or 0 if none is free. */
static __always_inline __u64 take_entry(void)
{
	__u64 place = take_spare(entry_spare), n, *spare;
	__u32 at;

	if (place)
		return place;
	n = take_next(&freed_taken, &freed_given);
	if (n != ~0ULL) {
		at = n % config.entries;
		spare = bpf_map_lookup_elem(&freed, &at);
		return spare ? *spare + 1 : 0;
	}
	if (*(volatile __u64 *)&entries_used >= config.entries)
		return 0;
	n = __sync_fetch_and_add(&entries_used, 1);
	return n < config.entries ? n + 1 : 0;
}

/* Counts one more entry for a process. A process that does not fit into `shares` has no limit of
 * its own. */
static __always_inline void add_share(const struct ct_count_key *key)
{
	struct ct_progress_key whose = { key->tgid, key->start };
	__u32 none = 0, *n;

	bpf_map_update_elem(&shares, &whose, &none, BPF_NOEXIST);
	n = bpf_map_lookup_elem(&shares, &whose);
	if (n)
		__sync_fetch_and_add(n, 1);
}

static __always_inline bool has_its_share(const struct ct_count_key *key)
{
	struct ct_progress_key whose = { key->tgid, key->start };
	__u32 *n = config.entries_each && key->by ? bpf_map_lookup_elem(&shares, &whose) : NULL;

	return n && *(volatile __u32 *)n >= config.entries_each;
}

/* Makes the entry of a key, if there is room and no other CPU has made it at the same moment. */
static __noinline int make_entry(const struct ct_count_key *key)
{
	struct ct_entry *e;
	__u64 place;
	__u32 at;

	if (!key)
		return 0;
	place = take_entry();
	at = place - 1;
	e = place ? bpf_map_lookup_elem(&entries, &at) : NULL;
	if (!e)
		return 0;
	e->n.hist = config.hist == CT_HIST_BY_KEY ? take_hist() : 0;
	e->key = *key;
	if (!bpf_map_update_elem(&call_counts, key, &at, BPF_NOEXIST)) {
		if (config.entries_each && key->by)
			add_share(key);
		return 0;
	}
	put_spare(hist_spare, e->n.hist);
	e->n.hist = 0;
	__builtin_memset(&e->key, 0, sizeof(e->key));
	put_spare(entry_spare, place);
	return 0;
}

static __always_inline struct ct_sums *entry_at(__u32 at, const struct ct_count_key *key)
{
	struct ct_entry *e = bpf_map_lookup_elem(&entries, &at);
	const __u64 *want = (const __u64 *)key, *have;

	if (!e)
		return NULL;
	have = (const __u64 *)&e->key;
	return want[0] == have[0] && want[1] == have[1] && want[2] == have[2] ? &e->n : NULL;
}

/* The sums for a call's key, if there are any. */
static __always_inline struct ct_sums *find_entry(const struct ct_count_key *key)
{
	__u32 *hint = &hints[(key->tgid * 67 + key->func) & (HINTS - 1)], *at;
	struct ct_sums *n = entry_at(*hint, key);

	if (n)
		return n;
	at = bpf_map_lookup_elem(&call_counts, key);
	if (!at)
		return NULL;
	*hint = *at;
	return entry_at(*at, key);
}

/* One value for copies, two for launches. */
static __noinline int count_sizes(const struct ct_count_key *key, __u64 first, __u64 second)
{
	struct ct_sizes *s;

	if (!key)
		return 0;
	s = bpf_map_lookup_elem(&sizes, key);
	if (!s) {
		bpf_map_update_elem(&sizes, key, &no_sizes, BPF_NOEXIST);
		s = bpf_map_lookup_elem(&sizes, key);
	}
	if (!s) {
		COUNT(lost[CT_LOSS_COUNTS]);
		return 0;
	}
	add_size(s, 0, first);
	if (key->by == CT_OF_LAUNCHES)
		add_size(s, 1, second);
	return 0;
}

/* Counts the sizes that a launch or a copy asks for. The key is changed into the one of `sizes`. */
static __always_inline void count_asked(struct ct_count_key *key, const struct call *c,
					const volatile struct ct_spec *spec)
{
	if (spec->grid_how) {
		key->func = 0;
		key->sub = 0;
		key->by = CT_OF_LAUNCHES;
		count_sizes(key, volume_of(c, spec, 0), volume_of(c, spec, 1));
	} else if (spec->more & CT_S_COPIES && spec->size_word < CT_MAX_WORDS) {
		key->sub &= CT_SUB_KIND;
		key->by = CT_OF_COPIES;
		count_sizes(key, word_at(c, spec->size_word), 0);
	}
}

static __always_inline struct ct_held_key held_key(const struct thread *t,
						   const volatile struct ct_spec *spec, __u64 addr)
{
	return (struct ct_held_key){ t->id >> 32, t->start,
				     addr ^ (__u64)spec->memory_space << 56 };
}

/*
 * At the entry of a call that frees, the memory is removed from `held`. Before the call returns,
 * another thread may already get the same address, and that thread's entry must not be confused
 * with this one.
 */
static __noinline int free_begins(const struct thread *t, struct frame *f)
{
	const volatile struct ct_spec *spec;
	struct ct_held_key key;
	__u64 addr, *had;

	if (!t || !f)
		return 0;
	spec = &specs[f->rec.func & (CT_MAX_FUNCS - 1)];
	addr = f->data[spec->memory_word & (CT_MAX_WORDS - 1)];
	key = held_key(t, spec, addr);
	had = addr ? bpf_map_lookup_elem(&held, &key) : NULL;
	if (!had)
		return 0;
	f->freed_bytes = *had;
	f->frees = !bpf_map_delete_elem(&held, &key);
	return 0;
}

/* The call failed, did not return, or there is no room for its sums (n NULL): its memory is put
 * back into `held`. If the address was allocated again in the meantime, the memory was in fact
 * freed. */
static __noinline int free_failed(const struct thread *t, struct frame *f, struct ct_sums *n)
{
	const volatile struct ct_spec *spec;
	struct ct_held_key key;
	__u64 bytes;

	if (!t || !f || !f->frees)
		return 0;
	f->frees = false;
	/* old verifiers require that a value put into a map lies on the stack */
	bytes = f->freed_bytes;
	spec = &specs[f->rec.func & (CT_MAX_FUNCS - 1)];
	key = held_key(t, spec, f->data[spec->memory_word & (CT_MAX_WORDS - 1)]);
	if (bpf_map_update_elem(&held, &key, &bytes, BPF_NOEXIST) == -EEXIST && n)
		__sync_fetch_and_add(&n->bytes, bytes);
	return 0;
}

/* Counts memory that a call allocated or freed. Memory that does not fit into `held`, or is not in
 * it, is counted too: see struct ct_sums. */
static __noinline int count_memory(struct thread *t, struct frame *f, struct ct_sums *n)
{
	const volatile struct ct_spec *spec;
	struct ct_held_key key;
	__u64 addr, bytes, *had;

	if (!t || !f || !n)
		return 0;
	spec = &specs[f->rec.func & (CT_MAX_FUNCS - 1)];
	addr = f->data[spec->memory_word & (CT_MAX_WORDS - 1)];
	if (spec->memory_how == CT_MEMORY_FREES) {
		__sync_fetch_and_add(&n->unsized, !f->frees && addr);
		__sync_fetch_and_add(&n->bytes, f->frees ? f->freed_bytes : 0);
		f->frees = false;
		return 0;
	}
	bytes = f->data[spec->size_word & (CT_MAX_WORDS - 1)];
	if (bytes >= CT_SIZE_MOST)
		bytes = 0; /* not in the sums either */
	/* it has just been written */
	if (spec->memory_how == CT_MEMORY_TAKES_OUT &&
	    bpf_probe_read_user(&addr, sizeof(addr), (void *)addr))
		addr = 0;
	key = held_key(t, spec, addr);
	had = addr ? bpf_map_lookup_elem(&held, &key) : NULL;
	/* the memory was freed without a call that we saw: with its context, with its device, or in
	 * a call that was lost */
	if (had)
		__sync_fetch_and_add(&n->unheld_bytes, *had);
	if (addr && !bpf_map_update_elem(&held, &key, &bytes, BPF_ANY))
		return 0;
	if (bytes) {
		__sync_fetch_and_add(&n->unheld, 1);
		__sync_fetch_and_add(&n->unheld_bytes, bytes);
	}
	return 0;
}

/* The sums for a call's key, created at the first call. If the process has used its share of
 * entries, the sums of CT_BY_REST. NULL: there is no room. */
static __always_inline struct ct_sums *entry_of(struct ct_count_key *key)
{
	struct ct_sums *n = find_entry(key);

	if (n)
		return n;
	if (has_its_share(key)) {
		COUNT(beyond);
		key->by = CT_BY_REST;
		n = find_entry(key);
		if (n)
			return n;
	}
	make_entry(key);
	return find_entry(key);
}

/*
 * For a call that is not nested according to the frames: may it still be inside a call that began
 * while that function's probe was off? Returns true if the call is to be ignored. *before: how many
 * ignored calls are to be counted together with this one.
 */
static __always_inline bool is_unsure(struct thread *t, __u8 state, __u8 *before)
{
	__u32 now = window;

	if (state != CT_SAMPLED_INSIDE) {
		t->window = now;
		if (state == CT_SAMPLED_COUNTED)
			t->unsure = 0;
		return false;
	}
	if (t->window == now)
		return false;
	if (t->unsure < CT_UNSURE_MAX) {
		t->unsure++;
		if (t->unsure < CT_UNSURE_MAX)
			return true;
		*before = CT_UNSURE_MAX - 1;
	}
	t->window = now;
	return false;
}

/* Counts a call when it has returned, or (`timed` false) when no more will be known about it. Not
 * static, so that the verifier checks it once per program and not at each place that calls it. */
__noinline int count_call(struct thread *t, struct frame *f, __u32 func, bool failed, bool timed)
{
	const volatile struct ct_spec *spec = &specs[func & (CT_MAX_FUNCS - 1)];
	struct ct_count_key key;
	struct ct_sums *n;
	struct call c;

	if (!t || !f)
		return 0;
	c = (struct call){ .words = f->data, .tgid = t->id >> 32, .tid = t->id, .start = t->start };
	key_of(&key, &c, func, spec, how_now());
	n = entry_of(&key);
	if (!n) {
		COUNT(lost[CT_LOSS_COUNTS]);
		if (config.memory)
			free_failed(t, f, NULL);
		return 0;
	}
	if (timed) {
		__u64 ns = f->rec.h.end_ns - f->rec.h.start_ns;

		add_time(n, ns);
		if (config.hist)
			count_duration(n, func, ns);
	} else {
		__sync_fetch_and_add(&n->untimed, 1);
	}
	add_call(n, &c, spec, failed);
	if (config.sizes && !failed)
		count_asked(&key, &c, spec);
	if (f->before) {
		__sync_fetch_and_add(&n->calls, f->before);
		__sync_fetch_and_add(&n->untimed, f->before);
	}
	if (config.memory && f->frees && (failed || !timed))
		free_failed(t, f, n);
	else if (config.memory && timed && spec->memory_how && !failed && !f->rec.depth)
		count_memory(t, f, n);
	return 0;
}

/* Can all calls be counted at their entry? The answer is constant when the program is loaded. */
static __always_inline bool counts_entries(void)
{
	return config.count && config.no_return && !config.cgroup_id &&
	       !config.filter.min_size_bytes && !config.filter.failed_only &&
	       !config.filter.succeeded_only && !config.filter.min_duration_ns && !config.enter &&
	       !config.stacks;
}

/* Used with --no-return, if all data that is needed is in the registers and on the stack: counts
 * without the thread's store. Returns 0 if the call's key has no entry yet, or if the call needs
 * more than counting. If there is an entry, its process is traced and was announced. */
static __noinline int count_entry(struct pt_regs *ctx, __u32 func)
{
	/* a separate function with its own stack, because old verifiers add up the stacks of all
	 * functions that can be active at the same time */
	const volatile struct ct_spec *spec = &specs[func & (CT_MAX_FUNCS - 1)];
	struct task_struct *task = bpf_get_current_task_btf();
	struct call c = { .tgid = task->tgid,
			  .tid = task->pid,
			  .start = task->group_leader->start_boottime >> 10 };
	__u64 words[CT_MAX_WORDS] = {};
	struct ct_count_key key;
	struct ct_sums *n;
	__u32 nwords = spec->nwords;

	if (!ctx || nwords > CT_MAX_WORDS ||
	    (spec->flags & (CT_S_SHOWN | CT_S_ALWAYS | CT_S_NESTED)) != CT_S_SHOWN ||
	    spec->more & CT_S_FORGETS)
		return 0;
	if (config.samples && sampled[func & (CT_MAX_FUNCS - 1)] == CT_SAMPLED_OFF)
		return 1;
	copy_words(ctx, words, nwords, ENTRY_SP(ctx), CT_MAX_WORDS);
	c.words = words;
	key_of(&key, &c, func, spec, how_now());
	n = find_entry(&key);
	if (!n)
		return 0;
	add_call(n, &c, spec, false);
	if (config.sizes)
		count_asked(&key, &c, spec);
	if (config.samples && sampling && !sampled[func & (CT_MAX_FUNCS - 1)])
		count_progress(c.tgid, c.start);
	return 1; /* no call has times here, so `timed` need not be counted */
}

#endif
