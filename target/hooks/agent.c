/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * agent.c - runs the hooks in a process that is not ours: it finds where to connect, hooks the
 * functions, and removes the hooks at the end. It never prints, never exits, and never waits in the
 * program's threads without a limit.
 *
 * It is loaded in one of two ways. With LD_PRELOAD its constructor runs before those of all other
 * libraries (-z initfirst), so that no call is missed, and puts the hooks on before it returns. If
 * the library is injected, the injector calls cudatrace_hooks_start() on a borrowed thread: it only
 * makes the thread of the hooks. The thread of the hooks hooks functions of libraries that are mapped later,
 * checks the hooks once a second, and removes them when the peer says so or is gone.
 *
 * The thread has a descriptor table of its own (fd_table.h), in which are the connection and what it needs
 * to take the hooks off. No other thread touches these: it rings a bell in the area (listener.h), and what it
 * wants to say is said by the thread of the hooks.
 *
 * A forked child has its parent's hooks, which do nothing in the child. If children are traced, the
 * child asks the hooks of its parent for a new connection before fork() returns, and gets an area and a
 * thread of its own.
 */
#include "../common/compat.h"

#include <dlfcn.h>
#include <link.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "../common/alone.h"
#include "../common/along.h"
#include "../common/meet.h"
#include "../common/pads.h"
#include "capture.h"
#include "listener.h"
#include "../engine/engine.h"
#include "layers.h"
#include "muted_funcs.h"
#include "own.h"
#include "python_frames.h"
#include "../common/sys.h"
#include "talk.h"
#include "../common/code_text.h"
#include "../../wire/filters.h"

#define CONNECT_MS 1000
#define LOOK_MS 1000 /* how often to check the hooks, and whether the program has ended */
#define LOOK_STOPPED_MS \
	50		/* how often to check whether the peer is stopped, while it is waited for */
#define FORK_NAPS 20000 /* of 50 us: how long fork() waits for a change to be complete */
#define FILTERS_EACH 32 /* threads whose filters are looked at each time */
#define LIMIT_NAPS 4000 /* the same, for a change of the limits */
#define LISTENER_MS 1000    /* how long a forked child waits for its connection */
#define LISTENER_NAPS 20000 /* of 50 us: as long waits its parent */
#define BIRTH_NAPS 2000	    /* and so long for the child to begin, which may have been killed */
#define SLICE_MS 20

enum state { IDLE, STARTING, RUNNING };

static int state = IDLE;
static char how[512];
static bool opened, loader_hooked;
static bool follows; /* forked children get hooks, too */
static pid_t own_pid;

int cudatrace_hooks_start(const char *text);

/* ---- one at a time ---- */

/*
 * 1 while the engine is being changed, or while a thread is in fork(), because the child must not
 * get an engine that is half changed. This is not a mutex of libc, because the child would not be
 * its owner.
 */
static int changing;
static __thread bool may_change
	__attribute__((tls_model("initial-exec"))); /* in a thread in fork() */
/* Set in a child of vfork(), which has its parent's memory (vfork_*.S). */
__thread int hooks_in_vfork __attribute__((tls_model("initial-exec"), visibility("hidden")));
static __thread __u32 forker __attribute__((tls_model("initial-exec")));

static bool try_change(void)
{
	return !__atomic_exchange_n(&changing, 1, __ATOMIC_ACQUIRE);
}

static void change_ends(void)
{
	__atomic_store_n(&changing, 0, __ATOMIC_RELEASE);
}

static void nap(void)
{
	sys_call(SYS_nanosleep, (long)&(struct timespec){ .tv_nsec = 50000 }, 0, 0, 0, 0, 0);
}

static void change_begins(void)
{
	while (!try_change())
		nap();
}

/* While a thread of the program does more for us than to ring: no handler of the program runs there, which
 * could find our descriptors or fork, nothing cancels the thread, and errno stays. */
struct quiet {
	sigset_t signals;
	int cancel, errno_was;
};

static void quiet_begins(struct quiet *q)
{
	sigset_t all;

	q->errno_was = errno;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &q->signals);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &q->cancel);
}

static void quiet_ends(const struct quiet *q)
{
	pthread_setcancelstate(q->cancel, NULL);
	pthread_sigmask(SIG_SETMASK, &q->signals, NULL);
	errno = q->errno_was;
}

/* ---- what the dynamic loader has mapped ---- */

/*
 * The loader's own count of loaded objects: the second word of _rtld_global in all versions of
 * glibc. It is used only if it agrees with the list that debuggers read.
 */
static const unsigned int *loaded;
static unsigned int loaded_last;

static unsigned int list_length(void)
{
	unsigned int n = 0;

	for (const struct link_map *m = _r_debug.r_map; m && n < 100000; m = m->l_next)
		n++;
	return n;
}

static unsigned int count_loaded(void)
{
	return loaded ? __atomic_load_n(loaded, __ATOMIC_RELAXED) : list_length();
}

static void find_loaded(void)
{
	const struct {
		const struct link_map *first;
		unsigned int n;
	} *global = dlsym(RTLD_DEFAULT, "_rtld_global");

	loaded = global && global->first == _r_debug.r_map && global->n == list_length()
			 ? &global->n
			 : NULL;
}

