/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chrome_file.c - the files of the chrome sink: one for all processes or one for each, their
 * beginning and end, and the common members of an event. See chrome.h. Knows no kind.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../../util/msg.h"
#include "chrome.h"
#include "../../render/json_fields.h"

/* Writes the template, with the process's id in place of %p. */
static void file_path(const char *template, uint32_t pid, char *path, size_t size)
{
	const char *at = strstr(template, "%p");

	snprintf(path, size, "%.*s%u%s", (int)(at - template), template, pid, at + 2);
}

/* distributedInfo says which process of a job the file describes. The process's launcher, for
 * example torchrun, set that in its environment. */
static void chrome_file_put_head(struct chrome *c, struct chrome_file *f,
				 const struct process *proc)
{
	const struct process_info *info = proc ? proc->info : NULL;
	struct row *w = &c->row;

	row_begin(w, f->out);
	w->p = put_lit(w->p, "{\"schemaVersion\":1,");
	if (info && info->rank != CT_UNKNOWN) {
		w->p = put_u64(put_lit(w->p, "\"distributedInfo\":{\"rank\":"), info->rank);
		if (info->world_size != CT_UNKNOWN)
			w->p = json_next_u64(w->p, "world_size", info->world_size);
		w->p = put_lit(w->p, "},");
	}
	w->p = put_lit(w->p, "\"displayTimeUnit\":\"ms\",\"baseTimeNanoseconds\":");
	w->p = put_u64(w->p, c->opts->start_ns + c->opts->realtime_offset_ns);
	w->p = json_next(w->p, "traceName");
	json_string(w, c->opts->title ? c->opts->title : "",
		    c->opts->title ? strlen(c->opts->title) : 0);
	row_room(w, JSON_ROOM);
	w->p = put_lit(w->p, ",\"traceEvents\":[\n");
	row_end(w);
}

/* TensorBoard and HTA divide a trace into the profiler's steps. If no steps are known, the whole
 * trace is one step: without any step, the sums in TensorBoard's overview are wrong. */
static void put_step(struct chrome *c, struct chrome_file *f)
{
	static const char body[] =
		"\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#0\",\"args\":{}";

	if (f->steps || !f->last_ns)
		return;
	for (size_t i = 0; i < f->leaders.n; i++) {
		const struct chrome_tid *t = hash_map_at(&f->leaders, i);

		chrome_slice(c, f, t->pid, t->tid, f->first_ns, f->last_ns, body, sizeof(body) - 1);
	}
}

void chrome_file_end(struct chrome *c, struct chrome_file *f, const char *reason)
{
	struct row *w = &c->row;

	put_step(c, f);
	row_begin(w, f->out);
	w->p = put_lit(w->p, "\n],\"deviceProperties\":[");
	chrome_devices_put(c->devices, f->pid, w);
	row_room(w, JSON_ROOM);
	w->p = put_lit(w->p, "],\"exporter\":\"cudatrace ");
	w->p = put_str(w->p, c->opts->version ? c->opts->version : "");
	w->p = json_word(put_lit(w->p, "\",\"ended\":"), reason);
	w->p = put_lit(w->p, "}\n");
	row_end(w);
}

int chrome_file_add(struct chrome *c, const struct process *proc)
{
	struct chrome_file *f;
	char path[4096];
	int err;

	if (c->nfiles == CHROME_FILES_MAX)
		return -EMFILE;
	f = &c->files[c->nfiles];
	*f = (struct chrome_file){ .out = c->opts->out, .next_tid = CHROME_OTHER_TID };
	hash_map_open(&f->tids, sizeof(struct chrome_tid), sizeof(struct chrome_tid),
		      CHROME_TIDS_MAX);
	hash_map_open(&f->leaders, sizeof(struct chrome_tid), sizeof(struct chrome_tid),
		      CHROME_TIDS_MAX);
	hash_map_open(&f->arrows, sizeof(struct chrome_begun), sizeof(uint64_t),
		      CHROME_BEGUN_PAGES);
	if (c->split) {
		file_path(c->opts->path, process_unique(proc), path, sizeof(path));
		err = out_open_output(&f->own, path, false, -1);
		if (err) {
			out_close(&f->own);
			return err;
		}
		f->own.name = "a file of -o";
		f->out = &f->own;
		f->pid = proc->pid;
		f->start = proc->start_boottime_ns;
	}
	c->nfiles++;
	chrome_file_put_head(c, f, proc);
	return 0;
}

