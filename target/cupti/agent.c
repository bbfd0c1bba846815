/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * agent.c - the agent's life in a process that is not ours: it never prints, never exits, never
 * waits in the program's threads without a limit, and does nothing in a forked child.
 *
 * It enters in one of two ways. InitializeInjection() is called by the driver inside cuInit(), on
 * the program's thread: CUPTI is set up in this call, because another thread would wait for the
 * driver's lock, and because no call must be missed. cudatrace_agent_start() is called by the
 * process that injected the library, on a borrowed thread: it only makes the agent's thread. The
 * agent's thread sends the records that come, makes CUPTI deliver partly filled buffers, and ends
 * the agent when a message says so or when its peer is gone.
 */
#include "agent_state.h"
#include "../common/alone.h"
#include "../common/descriptor.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <dlfcn.h>
#include <linux/futex.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* the longest time that the program waits for a place in the socket's backlog */
#define CONNECT_MS 1000
#define CONNECT_AGAIN_MS 20
#define FLUSH_MS 50	  /* how often CUPTI is asked for complete records */
#define IDLE_FLUSH_MS 100 /* the same, if no record has come for a second */
#define IDLE_NS 1000000000ULL
#define MEASURE_NS 1000000000ULL
#define ALONE_NS 250000000ULL /* how often the agent checks whether the program has ended */
/* how long to wait for a call, of the program or of the agent, in which CUPTI can be ended */
#define FINALIZE_MS 3000
#define OWN_CALL_MS 50 /* after this the agent makes a call itself */
/* the longest time that the program's exit waits until the last records are sent */
#define EXIT_MS 2000

int InitializeInjection(void);
int InitializeInjectionNvtx2(void *get_table);
int cudatrace_agent_start(const char *text);
int cudatrace_agent_stop(void);

struct agent agent;
static uint32_t
	bell; /* a futex, which is changed when there is something to do for the agent's thread */
static _Atomic bool exit_asked;
static struct how how;
static bool at_exit_set;

uint32_t agent_tid(void)
{
	static __thread uint32_t tid, pid;

	if (pid != agent.pid) {
		pid = agent.pid;
		tid = (uint32_t)syscall(SYS_gettid);
	}
	return tid;
}

void *agent_record(unsigned int kind, size_t n, uint64_t start_ns, uint64_t end_ns, uint32_t tid)
{
	struct ct_hdr *h = queue_reserve(n);

	if (!h)
		return NULL;
	h->size = (uint16_t)((n + 7) & ~(size_t)7);
	h->kind = (uint16_t)kind;
	h->pid = agent.pid;
	h->tid = tid;
	h->start_ns = start_ns;
	h->end_ns = end_ns;
	return h;
}

