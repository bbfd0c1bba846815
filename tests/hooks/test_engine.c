/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_engine.c - hooks are put on and taken off, under fire, beside other tracers, and where it is not possible.
 * test_engine [--all] [NAME].
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "victims.h"

/* ---- on and off under fire ---- */

#define CALLERS 16
static atomic_int stop, waiting;
static atomic_ulong made;

static void *caller(void *arg)
{
	unsigned long n = 0;

	(void)arg;
	while (!stop) {
		if (victim_add((long)n, 1) != (long)n + 1 || victim_tail(1, 1) != 3 ||
		    victim_call(call_add, NULL) != 4 || victim_recurse(2) != 102)
			wrong++;
		n++;
	}
	made += n;
	return NULL;
}

static void test_under_fire(void)
{
	void *functions[] = { (void *)victim_add, (void *)victim_tail, (void *)victim_call,
			      (void *)victim_recurse };
	int cycles = (all ? 5000 : 1000) / SLOWER;
	unsigned char before[4][16];
	struct hook_leftover left;
	pthread_t t[CALLERS];
	__u64 kept = 0;

	for (int i = 0; i < 4; i++)
		memcpy(before[i], functions[i], 16);
	CHECK_EQ(0, engine_open(&counting));
	for (int i = 0; i < CALLERS; i++)
		CHECK(!pthread_create(&t[i], NULL, caller, NULL));
	for (int c = 0; c < cycles; c++) {
		for (int i = 0; i < 4; i++)
			ON(functions[i], i);
		for (volatile int w = 0; w < c % 512; w++)
			;
		CHECK_EQ(0, engine_remove(&left));
		CHECK_EQ(0, left.foreign + left.gone);
		CHECK(!HOOK_RA_ON_STACK || !left.inside);
		for (int i = 0; i < 4; i++)
			CHECK(!memcmp(before[i], functions[i], 16));
		if (c == cycles / 10)
			kept = left.kept_bytes;
		if (c % 100 == 99)
			sched_yield();
	}
	/* No growth. */
	CHECK_EQ(kept, left.kept_bytes);
	stop = 1;
	for (int i = 0; i < CALLERS; i++)
		pthread_join(t[i], NULL);
	CHECK_EQ(0, wrong);
	CHECK(entries(0) > 0);
	for (int i = 0; i < 4; i++)
		CHECK(leaves(i) <= entries(i));
	/* Each call that was entered has ended in one way. */
	CHECK_EQ(entries(0) + entries(1) + entries(2) + entries(3),
		 leaves(0) + leaves(1) + leaves(2) + leaves(3) + lefts);
}

/* ---- threads that sleep inside ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static long sleep_inside(void *arg)
{
	long depth = (long)arg;

	if (depth)
		return victim_call(sleep_inside, (void *)(depth - 1));
	waiting++;
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	return 1000;
}

static long results[8];

static void *sleeper(void *arg)
{
	results[(long)arg] = victim_call(sleep_inside, (void *)3L);
	return NULL;
}

extern char hooks_region[];

static void test_sleepers(void)
{
	struct hook_leftover left;
	unsigned char before[16];
	pthread_t t[8];

	memcpy(before, (void *)victim_call, 16);
	CHECK_EQ(0, engine_open(&counting));
	ON(victim_call, 1);
	pthread_mutex_lock(&lock);
	for (long i = 0; i < 8; i++)
		CHECK(!pthread_create(&t[i], NULL, sleeper, (void *)i));
	while (waiting < 8)
		usleep(1000);
	CHECK_EQ(0, engine_remove(&left));
	CHECK_EQ(HOOK_RA_ON_STACK ? 32 : 0, left.put_back);
	CHECK_EQ(HOOK_RA_ON_STACK ? 0 : 32, left.inside);
	CHECK_EQ(32, lefts);
	CHECK(!memcmp(before, (void *)victim_call, 16));
	/* Where return addresses are on the stack, nothing needs the stubs any more. */
	CHECK(!HOOK_RA_ON_STACK ||
	      mmap(hooks_region, 4096 * 32768 + 16384, PROT_NONE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == hooks_region);
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < 8; i++)
		pthread_join(t[i], NULL);
	for (int i = 0; i < 8; i++)
		CHECK_EQ(1004, results[i]);
	CHECK_EQ(0, leaves(1));
}

