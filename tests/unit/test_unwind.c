/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_unwind.c - stacks of real programs, built as programs are (-O2, no frame pointers),
 * unwound and named from outside; then the same with every kind of damage.
 */
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../../user/resolve/stacks/cfi.h"
#include "../../user/resolve/stacks/packed.h"
#include "../../user/resolve/stacks/symbols.h"
#include "../../user/util/msg.h"
#include "../../user/resolve/stacks/unwind.h"
#include "../../user/util/io/bounded.h"
#include "shots.h"

static uint8_t buf[SHOTS_RECORD_MAX] __attribute__((aligned(8)));
static struct shot shot;
static struct unwind_frame frames[UNWIND_MAX];

/* One way of building. */
struct build {
	const char *name, *command;
	bool names; /* local functions have their names */
	bool there;
};

#define C "gcc -O2 -fomit-frame-pointer -pthread "
#define CXX C "-c $src/stacks.c -o $out.o && g++ -O2 -fomit-frame-pointer -pthread "
static struct build builds[] = {
	{ "pie", C "-o $out $src/stacks.c", true },
	{ "plain", C "-no-pie -o $out $src/stacks.c", true },
	{ "debug", C "-g -o $out $src/stacks.c", true },
	{ "debug4", C "-gdwarf-4 -gz -no-pie -o $out $src/stacks.c", true },
	{ "static", C "-static -o $out $src/stacks.c", true },
	{ "static-pie", C "-static-pie -o $out $src/stacks.c", true },
	{ "clang", "clang -O2 -fomit-frame-pointer -pthread -o $out $src/stacks.c", true },
	{ "frames", "gcc -O0 -fno-omit-frame-pointer -pthread -o $out $src/stacks.c", true },
	{ "no-eh", C "-g -fno-asynchronous-unwind-tables -fno-unwind-tables -o $out $src/stacks.c",
	  true },
	{ "pointers",
	  "gcc -O1 -fno-omit-frame-pointer -fno-asynchronous-unwind-tables -fno-unwind-tables "
	  "-fcf-protection=none -fno-optimize-sibling-calls -pthread -o $out $src/stacks.c",
	  true },
	{ "bfd-no-hdr", C "-Wl,--no-eh-frame-hdr -o $out $src/stacks.c", true },
	{ "stripped", C "-g -o $out $src/stacks.c && strip $out", false },
	{ "split",
	  C "-g -o $out $src/stacks.c && objcopy --only-keep-debug $out $out.debug && strip $out "
	    "&& objcopy --add-gnu-debuglink=$out.debug $out",
	  true },
	{ "cxx", CXX "-o $out $out.o $src/stacks_cxx.cc", true },
	{ "cxx-static", CXX "-static -o $out $out.o $src/stacks_cxx.cc", true },
};

/* A process under the glass. */
struct glass {
	struct objects *objects;
	struct space *space;
	struct target *target;
	struct shots shots;
};

static struct glass glass_open(const char *build, const char *shape, int n, int limit)
{
	struct glass g = { .objects = objects_open(),
			   .shots = shots_start(build, shape, n, limit) };

	g.space = space_open(g.objects);
	CHECK(shots_next(&g.shots, &shot));
	CHECK(!target_open(&g.target, g.shots.pid, 0));
	objects_set_process(g.objects, target_root(g.target), target_uid(g.target));
	return g;
}

static void glass_close(struct glass *g)
{
	shots_end(&g->shots);
	target_close(g->target);
	space_close(g->space);
	objects_close(g->objects);
}

/* "inner middle main", inlined ones in brackets; up to main, if there is one. */
static const char *names(struct glass *g, int n)
{
	static char text[65536];
	size_t len = 0;

	text[0] = '\0';
	for (int i = 0; i < n; i++) {
		struct space_place p = space_find(g->space, NULL, frames[i].ip - !frames[i].exact);
		struct symbols_place places[SYMBOLS_MAX];
		int m = 1;

		places[0] =
			(struct symbols_place){ .function = p.kind == SPACE_CODE ? "?code" : "?" };
		if (p.kind == SPACE_OBJECT)
			m = symbols_find(p.object, p.address + !frames[i].exact, frames[i].exact,
					 places, SYMBOLS_MAX);
		for (int k = 0; k < m; k++) {
			const char *name = places[k].function ? places[k].function : "-";

			len += (size_t)snprintf(text + len, sizeof(text) - len,
						places[k].inlined ? "%s[%s]" : "%s%s",
						len ? " " : "", name);
			if (!strcmp(name, "main"))
				return text;
		}
	}
	return text;
}

static int unwind(struct glass *g, uint32_t *flags)
{
	return unwind_record(g->space, g->target, shots_record(&shot, g->shots.pid, 1, buf), frames,
			     UNWIND_MAX, flags);
}

