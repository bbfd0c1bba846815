/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_snapshot.c - which call a stack shows (user/stuck/stuck_call.c), on code and stacks made
 * by hand and on hostile ones; samples of running threads (user/source/bpf/snapshot_perf.c); and
 * unwinding of a thread from what is no stack at all.
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../user/api/api.h"
#include "../../user/resolve/stacks/unwind.h"
#include "../../user/stuck/stuck_call.h"
#include "unit.h"

#define LIB 0x700000000000ULL /* a library with three functions, 0x100 bytes each */
#define APP 0x400000ULL	      /* a program that calls it */
#define CODE_BYTES 0x1000
#define STACK 0x7ffd00000000ULL

static uint8_t lib[CODE_BYTES], app[CODE_BYTES];
static bool deaf; /* nothing can be read */

/* The memory of the made process. */
static int fake_read(void *ctx, uint64_t addr, void *buf, size_t len)
{
	(void)ctx;
	if (deaf)
		return -EFAULT;
	if (addr >= LIB && addr - LIB < CODE_BYTES && len <= CODE_BYTES - (addr - LIB))
		memcpy(buf, lib + (addr - LIB), len);
	else if (addr >= APP && addr - APP < CODE_BYTES && len <= CODE_BYTES - (addr - APP))
		memcpy(buf, app + (addr - APP), len);
	else
		return -EFAULT;
	return 0;
}

static struct snapshot_func funcs[6];
static struct snapshot_range code = { LIB, LIB + CODE_BYTES };
static struct snapshot_process process = {
	.pid = 1, .funcs = funcs, .nfuncs = 6, .code = &code, .ncode = 1
};
static int sync_row, query_row, internal_row, callback_row, launch_row;

static void setup(void)
{
	bool twin;

	sync_row = api_lookup("cudaStreamSynchronize", 13000, &twin);
	query_row = api_lookup("cuStreamQuery", 13000, &twin);
	internal_row = api_lookup("__cudaRegisterFatBinary", 13000, &twin);
	callback_row = api_lookup("cuOccupancyMaxPotentialBlockSize", 13000, &twin);
	launch_row = api_lookup("cudaLaunchKernel", 13000, &twin);
	funcs[0] = (struct snapshot_func){ .start = LIB + 0x100,
					   .size = 0x100,
					   .func = (uint16_t)sync_row };
	funcs[1] = (struct snapshot_func){ .start = LIB + 0x200,
					   .size = 0x100,
					   .func = (uint16_t)query_row };
	funcs[2] = (struct snapshot_func){ .start = LIB + 0x300,
					   .size = 0x100,
					   .func = (uint16_t)internal_row };
	funcs[3] = (struct snapshot_func){ .start = LIB + 0x400,
					   .size = 0x100,
					   .func = (uint16_t)callback_row };
	funcs[4] = (struct snapshot_func){ .start = LIB + 0x500,
					   .size = 0,
					   .func = (uint16_t)launch_row };
	funcs[5] = (struct snapshot_func){
		.start = LIB + 0x600, .size = 0x100, .func = (uint16_t)sync_row, .per_thread = true
	};
}

static int of_frames(struct stuck_call *c, const struct stuck_frame *f, int n)
{
	memset(c, 0xee, sizeof(*c));
	return stuck_call_of_frames(c, &process, f, n, fake_read, NULL);
}

