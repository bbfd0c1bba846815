/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * msg.c - one-sentence messages to stderr, each in one write(2) so that they do not mix with those of a traced program
 * that shares the terminal. Knows nothing of what is said.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "msg.h"
#include "utf8.h"

int msg_verbose;
void (*msg_taker)(const char *text);

static void say(const char *kind, const char *fmt, va_list ap)
{
	char text[2048];
	int saved = errno;
	size_t n;

	n = (size_t)snprintf(text, sizeof(text), "cudatrace: %s", kind);
	if (n < sizeof(text) - 3)
		vsnprintf(text + n, sizeof(text) - n - 2, fmt, ap);
	/* a message may quote a path, a name or another program's text: nothing of it may steer the terminal */
	utf8_plain(text, true);
	n = strlen(text);
	text[n++] = '\n';
	text[n] = '\0';
	if (msg_taker) {
		msg_taker(text);
		errno = saved;
		return;
	}
	while (write(STDERR_FILENO, text, n) < 0 && errno == EINTR)
		;
	errno = saved;
}

void msg_error(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say("error: ", fmt, ap);
	va_end(ap);
}

void msg_warn(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say("warning: ", fmt, ap);
	va_end(ap);
}

void msg_note(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say("", fmt, ap);
	va_end(ap);
}

void msg_verb(const char *fmt, ...)
{
	va_list ap;

	if (msg_verbose < 1)
		return;
	va_start(ap, fmt);
	say("", fmt, ap);
	va_end(ap);
}
