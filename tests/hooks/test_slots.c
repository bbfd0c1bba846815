/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_slots.c - functions that have no room for a jump, hooked through the loader's slots: test_slots [--all] [NAME], in the folder
 * of its libraries.
 */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>

#include "hooktest.h"

#define CALLBACK __attribute__((target("general-regs-only")))
#define CALLERS 8
#if defined(__x86_64__)
#define REFUSED HOOK_BRANCH
#define INSIDE_IS_PUT_BACK true
#define SLOWER 1
#else
#define REFUSED HOOK_NO_JUMP
#define INSIDE_IS_PUT_BACK false
#define SLOWER 10 /* it is run in an emulator */
#endif

static atomic_ulong seen, ended, wrong;

static CALLBACK bool entry(struct hook_frame *f, const struct hook_regs *r)
{
	f->data[0] = r->args[0] & 0xffff;
	seen++;
	return true;
}

static CALLBACK void leave(struct hook_frame *f, __u64 result)
{
	if ((result & 0xffff) != f->data[0] + f->id)
		wrong++;
	ended++;
}

static const struct hook_ops ops = { .entry = entry, .leave = leave };

typedef int (*fn)(int);

static char folder[400];
static void *load(const char *name, int how)
{
	char path[500];
	void *lib;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	lib = dlopen(path, how);
	if (!lib)
		printf("%s\n", dlerror());
	CHECK(lib);
	return lib;
}

static fn get(void *lib, const char *name)
{
	fn f = (fn)dlsym(lib, name);

	CHECK(f);
	return f;
}

/* The callee's functions; `id` is what they add to their argument. */
static int put_on(void *callee, enum hook_result *results)
{
	struct hook_spec specs[2] = {
		{ .address = (__u64)(size_t)get(callee, "slot_short"), .size = 4, .id = 1 },
		{ .address = (__u64)(size_t)get(callee, "slot_jump"), .size = 10, .id = 2 },
	};

	return engine_install(specs, 2, results);
}

static void expect_calls(fn f, int adds, unsigned long calls)
{
	unsigned long before = seen;

	for (int i = 0; i < 10; i++)
		CHECK_EQ(i + adds, f(i));
	CHECK_EQ(10 * calls, seen - before);
	CHECK_EQ(seen, ended);
	CHECK_EQ(0, wrong);
}

/* All data of an object: from its dynamic section's page on that the file maps, as long as it is readable. */
struct data {
	const char *at;
	size_t n;
	char was[65536];
};

static int find_data(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct data *d = ctx;
	(void)size;

	if (!strstr(info->dlpi_name, d->was))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && p->p_flags & PF_W) {
			d->at = (const char *)info->dlpi_addr + p->p_vaddr;
			d->n = p->p_memsz;
		}
	}
	return 1;
}

static void keep_data(struct data *d, const char *name)
{
	strcpy(d->was, name);
	d->at = NULL;
	dl_iterate_phdr(find_data, d);
	CHECK(d->at && d->n <= sizeof(d->was));
	memcpy(d->was, d->at, d->n);
}

static void same_data(const struct data *d)
{
	CHECK(!memcmp(d->was, d->at, d->n));
}

static struct data data[3];

/* Bound when it was loaded, not bound yet, and without a procedure linkage table: each call is seen, but none that needs no slot, and
 * all words are afterwards what they were. */
static void test_ways(void)
{
	static const char *const names[] = { "libslots-now.so", "libslots-lazy.so",
					     "libslots-noplt.so" };
	void *callee = load("libslots.so", RTLD_NOW), *lib[3];
	struct hook_leftover left;
	enum hook_result results[2];
	fn direct = get(callee, "slot_short");

	for (int i = 0; i < 3; i++)
		lib[i] = load(names[i], RTLD_LAZY);
	for (int i = 0; i < 3; i++)
		keep_data(&data[i], names[i]);
	CHECK_EQ(0, engine_open(&ops));
	for (int round = 0; round < 3; round++) {
		CHECK_EQ(2, put_on(callee, results));
		CHECK_EQ(HOOK_PARTLY, results[0]);
		CHECK_EQ(HOOK_PARTLY, results[1]);
		CHECK_EQ(0, engine_hooked_late());
		if (round) /* the first time nothing is called: no slot has been bound by it */
			for (int i = 0; i < 3; i++) {
				expect_calls(get(lib[i], "by_slot"), 1, 1);
				expect_calls(get(lib[i], "by_slot2"), 2, 1);
				expect_calls(get(lib[i], "by_table"), 1, 1);
				expect_calls(get(lib[i], "by_plain"), 1, 0);
			}
		expect_calls(get(callee, "slot_inside"), 11, 1);
		expect_calls(direct, 1, 0);
		CHECK_EQ(0, engine_remove(&left));
		CHECK_EQ(0, left.foreign + left.gone + left.inside);
		for (int i = 0; i < 3; i++)
			same_data(&data[i]);
		expect_calls(get(callee, "slot_inside"), 11, 0);
	}
	for (int i = 0; i < 3; i++) {
		expect_calls(get(lib[i], "by_slot"), 1, 0);
		expect_calls(get(lib[i], "by_slot2"), 2, 0);
		expect_calls(get(lib[i], "by_table"), 1, 0);
	}
}

