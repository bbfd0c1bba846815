/* SPDX-License-Identifier: BSD-2-Clause */
/* at_fork.c - see at_fork.h. */
#include "../common/compat.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "../common/code_text.h"
#include "../common/meet.h"
#include "../common/sys.h"
#include "at_fork.h"
#include "../hooks/capture.h"
#include "change.h"
#include "listener.h"
#include "life.h"
#include "questions.h"
#include "talk.h"
#include "own_thread.h"

#define FORK_NAPS 20000	    /* of 50 us: how long fork() waits for a change to be complete */
#define LISTENER_MS 1000    /* how long a forked child waits for its connection */
#define LISTENER_NAPS 20000 /* of 50 us: as long waits its parent */
#define BIRTH_NAPS 2000	    /* and so long for the child to begin, which may have been killed */

/* in a thread in fork() */
static __thread bool may_change __attribute__((tls_model("initial-exec")));
static __thread __u32 fork_tid __attribute__((tls_model("initial-exec")));

/* The listener that the child will open: the parent waits until the child was answered, because it may end
 * at once, as a daemon does, and the thread of the hooks with it. */
static struct hooks_listener *for_child;
/* What errno was. After fork(2) it is not 0 if there is no child: between this and our next function libc
 * calls none but those of malloc(). */
static __thread int errno_before __attribute__((tls_model("initial-exec")));

static void before_fork(void)
{
	__u64 naps = 0;

	/* In a child that libc does not know of nobody completes a change that its parent was making. */
	while (!(may_change = change_try()) && naps++ < FORK_NAPS && is_own_process())
		change_nap();
	fork_tid = (__u32)sys_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
	if (may_change)
		for_child = hooks_follow && capture_is_open() && !capture_is_sandboxed()
				    ? listener_reserve(capture_area())
				    : NULL;
	errno_before = errno;
	errno = 0;
}

/* Waits for the listener, which no child opens if there is none. */
static void wait_for_child(struct hooks_listener *d)
{
	for (int i = 0;
	     i < (listener_is_reserved(d) ? BIRTH_NAPS : LISTENER_NAPS) && !listener_is_answered(d);
	     i++)
		change_nap();
	listener_release(d);
}

static void after_fork(void)
{
	struct hooks_listener *d = may_change ? for_child : NULL;
	int failed = errno;

	if (may_change)
		change_ends();
	may_change = false;
	if (d && failed)
		listener_release(d);
	else if (d)
		wait_for_child(d);
	errno = failed ? failed : errno_before;
}

/* In a forked child: gets a connection through the hooks of its parent. Returns whether it has one. */
static bool get_born(void)
{
	struct hooks_listener who = {
		.kind = LISTENER_CHILD, .pid = (__u32)getpid(), .tid = fork_tid, .ns = meet_now()
	};
	int fd = listener_open(capture_area(), for_child, &who, LISTENER_MS);

	if (fd >= 0)
		talk_child(fd);
	return fd >= 0;
}

static void begin_anew(void)
{
	/* what the kernel says of its parent's filters says nothing of this process */
	capture_watches(NULL);
	engine_watches(NULL);
	if (!hooks_enter(true) && thread_begin(NULL))
		hooks_finish(-EAGAIN);
}

/* The connection and what was kept are the parent's, in a table that the child does not have. */
static void forget_connection(void)
{
	if (thread_along.own)
		talk_forget();
	else
		talk_close();
	text_forget();
}

/* Called in a forked child. The hooks do nothing there until the child has an area of its own. */
static void in_child(void)
{
	bool whole = may_change, anew = whole && hooks_follow && !capture_is_sandboxed();
	struct quiet q;

	quiet_begins(&q);
	may_change = false;
	change_ends();
	forget_connection();
	if (anew)
		anew = get_born();
	capture_forget();
	questions_give_up();
	question_mapped.sent = question_mapped.asked;
	question_reads.sent = question_reads.asked;
	hooks_opened = hooks_follow = thread_pausing = thread_ends.to_be_alone =
		thread_ends.to_share = false;
	questions_alone_ns = 0;
	thread_tid = 0;
	thread_begins = false;
	/* if the engine is half changed, this child can never have hooks */
	hooks_state = whole && !anew ? IDLE : STARTING;
	hooks_pid = getpid();
	if (anew)
		begin_anew();
	quiet_ends(&q);
	errno = errno_before;
}

void forks_follow(void)
{
	void *volatile first = malloc(1);

	free(first);
	pthread_atfork(before_fork, after_fork, in_child);
}
