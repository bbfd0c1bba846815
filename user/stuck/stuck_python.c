/* SPDX-License-Identifier: BSD-2-Clause */
/* stuck_python.c - see stuck_python.h. */
#include "stuck_python.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../proc/python.h"
#include "../../wire/control.h"

struct walk {
	struct target *target;
	struct ct_python python;
	struct ct_py_frame frames[CT_PY_MAX];
	/* a record */
	uint64_t room[PYTHON_CODE_BYTES / 8 + 1];
};

_Static_assert(PYTHON_CODE_BYTES >=
		       sizeof(struct ct_py_stack) + CT_PY_PIECE * sizeof(struct ct_py_frame),
	       "room");

static bool seen(const struct walk *w, int n)
{
	for (int i = 0; i < n; i++)
		if (w->frames[i].code == w->frames[n].code)
			return true;
	return false;
}

/* The code objects that the frames run, each once. One that cannot be read leaves its frames
 * without names. */
static int emit_codes(struct walk *w, int n, const struct ct_hdr *call, emit_fn emit, void *ctx)
{
	struct ct_py_code *code = (void *)w->room;
	int err = 0;

	for (int i = 0; i < n && !err; i++) {
		if (w->frames[i].flags & CT_PY_SHIM || seen(w, i) ||
		    python_read_code(w->target, &w->python, w->frames[i].code, code,
				     sizeof(w->room)) < 0)
			continue;
		code->h.pid = call->pid;
		code->h.tid = call->tid;
		code->h.start_ns = code->h.end_ns = call->start_ns;
		err = emit(ctx, &code->h);
	}
	return err;
}

static int emit_frames(struct walk *w, int n, bool cut, const struct ct_hdr *call, emit_fn emit,
		       void *ctx)
{
	struct ct_py_stack *piece = (void *)w->room;
	int err = 0;

	for (int at = 0; at < n && !err; at += CT_PY_PIECE) {
		int len = n - at < CT_PY_PIECE ? n - at : CT_PY_PIECE;

		*piece = (struct ct_py_stack){
			.h = { .size = (uint16_t)(sizeof(*piece) +
						  (size_t)len * sizeof(w->frames[0])),
			       .kind = CT_PY_STACK,
			       .pid = call->pid,
			       .tid = call->tid,
			       .start_ns = call->start_ns,
			       .end_ns = call->end_ns },
			.first = (uint16_t)at,
			.n = (uint16_t)len,
			.last = at + len == n,
			.cut = at + len == n && cut,
		};
		memcpy(piece->frames, &w->frames[at], (size_t)len * sizeof(w->frames[0]));
		err = emit(ctx, &piece->h);
	}
	return err;
}

int stuck_python(const struct stuck_row *r, emit_fn emit, void *ctx)
{
	const struct ct_hdr *call = &r->call->h;
	struct walk *w;
	bool cut = false;
	int n, err;

	if (!r->shown_tid)
		return 0;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	err = target_open(&w->target, r->shown_pid, r->about.start_boottime_ns);
	if (!err && target_refresh(w->target) >= 0 && !python_find(w->target, &w->python, NULL)) {
		n = python_walk(w->target, &w->python, r->shown_tid, w->frames, CT_PY_MAX, &cut);
		if (n > 0)
			err = emit_codes(w, n, call, emit, ctx);
		if (n > 0 && !err)
			err = emit_frames(w, n, cut, call, emit, ctx);
	} else if (err != -ENOMEM) {
		err = 0; /* gone: the row is shown without */
	}
	target_close(w->target);
	free(w);
	return err;
}
