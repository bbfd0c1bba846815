/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nccl_merge.c - reads the lines about communicators that `stuck --format json` printed: see
 * nccl_job.h. One line is in memory at a time, and what json-c makes of it is bounded by the
 * number of its parts, which are counted before.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <json-c/json.h>

#include "../util/msg.h"
#include "../util/table/array.h"
#include "nccl_job.h"

#define LINE_BYTES (1u << 20)
#define PARTS_MAX 16384 /* objects, lists, and values between commas of one line */
#define DEPTH_MAX 8
#define FRAME_BYTES 512
#define BEGIN "{\"type\":\"communicator\","
#define HANG "{\"type\":\"hang\","
#define ENDED "{\"type\":\"ended\","
#define LINES_MAX (1u << 20) /* of a file */
#define SAID_MAX 4096

/* ---- one line ---- */

static void get_text(struct json_object *in, const char *key, char *out, size_t size)
{
	struct json_object *o;

	if (json_object_object_get_ex(in, key, &o) && json_object_is_type(o, json_type_string))
		snprintf(out, size, "%s", json_object_get_string(o));
}

static bool as_number(struct json_object *o, uint64_t *out)
{
	if (!json_object_is_type(o, json_type_int) ||
	    (json_object_get_int64(o) < 0 && !json_object_get_uint64(o)))
		return false;
	*out = json_object_get_uint64(o);
	return true;
}

/* False: it is not there, or larger than max. */
static bool get_number(struct json_object *in, const char *key, uint64_t max, uint64_t *out)
{
	struct json_object *o;
	uint64_t v;

	if (!json_object_object_get_ex(in, key, &o) || !as_number(o, &v) || v > max)
		return false;
	*out = v;
	return true;
}

static bool get_hash(struct json_object *in, uint64_t *out)
{
	char text[24] = "", *end;

	get_text(in, "hash", text, sizeof(text));
	if (strncmp(text, "0x", 2) != 0 || strlen(text) > 18)
		return false;
	*out = strtoull(text + 2, &end, 16);
	return *out && !*end;
}

static void get_counts(struct json_object *in, struct nccl_member *m)
{
	struct json_object *begun;

	if (!json_object_object_get_ex(in, "begun", &begun) ||
	    !json_object_is_type(begun, json_type_object))
		return;
	json_object_object_foreach(begun, kind, n)
	{
		struct nccl_count *c = &m->counts[m->ncounts];

		if (m->ncounts == NCCL_KINDS || !nccl_is_kind(kind) || !as_number(n, &c->n))
			continue;
		strcpy(c->kind, kind);
		m->ncounts++;
	}
}

static int get_frames(struct json_object *in, struct nccl_thread *t)
{
	struct json_object *list, *frame;
	size_t n;

	if (!json_object_object_get_ex(in, "python", &list) ||
	    !json_object_is_type(list, json_type_array))
		return 0;
	n = json_object_array_length(list);
	if (n > NCCL_FRAMES_MAX)
		n = NCCL_FRAMES_MAX;
	t->frames = calloc(n + 1, sizeof(*t->frames));
	for (size_t i = 0; t->frames && i < n; i++) {
		frame = json_object_array_get_idx(list, i);
		if (!json_object_is_type(frame, json_type_string))
			continue;
		t->frames[t->nframes] = strndup(json_object_get_string(frame), FRAME_BYTES);
		if (!t->frames[t->nframes])
			return -ENOMEM;
		t->nframes++;
	}
	return t->frames ? 0 : -ENOMEM;
}

static int get_threads(struct json_object *in, struct nccl_member *m)
{
	struct json_object *list, *one;
	int err = 0;
	size_t n;

	if (!json_object_object_get_ex(in, "threads", &list) ||
	    !json_object_is_type(list, json_type_array))
		return 0;
	n = json_object_array_length(list);
	if (n > NCCL_THREADS_MAX)
		n = NCCL_THREADS_MAX;
	m->threads = calloc(n + 1, sizeof(*m->threads));
	for (size_t i = 0; m->threads && i < n && !err; i++) {
		struct nccl_thread *t = &m->threads[m->nthreads];
		uint64_t tid;

		one = json_object_array_get_idx(list, i);
		if (!json_object_is_type(one, json_type_object) ||
		    !get_number(one, "tid", UINT32_MAX, &tid))
			continue;
		t->tid = (uint32_t)tid;
		get_text(one, "name", t->name, sizeof(t->name));
		get_text(one, "state", t->state, sizeof(t->state));
		get_text(one, "wait", t->wait, sizeof(t->wait));
		get_text(one, "inside", t->inside, sizeof(t->inside));
		m->nthreads++;
		err = get_frames(one, t);
	}
	return m->threads ? err : -ENOMEM;
}

/* A process whose communicators could not be read. */
static bool is_unknown(struct json_object *in)
{
	struct json_object *o;

	return json_object_is_type(in, json_type_object) &&
	       json_object_object_get_ex(in, "unknown", &o);
}

static int get_unknown(struct nccl_job *j, struct json_object *in)
{
	struct nccl_unknown *u = j->nunknown < NCCL_MEMBERS_MAX ? array_add(j->unknown, j->nunknown)
								: NULL;
	uint64_t pid, ts;

	if (!u)
		return -ENOMEM;
	if (get_number(in, "start_ns", UINT64_MAX, &ts) || get_number(in, "ts_ns", UINT64_MAX, &ts))
		u->ts_ns = ts;
	if (get_number(in, "pid", UINT32_MAX, &pid))
		u->pid = (uint32_t)pid;
	get_text(in, "comm", u->comm, sizeof(u->comm));
	get_text(in, "process", u->comm, sizeof(u->comm));
	get_text(in, "host", u->host, sizeof(u->host));
	get_text(in, "boot", u->boot, sizeof(u->boot));
	get_text(in, "library", u->library, sizeof(u->library));
	get_text(in, "unknown", u->why, sizeof(u->why));
	return 0;
}

