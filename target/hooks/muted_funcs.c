/* SPDX-License-Identifier: BSD-2-Clause */
/* muted_funcs.c - see muted_funcs.h. */
#include "muted_funcs.h"

#include <string.h>
#include <time.h>

#include "capture.h"
#include "../engine/engine.h"

/* There is one window in each period. Both are as long as with probes
 * (user/source/muted/duty.h). */
#define STRETCH_NS 500000000ULL
#define WINDOW_NS 10000000ULL

static struct {
	bool on, windows;
	__u16 number;
} muted[CT_MAX_FUNCS];
static bool any_windows, open_now;
static __u64 stretch_end, next, seed; /* next: the time at which the window opens or closes */

static __u64 clock_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (__u64)ts.tv_sec * 1000000000ULL + (__u64)ts.tv_nsec;
}

void muted_begin(void)
{
	memset(muted, 0, sizeof(muted));
	any_windows = open_now = false;
	engine_fold_within(0, 0);
	engine_forget_counts();
}

static __u32 flags_of(__u32 func)
{
	if (!muted[func].on || (open_now && muted[func].windows))
		return 0;
	return HOOK_COUNT_IN(muted[func].number);
}

__u32 muted_flags(__u32 cookie)
{
	__u32 func = CT_COOKIE_FUNC(cookie);

	return func < CT_MAX_FUNCS ? flags_of(func) : 0;
}

static void apply(__u32 func)
{
	engine_count((__u16)-1, func, flags_of(func));
}

/* The next window is at a random time in the next period. Otherwise the calls of a program that
 * does the same again and again might always be outside the windows. */
static void plan_window(__u64 now)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	if (stretch_end < now)
		stretch_end = now;
	next = stretch_end + seed % (STRETCH_NS - WINDOW_NS);
	stretch_end += STRETCH_NS;
}

void muted_take(const struct hooks_mute *m)
{
	if (m->func >= CT_MAX_FUNCS || m->number >= HOOKS_MUTED)
		return;
	/* first of all: when the first call is counted, all threads follow the depth of their calls */
	capture_mutes();
	engine_fold_within(m->within, m->within_bytes);
	muted[m->func].on = !(m->flags & HOOKS_MUTE_OFF);
	muted[m->func].windows = m->flags & HOOKS_MUTE_WINDOWS;
	muted[m->func].number = m->number;
	if (muted[m->func].windows && !any_windows) {
		any_windows = true;
		seed = clock_now() | 1;
		plan_window(clock_now());
	}
	apply(m->func);
}

int muted_wait_ms(int most_ms)
{
	__u64 now, ms;

	if (!any_windows)
		return most_ms;
	now = clock_now();
	ms = next > now ? (next - now) / 1000000 + 1 : 0;
	return ms < (__u64)most_ms ? (int)ms : most_ms;
}

void muted_step(void)
{
	__u64 now = any_windows ? clock_now() : 0;

	if (!any_windows || now < next)
		return;
	open_now = !open_now;
	if (open_now)
		next = now + WINDOW_NS;
	else
		plan_window(now);
	for (__u32 func = 0; func < CT_MAX_FUNCS; func++)
		if (muted[func].on && muted[func].windows)
			apply(func);
}
