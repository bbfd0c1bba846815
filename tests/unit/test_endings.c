/* SPDX-License-Identifier: BSD-2-Clause */
/* test_endings.c - which signals end processes and which do not, and what is one incident, at times that are made up. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"
#include "../../user/stuck/hang/endings.h"

#define S 1000000000ULL

static struct ended *e;
static uint64_t now;
static uint32_t foreign; /* a process that does not matter; 0: none */
static bool crowded;	 /* there may be too many */

static void begin(void)
{
	e = ended_open();
	now = 1000 * S;
	foreign = 0;
	crowded = false;
}

static void end(void)
{
	ended_close(e);
}

static struct ct_signal record(uint32_t pid, int what, int signal)
{
	struct ct_signal s = { .h = { .size = sizeof(s), .kind = CT_SIGNAL, .start_ns = now },
			       .tgid = pid,
			       .tid = pid,
			       .shown_tgid = pid,
			       .parent = 50,
			       .what = (uint8_t)what,
			       .signal = (uint8_t)signal };

	return s;
}

static void give(const struct ct_signal *s)
{
	struct ended_process *fresh;
	int err = ended_record(e, s, &fresh);

	CHECK(!err || (err == -ENOSPC && crowded));
}

static void sent(uint32_t pid, int signal, uint32_t by, bool handled)
{
	struct ct_signal s = record(pid, CT_SIGNAL_SENT, signal);

	s.by = by == pid ? CT_SIGNAL_BY_ITSELF : CT_SIGNAL_BY_PROCESS;
	s.sender = s.shown_sender = by;
	s.handled = handled;
	give(&s);
}

static void thread_ends(uint32_t pid, int signal)
{
	struct ct_signal s = record(pid, CT_SIGNAL_THREAD, signal);

	give(&s);
}

static void exits(uint32_t pid, int status)
{
	struct ct_signal s = record(pid, CT_SIGNAL_EXIT, 0);

	s.status = status;
	give(&s);
}

static bool watched(void *ctx, const struct ended_process *p)
{
	(void)ctx;
	return p->pid != foreign;
}

static enum ended_due due(void)
{
	return ended_due(e, now, false, watched, NULL);
}

/* The incident, which is told in the next second. */
static size_t told(const struct ended_process **list)
{
	CHECK_EQ(ENDED_LOOK, due());
	CHECK_EQ(ENDED_NOTHING, due());
	now += S;
	CHECK_EQ(ENDED_TELL, due());
	return ended_list(e, list);
}

static void test_abort(void)
{
	const struct ended_process *list;

	begin();
	sent(100, SIGABRT, 100, false);
	CHECK_EQ(ENDED_NOTHING, due()); /* it may be blocked */
	thread_ends(100, SIGABRT);
	thread_ends(100, SIGKILL);
	exits(100, SIGABRT);
	CHECK_EQ(1, told(&list));
	CHECK_EQ(100, list[0].pid);
	CHECK_EQ(SIGABRT, list[0].signal);
	CHECK_EQ(2, list[0].nthreads);
	CHECK_EQ(true, ended_by_signal(&list[0]));
	ended_forget(e);
	CHECK_EQ(ENDED_NOTHING, due());
	end();
}

/* While its memory is written to a file, it has not ended, and nothing keeps it alive. */
static void test_dumps_core(void)
{
	const struct ended_process *list;

	begin();
	sent(100, SIGSEGV, 100, false);
	thread_ends(100, SIGSEGV);
	CHECK_EQ(1, told(&list));
	CHECK_EQ(true, ended_by_signal(&list[0]));
	CHECK_EQ(-1, list[0].status);
	ended_forget(e);
	end();
}

static void test_handled(void)
{
	const struct ended_process *list;

	begin();
	sent(100, SIGTERM, 7, true);
	now += S;
	CHECK_EQ(ENDED_NOTHING, due());
	now += 2 * S;
	CHECK_EQ(ENDED_NOTHING, due());
	/* what it does later is its own */
	thread_ends(100, SIGKILL);
	exits(100, 0);
	CHECK_EQ(ENDED_NOTHING, due());
	/* one that ends in its handler */
	sent(101, SIGTERM, 7, true);
	now += S / 2;
	thread_ends(101, SIGKILL);
	CHECK_EQ(ENDED_NOTHING, due());
	exits(101, 1 << 8);
	CHECK_EQ(1, told(&list));
	CHECK_EQ(101, list[0].pid);
	CHECK_EQ(SIGTERM, list[0].signal);
	CHECK_EQ(false, ended_by_signal(&list[0]));
	ended_forget(e);
	end();
}