/* Counted alone through slots; and a program that has kept a pointer from one, which leads to the gate, is not
 * counted while hooks are off. */
static void test_counted(void)
{
	void *callee = load("libslots.so", RTLD_NOW), *lib = load("libslots-now.so", RTLD_NOW);
	struct hook_spec spec = { .address = (__u64)(size_t)get(callee, "slot_short"),
				  .size = 4,
				  .id = 1,
				  .flags = HOOK_COUNTABLE };
	const struct {
		void *head[2];
		fn volatile f;
	} *table = dlsym(lib, "_ZTV4Slot");
	static __u64 counts[HOOK_COUNTS];
	struct hook_leftover left;
	enum hook_result result;
	fn kept;

	CHECK_EQ(0, engine_open(&ops));
	CHECK_EQ(1, engine_install(&spec, 1, &result));
	kept = table->f;
	CHECK(kept != get(callee, "slot_short"));
	expect_calls(kept, 1, 1);
	hook_count_into(hook_self(), counts);
	engine_count(~0U, 1, HOOK_COUNT_IN(7));
	expect_calls(kept, 1, 0);
	expect_calls(get(lib, "by_slot"), 1, 0);
	CHECK_EQ(20, counts[7]);
	CHECK_EQ(0, engine_remove(&left));
	expect_calls(kept, 1, 0);
	CHECK_EQ(20, counts[7]);
}

static atomic_int stop;
static atomic_ulong calls;
static void *called[2];

static void *caller(void *arg)
{
	fn f[] = { get(arg, "by_slot"), get(arg, "by_slot2"), get(arg, "by_table") };
	unsigned long n = 0;

	for (int i = 0; !stop; i = (i + 1) & 0xfff) {
		if (f[0](i) != i + 1 || f[1](i) != i + 2 || f[2](i) != i + 1)
			wrong++;
		n += 3;
	}
	calls += n;
	return NULL;
}

/* On and off under threads that call, while another one loads and unloads a library that calls them too. */
static void test_under_fire(void)
{
	void *callee = load("libslots.so", RTLD_NOW);
	pthread_t t[CALLERS];
	struct hook_leftover left;
	enum hook_result results[2];
	int cycles = (all ? 5000 : 1000) / SLOWER;
	__u64 kept = 0;

	called[0] = load("libslots-now.so", RTLD_NOW);
	called[1] = load("libslots-noplt.so", RTLD_LAZY);
	CHECK_EQ(0, engine_open(&ops));
	for (int i = 0; i < CALLERS; i++)
		CHECK(!pthread_create(&t[i], NULL, caller, called[i % 2]));
	for (int c = 0; c < cycles; c++) {
		void *more = c % 4 ? NULL : load("libslots-lazy.so", RTLD_LAZY);

		CHECK_EQ(2, put_on(callee, results));
		if (more && c % 8 && get(more, "by_slot")(c & 0xff) != (c & 0xff) + 1)
			wrong++;
		if (more && c % 16)
			dlclose(more);
		CHECK_EQ(0, engine_remove(&left));
		CHECK_EQ(0, left.foreign + left.gone);
		CHECK(!INSIDE_IS_PUT_BACK || !left.inside);
		if (more && c % 16 == 0)
			dlclose(more);
		if (c == 64)
			kept = left.kept_bytes;
	}
	CHECK(left.kept_bytes <= kept + (1 << 20));
	stop = 1;
	for (int i = 0; i < CALLERS; i++)
		pthread_join(t[i], NULL);
	CHECK_EQ(0, wrong);
	CHECK(seen && calls > seen);
	/* and on, without fire: each call is seen */
	seen = ended = 0;
	CHECK_EQ(2, put_on(callee, results));
	expect_calls(get(called[0], "by_slot"), 1, 1);
	expect_calls(get(called[1], "by_slot2"), 2, 1);
	CHECK_EQ(0, engine_remove(&left));
}