#if defined(__x86_64__)
/* Asleep in a function that another hooked one has jumped to: one place, two return addresses. */
__asm__(".text\n.balign 64\n.globl jumps_on\n.type jumps_on, @function\n"
	"jumps_on: push %rbp\n mov %rsp, %rbp\n push %r12\n pop %r12\n pop %rbp\n jmp "
	"victim_call@PLT\n"
	".size jumps_on, . - jumps_on\n.balign 64\n");
long jumps_on(long (*)(void *), void *);

static void *tail_sleeper(void *arg)
{
	results[(long)arg] = jumps_on(sleep_inside, NULL);
	return NULL;
}

static void test_tail_sleeper(void)
{
	struct hook_leftover left;
	pthread_t t;

	CHECK_EQ(0, engine_open(&counting));
	ON(victim_call, 1);
	ON(jumps_on, 2);
	pthread_mutex_lock(&lock);
	CHECK(!pthread_create(&t, NULL, tail_sleeper, NULL));
	while (waiting < 1)
		usleep(1000);
	CHECK_EQ(0, engine_remove(&left));
	CHECK_EQ(2, left.put_back);
	CHECK_EQ(0, left.inside);
	pthread_mutex_unlock(&lock);
	pthread_join(t, NULL);
	CHECK_EQ(1001, results[0]);
	CHECK_EQ(0, leaves(1) + leaves(2));
	/* And as it should be, without the removal. */
	ON(victim_call, 1);
	ON(jumps_on, 2);
	CHECK_EQ(1001, jumps_on(sleep_inside, NULL));
	CHECK_EQ(1, leaves(1));
	CHECK_EQ(1, leaves(2));
}

#endif

/* ---- other tracers, debuggers ---- */

#if defined(__x86_64__)
static void poke(void *at, unsigned char byte)
{
	char *page = (char *)((uintptr_t)at & ~4095UL);

	CHECK(!mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC));
	*(volatile unsigned char *)at = byte;
	CHECK(!mprotect(page, 8192, PROT_READ | PROT_EXEC));
}

static void look_there(void)
{
	engine_interrupted();
}

/* How many bytes of a stack engine_interrupted() changes. */
static size_t stack_of_interrupted(void)
{
	static unsigned char stack[16384];
	ucontext_t there, home;
	size_t unused = 0;

	memset(stack, 0xa5, sizeof(stack));
	CHECK(!getcontext(&there));
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = sizeof(stack);
	there.uc_link = &home;
	makecontext(&there, look_there, 0);
	CHECK(!swapcontext(&home, &there));
	while (unused < sizeof(stack) && stack[unused] == 0xa5)
		unused++;
	return sizeof(stack) - unused;
}