/* Notes the loader's count. Hooks are requested for everything that is mapped after this. It is
 * called before the first list of functions is made, so that objects that are mapped while the list
 * is made are not assumed to be hooked. */
static void look_at_loader(void)
{
	static bool found;

	if (!found)
		find_loaded();
	found = true;
	__atomic_store_n(&loaded_last, count_loaded(), __ATOMIC_RELEASE);
}

/* ---- questions ---- */

/* The questions to the peer, one for each type of message; wire.h says how they are numbered. */
static struct question {
	enum hooks_type type;
	__u32 asked;	/* the newest number that was assigned */
	__u32 sent;	/* the newest one that was sent */
	__u32 answered; /* a futex */
} mapped = { .type = HOOKS_MAPPED }, reads = { .type = HOOKS_READ };

static __u32 take_number(struct question *q)
{
	return __atomic_add_fetch(&q->asked, 1, __ATOMIC_ACQ_REL);
}

static bool is_answered(const struct question *q, __u32 number)
{
	return (__s32)(__atomic_load_n(&q->answered, __ATOMIC_ACQUIRE) - number) >= 0;
}

/* Marks this question and all before it as answered. */
static void answered(struct question *q, __u32 number)
{
	__u32 had = __atomic_load_n(&q->answered, __ATOMIC_RELAXED);

	do
		if ((__s32)(number - had) <= 0)
			return;
	while (!__atomic_compare_exchange_n(&q->answered, &had, number, 1, __ATOMIC_ACQ_REL,
					    __ATOMIC_RELAXED));
	sys_call(SYS_futex, (long)&q->answered, FUTEX_WAKE_PRIVATE, 1 << 30, 0, 0, 0);
}

/* The peer is gone and will not answer: wakes the threads that wait. */
static void give_up_questions(void)
{
	answered(&mapped, __atomic_load_n(&mapped.asked, __ATOMIC_ACQUIRE));
	answered(&reads, __atomic_load_n(&reads.asked, __ATOMIC_ACQUIRE));
}

/* A question was not answered in time: nobody waits for one until a message has come. A forked child
 * inherits this. */
static bool unanswered;
static __u64 alone_ns; /* since then threads go on without an answer; 0: they have waited for each */

static __u64 sys_now(void)
{
	struct timespec t = { 0 };

	sys_call(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&t, 0, 0, 0, 0);
	return (__u64)t.tv_sec * 1000000000 + (__u64)t.tv_nsec;
}

static void go_on(struct question *q, __u32 number)
{
	__u64 none = 0;

	if (is_answered(q, number))
		return;
	if (q == &mapped && capture_is_open())
		__atomic_compare_exchange_n(&alone_ns, &none, sys_now(), 0, __ATOMIC_ACQ_REL,
					    __ATOMIC_RELAXED);
	answered(q, number);
}

/* Waits for the answer, but not longer than HOOKS_ANSWER_MS, and not for a peer that is stopped, which the
 * thread of the hooks finds. After that, no thread waits for it. */
static void wait_for_answer(struct question *q, __u32 number)
{
	__u64 until = sys_now() + HOOKS_ANSWER_MS * 1000000ULL;

	while (!is_answered(q, number) && capture_is_open()) {
		__u32 had = __atomic_load_n(&q->answered, __ATOMIC_ACQUIRE);
		__u64 now = sys_now(), left = until > now ? until - now : 0;
		struct timespec wait = { .tv_sec = (long)(left / 1000000000),
					 .tv_nsec = (long)(left % 1000000000) };

		if (!left)
			__atomic_store_n(&unanswered, true, __ATOMIC_RELEASE);
		if (__atomic_load_n(&unanswered, __ATOMIC_ACQUIRE)) {
			go_on(q, number);
			return;
		}
		if ((__s32)(had - number) < 0)
			sys_call(SYS_futex, (long)&q->answered, FUTEX_WAIT_PRIVATE, had,
				 (long)&wait, 0, 0);
	}
}

/* Has the thread of the hooks ask. If it cannot, no thread waits for the answer. */
static void ask(struct question *q, __u32 number)
{
	if (capture_is_open())
		bell_ring(capture_area());
	else
		answered(q, number);
}

/*
 * Asks for hooks if code was mapped since the last question. Returns the number of a question: once
 * it is answered, all code that is mapped now has its hooks. Another thread may have asked this
 * question, for example one that is about to wait for the loader's lock. The number is assigned
 * before the count is stored, so that a thread that sees the count also sees the number.
 */
static __u32 ask_for_mapped(void)
{
	unsigned int n = count_loaded();
	__u32 number;

	if (n == __atomic_load_n(&loaded_last, __ATOMIC_ACQUIRE))
		return __atomic_load_n(&mapped.asked, __ATOMIC_ACQUIRE);
	number = take_number(&mapped);
	__atomic_store_n(&loaded_last, n, __ATOMIC_RELEASE);
	ask(&mapped, number);
	return number;
}

/* Returns whether all questions were sent. If not, no thread waits for the answers. */
static bool send_questions_of(struct question *q)
{
	__u32 number = __atomic_load_n(&q->asked, __ATOMIC_ACQUIRE);

	if ((__s32)(number - q->sent) <= 0)
		return true;
	q->sent = number;
	if (!talk_ask(q->type, number))
		return true;
	go_on(q, number);
	return false;
}