/* Frames whose code lies in functions of the table. */
static void by_code(void)
{
	struct stuck_call c;

	/* the library's own code, the driver's function, the runtime's, the program */
	struct stuck_frame nested[] = {
		{ LIB + 0x800, STACK, true },	      { LIB + 0x210, STACK + 0x40, false },
		{ LIB + 0x110, STACK + 0x80, false }, { APP + 0x10, STACK + 0xc0, false },
		{ APP + 0x20, STACK + 0xe0, false },
	};
	CHECK(of_frames(&c, nested, 5));
	CHECK_EQ(sync_row, c.func);
	CHECK_EQ(3, c.caller);
	CHECK_EQ(APP + 0x10, c.ip);
	CHECK_EQ(STACK + 0xc0, c.sp);
	CHECK(!c.by_scan && !c.per_thread);

	/* the same, from where the unwinder lost its way: the caller is not known */
	CHECK(of_frames(&c, nested, 3));
	CHECK_EQ(sync_row, c.func);
	CHECK_EQ(-1, c.caller);
	CHECK(!c.ip);
	CHECK_EQ(STACK + 0x80, c.sp);

	/* nobody is inside a call only because there is CUDA's code below */
	struct stuck_frame internals[] = { { LIB + 0x800, STACK, true },
					   { APP + 0x10, STACK + 8, false } };
	CHECK(!of_frames(&c, internals, 2));
	CHECK(!of_frames(&c, internals, 1));
	CHECK(!of_frames(&c, internals, 0));

	/* a call is the last instruction of its function: the return address is the next one's */
	struct stuck_frame edge[] = { { APP + 0x800, STACK, true },
				      { LIB + 0x200, STACK + 8, false },
				      { APP + 0x10, STACK + 16, false } };
	CHECK(of_frames(&c, edge, 3) && c.func == sync_row);
	/* but a thread that stands there is in the next one */
	edge[1].exact = true;
	CHECK(of_frames(&c, edge, 3) && c.func == query_row);

	/* the twin */
	struct stuck_frame twin[] = { { LIB + 0x6ff, STACK, true },
				      { APP + 0x10, STACK + 8, false } };
	CHECK(of_frames(&c, twin, 2));
	CHECK_EQ(sync_row, c.func);
	CHECK(c.per_thread);

	/* of a function of unknown size only the entry is known */
	struct stuck_frame unsized[] = { { LIB + 0x500, STACK, true },
					 { APP + 0x10, STACK + 8, false } };
	CHECK(of_frames(&c, unsized, 2) && c.func == launch_row);
	unsized[0].ip++;
	CHECK(!of_frames(&c, unsized, 2));
}

/* The thread is not shown inside a function that calls the program back; it is shown inside an
 * internal function only if there is no other. */
static void by_rank(void)
{
	struct stuck_call c;
	struct stuck_frame back[] = {
		{ APP + 0x800, STACK, true },
		{ APP + 0x700, STACK + 8, false },
		{ LIB + 0x410, STACK + 16, false },
		{ APP + 0x10, STACK + 24, false },
	};

	CHECK(!of_frames(&c, back, 4));
	/* a call of the callback's own */
	back[0] = (struct stuck_frame){ LIB + 0x110, STACK, true };
	CHECK(of_frames(&c, back, 4));
	CHECK_EQ(sync_row, c.func);
	CHECK_EQ(STACK + 8, c.sp);

	struct stuck_frame inner[] = {
		{ LIB + 0x210, STACK, true },
		{ LIB + 0x310, STACK + 8, false },
		{ APP + 0x10, STACK + 16, false },
	};
	CHECK(of_frames(&c, inner, 3));
	CHECK_EQ(query_row, c.func);
	CHECK_EQ(STACK + 8, c.sp);
	inner[0].ip = LIB + 0x800;
	CHECK(of_frames(&c, inner, 3));
	CHECK_EQ(internal_row, c.func);
	CHECK_EQ(STACK + 16, c.sp);
}

#if defined(__x86_64__)

static void put_call(uint64_t ret, uint64_t target)
{
	int32_t rel = (int32_t)(target - ret);

	app[ret - 5 - APP] = 0xe8;
	memcpy(&app[ret - 4 - APP], &rel, 4);
}