static void test_other_tracer(void)
{
	unsigned char *f = (void *)victim_add, was = f[0];
	struct hook_leftover left;
	struct hook_state s;

	CHECK_EQ(0, engine_open(&counting));
	/* int3 is there before: refused, and left. */
	poke(f, 0xcc);
	CHECK_EQ(HOOK_BREAKPOINT, hook_one(f, 1, 0));
	CHECK_EQ(0xcc, f[0]);
	poke(f, was);
	/* It comes, and goes: the file's byte is put back, and so is the hook. */
	ON(f, 1);
	CHECK_EQ(0, engine_check(&s));
	CHECK_EQ(1, s.on);
	CHECK_EQ(0, s.interrupted);
	CHECK_EQ(0, engine_interrupted());
	poke(f, 0xcc);
	CHECK_EQ(0, engine_check(&s));
	CHECK_EQ(0, s.on);
	CHECK_EQ(1, s.foreign);
	CHECK_EQ(1, s.interrupted);
	CHECK_EQ(0xcc, f[0]);
	poke(f, was);
	CHECK_EQ(0, engine_check(&s));
	CHECK_EQ(1, s.on);
	CHECK_EQ(1, s.rewritten);
	CHECK_EQ(1, s.interrupted); /* a function, however often */
	CHECK_EQ(0xe9, f[0]);
	CHECK_EQ(3, victim_add(1, 2));
	CHECK_EQ(1, entries(1));
	/* It is there at the end: left alone. */
	poke(f, 0xcc);
	CHECK_EQ(0, engine_remove(&left));
	/* It comes and goes between two checks, or has just come: known without a check, on little stack. */
	for (int gone = 0; gone < 2; gone++) {
		poke(f, was);
		CHECK_EQ(0, engine_open(&counting));
		ON(f, 1);
		CHECK_EQ(0, engine_interrupted());
		poke(f, gone ? was : 0xcc);
		CHECK(stack_of_interrupted() < 1024);
		CHECK_EQ(1, engine_interrupted());
		CHECK_EQ(gone ? was : 0xcc, f[0]);
		CHECK_EQ(0, engine_check(&s));
		CHECK_EQ(1, s.interrupted);
		poke(f, 0xcc);
		CHECK_EQ(0, engine_remove(&left));
	}
	CHECK_EQ(1, left.foreign);
	CHECK_EQ(0xcc, f[0]);
	poke(f, was);
	CHECK_EQ(3, victim_add(1, 2));
	/* A debugger had our byte in its own copy, and puts it back after we have gone. */
	poke(f, 0xe9);
	CHECK_EQ(3, victim_add(1, 2));
	CHECK_EQ(1, entries(1));
	poke(f, was);
	/* The file has other bytes than memory. */
	struct hook_spec spec = { .address = (__u64)(size_t)f, .id = 1, .nfile = 16 };
	enum hook_result result;

	memcpy(spec.file, f, 16);
	CHECK_EQ(1, engine_install(&spec, 1, &result));
	CHECK_EQ(0, engine_remove(&left));
	spec.file[7] ^= 1;
	spec.address = (__u64)(size_t)victim_call;
	CHECK_EQ(0, engine_install(&spec, 1, &result));
	CHECK_EQ(HOOK_DIFFERS, result);
}

/* A breakpoint within the five bytes changes where the jump lands: it is reached all the same. */
static volatile int trapped;
static void *trap_at;

static void on_trap(int s, siginfo_t *i, void *u)
{
	ucontext_t *c = u;

	(void)s;
	(void)i;
	CHECK((void *)(c->uc_mcontext.gregs[REG_RIP] - 1) == trap_at);
	trapped++;
	/* what a debugger does: it restores the true byte for now */
	poke(trap_at, 0x41);
	c->uc_mcontext.gregs[REG_RIP]--;
}

__asm__(".text\n.balign 4096\n.skip 64\n.globl typical\n.type typical, @function\n"
	"typical: push %rbp\n mov %rsp, %rbp\n push %r15\n push %r14\n lea 1(%rdi), %rax\n"
	" pop %r14\n pop %r15\n pop %rbp\n ret\n.size typical, . - typical\n .balign 4096\n");
long typical(long);

static void test_breakpoint_inside(void)
{
	struct sigaction s = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };
	unsigned char *f = (void *)typical;

	CHECK_EQ(0x41, f[4]);
	CHECK(!sigaction(SIGTRAP, &s, NULL));
	CHECK_EQ(0, engine_open(&counting));
	ON(f, 1);
	for (int i = 0; i < 10; i++) {
		trap_at = f + 4;
		poke(trap_at, 0xcc);
		CHECK_EQ(6, typical(5));
		CHECK_EQ(i + 1, trapped);
		CHECK_EQ(i + 1, entries(1));
	}
}

/* ---- where jumps land ---- */

