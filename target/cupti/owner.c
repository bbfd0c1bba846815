/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * owner.c - who uses CUPTI in this process: the agent, or the program itself. CUPTI's kinds of
 * records, buffers, clock and subscriber belong to the process, so both cannot use it at a time, and
 * the program comes first. At its first call of a function that watch_cupti.h knows, the agent withdraws,
 * on its own thread, while the call waits; then the call is executed, and finds CUPTI as if nobody
 * had used it. From then on CUPTI is the program's.
 */
#include "agent_state.h"
#include "watch_cupti.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* the longest time that the program's call waits until the agent has withdrawn */
#define WITHDRAW_MS 5000
#define LOOK_NS 1000000 /* between two looks */

/* FREE: nobody uses it, as far as is known; ASKED: the agent does, and a call waits. */
enum { FREE = 0, OURS, ASKED, THEIRS };
static _Atomic int owner;
static _Atomic uint64_t since_ns; /* the call that made the program the owner */
static _Atomic bool used;	  /* the program has used CUPTI */
static bool watching;

static void wait_a_little(void)
{
	struct timespec ts = { 0, LOOK_NS };

	/* not nanosleep(), where a thread that is to be cancelled would end */
	syscall(SYS_nanosleep, &ts, NULL);
}

/* Takes CUPTI for the program, as soon as the agent has let it go. */
static void take(void)
{
	uint64_t now = clock_now(), until = now + WITHDRAW_MS * 1000000ULL;
	int free = FREE, ours = OURS;

	if (atomic_compare_exchange_strong(&owner, &free, THEIRS))
		atomic_store(&since_ns, now);
	if (atomic_compare_exchange_strong(&owner, &ours, ASKED)) {
		atomic_store(&since_ns, now);
		agent_wake();
	}
	while (atomic_load(&owner) == ASKED && atomic_load(&agent.state) != IDLE &&
	       clock_now() < until)
		wait_a_little();
}

static void called(bool ends)
{
	if (atomic_load(&agent.state) == IDLE || agent.shared ||
	    agent.pid != (uint32_t)syscall(SYS_getpid))
		return;
	take();
	/* what the program ends is as new for the next attach */
	atomic_store(&used, !ends);
}

void owner_watch(void)
{
	const char *blind = NULL, *by_slots = NULL;
	int err;

	atomic_store(&owner, FREE);
	err = watch_on(agent.cupti.lib, called, &blind, &by_slots);
	watching = !err;
	if (err || blind)
		link_say(MEET_WARN,
			 "process %u: it is not seen there when the program itself begins to use "
			 "CUPTI (%s): if it does, its profile and this trace may be incomplete",
			 agent.pid, err ? strerror(-err) : blind);
	else if (by_slots)
		link_say(MEET_VERB,
			 "process %u: the program's own calls of CUPTI by pointers of dlsym() are "
			 "not seen (%s)",
			 agent.pid, by_slots);
}

void owner_unwatch(void)
{
	int err = 0;

	/* a call that waits continues */
	atomic_store(&owner, FREE);
	if (watching)
		err = watch_off();
	watching = false;
	/* it has another user, or another root, than when they came, and /proc/self/mem is closed to it */
	if (err)
		link_say(MEET_WARN,
			 "process %u: its hooks on CUPTI cannot be removed (%s): they stay, and do "
			 "nothing, until it ends",
			 agent.pid, strerror(-err));
}

void owner_look(void)
{
	if (watching)
		watch_look();
}

bool owner_claim(void)
{
	int free = FREE;

	return atomic_compare_exchange_strong(&owner, &free, OURS);
}

bool owner_holds(void)
{
	int now = atomic_load(&owner);

	return now == OURS || now == ASKED;
}

uint64_t owner_asked(void)
{
	return atomic_load(&owner) == ASKED ? atomic_load(&since_ns) : 0;
}

void owner_give(void)
{
	int asked = ASKED;

	atomic_compare_exchange_strong(&owner, &asked, THEIRS);
}

bool owner_was_used(void)
{
	return atomic_load(&used);
}

void owner_reset(void)
{
	atomic_store(&used, false);
	atomic_store(&owner, FREE);
}
