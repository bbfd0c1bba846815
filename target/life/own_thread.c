/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * own_thread.c - see own_thread.h. The thread hooks functions of libraries that are mapped later, checks the hooks
 * once a second, and removes them when the peer says so or is gone.
 *
 * It has a descriptor table of its own (fd_table.h), in which are the connection and what it needs to take the
 * hooks off. No other thread touches these: it rings a bell in the area (listener.h), and what it wants to say is
 * said by this thread.
 */
#include "../common/compat.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "../common/alone.h"
#include "../common/along.h"
#include "../common/code_text.h"
#include "../common/meet.h"
#include "../common/sys.h"
#include "../engine/engine.h"
#include "../hooks/capture.h"
#include "../hooks/inside.h"
#include "change.h"
#include "forbidden.h"
#include "listener.h"
#include "life.h"
#include "lists.h"
#include "../hooks/muted_funcs.h"
#include "questions.h"
#include "talk.h"
#include "own_thread.h"

#define LOOK_MS 1000 /* how often to check the hooks, and whether the program has ended */
#define LOOK_STOPPED_MS \
	50		/* how often to check whether the peer is stopped, while it is waited for */
#define FILTERS_EACH 32 /* threads whose filters are looked at each time */
/* How long a thread that may make no system call waits for the hooks to be off, which is noticed by LOOK_MS, and then
 * for the thread to end. */
#define QUIET_NS 2000000000ULL
#define QUIET_REST_NS 50000000ULL
#define LISTENER_MS 1000 /* how long a forked child waits for its connection */

__u32 thread_tid;
bool thread_begins;
struct thread_ends thread_ends;
bool filter_is_known;
bool thread_pausing;

static void *thread_main(void *begins);

struct along thread_along;

/* On the thread of the hooks. Returns 0 or -errno: it has no connection. */
static int take_along(void)
{
	struct text_fds kept = text_kept();
	int fds[ALONG_FDS] = { talk_fd(), kept.mem, kept.maps },
	    err = along_take(&thread_along, fds);

	if (err)
		return err;
	if (thread_along.own) {
		talk_moved(fds[0]);
		if (talk_fd() < 0 && fds[0] >= 0)
			close(fds[0]); /* another file had got the number at the last moment */
		text_keep_these((struct text_fds){ fds[1], fds[2] });
		if (fds[1] < 0 || fds[2] < 0)
			text_keep();
		alone_keep();
	}
	along_taken(&thread_along);
	return 0;
}

void thread_meet(void)
{
	alone_meet();
}

int thread_begin(void *begins)
{
	struct held connection = talk_held();
	struct text_fds kept = text_kept();
	const int fds[ALONG_FDS] = { talk_fd(), kept.mem, kept.maps };
	int err;

	__atomic_store_n(&thread_begins, true, __ATOMIC_RELEASE);
	err = along_begin(&thread_along, thread_main, begins, fds);
	if (err)
		__atomic_store_n(&thread_begins, false, __ATOMIC_RELEASE);
	if (err || !thread_along.own)
		return err;
	held_close(&connection);
	if (kept.mem >= 0)
		close(kept.mem);
	if (kept.maps >= 0)
		close(kept.maps);
	return 0;
}

/* Returns the thread of the hooks, and waits for it if it is being started; 0: there is none. */
static __u32 thread_begun(void)
{
	__u32 tid = __atomic_load_n(&thread_tid, __ATOMIC_ACQUIRE);

	for (int i = 0;
	     !tid && __atomic_load_n(&thread_begins, __ATOMIC_ACQUIRE) && i < HOOKS_MAPPED_MS * 10;
	     i++) {
		change_nap();
		tid = __atomic_load_n(&thread_tid, __ATOMIC_ACQUIRE);
	}
	return tid;
}

/* Waits until the thread is gone, but not longer than for the hooks of a library. Returns whether
 * it is gone. */
static bool thread_gone(__u32 tid)
{
	for (int i = 0; i < HOOKS_MAPPED_MS * 10; i++) {
		if (sys_call(SYS_tgkill, hooks_pid, tid, 0, 0, 0, 0) == -ESRCH)
			return true;
		change_nap();
	}
	return false;
}