/* Calls of functions that have jumped on: told by the instruction that called. */
static void by_instruction(void)
{
	struct stuck_frame f[] = { { LIB + 0x800, STACK, true }, { APP + 0x10, STACK + 8, false } };
	/* endbr64; bnd jmp *[rip + disp32] */
	static const uint8_t stub[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25 };
	uint64_t target;
	struct stuck_call c;
	int32_t disp;

	memset(app, 0x90, sizeof(app));
	put_call(APP + 0x10, LIB + 0x100);
	/* no program lies that near to a library, so by way of its own stub */
	put_call(APP + 0x10, APP + 0x200);
	memcpy(&app[0x200], stub, sizeof(stub));
	disp = 0x300 - (0x200 + 11);
	memcpy(&app[0x207], &disp, 4);
	target = LIB + 0x100;
	memcpy(&app[0x300], &target, 8);
	CHECK(of_frames(&c, f, 2));
	CHECK_EQ(sync_row, c.func);
	CHECK_EQ(1, c.caller);
	CHECK_EQ(STACK + 8, c.sp);
	CHECK_EQ(APP + 0x10, c.ip);
	CHECK(!c.by_scan);
	/* into the middle of a function is no call of it */
	target = LIB + 0x101;
	memcpy(&app[0x300], &target, 8);
	CHECK(!of_frames(&c, f, 2));
	/* an interrupted frame has called nobody */
	target = LIB + 0x100;
	memcpy(&app[0x300], &target, 8);
	f[1].exact = true;
	CHECK(!of_frames(&c, f, 2));
	f[1].exact = false;
	/* an internal function that has jumped on to another one, whose frame this is */
	target = LIB + 0x300;
	memcpy(&app[0x300], &target, 8);
	f[0].ip = LIB + 0x110;
	CHECK(of_frames(&c, f, 2));
	CHECK_EQ(sync_row, c.func);
	CHECK_EQ(STACK + 8, c.sp);
	f[0].ip = LIB + 0x800;
	CHECK(of_frames(&c, f, 2) && c.func == internal_row);
	target = LIB + 0x100;
	memcpy(&app[0x300], &target, 8);
	/* call *[rip + disp32] */
	app[0x0a] = 0xff;
	app[0x0b] = 0x15;
	disp = 0x300 - 0x10;
	memcpy(&app[0x0c], &disp, 4);
	CHECK(of_frames(&c, f, 2) && c.func == sync_row);
	/* a stub that jumps to itself */
	put_call(APP + 0x10, APP + 0x400);
	app[0x400] = 0xe9;
	disp = -5;
	memcpy(&app[0x401], &disp, 4);
	CHECK(!of_frames(&c, f, 2));
	deaf = true;
	CHECK(!of_frames(&c, f, 2));
	deaf = false;
}

/* jmp rel32 */
static void put_jump(uint64_t at, uint64_t target)
{
	int32_t rel = (int32_t)(target - (at + 5));

	lib[at - LIB] = 0xe9;
	memcpy(&lib[at + 1 - LIB], &rel, 4);
}

/* Calls through a register, of functions that have jumped on: told by the jump. */
static void by_jump(void)
{
	struct stuck_frame f[] = { { LIB + 0x910, STACK, true, LIB + 0x900 },
				   { LIB + 0x840, STACK + 8, false, LIB + 0x800 },
				   { APP + 0x10, STACK + 24, false } };
	struct stuck_call c;
	int32_t rel;

	memset(app, 0x90, sizeof(app));
	memset(lib, 0x90, sizeof(lib));
	app[0x0d] = 0x41; /* call *%r11, as in libffi */
	app[0x0e] = 0xff;
	app[0x0f] = 0xd3;
	CHECK(!of_frames(&c, f, 3));
	put_jump(LIB + 0x106, LIB + 0x800);
	CHECK(of_frames(&c, f, 3));
	CHECK_EQ(sync_row, c.func);
	CHECK_EQ(2, c.caller);
	CHECK_EQ(APP + 0x10, c.ip);
	CHECK_EQ(STACK + 24, c.sp);
	CHECK(!c.by_scan && !c.per_thread);
	/* the last bytes of the function, and bytes that are not its own */
	memset(lib, 0x90, sizeof(lib));
	put_jump(LIB + 0x1fb, LIB + 0x800);
	CHECK(of_frames(&c, f, 3) && c.func == sync_row);
	memset(lib, 0x90, sizeof(lib));
	put_jump(LIB + 0x701, LIB + 0x800);
	put_jump(LIB + 0x1fc, LIB + 0x800);
	CHECK(!of_frames(&c, f, 3));
	/* a jump on a condition */
	memset(lib, 0x90, sizeof(lib));
	rel = 0x800 - 0x206;
	memcpy(&lib[0x200], "\x0f\x84", 2);
	memcpy(&lib[0x202], &rel, 4);
	CHECK(of_frames(&c, f, 3) && c.func == query_row && !c.by_scan);
	/* into the middle of the function */
	f[1].begin = LIB + 0x820;
	CHECK(!of_frames(&c, f, 3));
	f[1].begin = 0;
	CHECK(!of_frames(&c, f, 3));
	f[1].begin = LIB + 0x800;
	/* the program's own code, which a library's function jumps to, is not entered from outside */
	f[1].ip = APP + 0x840;
	CHECK(!of_frames(&c, f, 3));
	f[1].ip = LIB + 0x840;
	/* the library's own calls through registers say nothing */
	f[2].ip = LIB + 0xa00;
	CHECK(!of_frames(&c, f, 3));
	f[2].ip = APP + 0x10;
	/* who was interrupted has called nobody */
	f[2].exact = true;
	CHECK(!of_frames(&c, f, 3));
	f[2].exact = false;
	/* two names: a guess */
	put_jump(LIB + 0x110, LIB + 0x800);
	CHECK(of_frames(&c, f, 3) && c.by_scan);
	CHECK_EQ(2, c.caller);
	/* a function and its twin are one name: the usual one */
	memset(lib, 0x90, sizeof(lib));
	put_jump(LIB + 0x606, LIB + 0x800);
	CHECK(of_frames(&c, f, 3) && c.per_thread && !c.by_scan);
	put_jump(LIB + 0x106, LIB + 0x800);
	CHECK(of_frames(&c, f, 3) && !c.per_thread && !c.by_scan);
	CHECK_EQ(sync_row, c.func);
	/* a frame of the table's own function is believed before any jump */
	f[1].ip = LIB + 0x210;
	CHECK(of_frames(&c, f, 3) && c.func == query_row);
	f[1].ip = LIB + 0x840;
	deaf = true;
	CHECK(!of_frames(&c, f, 3));
	deaf = false;
}