static const char *repeat(const char *what, int n, const char *then)
{
	static char text[65536];
	size_t len = 0;

	for (int i = 0; i < n; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s ", what);
	snprintf(text + len, sizeof(text) - len, "%s", then);
	return text;
}

/* ---- what stacks should look like ---- */

static void expect(const struct build *b, const char *shape, int n, const char *want)
{
	struct glass g = glass_open(b->name, shape, n, SHOT_MAX);
	uint32_t flags;
	int got = unwind(&g, &flags);
	const char *text = names(&g, got);

	if (flags || strcmp(want, text))
		printf("%s %s %d: %d frames, flags %u\n", b->name, shape, n, got, flags);
	CHECK(!flags);
	CHECK_TEXT(want, text);
	glass_close(&g);
}

static void test_shapes(const struct build *b)
{
	static const int depths[] = { 1, 2, 3, 10, 50, 200 };
	bool lines = !strcmp(b->name, "debug") || !strcmp(b->name, "debug4") ||
		     !strcmp(b->name, "split") || !strcmp(b->name, "no-eh");

	for (size_t i = 0; i < ARRAY_LEN(depths); i++)
		expect(b, "level", depths[i], repeat("level", depths[i], "main"));
	expect(b, "alloca", 9, repeat("with_alloca", 9, "main"));
	expect(b, "big", 3, "level level level big_frame main");
	expect(b, "aligned", 2, "level level aligned main");
#if defined(__x86_64__)
	if (!strcmp(b->name, "pie") || !strcmp(b->name, "clang"))
		expect(b, "by_rbx", 2, "level level no_rbx by_rbx main");
#endif
	if (lines)
		expect(b, "inlined", 1, "[inner_inlined] [outer_inlined] holds_inlined main");
	else if (!strcmp(b->name, "frames"))
		expect(b, "inlined", 1, "holds_inlined main");
}

/* Through libc's sort, with whatever functions of its own, which a stripped libc does not name. */
static void test_sort(const struct build *b)
{
	struct glass g = glass_open(b->name, "sort", 1, SHOT_MAX);
	uint32_t flags;
	const char *text, *end;
	int n = unwind(&g, &flags);

	text = names(&g, n);
	end = strstr(text, " sort main");
	CHECK(!flags);
	CHECK(!strncmp(text, "compare ", 8));
	if (CHECK(end))
		CHECK(!end[10]);
	CHECK(strlen(text) > strlen("compare  sort main"));
	glass_close(&g);
}

/* The handler, the frame that the kernel made, what libc was interrupted in. */
static void test_signals(const struct build *b)
{
	struct glass g = glass_open(b->name, "signal", 1, SHOT_MAX);
	uint32_t flags;
	const char *text, *end;
	int n = unwind(&g, &flags);

	text = names(&g, n);
	end = strstr(text, " interrupted main");
	CHECK(!flags);
	CHECK(!strncmp(text, "level level on_signal ", 22));
	if (CHECK(end))
		CHECK(!end[17]);
	CHECK(frames[3].exact);
	CHECK(frames[4].exact);
	CHECK(!frames[5].exact);
	glass_close(&g);
	/* the frame under a signal is where it was interrupted, which may be a function's first
	 * byte */
	g = glass_open(b->name, "fault", 1, SHOT_MAX);
	n = unwind(&g, &flags);
	text = names(&g, n);
	end = strstr(text, " first_instruction faulting main");
	CHECK(!flags);
	CHECK(!strncmp(text, "level skip ", 11));
	if (CHECK(end))
		CHECK(!end[32]);
	glass_close(&g);
}

static void test_jit(const struct build *b)
{
	expect(b, "jit", 2, "level level ?code jit main");
}

static void test_cxx(const struct build *b)
{
	struct glass g;
	uint32_t flags;
	const char *text;
	int n;

	expect(b, "cxx", 1, "_ZN5shape6SquareIdE4drawEi cxx_run main");
	g = glass_open(b->name, "cxx", 2, SHOT_MAX);
	n = unwind(&g, &flags);
	text = names(&g, n);
	CHECK(!flags);
	CHECK(strstr(text, "_ZN5shape5applyERKSt8functionIFiiEEi cxx_run main"));
	CHECK(strstr(text, "cxx_runEUliE_"));
	glass_close(&g);
	/* unwinding runs the destructor: the frames of the thrower are gone, the handler's is
	 * still there */
	g = glass_open(b->name, "cxx", 3, SHOT_MAX);
	n = unwind(&g, &flags);
	text = names(&g, n);
	CHECK(!flags);
	CHECK(!strncmp(text, "_ZN5shape5GuardD", 16));
	CHECK(strstr(text, " _ZN5shape7handlerEi cxx_run main"));
	CHECK(!strstr(text, "thrower"));
	shots_go(&g.shots);
	CHECK(shots_next(&g.shots, &shot));
	n = unwind(&g, &flags);
	CHECK(!flags);
	text = names(&g, n);
	CHECK(!strcmp(text, "_ZN5shape7handlerEi cxx_run main") ||
	      !strcmp(text, "_ZN5shape7handlerEi.cold cxx_run main"));
	glass_close(&g);
}

/* Without symbols the addresses are the same as with them. */
static void test_stripped(void)
{
	struct glass g = glass_open("debug", "level", 20, SHOT_MAX);
	uint64_t with[UNWIND_MAX];
	uint32_t flags;
	int n = unwind(&g, &flags), same = 0, m;

	for (int i = 0; i < n; i++)
		with[i] = space_find(g.space, NULL, frames[i].ip - 1).address;
	glass_close(&g);
	g = glass_open("stripped", "level", 20, SHOT_MAX);
	m = unwind(&g, &flags);
	CHECK(m == n && !flags);
	for (int i = 0; i < n && i < m; i++)
		same += with[i] == space_find(g.space, NULL, frames[i].ip - 1).address;
	CHECK(same == n);
	CHECK(!strncmp(names(&g, m), "- - - ", 6));
	glass_close(&g);
}

/* The line of a comment in the program's source. */
static uint32_t line_of(const char *mark)
{
	char *text = unit_read("tests/unit/prog/stacks.c"), *at = text ? strstr(text, mark) : NULL;
	uint32_t line = 1;

	for (char *p = text; at && p < at; p++)
		line += *p == '\n';
	free(text);
	return at ? line : 0;
}

static void test_lines(const char *build)
{
	static const char *const marks[] = { "/* line \"inner\" */", "/* line \"outer\" */",
					     "/* line \"holder\" */" };
	struct glass g = glass_open(build, "inlined", 1, SHOT_MAX);
	struct symbols_place places[SYMBOLS_MAX] = { 0 };
	struct space_place p;
	uint32_t flags;
	int n = unwind(&g, &flags);

	CHECK(n > 2);
	p = space_find(g.space, NULL, frames[0].ip - 1);
	CHECK(symbols_find(p.object, p.address + 1, false, places, SYMBOLS_MAX) == 3);
	for (int i = 0; i < 3; i++) {
		CHECK(places[i].line == line_of(marks[i]) && places[i].line);
		CHECK(places[i].file);
		CHECK(strlen(places[i].file) > 8);
		CHECK_TEXT("stacks.c", places[i].file + strlen(places[i].file) - 8);
		CHECK(places[i].inlined == (i < 2));
	}
	/* no room for more than the innermost */
	CHECK(symbols_find(p.object, p.address + 1, false, places, 1) == 1 &&
	      places[0].line == line_of(marks[0]));
	glass_close(&g);
}

static const char *last_name(struct glass *g, int n)
{
	frames[0] = frames[n - 1];
	return names(g, 1);
}

static void test_outermost(const struct build *b)
{
	struct glass g = glass_open(b->name, "level", 2, SHOT_MAX);
	uint32_t flags;
	int n = unwind(&g, &flags);

	CHECK(n > 3 && !flags);
	CHECK_TEXT("_start", last_name(&g, n));
	glass_close(&g);

	g = glass_open(b->name, "thread", 3, SHOT_MAX);
	n = unwind(&g, &flags);
	CHECK(n >= 6);
	CHECK(n < 10);
	CHECK(!flags);
	CHECK(!strncmp(names(&g, n), "level level level thread ", 25));
	glass_close(&g);
}

/* ---- cut, replaced, live ---- */

static void test_cut(void)
{
	static const int limits[] = { 0, 8, 48, 800, 4096, 16384 };
	int before = 0;

	for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
		struct glass g = glass_open("pie", "level", 5000, limits[i]);
		uint32_t flags;
		int n = unwind(&g, &flags);

		CHECK(flags == CT_STACK_CUT);
		CHECK(n > before || (n == 1 && limits[i] < 48));
		before = n;
		CHECK(!strncmp(names(&g, n), repeat("level", n - 1, "level"), (size_t)n * 6 - 1));
		/* the rest of it can be read while the thread waits */
		buf[offsetof(struct ct_user_stack, how)] = CT_STACK_LIVE;
		n = unwind_record(g.space, g.target, (struct ct_user_stack *)buf, frames,
				  UNWIND_MAX, &flags);
		CHECK(limits[i] || (n == UNWIND_MAX && flags == CT_STACK_CUT));
		glass_close(&g);
	}
	CHECK(before > 400);
}

