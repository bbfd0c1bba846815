/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * split.c - a file for each process: with %p in the path of -o, each process gets an output of its
 * own, of the format that was asked for (sink_opts.split). What is of no process, as a loss, goes
 * to all that are open. Knows no format.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sink.h"
#include "../util/msg.h"
#include "../util/table/array.h"

#define SPLIT_FILES_MAX 256

/* Where it is stays, since its sink points into it. */
struct split_file {
	uint32_t number; /* of the process, as process_unique() has it */
	struct out out;
	struct sink_opts opts;
	struct sink sink;
	char *path;
};

struct split {
	struct split_file **files;
	int n;
	struct split_file *last; /* that a row went to */
	uint64_t no_file;	 /* events of processes for which there could be no file */
};

static int split_open(struct sink *s, const struct sink_opts *opts)
{
	s->opts = opts;
	s->priv = calloc(1, sizeof(struct split));
	return s->priv ? 0 : -ENOMEM;
}

/* The path with the process's number in place of each %p; NULL: no memory. */
static char *path_of(const char *template, uint32_t number)
{
	size_t size = strlen(template) * 6 + 16, n = 0;
	char *path = malloc(size);

	if (!path)
		return NULL;
	for (const char *at = template; *at; at++) {
		if (at[0] != '%' || at[1] != 'p') {
			path[n++] = *at;
			continue;
		}
		n += (size_t)snprintf(path + n, size - n, "%u", number);
		at++;
	}
	path[n] = '\0';
	return path;
}

static void drop(struct split_file *f)
{
	free(f->path);
	free(f);
}

/* Returns 0 or -errno; -EINVAL after a message. */
static int file_open(struct sink *s, struct split_file *f)
{
	int err;

	f->path = path_of(s->opts->path, f->number);
	if (!f->path)
		return -ENOMEM;
	err = out_open_output(&f->out, f->path, s->opts->append, -1);
	if (err)
		return err;
	f->opts = *s->opts;
	f->opts.out = &f->out;
	f->opts.path = f->path;
	f->sink.ops = s->opts->split;
	err = f->sink.ops->open(&f->sink, &f->opts);
	if (err)
		out_close(&f->out);
	return err;
}

/* The file of the event's process, which has one from its first call or device work on. *err: 0,
 * or -errno where it is NULL. */
static struct split_file *file_of(struct sink *s, const struct event *ev, int *err)
{
	struct split *all = s->priv;
	const struct process *proc = ev->proc;
	bool works = kind_is(ev->rec->kind, KIND_CALL | KIND_DEVICE);
	uint32_t number = process_unique(proc);
	struct split_file *f = all->last;

	*err = 0;
	if (f && f->number == number)
		return f;
	for (int i = 0; i < all->n; i++)
		if (all->files[i]->number == number)
			return all->last = all->files[i];
	all->no_file += works && all->n == SPLIT_FILES_MAX;
	if (!works || all->n == SPLIT_FILES_MAX)
		return NULL;
	f = calloc(1, sizeof(*f));
	*err = f && array_room(all->files, all->n) ? 0 : -ENOMEM;
	if (*err) {
		free(f);
		return NULL;
	}
	f->number = number;
	*err = file_open(s, f);
	if (*err) {
		drop(f);
		return NULL;
	}
	all->files[all->n++] = f;
	return all->last = f;
}

static int to_all(struct split *all, const struct event *ev)
{
	int rows = 0;

	for (int i = 0; i < all->n; i++) {
		int n = all->files[i]->sink.ops->event(&all->files[i]->sink, ev);

		if (n < 0)
			return n;
		rows |= n;
	}
	return rows;
}

static int split_event(struct sink *s, const struct event *ev)
{
	struct split *all = s->priv;
	struct split_file *f;
	int err;

	if (!ev->proc || !ev->proc->pid)
		return to_all(all, ev);
	f = file_of(s, ev, &err);
	return f ? f->sink.ops->event(&f->sink, ev) : err;
}

static int split_tick(struct sink *s, uint64_t now_ns)
{
	struct split *all = s->priv;
	int err = 0;

	for (int i = 0; i < all->n && !err; i++) {
		struct sink *one = &all->files[i]->sink;

		err = one->ops->tick ? one->ops->tick(one, now_ns) : 0;
		if (!err)
			err = out_sync(&all->files[i]->out);
	}
	return err;
}

static int split_close(struct sink *s, const struct sink_end *end)
{
	struct split *all = s->priv;
	int failed = 0;

	for (int i = 0; all && i < all->n; i++) {
		struct split_file *f = all->files[i];
		int err = f->sink.ops->close(&f->sink, end), closed = out_close(&f->out);

		if (out_report(&f->out, closed, "") || err)
			failed = 1;
		drop(f);
	}
	if (all && all->no_file)
		msg_warn("%llu rows of processes after the first %d are in no file, because -o "
			 "with %%p writes no more files",
			 (unsigned long long)all->no_file, SPLIT_FILES_MAX);
	if (all)
		free(all->files);
	free(all);
	s->priv = NULL;
	s->status = failed;
	return 0;
}

const struct sink_ops sink_split = {
	.name = "files",
	.help = "a file for each process",
	.open = split_open,
	.event = split_event,
	.tick = split_tick,
	.close = split_close,
};