/* By memory alone: the program may have closed any descriptor, and opened one of its own with that number. */
void agent_wake(void)
{
	int saved = errno;

	__atomic_add_fetch(&bell, 1, __ATOMIC_SEQ_CST);
	/* not by a function in which a thread that is to be cancelled would end, inside CUPTI */
	syscall(SYS_futex, &bell, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	errno = saved;
}

/* ---- the end ---- */

/* Makes a call of CUDA, so that cuptiFinalize has the exit of a call even if the program makes no
 * more calls. */
static void own_call(void)
{
	int version;

	/* found earlier, because a thread that waits for the agent may hold the loader's lock */
	if (agent.cupti.get_driver_version)
		agent.cupti.get_driver_version(&version);
}

/*
 * The thread that leaves a call next calls cuptiFinalize. Returns 0, -ENOTSUP or -ETIMEDOUT. This
 * is not done if graphs were recorded: cuptiFinalize also removes what CUPTI has put into them, and
 * their next replay fails with a launch failure (seen with CUPTI 13.0 on an H200).
 */
static int finalize(void)
{
	const struct cupti *c = &agent.cupti;
	uint64_t begun = clock_now();
	bool asked = false;

	if (!c->cuptiFinalize || agent.faults & FAULT_FINALIZE || agent.shared || owner_was_used())
		return -ENOTSUP;
	if (atomic_load(&agent.graphs)) {
		link_say(MEET_NOTE,
			 "process %u: it replays graphs, which would break if CUPTI were ended: "
			 "CUPTI stays loaded there, but does nothing",
			 agent.pid);
		return -ENOTSUP;
	}
	atomic_store(&agent.finalized, false);
	atomic_store(&agent.finalize_err, 0);
	refused(REFUSED_END, c->cuptiEnableDomain(1, agent.subscriber, CUPTI_RUNTIME));
	refused(REFUSED_END, c->cuptiEnableDomain(1, agent.subscriber, CUPTI_DRIVER));
	atomic_store(&agent.finalize, true);
	while (!atomic_load(&agent.finalized) && !atomic_load(&agent.finalize_err)) {
		uint64_t ms = (clock_now() - begun) / 1000000;

		if (ms > FINALIZE_MS)
			break;
		if (ms > OWN_CALL_MS && !asked) {
			own_call();
			asked = true;
		}
		usleep(1000);
	}
	/* from here on no thread begins cuptiFinalize */
	atomic_store(&agent.finalize, false);
	return atomic_load(&agent.finalized) ? 0 : -ETIMEDOUT;
}

/* The steps that need no cuptiFinalize: settings as they were, no records of calls, no callbacks, no
 * subscriber. */
static void unsubscribe(void)
{
	device_restore();
	if (!agent.subscriber)
		return;
	calls_disable();
	for (int d = CUPTI_DRIVER; d <= CUPTI_STATE; d++)
		refused(REFUSED_END, agent.cupti.cuptiEnableDomain(0, agent.subscriber, d));
	refused(REFUSED_END, agent.cupti.cuptiUnsubscribe(agent.subscriber));
	agent.subscriber = NULL;
}

/* Leaves CUPTI to the program. Nothing of the agent's may be left in it: a buffer that is there when
 * the program registers its functions would come to the program. */
static void make_way(void)
{
	device_disable(true);
	device_empty();
	unsubscribe();
}

/* Leaves CUPTI as it was found. */
static int leave(void)
{
	int err;

	atomic_store(&agent.state, STOPPING);
	if (atomic_load(&agent.fatal)) /* CUPTI has ended itself after an error */
		return -EIO;
	if (!owner_holds())
		return 0;
	if (owner_was_used()) {
		make_way();
		return 0;
	}
	device_disable(false);
	device_flush(false);
	link_send(500);
	err = finalize();
	if (err)
		unsubscribe();
	agent.subscriber = NULL;
	return err == -ENOTSUP ? 0 : err;
}

static void tell_hole(enum ct_hole_layer layer, enum ct_hole_state state,
		      enum ct_hole_reason reason, uint64_t from_ns)
{
	struct ct_hole *r = agent_record(CT_HOLE, sizeof(*r), from_ns, from_ns, 0);

	if (!r)
		return;
	r->until_ns = CT_HOLE_OPEN;
	r->layer = (uint8_t)layer;
	r->state = (uint8_t)state;
	r->reason = (uint16_t)reason;
	r->device = CT_UNKNOWN;
	queue_commit(r);
}

/* States in the trace that the program uses CUPTI itself since then. */
static void tell_taken(uint64_t from_ns)
{
	if (agent.want.kinds)
		tell_hole(CT_HOLE_DEVICE, CT_HOLE_TAKEN, CT_HOLE_PROFILER, from_ns);
	if (agent.want.flags & AGENT_S_CALLS)
		tell_hole(CT_HOLE_CALLS, CT_HOLE_TAKEN, CT_HOLE_PROFILER, from_ns);
}

/* States, once an attach, that calls of a child are not recorded. */
static void tell_child(void)
{
	uint64_t ns = atomic_load(&agent.child_ns);

	if (!ns || agent.child_told)
		return;
	agent.child_told = true;
	tell_hole(CT_HOLE_CALLS, CT_HOLE_UNSEEN, CT_HOLE_SHARED_MEMORY, ns);
}

/* The program itself begins to use CUPTI, and its call waits. cuptiFinalize is not called: it needs
 * the exit of a call, and the agent's own call would be in the trace. The agent does not come back when the
 * program has ended its profile: CUPTI, told to record kernels again while a thread launches one, often records
 * none from then on, for the program neither (seen with CUPTI 13.0 on an H200; docs/gpu-agent.md has the numbers). */
static void withdraw(void)
{
	uint64_t taken_ns = owner_asked();

	make_way();
	device_tell_lost();
	tell_taken(taken_ns);
	link_say(MEET_WARN,
		 "process %u: the program itself uses CUPTI from now on: its device work is not "
		 "shown any more, so that its own profiles are complete",
		 agent.pid);
	owner_give();
}

static void finish(int err)
{
	owner_unwatch();
	device_tell_lost();
	refusals_tell();
	tell_child();
	link_send(1000);
	link_bye(err, 500);
	link_close();
	calls_forget();
	device_rest();
	queue_rest();
	atomic_store(&agent.state, IDLE);
}

static void tell_fatal(void)
{
	size_t len = strlen(agent.fatal_text);
	uint64_t now = clock_now();
	struct ct_event *r = agent_record(CT_EVENT, sizeof(*r) + len, now, now, 0);

	if (r) {
		r->device = CT_UNKNOWN;
		r->type = CT_EVENT_TRUNCATED;
		r->code = (uint64_t)(int64_t)agent.fatal_code;
		r->text_len = (uint32_t)len;
		memcpy(r->text, agent.fatal_text, len);
		queue_commit(r);
	}
	link_send(500);
	link_say(MEET_WARN,
		 "process %u: CUPTI gave up (%s): what the device did from here on is not known",
		 agent.pid, agent.fatal_text);
}

/* The program is in exit(). Takes the records that CUPTI has, complete or not, and does nothing
 * else. */
static void last_words(void)
{
	if (atomic_load(&agent.fatal))
		tell_fatal();
	else
		device_flush(true);
	device_tell_lost();
	refusals_tell();
	tell_child();
	link_send(EXIT_MS / 2);
	link_bye(0, 100);
	link_close();
	atomic_store(&agent.state, IDLE);
}

static void at_exit(void)
{
	uint64_t until = clock_now() + EXIT_MS * 1000000ULL;
	int state;

	if (agent.pid != (uint32_t)getpid())
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	if (atomic_load(&agent.state) == RUNNING) {
		atomic_store(&exit_asked, true);
		agent_wake();
	}
	/* the agent may already be leaving, for another reason */
	while (atomic_load(&agent.state) >= RUNNING && clock_now() < until)
		usleep(200);
	pthread_setcancelstate(state, NULL);
}

/* ---- the thread ---- */

/* What the peer says is seen when the wait has ended. */
static void wait_for_work(uint32_t looked, int ms)
{
	struct timespec wait = { .tv_nsec = ms * 1000000L };

	syscall(SYS_futex, &bell, FUTEX_WAIT_PRIVATE, looked, &wait, NULL, 0);
}

static void work(void)
{
	uint64_t flushed = 0, measured = clock_now(), came = measured, looked = measured;
	int every_ms = FLUSH_MS;
	uint32_t looked_at = __atomic_load_n(&bell, __ATOMIC_SEQ_CST);

	while (!atomic_load(&agent.fatal)) {
		uint64_t now;
		int err;

		wait_for_work(looked_at, queue_used() ? 5 : every_ms / 2);
		looked_at = __atomic_load_n(&bell, __ATOMIC_SEQ_CST);
		if (atomic_load(&exit_asked))
			return;
		if (owner_asked())
			withdraw();
		refusals_tell();
		tell_child();
		now = clock_now();
		if (queue_used())
			came = now;
		every_ms = now - came > IDLE_NS ? IDLE_FLUSH_MS : FLUSH_MS;
		if (now - flushed >= (uint64_t)every_ms * 1000000) {
			/* rather one record without its end than none of what follows */
			device_flush(device_starved());
			device_tell_lost();
			flushed = clock_now();
		}
		if (now - measured >= MEASURE_NS) {
			clock_measure();
			owner_look();
			measured = now;
		}
		if (now - looked >= ALONE_NS) {
			looked = now;
			if (alone())
				atomic_store(&exit_asked, true);
		}
		err = link_send(0);
		if (atomic_load(&exit_asked) || (err && err != -EAGAIN) || link_asked())
			return;
	}
}

static void name_thread(void)
{
	prctl(PR_SET_NAME, "cudatrace-agent");
	alone_begins();
}

/* From here on only the agent's thread works. Returns when the agent is idle again. */
static void live(void)
{
	int err;

	work();
	if (atomic_load(&exit_asked)) {
		last_words();
		return;
	}
	if (atomic_load(&agent.fatal))
		tell_fatal();
	err = leave();
	finish(err);
}

/* Sends HELLO, and receives which records are wanted. none: -errno if there is no CUPTI, for the
 * reason `why`; else 0. Returns 0 or -errno. */
static int greet(int none, const char *why)
{
	int err = link_hello(&how);

	if (!err && none == -ENODEV)
		link_say(MEET_ERROR,
			 "process %u: there is no CUDA driver (%s): device work is not shown",
			 agent.pid, why);
	else if (!err && none)
		link_say(MEET_ERROR,
			 "process %u: no libcupti that can be used: %s; install CUDA's CUPTI, or "
			 "name one by --cupti PATH",
			 agent.pid, why);
	err = err ? err : none;
	return err ? err : link_begin();
}

/* Talks with the user side and sets CUPTI up. If it returns 0, the state is RUNNING. */
static int begin(void)
{
	uint64_t begun_ns = clock_now(), until = begun_ns + CONNECT_MS * 1000000ULL;
	int err = link_connect(&how, until), none;
	char why[700];

	if (err) {
		atomic_store(&agent.state, IDLE);
		return err;
	}
	memset(&agent.want, 0, sizeof(agent.want));
	none = library_find(&agent.cupti, how.cupti, why, sizeof(why));
	agent.faults = faults_of(agent.cupti.version);
	err = greet(none, why);
	/* the connection was closed before the first message, for example because of too many
	 * peers: try again */
	while (err == -EPIPE && how.meet.fd < 0 &&
	       clock_now() + CONNECT_AGAIN_MS * 1000000ULL < until) {
		link_close();
		usleep(CONNECT_AGAIN_MS * 1000);
		if (link_connect(&how, until))
			break;
		err = greet(none, why);
	}
	if (!err)
		err = queue_open();
	if (!err) {
		agent.attached++;
		atomic_store(&agent.state, RUNNING);
		owner_watch();
		err = device_enable();
	}
	link_started(err);
	if (!err)
		return 0;
	if (agent.subscriber)
		leave();
	if (err == -EBUSY) /* of the program, or of another profiler in it */
		tell_taken(begun_ns);
	finish(err);
	return err;
}

/* begins: not NULL if the thread also begins. It has the program's descriptor table, not one of its own as the
 * hooks' thread has: CUPTI and the driver, which it calls, reach the device by the program's descriptors. */
static void *thread_main(void *begins)
{
	name_thread();
	if (!begins || !begin())
		live();
	alone_ends();
	return NULL;
}

/* In a forked child no thread holds the locks that threads of the parent held. They are released
 * because the child's exit may still call CUPTI. */
static void forget_locks(void)
{
	names_reset();
	contexts_reset();
	device_reset();
	library_reset();
	owner_reset();
	atomic_store(&agent.kernels_begin, 0);
}

static void in_child(void)
{
	link_forget();
	forget_locks();
	agent.pid = 0;
	atomic_store(&agent.finalize, false);
	atomic_store(&agent.state, IDLE);
}

__attribute__((constructor)) static void born(void)
{
	alone_meet();
}

bool agent_is_object(uint64_t lo, uint64_t hi)
{
	return alone_has_object(lo, hi);
}

/* The common part of both ways to start. If it returns 0, the state is STARTING, and the caller
 * owns it. */
static int enter(const char *text)
{
	int idle = IDLE, err;

	if (!text)
		return -EINVAL;
	if (!meet_may_take_times())
		return -ENOTSUP;
	if (!atomic_compare_exchange_strong(&agent.state, &idle, STARTING))
		return -EBUSY;
	err = link_parse(text, &how);
	if (err)
		goto fail;
	if (agent.pid != (uint32_t)getpid()) {
		forget_locks();
		agent.pid = (uint32_t)getpid();
	}
	if (!at_exit_set) {
		pthread_atfork(NULL, NULL, in_child);
		atexit(at_exit);
		at_exit_set = true;
	}
	atomic_store(&agent.fatal, false);
	atomic_store(&agent.finalized, false);
	atomic_store(&agent.kernels_asked, false);
	refusals_reset();
	atomic_store(&agent.dropped, 0);
	atomic_store(&agent.bad_time, 0);
	atomic_store(&agent.too_deep, 0);
	atomic_store(&agent.child_ns, 0);
	agent.child_told = false;
	atomic_store(&exit_asked, false);
	agent.early = false;
	return 0;
fail:
	atomic_store(&agent.state, IDLE);
	return err;
}

/* The agent was inside a call of the program since then: sums leave that time out. */
static void tell_entered(uint64_t begun_ns)
{
	struct ct_hdr *h = agent_record(CT_ENTERED, sizeof(*h), begun_ns, clock_now(), agent_tid());

	if (h)
		queue_commit(h);
}

/* Called by CUDA's driver. The driver ignores the result, but prints a message of its own if it is
 * 0. */
__attribute__((visibility("default"))) int InitializeInjection(void)
{
	uint64_t begun_ns = clock_now();
	int saved = errno, state;

	/* the program may want to cancel the thread; this function must be finished first */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	if (!enter(getenv(AGENT_ENV))) {
		int err;

		agent.early = true;
		err = begin();
		if (!err)
			tell_entered(begun_ns);
		if (!err && meet_thread(thread_main, NULL)) {
			leave();
			finish(-EAGAIN);
		}
	}
	pthread_setcancelstate(state, NULL);
	errno = saved;
	return 1;
}

__attribute__((visibility("default"))) int cudatrace_agent_start(const char *text)
{
	int err = enter(text);

	if (err)
		return err;
	err = meet_thread(thread_main, &agent);
	if (err)
		atomic_store(&agent.state, IDLE);
	return err;
}

/*
 * At the program's first NVTX call, NVTX hands its functions to one library, the one of
 * NVTX_INJECTION64_PATH. If markers are wanted, that is the agent, because it is not known earlier
 * which libcupti is used. CUPTI does the rest.
 */
__attribute__((visibility("default"))) int InitializeInjectionNvtx2(void *get_table)
{
	int (*theirs)(void *);
	char why[700];

	if (link_parse(getenv(AGENT_ENV) ? getenv(AGENT_ENV) : "", &how) ||
	    library_find(&agent.cupti, how.cupti, why, sizeof(why)))
		return 0;
	theirs = (int (*)(void *))dlsym(agent.cupti.lib, "InitializeInjectionNvtx2");
	return theirs ? theirs(get_table) : 0;
}

/* Ends the agent for a caller that cannot reach the socket. Usually a message or the end of the
 * connection ends it. */
__attribute__((visibility("default"))) int cudatrace_agent_stop(void)
{
	if (atomic_load(&agent.state) == IDLE)
		return -EALREADY;
	link_stop();
	return 0;
}