/* On the thread of the hooks. */
static void send_questions(void)
{
	send_questions_of(&reads);
	if (!send_questions_of(&mapped)) /* the next thread that checks asks again */
		__atomic_store_n(&loaded_last, ~count_loaded(), __ATOMIC_RELEASE);
}

/* On the thread of the hooks: does somebody wait for an answer? If the peer is stopped, nobody does any more. */
static bool is_waited_for(void)
{
	struct question *const all[] = { &mapped, &reads };
	bool waits = false;

	for (int i = 0; i < 2; i++)
		waits |= !is_answered(all[i], __atomic_load_n(&all[i]->asked, __ATOMIC_ACQUIRE));
	if (!waits || !talk_is_stopped())
		return waits;
	__atomic_store_n(&unanswered, true, __ATOMIC_RELEASE);
	for (int i = 0; i < 2; i++)
		go_on(all[i], __atomic_load_n(&all[i]->asked, __ATOMIC_ACQUIRE));
	return false;
}

/* ---- on the program's threads ---- */

static __u32 agent_tid;	  /* of the thread of the hooks; 0: there is none, or it does not run yet */
static bool agent_begins; /* there is a thread of the hooks, or it is being started */
/* the thread of the hooks must end, because its system calls are about to be restricted, or because the
 * program makes a call that needs a process with one thread */
static bool all_sandboxed, to_be_alone;
/* the same, because the program is about to make a child that shares its memory and its threads' areas */
static bool to_share;
/* the same, because a thread of the program will not be able to take times; stays */
static bool no_clock;
static bool filter_known; /* the program restricts its system calls */
static bool pausing;	  /* the thread of the hooks must end, and the hooks stay */

static void *thread_main(void *begins);
static void finish(int err);
static void look_for_filters(int threads);

/* How the connection, and what was kept, go to the thread of the hooks; own: it has, or had, a descriptor table of
 * its own. */
static struct along along;

/* On the thread of the hooks. Returns 0 or -errno: it has no connection. */
static int take_along(void)
{
	struct text_fds kept = text_kept();
	int fds[ALONG_FDS] = { talk_fd(), kept.mem, kept.maps }, err = along_take(&along, fds);

	if (err)
		return err;
	if (along.own) {
		talk_moved(fds[0]);
		if (talk_fd() < 0 && fds[0] >= 0)
			close(fds[0]); /* another file had got the number at the last moment */
		text_keep_these((struct text_fds){ fds[1], fds[2] });
		if (fds[1] < 0 || fds[2] < 0)
			text_keep();
		alone_keep();
	}
	along_taken(&along);
	return 0;
}

/* Starts the thread of the hooks, which takes the connection of the calling thread over. Its thread id is
 * known only once it runs. Returns 0 or -errno. */
static int begin_thread(void *begins)
{
	struct held connection = talk_held();
	struct text_fds kept = text_kept();
	const int fds[ALONG_FDS] = { talk_fd(), kept.mem, kept.maps };
	int err;

	__atomic_store_n(&agent_begins, true, __ATOMIC_RELEASE);
	err = along_begin(&along, thread_main, begins, fds);
	if (err)
		__atomic_store_n(&agent_begins, false, __ATOMIC_RELEASE);
	if (err || !along.own)
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
	__u32 tid = __atomic_load_n(&agent_tid, __ATOMIC_ACQUIRE);

	for (int i = 0;
	     !tid && __atomic_load_n(&agent_begins, __ATOMIC_ACQUIRE) && i < HOOKS_MAPPED_MS * 10;
	     i++) {
		nap();
		tid = __atomic_load_n(&agent_tid, __ATOMIC_ACQUIRE);
	}
	return tid;
}

/* Waits until the thread is gone, but not longer than for the hooks of a library. Returns whether
 * it is gone. */
static bool thread_gone(__u32 tid)
{
	for (int i = 0; i < HOOKS_MAPPED_MS * 10; i++) {
		if (sys_call(SYS_tgkill, own_pid, tid, 0, 0, 0, 0) == -ESRCH)
			return true;
		nap();
	}
	return false;
}

/* Must the thread of the hooks take the hooks off and end? */
static bool must_end(void)
{
	return __atomic_load_n(&to_share, __ATOMIC_ACQUIRE) ||
	       __atomic_load_n(&all_sandboxed, __ATOMIC_ACQUIRE) ||
	       __atomic_load_n(&no_clock, __ATOMIC_ACQUIRE) ||
	       __atomic_load_n(&to_be_alone, __ATOMIC_ACQUIRE);
}

/* Makes the thread of the hooks take the hooks off and end, and waits for that. */
static void end_thread(bool *why)
{
	__u32 tid = thread_begun();

	__atomic_store_n(why, true, __ATOMIC_RELEASE);
	if (capture_is_open())
		bell_ring(capture_area());
	if (tid)
		thread_gone(tid);
}

/* Has the thread of the hooks end, which keeps the connection and so on in the program's table. Returns
 * whether it was told. */