/* With nothing copied. */
static int of_thread(struct glass *g, const struct unwind_regs *regs, int max, uint32_t *flags)
{
	static struct unwind_regs out[UNWIND_MAX];
	int n = unwind_thread(g->space, g->target, regs, NULL, 0, NULL, 0, out, max, flags);

	for (int i = 0; i < n; i++)
		frames[i] = (struct unwind_frame){ .ip = out[i].ip, .exact = out[i].exact };
	return n;
}

static void test_live(void)
{
	struct glass g = glass_open("pie", "level", 100, SHOT_MAX);
	struct ct_user_stack *us = shots_record(&shot, g.shots.pid, 1, buf);
	struct unwind_regs regs = { .ip = us->ip, .sp = us->sp, .bp = us->bp };
	uint32_t flags;
	char line[256];
	int n, fd;

	us->how = CT_STACK_LIVE;
	us->len = 0;
	us->h.size = sizeof(*us);
	n = unwind_record(g.space, g.target, us, frames, UNWIND_MAX, &flags);
	CHECK(!flags);
	CHECK_TEXT(repeat("level", 100, "main"), names(&g, n));
	memcpy(regs.regs, us->regs, sizeof(regs.regs));
	n = of_thread(&g, &regs, UNWIND_MAX, &flags);
	CHECK(!flags);
	CHECK_TEXT(repeat("level", 100, "main"), names(&g, n));
	n = of_thread(&g, &regs, 7, &flags);
	CHECK(n == 7 && flags == CT_STACK_CUT);
	n = unwind_record(g.space, NULL, us, frames, UNWIND_MAX, &flags);
	CHECK(n == 1 && flags == CT_STACK_BROKEN);

	/* from the system call that it waits in, with no register but ip and sp */
	snprintf(line, sizeof(line), "/proc/%d/syscall", g.shots.pid);
	fd = open(line, O_RDONLY | O_CLOEXEC);
	regs = (struct unwind_regs){ .exact = true };
	for (int i = 0, had = 0; i < 6000 && had != 2; i++) { /* until it is there */
		usleep(10000);
		memset(line, 0, sizeof(line));
		CHECK(fd >= 0 && pread(fd, line, sizeof(line) - 1, 0) > 0);
		had = sscanf(line, "%*s %*s %*s %*s %*s %*s %*s %lx %lx", &regs.sp, &regs.ip);
	}
	CHECK(regs.sp && regs.ip);
	close(fd);
	n = of_thread(&g, &regs, UNWIND_MAX, &flags);
	CHECK(!flags && strstr(names(&g, n), " shoot_now shoot level level "));
	CHECK(!strcmp(names(&g, n) + strlen(names(&g, n)) - 11, " level main"));
	glass_close(&g);
}

/* Return addresses that point to the trampoline of pending return probes. */
static void test_replaced(void)
{
	struct glass g = glass_open("pie", "level", 30, SHOT_MAX);
	struct ct_user_stack *us = shots_record(&shot, g.shots.pid, 1, buf);
	struct ct_saved saved[CT_MAX_FRAMES];
	uint32_t flags, at = 0;
	int n;

	/* of frames 1, 4, 7...: each return address lies further up than the one before */
	n = unwind(&g, &flags);
	CHECK(n > 30 && !flags);
	us = (struct ct_user_stack *)buf;
	for (int i = 0; i < CT_MAX_FRAMES; i++) {
		uint64_t word = 0, trampoline = 0x7ffff000;

		for (int times = 0; times < (i ? 3 : 1); times++)
			for (at += times || i ? 8 : 0; at + 8 <= us->len; at += 8) {
				memcpy(&word, us->bytes + at, 8);
				if (word == frames[1].ip)
					break;
			}
		CHECK(word == frames[1].ip);
		saved[i] = (struct ct_saved){ .sp = us->sp + at, .ip = word };
		memcpy(us->bytes + at, &trampoline, 8);
	}
	n = unwind_record(g.space, g.target, us, frames, UNWIND_MAX, &flags);
	CHECK(n == 1 && flags == CT_STACK_BROKEN); /* what points to no mapping is no frame */
	us->nsaved = CT_MAX_FRAMES;
	for (int i = 0; i < CT_MAX_FRAMES; i++)
		us->saved[i] = saved[CT_MAX_FRAMES - 1 - i];
	n = unwind_record(g.space, g.target, us, frames, UNWIND_MAX, &flags);
	CHECK(!flags);
	CHECK_TEXT(repeat("level", 30, "main"), names(&g, n));
	/* more than there can be */
	us->nsaved = CT_MAX_FRAMES + 1;
	CHECK(!unwind_record(g.space, g.target, us, frames, UNWIND_MAX, &flags) &&
	      flags == CT_STACK_BROKEN);
	glass_close(&g);
}

static void test_addresses(void)
{
	struct glass g = glass_open("pie", "level", 10, SHOT_MAX);
	struct ct_user_stack *us = (struct ct_user_stack *)buf;
	uint32_t flags;
	int n = unwind(&g, &flags), m;

	for (int i = 0; i < n; i++)
		memcpy(us->bytes + 8 * i, &frames[i].ip, 8);
	us->how = CT_STACK_ADDRESSES;
	us->len = 8 * (uint32_t)n;
	us->h.size = (uint16_t)(sizeof(*us) + us->len);
	m = unwind_record(g.space, g.target, us, frames, UNWIND_MAX, &flags);
	CHECK(m == n && !flags);
	CHECK_TEXT(repeat("level", 10, "main"), names(&g, m));
	us->cut = 1;
	CHECK(unwind_record(g.space, g.target, us, frames, 5, &flags) == 5 &&
	      flags == CT_STACK_CUT);
	us->len = 65000;
	CHECK(unwind_record(g.space, g.target, us, frames, UNWIND_MAX, &flags) == 0 &&
	      flags == CT_STACK_BROKEN);
	glass_close(&g);
}

/* ---- the process is gone ---- */

