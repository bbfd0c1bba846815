/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cmd_export.c - `cudatrace export`: a recording as a file for another program: a replay into
 * the output of that name, with all that the recording has. Needs no privileges.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "../session/session.h"
#include "../util/io/out.h"
#include "../util/whole/unfinished.h"
#include "../util/msg.h"

#define RECORDING ".ctrace"

/* app.ctrace becomes app.html, in the same folder. The caller frees. NULL: no memory. */
static char *named_after(const char *file, const char *suffix)
{
	size_t n = strlen(file), cut = strlen(RECORDING);
	char *path;

	if (n > cut && !strcmp(file + n - cut, RECORDING) && file[n - cut - 1] != '/')
		n -= cut;
	return asprintf(&path, "%.*s%s", (int)n, file, suffix) < 0 ? NULL : path;
}

/* Removes a file that is not complete, because it would look like a complete one. */
static int write_whole(const struct request *o)
{
	static const struct source_ops *const sources[] = { &source_replay };
	bool file = strcmp(o->output, "-") && !out_is_command(o->output) && !o->one_each;
	struct unfinished guard;
	int status;

	if (file)
		unfinished_open(&guard, o->output);
	status = session_run(o, sources, 1);
	if (session_interrupted() && !status)
		status = 1;
	if (file)
		unfinished_close(&guard, !status || status == 3);
	if (file && session_interrupted())
		msg_error("interrupted: %s was not written, because it would have only a part of "
			  "the recording",
			  o->output);
	else if ((!status || status == 3) && strcmp(o->output, "-"))
		msg_note("written: %s", o->output);
	return status;
}

static int cmd_export(const struct request *o)
{
	struct request all = *o;
	char *path = NULL;
	int status = 1;

	if (!o->output && !strcmp(o->file, "-")) {
		msg_error("standard input has no name that the file's could be made of: give -o "
			  "FILE");
		return 2;
	}
	if (cmd_open_stdin(&all))
		return 1;
	if (!o->output) {
		all.output = path = named_after(o->file, o->format->suffix);
		if (!path) {
			msg_error("not enough memory to start");
			return 1;
		}
	}
	if (!all.file_fd && access(o->file, R_OK)) {
		msg_error("cannot read %s: %s", o->file, strerror(errno));
		goto out;
	}
	if (cmd_overwrites(o->file, all.output)) {
		status = 2;
		goto out;
	}
	/* a file gets all that was recorded, also stacks and calls inside calls; a sum would
	 * count the latter twice */
	all.stack = REQUEST_STACK_DWARF;
	all.look.nested = !(o->format->flags & (SINKS_FOLDS | SINKS_MEMORY));
	status = write_whole(&all);
out:
	free(path);
	return status;
}

/* clang-format off */
const struct command command_export = {
	.run = cmd_export,
	.usage = "Usage: cudatrace export [OPTIONS] --to FORMAT FILE\n",
	.about = "\nWrites a recording as a file for another program: a table for data frames, a timeline page for a browser, stacks for\n"
		 "flame graph programs. It writes everything in the recording, also nested calls and stacks, unless options select less.\n",
	.after = "\nExamples:\n"
		 "  cudatrace export --to html app.ctrace             writes app.html, a page for the browser\n"
		 "  cudatrace export --to csv -o - app.ctrace | head\n"
		 "  cudatrace export --to speedscope --weight gpu --from 10 --until 12.5 app.ctrace\n"
		 "  cudatrace export --to folded --weight gpu --device 0 app.ctrace\n",
};
/* clang-format on */