/* The file of a process; NULL: there can be no more files. */
struct chrome_file *chrome_file_of(struct chrome *c, uint32_t pid, uint64_t start)
{
	const struct chrome_none none = { .start = start, .pid = pid };
	bool made;
	int err;

	if (!c->split)
		return &c->files[0];
	for (uint32_t i = 0; i < c->nfiles; i++)
		if (c->files[i].pid == pid && c->files[i].start == start)
			return &c->files[i];
	if (!c->proc || c->proc->pid != pid || hash_map_look(&c->refused, &none))
		return NULL;
	err = chrome_file_add(c, c->proc);
	if (!err)
		return &c->files[c->nfiles - 1];
	if (err == -EMFILE && !c->full)
		msg_warn("-o with %%p writes %d files, and no more: what further processes do is "
			 "in no file",
			 CHROME_FILES_MAX);
	c->full |= err == -EMFILE;
	/* the other processes have their files */
	if (err == -ENOMEM || (err != -EMFILE && !hash_map_get(&c->refused, &none, &made)))
		c->error = -ENOMEM;
	return NULL;
}

/* ---- events ---- */

/* {"ph":"X","pid":1,"tid":2,"ts":3.000 */
void chrome_event_begin(struct chrome *c, struct chrome_file *f, char phase, uint32_t pid,
			uint32_t tid, uint64_t ns)
{
	struct row *w = &c->row;

	row_begin(w, f->out);
	if (f->begun)
		w->p = put_lit(w->p, ",\n");
	f->begun = true;
	w->p = put_char(put_lit(w->p, "{\"ph\":\""), phase);
	w->p = put_u64(put_lit(w->p, "\",\"pid\":"), pid);
	w->p = json_next_u64(w->p, "tid", tid);
	w->p = chrome_us(json_next(w->p, "ts"), (int64_t)(ns - c->opts->start_ns));
}

void chrome_event_end(struct chrome *c)
{
	row_room(&c->row, 8);
	*c->row.p++ = '}';
	row_end(&c->row);
}

void chrome_slice(struct chrome *c, struct chrome_file *f, uint32_t pid, uint32_t tid,
		  uint64_t start_ns, uint64_t end_ns, const char *body, size_t len)
{
	if (!f->last_ns || start_ns < f->first_ns)
		f->first_ns = start_ns;
	if (end_ns > f->last_ns)
		f->last_ns = end_ns;
	chrome_event_begin(c, f, 'X', pid, tid, start_ns);
	c->row.p = chrome_us(json_next(c->row.p, "dur"), (int64_t)(end_ns - start_ns));
	*c->row.p++ = ',';
	row_mem(&c->row, body, len);
	chrome_event_end(c);
}

void chrome_file_steps(struct chrome *c, struct chrome_file *f)
{
	const struct steps_of *p;
	size_t n;

	p = steps_list(c->steps, &n);
	for (; n && !f->steps; n--, p++) {
		/* a program that only repeats its launches may be anything */
		if (p->how == STEPS_LAUNCHES)
			continue;
		if (f->pid && (f->pid != p->pid || f->start != p->start_boottime_ns))
			continue;
		for (size_t i = 0; i < p->n; i++) {
			c->body.len = 0;
			row_begin_text(&c->row, &c->body);
			chrome_step_body(&c->row, p, &p->list[i]);
			row_end(&c->row);
			if (c->body.bad)
				return;
			chrome_slice(c, f, chrome_pid_of(p->shown_pid), p->tid, p->list[i].start_ns,
				     p->list[i].end_ns, c->body.s, c->body.len);
			f->found = true;
		}
	}
	f->steps |= f->found;
}

/* {"ph":"M",...,"name":"process_name","args":{"name":"python3"}} */
void chrome_meta(struct chrome *c, struct chrome_file *f, uint32_t pid, uint32_t tid,
		 const char *what, const char *key, const char *text)
{
	chrome_event_begin(c, f, 'M', pid, tid, c->opts->start_ns);
	c->row.p = json_next_word(c->row.p, "name", what);
	c->row.p = json_word(put_lit(c->row.p, ",\"args\":{"), key);
	*c->row.p++ = ':';
	json_string(&c->row, text, strlen(text));
	*c->row.p++ = '}';
	chrome_event_end(c);
}
