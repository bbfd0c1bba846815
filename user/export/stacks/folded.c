/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * folded.c - one line for each stack, outermost frame first, with its weight, written at the end:
 *
 *   python3;<module> (train.py);train_step (train.py);launch;cudaLaunchKernel;[kernel]
 *   vecAdd(float const*, int) 123
 *
 * which is what flame graph programs read. With the weight `gpu` what the device did, in
 * nanoseconds, below the call:
 *
 *   python3;<module> (train.py);train_step (train.py);launch;cudaLaunchKernel;[GPU] vecAdd(float
 *   const*, int) 8960
 */
#include <errno.h>
#include <stdlib.h>

#include "fold.h"
#include "../../util/table/array.h"

static int folded_open(struct sink *s, const struct sink_opts *opts)
{
	s->opts = opts;
	s->priv = fold_open(opts, 0);
	return s->priv ? 0 : -ENOMEM;
}

static int folded_event(struct sink *s, const struct event *ev)
{
	return fold_event(s->priv, ev);
}

/* Writes all lines. The text of the path to the node is kept, and each frame appends to that of
 * its parent. */
static int print(const struct fold *f, struct out *out)
{
	uint32_t depth = 0, at = 0;
	size_t cap = 0;
	struct text way = { 0 };
	size_t *ends = NULL; /* by depth: where the text of that frame ends */
	int err = 0;

	while ((at = fold_next(f, at, &depth))) {
		const struct fold_name n = fold_name(f, f->nodes[at].name);
		uint64_t weight = fold_weight(f, &f->nodes[at]);

		if (!array_fit(ends, cap, depth + 1)) {
			err = -ENOMEM;
			break;
		}
		ends[0] = 0;
		way.len = ends[depth - 1];
		if (depth > 1)
			text_str(&way, ";");
		if (n.kind == FOLD_KERNEL)
			text_str(&way, "[kernel] ");
		else if (n.kind == FOLD_DEVICE)
			text_str(&way, "[GPU] ");
		text_str(&way, n.text);
		ends[depth] = way.len;
		if (way.bad) {
			err = -ENOMEM;
			break;
		}
		if (!weight)
			continue;
		out_mem(out, way.s, way.len);
		out_fmt(out, " %llu\n", (unsigned long long)weight);
	}
	text_free(&way);
	free(ends);
	return err;
}

static int folded_close(struct sink *s, const struct sink_end *end)
{
	struct fold *f = s->priv;
	int err;

	(void)end;
	if (!f)
		return 0;
	err = fold_finish(f);
	if (!err)
		err = print(f, s->opts->out);
	fold_notes(f);
	fold_close(f);
	s->priv = NULL;
	return err ? err : s->opts->out->error;
}

const struct sink_ops sink_folded = {
	.name = "folded",
	.open = folded_open,
	.event = folded_event,
	.close = folded_close,
};
