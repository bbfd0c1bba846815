/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * split.c - a file for each process: with %p in the path of -o, each process gets an output of its
 * own, of the format that was asked for (sink_opts.split). What is of no process, as a loss, goes
 * to all that are open. A file that cannot be made leaves the others alone: in a folder as /tmp anybody
 * may put something there that has its name. Knows no format.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../flow/sink.h"
#include "../util/msg.h"
#include "../util/table/array.h"
#include "../util/table/hash_map.h"

#define SPLIT_FILES_MAX 256
#define SPLIT_REFUSED_MAX (1u << 24) /* as many as processes have numbers */

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
	struct hash_map refused; /* numbers of processes whose file could not be made */
	bool full;		 /* there are as many files as there can be, which was said */
};

static int split_open(struct sink *s, const struct sink_opts *opts)
{
	s->opts = opts;
	s->priv = calloc(1, sizeof(struct split));
	if (!s->priv)
		return -ENOMEM;
	hash_map_open(&((struct split *)s->priv)->refused, sizeof(uint32_t), sizeof(uint32_t),
		      SPLIT_REFUSED_MAX);
	return 0;
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

static void split_drop(struct split_file *f)
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

/* Notes that the process has no file and gets none, which a message has said. Returns 0 or
 * -ENOMEM. */
static int refuse(struct split *all, uint32_t number)
{
	bool made;

	return hash_map_get(&all->refused, &number, &made) ? 0 : -ENOMEM;
}

/* The file of the event's process, which has one from its first call or device work on. *err, where it
 * is NULL: 0, or SINK_UNWRITTEN, or -errno. */
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
	if (!works)
		return NULL;
	*err = SINK_UNWRITTEN;
	if (all->n == SPLIT_FILES_MAX && !all->full)
		msg_warn("-o with %%p writes %d files, and no more: what further processes do is "
			 "in no file",
			 SPLIT_FILES_MAX);
	all->full = all->n == SPLIT_FILES_MAX;
	if (all->full || hash_map_look(&all->refused, &number))
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
		split_drop(f);
		/* the other processes have their files */
		if (*err != -ENOMEM)
			*err = refuse(all, number);
		*err = *err ? *err : SINK_UNWRITTEN;
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
		split_drop(f);
	}
	/* not one of them could be written */
	if (all && !all->n && all->refused.n)
		failed = 1;
	if (all) {
		hash_map_close(&all->refused);
		free(all->files);
	}
	free(all);
	s->priv = NULL;
	s->status = failed;
	return 0;
}

const struct sink_ops sink_split = {
	.name = "files",
	.open = split_open,
	.event = split_event,
	.tick = split_tick,
	.close = split_close,
};
