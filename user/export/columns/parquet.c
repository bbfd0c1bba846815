/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * parquet.c - a folder with a file of Apache Parquet for each kind of row, with the columns that
 * columns.def has for it: calls.parquet, kernels.parquet and so on, always all of them. The folder
 * gets its name when all files are complete. A thread compresses and writes a group of rows while the next one is
 * filled.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../util/io/safe_open.h"
#include "../../util/msg.h"
#include "../../util/thread.h"
#include "../../flow/about.h"
#include "parquet_file.h"

#define PROCESSES_MAX (1u << 24) /* process_unique() is below it */
#define GROUP_ROWS (1u << 17)

struct parquet {
	struct cells cells;
	struct parquet_table {
		struct batch batch, full; /* being filled; being written */
		struct parquet_file file;
	} tables[COLUMN_TABLES_N];
	struct worker *worker;	    /* writes one table's `full` at a time */
	uint8_t *written;	    /* a bit for each stack whose frames were written */
	uint8_t *told;		    /* a bit for each process whose row `info` was written */
	char *path;		    /* the folder, for messages */
	struct safe_place at, part; /* where it is to be, and where it is until it is complete */
	int folder;		    /* of `part`; below 0: it was not made */
};

/* ---- the folder ---- */

static struct safe_place parquet_place_of(const struct parquet *p, int table)
{
	struct safe_place at = { .dir = p->folder };

	snprintf(at.name, sizeof(at.name), "%s.parquet", column_tables[table]);
	return at;
}

static int open_tables(struct parquet *p)
{
	int err = 0;

	for (int i = 0; i < COLUMN_TABLES_N && !err; i++) {
		struct safe_place at = parquet_place_of(p, i);

		err = batch_open(&p->tables[i].batch, 1u << i);
		err = err ? err : batch_open(&p->tables[i].full, 1u << i);
		if (!err)
			err = parquet_file_open(&p->tables[i].file, &at);
	}
	return err;
}

static int make_folder(struct parquet *p, const char *path)
{
	size_t n = strlen(path);
	struct stat st;
	int err;

	while (n > 1 && path[n - 1] == '/')
		n--;
	p->path = strndup(path, n);
	if (!p->path)
		return -ENOMEM;
	err = safe_place_find(&p->at, p->path);
	if (!err && safe_place_look(&p->at, &st) != -ENOENT) {
		msg_error("%s is there already: remove it, or name another folder with -o",
			  p->path);
		return -EINVAL;
	}
	p->folder = err ? err : safe_place_new(&p->at, &p->part, true, p->path, NULL);
	if (p->folder < 0) {
		msg_error("cannot make a folder beside %s: %s", p->path, strerror(-p->folder));
		return -EINVAL;
	}
	return 0;
}

static void remove_folder(struct parquet *p)
{
	for (int i = 0; i < COLUMN_TABLES_N; i++)
		unlinkat(p->folder, parquet_place_of(p, i).name, 0);
	unlinkat(p->part.dir, p->part.name, AT_REMOVEDIR);
}

/* ---- rows ---- */

static int write_group(void *arg)
{
	struct parquet_table *t = arg;

	return parquet_file_group(&t->file, &t->full);
}

/* The worker gets the rows that the table has. */
static int parquet_hand_over(struct parquet *p, struct parquet_table *t)
{
	int err = worker_wait(p->worker);
	struct batch full = t->batch;

	if (err)
		return err;
	t->batch = t->full;
	t->full = full;
	return worker_begin(p->worker, write_group, t);
}

static int add_row(struct parquet *p, enum column_table table)
{
	struct parquet_table *t = &p->tables[table];
	int err = batch_add(&t->batch, &p->cells);

	return !err && batch_full(&t->batch, GROUP_ROWS) ? parquet_hand_over(p, t) : err;
}

static int add_stack(struct parquet *p, const struct stack *s)
{
	int err = 0;

	if (!s || s->id >= COLUMNS_STACKS_MAX || !columns_stack_new(p->written, s))
		return 0;
	for (uint32_t i = 0; i < s->nframes && !err; i++) {
		columns_frame(&p->cells, s, i);
		err = add_row(p, COLUMNS_STACKS);
	}
	return err;
}

