/* SPDX-License-Identifier: BSD-2-Clause */
/* recording.c - see recording.h. Makes the file's name and its head (the host, the time, the
 * options), and says when the records kept in memory are written. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timex.h>
#include <unistd.h>

#include "recording.h"
#include "session_plan.h"
#include "../source/host.h"
#include "../trace/format.h"
#include "../util/msg.h"

#define ARGS_MAX (64 << 10)

/* Replaces %p, %h, %q{VAR} and %% in the name of the file. */
static char *expand(const char *pattern)
{
	char host[HOST_NAME_BYTES], name[128], *path = NULL;
	size_t len;
	FILE *f = open_memstream(&path, &len);

	if (!f)
		return NULL;
	for (const char *p = pattern; *p; p++) {
		const char *end = p[0] == '%' && p[1] == 'q' && p[2] == '{' ? strchr(p, '}') : NULL;

		if (*p != '%') {
			fputc(*p, f);
		} else if (p[1] == 'p') {
			fprintf(f, "%d", (int)getpid());
			p++;
		} else if (p[1] == 'h') {
			fputs(host_name(host, sizeof(host)), f);
			p++;
		} else if (p[1] == '%') {
			fputc('%', f);
			p++;
		} else if (end) {
			snprintf(name, sizeof(name), "%.*s", (int)(end - p - 3), p + 3);
			fputs(getenv(name) ? getenv(name) : "", f);
			p = end;
		} else {
			fputc('%', f);
		}
	}
	if (fclose(f)) {
		free(path);
		return NULL;
	}
	return path;
}

/* Writes one line of the head. A newline in the value would make two lines of it. */
static void line(FILE *f, const char *key, const char *value)
{
	fprintf(f, "%s ", key);
	for (; *value; value++)
		fputc(*value == '\n' ? ' ' : *value, f);
	fputc('\n', f);
}

static void recording_number(FILE *f, const char *key, uint64_t value)
{
	fprintf(f, "%s %llu\n", key, (unsigned long long)value);
}

static void gpu_line(void *ctx, const char *text)
{
	line(ctx, "gpu", text);
}

/* How far the system clock may be off: the program that sets the clock told the kernel. 0: no
 * program sets it. */
static uint64_t clock_error_ns(void)
{
	struct timex t = { 0 };
	int state = adjtimex(&t);

	return state < 0 || state == TIME_ERROR || t.status & STA_UNSYNC || t.maxerror < 0
		       ? 0
		       : (uint64_t)t.maxerror * 1000;
}

static char *make_head(const struct request *o, const struct sink_opts *s)
{
	char text[1024], *head = NULL;
	size_t len;
	FILE *f = open_memstream(&head, &len);

	if (!f)
		return NULL;
	recording_number(f, "format", TRACE_FORMAT);
	line(f, "version", CT_VERSION);
	line(f, "arch", API_ARCH_HERE == API_AARCH64 ? "aarch64" : "x86_64");
	line(f, "host", host_name(text, sizeof(text)));
	line(f, "boot_id", host_boot_id(text, sizeof(text)));
	line(f, "kernel", host_kernel(text, sizeof(text)));
	if (host_driver(text, sizeof(text)))
		line(f, "driver", text);
	host_gpus(gpu_line, f);
	recording_number(f, "start_ns", s->start_ns);
	recording_number(f, "realtime_offset_ns", s->realtime_offset_ns);
	recording_number(f, "boottime_offset_ns", s->boottime_offset_ns);
	recording_number(f, "clock_error_ns", clock_error_ns());
	recording_number(f, "places", session_plan_places(o));
	recording_number(f, "whole", o->cmd != NULL);
	recording_number(f, "work", o->gpu);
	line(f, "traced", request_title(o, text, sizeof(text)));
	/* a reader accepts a head of at most 256 KiB */
	for (int i = 0; o->record && o->argv && o->argv[i] && ftell(f) < ARGS_MAX; i++) {
		if (strlen(o->argv[i]) < ARGS_MAX)
			line(f, "arg", o->argv[i]);
		else
			line(f, "arg", "(longer than 64 KiB)");
	}
	if (fclose(f)) {
		free(head);
		return NULL;
	}
	return head;
}

int recording_open(struct recording *r, const struct request *o, const struct sink_opts *s)
{
	int err = 0;

	*r = (struct recording){ .path = expand(o->record ? o->output : ""),
				 .head = make_head(o, s) };
	if (!r->path || !r->head) {
		msg_error("not enough memory to start");
		return -ENOMEM;
	}
	if (!strcmp(r->path, "-")) {
		msg_error("-o: a recording goes into a file, not to standard output");
		return -EINVAL;
	}
	if (o->store.last_ns)
		err = dump_on_parse(&r->dump, o->dump_on ? o->dump_on : "signal");
	r->file = o->store;
	r->file.dump_failed = r->dump.failed;
	r->file.dump_end = r->dump.end;
	r->file.dump_rows = r->dump.rows;
	r->file.path = r->path;
	r->file.head = r->head;
	r->file.progress = isatty(STDERR_FILENO) && !o->verbose;
	return err;
}

void recording_close(struct recording *r)
{
	free(r->path);
	free(r->head);
	dump_on_free(&r->dump);
	*r = (struct recording){ 0 };
}