static bool by_scan(struct stuck_call *c, const uint64_t *words, size_t n)
{
	memset(c, 0xee, sizeof(*c));
	return stuck_call_by_scan(c, &process, STACK, (const uint8_t *)words, n * 8, fake_read,
				  NULL);
}

static void scan(void)
{
	uint64_t words[] = {
		1, 0, LIB + 0x888, 0x4141414141414141, LIB + 0x110, STACK + 0x40, APP + 0x10, ~0ULL
	};
	struct stuck_call c;

	memset(app, 0x90, sizeof(app));
	memset(lib, 0x90, sizeof(lib));
	/* addresses, but none behind a call */
	CHECK(!by_scan(&c, words, 8));
	lib[0x10e] = 0xff; /* call *%rax */
	lib[0x10f] = 0xd0;
	CHECK(by_scan(&c, words, 8));
	CHECK(c.by_scan);
	CHECK_EQ(sync_row, c.func);
	CHECK_EQ(-1, c.caller);
	CHECK(!c.ip);
	CHECK_EQ(STACK + 40, c.sp);
	/* a call of the function itself says where its frame ends */
	put_call(APP + 0x10, APP + 0x200);
	memcpy(&app[0x200], "\xff\x25\0\0\0\0", 6);
	memcpy(&app[0x206], &(uint64_t){ LIB + 0x200 }, 8);
	CHECK(by_scan(&c, words, 8));
	CHECK(c.by_scan);
	CHECK_EQ(query_row, c.func);
	CHECK_EQ(APP + 0x10, c.ip);
	CHECK_EQ(STACK + 56, c.sp);
	/* which is worth nothing where no word before it points into CUDA's code */
	CHECK(!by_scan(&c, words + 5, 3));
	/* the words of a stack that ends in the middle of one */
	CHECK(!stuck_call_by_scan(&c, &process, STACK, (const uint8_t *)words, 7, fake_read, NULL));
	CHECK(!stuck_call_by_scan(&c, &process, STACK, NULL, 0, fake_read, NULL));
	deaf = true;
	CHECK(!by_scan(&c, words, 8));
	deaf = false;
}

static void hostile(void)
{
	static uint64_t words[2048];
	static struct stuck_frame frames[256];
	int found = 0;

	srandom(4711);
	for (int round = 0; round < 300; round++) {
		struct stuck_call c;

		for (size_t i = 0; i < sizeof(lib); i++) {
			lib[i] = (uint8_t)(random() % 3 ? random() : 0xff);
			app[i] = (uint8_t)(random() % 3 ? random() : 0xe8);
		}
		for (int i = 0; i < 2048; i++) {
			uint64_t at[] = { LIB + (uint64_t)random() % CODE_BYTES,
					  APP + (uint64_t)random() % CODE_BYTES,
					  (uint64_t)random() << 33 ^ (uint64_t)random(),
					  ~0ULL - (uint64_t)random() % 8 };

			words[i] = at[random() % 4];
			if (i < 256)
				frames[i] = (struct stuck_frame){ words[i], words[i] * 3,
								  random() % 2, words[i / 2] };
		}
		if (by_scan(&c, words, 2048)) {
			found++;
			CHECK(c.func < api_nfuncs);
			CHECK_EQ(-1, c.caller);
			CHECK(c.by_scan);
		}
		if (of_frames(&c, frames, 256)) {
			found++;
			CHECK(c.func < api_nfuncs);
			CHECK(c.caller < 256);
			CHECK(!c.by_scan);
		}
	}
	CHECK(found > 100); /* or the above tested nothing */
}

