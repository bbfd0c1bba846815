/* SPDX-License-Identifier: BSD-2-Clause */
/* life.c - see life.h. */
#include "../common/compat.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../../wire/filters.h"
#include "../common/code_text.h"
#include "../common/meet.h"
#include "../common/pads.h"
#include "../engine/engine.h"
#include "at_calls.h"
#include "../hooks/capture.h"
#include "change.h"
#include "listener.h"
#include "life.h"
#include "lists.h"
#include "../hooks/muted_funcs.h"
#include "own.h"
#include "questions.h"
#include "talk.h"
#include "own_thread.h"

#define CONNECT_MS 1000
#define SLICE_MS 20

int hooks_state = IDLE;
char hooks_address[512];
bool hooks_opened, hooks_follow;

/* What says in good time that the program has a filter, however it sets it. Is mapped once: a thread may be
 * reading it. Without it filters are looked for once a second. */
static void take_filters(int fd)
{
	static void *words;
	struct hooks_filters f;
	void *at;

	memcpy(&f, talk_message(), sizeof(f));
	if (fd < 0 || f.place >= FILTER_PLACES)
		return;
	at = mmap(words, FILTER_BYTES, PROT_READ, MAP_SHARED | (words ? MAP_FIXED : 0), fd, 0);
	if (at == MAP_FAILED)
		return;
	words = at;
	capture_watches((const __u64 *)at + f.place);
	engine_watches((const __u64 *)at + f.place);
}

static int take_start(size_t size, int fd)
{
	struct hooks_start s;
	int err;

	if (size != sizeof(s) || fd < 0)
		return -EPROTO;
	memcpy(&s, talk_message(), sizeof(s));
	err = s.version != HOOKS_VERSION ? -EPROTO : capture_open(fd, &s);
	hooks_follow = s.flags & HOOKS_S_FOLLOW;
	talk_peer((int)s.tracer);
	muted_begin();
	if (err)
		talk_say(MEET_ERROR, "process %d: no room for the calls' records: %s",
			 (int)hooks_pid, strerror(-err));
	return err;
}

/* As talk_get(); ends early if the thread must end. waits: the program waits for it: not for a peer that is
 * stopped. */
static int get_first(bool waits, size_t *size, int *fd)
{
	int type = 0;

	*fd = -1;
	for (int ms = 0; ms < MEET_WAIT_MS && !type; ms += SLICE_MS) {
		if (waits && (questions_unanswered || talk_is_stopped()))
			return 0;
		type = thread_must_end() ? -EPIPE : talk_get(SLICE_MS, size, fd);
	}
	return type;
}

/* Runs until the first list of functions is hooked. Returns 0 or -errno. */
static int begin(bool waits)
{
	bool started = false;
	size_t size = 0;
	int fd, err = 0;

	list_begin();
	while (!err) {
		int type = get_first(waits, &size, &fd);
		bool last = false;
		__u32 number;

		change_begins();
		if (type == HOOKS_START && !started) {
			err = take_start(size, fd);
			started = true;
		} else if (type == HOOKS_FILTERS && started) {
			take_filters(fd);
		} else if (type == HOOKS_SPECS && started) {
			specs_take(size);
		} else if (type == HOOKS_PYTHON && started) {
			python_take();
		} else if (type == HOOKS_MUTE && started) {
			mute_take();
		} else if (type == HOOKS_FUNCS && started) {
			err = list_take(size, &last, &number);
		} else {
			err = type < 0 ? type : type ? -EPROTO : -ETIMEDOUT;
		}
		change_ends();
		if (fd >= 0)
			close(fd);
		if (last)
			break;
	}
	return err;
}

/* What other tracers did to the hooks, as it was last reported to the peer. */
static struct hook_state said;

void others_say(const struct hook_state *s)
{
	if (s->foreign > said.foreign)
		talk_say(MEET_WARN,
			 "process %d: another tracer has put breakpoints on %u functions that have "
			 "hooks: their calls are not shown while the breakpoints are there",
			 (int)hooks_pid, s->foreign);
	if (s->rewritten > said.rewritten)
		talk_say(MEET_WARN,
			 "process %d: another tracer had removed %u hooks, which have been put "
			 "back: calls of these functions are missing for up to a second",
			 (int)hooks_pid, s->rewritten - said.rewritten);
	said = *s;
}

static void others_begin(void)
{
	said = (struct hook_state){ 0 };
}

