/* SPDX-License-Identifier: BSD-2-Clause */
/* cmd_merge.c - `cudatrace merge`: several recordings as one; says how they were placed in time. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "../trace/merge.h"
#include "../trace/reader.h"
#include "../util/io/confine.h"
#include "../util/whole/unfinished.h"
#include "../util/msg.h"

static void say_placed(const struct merge *m)
{
	struct merge_placed p;

	for (int i = 1; i < merge_count(m); i++) {
		merge_placed(m, i, &p);
		if (p.same_host)
			msg_note("%s: of the same host as the first one; its times are exact",
				 p.path);
		else if (p.unsynced)
			msg_warn("%s: of another host (%s); times moved by %.6f s by the hosts' "
				 "clocks of the day, at least one of which is not synchronised: "
				 "the times may be wrong by any amount",
				 p.path, p.host, (double)p.shift_ns / 1e9);
		else
			msg_note("%s: of another host (%s); times moved by %.6f s, correct to "
				 "within %.6f s if both hosts' clocks are as accurate as their "
				 "kernels report; they drifted by %.6f s against each other",
				 p.path, p.host, (double)p.shift_ns / 1e9, (double)p.error_ns / 1e9,
				 (double)p.drift_ns / 1e9);
	}
}

static int add_all(struct merge *m, const struct request *o)
{
	for (int i = 0; i < o->nargs; i++) {
		int err = merge_add(m, o->args[i]);

		if (err == -ENOTSUP)
			msg_error("%s: this file or the first one ends before the clocks were "
				  "read: the times of two hosts cannot be compared",
				  o->args[i]);
		else if (err == -E2BIG)
			msg_error("more than %d recordings at once; merge some of them first",
				  MERGE_MAX);
		else if (err)
			msg_error("cannot read %s: %s", o->args[i], reader_error(err));
		if (err)
			return err;
	}
	return 0;
}

static int cmd_merge_write_all(struct merge *m, const struct request *o)
{
	char *head = merge_head(m);
	struct writer *w = NULL;
	struct progress shown;
	int err = head ? writer_open(&w, o->output, head) : -ENOMEM, e;

	free(head);
	confine_drop();
	progress_open(&shown, "merging");
	if (!err)
		err = merge_write(m, w, &shown);
	progress_close(&shown);
	e = writer_close(w);
	err = err ? err : e;
	if (err)
		msg_error("writing %s failed: %s", o->output, writer_error(err));
	return err;
}

static int cmd_merge(const struct request *o)
{
	struct unfinished guard;
	struct merge *m;
	int err;

	/* an input would be renamed to FILE.old while it is read */
	for (int i = 0; i < o->nargs; i++)
		if (cmd_overwrites(o->args[i], o->output))
			return 2;
	unfinished_open(&guard, o->output);
	confine(CONFINE_FILES);
	m = merge_open();
	if (!m) {
		msg_error("not enough memory to start");
		unfinished_close(&guard, false);
		return 1;
	}
	err = add_all(m, o);
	if (!err)
		say_placed(m);
	if (!err)
		err = cmd_merge_write_all(m, o);
	unfinished_close(&guard, !err);
	if (!err && merge_same(m))
		msg_note("%llu records are in several of the recordings: each is written once",
			 (unsigned long long)merge_same(m));
	if (!err && merge_lost(m))
		msg_warn("%llu records of the inputs could not be read",
			 (unsigned long long)merge_lost(m));
	merge_close(m);
	return err ? 1 : 0;
}

/* clang-format off */
const struct command command_merge = {
	.run = cmd_merge,
	.usage = "Usage: cudatrace merge -o FILE A B...\n",
	.about = "\nMerges several recordings into one, for example those of the ranks of a job. Times of other hosts are converted to the\n"
		 "clock of the first one, as well as the clocks in each recording allow; the accuracy is printed.\n",
};
/* clang-format on */