/* A handler that says something, and sends the signal again. */
static void test_again(void)
{
	const struct ended_process *list;
	uint64_t first;

	begin();
	first = now;
	sent(100, SIGABRT, 100, true);
	now += S / 10;
	sent(100, SIGABRT, 100, false);
	thread_ends(100, SIGABRT);
	exits(100, SIGABRT);
	CHECK_EQ(1, told(&list));
	CHECK_EQ(first, list[0].sent_ns);
	CHECK_EQ(true, ended_by_signal(&list[0]));
	ended_forget(e);
	end();
}

/* A rank that aborts, and the others, which a launcher ends for it; another job's process is an incident of its own. */
static void test_one_incident(void)
{
	const struct ended_process *list;
	struct ct_signal other;

	begin();
	foreign = 60;
	sent(60, SIGTERM, 50, false);
	exits(60, SIGTERM);
	CHECK_EQ(ENDED_NOTHING, due());
	now += S / 10;
	sent(103, SIGABRT, 103, false);
	exits(103, SIGABRT);
	now += S / 10;
	other = record(200, CT_SIGNAL_SENT, SIGKILL);
	other.parent = 51;
	other.by = CT_SIGNAL_BY_KERNEL;
	give(&other);
	exits(200, SIGKILL);
	for (uint32_t pid = 102; pid >= 100; pid--) {
		sent(pid, SIGTERM, 50, false);
		exits(pid, SIGTERM);
		now++;
	}
	CHECK_EQ(4, told(&list));
	CHECK_EQ(103, list[0].pid);
	CHECK_EQ(102, list[1].pid);
	CHECK_EQ(100, list[3].pid);
	ended_forget(e);
	CHECK_EQ(ENDED_LOOK, due());
	CHECK_EQ(ENDED_TELL, due());
	CHECK_EQ(1, ended_list(e, &list));
	CHECK_EQ(200, list[0].pid);
	ended_forget(e);
	end();
}

/* A launcher that ends the other ranks some seconds later; ranks of the next run of the job are an incident of their own. */
static void test_goes_on(void)
{
	const struct ended_process *list;
	struct ct_signal next;

	begin();
	sent(100, SIGABRT, 100, false);
	exits(100, SIGABRT);
	CHECK_EQ(1, told(&list));
	CHECK_EQ(false, ended_goes_on(e));
	ended_forget(e);
	for (uint32_t pid = 101; pid < 103; pid++) {
		now += 20 * S;
		sent(pid, SIGKILL, 50, false);
		exits(pid, SIGKILL);
		CHECK_EQ(1, told(&list));
		CHECK_EQ(true, ended_goes_on(e));
		ended_forget(e);
	}
	next = record(110, CT_SIGNAL_SENT, SIGABRT);
	next.by = CT_SIGNAL_BY_ITSELF;
	next.begun_ns = now;
	give(&next);
	exits(110, SIGABRT);
	CHECK_EQ(1, told(&list));
	CHECK_EQ(false, ended_goes_on(e));
	ended_forget(e);
	/* a minute later */
	now += 100 * S;
	sent(103, SIGTERM, 50, false);
	exits(103, SIGTERM);
	CHECK_EQ(1, told(&list));
	CHECK_EQ(false, ended_goes_on(e));
	ended_forget(e);
	end();
}

/* The trace ends with the process: there is no time to look at others. */
static void test_last(void)
{
	const struct ended_process *list;

	begin();
	sent(100, SIGABRT, 100, false);
	exits(100, SIGABRT);
	CHECK_EQ(ENDED_TELL, ended_due(e, now, true, watched, NULL));
	CHECK_EQ(1, ended_list(e, &list));
	ended_forget(e);
	CHECK_EQ(ENDED_NOTHING, ended_due(e, now, true, watched, NULL));
	end();
}

/* More processes and threads than there is room for, and records out of order. */
static void test_many(void)
{
	const struct ended_process *list;

	begin();
	thread_ends(5, SIGKILL);
	exits(5, SIGKILL);
	crowded = true;
	for (uint32_t pid = 1000; pid < 2000; pid++) {
		sent(pid, SIGKILL, 7, false);
		thread_ends(pid, SIGKILL);
		exits(pid, SIGKILL);
	}
	CHECK_EQ(256, told(&list));
	CHECK_EQ(1000, list[0].pid);
	ended_forget(e);
	CHECK_EQ(ENDED_NOTHING, due());
	sent(100, SIGABRT, 100, false);
	exits(100, SIGABRT);
	CHECK_EQ(1, told(&list));
	end();
}

int main(void)
{
	RUN(test_abort);
	RUN(test_dumps_core);
	RUN(test_handled);
	RUN(test_again);
	RUN(test_one_incident);
	RUN(test_goes_on);
	RUN(test_last);
	RUN(test_many);
	return unit_end();
}