/* A library that calls is loaded after the hooks came in: what had no hook is hooked late, and is counted. */
static void test_loaded_later(void)
{
	void *callee = load("libslots.so", RTLD_NOW), *lib;
	struct hook_leftover left;
	enum hook_result results[2];

	CHECK_EQ(0, engine_open(&ops));
	CHECK_EQ(1, put_on(callee, results)); /* the library calls one of them itself */
	CHECK_EQ(HOOK_PARTLY, results[0]);
	CHECK_EQ(REFUSED, results[1]);
	lib = load("libslots-lazy.so", RTLD_LAZY);
	CHECK_EQ(0, engine_install(NULL, 0, results));
	CHECK_EQ(1, engine_hooked_late());
	expect_calls(get(lib, "by_slot"), 1, 1);
	expect_calls(get(lib, "by_slot2"), 2, 1);
	dlclose(lib);
	lib = load("libslots-now.so", RTLD_LAZY);
	CHECK_EQ(0, engine_install(NULL, 0, results));
	CHECK_EQ(1, engine_hooked_late());
	expect_calls(get(lib, "by_slot2"), 2, 1);
	CHECK_EQ(0, engine_remove(&left));
	expect_calls(get(lib, "by_slot2"), 2, 0);
}

/* Where two objects define the name, the loader decides: the slot is left until it is bound. */
static void test_two_definitions(void)
{
	void *callee = load("libslots.so", RTLD_NOW), *other = load("libslots-other.so", RTLD_NOW),
	     *lib = load("libslots-lazy.so", RTLD_LAZY);
	struct hook_leftover left;
	struct hook_state state;
	enum hook_result results[2];

	CHECK(get(other, "slot_jump") != get(callee, "slot_jump"));
	CHECK_EQ(0, engine_open(&ops));
	put_on(callee, results);
	CHECK_EQ(REFUSED, results[1]);
	expect_calls(get(lib, "by_slot2"), 2, 0);
	CHECK_EQ(0, engine_check(&state));
	CHECK_EQ(1, engine_hooked_late());
	expect_calls(get(lib, "by_slot2"), 2, 1);
	CHECK_EQ(0, engine_remove(&left));
	expect_calls(get(lib, "by_slot2"), 2, 0);
}

/* The loader has bound a slot after it was led to the gate, as a thread does that was in the loader before: it is led there again. */
static void test_bound_meanwhile(void)
{
	void *callee = load("libslots.so", RTLD_NOW), *lib = load("libslots-lazy.so", RTLD_LAZY);
	__u64 pad = 0, function = (__u64)(size_t)get(callee, "slot_jump"), *word = NULL;
	struct hook_leftover left;
	struct hook_state state;
	enum hook_result results[2];

	CHECK_EQ(0, engine_open(&ops));
	keep_data(&data[0], "libslots-lazy.so");
	CHECK_EQ(2, put_on(callee, results));
	for (size_t i = 0; i + 8 <= data[0].n; i += 8) {
		__u64 is, was;

		memcpy(&is, data[0].at + i, 8);
		memcpy(&was, data[0].was + i, 8);
		/* the words of both functions have changed: the second one is slot_jump's */
		if (is != was && was != (__u64)(size_t)get(callee, "slot_short")) {
			word = (__u64 *)(size_t)(data[0].at + i);
			pad = is;
		}
	}
	CHECK(word && pad != function);
	*word = function;
	CHECK_EQ(0, engine_check(&state));
	CHECK(*word != function);
	CHECK_EQ(0, engine_remove(&left));
	CHECK_EQ(function, *word);
	expect_calls(get(lib, "by_slot2"), 2, 0);
	expect_calls(get(lib, "by_slot"), 1, 0);
}

/* A forked child has its parent's slots, and goes through them. */
static void test_fork(void)
{
	void *callee = load("libslots.so", RTLD_NOW), *lib = load("libslots-now.so", RTLD_NOW);
	struct hook_leftover left;
	enum hook_result results[2];
	int status;
	pid_t pid;

	CHECK_EQ(0, engine_open(&ops));
	CHECK_EQ(2, put_on(callee, results));
	pid = fork();
	if (!pid) {
		expect_calls(get(lib, "by_slot"), 1, 0);
		CHECK_EQ(0, engine_open(&ops));
		CHECK_EQ(2, put_on(callee, results));
		expect_calls(get(lib, "by_slot"), 1, 1);
		CHECK_EQ(0, engine_remove(&left));
		expect_calls(get(lib, "by_slot"), 1, 0);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	expect_calls(get(lib, "by_slot"), 1, 1);
	CHECK_EQ(0, engine_remove(&left));
}

#define T(name) run(#name, test_##name, only)
int main(int argc, char **argv)
{
	const char *only = NULL;
	char *slash;

	snprintf(folder, sizeof(folder), "%s", argv[0]);
	slash = strrchr(folder, '/');
	if (slash)
		*slash = 0;
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--all"))
			all = true;
		else
			only = argv[i];
	T(ways);
	T(counted);
	T(under_fire);
	T(loaded_later);
	T(two_definitions);
	T(bound_meanwhile);
	T(fork);
	return failed;
}