static void test_gone(void)
{
	struct glass g = glass_open("debug", "aligned", 5, SHOT_MAX);
	struct space *never = space_open(g.objects), *child;
	char path[64], away[64];
	uint32_t flags;
	int n;

	CHECK(!space_refresh(g.space, g.target));
	child = space_copy(g.space);
	shots_record(&shot, g.shots.pid, 1, buf);
	/* its file too: replaced by another one */
	snprintf(path, sizeof(path), "%s/debug", shots_dir);
	snprintf(away, sizeof(away), "%s/away", shots_dir);
	CHECK(!rename(path, away));
	shots_end(&g.shots);
	n = unwind_record(g.space, NULL, (struct ct_user_stack *)buf, frames, UNWIND_MAX, &flags);
	CHECK(!flags);
	CHECK_TEXT("level level level level level aligned main", names(&g, n));
	n = unwind_record(g.space, g.target, (struct ct_user_stack *)buf, frames, UNWIND_MAX,
			  &flags);
	CHECK(!flags && n > 8);
	n = unwind_record(child, NULL, (struct ct_user_stack *)buf, frames, UNWIND_MAX, &flags);
	CHECK(!flags && n > 8);
	/* nothing was ever seen of it: the caller's address is all that there is */
	n = unwind_record(never, g.target, (struct ct_user_stack *)buf, frames, UNWIND_MAX, &flags);
	if (CHECK_EQ(1, n)) {
		if (CHECK_EQ(CT_STACK_BROKEN, flags))
			CHECK_EQ(shot.regs[0], frames[0].ip);
	}
	CHECK(!rename(away, path));
	space_close(never);
	space_close(child);
	target_close(g.target);
	space_close(g.space);
	objects_close(g.objects);
}

/* A program that is deleted while it runs, and a library that is another file by now. */
static void test_deleted(void)
{
	struct glass g;
	uint32_t flags;
	char cmd[256];
	int n;

	snprintf(cmd, sizeof(cmd), "cp %s/pie %s/short-lived", shots_dir, shots_dir);
	CHECK(!system(cmd));
	g = glass_open("short-lived", "level", 3, SHOT_MAX);
	snprintf(cmd, sizeof(cmd), "%s/short-lived", shots_dir);
	CHECK(!unlink(cmd));
	n = unwind(&g, &flags);
	CHECK(!flags);
	CHECK_TEXT("level level level main", names(&g, n));
	CHECK_TEXT(cmd, object_path(space_find(g.space, NULL, frames[0].ip - 1).object));
	glass_close(&g);
}

/* ---- damage ---- */

static uint32_t seed = 12345;
static uint32_t dice(uint32_t n)
{
	seed = seed * 1664525 + 1013904223;
	return (uint32_t)((uint64_t)seed * n >> 32);
}

/* What is remembered of files changes nothing: with everything opened anew the frames are the same. */
static void compare_fresh(struct glass *g, const struct ct_user_stack *us, int n, uint32_t flags)
{
	static struct unwind_frame fresh[UNWIND_MAX];
	struct objects *objects = objects_open();
	struct space *space = space_open(objects);
	uint32_t fresh_flags;
	int same = 0, m = unwind_record(space, g->target, us, fresh, UNWIND_MAX, &fresh_flags);

	for (int i = 0; i < n && i < m; i++)
		same += fresh[i].ip == frames[i].ip && fresh[i].exact == frames[i].exact;
	CHECK_EQ(n, m);
	CHECK_EQ(n, same);
	CHECK_EQ(fresh_flags, flags);
	space_close(space);
	objects_close(objects);
}

static void test_random_bytes(void)
{
	struct glass g = glass_open("pie", "mixed", 8, SHOT_MAX);
	struct ct_user_stack *us = (struct ct_user_stack *)buf;
	int ended = 0, broken = 0;

	for (int round = 0; round < 8; round++) {
		uint32_t flags;

		for (int i = 0; i < 2000; i++) {
			int n, bytes = 1 + (int)dice(64);

			shots_record(&shot, g.shots.pid, 1, buf);
			for (int k = 0; k < bytes && us->len; k++)
				us->bytes[dice(us->len < 2048 ? us->len : 2048)] =
					(uint8_t)dice(256);
			if (i % 3 == 0)
				us->bp = us->sp + 8 * dice(64) * dice(64);
			if (i % 50 == 0)
				us->ip += dice(4096);
			if (i % 51 == 0)
				us->sp = (uint64_t)dice(UINT32_MAX) << 32 | dice(UINT32_MAX);
			if (i % 52 == 0)
				us->regs[dice(5)] = us->sp + dice(4096);
			n = unwind_record(g.space, i % 2 ? g.target : NULL, us, frames, UNWIND_MAX,
					  &flags);
			if (n < 1 || n > UNWIND_MAX || frames[0].ip != us->ip)
				CHECK(!"the first frame is what the record says");
			if (i % 101 == 1 && i % 2)
				compare_fresh(&g, us, n, flags);
			ended += !flags;
			broken += !!(flags & CT_STACK_BROKEN);
		}
		shots_go(&g.shots);
		CHECK(round == 7 || shots_next(&g.shots, &shot));
	}
	/* damage is seen, and what lies behind the stack's last frame does no harm */
	CHECK(ended > 500 && broken > 4000);
	glass_close(&g);
}

static int memory_file(const void *bytes, size_t len)
{
	int fd = memfd_create("damaged", MFD_CLOEXEC);

	if (fd < 0 || write(fd, bytes, len) != (ssize_t)len)
		abort();
	return fd;
}

/* Everything that is asked of a file, at many of its addresses. Returns how many functions had
 * names. */
static int ask(int fd, const char *path, uint64_t begin, uint64_t end)
{
	struct objects *objects = objects_open();
	struct object *o = objects_file(objects, fd, path);
	int named = 0;

	objects_in_place = true;
	for (uint64_t at = begin; o && at < end; at += 1 + (end - begin) / 40) {
		struct symbols_place places[SYMBOLS_MAX];
		uint64_t address, begins;
		const struct cfi_row *row;
		uint8_t code[8];
		int n;

		if (!object_address(o, at, &address))
			continue;
		object_read(o, address, code, sizeof(code));
		row = cfi_find(o, address);
		if (row && row->cfa.how == CFI_REGISTER && row->cfa.reg >= CFI_REGS)
			CHECK(!"a register that there is");
		if (cfi_begin(o, address, &begins))
			CHECK(begins <= address);
		n = symbols_find(o, address, true, places, SYMBOLS_MAX);
		for (int i = 0; i < n; i++) {
			named += places[i].function && strlen(places[i].function) > 0;
			named += places[i].file && strlen(places[i].file) > 1000000;
		}
	}
	object_release(o);
	objects_close(objects);
	objects_in_place = false;
	return named;
}

/* libdw and libelf lose some bytes for good when they give up on a file; everything else is
 * checked for leaks. */
void __lsan_disable(void) __attribute__((weak));
void __lsan_enable(void) __attribute__((weak));

