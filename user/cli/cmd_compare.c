/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cmd_compare.c - `cudatrace compare` and `check`: saved runs against other saved runs. A
 * recording is replayed into the sums that `stat --save` would have written of it. Needs no
 * privileges.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cmd.h"
#include "options/opts_check.h"
#include "../stat/stat_print.h"
#include "../compare/compare.h"
#include "../session/session.h"
#include "../trace/format.h"
#include "../util/io/confine.h"
#include "../util/msg.h"
#include "../util/option/option.h"

struct compare_options {
	const char **fail_if; /* conditions; NULL: the usual ones */
	const char *step;     /* NULL, or what there is one of in each step */
	double level;	      /* chance of a false alarm */
	enum compare_format format;
};

static int set_level(void *options, const char *name, const char *val)
{
	struct compare_options *o = options;
	char *end;

	o->level = strtod(val, &end);
	if (*val >= '0' && *val <= '9' && !*end && o->level > 0 && o->level < 0.5)
		return 0;
	msg_error("%s: '%s' is not a probability between 0 and 0.5; give one such as 0.05", name,
		  val);
	return -EINVAL;
}

/* What --step says: the number of steps of a run, or, with 0 steps, the metric that each step has
 * one of, which is a condition without its end. Returns 0, or -EINVAL after a message; judge_free()
 * in any case. */
static int parse_step(const char *what, struct judge_expr *metric, double *steps)
{
	char text[1024], msg[512], *end;
	int err = -EINVAL;

	*metric = (struct judge_expr){ .text = what };
	*steps = strtod(what, &end);
	if (*what >= '0' && *what <= '9' && !*end && *steps > 0 && *steps < 1e18)
		return 0;
	*steps = 0;
	if (snprintf(text, sizeof(text), "%s>0", what) >= (int)sizeof(text))
		msg_error("--step: the name is too long");
	else if (judge_parse(metric, text, msg, sizeof(msg)))
		msg_error("--step: '%s' is no metric; give one that 'cudatrace compare' prints, as "
			  "launches or cudaGraphLaunch.calls, or the number of steps",
			  what);
	else if (metric->glob)
		msg_error("--step: '%s' may stand for several names: give one", what);
	else
		err = 0;
	metric->text = what;
	return err;
}

static int set_step(void *options, const char *name, const char *val)
{
	struct judge_expr metric;
	double steps;
	int err = parse_step(val, &metric, &steps);

	(void)name;
	judge_free(&metric);
	((struct compare_options *)options)->step = val;
	return err;
}

#define OPTION_STRUCT struct compare_options
/* clang-format off */
static const struct option_row rows[] = {
	{ 0, "fail-if", "EXPR", TEXTS(fail_if, NULL), 0, NULL,
	  "exit with status 1 if this condition is true; repeatable: cudaMalloc.calls>+10%,\n"
	  "sync.time>+5ms, total_api_time>+3%, kernel(vecAdd*).avg>+10%, failed>0, launches!=+0.\n"
	  "Without --fail-if: if total_api_time, sync_time or kernel_time rises by more than 5%, or\n"
	  "failed_calls by one, and there are several runs on a side" },
	{ 0, "step", "METRIC", OTHER(set_step), 0, NULL,
	  "compare the sums of one step: METRIC is a number of which each step has one, such as\n"
	  "kernel(adam).calls, or the number of steps of a run" },
	{ 0, "level", "P", OTHER(set_level), 0, "0.05", "the accepted chance of a false alarm, for all conditions together" },
	{ 0, "format", "NAME", ENUM(format, "text", "markdown", "json", "junit"), 0, "text", "text, markdown, json or junit" },
};
/* clang-format on */
static const struct option_set options = OPTION_SET(rows);

/* The conditions without --fail-if: the numbers that the files have must not grow by more than this. */
static const char *const usual[] = { "total_api_time>+5%", "sync_time>+5%", "kernel_time>+5%",
				     "failed_calls>+0", NULL };

struct comparison {
	struct judge_expr *exprs;
	size_t nexprs;
	struct saved *saved; /* BASE first */
	size_t nsaved;
	struct compare *compared;
	size_t ncompared;
};

static bool is_recording(int fd)
{
	char magic[TRACE_MAGIC_LEN];

	return pread(fd, magic, sizeof(magic), 0) == sizeof(magic) &&
	       !memcmp(magic, TRACE_MAGIC, sizeof(magic));
}

