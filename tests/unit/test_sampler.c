/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_sampler.c - functions whose probes are taken off: at no moment is an outer function off
 * while one that is called inside of it is not, since the inner one's calls would then look as
 * if the program had made them; where the inner one may not go, the outer one stays. The states
 * are looked at while the sampler goes through the counts: these fill two pages, of which one at
 * a time may be read, so that each way through them ends in our handler.
 */
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../user/api/api.h"
#include "../../user/source/muted/sampler.h"
#include "unit.h"

#define A_PAGE (page / sizeof(struct ct_entry)) /* entries; none lies in both pages */
#define NO_PROCESS 0x00ffffff			/* above every pid: it is measured by time */

/* In both orders of the table's rows. */
static const char *const pairs[][2] = { { "cudaGetDevice", "cuCtxGetDevice" },
					{ "cuDriverGetVersion", "cudaRuntimeGetVersion" } };
#define PAIRS (int)(sizeof(pairs) / sizeof(pairs[0]))

static uint32_t outer[PAIRS], inner[PAIRS];
static uint8_t sampled[CT_MAX_FUNCS];
static struct ct_inside inside[CT_MAX_FUNCS][CT_INSIDE_MAX];
static char *counts; /* two pages */
static size_t page;
static int off, looks, alone; /* alone: an outer function was seen off, and its inner one not */

static bool is_off(uint32_t func)
{
	return sampled[func] == CT_SAMPLED_OFF;
}

/* A page was read that may not be: now it may, and the other one may not. */
static void look(int sig, siginfo_t *info, void *context)
{
	size_t second = (char *)info->si_addr >= counts + page ? page : 0;

	if ((char *)info->si_addr < counts || (char *)info->si_addr >= counts + 2 * page)
		_exit(2);
	looks++;
	for (int i = 0; i < PAIRS; i++)
		alone += is_off(outer[i]) && !is_off(inner[i]);
	mprotect(counts + second, page, PROT_READ);
	mprotect(counts + page - second, page, PROT_NONE);
	(void)sig, (void)context;
}

static void take_off(void *ctx, const uint64_t *funcs)
{
	for (int i = 0; i < PAIRS; i++) {
		if (!plan_has(funcs, (int)outer[i]))
			continue;
		CHECK(plan_has(funcs, (int)inner[i]) && is_off(outer[i]) && is_off(inner[i]));
		off++;
	}
	(void)ctx;
}

static bool open_window(void *ctx)
{
	(void)ctx;
	return false;
}

int main(void)
{
	static struct capture_plan plan;
	struct sampler_hooks hooks = { .off = take_off, .open = open_window };
	struct sigaction on_fault = { .sa_sigaction = look, .sa_flags = SA_SIGINFO };
	struct sampler_maps maps = { .progress_fd = -1,
				     .sampled = sampled,
				     .inside = (const void *)inside };
	struct sampler *s;
	bool sampling = false;
	uint32_t window = 0, stays, named;
	uint64_t used;

	page = (size_t)sysconf(_SC_PAGESIZE);
	used = 2 * A_PAGE;
	counts = mmap(NULL, 2 * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	maps.sampling = &sampling;
	maps.window = &window;
	maps.entries = (const struct ct_entry *)(counts + page) - A_PAGE;
	maps.entries_max = (uint32_t)used;
	maps.used = &used;
	for (int i = 0; i < PAIRS; i++) {
		outer[i] = (uint32_t)api_next(pairs[i][0], -1);
		inner[i] = (uint32_t)api_next(pairs[i][1], -1);
		plan_add(plan.shown, (int)outer[i]);
		plan_add(plan.shown, (int)inner[i]);
		inside[outer[i]][0] = (struct ct_inside){ .func = inner[i] + 1, .calls = 1000 };
	}
	CHECK(outer[0] < inner[0] && outer[1] > inner[1]);
	stays = (uint32_t)api_next("cudaGetDeviceCount", -1);
	named = (uint32_t)api_next("cuDeviceGetCount", -1);
	plan_add(plan.shown, (int)stays);
	plan_add(plan.shown, (int)named);
	plan_add(plan.named, (int)named);
	inside[stays][CT_INSIDE_MAX - 1] = (struct ct_inside){ .func = named + 1, .calls = 1000 };
	s = counts == MAP_FAILED ? NULL : sampler_open(&plan, &maps, &hooks, 0);
	if (!s || mprotect(counts, page, PROT_NONE) || sigaction(SIGSEGV, &on_fault, NULL))
		return 1;
	sampler_notice(s, stays, NO_PROCESS);
	for (int i = 0; i < PAIRS; i++)
		sampler_notice(s, outer[i], NO_PROCESS);
	looks = 0;
	while (off < PAIRS) {
		usleep(10000);
		sampler_step(s);
	}
	CHECK(looks > 0);
	CHECK(!alone);
	CHECK(sampled[stays] == CT_SAMPLED_COUNTED);
	sampler_close(s);
	munmap(counts, 2 * page);
	return unit_end();
}