/* A byte of the file: most often of what is parsed, by the section headers of the whole file. */
static size_t somewhere(const char *elf, size_t len)
{
	const Elf64_Ehdr *e = (const Elf64_Ehdr *)elf;
	const Elf64_Shdr *sh = (const Elf64_Shdr *)(elf + e->e_shoff);
	const char *strings = elf + sh[e->e_shstrndx].sh_offset;

	for (int i = 0; i < 100 && dice(8); i++) {
		const Elf64_Shdr *s = &sh[dice(e->e_shnum)];
		const char *name = strings + s->sh_name;

		if (!s->sh_size || s->sh_type == SHT_NOBITS ||
		    (strncmp(name, ".debug_", 7) && strncmp(name, ".eh_frame", 9) &&
		     strcmp(name, ".symtab") && strcmp(name, ".strtab")))
			continue;
		/* heads of tables are worth more than their middles */
		return s->sh_offset + dice((uint32_t)(dice(3)		? s->sh_size
						      : s->sh_size < 64 ? s->sh_size
									: 64));
	}
	return dice(4) ? dice((uint32_t)len) : dice(1024);
}

static void test_damaged_file(const char *build, int times)
{
	char path[64];
	char *bytes;
	struct stat st;
	int fd, whole, some = 0, more = getenv("CT_FUZZ") ? atoi(getenv("CT_FUZZ")) : 1;
	uint64_t begin = 0x1000, end;

	snprintf(path, sizeof(path), "%s/%s", shots_dir, build);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		return;
	bytes = malloc((size_t)st.st_size);
	CHECK(pread(fd, bytes, (size_t)st.st_size, 0) == st.st_size);
	end = 0x2000;
	whole = ask(fd, path, begin, end);
	CHECK(whole > 10);
	if (more > 1)
		seed = (uint32_t)getpid();
	times *= more;
	if (__lsan_disable)
		__lsan_disable();
	for (int i = 0; i < times; i++) {
		size_t len = (size_t)st.st_size;
		int flips = 1 + (int)dice(i % 4 ? 8 : 400);
		char *copy = malloc(len);

		memcpy(copy, bytes, len);
		for (int k = 0; k < flips; k++)
			copy[somewhere(bytes, len)] ^= (char)(dice(2) ? 1u << dice(8) : dice(256));
		if (i % 5 == 0)
			len = dice((uint32_t)len);
		if (i % 7 == 0)
			memset(copy + dice((uint32_t)len + 1) / 2, (int)dice(2) * 255, len / 8);
		some += ask(memory_file(copy, len), path, begin, end) > 0;
		free(copy);
	}
	if (__lsan_enable)
		__lsan_enable();
	CHECK(some > times / 4);
	free(bytes);
}

/*
 * Appends a new .strtab to the file in memory: the old one, and behind it a name without a final
 * NUL, which becomes the name of the function `victim`. Returns where that function's code is in
 * the file, 0 if it is not there. *bytes is reallocated.
 */
static uint64_t unended_name(char **bytes, size_t *len, const char *victim)
{
	static const char name[] = { 'U', 'N', 'E', 'N', 'D', 'E', 'D' };
	Elf64_Ehdr *e = (Elf64_Ehdr *)*bytes;
	Elf64_Shdr *sh = (Elf64_Shdr *)(*bytes + e->e_shoff), *table = NULL, *strings;
	size_t old, which, at = (*len + 15) & ~(size_t)15;
	uint64_t found = 0;

	for (int i = 0; i < e->e_shnum; i++)
		if (sh[i].sh_type == SHT_SYMTAB)
			table = &sh[i];
	which = table->sh_link;
	strings = &sh[which];
	old = strings->sh_size;
	for (size_t i = 0; i < table->sh_size / sizeof(Elf64_Sym); i++) {
		Elf64_Sym *sym = (Elf64_Sym *)(*bytes + table->sh_offset) + i;

		if (strcmp(*bytes + strings->sh_offset + sym->st_name, victim))
			continue;
		sym->st_name = (Elf64_Word)old;
		found = sym->st_value;
	}
	*bytes = realloc(*bytes, at + old + sizeof(name));
	e = (Elf64_Ehdr *)*bytes;
	strings = (Elf64_Shdr *)(*bytes + e->e_shoff) + which;
	memcpy(*bytes + at, *bytes + strings->sh_offset, old);
	memcpy(*bytes + at + old, name, sizeof(name));
	strings->sh_offset = at;
	strings->sh_size = old + sizeof(name);
	*len = at + old + sizeof(name);
	return found;
}

/* libdwfl hands out the last name of a string table though it has no end: it must not be read.
 * The others keep theirs. */
static void test_unended_name(void)
{
	struct symbols_place places[SYMBOLS_MAX] = { 0 };
	struct objects *objects = objects_open();
	struct object *o;
	char path[64], *bytes;
	struct stat st;
	uint64_t victim;
	size_t len;
	int fd;

	snprintf(path, sizeof(path), "%s/pie", shots_dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0 && !fstat(fd, &st));
	len = (size_t)st.st_size;
	bytes = malloc(len);
	CHECK(pread(fd, bytes, len, 0) == st.st_size);
	close(fd);
	victim = unended_name(&bytes, &len, "level");
	CHECK(victim);
	o = objects_file(objects, memory_file(bytes, len), path);
	symbols_find(o, victim, true, places, SYMBOLS_MAX);
	CHECK(!places[0].function || strncmp(places[0].function, "UNENDED", 7));
	object_release(o);
	CHECK(ask(memory_file(bytes, len), path, 0x1000, 0x2000) > 10);
	object_release(o);
	objects_close(objects);
	free(bytes);
}

/* ---- what it costs: printed; what is checked is that the second walk does not do the first one's work again ---- */

/* Processor time of this process: other programs on the machine do not change it. */
static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void test_speed(void)
{
	struct glass g = glass_open("pie", "level", 20, SHOT_MAX);
	double first, rows, again, began = seconds();
	struct space_place libc;
	uint32_t flags;
	int n = unwind(&g, &flags), nrows = 0;

	first = seconds() - began;
	libc = space_find(g.space, NULL, frames[n - 2].ip - 1);
	began = seconds();
	for (uint64_t at = libc.address & ~0xffffull; at < (libc.address | 0xffff) + 0x40000;
	     at += 128, nrows++)
		cfi_find(libc.object, at);
	rows = (seconds() - began) / nrows;
	began = seconds();
	for (int i = 0; i < 20000; i++)
		unwind_record(g.space, g.target, (struct ct_user_stack *)buf, frames, UNWIND_MAX,
			      &flags);
	again = (seconds() - began) / 20000;
	printf("%d frames: %.0f us with the files opened, %.1f us for a place that is new, %.2f us "
	       "again\n",
	       n, first * 1e6, rows * 1e6, again * 1e6);
	CHECK(again * 10 < first);
	glass_close(&g);
}

static char warned[2048];

static void take_warning(const char *text)
{
	snprintf(warned, sizeof(warned), "%s", text);
}

/* ---- debug files that are none ---- */

static _Atomic int opened;

/* Waits until somebody opens the pipe for reading. */
static void *wait_for_reader(void *path)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	atomic_store(&opened, 1);
	close(fd);
	return NULL;
}

