/* SPDX-License-Identifier: BSD-2-Clause */
/* progress.c - see progress.h. */
#include "progress.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../msg.h"
#include "../now.h"
#include "../utf8.h"

#define AFTER_NS 1000000000ULL
#define EVERY_NS 200000000ULL

void progress_open(struct progress *p, const char *what)
{
	*p = (struct progress){ .what = what,
				.begun_ns = now_ns(),
				.on = !msg_quiet && isatty(STDERR_FILENO) };
}

const char *progress_text(char *buf, size_t size, const char *what, uint64_t done, uint64_t all,
			  uint64_t took_ns)
{
	double share = all ? (double)(done < all ? done : all) / (double)all : 0;
	double left_s = share > 0 ? (double)took_ns / 1e9 * (1 - share) / share : 0;
	size_t n = (size_t)snprintf(buf, size, "cudatrace: %.100s: %.0f %%", what, share * 100);

	if (share > 0 && n < size) {
		if (left_s < 60)
			snprintf(buf + n, size - n, ", %.0f s left", left_s);
		else
			snprintf(buf + n, size - n, ", %.0f min left", left_s / 60);
	}
	utf8_plain(buf);
	return buf;
}

static void show(const char *text)
{
	char line[300];
	int n = snprintf(line, sizeof(line), "%s%s", MSG_LINE_AGAIN, text);
	ssize_t written = write(STDERR_FILENO, line, (size_t)n);

	(void)written;
}

void progress_at(struct progress *p, uint64_t done, uint64_t all)
{
	uint64_t now;
	char text[256];

	if (!p || !p->on)
		return;
	now = now_ns();
	if (now - p->begun_ns < AFTER_NS || now - p->shown_ns < EVERY_NS)
		return;
	p->shown_ns = now;
	show(progress_text(text, sizeof(text), p->what, done, all, now - p->begun_ns));
	msg_over_line = true;
}

void progress_close(struct progress *p)
{
	if (p->shown_ns && msg_over_line)
		show("");
	msg_over_line = false;
	p->on = false;
}