/* Returns a descriptor with the sums as JSON, or -errno after a message. */
static int sums_of(const struct request *o, const char *path, int recording)
{
	static const struct source_ops *const sources[] = { &source_replay };
	struct stat_options how = { .form = STAT_JSON };
	struct request replay = *o;
	int fd = memfd_create("cudatrace-stat", MFD_CLOEXEC), status;
	char name[64];

	if (fd < 0) {
		msg_error("%s: no memory for its sums: %s", path, strerror(errno));
		return -ENOMEM;
	}
	snprintf(name, sizeof(name), "/dev/fd/%d", fd);
	replay.replay = true;
	replay.file = path;
	replay.file_fd = recording;
	replay.output = name;
	replay.format = sinks_find("stat");
	request_lend(&replay, sink_stat.options, &how);
	status = session_run(&replay, sources, 1);
	if (status) {
		close(fd);
		return -EINVAL;
	}
	return fd;
}

static int cmd_compare_load(struct comparison *c, const struct request *o, const char *path, int fd)
{
	int sums = -1, err;

	if (is_recording(fd)) {
		sums = sums_of(o, path, fd);
		if (sums < 0)
			return sums;
	}
	err = saved_open(&c->saved[c->nsaved++], sums < 0 ? fd : sums, path);
	if (sums >= 0)
		close(sums);
	return err;
}

/* Opens all files; after that nothing is opened with privileges. */
static int open_files(int *fds, const struct request *o)
{
	for (int i = 0; i < o->nargs; i++) {
		fds[i] = open(o->args[i], O_RDONLY | O_CLOEXEC);
		if (fds[i] < 0) {
			int err = -errno;

			msg_error("%s cannot be opened: %s", o->args[i], strerror(-err));
			return err;
		}
	}
	/* sums of recordings are written to a file in memory */
	confine(CONFINE_FILES);
	confine_drop();
	return 0;
}

static int cmd_compare_parse(struct comparison *c, const char *const *texts)
{
	char msg[512];
	size_t n = 0;

	while (texts[n])
		n++;
	c->exprs = calloc(n + 1, sizeof(*c->exprs));
	for (; c->exprs && c->nexprs < n; c->nexprs++) {
		if (judge_parse(&c->exprs[c->nexprs], texts[c->nexprs], msg, sizeof(msg))) {
			judge_free(&c->exprs[c->nexprs]);
			msg_error("--fail-if: %s", msg);
			return -EINVAL;
		}
	}
	return c->exprs ? 0 : -ENOMEM;
}

/* The usual conditions for which all files have the numbers. */
static void drop_unknown(struct comparison *c)
{
	size_t kept = 0;

	for (size_t i = 0; i < c->nexprs; i++) {
		bool known = true;

		for (size_t k = 0; k < c->nsaved; k++)
			known &= saved_find(&c->saved[k], SAVED_SUMMARY, c->exprs[i].name) != NULL;
		if (known)
			c->exprs[kept++] = c->exprs[i];
		else
			judge_free(&c->exprs[i]);
	}
	c->nexprs = kept;
}

/* Converts all sums to those of one step, before anything is compared. */
static int by_step(struct comparison *c, const char *what)
{
	struct judge_expr metric;
	double steps;
	int err = parse_step(what, &metric, &steps);

	for (size_t i = 0; i < c->nsaved && !err; i++)
		err = compare_by_step(&c->saved[i], steps > 0 ? NULL : &metric, steps);
	judge_free(&metric);
	return err;
}

static int compare_all(struct comparison *c, const struct request *o, const int *fds)
{
	const struct compare_options *how = request_own(o, &options);
	int err;

	c->saved = calloc((size_t)o->nargs, sizeof(*c->saved));
	c->compared = calloc((size_t)o->nargs, sizeof(*c->compared));
	err = c->saved && c->compared ? 0 : -ENOMEM;
	if (!err)
		err = cmd_compare_parse(c, how->fail_if ? how->fail_if : usual);
	for (int i = 0; i < o->nargs && !err; i++)
		err = cmd_compare_load(c, o, o->args[i], fds[i]);
	if (!err && how->step)
		err = by_step(c, how->step);
	if (!err && !how->fail_if)
		drop_unknown(c);
	for (size_t i = 1; i < c->nsaved && !err; i++) {
		struct compare *one = &c->compared[c->ncompared++];
		/* with a single run it is not known how much runs differ from each other */
		bool alone = !how->fail_if && c->saved[0].nruns < 2 && c->saved[i].nruns < 2;

		err = compare_open(one, &c->saved[0], &c->saved[i], c->exprs, alone ? 0 : c->nexprs,
				   how->level);
		one->by_step = how->step != NULL;
		one->no_verdict = alone;
	}
	if (err == -ENOMEM)
		msg_error("not enough memory to compare");
	return err;
}