/* A program whose function is at AT, in line 1, and the pipe that stands for a device. */
#define AT 0x500000ULL
#define LINKED(debug)                                                                 \
	"cd %s && rm -rf linked* && mkdir linked_ && cd linked_ && mkfifo pipe && "   \
	"echo 'int main(void) { return 0; }' > l.c && gcc -O1 " debug                 \
	" -Wl,--build-id=none -nostdlib -static -no-pie -Wl,-e,main,-Ttext=0x500000 " \
	"-o ../linked l.c && "

#define SPLIT(version)                                                                          \
	LINKED("-g0")                                                                           \
	"gcc -O1 -g -gdwarf-" version " -gsplit-dwarf -c l.c && gcc -nostdlib -static -no-pie " \
	"-Wl,-e,main,-Ttext=0x500000 -o ../linked l.o && rm l.dwo && ln pipe l.dwo"

/* How each way to build says where more debug information is, at a pipe. */
static const struct {
	const char *build;
	uint32_t line;
} pipes[] = {
	/* a separate debug file, by a link to the pipe */
	{ LINKED("-g") "cd .. && objcopy --only-keep-debug linked linked.debug && objcopy "
		       "--strip-all --add-gnu-debuglink=linked.debug linked && rm linked.debug && "
		       "ln -s linked_/pipe linked.debug",
	  0 },
	/* a file that several debug files share, by its path */
	{ LINKED("-g") "printf '%%s/pipe\\0%%020d' $PWD 7 > link && objcopy --add-section "
		       ".gnu_debugaltlink=link ../linked",
	  0 },
	/* the unit's own file, which has no lines in it */
	{ SPLIT("5"), 1 },
	{ SPLIT("4"), 1 },
};

static void build_linked(const char *build)
{
	char cmd[1024];

	snprintf(cmd, sizeof(cmd), build, shots_dir);
	CHECK(system(cmd) == 0);
}

/* The line of what is at AT in the program that was built; 0: it has none. */
static uint32_t line_of_linked(void)
{
	char path[512];
	struct symbols_place places[SYMBOLS_MAX] = { 0 };
	struct objects *objects = objects_open();
	struct object *o;

	snprintf(path, sizeof(path), "%s/linked", shots_dir);
	o = objects_file(objects, open(path, O_RDONLY | O_CLOEXEC), path);
	CHECK(symbols_find(o, AT, true, places, SYMBOLS_MAX) == 1);
	object_release(o);
	objects_close(objects);
	return places[0].line;
}

/* Whatever a file says, nothing is opened that is not a file of root's: the pipe stands for a
 * device, which to open may have effects. */
static void test_debug_pipe(const char *build, uint32_t line)
{
	char pipe_path[512];
	pthread_t waits;
	int fd;

	snprintf(pipe_path, sizeof(pipe_path), "%s/linked_/pipe", shots_dir);
	build_linked(build);
	atomic_store(&opened, 0);
	CHECK(!pthread_create(&waits, NULL, wait_for_reader, pipe_path));
	CHECK_EQ(line, line_of_linked());
	usleep(50000); /* for the waiting thread to say so, if somebody opened it */
	CHECK(!atomic_load(&opened));
	fd = open(pipe_path, O_RDONLY | O_CLOEXEC);
	pthread_join(waits, NULL);
	close(fd);
}

/* The file that several debug files share is used if it may be, and is the right one. */
static void test_debug_shared(void)
{
	static const char shared[] =
		"gcc -g -shared -nostdlib -o shared l.c "
		"-Wl,--build-id=0x3030303030303030303030303030303030303037 && printf "
		"'%%%%s/shared\\0%%%%020d' $PWD %s > link && objcopy --add-section "
		".gnu_debugaltlink=link ../linked && chmod %s shared";
	static const struct {
		const char *id, *mode;
		uint32_t line;
	} rows[] = { { "7", "644", 1 }, { "8", "644", 0 }, { "7", "666", 0 } };
	char build[1024], more[512];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		snprintf(more, sizeof(more), shared, rows[i].id, rows[i].mode);
		snprintf(build, sizeof(build), "%s%s", LINKED("-g"), more);
		build_linked(build);
		CHECK_EQ(rows[i].line, line_of_linked());
	}
}

/* A function whose inner scopes cannot be read: they have a number that the table of abbreviations lacks. The debug information is given up,
 * and this is said; the symbol stays. */
static void test_damaged_scopes(void)
{
	static const char build[] =
		LINKED("-g0") "printf '%%s\\n' '.section .debug_abbrev,\"\",@progbits' '.byte "
			      "1,17,1,17,1,18,7,0,0,0' '.section .debug_info,\"\",@progbits' "
			      "'.long 2f-1f' '1: .short 4' '.long 0' '.byte 8,1' '.quad main,16' "
			      "'.byte 5,0' '2:' '.section .debug_aranges,\"\",@progbits' '.long "
			      "2f-1f' '1: .short 2' '.long 0' '.byte 8,0' '.long 0' '.quad "
			      "main,16,0,0' '2:' > m.s && gcc -g0 -O1 -nostdlib -static -no-pie "
			      "-Wl,-e,main,-Ttext=0x500000 -o ../linked l.c m.s";
	struct objects *objects = objects_open();
	struct symbols_place places[SYMBOLS_MAX] = { 0 };
	char path[512];
	struct object *o;

	build_linked(build);
	snprintf(path, sizeof(path), "%s/linked", shots_dir);
	warned[0] = '\0';
	msg_taker = take_warning;
	o = objects_file(objects, open(path, O_RDONLY | O_CLOEXEC), path);
	CHECK_EQ(1, symbols_find(o, AT, true, places, SYMBOLS_MAX));
	CHECK_TEXT("main", places[0].function);
	CHECK(strstr(warned, "its debug information is damaged"));
	warned[0] = '\0';
	msg_taker = NULL;
	object_release(o);
	objects_close(objects);
}

/* ---- memory ---- */

/* A program whose table of lines says the same two million times: libdw makes some 50 bytes of each
 * byte. The file takes what the user's files may take in all, and is cut off from it. */