static void test_zone_spellings(void)
{
	unsigned char *f = (void *)typical, was[16];
	struct hook_leftover left;
	int displacement;

	memcpy(was, f, 16);
	memcpy(&displacement, f + 1, 4);
	/* Its own zone is not free, the next spelling's is. */
	for (int i = 0; i < 3; i++) {
		unsigned char *land = f + 5 + displacement + ((long)i << 25);

		CHECK(mmap((void *)((uintptr_t)land & ~4095UL), 8192, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != MAP_FAILED);
	}
	CHECK_EQ(0, engine_open(&counting));
	ON(f, 1);
	CHECK_EQ(0x47, f[4]);
	for (int i = 0; i < 100; i++)
		CHECK_EQ(6, typical(5));
	CHECK_EQ(100, leaves(1));
	CHECK_EQ(0, engine_remove(&left));
	CHECK(!memcmp(was, f, 16));
	CHECK_EQ(6, typical(5));
}

static void test_zone_none(void)
{
	unsigned char *f = (void *)typical;
	int displacement;

	memcpy(&displacement, f + 1, 4);
	for (int i = 0; i < 8; i++) {
		unsigned char *land = f + 5 + displacement + ((long)i << 25);

		CHECK(mmap((void *)((uintptr_t)land & ~4095UL), 8192, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != MAP_FAILED);
	}
	CHECK_EQ(0, engine_open(&counting));
	CHECK_EQ(HOOK_ZONE, hook_one(f, 1, 0));
	CHECK_EQ(0x55, f[0]);
	CHECK_EQ(6, typical(5));
}

/* ---- what is refused, and what is moved ---- */

__asm__(".text\n.balign 64\n"
	"odd_ret: ret\n .balign 64\n"
	"odd_short: xor %eax, %eax\n ret\n .balign 64\n"
	"odd_jmp: jmp odd_target\n .balign 64\n"
	"odd_call: call odd_target\n ret\n .balign 64\n"
	"odd_jcc: jz odd_target\n ret\n .balign 64\n"
	"odd_target: mov $3, %eax\n ret\n .balign 64\n"
	"odd_pop: pop %rax\n push %rax\n mov $3, %eax\n ret\n .balign 64\n"
	"odd_vex: vmovaps %ymm0, %ymm0\n mov $3, %eax\n ret\n .balign 64\n"
	"odd_loop: sub $1, %rdi\n test %rdi, %rdi\n jnz odd_loop\n mov $3, %eax\n ret\n .balign "
	"64\n"
	"odd_endbr: endbr64\n push %rbp\n mov %rsp, %rbp\n push %r12\n mov $3, %eax\n pop %r12\n "
	"pop %rbp\n ret\n .balign 64\n"
	"odd_rip: mov odd_data(%rip), %eax\n add $1, %eax\n nop\n ret\n .balign 64\n"
	"odd_rip_store: movl $3, odd_data(%rip)\n mov odd_data(%rip), %eax\n ret\n .balign 64\n"
	"odd_inside: push %rbp\n 1: mov %rsp, %rbp\n push %r15\n pop %r15\n pop %rbp\n mov $3, "
	"%eax\n ret\n"
	"odd_into: push %rbp\n jmp 1b\n .balign 64\n"
	".section .bss\n odd_data: .zero 8\n .text\n");
long odd_ret(void), odd_short(void), odd_jmp(void), odd_call(void), odd_jcc(void), odd_target(void),
	odd_pop(void), odd_vex(void), odd_loop(long), odd_endbr(void), odd_rip(void),
	odd_rip_store(void), odd_inside(void), odd_into(void);

static enum hook_result with_size(void *f, __u64 size)
{
	struct hook_spec spec = { .address = (__u64)(size_t)f, .id = 9, .size = size };
	enum hook_result result;

	engine_install(&spec, 1, &result);
	return result;
}

static void test_refused(void)
{
	struct hook_leftover left;

	CHECK_EQ(0, engine_open(&counting));
	CHECK_EQ(HOOK_BRANCH, hook_one(odd_ret, 1, 0));
	CHECK_EQ(HOOK_SHORT, hook_one(odd_short, 1, 0));
	CHECK_EQ(HOOK_BRANCH, hook_one(odd_jmp, 1, 0));
	CHECK_EQ(HOOK_BRANCH, hook_one(odd_call, 1, 0));
	CHECK_EQ(HOOK_BRANCH, hook_one(odd_jcc, 1, 0));
	CHECK_EQ(HOOK_UNKNOWN, hook_one(odd_pop, 1, 0));
	CHECK_EQ(HOOK_UNKNOWN, hook_one(odd_vex, 1, 0));
	CHECK_EQ(HOOK_SHORT, with_size(odd_target, 4));
	CHECK_EQ(HOOK_LOOP, with_size(odd_loop, 16));
	CHECK_EQ(HOOK_NOT_CODE, hook_one(&all, 1, 0));
	CHECK_EQ(HOOK_NOT_CODE, hook_one((void *)8, 1, 0));
	for (int i = 0; i < HOOK_RESULTS; i++)
		CHECK(strlen(hook_result_text((enum hook_result)i)) > 8);
	ON(odd_endbr, 2);
	CHECK_EQ(3, odd_endbr());
	CHECK_EQ(1, leaves(2));
	/* The fourth byte of a displacement is 0: it may land on this program itself. */
	if (!hook_one(odd_rip, 3, 0)) {
		CHECK_EQ(1, odd_rip());
		CHECK_EQ(1, leaves(3));
	}
	if (!hook_one(odd_rip_store, 4, 0)) {
		CHECK_EQ(3, odd_rip_store());
		CHECK_EQ(1, leaves(4));
	}
	/* Jumped into behind the first byte: nothing has changed there. */
	if (!hook_one(odd_inside, 5, 0)) {
		CHECK_EQ(3, odd_inside());
		CHECK_EQ(3, odd_into());
		CHECK_EQ(1, leaves(5));
	}
	CHECK_EQ(0, engine_remove(&left));
	CHECK_EQ(3, odd_endbr());
	CHECK_EQ(0, (long)wrong);
}

#endif

/* ---- where no hook is possible ---- */

static __u64 some_shadow_stack(void)
{
	return 0x7fff00001000;
}

/* Shadow stacks (CET): nothing is touched, and the reason has an error of its own. */
static void test_shadow_stack(void)
{
	static __u8 was[16];
	__u64 (*own)(void) = engine_shadow_stack;

	memcpy(was, (void *)victim_add, sizeof(was));
	CHECK_EQ(0, own()); /* none here, or the other tests could not be run */
	engine_shadow_stack = some_shadow_stack;
	CHECK_EQ(-ENOTSUP, engine_open(&counting));
	CHECK(!engine_live);
	CHECK(!memcmp(was, (void *)victim_add, sizeof(was)));
	CHECK_EQ(5, victim_add(2, 3));
	engine_shadow_stack = own;
	CHECK_EQ(0, engine_open(&counting));
	ON(victim_add, 1);
	CHECK_EQ(5, victim_add(2, 3));
	CHECK_EQ(1, leaves(1));
}

/* From this call on, this system call fails unless its third argument is `but`. */
static void forbid(unsigned int nr, unsigned int but)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, but, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { sizeof(code) / sizeof(code[0]), code };

	CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter));
}