static bool let_thread_leave(int fds[ALONG_FDS])
{
	const struct hooks_listener who = { .kind = LISTENER_LEAVE,
					    .pid = (__u32)own_pid,
					    .ns = meet_now() };
	int fd, err;

	if (!along.own) {
		__atomic_store_n(&pausing, true, __ATOMIC_RELEASE);
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

/*
 * Makes the thread of the hooks end, and waits for that; the hooks stay, and the calling thread, which is the
 * only one of the program, has the descriptors. Returns false if it could not be done so: then the hooks
 * have been taken off.
 */
static bool pause_thread(void)
{
	__u32 tid = thread_begun();
	int fds[ALONG_FDS] = { -1, -1, -1 };
	bool left = false;
	struct quiet q;

	quiet_begins(&q);
	if (tid && __atomic_load_n(&state, __ATOMIC_ACQUIRE) == RUNNING && capture_is_open())
		left = let_thread_leave(fds) && thread_gone(tid) &&
		       __atomic_load_n(&state, __ATOMIC_ACQUIRE) == RUNNING;
	if (left) {
		if (along.own) {
			talk_moved(fds[0]);
			text_keep_these((struct text_fds){ fds[1], fds[2] });
		}
		__atomic_store_n(&agent_tid, 0, __ATOMIC_RELEASE);
		__atomic_store_n(&agent_begins, false, __ATOMIC_RELEASE);
	} else {
		__atomic_store_n(&pausing, false, __ATOMIC_RELEASE);
		end_thread(&to_be_alone);
	}
	quiet_ends(&q);
	return left;
}

/* Starts the thread again, when the call has returned for which it was ended. */
static void resume_thread(void)
{
	struct quiet q;

	hook_guard_enter();
	quiet_begins(&q);
	__atomic_store_n(&pausing, false, __ATOMIC_RELEASE);
	if (begin_thread(NULL)) { /* after CLONE_NEWPID there are no new threads */
		to_be_alone = true;
		finish(0);
	}
	quiet_ends(&q);
	hook_guard_leave();
}

/* Returns false in a child that has its parent's memory (vfork()) or that libc does not know of:
 * what it does to itself must not change its parent's hooks. */
static bool is_own_process(void)
{
	return sys_call(SYS_getpid, 0, 0, 0, 0, 0, 0) == own_pid;
}

/* dlmopen() has been called: the loader's count does not say what is mapped in other namespaces. */
static bool other_namespaces;

/* Asks for hooks, whatever the loader's count says, and waits for them. */
static void ask_anew(void)
{
	__u32 number = take_number(&mapped);

	ask(&mapped, number);
	wait_for_answer(&mapped, number);
}

/* Called at the loader's function: the loader may have mapped code that has not run yet. The code
 * must get its hooks before it runs. In a sandbox it gets them within a second. */
static __attribute__((cold, noinline)) void on_loader(bool constructs)
{
	if (capture_is_sandboxed() || !is_own_process())
		return;
	/* this is also called before anything is mapped */
	if (capture_is_open() && try_change()) {
		pads_reserve();
		change_ends();
	}
	if (constructs && __atomic_load_n(&other_namespaces, __ATOMIC_RELAXED))
		ask_anew();
	else
		wait_for_answer(&mapped, ask_for_mapped());
}

/* Called at dlmopen(). That the library of an earlier call is gone is learnt now, before another one
 * is mapped at its place. */
static void on_namespace(void)
{
	if (capture_is_sandboxed() || !is_own_process())
		return;
	__atomic_store_n(&other_namespaces, true, __ATOMIC_RELAXED);
	ask_anew();
}

/* What leave() does for our own cookies: frame.data[0] */
enum { AFTER_NAME, AFTER_PAUSE };

/* The thread of the hooks cannot continue under a filter. */
static void on_filter(bool all_threads)
{
	if (!capture_is_sandboxed() && !is_own_process())
		return;
	filter_known = true;
	capture_sandboxed();
	engine_sandboxed();
	if (all_threads)
		end_thread(&all_sandboxed);
}

/* A thread in which the processor's clock is forbidden, or the system call that hooks take times from,
 * would be ended at its next hook. If system calls are forbidden already, the hooks do nothing from now
 * on, and the thread of the hooks removes them within a second. */
static void on_clock(void)
{
	if (!capture_is_sandboxed()) {
		if (is_own_process())
			end_thread(&no_clock);
		return;
	}
	__atomic_store_n(&no_clock, true, __ATOMIC_RELEASE);
	engine_rest();
}

/* The program is about to limit its address space, of which we leave it all but a part. A signal's handler may
 * have interrupted a change of this thread, which does not end then. */
static void on_limit(const struct own_call *c)
{
	__u64 naps = 0, bytes;

	if (capture_is_sandboxed() || !is_own_process() || !own_limits_addresses(c, &bytes))
		return;
	while (!try_change()) {
		if (naps++ == LIMIT_NAPS)
			return;
		nap();
	}
	engine_fit(bytes / HOOKS_LIMIT_PART);
	capture_fit(bytes / HOOKS_LIMIT_PART);
	change_ends();
}

/* Called when the program ends: otherwise changes that another tracer made to the hooks since the
 * last engine_check() would not be known. A child of vfork(), which may be killed here, must not
 * keep its parent from changing the hooks. */
static void look_at_last(void)
{
	if (capture_is_sandboxed() || !is_own_process() || !try_change())
		return;
	capture_interrupted(engine_interrupted());
	change_ends();
}

/* Called at unshare, setns and capset. Returns whether the thread has been ended for it, and must come
 * back. */
static bool on_rights(const struct own_call *c)
{
	if (capture_is_sandboxed() || !is_own_process() || !own_needs_one_thread(c))
		return false;
	if (!own_changes_clock(c))
		return pause_thread();
	end_thread(&to_be_alone);
	return false;
}

/* Called when the program is about to make a child that runs in its memory, with the same control block
 * as the calling thread: both would use one area, at the same time. */
static void on_sharing(void)
{
	if (!capture_is_sandboxed() && is_own_process() && capture_is_open())
		end_thread(&to_share);
}

/* Called at a function of libc that is hooked for ourselves. Returns whether its return is wanted. */
static __attribute__((cold, noinline)) bool on_own(struct hook_frame *f, const struct hook_regs *r)
{
	struct own_call c = own_call(f->id, r);

	switch (c.meaning) {
	case OWN_LOADER:
	case OWN_CONSTRUCTS: on_loader(c.meaning == OWN_CONSTRUCTS); break;
	case OWN_NAMESPACE: on_namespace(); break;
	case OWN_END: look_at_last(); break;
	case OWN_NAME:
		capture_renames();
		f->data[0] = AFTER_NAME;
		return true;
	case OWN_FILTER:
	case OWN_FILTER_ALL: on_filter(c.meaning == OWN_FILTER_ALL); break;
	case OWN_CLOCK: on_clock(); break;
	case OWN_LIMIT: on_limit(&c); break;
	case OWN_RIGHTS: f->data[0] = AFTER_PAUSE; return on_rights(&c);
	case OWN_SHARES: on_sharing(); break;
	case OWN_NOTHING: break;
	}
	return false;
}

/* Called at a hook while a child of vfork() may be running. Returns whether this is its parent, which a
 * signal's handler has made leave vfork() by a jump. */
static __attribute__((cold, noinline)) bool has_left_vfork(__u64 id)
{
	if (!capture_is_sandboxed() && is_own_process()) {
		hooks_in_vfork = 0;
		return true;
	}
	if (id < OWN_COOKIES)
		capture_in_vfork();
	return false;
}

HOOK_WAY(2) static bool entry(struct hook_frame *f, const struct hook_regs *r)
{
	if (hooks_in_vfork && !has_left_vfork(f->id))
		return false;
	if (f->id >= OWN_COOKIES)
		return on_own(f, r);
	return capture_enters(f, r, f->id);
}

HOOK_WAY(6) static void leave(struct hook_frame *f, __u64 result)
{
	__u32 number;

	if (f->id >= OWN_COOKIES) {
		if (f->data[0] == AFTER_PAUSE)
			resume_thread();
		else
			capture_renamed();
	} else if (capture_leaves(f, f->id, result)) {
		number = take_number(&reads);
		ask(&reads, number);
		wait_for_answer(&reads, number);
	}
}

static void missed(__u32 id, enum hook_miss why)
{
	if (id < OWN_COOKIES)
		capture_missed(id, why);
}

static const struct hook_ops ops = {
	.entry = entry, .leave = leave, .missed = missed, .counts = capture_counts
};

/* ---- what is hooked ---- */

_Static_assert(HOOKS_PARTLY == (int)HOOK_PARTLY && HOOKS_ZONE == (int)HOOK_ZONE &&
		       HOOKS_NO_WRITE == (int)HOOK_NO_WRITE,
	       "the user side's view");

static __u32 said_late; /* the number of engine_hooked_late() that was last reported to the peer */

/* Reports to the peer that functions were hooked late: some get their hooks only when the loader
 * binds a slot through which they are called. */
static void say_late(void)
{
	struct hooks_installed out = { .h = { .type = HOOKS_INSTALLED, .size = sizeof(out) } };

	out.late = engine_hooked_late();
	if (out.late == said_late)
		return;
	said_late = out.late;
	talk_put(&out, sizeof(out), 1000);
}

/*
 * The functions of all messages of one list, which ends with HOOKS_LAST. They are hooked together,
 * so that all objects are searched for slots only once.
 */
static struct hook_spec *listed;
static unsigned int nlisted, listed_room;

static int keep_list(size_t size)
{
	const char *at = (const char *)talk_message() + sizeof(struct hooks_list);
	unsigned int n =
		(unsigned int)((size - sizeof(struct hooks_list)) / sizeof(struct hooks_func));

	if (nlisted + n > listed_room) {
		struct hook_spec *more = realloc(listed, (nlisted + n) * sizeof(*listed));

		if (!more)
			return -ENOMEM;
		listed = more;
		listed_room = nlisted + n;
	}
	for (unsigned int i = 0; i < n; i++) {
		struct hook_spec *spec = &listed[nlisted++];
		struct hooks_func f;

		memcpy(&f, at + i * sizeof(f), sizeof(f));
		*spec = (struct hook_spec){
			.address = f.address,
			.size = f.size,
			.id = f.cookie,
			.flags = (f.flags & HOOKS_F_ENTRY_ONLY ? HOOK_ENTRY_ONLY : 0u) |
				 (f.flags & HOOKS_F_REGS ? HOOK_REGS : 0u) |
				 (f.flags & HOOKS_F_FOLDS ? HOOK_FOLDS : 0u) |
				 (f.flags & HOOKS_F_MUTES ? HOOK_COUNTABLE | muted_flags(f.cookie)
							  : 0u),
			.nfile = f.nfile <= sizeof(f.file) ? f.nfile : 0,
		};
		if (f.tensors)
			layers_tensors(f.cookie, f.tensors);
		memcpy(spec->file, f.file, sizeof(spec->file));
	}
	return 0;
}

static __u32 list_number; /* of the question that the list under way answers */

/* How long ago the first thread went on without an answer; 0: none did. Forgets it with the answer to the
 * last question. */
static __u32 alone_ms(void)
{
	__u64 since = __atomic_load_n(&alone_ns, __ATOMIC_ACQUIRE), ms;

	if (list_number == __atomic_load_n(&mapped.asked, __ATOMIC_ACQUIRE))
		__atomic_store_n(&alone_ns, 0, __ATOMIC_RELEASE);
	ms = since ? (sys_now() - since) / 1000000 + 1 : 0;

	return ms < ~0U ? (__u32)ms : ~0U;
}

#define INSTALLED_MOST ((MEET_MSG_MAX - sizeof(struct hooks_installed)) / sizeof(__s32))

/* Why nothing could be hooked: /proc/self/mem or /proc/self/maps could not be opened, or there is no memory. */
static enum hook_result why_none(int err)
{
	return err == -ENOMEM ? HOOK_NO_MEMORY : HOOK_NO_WRITE;
}

/* Sends the results for n functions. failed: 0, or the reason why the engine could not begin. */
static int put_results(const enum hook_result *results, unsigned int n, int failed)
{
	struct hooks_installed *out = calloc(1, sizeof(*out) + n * sizeof(out->err[0]));
	int err;

	if (!out)
		return -ENOMEM;
	out->h.type = HOOKS_INSTALLED;
	out->h.size = (__u32)(sizeof(*out) + n * sizeof(out->err[0]));
	out->n = n;
	out->late = said_late = engine_hooked_late();
	out->alone_ms = alone_ms();
	for (unsigned int i = 0; i < n; i++) {
		out->err[i] = (int)(failed ? why_none(failed) : results[i]);
		out->on += out->err[i] == HOOK_ON || out->err[i] == HOOK_PARTLY;
	}
	err = talk_put(out, out->h.size, MEET_WAIT_MS);
	free(out);
	return err;
}

/* Hooks the functions of the list, and sends the results. */
static int hook_listed(void)
{
	enum hook_result *results = calloc(nlisted + 1, sizeof(*results));
	unsigned int n = 0, at = 0;
	int err = -ENOMEM, failed;

	if (results) {
		failed = engine_install(listed, nlisted, results);
		if (failed > 0)
			failed = 0;
		do {
			n = nlisted - at < INSTALLED_MOST ? nlisted - at : INSTALLED_MOST;
			err = put_results(results + at, n, failed);
			at += n;
		} while (at < nlisted && !err);
	}
	free(results);
	free(listed);
	listed = NULL;
	nlisted = listed_room = 0;
	return err;
}

/* *last: whether this is the last message of a list. If so, *number is the number of the question
 * that the list answers. */
static int hook_list(size_t size, bool *last, __u32 *number)
{
	int err = keep_list(size);
	struct hooks_list l;

	memcpy(&l, talk_message(), sizeof(l));
	*number = l.number;
	*last = l.flags & HOOKS_LAST;
	list_number = l.number;
	if (*last)
		engine_runtime(l.within, l.within_bytes);
	return err || !*last ? err : hook_listed();
}

static void hook_loader(void)
{
	bool first;
	enum hook_result result = own_hook_loader(&first);

	loader_hooked = result == HOOK_ON;
	if (!loader_hooked && first)
		talk_say(MEET_VERB,
			 "process %d: the dynamic loader has no hook (%s): libraries that are "
			 "loaded later are found once a second",
			 (int)own_pid, hook_result_text(result));
}

static void take_specs(size_t size)
{
	const char *at = (const char *)talk_message() + sizeof(struct hooks_list);

	for (size_t i = 0; i < (size - sizeof(struct hooks_list)) / sizeof(struct hooks_spec);
	     i++) {
		struct hooks_spec s;

		memcpy(&s, at + i * sizeof(s), sizeof(s));
		capture_spec(s.row, &s.spec);
	}
}

static void take_python(void)
{
	struct hooks_python p;

	memcpy(&p, talk_message(), sizeof(p));
	python_set(&p.python, own_pid);
}

static void take_mute(void)
{
	struct hooks_mute m;

	memcpy(&m, talk_message(), sizeof(m));
	muted_take(&m);
}

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
	follows = s.flags & HOOKS_S_FOLLOW;
	talk_peer((int)s.tracer);
	muted_begin();
	if (err)
		talk_say(MEET_ERROR, "process %d: no room for the calls' records: %s", (int)own_pid,
			 strerror(-err));
	return err;
}

/* As talk_get(); ends early if the thread must end. waits: the program waits for it: not for a peer that is
 * stopped. */
static int get_first(bool waits, size_t *size, int *fd)
{
	int type = 0;

	*fd = -1;
	for (int ms = 0; ms < MEET_WAIT_MS && !type; ms += SLICE_MS) {
		if (waits && (unanswered || talk_is_stopped()))
			return 0;
		type = must_end() ? -EPIPE : talk_get(SLICE_MS, size, fd);
	}
	return type;
}

/* Runs until the first list of functions is hooked. Returns 0 or -errno. */
static int begin(bool waits)
{
	bool started = false;
	size_t size = 0;
	int fd, err = 0;

	nlisted = 0; /* an earlier connection, or the parent, may have left an incomplete list */
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
			take_specs(size);
		} else if (type == HOOKS_PYTHON && started) {
			take_python();
		} else if (type == HOOKS_MUTE && started) {
			take_mute();
		} else if (type == HOOKS_FUNCS && started) {
			err = hook_list(size, &last, &number);
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
static void finish(int err)
{
	struct hook_leftover left = { 0 };
	int failed = 0;

	change_begins();
	follows = false;
	if (capture_is_open())
		listeners_close(capture_area());
	if (opened)
		capture_interrupted(engine_interrupted());
	if (to_share || all_sandboxed || to_be_alone || no_clock)
		capture_gone();
	capture_close();
	give_up_questions();
	if (opened)
		failed = engine_remove(&left);
	change_ends();
	if (failed || left.stuck)
		talk_say(MEET_WARN,
			 "process %d: its hooks could not be removed (%s): its code stays changed, "
			 "which does nothing but take it some nanoseconds a call; a later trace of "
			 "it "
			 "with --source=hooks removes them, if the process may write to its code "
			 "then",
			 (int)own_pid, strerror(failed ? -failed : EACCES));
	if (left.inside)
		talk_say(MEET_VERB,
			 "process %d: %u calls that are still running return through code that "
			 "stays mapped",
			 (int)own_pid, left.inside);
	if (to_be_alone)
		talk_say(MEET_WARN,
			 "process %d: it changed its namespaces or capabilities, for which it has "
			 "to be without a thread of cudatrace's, and this thread could not come "
			 "back: its hooks were removed, and its calls are not shown unless it "
			 "executes another program",
			 (int)own_pid);
	if (to_share)
		talk_say(MEET_WARN,
			 "process %d: it makes a child that shares its memory (clone() with "
			 "CLONE_VM), "
			 "and "
			 "hooks cannot tell the two apart: its hooks were removed first, and its "
			 "calls "
			 "are not shown from now on",
			 (int)own_pid);
	if (all_sandboxed)
		talk_say(MEET_WARN,
			 "process %d restricts the system calls of all its threads (seccomp): its "
			 "hooks were removed first, and its calls are not shown from now on",
			 (int)own_pid);
	if (no_clock)
		talk_say(MEET_WARN,
			 "process %d: it forbids a thread to take times (prctl(PR_SET_TSC), or "
			 "seccomp): its "
			 "hooks were removed first, and its calls are not shown from now on",
			 (int)own_pid);
	talk_bye(err, (__u32)left.kept_bytes);
	talk_close();
	text_let_go();
	__atomic_store_n(&state, IDLE, __ATOMIC_RELEASE);
}

static int open_engine(void)
{
	struct rlimit limit;
	int err = 0;

	change_begins();
	if (!opened)
		err = engine_open(&ops);
	opened = !err;
	if (opened && !getrlimit(RLIMIT_AS, &limit) && limit.rlim_cur != RLIM_INFINITY)
		engine_fit(limit.rlim_cur / HOOKS_LIMIT_PART);
	change_ends();
	return err;
}

/* Called when the socket is connected. Puts the first hooks on, and returns 0 if they are on. waits: on a
 * thread of the program. */
static int enter(bool waits)
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
			 (int)own_pid);
	if (!err) {
		look_for_filters(HOOK_THREADS);
		look_at_loader();
		err = begin(waits);
	}
	if (err) {
		finish(err);
	} else {
		change_begins();
		said = (struct hook_state){ 0 };
		hook_loader();
		own_hook_others();
		pads_reserve();
		change_ends();
		__atomic_store_n(&state, RUNNING, __ATOMIC_RELEASE);
	}
	return err;
}