bool thread_must_end(void)
{
	return __atomic_load_n(&thread_ends.to_share, __ATOMIC_ACQUIRE) ||
	       __atomic_load_n(&thread_ends.sandboxed, __ATOMIC_ACQUIRE) ||
	       __atomic_load_n(&thread_ends.no_clock, __ATOMIC_ACQUIRE) ||
	       __atomic_load_n(&thread_ends.to_be_alone, __ATOMIC_ACQUIRE);
}

void thread_end(bool *why)
{
	__u32 tid = thread_begun();

	__atomic_store_n(why, true, __ATOMIC_RELEASE);
	if (capture_is_open())
		bell_ring(capture_area());
	if (tid)
		thread_gone(tid);
}

static __u64 ticks_of(__u64 ns)
{
	__u64 tick_ns = capture_area()->tick_ns;

	return tick_ns ? (__u64)(((unsigned __int128)ns << 32) / tick_ns) : 0;
}

void thread_end_in_filter(bool *why)
{
	__u64 begun, most, rest;

	__atomic_store_n(why, true, __ATOMIC_RELEASE);
	if (!capture_is_open() || !capture_by_ticks())
		return;
	most = ticks_of(QUIET_NS);
	rest = ticks_of(QUIET_REST_NS);
	begun = capture_now();
	while (__atomic_load_n(&hooks_state, __ATOMIC_ACQUIRE) == RUNNING &&
	       capture_now() - begun < most)
		forbidden_pause();
	/* it has taken the hooks off, and what is left is to end */
	for (begun = capture_now(); capture_now() - begun < rest;)
		forbidden_pause();
}

/* Has the thread of the hooks end, which keeps the connection and so on in the program's table. Returns
 * whether it was told. */
static bool let_thread_leave(int fds[ALONG_FDS])
{
	const struct hooks_listener who = { .kind = LISTENER_LEAVE,
					    .pid = (__u32)hooks_pid,
					    .ns = meet_now() };
	int fd, err;

	if (!thread_along.own) {
		__atomic_store_n(&thread_pausing, true, __ATOMIC_RELEASE);
		bell_ring(capture_area());
		return true;
	}
	fd = listener_open(capture_area(), NULL, &who, LISTENER_MS);
	if (fd < 0)
		return false;
	err = along_is_own(fd) ? along_receive(fd, fds, LISTENER_MS) : -EPERM;
	close(fd);
	return !err;
}

bool thread_pause(void)
{
	__u32 tid = thread_begun();
	int fds[ALONG_FDS] = { -1, -1, -1 };
	bool left = false;
	struct quiet q;

	quiet_begins(&q);
	if (tid && __atomic_load_n(&hooks_state, __ATOMIC_ACQUIRE) == RUNNING && capture_is_open())
		left = let_thread_leave(fds) && thread_gone(tid) &&
		       __atomic_load_n(&hooks_state, __ATOMIC_ACQUIRE) == RUNNING;
	if (left) {
		if (thread_along.own) {
			talk_moved(fds[0]);
			text_keep_these((struct text_fds){ fds[1], fds[2] });
		}
		__atomic_store_n(&thread_tid, 0, __ATOMIC_RELEASE);
		__atomic_store_n(&thread_begins, false, __ATOMIC_RELEASE);
	} else {
		__atomic_store_n(&thread_pausing, false, __ATOMIC_RELEASE);
		thread_end(&thread_ends.to_be_alone);
	}
	quiet_ends(&q);
	return left;
}

void thread_resume(void)
{
	struct quiet q;

	hook_guard_enter();
	quiet_begins(&q);
	__atomic_store_n(&thread_pausing, false, __ATOMIC_RELEASE);
	if (thread_begin(NULL)) { /* after CLONE_NEWPID there are no new threads */
		thread_ends.to_be_alone = true;
		hooks_finish(0);
	}
	quiet_ends(&q);
	hook_guard_leave();
}