/* Returns 0, -EBADMSG (it is no such line) or -ENOMEM. */
static int get_member(struct nccl_job *j, struct json_object *in)
{
	uint64_t hash, rank, ranks, device, pid, still = 0, ts = 0;
	struct nccl_member *m;

	if (is_unknown(in))
		return get_unknown(j, in);
	if (!json_object_is_type(in, json_type_object) || !get_hash(in, &hash) ||
	    !get_number(in, "pid", UINT32_MAX, &pid))
		return -EBADMSG;
	m = nccl_job_add(j);
	if (!m)
		return -ENOMEM;
	m->hash = hash;
	m->pid = (uint32_t)pid;
	m->rank = m->nranks = m->device = -1;
	if (get_number(in, "ranks", NCCL_RANKS_MAX, &ranks) && ranks &&
	    get_number(in, "rank", ranks - 1, &rank)) {
		m->rank = (int)rank;
		m->nranks = (int)ranks;
	}
	if (get_number(in, "device", INT32_MAX, &device))
		m->device = (int)device;
	if (get_number(in, "still_ns", UINT64_MAX, &still))
		m->still_ns = still;
	/* the second names are those of files before version 3 */
	if (get_number(in, "start_ns", UINT64_MAX, &ts) || get_number(in, "ts_ns", UINT64_MAX, &ts))
		m->ts_ns = ts;
	get_text(in, "comm", m->comm, sizeof(m->comm));
	get_text(in, "process", m->comm, sizeof(m->comm));
	get_text(in, "host", m->host, sizeof(m->host));
	get_text(in, "boot", m->boot, sizeof(m->boot));
	get_counts(in, m);
	return get_threads(in, m);
}

/* What was said of a hang; of very many the first ones. */
static int get_said(struct nccl_job *j, struct json_object *in)
{
	struct nccl_said *s;

	if (!json_object_is_type(in, json_type_object))
		return -EBADMSG;
	if (j->nsaid == SAID_MAX)
		return 0;
	s = array_add(j->said, j->nsaid);
	if (!s)
		return -ENOMEM;
	get_text(in, "host", s->host, sizeof(s->host));
	get_text(in, "boot", s->boot, sizeof(s->boot));
	get_text(in, "id", s->id, sizeof(s->id));
	get_text(in, "claim", s->claim, sizeof(s->claim));
	return 0;
}

/* May json-c make objects of it? */
static bool is_small(const char *line, size_t len)
{
	size_t parts = 0;

	for (size_t i = 0; i < len; i++)
		parts += line[i] == '{' || line[i] == '[' || line[i] == ',';
	return parts <= PARTS_MAX;
}

static int read_line(struct nccl_job *j, const char *line, size_t len,
		     int (*get)(struct nccl_job *, struct json_object *))
{
	struct json_tokener *tok;
	struct json_object *o;
	int err;

	if (!is_small(line, len))
		return -EBADMSG;
	tok = json_tokener_new_ex(DEPTH_MAX);
	if (!tok)
		return -ENOMEM;
	o = json_tokener_parse_ex(tok, line, (int)len);
	err = o ? get(j, o) : -EBADMSG;
	json_object_put(o);
	json_tokener_free(tok);
	return err;
}

/* ---- the file ---- */

static int complain(int err, const char *name, unsigned int line)
{
	if (err == -EBADMSG)
		msg_error("%s: line %u is damaged, or not what 'cudatrace stuck --format json' "
			  "writes",
			  name, line);
	else if (err == -ENOENT)
		msg_error("%s: nothing in it is of 'cudatrace stuck --format json'", name);
	else if (err == -ENOMEM)
		msg_error("%s: more than %d ranks in all files, or no memory for them", name,
			  NCCL_MEMBERS_MAX);
	else
		msg_error("%s cannot be read: %s", name, strerror(-err));
	return err;
}

/* Every line of the file: those of other types are passed over, if it is a line of JSON. */
static int read_lines(struct nccl_job *j, FILE *f, char *buf, unsigned int *line)
{
	while (fgets(buf, LINE_BYTES, f)) {
		size_t len = strlen(buf);
		int err;

		++*line;
		if (buf[0] != '{' || !len || (buf[len - 1] != '\n' && !feof(f)))
			return -EBADMSG;
		if (*line > LINES_MAX)
			return -EBADMSG;
		err = !strncmp(buf, BEGIN, strlen(BEGIN)) ? read_line(j, buf, len, get_member)
		      : !strncmp(buf, HANG, strlen(HANG)) || !strncmp(buf, ENDED, strlen(ENDED))
			      ? read_line(j, buf, len, get_said)
			      : 0;
		if (err)
			return err;
	}
	return ferror(f) ? -EIO : *line ? 0 : -ENOENT;
}

int nccl_job_read(struct nccl_job *j, int fd, const char *name)
{
	int own = dup(fd), err;
	FILE *f = own >= 0 ? fdopen(own, "r") : NULL;
	char *buf = f ? malloc(LINE_BYTES) : NULL;
	unsigned int line = 0;

	err = buf ? read_lines(j, f, buf, &line) : -ENOMEM;
	free(buf);
	if (f)
		fclose(f);
	else if (own >= 0)
		close(own);
	return err ? complain(err, name, line) : 0;
}