__attribute__((unused)) static void test_grown(void)
{
	static const char build[] = LINKED(
		"-g0") "printf '%%s\\n' '.section .debug_abbrev,\"\",@progbits' '.byte "
		       "1,17,0,17,1,18,7,16,23,0,0,0' '.section .debug_info,\"\",@progbits' '.long "
		       "2f-1f' '1: .short 4' '.long 0' '.byte 8,1' '.quad main,16' '.long 0' '2:' "
		       "'.section .debug_aranges,\"\",@progbits' '.long 2f-1f' '1: .short 2' "
		       "'.long 0' '.byte 8,0' '.long 0' '.quad main,16,0,0' '2:' '.section "
		       ".debug_line,\"\",@progbits' '.long 2f-1f' '1: .short 4' '.long 4f-3f' '3: "
		       ".byte 1,1,1,-5,14,13,0,1,1,1,1,0,0,0,1,0,0,1,0,97,0,0,0,0,0' '4: .byte "
		       "0,9,2' '.quad main' '.fill 2000000,1,0x14' '.byte 0,1,1' '2:' > m.s && gcc "
		       "-g0 -O1 -nostdlib -static -no-pie -Wl,-e,main,-Ttext=0x500000 -o ../linked "
		       "l.c m.s";
	struct objects *objects = objects_open();
	struct symbols_place places[SYMBOLS_MAX] = { 0 };
	uint64_t was = objects_owner_max;
	char path[512];
	struct object *o, *again;

	build_linked(build);
	snprintf(path, sizeof(path), "%s/linked", shots_dir);
	objects_owner_max = 48 << 20;
	warned[0] = '\0';
	msg_taker = take_warning;
	objects_impatient(objects);
	objects_set_process(objects, -1, 1);
	o = objects_file(objects, open(path, O_RDONLY | O_CLOEXEC), path);
	again = objects_file(objects, open(path, O_RDONLY | O_CLOEXEC), "again");
	do {
		symbols_find(o, AT, true, places, SYMBOLS_MAX);
		sched_yield();
	} while (object_lent(o) && !*warned);
	symbols_find(o, AT, true, places, SYMBOLS_MAX);
	CHECK(!places[0].line);
	CHECK(strstr(warned, "more memory than cudatrace gives a file: "));
	warned[0] = '\0';
	msg_taker = NULL;
	objects_owner_max = was;
	object_release(o);
	object_release(again);
	objects_close(objects);
}

/* ---- files that take long ---- */

static int hold[2]; /* a pipe: who is held waits until something is written */
static _Atomic int tasks;

static void hold_first(void)
{
	char c;

	if (!atomic_fetch_add(&tasks, 1) && read(hold[0], &c, 1) != 1)
		abort();
}

static struct object *own_object(struct objects *objects, const char *path)
{
	return objects_file(objects, open("/proc/self/exe", O_RDONLY | O_CLOEXEC), path);
}

/* The linked address of this function. */
static uint64_t own_address(void)
{
	uint64_t at = (uint64_t)(uintptr_t)own_address;
	Dl_info info;

	if (!dladdr((void *)(uintptr_t)at, &info))
		return 0;
	return ((const Elf64_Ehdr *)info.dli_fbase)->e_type == ET_DYN
		       ? at - (uint64_t)(uintptr_t)info.dli_fbase
		       : at;
}

/* Where a function begins, asked at its first byte and inside it; none begins where there is no code. */
static void test_begin(void)
{
	struct objects *objects = objects_open();
	struct object *o = own_object(objects, "own");
	uint64_t address = own_address(), begin = 0;

	CHECK(address && cfi_begin(o, address, &begin));
	CHECK_EQ(address, begin);
	begin = 0;
	CHECK(cfi_begin(o, address + 5, &begin));
	CHECK_EQ(address, begin);
	CHECK(cfi_begin(o, address - 1, &begin) ? begin < address : true);
	CHECK(!cfi_begin(o, 1, &begin));
	CHECK(!cfi_begin(o, ~0ULL, &begin));
	object_release(o);
	objects_close(objects);
}

/* A reader that does not come to its end holds up neither us nor others, and is believed later. */
static void test_lent(void)
{
	struct objects *objects = objects_open();
	struct object *slow, *other, *gone;
	struct symbols_place places[SYMBOLS_MAX] = { 0 };
	struct symbols_function f = { 0 };
	uint64_t address = own_address(), unused;
	struct bounded_counts counts;
	int n;

	CHECK(!pipe(hold));
	objects_impatient(objects);
	objects_set_process(objects, -1, 1);
	slow = own_object(objects, "slow");
	other = own_object(objects, "other");
	atomic_store(&tasks, 0);
	objects_begins = hold_first;
	CHECK(symbols_find(slow, address, true, places, SYMBOLS_MAX) == 0);
	CHECK(object_lent(slow) && objects_missed(objects) && !objects_missed(objects));
	CHECK(!symbols_function(slow, address, true, &f) && !cfi_find(slow, address));
	CHECK(!object_address(slow, address, &unused) && !object_read(slow, 0, places, 8));
	CHECK(objects_missed(objects));
	/* nobody touches what the worker has, and it is the worker's to free */
	gone = own_object(objects, "gone");
	objects_set_process(objects, -1, 2);
	while (!symbols_find(other, address, true, places, SYMBOLS_MAX))
		sched_yield();
	CHECK(!object_lent(other) && object_lent(slow));
	CHECK(write(hold[1], "x", 1) == 1);
	while (object_lent(slow))
		sched_yield();
	/* what is begun with nothing left of the allowance is done, too */
	objects_set_process(objects, -1, 1);
	while (!(n = symbols_find(slow, address, true, places, SYMBOLS_MAX)))
		sched_yield();
	CHECK(n > 0 && places[0].function && !strcmp(places[0].function, "own_address"));
	/* closed while it is lent */
	atomic_store(&tasks, 0);
	CHECK(symbols_find(gone, address, true, places, SYMBOLS_MAX) == 0 && object_lent(gone));
	object_release(gone);
	object_release(slow);
	object_release(other);
	objects_close(objects);
	CHECK(write(hold[1], "x", 1) == 1);
	do {
		sched_yield();
		bounded_counts(&counts);
	} while (counts.held);
	objects_begins = NULL;
	close(hold[0]);
	close(hold[1]);
}

static const char *own_name(struct object *o)
{
	static struct symbols_place places[SYMBOLS_MAX];

	memset(places, 0, sizeof(places));
	symbols_find(o, own_address(), true, places, SYMBOLS_MAX);
	return places[0].function ? places[0].function : "none";
}

/* ---- what is packed in a file ---- */

