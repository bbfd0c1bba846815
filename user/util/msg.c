/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * msg.c - one-sentence messages to stderr, each in one write(2) so that they do not mix with those
 * of a traced program that shares the terminal. Knows nothing of the content of messages.
 *
 * A warning or an error may be caused as often as a traced program, or anybody who connects to a
 * socket, likes. So each kind of them, which is known by its format string, is limited in number
 * and rate; omitted messages are counted and reported later.
 */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "msg.h"
#include "now.h"
#include "text.h"
#include "types.h"

#define KINDS_MAX 64 /* kinds beyond this number are not limited; each kind is a line of our code */
#define AGAIN_NS 5000000000ULL /* after the first MSG_AT_ONCE, one more in this time */
#define TEXT_MAX 2048

static struct kind {
	const char *fmt;
	unsigned int left;   /* how many may be printed now */
	uint64_t since_ns;   /* when `left` was computed */
	uint64_t silent;     /* how many were not printed since the last one that was */
	char last[TEXT_MAX]; /* of them; "" when there is none */
} kinds[KINDS_MAX];
static int nkinds;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the kinds */

bool msg_quiet, msg_over_line;
int msg_verbose;
bool msg_unlimited;
void (*msg_taker)(const char *text);

static void msg_put(char *text)
{
	size_t n = strlen(text);

	text[n++] = '\n';
	text[n] = '\0';
	if (msg_taker) {
		msg_taker(text);
		return;
	}
	if (msg_over_line) {
		msg_over_line = false;
		if (write(STDERR_FILENO, MSG_LINE_AGAIN, strlen(MSG_LINE_AGAIN)) < 0)
			return;
	}
	while (write(STDERR_FILENO, text, n) < 0 && errno == EINTR)
		;
}

/*
 * Room for the newline is left, and for so many bytes more. A message may quote a path, a name or
 * another program's text: whatever it is, the message stays one line, which begins with our name,
 * and steers no terminal.
 */
static void msg_make(char *text, size_t more, const char *kind, const char *fmt, va_list ap)
{
	char raw[TEXT_MAX], plain[4 * TEXT_MAX];
	size_t n = (size_t)snprintf(text, TEXT_MAX, "cudatrace: %s", kind), len;

	vsnprintf(raw, sizeof(raw), fmt, ap);
	len = (size_t)(escape_plain(plain, raw, strlen(raw), false) - plain);
	plain[len] = '\0';
	if (len > TEXT_MAX - n - 2 - more)
		len = text_cut(plain, TEXT_MAX - n - 2 - more);
	memcpy(text + n, plain, len);
	text[n + len] = '\0';
}

static void msg_say(const char *kind, const char *fmt, va_list ap)
{
	char text[TEXT_MAX];
	int saved = errno;

	msg_make(text, 0, kind, fmt, ap);
	msg_put(text);
	errno = saved;
}

/* ---- kinds of messages that may come often ---- */

#define MORE_BYTES 64

static void add_more(char *text, uint64_t more)
{
	size_t n = strlen(text);

	if (more)
		snprintf(text + n, TEXT_MAX - 2 - n, " (and %llu more like it)",
			 (unsigned long long)more);
}

/* Returns NULL if there are too many kinds. */
static struct kind *kind_of(const char *fmt)
{
	for (int i = 0; i < nkinds; i++)
		if (kinds[i].fmt == fmt)
			return &kinds[i];
	if (nkinds == KINDS_MAX)
		return NULL;
	kinds[nkinds] = (struct kind){ .fmt = fmt, .left = MSG_AT_ONCE, .since_ns = now_ns() };
	return &kinds[nkinds++];
}

/* Whether the message is to be printed now. *more: how many before it were not. */
static bool is_due(struct kind *k, const char *text, uint64_t *more)
{
	uint64_t now = now_ns(), again = (now - k->since_ns) / AGAIN_NS;

	if (k->left < MSG_AT_ONCE && again) {
		k->left = again < MSG_AT_ONCE - k->left ? k->left + (unsigned int)again
							: MSG_AT_ONCE;
		k->since_ns = now;
	}
	if (!k->left) {
		k->silent++;
		memcpy(k->last, text, strlen(text) + 1);
		return false;
	}
	if (k->left-- == MSG_AT_ONCE)
		k->since_ns = now;
	*more = k->silent;
	k->silent = 0;
	return true;
}

static void say_limited(const char *kind, const char *fmt, va_list ap)
{
	char text[TEXT_MAX];
	int saved = errno;
	uint64_t more = 0;
	bool due = true;
	struct kind *k;

	msg_make(text, MORE_BYTES, kind, fmt, ap);
	pthread_mutex_lock(&lock);
	k = msg_unlimited ? NULL : kind_of(fmt);
	if (k)
		due = is_due(k, text, &more);
	pthread_mutex_unlock(&lock);
	if (due) {
		add_more(text, more);
		msg_put(text);
	}
	errno = saved;
}

void msg_rest(void)
{
	pthread_mutex_lock(&lock);
	for (int i = 0; i < nkinds; i++) {
		struct kind *k = &kinds[i];

		if (!k->silent)
			continue;
		add_more(k->last, k->silent - 1);
		msg_put(k->last);
		k->silent = 0;
	}
	pthread_mutex_unlock(&lock);
}

void msg_error(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say_limited("error: ", fmt, ap);
	va_end(ap);
}

void msg_warn(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say_limited("warning: ", fmt, ap);
	va_end(ap);
}

void msg_note(const char *fmt, ...)
{
	va_list ap;

	if (msg_quiet)
		return;
	va_start(ap, fmt);
	msg_say("", fmt, ap);
	va_end(ap);
}

void msg_verb(const char *fmt, ...)
{
	va_list ap;

	if (msg_verbose < 1)
		return;
	va_start(ap, fmt);
	msg_say("", fmt, ap);
	va_end(ap);
}

/* ---- CUDATRACE_DEBUG ---- */

unsigned int msg_domains;
static const char *const domain_names[MSG_DOMAINS] = { "files", "join", "names", "stacks",
						       "trace" };

static unsigned int domain_of(const char *word, size_t len)
{
	if (len == 3 && !strncmp(word, "all", 3))
		return (1u << MSG_DOMAINS) - 1;
	for (unsigned int i = 0; i < MSG_DOMAINS; i++)
		if (strlen(domain_names[i]) == len && !strncmp(domain_names[i], word, len))
			return 1u << i;
	return 0;
}

bool msg_debug_parse(const char *list)
{
	char known[128] = "all";

	msg_domains = 0;
	for (int i = 0; i < MSG_DOMAINS; i++) {
		size_t n = strlen(known);

		snprintf(known + n, sizeof(known) - n, ", %s", domain_names[i]);
	}
	while (list && *list) {
		size_t len = strcspn(list, ",");
		unsigned int domain = domain_of(list, len);

		if (!domain) {
			msg_error("CUDATRACE_DEBUG: '%.*s' is none of %s", (int)len, list, known);
			return false;
		}
		msg_domains |= domain;
		list += len + (list[len] == ',');
	}
	return true;
}

void msg_debug_say(enum msg_domain domain, const char *fmt, ...)
{
	char kind[32];
	va_list ap;

	snprintf(kind, sizeof(kind), "%s: ", domain_names[domain]);
	va_start(ap, fmt);
	msg_say(kind, fmt, ap);
	va_end(ap);
}

#ifdef CT_CHECKED
void invariant_broken(const char *what, const char *file, int line)
{
	msg_error("%s:%d: this does not hold: %s", file, line, what);
	abort();
}
#endif
