/* SPDX-License-Identifier: BSD-2-Clause */
/* hang_stacks.c - see hang_stacks.h. */
#include "hang_stacks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../../proc/running.h"
#include "../../resolve/stacks/space.h"
#include "../../resolve/stacks/symbols.h"
#include "../../source/bpf/snapshot.h"
#include "../../util/demangle.h"
#include "../../util/now.h"
#include "../stuck_threads.h"
#include "hang_text.h"

#define THREADS_MAX 1024 /* of a process */
#define NAME_MAX_BYTES 1024

struct writer {
	struct out *out;
	struct stuck_stacks *stacks;
	const struct snapshot *snap;
	uint64_t until_ns;
};

static void put_text(struct out *o, const char *s)
{
	size_t n = strlen(s);

	out_plain(o, s, n < NAME_MAX_BYTES ? n : NAME_MAX_BYTES);
}

static void put_function(struct out *o, const struct symbols_place *p)
{
	char *full = p->function ? demangle_full(p->function) : NULL;
	char *brief = full ? demangle_brief(full) : NULL;

	put_text(o, brief ? brief : full ? full : p->function ? p->function : "?");
	free(brief);
	free(full);
	if (p->offset)
		out_fmt(o, "+0x%" PRIx64, p->offset);
	if (p->file) {
		out_str(o, " (");
		put_text(o, p->file);
		out_fmt(o, ":%u)", p->line);
	}
}

static void put_frame(void *ctx, const struct space_place *at, uint64_t ip, bool exact)
{
	struct symbols_place places[SYMBOLS_MAX];
	struct writer *w = ctx;
	int n = 0;

	if (at->kind == SPACE_OBJECT)
		n = symbols_find(at->object, at->address, exact, places, SYMBOLS_MAX);
	for (int i = 0; i < n; i++) {
		out_str(w->out, "      ");
		put_function(w->out, &places[i]);
		if (!places[i].inlined) {
			out_str(w->out, " [");
			put_text(w->out, object_path(at->object));
			out_char(w->out, ']');
		}
		out_char(w->out, '\n');
	}
	if (n)
		return;
	out_fmt(w->out, "      0x%" PRIx64, ip);
	if (at->kind == SPACE_OBJECT) {
		out_str(w->out, " [");
		put_text(w->out, object_path(at->object));
		out_fmt(w->out, "+0x%" PRIx64 "]", at->address);
	}
	out_char(w->out, '\n');
}

static const struct snapshot_thread *in_snapshot(const struct snapshot *s, pid_t tid)
{
	for (size_t i = 0; i < s->nthreads; i++)
		if (s->threads[i].shown_tid == tid)
			return &s->threads[i];
	return NULL;
}

static void put_native(struct writer *w, pid_t tid)
{
	const struct snapshot_thread *t = in_snapshot(w->snap, tid);

	if (!t || t->missed) {
		out_str(w->out, "    its native stack could not be read\n");
		return;
	}
	out_str(w->out, "    native\n");
	if (!stuck_stacks_frames(w->stacks, t, put_frame, w))
		out_str(w->out, "      (what is outside of this is not known)\n");
}

static const struct nccl_thread *with_python(const struct nccl_thread *list, int n, pid_t tid)
{
	for (int i = 0; i < n; i++)
		if (list[i].tid == (uint32_t)tid)
			return &list[i];
	return NULL;
}

static void put_thread(struct writer *w, const struct running_thread *r,
		       const struct nccl_thread *t)
{
	out_fmt(w->out, "  thread %d (", (int)r->tid);
	put_text(w->out, r->name);
	out_fmt(w->out, "), state %c", r->state);
	if (r->wait[0]) {
		out_str(w->out, ", in ");
		put_text(w->out, r->wait);
	}
	if (t && t->inside[0]) {
		out_str(w->out, ", inside ");
		put_text(w->out, t->inside);
	}
	out_char(w->out, '\n');
	if (now_ns() > w->until_ns)
		out_str(w->out, "    its native stack was not read: there was no time left\n");
	else
		put_native(w, r->tid);
	if (t && t->nframes)
		out_str(w->out, "    Python\n");
	for (int i = 0; t && i < t->nframes; i++) {
		out_str(w->out, "      ");
		put_text(w->out, t->frames[i]);
		out_char(w->out, '\n');
	}
}

