/* SPDX-License-Identifier: BSD-2-Clause */
/* pager.c - see pager.h. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pager.h"
#include "../../util/msg.h"

/* Small images have no less(1). */
static const char pager_default[] = "|command -v less >/dev/null 2>&1 && exec less; exec cat";

/* What -o would be for the pager, or NULL if there is to be none. `buf` keeps the text. */
static const char *pager_command(char *buf, size_t size)
{
	const char *pager = getenv("PAGER"), *term = getenv("TERM");

	if (!isatty(STDOUT_FILENO) || !term || !strcmp(term, "dumb"))
		return NULL;
	if (!pager)
		return pager_default;
	if (!*pager || !strcmp(pager, "cat") || strlen(pager) + 2 > size)
		return NULL;
	snprintf(buf, size, "|%s", pager);
	return buf;
}

/* Did the shell find no such program, or could it not run it? */
static bool pager_failed(const struct out *out, int err)
{
	return err == -ECHILD && WIFEXITED(out->status) &&
	       (WEXITSTATUS(out->status) == 126 || WEXITSTATUS(out->status) == 127);
}

/* Returns false if nobody could read the text. */
static bool by_pager(const char *command, void (*print)(struct out *, const void *ctx),
		     const void *ctx)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN }, old_int, old_quit;
	struct out out;
	bool read;

	/* -F: a text that fits the screen is only printed; -R: colors; -X: it stays on the screen */
	setenv("LESS", "FRX", 0);
	/* Ctrl-C is for the pager, from its first moment on: without us it would read the keyboard
	 * beside the shell */
	sigaction(SIGINT, &ignore, &old_int);
	sigaction(SIGQUIT, &ignore, &old_quit);
	read = !out_open_output(&out, command, false, STDOUT_FILENO);
	if (read) {
		print(&out, ctx);
		read = !pager_failed(&out, out_close(&out));
	}
	sigaction(SIGINT, &old_int, NULL);
	sigaction(SIGQUIT, &old_quit, NULL);
	return read;
}

int pager_print(void (*print)(struct out *, const void *ctx), const void *ctx)
{
	char buf[4096];
	const char *command = pager_command(buf, sizeof(buf));
	struct out out;

	if (command && by_pager(command, print, ctx))
		return 0;
	if (out_open(&out, NULL, false)) {
		msg_error("cannot write to standard output");
		return 1;
	}
	print(&out, ctx);
	return out_report(&out, out_close(&out), "") ? 1 : 0;
}