/* Returns false at the end. */
static bool step(int type, size_t size)
{
	struct hook_state s;

	if (__atomic_load_n(&thread_ends.no_clock, __ATOMIC_ACQUIRE))
		return false;
	if (type == HOOKS_FUNCS) {
		__u32 number;
		bool last;

		if (list_take(size, &last, &number))
			return false;
		if (last)
			question_answered(&question_mapped, number);
		return true;
	}
	if (type == HOOKS_PYTHON) {
		python_take();
		return true;
	}
	if (type == HOOKS_MUTE) {
		mute_take();
		return true;
	}
	if (type == HOOKS_READ) {
		struct hooks_ask a;

		memcpy(&a, talk_message(), sizeof(a));
		question_answered(&question_reads, a.number);
		return true;
	}
	if (type) {
		if (type != HOOKS_STOP && !thread_must_end())
			capture_gone();
		return false;
	}
	if (!engine_check(&s)) {
		capture_interrupted(s.interrupted);
		others_say(&s);
	}
	filters_look(FILTERS_EACH);
	late_say();
	if (!loader_is_hooked || capture_is_sandboxed()) {
		engine_slots_late();
		ask_for_mapped();
	}
	return true;
}

/* The program must be without this thread for a time: hands the descriptors over. Returns whether it has
 * them. */
static bool hand_over(struct hooks_listener *d)
{
	struct text_fds kept = text_kept();
	const int fds[ALONG_FDS] = { talk_fd(), kept.mem, kept.maps };
	int to = listener_connect(d), err = to;

	/* who waited may have gone, and another user's process may listen there */
	if (to >= 0)
		err = along_is_own(to) ? along_send(to, fds) : -EPERM;
	if (to >= 0)
		close(to);
	listener_done(d, err);
	return !err;
}

/* A forked child wants to be followed. */
static void answer_child(struct hooks_listener *d)
{
	int fd = d->err ? d->err : listener_connect(d),
	    err = fd < 0 ? fd : talk_birth(fd, d->tid, d->ns);

	if (fd >= 0)
		close(fd);
	if (err)
		talk_say(MEET_WARN,
			 "process %d has no connection for its hooks (%s): its calls are not shown",
			 (int)d->pid, strerror(-err));
	listener_done(d, err);
}

/* Answers all who wait. Returns true if the thread must end, and the hooks stay. */
static bool answer_listeners(void)
{
	struct hooks_listener *d;

	while ((d = listener_next(capture_area())))
		if (d->kind != LISTENER_LEAVE)
			answer_child(d);
		else if (hand_over(d))
			return true;
	return __atomic_load_n(&thread_pausing, __ATOMIC_ACQUIRE);
}

static int message_next(size_t *size)
{
	int fd = -1, type = thread_must_end() ? -EPIPE : talk_get(0, size, &fd);

	if (fd >= 0)
		close(fd);
	return type;
}

/* changing: between change_begins() and change_ends(). */
static void look_at_filters(bool changing)
{
	enum forbidden how = forbidden_now();

	if (how == FORBIDDEN_NOT)
		return;
	if (changing)
		change_ends();
	/* its number may become another thread's */
	if (how == FORBIDDEN_ENDS)
		alone_left((int)thread_tid);
	forbidden_end(how);
}

static void live(void)
{
	uint64_t look = meet_now() + LOOK_MS * 1000000ULL, now;
	bool on = true;
	size_t size;

	forbidden_prepare(thread_along.own);
	while (on) {
		__u32 rung = bell_look(capture_area());
		int type;

		look_at_filters(false);
		if (answer_listeners())
			return;
		questions_send();
		type = message_next(&size);
		if (type > 0)
			__atomic_store_n(&questions_unanswered, false, __ATOMIC_RELEASE);
		now = meet_now();
		look_at_filters(false);
		change_begins();
		muted_step();
		look_at_filters(true);
		if (type || now >= look)
			on = step(type, size);
		change_ends();
		if (type)
			continue;
		if (now >= look) {
			on = on && !alone();
			look = now + LOOK_MS * 1000000ULL;
		}
		if (on) {
			int ms = muted_wait_ms((int)((look - now) / 1000000) + 1);

			if (questions_are_waited_for() && ms > LOOK_STOPPED_MS)
				ms = LOOK_STOPPED_MS;
			bell_wait(capture_area(), rung, ms);
		}
	}
	hooks_finish(0);
}

/* begins: NULL if the hooks are on. */
static void *thread_main(void *begins)
{
	hook_guard_enter();
	prctl(PR_SET_NAME, "cudatrace-hooks");
	alone_begins();
	if (take_along()) {
		alone_ends();
		return NULL;
	}
	__atomic_store_n(&thread_tid, (__u32)sys_call(SYS_gettid, 0, 0, 0, 0, 0, 0),
			 __ATOMIC_RELEASE);
	if (!begins || !hooks_enter(false))
		live();
	alone_ends();
	return NULL;
}
