/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * start.c - how the hooks begin in a process that is not ours: by the constructor of this object, or by the call
 * of an injector. Nothing here and in what it calls prints, exits, or waits in the program's threads without a
 * limit.
 *
 * With LD_PRELOAD the constructor runs before those of all other libraries (-z initfirst), so that no call is
 * missed, and puts the hooks on before it returns. If the library is injected, the injector calls
 * cudatrace_hooks_start() on a borrowed thread: it only makes the thread of the hooks (own_thread.c).
 */
#include "../common/compat.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "../common/meet.h"
#include "at_fork.h"
#include "change.h"
#include "life.h"
#include "questions.h"
#include "talk.h"
#include "own_thread.h"

int cudatrace_hooks_start(const char *text);

/* If it returns 0, the state is STARTING, and the caller owns it. */
static int claim(const char *text)
{
	int idle = IDLE;

	if (!text || strlen(text) >= sizeof(hooks_address))
		return -EINVAL;
	if (thread_ends.no_clock || !meet_may_take_times())
		return -ENOTSUP;
	if (!__atomic_compare_exchange_n(&hooks_state, &idle, STARTING, 0, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED))
		return -EBUSY;
	strcpy(hooks_address, text);
	thread_ends.to_be_alone = thread_ends.to_share = questions_unanswered = false;
	questions_alone_ns = 0;
	if (hooks_pid != getpid()) {
		if (!hooks_pid)
			forks_follow();
		hooks_pid = getpid();
	}
	return 0;
}

static bool has_thread_sanitizer(void)
{
	return dlsym(RTLD_DEFAULT, "__tsan_init") != NULL;
}

static int start(const char *text)
{
	int err = claim(text);

	if (err) {
		talk_refuse(text);
		return err;
	}
	err = hooks_connect();
	if (err)
		return err;
	err = thread_begin(&hooks_state);
	if (err) {
		talk_close();
		__atomic_store_n(&hooks_state, IDLE, __ATOMIC_RELEASE);
	}
	return err;
}

__attribute__((visibility("default"))) int cudatrace_hooks_start(const char *text)
{
	struct quiet q;
	int err;

	quiet_begins(&q);
	err = start(text);
	quiet_ends(&q);
	return err;
}

/*
 * Our constructor runs before those of all libraries. A sanitizer's functions stand in for those of libc that
 * we call, so it must have begun before. Returns false with ThreadSanitizer, which knows the places of all
 * memory and ends a program that has some elsewhere, as hooks need it.
 */
static bool begin_sanitizers(void)
{
	static const char *const names[] = { "__asan_init", "__hwasan_init", "__lsan_init" };

	if (has_thread_sanitizer())
		return false;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		void (*init)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, names[i]);

		if (init)
			init();
	}
	return true;
}

__attribute__((constructor)) static void born(int argc, char **argv, char **envp)
{
	static const char name[] = HOOKS_ENV "=";

	(void)argc;
	(void)argv;
	for (; envp && *envp; envp++) {
		if (strncmp(*envp, name, sizeof(name) - 1))
			continue;
		if (!begin_sanitizers())
			return;
		thread_meet();
		if (!claim(*envp + sizeof(name) - 1) && !hooks_connect() && !hooks_enter(true) &&
		    thread_begin(NULL))
			hooks_finish(-EAGAIN);
		return;
	}
	thread_meet();
}