/* Connects, on the thread that starts that of the hooks. */
static int get_connected(void)
{
	int err = talk_connect(how, CONNECT_MS);

	if (err)
		__atomic_store_n(&state, IDLE, __ATOMIC_RELEASE);
	return err;
}

/* ---- the thread ---- */

static void say_others(const struct hook_state *s)
{
	if (s->foreign > said.foreign)
		talk_say(MEET_WARN,
			 "process %d: another tracer has put breakpoints on %u functions that have "
			 "hooks: their calls are not shown while the breakpoints are there",
			 (int)own_pid, s->foreign);
	if (s->rewritten > said.rewritten)
		talk_say(MEET_WARN,
			 "process %d: another tracer had removed %u hooks, which have been put "
			 "back: calls of these functions are missing for up to a second",
			 (int)own_pid, s->rewritten - said.rewritten);
	said = *s;
}

/* A filter may have been set by a system call that no hook saw: no hook makes one from here on. */
static void look_for_filters(int threads)
{
	if (filter_known || (!capture_is_sandboxed() && !own_finds_filters(threads)))
		return;
	filter_known = true;
	capture_sandboxed();
	engine_sandboxed();
	talk_say(MEET_VERB,
		 "process %d: a thread restricts its system calls (seccomp): no hook makes one "
		 "from here on",
		 (int)own_pid);
}

