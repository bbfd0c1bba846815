/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session_cost.c - inside the session: says which share of the programs' CPU time the probes took and,
 * if that is much, that hooks cost less. It says nothing if it does not know the CPU time of all
 * programs that were traced.
 */
#include <sys/resource.h>
#include <time.h>

#include "session_inside.h"
#include "../util/msg.h"

/* Programs that used less CPU time are not worth another source. */
#define CPU_LEAST_NS 200000000ULL
#define MUCH_PERCENT 5

/* The CPU time of a process; 0: the process has ended, or its time cannot be read. */
static uint64_t process_cpu_ns(pid_t pid)
{
	struct timespec ts;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &ts))
		return 0;
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* The CPU time of the processes that -p names; 0: that of one of them is not known. */
static uint64_t named_cpu_ns(const struct session *s)
{
	const struct capture_plan *plan = &s->plan.capture;
	uint64_t sum = 0;

	for (int i = 0; i < plan->npids; i++) {
		uint64_t ns = process_cpu_ns(plan->pids[i]);

		if (!ns)
			return 0;
		sum += ns;
	}
	return sum;
}

static uint64_t timeval_ns(const struct timeval *t)
{
	return (uint64_t)t->tv_sec * 1000000000 + (uint64_t)t->tv_usec * 1000;
}

/* The CPU time of CMD and of those of its children that it has waited for, after it has ended. */
static uint64_t cmd_cpu_ns(void)
{
	struct rusage u;

	return getrusage(RUSAGE_CHILDREN, &u) ? 0
					      : timeval_ns(&u.ru_utime) + timeval_ns(&u.ru_stime);
}

void session_cost_begin(struct session *s)
{
	s->cpu_began_ns = s->plan.capture.cmd ? cmd_cpu_ns() : named_cpu_ns(s);
}

/* The CPU time of the traced programs since the begin of the trace; 0: not known. */
static uint64_t cpu_ns(const struct session *s)
{
	const struct capture_plan *plan = &s->plan.capture;
	uint64_t now = 0;

	if (plan->cmd)
		now = s->cmd_status < 0 ? 0 : cmd_cpu_ns();
	else if (!plan->follow && s->cpu_began_ns)
		now = named_cpu_ns(s);
	return now > s->cpu_began_ns ? now - s->cpu_began_ns : 0;
}

/* Whether hooks could be asked for in place of the probes, with the same options. */
static bool is_for_hooks(const struct session *s)
{
	const struct request *o = s->o;

#if defined(__x86_64__)
	return !o->replay && o->source == REQUEST_SOURCE_PROBES && !s->plan.layers && !o->library &&
	       !o->cgroup && !o->keep_chatty && o->stack != REQUEST_STACK_FP;
#else
	(void)o;
	return false;
#endif
}

void session_cost_say(const struct session *s)
{
	const struct losses *l = &s->losses;
	bool counts = s->plan.capture.count;
	double hits =
		(double)(counts ? l->counted : l->calls) + (double)l->folded + (double)l->filtered;
	uint64_t cpu = cpu_ns(s);
	double percent = cpu ? 100 * hits * (double)l->pair_ns / (double)cpu : 0;

	if (!is_for_hooks(s) || cpu < CPU_LEAST_NS || percent <= MUCH_PERCENT)
		return;
	/* an estimate, which may exceed the whole time */
	msg_note("the probes took about %.0f %% of the programs' CPU time: with --source=hooks a "
		 "call costs a fraction of that",
		 percent > 100 ? 100 : percent);
}
