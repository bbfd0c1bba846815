/* SPDX-License-Identifier: BSD-2-Clause */
/* counters_inbox.c - see counters_inbox.h. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "../../util/msg.h"
#include "../again.h"
#include "counters_inbox.h"

/* Control characters would be an attack on a terminal. */
static void clean(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			*text = '?';
}

static void counters_inbox_say(struct counters_inbox *c, const struct counters_text *t)
{
	char text[COUNTERS_TEXT_MAX + 1];
	size_t n = t->len;

	if (t->h.size < sizeof(*t) || n > COUNTERS_TEXT_MAX || sizeof(*t) + n > t->h.size) {
		c->malformed++;
		return;
	}
	memcpy(text, t->text, n);
	text[n] = '\0';
	clean(text);
	switch (t->level) {
	case COUNTERS_ERROR:
		c->failed = true;
		if (c->optional)
			msg_warn("%s", text);
		else
			msg_error("%s", text);
		break;
	case COUNTERS_WARN: msg_warn("%s", text); break;
	case COUNTERS_NOTE: msg_note("%s", text); break;
	case COUNTERS_LINE:
		if (c->line)
			c->line(c->line_ctx, text, strlen(text));
		break;
	default: msg_verb("%s", text);
	}
}

/* Records that are only for us. False: a record of the trace, or of none of ours. */
static bool control(struct counters_inbox *c, const struct ct_hdr *rec)
{
	switch (rec->kind) {
	case COUNTERS_READY: c->ready = true; return true;
	case COUNTERS_BYE: c->bye = true; return true;
	case COUNTERS_TEXT:
		if (rec->size >= sizeof(struct counters_text))
			counters_inbox_say(c, (const struct counters_text *)rec);
		else
			c->malformed++;
		return true;
	default: return false;
	}
}

/* The kinds that a helper has to say; another one is not passed on. */
static bool counters_inbox_wanted(struct counters_inbox *c, const struct ct_hdr *rec)
{
	switch (rec->kind) {
	case CT_LOST:
		if (((const struct ct_lost *)rec)->cause < CT_LOSS_END)
			losses_add(&c->lost[((const struct ct_lost *)rec)->cause],
				   ((const struct ct_lost *)rec)->count);
		return true;
	case CT_DEVICE:
	case CT_METRIC:
	case CT_EVENT: return !rec->pid;
	case CT_COUNTER: /* of a device, or of a process on it */ return true;
	default: return false;
	}
}

int counters_inbox_records(struct counters_inbox *c, emit_fn emit, void *ctx)
{
	while (c->at < c->len && !source_paused(c->paused)) {
		const struct ct_hdr *rec =
			(const struct ct_hdr *)((const char *)c->message + c->at);
		int err;

		/* Sizes are multiples of 8: every record is aligned. */
		if (record_check(rec, c->len - c->at)) {
			c->malformed++;
			c->at = c->len;
			return 0;
		}
		c->at += rec->size;
		if (control(c, rec))
			continue;
		if (!counters_inbox_wanted(c, rec)) {
			c->malformed++;
			continue;
		}
		c->received++;
		err = emit(ctx, rec);
		if (err)
			return err;
	}
	return 0;
}

int counters_inbox_next(struct counters_inbox *c, int fd)
{
	ssize_t n;

	do {
		n = recv(fd, c->message, sizeof(c->message), MSG_DONTWAIT);
	} while (n < 0 && again(errno));
	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n <= 0)
		return -ENODATA;
	c->len = (size_t)n;
	c->at = 0;
	return 1;
}