/* Returns false at the end. */
static bool step(int type, size_t size)
{
	struct hook_state s;

	if (__atomic_load_n(&no_clock, __ATOMIC_ACQUIRE))
		return false;
	if (type == HOOKS_FUNCS) {
		__u32 number;
		bool last;

		if (hook_list(size, &last, &number))
			return false;
		if (last)
			answered(&mapped, number);
		return true;
	}
	if (type == HOOKS_PYTHON) {
		take_python();
		return true;
	}
	if (type == HOOKS_MUTE) {
		take_mute();
		return true;
	}
	if (type == HOOKS_READ) {
		struct hooks_ask a;

		memcpy(&a, talk_message(), sizeof(a));
		answered(&reads, a.number);
		return true;
	}
	if (type) {
		if (type != HOOKS_STOP && !must_end())
			capture_gone();
		return false;
	}
	if (!engine_check(&s)) {
		capture_interrupted(s.interrupted);
		say_others(&s);
	}
	look_for_filters(FILTERS_EACH);
	say_late();
	if (!loader_hooked || capture_is_sandboxed())
		ask_for_mapped();
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
	return __atomic_load_n(&pausing, __ATOMIC_ACQUIRE);
}

static int next_message(size_t *size)
{
	int fd = -1, type = must_end() ? -EPIPE : talk_get(0, size, &fd);

	if (fd >= 0)
		close(fd);
	return type;
}