void filters_look(int threads)
{
	bool strict = false, found = own_finds_filters(threads, &strict);

	/* our thread is not concerned, and takes the hooks off */
	if (strict) {
		__atomic_store_n(&thread_ends.unnoticed, true, __ATOMIC_RELEASE);
		__atomic_store_n(&thread_ends.no_clock, true, __ATOMIC_RELEASE);
		engine_rest();
	}
	if (filter_is_known || (!found && !capture_is_sandboxed()))
		return;
	filter_is_known = true;
	capture_sandboxed(true);
	engine_sandboxed();
	talk_say(MEET_VERB,
		 "process %d: a thread restricts its system calls (seccomp): no hook makes one "
		 "from here on",
		 (int)hooks_pid);
}

void hooks_finish(int err)
{
	struct hook_leftover left = { 0 };
	int failed = 0;

	change_begins();
	hooks_follow = false;
	if (capture_is_open())
		listeners_close(capture_area());
	if (hooks_opened)
		capture_interrupted(engine_interrupted());
	if (thread_ends.to_share || thread_ends.sandboxed || thread_ends.to_be_alone ||
	    thread_ends.no_clock)
		capture_gone();
	capture_close();
	questions_give_up();
	if (hooks_opened)
		failed = engine_remove(&left);
	change_ends();
	if (failed || left.stuck)
		talk_say(MEET_WARN,
			 "process %d: its hooks could not be removed (%s): its code stays changed, "
			 "which does nothing but take it some nanoseconds a call; a later trace of "
			 "it with --source=hooks removes them, if the process may write to its "
			 "code then",
			 (int)hooks_pid, strerror(failed ? -failed : EACCES));
	if (left.inside)
		talk_say(MEET_VERB,
			 "process %d: %u calls that are still running return through code that "
			 "stays mapped",
			 (int)hooks_pid, left.inside);
	if (thread_ends.to_be_alone)
		talk_say(MEET_WARN,
			 "process %d: it changed its namespaces or capabilities, for which it has "
			 "to be without a thread of cudatrace's, and this thread could not come "
			 "back: its hooks were removed, and its calls are not shown unless it "
			 "executes another program",
			 (int)hooks_pid);
	if (thread_ends.to_share)
		talk_say(MEET_WARN,
			 "process %d: it makes a child that shares its memory (clone() with "
			 "CLONE_VM), and hooks cannot tell the two apart: its hooks were removed "
			 "first, and its calls are not shown from now on",
			 (int)hooks_pid);
	if (thread_ends.sandboxed)
		talk_say(MEET_WARN,
			 "process %d: it restricts the system calls of all its threads (seccomp): "
			 "its "
			 "hooks were removed first, and its calls are not shown from now on",
			 (int)hooks_pid);
	if (thread_ends.no_clock && thread_ends.unnoticed)
		talk_say(MEET_WARN,
			 "process %d: a thread of it is in the strict mode of seccomp, which was "
			 "noticed only afterwards: a call of CUDA in that thread might have ended "
			 "the process; its hooks were removed, and its calls are not shown from "
			 "now on: use --source=probes",
			 (int)hooks_pid);
	else if (thread_ends.no_clock)
		talk_say(MEET_WARN,
			 "process %d: it forbids a thread to take times (prctl(PR_SET_TSC), or "
			 "seccomp): its hooks were removed first, and its calls are not shown from "
			 "now on",
			 (int)hooks_pid);
	talk_bye(err, (__u32)left.kept_bytes);
	talk_close();
	text_let_go();
	__atomic_store_n(&hooks_state, IDLE, __ATOMIC_RELEASE);
}

static int open_engine(void)
{
	struct rlimit limit;
	int err = 0;

	change_begins();
	if (!hooks_opened)
		err = engine_open(&at_calls);
	hooks_opened = !err;
	if (hooks_opened && !getrlimit(RLIMIT_AS, &limit) && limit.rlim_cur != RLIM_INFINITY)
		engine_fit(limit.rlim_cur / HOOKS_LIMIT_PART);
	change_ends();
	return err;
}

int hooks_enter(bool waits)
{
	int err = talk_hello();

	if (!err)
		err = open_engine();
	if (err && err != -EPIPE)
		talk_say(MEET_ERROR,
			 err == -ENOTSUP
				 ? "process %d: no hooks can be put on: shadow stacks (CET) "
				   "are in use, or pages are not of 4 KiB"
				 : "process %d: no hooks can be put on",
			 (int)hooks_pid);
	if (!err) {
		filters_look(HOOK_THREADS);
		loader_look();
		at_calls_begin();
		err = begin(waits);
	}
	if (err) {
		hooks_finish(err);
	} else {
		change_begins();
		others_begin();
		loader_hook();
		own_hook_others();
		pads_reserve();
		change_ends();
		__atomic_store_n(&hooks_state, RUNNING, __ATOMIC_RELEASE);
	}
	return err;
}

int hooks_connect(void)
{
	int err = talk_connect(hooks_address, CONNECT_MS);

	if (err)
		__atomic_store_n(&hooks_state, IDLE, __ATOMIC_RELEASE);
	return err;
}
