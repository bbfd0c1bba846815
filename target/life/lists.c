/* SPDX-License-Identifier: BSD-2-Clause */
/* lists.c - see lists.h. */
#include "../common/compat.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../common/meet.h"
#include "../engine/engine.h"
#include "../hooks/capture.h"
#include "change.h"
#include "../hooks/layers.h"
#include "lists.h"
#include "../hooks/muted_funcs.h"
#include "own.h"
#include "../hooks/python_frames.h"
#include "questions.h"
#include "talk.h"

bool loader_is_hooked;

_Static_assert(HOOKS_FUNCS_MAX == HOOK_FUNCS && HOOKS_NO_ROOM == (int)HOOK_NO_MEMORY,
	       "the user side's view");
_Static_assert(HOOKS_PARTLY == (int)HOOK_PARTLY && HOOKS_ZONE == (int)HOOK_ZONE &&
		       HOOKS_NO_WRITE == (int)HOOK_NO_WRITE,
	       "the user side's view");

static __u32 said_late; /* the number of engine_hooked_late() that was last reported to the peer */

void late_say(void)
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

void list_begin(void)
{
	nlisted = 0;
}

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
				 (f.flags & HOOKS_F_FIRST ? HOOK_FIRST : 0u) |
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
	__u64 since = __atomic_load_n(&questions_alone_ns, __ATOMIC_ACQUIRE), ms;

	if (list_number == __atomic_load_n(&question_mapped.asked, __ATOMIC_ACQUIRE))
		__atomic_store_n(&questions_alone_ns, 0, __ATOMIC_RELEASE);
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

int list_take(size_t size, bool *last, __u32 *number)
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

void loader_hook(void)
{
	bool first;
	enum hook_result result = own_hook_loader(&first);

	loader_is_hooked = result == HOOK_ON;
	if (!loader_is_hooked && first)
		talk_say(MEET_VERB,
			 "process %d: the dynamic loader has no hook (%s): libraries that are "
			 "loaded later are found once a second",
			 (int)hooks_pid, hook_result_text(result));
}

void specs_take(size_t size)
{
	const char *at = (const char *)talk_message() + sizeof(struct hooks_list);

	for (size_t i = 0; i < (size - sizeof(struct hooks_list)) / sizeof(struct hooks_spec);
	     i++) {
		struct hooks_spec s;

		memcpy(&s, at + i * sizeof(s), sizeof(s));
		capture_spec(s.row, &s.spec);
	}
}

void python_take(void)
{
	struct hooks_python p;

	memcpy(&p, talk_message(), sizeof(p));
	python_set(&p.python, hooks_pid);
}

void mute_take(void)
{
	struct hooks_mute m;

	memcpy(&m, talk_message(), sizeof(m));
	muted_take(&m);
}