static void live(void)
{
	uint64_t look = meet_now() + LOOK_MS * 1000000ULL, now;
	bool on = true;
	size_t size;

	while (on) {
		__u32 rung = bell_look(capture_area());
		int type;

		if (answer_listeners())
			return;
		send_questions();
		type = next_message(&size);
		if (type > 0)
			__atomic_store_n(&unanswered, false, __ATOMIC_RELEASE);
		now = meet_now();
		change_begins();
		muted_step();
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

			if (is_waited_for() && ms > LOOK_STOPPED_MS)
				ms = LOOK_STOPPED_MS;
			bell_wait(capture_area(), rung, ms);
		}
	}
	finish(0);
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
	__atomic_store_n(&agent_tid, (__u32)sys_call(SYS_gettid, 0, 0, 0, 0, 0, 0),
			 __ATOMIC_RELEASE);
	if (!begins || !enter(false))
		live();
	alone_ends();
	return NULL;
}

/* ---- fork ---- */

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
	while (!(may_change = try_change()) && naps++ < FORK_NAPS && is_own_process())
		nap();
	forker = (__u32)sys_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
	if (may_change)
		for_child = follows && capture_is_open() && !capture_is_sandboxed()
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
		nap();
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
		.kind = LISTENER_CHILD, .pid = (__u32)getpid(), .tid = forker, .ns = meet_now()
	};
	int fd = listener_open(capture_area(), for_child, &who, LISTENER_MS);

	if (fd >= 0)
		talk_child(fd);
	return fd >= 0;
}

