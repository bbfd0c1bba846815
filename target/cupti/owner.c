/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * owner.c - who uses CUPTI in this process: the agent, or the program itself. CUPTI's kinds of
 * records, buffers, clock and subscriber belong to the process, so both cannot use it at a time, and
 * the program comes first. At its first call of a function that watch_cupti.h knows, the agent withdraws,
 * on its own thread, while the call waits; then the call is executed, and finds CUPTI as if nobody
 * had used it.
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
/* how long the program must have made no call of CUPTI before the agent uses it again */
#define REST_NS 1000000000ULL

/* FREE: nobody uses it, as far as is known; ASKED: the agent does, and a call waits. */
enum { FREE = 0, OURS, ASKED, THEIRS };
static _Atomic int owner;
static _Atomic uint64_t since_ns; /* the call that made the program the owner */
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

/* What the program has asked of CUPTI since it was seen first. */
static struct {
	_Atomic uint64_t kinds; /* that it has enabled and not disabled, as bits */
	_Atomic bool subscribed;
	_Atomic bool unflushed;		  /* it has enabled kinds since it asked for records last */
	_Atomic bool ever;		  /* it has used CUPTI */
	_Atomic uint64_t last_ns, number; /* of calls */
	/* its functions for buffers, and its clock; 0: none is known */
	_Atomic uint64_t request, complete, clock;
} program;

static void note_finalize(void)
{
	atomic_store(&program.kinds, 0);
	atomic_store(&program.subscribed, false);
	atomic_store(&program.unflushed, false);
	atomic_store(&program.request, 0);
	atomic_store(&program.complete, 0);
	atomic_store(&program.clock, 0);
}

static void note(enum watch_what what, unsigned int kind_arg, const uint64_t *args)
{
	uint64_t kind = 1ULL << (args[kind_arg] & 63);

	switch (what) {
	case WATCH_SUBSCRIBE: atomic_store(&program.subscribed, true); break;
	case WATCH_UNSUBSCRIBE: atomic_store(&program.subscribed, false); break;
	case WATCH_BUFFERS:
		atomic_store(&program.request, args[0]);
		atomic_store(&program.complete, args[1]);
		break;
	case WATCH_CLOCK: atomic_store(&program.clock, args[0]); break;
	case WATCH_ENABLE:
		atomic_fetch_or(&program.kinds, kind);
		atomic_store(&program.unflushed, true);
		break;
	case WATCH_DISABLE: atomic_fetch_and(&program.kinds, ~kind); break;
	case WATCH_FLUSH: atomic_store(&program.unflushed, false); break;
	case WATCH_FINALIZE: note_finalize(); break;
	case WATCH_OTHER: break;
	}
	atomic_store(&program.ever, true);
	atomic_store(&program.last_ns, clock_now());
	/* from here on owner_reclaim() sees the call; take() comes after it */
	atomic_fetch_add(&program.number, 1);
}

static void called(enum watch_what what, unsigned int kind_arg, const uint64_t *args)
{
	if (atomic_load(&agent.state) == IDLE || agent.shared ||
	    agent.pid != (uint32_t)syscall(SYS_getpid))
		return;
	note(what, kind_arg, args);
	take();
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

static bool program_rests(void)
{
	return !atomic_load(&program.kinds) && !atomic_load(&program.unflushed) &&
	       clock_now() - atomic_load(&program.last_ns) > REST_NS;
}

bool owner_reclaim(void)
{
	uint64_t number = atomic_load(&program.number);
	int theirs = THEIRS;

	if (atomic_load(&owner) != THEIRS || !program_rests() ||
	    !atomic_compare_exchange_strong(&owner, &theirs, OURS))
		return false;
	if (number == atomic_load(&program.number))
		return true;
	/* a call came meanwhile: it may have found the program to be the owner, and goes on */
	atomic_store(&owner, THEIRS);
	return false;
}

void owner_resign(void)
{
	atomic_store(&owner, THEIRS);
}

bool owner_was_used(void)
{
	return atomic_load(&program.ever);
}

bool owner_has_subscriber(void)
{
	return atomic_load(&program.subscribed);
}

struct owner_functions owner_functions(void)
{
	return (struct owner_functions){
		.request = (void *)(uintptr_t)atomic_load(&program.request),
		.complete = (void *)(uintptr_t)atomic_load(&program.complete),
		.clock = (void *)(uintptr_t)atomic_load(&program.clock),
	};
}

void owner_reset(void)
{
	note_finalize();
	atomic_store(&program.ever, false);
	atomic_store(&owner, FREE);
}
