/* SPDX-License-Identifier: BSD-2-Clause */
/* stuck_threads.c - see stuck_threads.h. */
#include "stuck_threads.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../api/api.h"
#include "../proc/python.h"
#include "../proc/running.h"
#include "../resolve/stacks/python_stack.h"
#include "../util/text.h"
#include "../../wire/control.h"

#define LOOKED_AT_MAX 512 /* threads of a process */
#define PART_MAX 256	  /* bytes of a function's or a file's name */

struct scene {
	struct target *target;
	struct ct_python python; /* generation 0 */
	bool has_python;
	struct python *codes;
	struct ct_py_frame frames[NCCL_FRAMES_MAX];
	uint64_t room[PYTHON_CODE_BYTES / 8 + 1]; /* a record */
};

static const char *state_name(char state)
{
	switch (state) {
	case 'R': return "runs";
	case 'S': return "sleeps";
	case 'D': return "is blocked";
	case 'T':
	case 't': return "is stopped";
	case 'Z':
	case 'X': return "has ended";
	default: return "";
	}
}

static const char *inside(pid_t pid, pid_t tid, const struct stuck_row *rows, size_t nrows)
{
	for (size_t i = 0; i < nrows; i++)
		if (rows[i].call && !rows[i].gone && rows[i].shown_pid == pid &&
		    rows[i].shown_tid == tid && rows[i].call->func < api_nfuncs)
			return api_funcs[rows[i].call->func].name;
	return NULL;
}

/* "Trainer.step (train.py:12)", the caller's to free. NULL: it is a frame of no function. */
static char *frame_text(struct scene *s, uint32_t pid, const struct ct_py_frame *f)
{
	struct ct_py_code *code = (void *)s->room;
	struct python_place place;
	struct text t = { 0 };

	if (f->flags & CT_PY_SHIM)
		return NULL;
	if (!python_frame(s->codes, pid, f, &place)) {
		if (python_read_code(s->target, &s->python, f->code, code, sizeof(s->room)) < 0)
			return NULL;
		code->h.pid = pid;
		if (code->check != f->check || python_code(s->codes, code) ||
		    !python_frame(s->codes, pid, f, &place))
			return NULL;
	}
	text_mem(&t, place.function, strnlen(place.function, PART_MAX));
	text_str(&t, " (");
	text_mem(&t, place.file, strnlen(place.file, PART_MAX));
	if (place.line) {
		text_str(&t, ":");
		text_u64(&t, place.line);
	}
	text_mem(&t, ")", 2); /* with its NUL */
	if (!t.bad)
		return t.s;
	text_free(&t);
	return NULL;
}

static int add_frames(struct scene *s, uint32_t pid, struct nccl_thread *t)
{
	int n = python_walk(s->target, &s->python, (pid_t)t->tid, s->frames, NCCL_FRAMES_MAX, NULL);

	if (n <= 0)
		return 0;
	t->frames = calloc((size_t)n, sizeof(*t->frames));
	if (!t->frames)
		return -ENOMEM;
	for (int i = 0; i < n; i++) {
		t->frames[t->nframes] = frame_text(s, pid, &s->frames[i]);
		t->nframes += t->frames[t->nframes] != NULL;
	}
	return 0;
}

/* Fills in the thread. Returns 1 if it tells something, 0, or -ENOMEM. */
static int fill(struct scene *s, pid_t pid, const struct running_thread *r, const char *in,
		struct nccl_thread *t)
{
	int err = 0;

	*t = (struct nccl_thread){ .tid = (uint32_t)r->tid };
	memcpy(t->name, r->name, sizeof(t->name));
	memcpy(t->wait, r->wait, sizeof(t->wait));
	strncpy(t->state, state_name(r->state), sizeof(t->state) - 1);
	if (in)
		strncpy(t->inside, in, sizeof(t->inside) - 1);
	if (s->has_python)
		err = add_frames(s, (uint32_t)pid, t);
	return err ? err : in || r->tid == pid || t->nframes;
}

static int fill_all(struct scene *s, pid_t pid, const struct stuck_row *rows, size_t nrows,
		    struct nccl_thread *threads)
{
	struct running_thread *list = calloc(LOOKED_AT_MAX, sizeof(*list));
	int n = list ? running_threads(pid, list, LOOKED_AT_MAX) : -ENOMEM, have = 0, reported = 1;

	for (int i = 0; i < n && have < NCCL_THREADS_MAX && reported >= 0; i++) {
		const char *in = inside(pid, list[i].tid, rows, nrows);

		reported = fill(s, pid, &list[i], in, &threads[have]);
		if (reported > 0)
			have++;
		else
			free(threads[have].frames);
	}
	free(list);
	return n == -ENOMEM || reported < 0 ? -ENOMEM : have;
}

int stuck_threads(pid_t pid, const struct stuck_row *rows, size_t nrows, bool python,
		  struct nccl_thread **out)
{
	struct nccl_thread *threads = calloc(NCCL_THREADS_MAX, sizeof(*threads));
	struct scene *s = calloc(1, sizeof(*s));
	int n = 0;

	*out = threads;
	if (threads && s)
		s->codes = python_open();
	if (!threads || !s || !s->codes)
		n = -ENOMEM;
	else if (target_open(&s->target, pid, 0))
		n = 0;
	else {
		s->has_python = python && target_refresh(s->target) >= 0 &&
				!python_find(s->target, &s->python, NULL);
		n = fill_all(s, pid, rows, nrows, threads);
		target_close(s->target);
	}
	if (s)
		python_close(s->codes);
	free(s);
	return n;
}