static void begin_anew(void)
{
	if (!enter(true) && begin_thread(NULL))
		finish(-EAGAIN);
}

/* The connection and what was kept are the parent's, in a table that the child does not have. */
static void forget_connection(void)
{
	if (along.own)
		talk_forget();
	else
		talk_close();
	text_forget();
}

/* Called in a forked child. The hooks do nothing there until the child has an area of its own. */
static void in_child(void)
{
	bool whole = may_change, anew = whole && follows && !capture_is_sandboxed();
	struct quiet q;

	quiet_begins(&q);
	may_change = false;
	change_ends();
	forget_connection();
	if (anew)
		anew = get_born();
	capture_forget();
	give_up_questions();
	mapped.sent = mapped.asked;
	reads.sent = reads.asked;
	opened = follows = pausing = to_be_alone = to_share = false;
	alone_ns = 0;
	agent_tid = 0;
	agent_begins = false;
	/* if the engine is half changed, this child can never have hooks */
	state = whole && !anew ? IDLE : STARTING;
	own_pid = getpid();
	if (anew)
		begin_anew();
	quiet_ends(&q);
	errno = errno_before;
}

/* Registers the functions that fork() calls. A library of malloc() may have such functions, too. In
 * the child they must run before ours, because ours need malloc(). So malloc() is called here
 * first: at its first use such a library registers its functions. */
static void follow_forks(void)
{
	void *volatile first = malloc(1);

	free(first);
	pthread_atfork(before_fork, after_fork, in_child);
}

/* If it returns 0, the state is STARTING, and the caller owns it. */
static int claim(const char *text)
{
	int idle = IDLE;

	if (!text || strlen(text) >= sizeof(how))
		return -EINVAL;
	if (no_clock || !meet_may_take_times())
		return -ENOTSUP;
	if (!__atomic_compare_exchange_n(&state, &idle, STARTING, 0, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED))
		return -EBUSY;
	strcpy(how, text);
	to_be_alone = to_share = unanswered = false;
	alone_ns = 0;
	if (own_pid != getpid()) {
		if (!own_pid)
			follow_forks();
		own_pid = getpid();
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
	err = get_connected();
	if (err)
		return err;
	err = begin_thread(&state);
	if (err) {
		talk_close();
		__atomic_store_n(&state, IDLE, __ATOMIC_RELEASE);
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
		if (begin_sanitizers() && !claim(*envp + sizeof(name) - 1) && !get_connected() &&
		    !enter(true) && begin_thread(NULL))
			finish(-EAGAIN);
		return;
	}
}
