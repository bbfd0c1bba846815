/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_unwind.c - stacks of real programs, built as programs are (-O2, no frame pointers), unwound and named from outside;
 * then the same with every kind of damage.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "../../user/resolve/cfi.h"
#include "../../user/resolve/symbols.h"
#include "../../user/resolve/unwind.h"
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
	{ "no-eh", C "-g -fno-asynchronous-unwind-tables -fno-unwind-tables -o $out $src/stacks.c", true },
	{ "bfd-no-hdr", C "-Wl,--no-eh-frame-hdr -o $out $src/stacks.c", true },
	{ "stripped", C "-g -o $out $src/stacks.c && strip $out", false },
	{ "split", C "-g -o $out $src/stacks.c && objcopy --only-keep-debug $out $out.debug && strip $out && "
		   "objcopy --add-gnu-debuglink=$out.debug $out", true },
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
	struct glass g = { .objects = objects_open(), .shots = shots_start(build, shape, n, limit) };

	g.space = space_open(g.objects);
	CHECK(shots_next(&g.shots, &shot));
	CHECK(!target_open(&g.target, g.shots.pid, 0));
	objects_set_root(g.objects, target_root(g.target));
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

		places[0] = (struct symbols_place){ .function = p.kind == SPACE_CODE ? "?code" : "?" };
		if (p.kind == SPACE_OBJECT)
			m = symbols_find(p.object, p.address + !frames[i].exact, frames[i].exact, places, SYMBOLS_MAX);
		for (int k = 0; k < m; k++) {
			const char *name = places[k].function ? places[k].function : "-";

			len += (size_t)snprintf(text + len, sizeof(text) - len, places[k].inlined ? "%s[%s]" : "%s%s",
						len ? " " : "", name);
			if (!strcmp(name, "main"))
				return text;
		}
	}
	return text;
}

static int unwind(struct glass *g, uint32_t *flags)
{
	return unwind_record(g->space, g->target, shots_record(&shot, g->shots.pid, 1, buf), frames, UNWIND_MAX, flags);
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

/* ---- what stacks should look like --------------------------------------------------------------------- */

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
	bool clang = !strcmp(b->name, "clang"), lines = !strcmp(b->name, "debug") || !strcmp(b->name, "debug4") ||
							 !strcmp(b->name, "split") || !strcmp(b->name, "no-eh");

	for (size_t i = 0; i < ARRAY_LEN(depths); i++)
		expect(b, "level", depths[i], repeat("level", depths[i], "main"));
	expect(b, "alloca", 9, repeat("with_alloca", 9, "main"));
	expect(b, "big", 3, "level level level big_frame main");
	expect(b, "aligned", 2, "level level aligned main");
	if (lines)
		expect(b, "inlined", 1, "[inner_inlined] [outer_inlined] holds_inlined main");
	else if (!strcmp(b->name, "frames"))
		expect(b, "inlined", 1, "holds_inlined main");
	(void)clang;
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
	CHECK(n >= 6 && n < 10 && !flags);
	CHECK(!strncmp(names(&g, n), "level level level thread start_thread", 37));
	glass_close(&g);
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!mkdtemp(shots_dir))
		abort();
	for (size_t i = 0; i < ARRAY_LEN(builds); i++) {
		builds[i].there = shots_build(builds[i].name, builds[i].command);
		if (!builds[i].there)
			printf("skipped: %s cannot be built here\n", builds[i].name);
	}
	for (size_t i = 0; i < ARRAY_LEN(builds); i++) {
		struct build *b = &builds[i];

		if (!b->there || !b->names)
			continue;
		test_shapes(b);
		test_outermost(b);
	}
	return unit_end();
}