/* Whether it is known what the process is, and whether that was not written since it began or
 * became another program. */
static bool tells_info(struct parquet *p, const struct event *ev)
{
	uint32_t id = ev->rec->pid ? process_unique(ev->proc) : PROCESSES_MAX;
	uint8_t bit = (uint8_t)(1u << id % 8), *at = &p->told[id / 8];

	if (id >= PROCESSES_MAX || !ev->proc->info)
		return false;
	if (ev->rec->kind == CT_EXEC) {
		*at &= (uint8_t)~bit;
		return false;
	}
	if (*at & bit)
		return false;
	*at |= bit;
	return true;
}

static int parquet_event(struct sink *s, const struct event *ev)
{
	/* what threads waited for has rows in no other table of rows: there would be too many */
	uint32_t n = ev->rec->kind == CT_HOST_SEGMENT ? 1 : columns_rows(ev);
	struct parquet *p = s->priv;
	int err = 0;

	if (ev->rec->kind == CT_DEVICE) {
		columns_device(&p->cells, ev);
		return add_row(p, COLUMNS_DEVICES);
	}
	if (!n)
		return 0;
	if (tells_info(p, ev)) {
		columns_process(&p->cells, ev);
		err = add_row(p, COLUMNS_PROCESSES);
	}
	for (uint32_t i = 0; i < n && !err; i++) {
		columns_fill(&p->cells, ev, i);
		err = add_row(p, columns_table(ev));
	}
	if (!err)
		err = add_stack(p, ev->stack);
	return err ? err : about_is_call(ev->rec) || kind_is(ev->rec->kind, KIND_DEVICE);
}

/* ---- the sink ---- */

static int parquet_open(struct sink *s, const struct sink_opts *opts)
{
	struct parquet *p = calloc(1, sizeof(*p));
	int err;

	s->opts = opts;
	s->priv = p;
	if (!p)
		return -ENOMEM;
	p->folder = p->at.dir = -1;
	p->cells.o = opts;
	p->cells.fields = true;
	p->written = calloc(COLUMNS_STACKS_MAX / 8, 1);
	p->worker = worker_open("ct-columns");
	p->told = calloc(PROCESSES_MAX / 8 + 1, 1);
	if (!p->written || !p->told || !p->worker)
		return -ENOMEM;
	err = make_folder(p, opts->path);
	return err ? err : open_tables(p);
}

/* Ends all files, and gives the folder its name. */
static int parquet_finish(struct parquet *p, const char *version)
{
	int err = 0;

	for (int i = 0; i < COLUMN_TABLES_N && !err; i++) {
		struct parquet_table *t = &p->tables[i];

		if (!t->file.open)
			return -EINVAL; /* it was not opened, and a message said why */
		if (t->batch.rows)
			err = parquet_hand_over(p, t);
		err = err ? err : worker_wait(p->worker);
		if (!err)
			err = parquet_file_end(&t->file, &t->batch, version);
	}
	if (!err)
		err = safe_place_rename(&p->part, p->at.name);
	if (err)
		msg_error("cannot write to %s: %s", p->path, strerror(-err));
	return err;
}

static int parquet_close(struct sink *s, const struct sink_end *end)
{
	struct parquet *p = s->priv;
	int err = 0;

	(void)end;
	if (!p)
		return 0;
	if (p->folder >= 0 && p->worker) {
		err = parquet_finish(p, s->opts->version);
		if (err)
			remove_folder(p);
	}
	worker_close(p->worker);
	for (int i = 0; i < COLUMN_TABLES_N; i++) {
		parquet_file_close(&p->tables[i].file);
		batch_close(&p->tables[i].batch);
		batch_close(&p->tables[i].full);
	}
	text_free(&p->cells.made);
	free(p->written);
	free(p->told);
	free(p->path);
	if (p->folder >= 0)
		close(p->folder);
	safe_place_close(&p->at);
	free(p);
	s->priv = NULL;
	return err;
}

const struct sink_ops sink_parquet = {
	.name = "parquet",
	.open = parquet_open,
	.event = parquet_event,
	.close = parquet_close,
};