#else
static void by_instruction(void)
{
}
static void by_jump(void)
{
}
static void scan(void)
{
}
static void hostile(void)
{
}
#endif

/* ---- a running thread ---- */

static volatile int spinning, stop;
static pid_t spinner;

__attribute__((noinline)) static void spin_here(volatile uint64_t *mark)
{
	mark[0] = 0x1122334455667788;
	spinner = (pid_t)syscall(SYS_gettid);
	spinning = 1;
	while (!stop)
		;
	mark[1] = 1;
}

static void *spin(void *arg)
{
	volatile uint64_t mark[4];

	spin_here(mark);
	return arg;
}

static void sampling(void)
{
	uint64_t here = (uint64_t)(uintptr_t)spin_here, mark = 0x1122334455667788;
	struct snapshot_thread t = { .tid = 0 };
	bool marked = false;
	pthread_t id;
	int err;

	pthread_create(&id, NULL, spin, NULL);
	while (!spinning)
		;
	err = snapshot_sample(&t, spinner, 2000);
	if (err == -EACCES || err == -EPERM || err == -ENOSYS || err == -ENOENT) {
		printf("sampling is not allowed here: %s\n", strerror(-err));
	} else {
		CHECK(!err);
		CHECK(t.sampled);
		CHECK(t.ip >= here);
		CHECK(t.ip < here + 0x200);
		for (size_t at = 0; at + 8 <= t.len; at += 8)
			marked |= !memcmp(t.stack + at, &mark, 8);
		CHECK(marked);
	}
	free(t.stack);
	stop = 1;
	pthread_join(id, NULL);
	/* a thread that does not run, and one that is not there */
	memset(&t, 0, sizeof(t));
	err = snapshot_sample(&t, spinner, 10);
	CHECK(err < 0 && !t.stack);
}

/* ---- unwinding what is no stack ---- */

static void unwind_hostile(void)
{
	static struct unwind_regs out[UNWIND_MAX];
	static uint8_t stack[65536];
	struct objects *objects = objects_open();
	struct space *space = space_open(objects);
	struct target *target;
	uint32_t flags;

	CHECK(!target_open(&target, getpid(), 0));
	CHECK(!space_refresh(space, target));
	for (int round = 0; round < 200; round++) {
		struct ct_saved saved[CT_MAX_FRAMES];
		struct unwind_regs regs = {
			.ip = (uint64_t)(uintptr_t)unwind_hostile + (uint64_t)random() % 512,
			.sp = (uint64_t)(uintptr_t)stack + (uint64_t)random() % 256 * 8,
			.exact = true
		};
		int n;

		for (size_t i = 0; i < sizeof(stack); i += 8) {
			uint64_t at[] = {
				(uint64_t)(uintptr_t)memcpy + (uint64_t)random() % 4096,
				(uint64_t)(uintptr_t)unwind_hostile + (uint64_t)random() % 4096,
				(uint64_t)(uintptr_t)stack + (uint64_t)random() % sizeof(stack),
				(uint64_t)random() << 33 ^ (uint64_t)random()
			};

			memcpy(stack + i, &at[random() % 4], 8);
		}
		memcpy(regs.regs, stack, sizeof(regs.regs));
		memcpy(&regs.bp, stack + 128, 8);
		memcpy(saved, stack + 256, sizeof(saved));
		n = unwind_thread(space, target, &regs, stack, (size_t)random() % sizeof(stack),
				  saved, (int)(random() % (CT_MAX_FRAMES + 1)), out, UNWIND_MAX,
				  &flags);
		if (CHECK(n >= 1)) {
			if (CHECK(n <= UNWIND_MAX)) {
				CHECK_EQ(regs.ip, out[0].ip);
				CHECK_EQ(regs.sp, out[0].sp);
			}
		}
		for (int i = 1; i < n; i++)
			CHECK(out[i].sp > out[i - 1].sp);
	}
	target_close(target);
	space_close(space);
	objects_close(objects);
}

int main(void)
{
	setup();
	RUN(by_code);
	RUN(by_rank);
	RUN(by_instruction);
	RUN(by_jump);
	RUN(scan);
	RUN(hostile);
	RUN(sampling);
	RUN(unwind_hostile);
	return unit_end();
}