/* A process that may not write to its code: nothing leads to what was not written, now or later. */
static void test_no_write(void)
{
	struct hook_spec spec = { .address = (__u64)(size_t)victim_add, .id = 1 };
	enum hook_result result;

	CHECK_EQ(0, engine_open(&counting));
	/* the byte of the jump could be written, and what it leads to not */
	forbid(SYS_pwrite64, 1);
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(HOOK_NO_WRITE, hook_one((void *)victim_add, 1, 0));
		CHECK(*(__u8 *)plain((void *)victim_add) != 0xe9);
		CHECK_EQ(5, victim_add(2, 3));
	}
	CHECK_EQ(0, leaves(1));
	forbid(SYS_openat, ~0u);
	CHECK_EQ(-EACCES, engine_install(&spec, 1, &result));
	CHECK_EQ(5, victim_add(2, 3));
}

/* ---- a library that goes ---- */

#if defined(__x86_64__)
static void test_dlclose(void)
{
	struct hook_leftover left;
	struct hook_state s;
	char path[4096];
	Dl_info info;
	long (*add_there)(long, long);
	void *lib, *was;

	CHECK(dladdr((void *)dlsym(RTLD_DEFAULT, "victim_add"), &info));
	snprintf(path, sizeof(path), "%s.copy", info.dli_fname);
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!lib) {
		printf("%s\n", dlerror());
		_exit(77);
	}
	add_there = (long (*)(long, long))dlsym(lib, "victim_add");
	CHECK((void *)add_there != (void *)victim_add);
	CHECK_EQ(0, engine_open(&counting));
	ON(add_there, 1);
	ON(victim_add, 2);
	CHECK_EQ(3, add_there(1, 2));
	was = (void *)add_there;
	dlclose(lib);
