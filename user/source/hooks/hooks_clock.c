/* SPDX-License-Identifier: BSD-2-Clause */
/* hooks_clock.c - see hooks_clock.h. Of several readings the one counts during which the counter ran
 * the least: its half is the error. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

#include "../../util/now.h"
#include "hooks_clock.h"

#define TRIES 8
#define KEPT 4096 /* readings: more than a minute of them */
#define APART_NS 15000000ULL
#define FIRST_NS 2000000ULL /* between the first two */

struct hooks_clock {
	struct mark {
		uint64_t ticks, ns;
	} marks[KEPT];
	struct mark first;
	size_t n; /* ever */
	uint64_t error_ticks;
};

#if defined(__x86_64__)
static uint64_t counter(void)
{
	unsigned int cpu;

	return __rdtscp(&cpu);
}

static bool invariant(void)
{
	unsigned int a, b, c, d;

	return __get_cpuid(0x80000007, &a, &b, &c, &d) && d >> 8 & 1;
}
#else
/* The system counter: it is the same for all cores, and runs while they sleep. */
static uint64_t counter(void)
{
	uint64_t ticks;

	__asm__ volatile("isb; mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
}

static bool invariant(void)
{
	return true;
}
#endif

bool hooks_clock_usable(void)
{
	static const char path[] =
		"/sys/devices/system/clocksource/clocksource0/current_clocksource";
	char name[32] = "";
	FILE *f = fopen(path, "re");

	if (f && !fgets(name, sizeof(name), f))
		name[0] = '\0';
	if (f)
		fclose(f);
	/* a guest's clock may be made of the counter by way of its host */
	return invariant() && (!strncmp(name, "tsc", 3) || !strncmp(name, "kvm-clock", 9) ||
			       !strncmp(name, "arch_sys_counter", 16));
}

static const struct mark *at(const struct hooks_clock *c, size_t i)
{
	return &c->marks[i % KEPT];
}

void hooks_clock_put(struct hooks_clock *c, uint64_t ticks, uint64_t ns)
{
	/* one that would run backwards is none */
	if (c->n && (ticks <= at(c, c->n - 1)->ticks || ns <= at(c, c->n - 1)->ns))
		return;
	if (!c->n)
		c->first = (struct mark){ ticks, ns };
	c->marks[c->n++ % KEPT] = (struct mark){ ticks, ns };
}

void hooks_clock_mark(struct hooks_clock *c)
{
	uint64_t best = UINT64_MAX, ticks = 0, ns = 0;

	if (c->n > 1 && now_ns() - at(c, c->n - 1)->ns < APART_NS)
		return;
	for (int i = 0; i < TRIES; i++) {
		uint64_t before = counter(), now = now_ns(), after = counter();

		if (after - before >= best)
			continue;
		best = after - before;
		ticks = before + best / 2;
		ns = now;
	}
	c->error_ticks = best / 2;
	hooks_clock_put(c, ticks, ns);
}

struct hooks_clock *hooks_clock_open(void)
{
	struct hooks_clock *c = calloc(1, sizeof(*c));
	uint64_t until;

	if (!c)
		return NULL;
	if (!hooks_clock_usable())
		return c;
	hooks_clock_mark(c);
	for (until = now_ns() + FIRST_NS; now_ns() < until;)
		;
	hooks_clock_mark(c);
	return c;
}

void hooks_clock_close(struct hooks_clock *c)
{
	free(c);
}

/* On the line through a and b. */
static uint64_t along(const struct mark *a, const struct mark *b, uint64_t ticks)
{
	__int128 span = (__int128)(b->ns - a->ns) * ((__int128)ticks - (__int128)a->ticks);

	span /= (__int128)(b->ticks - a->ticks);
	return span < -(__int128)a->ns ? 0 : (uint64_t)((__int128)a->ns + span);
}

uint64_t hooks_clock_ns(const struct hooks_clock *c, uint64_t ticks)
{
	size_t low = c->n > KEPT ? c->n - KEPT : 0, high = c->n;

	if (c->n < 2)
		return ticks;
	if (ticks < at(c, low)->ticks)
		return along(low ? &c->first : at(c, 0), at(c, low ? low : 1), ticks);
	/* the last reading that is not later */
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (at(c, middle)->ticks <= ticks)
			low = middle;
		else
			high = middle;
	}
	return low + 1 < c->n ? along(at(c, low), at(c, low + 1), ticks)
			      : along(at(c, c->n - 2), at(c, c->n - 1), ticks);
}

uint64_t hooks_clock_ticks(const struct hooks_clock *c, uint64_t ns)
{
	const struct mark *last = c->n ? at(c, c->n - 1) : NULL;

	if (c->n < 2)
		return ns;
	return (uint64_t)((__int128)ns * (__int128)(last->ticks - c->first.ticks) /
			  (__int128)(last->ns - c->first.ns));
}

uint64_t hooks_clock_error_ns(const struct hooks_clock *c)
{
	uint64_t whole = hooks_clock_ticks(c, 1000000);

	return c->n < 2 || !whole ? 0 : c->error_ticks * 1000000 / whole + 1;
}