/* Makes a program, and a copy that has `inner` (a file that a command makes) as mini debug information. */
static void test_packed(void)
{
	static const struct {
		const char *label, *inner;
		bool sane;
	} rows[] = {
		{ "symbols", "xz -c plain", true },
		{ "no xz", "head -c 2000 /dev/urandom", false },
		{ "nothing", "printf ''", false },
		{ "cut", "xz -c plain | head -c 900", false },
		{ "no ELF file", "xz -c code.c", false },
		{ "65 MiB of zeros", "head -c 68157440 /dev/zero | xz -0", false },
	};
	char command[1024], path[128];
	struct elf_file f;
	uint64_t plain;
	int fd, compressed = 0;

	snprintf(command, sizeof(command),
		 "cd %s && { echo 'int main(void) { return 0; }'; for i in $(seq 300); do echo "
		 "\"int f$i(void) { return $i; }\"; done; } >code.c && cc -g -o plain code.c && "
		 "objcopy --compress-debug-sections plain packed && objcopy --rename-section "
		 ".debug_info=.zdebug_info plain old",
		 shots_dir);
	CHECK(!system(command));
	snprintf(path, sizeof(path), "%s/plain", shots_dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(!elf_file_open(&f, fd));
	CHECK(packed_symbols_are_sane(&f) && !packed_tables(&f));
	plain = packed_dwarf_bytes(&f);
	CHECK(plain > 100 && plain < 1 << 20);
	elf_file_close(&f);
	close(fd);
	/* what sections become is counted, not what they are; a size that is not in the section is not taken */
	snprintf(path, sizeof(path), "%s/packed", shots_dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(!elf_file_open(&f, fd));
	CHECK_EQ(plain, packed_dwarf_bytes(&f));
	for (uint32_t i = 0; i < f.nshdr; i++)
		compressed += f.shdr[i].sh_flags & SHF_COMPRESSED ? 1 : 0;
	CHECK(compressed > 0);
	elf_file_close(&f);
	close(fd);
	snprintf(path, sizeof(path), "%s/old", shots_dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(!elf_file_open(&f, fd));
	CHECK_EQ(UINT64_MAX, packed_dwarf_bytes(&f));
	elf_file_close(&f);
	close(fd);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CASE_ROW("%s", rows[i].label);
		snprintf(command, sizeof(command),
			 "cd %s && %s >inner && objcopy --add-section .gnu_debugdata=inner plain "
			 "with",
			 shots_dir, rows[i].inner);
		CHECK(!system(command));
		snprintf(path, sizeof(path), "%s/with", shots_dir);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		CHECK(!elf_file_open(&f, fd));
		CHECK_EQ(rows[i].sane, packed_symbols_are_sane(&f));
		CHECK(packed_tables_bytes(&f) > 64 << 20);
		elf_file_close(&f);
		close(fd);
	}
}

/* Files of one user have names as far as there is memory for this user; others have theirs, and so
 * have files of processes that were chosen. */
static void test_owner_memory(void)
{
	struct objects *objects = objects_open(), *chosen = objects_open();
	struct object *first, *second, *others, *third, *own;
	struct elf_file f;
	uint64_t was = objects_owner_max;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0 && !elf_file_open(&f, fd));
	objects_owner_max = packed_tables_bytes(&f) + packed_dwarf_bytes(&f);
	elf_file_close(&f);
	close(fd);
	msg_taker = take_warning;
	objects_impatient(objects);
	objects_set_process(objects, -1, 1);
	first = own_object(objects, "first");
	second = own_object(objects, "second");
	CHECK_TEXT("own_address", own_name(first));
	CHECK_TEXT("", warned);
	CHECK_TEXT("none", own_name(second));
	CHECK(strstr(warned, "second: the files of user 1 have more symbols and debug information "
			     "than cudatrace keeps of one user, or of all: functions of this file "
			     "are shown without their names"));
	warned[0] = '\0';
	objects_set_process(objects, -1, 2);
	others = own_object(objects, "others");
	CHECK_TEXT("own_address", own_name(others));
	/* what nobody uses any more makes room */
	objects_set_process(objects, -1, 1);
	object_release(first);
	third = own_object(objects, "third");
	CHECK_TEXT("own_address", own_name(third));
	objects_owner_max = 0;
	own = own_object(chosen, "own");
	CHECK_TEXT("own_address", own_name(own));
	CHECK_TEXT("", warned);
	msg_taker = NULL;
	objects_owner_max = was;
	object_release(second);
	object_release(others);
	object_release(third);
	object_release(own);
	objects_close(objects);
	objects_close(chosen);
}

static void crash(void)
{
	if (!atomic_fetch_add(&tasks, 1))
		kill(getpid(), SIGKILL);
}

/* A file by which its reader crashes, as of a fault in libdw, has no names, and others have theirs. */
static void test_crashed(void)
{
	struct objects *objects = objects_open();
	struct symbols_place places[SYMBOLS_MAX] = { 0 };
	struct object *bad = own_object(objects, "bad"), *other = own_object(objects, "other");
	struct bounded_counts before, after;
	uint64_t address = own_address();

	bounded_counts(&before);
	atomic_store(&tasks, 0);
	objects_begins = crash;
	CHECK_EQ(0, symbols_find(bad, address, true, places, SYMBOLS_MAX));
	CHECK(symbols_find(other, address, true, places, SYMBOLS_MAX) > 0);
	CHECK_TEXT("own_address", places[0].function);
	CHECK_EQ(0, symbols_find(bad, address, true, places, SYMBOLS_MAX));
	objects_begins = NULL;
	bounded_counts(&after);
	CHECK_EQ(before.crashed + 1, after.crashed);
	CHECK_EQ(before.held, after.held);
	object_release(bad);
	object_release(other);
	objects_close(objects);
}

int main(void)
{
	char cmd[64];

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!mkdtemp(shots_dir))
		abort();
	for (size_t i = 0; i < ARRAY_LEN(builds); i++) {
		builds[i].there = shots_build(builds[i].name, builds[i].command);
		if (!builds[i].there)
			printf("skipped: %s cannot be built here\n", builds[i].name);
	}
	RUN(test_damaged_scopes); /* first: of many warnings of one kind some are left out */
	for (size_t i = 0; i < ARRAY_LEN(builds); i++) {
		struct build *b = &builds[i];

		if (!b->there || !b->names)
			continue;
		RUN(test_shapes, b);
		RUN(test_outermost, b);
		RUN(test_sort, b);
		RUN(test_signals, b);
		RUN(test_jit, b);
		if (!strncmp(b->name, "cxx", 3))
			RUN(test_cxx, b);
	}
	RUN(test_stripped);
	RUN(test_lines, "debug");
	RUN(test_lines, "debug4");
	RUN(test_lines, "split");
	RUN(test_cut);
	RUN(test_live);
	RUN(test_replaced);
	RUN(test_addresses);
	RUN(test_gone);
	RUN(test_deleted);
	RUN(test_speed);
	RUN(test_random_bytes);
	RUN(test_unended_name);
	RUN(test_damaged_file, "pie", 300);
	RUN(test_damaged_file, "debug", 600);
	RUN(test_damaged_file, "debug4", 300);
	for (size_t i = 0; i < ARRAY_LEN(pipes); i++)
		RUN(test_debug_pipe, pipes[i].build, pipes[i].line);
	RUN(test_debug_shared);
#ifndef __SANITIZE_ADDRESS__ /* its malloc() does not fail, it ends the program */
	RUN(test_grown);
#endif
	RUN(test_packed);
	snprintf(cmd, sizeof(cmd), "rm -r %s", shots_dir);
	CHECK(system(cmd) == 0);
	RUN(test_begin);
	RUN(test_lent);
	RUN(test_owner_memory);
	RUN(test_crashed);
	return unit_end();
}