#if defined(__x86_64__)
	/* What became of a function is known, also where one before it has gone. */
	poke((void *)victim_add, 0xcc);
	CHECK_EQ(1, engine_interrupted());
	poke((void *)victim_add, 0xe9);
#endif
	CHECK_EQ(0, engine_check(&s));
	CHECK_EQ(1, s.gone);
	CHECK_EQ(1, s.on);
	CHECK_EQ(3, victim_add(1, 2));
	CHECK_EQ(1, leaves(2));
	/* It comes back, most likely to the same place. */
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	add_there = (long (*)(long, long))dlsym(lib, "victim_add");
	CHECK_EQ(3, add_there(1, 2));
	CHECK_EQ(1, leaves(1));
	if ((void *)add_there == was) {
		ON(add_there, 1);
		CHECK_EQ(3, add_there(1, 2));
		CHECK_EQ(2, leaves(1));
	}
	dlclose(lib);
	CHECK_EQ(0, engine_remove(&left));
	CHECK_EQ(3, victim_add(1, 2));
}

/*
 * Libraries that come and go, each time at other addresses, with more functions in all than the engine
 * knows at a time: all are hooked, calls have their entries, and what the engine maps does not grow. A
 * page of a file stands for a library.
 */
#define PAGES_EACH 4
#define FUNCS_EACH 128 /* one every 128 bytes */
static void test_libraries_without_end(void)
{
	static const unsigned char code[] = { 0x55, 0x48, 0x89, 0xe5, 0x41, 0x57, 0x41,
					      0x5f, 0x5d, 0x8d, 0x47, 0x01, 0xc3 };
	static struct hook_spec specs[FUNCS_EACH];
	static enum hook_result outcome[FUNCS_EACH];
	unsigned int rounds = 3 * HOOK_FUNCS / FUNCS_EACH + 1, done = 0;
	int fd = (int)syscall(SYS_memfd_create, "library", 1);
	size_t bytes = PAGES_EACH * 4096;
	char *room =
		mmap(NULL, (rounds + 1) * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	__u64 most = 0;

	CHECK(fd >= 0 && room != MAP_FAILED);
	CHECK(!ftruncate(fd, (off_t)bytes));
	for (int i = 0; i < FUNCS_EACH; i++)
		CHECK(pwrite(fd, code, sizeof(code), i * 128) == sizeof(code));
	CHECK_EQ(0, engine_open(&counting));
	for (unsigned int round = 0; round < rounds; round++) {
		/* the last ones all at one place */
		char *at = room + (round < rounds - 8 ? round : rounds) * bytes;
		struct hook_leftover left;
		int err;

		CHECK(mmap(at, bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0) == at);
		for (unsigned int i = 0; i < FUNCS_EACH; i++)
			specs[i] = (struct hook_spec){ .address = (__u64)(uintptr_t)(at + i * 128),
						       .size = 128,
						       .id = 1 };
		err = engine_install(specs, FUNCS_EACH, outcome);
		for (int i = 0; i < FUNCS_EACH; i++)
			CHECK_EQ(HOOK_ON, outcome[i]);
		CHECK_EQ(FUNCS_EACH, err);
		for (int i = 0; i < FUNCS_EACH; i++)
			CHECK_EQ(i + 1, ((int (*)(int))(void *)(at + i * 128))(i));
		done += FUNCS_EACH;
		CHECK_EQ(done, entries(1));
		CHECK_EQ(done, leaves(1));
		if (round % 16 == 15) {
			CHECK_EQ(0, engine_remove(&left));
			CHECK(!memcmp(at, code, sizeof(code)));
			/* the most until all numbers have been given out once, and later */
			if (round * FUNCS_EACH >= HOOK_FUNCS)
				CHECK(left.kept_bytes <= most + (64 << 10));
			else if (left.kept_bytes > most)
				most = left.kept_bytes;
		}
		CHECK(mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
		      at);
	}
	close(fd);
}

/* A program with more functions than there is room for: those that come first have their hooks, also where they
 * are loaded last. */
static void test_room_is_kept(void)
{
	static const unsigned char code[] = { 0x55, 0x48, 0x89, 0xe5, 0x41, 0x57, 0x41,
					      0x5f, 0x5d, 0x8d, 0x47, 0x01, 0xc3 };
	static struct hook_spec specs[FUNCS_EACH];
	static enum hook_result outcome[FUNCS_EACH];
	unsigned int rounds = HOOK_FUNCS / FUNCS_EACH + 1, on = 0, none = 0;
	int fd = (int)syscall(SYS_memfd_create, "library", 1);
	size_t bytes = PAGES_EACH * 4096;
	char *room = mmap(NULL, rounds * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(fd >= 0 && room != MAP_FAILED);
	CHECK(!ftruncate(fd, (off_t)bytes));
	for (int i = 0; i < FUNCS_EACH; i++)
		CHECK(pwrite(fd, code, sizeof(code), i * 128) == sizeof(code));
	CHECK_EQ(0, engine_open(&counting));
	for (unsigned int round = 0; round < rounds; round++) {
		char *at = room + round * bytes;
		bool first = round + 1 == rounds;

		CHECK(mmap(at, bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0) == at);
		for (unsigned int i = 0; i < FUNCS_EACH; i++)
			specs[i] = (struct hook_spec){ .address = (__u64)(uintptr_t)(at + i * 128),
						       .size = 128,
						       .id = first,
						       .flags = first ? HOOK_FIRST : 0 };
		CHECK(engine_install(specs, FUNCS_EACH, outcome) >= 0);
		for (unsigned int i = 0; i < FUNCS_EACH && !first; i++) {
			on += outcome[i] == HOOK_ON;
			none += outcome[i] == HOOK_NO_MEMORY;
		}
		for (unsigned int i = 0; i < FUNCS_EACH && first; i++) {
			CHECK_EQ(HOOK_ON, outcome[i]);
			CHECK_EQ((int)i + 1, ((int (*)(int))(void *)(at + i * 128))((int)i));
		}
	}
	CHECK_EQ(HOOK_FUNCS - HOOK_KEPT, on);
	CHECK_EQ(HOOK_FUNCS, on + none);
	CHECK(on >= 16384);
	CHECK_EQ(FUNCS_EACH, leaves(1));
	close(fd);
}
#endif

int main(int argc, char **argv)
{
	const char *only = arguments(argc, argv);

	T(under_fire);
	T(sleepers);
	T(shadow_stack);
	T(no_write);
#if defined(__x86_64__)
	/* about jumps, and about what is at a call's place on the stack */
	T(tail_sleeper);
	T(other_tracer);
	T(breakpoint_inside);
	T(zone_spellings);
	T(zone_none);
	T(refused);
	T(dlclose);
	T(libraries_without_end);
	T(room_is_kept);
#endif
	return failed;
}
