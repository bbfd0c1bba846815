/* SPDX-License-Identifier: BSD-2-Clause */
/* questions.c - see questions.h. */
#include "../common/compat.h"

#include <dlfcn.h>
#include <link.h>
#include <linux/futex.h>
#include <time.h>

#include "../common/sys.h"
#include "../hooks/capture.h"
#include "listener.h"
#include "questions.h"
#include "talk.h"

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

void loader_look(void)
{
	static bool found;

	if (!found)
		find_loaded();
	found = true;
	__atomic_store_n(&loaded_last, count_loaded(), __ATOMIC_RELEASE);
}

struct question question_mapped = { .type = HOOKS_MAPPED }, question_reads = { .type = HOOKS_READ };

__u32 question_number(struct question *q)
{
	return __atomic_add_fetch(&q->asked, 1, __ATOMIC_ACQ_REL);
}

static bool is_answered(const struct question *q, __u32 number)
{
	return (__s32)(__atomic_load_n(&q->answered, __ATOMIC_ACQUIRE) - number) >= 0;
}

void question_answered(struct question *q, __u32 number)
{
	__u32 had = __atomic_load_n(&q->answered, __ATOMIC_RELAXED);

	do
		if ((__s32)(number - had) <= 0)
			return;
	while (!__atomic_compare_exchange_n(&q->answered, &had, number, 1, __ATOMIC_ACQ_REL,
					    __ATOMIC_RELAXED));
	sys_call(SYS_futex, (long)&q->answered, FUTEX_WAKE_PRIVATE, 1 << 30, 0, 0, 0);
}

void questions_give_up(void)
{
	question_answered(&question_mapped,
			  __atomic_load_n(&question_mapped.asked, __ATOMIC_ACQUIRE));
	question_answered(&question_reads,
			  __atomic_load_n(&question_reads.asked, __ATOMIC_ACQUIRE));
}

bool questions_unanswered;
__u64 questions_alone_ns;

__u64 sys_now(void)
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
	if (q == &question_mapped && capture_is_open())
		__atomic_compare_exchange_n(&questions_alone_ns, &none, sys_now(), 0,
					    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
	question_answered(q, number);
}

void question_wait(struct question *q, __u32 number)
{
	__u64 until = sys_now() + HOOKS_ANSWER_MS * 1000000ULL;

	while (!is_answered(q, number) && capture_is_open()) {
		__u32 had = __atomic_load_n(&q->answered, __ATOMIC_ACQUIRE);
		__u64 now = sys_now(), left = until > now ? until - now : 0;
		struct timespec wait = { .tv_sec = (long)(left / 1000000000),
					 .tv_nsec = (long)(left % 1000000000) };

		if (!left)
			__atomic_store_n(&questions_unanswered, true, __ATOMIC_RELEASE);
		if (__atomic_load_n(&questions_unanswered, __ATOMIC_ACQUIRE)) {
			go_on(q, number);
			return;
		}
		if ((__s32)(had - number) < 0)
			sys_call(SYS_futex, (long)&q->answered, FUTEX_WAIT_PRIVATE, had,
				 (long)&wait, 0, 0);
	}
}

void question_ask(struct question *q, __u32 number)
{
	if (capture_is_open())
		bell_ring(capture_area());
	else
		question_answered(q, number);
}

__u32 question_unmapped;

bool is_unmapped(void)
{
	return count_loaded() < __atomic_load_n(&loaded_last, __ATOMIC_ACQUIRE);
}

__u32 ask_for_mapped(void)
{
	unsigned int n = count_loaded(), had = __atomic_load_n(&loaded_last, __ATOMIC_ACQUIRE);
	__u32 number;

	if (n == had)
		return __atomic_load_n(&question_mapped.asked, __ATOMIC_ACQUIRE);
	number = question_number(&question_mapped);
	if (n < had)
		__atomic_store_n(&question_unmapped, number, __ATOMIC_RELEASE);
	__atomic_store_n(&loaded_last, n, __ATOMIC_RELEASE);
	question_ask(&question_mapped, number);
	return number;
}

static unsigned int
	looked_last; /* the loader's count when the peer was last told of what is mapped */
static bool looks;

void look_at_mapped(void)
{
	unsigned int n = count_loaded();

	if (n == __atomic_exchange_n(&looked_last, n, __ATOMIC_ACQ_REL) || !capture_is_open())
		return;
	__atomic_store_n(&looks, true, __ATOMIC_RELEASE);
	bell_ring(capture_area());
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

void questions_send(void)
{
	send_questions_of(&question_reads);
	if (__atomic_exchange_n(&looks, false, __ATOMIC_ACQ_REL))
		talk_look();
	if (!send_questions_of(&question_mapped)) /* the next thread that checks asks again */
		__atomic_store_n(&loaded_last, ~count_loaded(), __ATOMIC_RELEASE);
}

bool questions_are_waited_for(void)
{
	struct question *const all[] = { &question_mapped, &question_reads };
	bool waits = false;

	for (int i = 0; i < 2; i++)
		waits |= !is_answered(all[i], __atomic_load_n(&all[i]->asked, __ATOMIC_ACQUIRE));
	if (!waits || !talk_is_stopped())
		return waits;
	__atomic_store_n(&questions_unanswered, true, __ATOMIC_RELEASE);
	for (int i = 0; i < 2; i++)
		go_on(all[i], __atomic_load_n(&all[i]->asked, __ATOMIC_ACQUIRE));
	return false;
}