static int put_process(struct writer *w, pid_t pid, const struct stuck_row *rows, size_t nrows)
{
	struct running_thread *list = calloc(THREADS_MAX, sizeof(*list));
	int n = list ? running_threads(pid, list, THREADS_MAX) : -ENOMEM, with = 0;
	struct nccl_thread *threads = NULL;

	if (n >= 0 && now_ns() <= w->until_ns)
		with = stuck_threads(pid, rows, nrows, true, &threads);
	out_fmt(w->out, "process %d", (int)pid);
	if (n > 0) {
		out_str(w->out, " (");
		put_text(w->out, list[0].name);
		out_fmt(w->out, "), %d thread%s\n", n, n == 1 ? "" : "s");
	} else {
		out_str(w->out, " has ended\n");
	}
	if (n > 0 && !threads)
		out_str(w->out, "  Python's frames were not read: there was no time left\n");
	for (int i = 0; i < n; i++)
		put_thread(w, &list[i], with_python(threads, with > 0 ? with : 0, list[i].tid));
	if (n == THREADS_MAX)
		out_str(w->out, "  and further threads\n");
	nccl_threads_free(threads, with > 0 ? with : 0);
	free(list);
	return n == -ENOMEM || with == -ENOMEM ? -ENOMEM : 0;
}

int hang_stacks(struct source *source, struct objects *objects, const pid_t *pids, int npids,
		const struct stuck_row *rows, size_t nrows, uint64_t until_ns, struct out *out)
{
	struct snapshot snap = { .all = true, .only = pids, .nonly = npids };
	struct writer w = { .out = out, .snap = &snap, .until_ns = until_ns };
	int err = source->ops->threads(source, &snap);

	w.stacks = err ? NULL : stuck_stacks_open(objects);
	if (!err && !w.stacks)
		err = -ENOMEM;
	for (int i = 0; i < npids && !err; i++)
		err = put_process(&w, pids[i], rows, nrows);
	stuck_stacks_close(w.stacks);
	snapshot_free(&snap);
	return err;
}

void hang_stacks_ended(struct stuck_stacks *stacks, const struct ended_process *p, struct out *out)
{
	struct snapshot_process about = { .pid = (pid_t)p->pid };
	struct writer w = { .out = out, .stacks = stacks };
	char room[16];

	out_fmt(out, "process %u (", p->pid);
	put_text(out, p->name);
	out_fmt(out, "), %s %s: ", ended_by_signal(p) ? "ended by" : "ended after",
		hang_signal_word(p->signal, room));
	if (!p->nthreads)
		out_str(out, "its stacks could not be read before it was gone\n");
	else
		out_str(out, "its threads as they ended\n");
	for (size_t i = 0; i < p->nthreads; i++) {
		const struct ct_signal *s = p->threads[i];
		struct snapshot_thread t = { .process = &about,
					     .tid = s->tid,
					     .shown_tid = (pid_t)s->shown_tid,
					     .ip = s->ip,
					     .sp = s->sp,
					     .bp = s->bp,
					     .lr = s->lr,
					     .stack = (uint8_t *)s->bytes,
					     .len = s->len };

		memcpy(t.regs, s->regs, sizeof(t.regs));
		out_fmt(out, "  thread %u (", s->shown_tid ? s->shown_tid : s->tid);
		out_plain(out, s->comm, strnlen(s->comm, sizeof(s->comm)));
		out_str(out, s->signal == p->signal ? "), to which it was delivered\n" : ")\n");
		out_str(out, "    native\n");
		if (!stuck_stacks_frames(stacks, &t, put_frame, &w))
			out_str(out, "      (what is outside of this is not known)\n");
	}
	if (p->left_out)
		out_fmt(out, "  and %zu further threads, for whose stacks there was no room\n",
			p->left_out);
}