/* 0; 1: a regression; 2: a condition that cannot be decided. */
static int status_of(const struct comparison *c)
{
	int status = 0;

	for (size_t i = 0; i < c->ncompared; i++) {
		const struct judge_results *all = &c->compared[i].results;

		for (size_t k = 0; k < all->n && c->compared[i].unknown; k++)
			if (all->r[k].unknown)
				msg_error("'%s' is not known: %s does not have this number; was it "
					  "saved without --gpu, or is the name wrong?",
					  all->r[k].expr->text,
					  !all->r[k].c.now.n ? c->compared[i].now->path
							     : c->compared[i].base->path);
		if (c->compared[i].unknown)
			return 2;
		status |= c->compared[i].regressions != 0;
	}
	return status;
}

static int cmd_compare(const struct request *o)
{
	const struct compare_options *how = request_own(o, &options);
	struct comparison c = { 0 };
	struct out out;
	int status = 2, *fds;

	for (int i = 0; i < o->nargs; i++)
		if (cmd_overwrites(o->args[i], o->output))
			return 2;
	fds = malloc((size_t)o->nargs * sizeof(*fds));
	if (fds)
		memset(fds, -1, (size_t)o->nargs * sizeof(*fds));
	else
		msg_error("not enough memory to compare");
	/* a command that is written to is started before privileges are given up */
	if (fds && !out_open_output(&out, o->output, false, STDOUT_FILENO)) {
		bool compared = !open_files(fds, o) && !compare_all(&c, o, fds);

		if (compared)
			compare_print(&out, how->format, c.compared, c.ncompared, c.exprs, c.nexprs,
				      CT_VERSION);
		if (!cmd_finish(&out) && compared)
			status = status_of(&c);
	}
	for (int i = 0; fds && i < o->nargs; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	free(fds);
	for (size_t i = 0; i < c.ncompared; i++)
		compare_close(&c.compared[i]);
	for (size_t i = 0; i < c.nsaved; i++)
		saved_close(&c.saved[i]);
	for (size_t i = 0; i < c.nexprs; i++)
		judge_free(&c.exprs[i]);
	free(c.compared);
	free(c.saved);
	free(c.exprs);
	return status;
}

static int cmd_compare_check(const struct opts_line *l)
{
	const struct opts_rule rules[] = {
		{ l->o->nargs < 2, true,
		  "give two files or more: BASE, and what is compared with it; 'cudatrace stat "
		  "--save' and 'cudatrace record' make them" },
	};

	return opts_judge(l, rules, ARRAY_LEN(rules));
}

/* clang-format off */
const struct command command_compare = {
	.run = cmd_compare,
	.check = cmd_compare_check,
	.words = true,
	.also = "check",
	.options = &options,
	.usage = "Usage: cudatrace compare [OPTIONS] BASE NEW...\n"
		 "       cudatrace check [OPTIONS] BASE NEW...     the same\n",
	.about = "\nPrints what changed from BASE to NEW. Each of them is a file of 'cudatrace stat --save' or a\n"
		 "recording. If the files hold\n"
		 "several runs (--runs), it also says whether the change is more than noise. Each of several\n"
		 "NEW is compared with BASE.\n",
	.after = "\nExamples:\n"
		 "  cudatrace stat --runs 10 --save base.json -- ./app\n"
		 "  cudatrace compare base.json new.json\n"
		 "  cudatrace compare --step cudaGraphLaunch.calls before.ctrace after.ctrace\n"
		 "  cudatrace check --fail-if 'total_api_time>+3%' --fail-if 'failed>0' --format junit -o report.xml base.json new.json\n"
		 "\nExit status: 0; 1 if a condition is true (a regression); 2 for a wrong command line, a file that cannot be read, or a\n"
		 "condition about a number that the files do not have.\n",
};
/* clang-format on */
