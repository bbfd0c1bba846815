/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session.c - see session.h. Everything is opened (session_open.c, session_sinks.c,
 * session_plan.c), the loop runs (session_loop.c) and feeds the stages (session_feed.c), and the
 * end is reported (session_end.c). This file has the order of these steps, and the exit status.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session_inside.h"
#include "signals.h"
#include "../util/io/behind.h"
#include "../util/self/urgent.h"
#include "../util/msg.h"

static int exit_status(const struct session *s)
{
	int status = s->cmd_status;

	/* delivering a stored recording is the command's whole purpose, so its failure counts;
	 * during a live trace it does not */
	if (s->error || (s->o->replay && s->undelivered))
		return 1;
	if (s->o->strict && (holes_fails(s->losses.holes) || s->undelivered))
		return 3;
	for (int i = 0; i < s->nsinks; i++)
		if (s->sinks[i].status)
			return s->sinks[i].status;
	if (status < 0)
		return 0;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Whether the last session was interrupted. */
static bool interrupted;

bool session_interrupted(void)
{
	return interrupted;
}

/* Where messages go while a thread writes them; both NULL: to standard error at once. */
static struct out *among_rows;
static struct behind *messages;

static void say_behind(const char *text)
{
	if (among_rows)
		out_between(among_rows, text, strlen(text));
	else
		behind_put(messages, text, strlen(text), &signals_pending);
}

void session_say_behind(struct session *s)
{
	struct stat err, rows;

	if (msg_taker || fstat(STDERR_FILENO, &err))
		return;
	if (s->out.behind && !fstat(s->out.fd, &rows) && rows.st_dev == err.st_dev &&
	    rows.st_ino == err.st_ino)
		among_rows = &s->out;
	else if (S_ISFIFO(err.st_mode) || S_ISSOCK(err.st_mode))
		messages = behind_open(STDERR_FILENO, false);
	if (among_rows || messages)
		msg_taker = say_behind;
}

void session_say_directly(void)
{
	uint64_t written;

	if (!among_rows && !messages)
		return;
	msg_taker = NULL;
	among_rows = NULL;
	if (messages)
		behind_close(messages, &signals_pending, &written);
	messages = NULL;
}

int session_run(const struct request *o, const struct source_ops *const *ops, int nops)
{
	struct session *s = calloc(1, sizeof(*s));
	int status = 1, err;

	if (!s) {
		msg_error("not enough memory to start");
		return 1;
	}
	s->o = o;
	for (int i = 0; i < nops; i++)
		s->sources[s->nsources++] =
			(struct source){ .ops = ops[i], .paused = &s->paused, .full = &s->full };
	s->cmd_status = -1;
	err = session_open(s);
	if (err)
		goto out;
	err = session_loop_run(s);
	if (err && !s->reason) {
		s->reason = SESSION_ERROR;
		s->error = err;
	}
	session_end(s);
	if (s->window && s->o->window.start_on && !window_begun(s->window))
		msg_note("what --start-on waits for did not happen (%s): earlier calls are not "
			 "shown",
			 s->o->window.start_on);
	status = exit_status(s);
	interrupted = s->reason == SESSION_INTERRUPTED;
out:
	if (!o->replay)
		urgent_begin();
	for (int i = s->nsources - 1; i >= 0; i--)
		if (s->sources[i].priv)
			s->sources[i].ops->close(&s->sources[i]);
	urgent_end();
	session_say_directly();
	inject_frames_close(s->frames);
	out_close(&s->out);
	stages_close(&s->stages);
	pending_close(&s->pending);
	recording_close(&s->recording);
	window_close(s->window);
	loop_close(s->loop);
	signals_close(); /* up to here, one more signal does not end us halfway */
	free(s);
	return status;
}
