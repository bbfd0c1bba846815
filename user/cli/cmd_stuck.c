/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cmd_stuck.c - `cudatrace stuck`: which CUDA call each thread sits in, and since when; which rank
 * of a job the others wait for. With --merge the same of several machines, without privileges.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd.h"
#include "options/opts_check.h"
#include "../nccl/nccl_job.h"
#include "../source/probe/priv.h"
#include "../stuck/stuck.h"
#include "../trace/format.h"
#include "../util/io/confine.h"
#include "../util/msg.h"
#include "../util/option/option.h"

#define OPTION_STRUCT struct stuck_options
/* clang-format off */
static const struct option_row rows[] = {
	{ 0, "over", "TIME", DURATION(over_ns, MILLI, OPTION_MAX, SECOND, "time", "give seconds, or 500ms, 2m"), 0, "1s", "print threads that are inside a call for longer than this: 5 (seconds), 500ms, 2m" },
	{ 0, "watch", NULL, FLAG(watch), 0, NULL,
	  "look again every second, until SIGINT; print threads that are new, and those that have\n"
	  "returned" },
	{ 0, "merge", NULL, FLAG(merge), 0, NULL,
	  "look at no process; join what 'stuck --format json' printed, or 'watch --dump' wrote, on\n"
	  "several machines; files that cannot be read are named and left out",
	  RULES(EXCLUDES("pid library over watch no-python mangled full-names ring-size probe-kind",
			 "--merge reads files and looks at no process: leave the other options out")) },
};
/* clang-format on */
static const struct option_set options = OPTION_SET(rows);

/* A pipe in a shared folder would be waited for; one that the shell made is meant. */
static bool is_readable(int fd, const char *path)
{
	struct stat st;

	if (fstat(fd, &st))
		return false;
	if (S_ISREG(st.st_mode))
		return true;
	return S_ISFIFO(st.st_mode) && !strncmp(path, "/dev/", 5) && !fcntl(fd, F_SETFL, O_RDONLY);
}

static int read_answer(struct nccl_job *j, const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC), err;

	if (fd < 0) {
		err = -errno;
		msg_error("%s cannot be opened: %s", path, strerror(-err));
		return err;
	}
	if (is_readable(fd, path)) {
		err = nccl_job_read(j, fd, path);
	} else {
		err = -EINVAL;
		msg_error("%s is not a file", path);
	}
	close(fd);
	return err;
}

/* Returns how many of the files could not be read as a whole, or -ENOMEM. */
static int read_answers(struct nccl_job *j, const struct request *o)
{
	int bad = 0;

	for (int i = 0; i < o->nargs; i++) {
		int err = read_answer(j, o->args[i]);

		if (err == -ENOMEM)
			return err;
		bad += err != 0;
	}
	nccl_job_sort(j);
	if (bad && bad < o->nargs)
		msg_warn("%d of %d files could not be read as a whole: what follows is without the "
			 "rest of them",
			 bad, o->nargs);
	return bad;
}

static int merge(const struct request *o)
{
	struct nccl_job job = { .merged = true };
	struct out out;
	size_t absent;
	bool some;
	int bad;

	for (int i = 0; i < o->nargs; i++)
		if (cmd_overwrites(o->args[i], o->output))
			return 2;
	if (out_open_output(&out, o->output, false, STDOUT_FILENO))
		return 1;
	confine(CONFINE_FILES);
	confine_drop();
	bad = read_answers(&job, o);
	absent = bad < 0 ? 0 : nccl_job_absent(&job);
	/* nothing is known where none could be read */
	if (bad < 0 || (bad == o->nargs && !job.n && !job.nunknown && !job.nsaid)) {
		bad = -1;
	} else if (o->format->flags & SINKS_TEXT) {
		nccl_job_print_said(&job, &out);
		nccl_job_print(&job, &out);
		nccl_job_print_unknown(&job, &out);
		if (job.nunknown)
			out_fmt(&out, "%zu process%s whose rank could not be told\n", job.nunknown,
				job.nunknown == 1 ? "" : "es");
		out_fmt(&out, "%zu rank%s absent\n", absent, absent == 1 ? "" : "s");
	} else {
		nccl_job_json(&job, &out);
	}
	some = absent || job.nsaid;
	nccl_job_free(&job);
	return cmd_finish(&out) || bad < 0 ? 1 : some ? STUCK_SOME : bad ? 1 : 0;
}

/* What the ranks asked for, of a recording. */
static int stored(const struct request *o, const struct stuck_options *how)
{
	struct stuck_stored as = { .over_ns = how->over_ns,
				   .json = !(o->format->flags & SINKS_TEXT) };
	struct request replay = *o;

	replay.replay = true;
	replay.file = o->args[0];
	replay.format = sinks_find(sink_stuck.name);
	replay.scopes = 1u << CT_SCOPE_COLLECTIVE | 1u << CT_SCOPE_COMMUNICATOR;
	request_lend(&replay, sink_stuck.options, &as);
	return cmd_replay(&replay);
}

static int cmd_stuck(const struct request *o)
{
	const struct stuck_options *how = request_own(o, &options);

	if (how->merge)
		return merge(o);
	if (o->nargs)
		return stored(o, how);
	if (priv_check(true))
		return 1;
	return stuck_run(o, how, &source_bpf);
}

/* A number, or what can be read and is no recording, was meant as another thing: a process, a program,
 * an answer for --merge. */
static bool is_no_recording(const char *path)
{
	int fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	char magic[TRACE_MAGIC_LEN];
	bool other = fd >= 0 && (pread(fd, magic, sizeof(magic), 0) != sizeof(magic) ||
				 memcmp(magic, TRACE_MAGIC, sizeof(magic)) != 0);

	if (fd < 0)
		return !path[strspn(path, "0123456789")] && access(path, F_OK);
	close(fd);
	return other;
}

static int check(const struct opts_line *l)
{
	const struct request *o = l->o;
	const struct stuck_options *how = request_own(o, &options);
	static const char *const live[] = { "pid",     "library",    "watch",	  "no-python",
					    "mangled", "full-names", "ring-size", "probe-kind" };
	bool is_stored = o->nargs && !how->merge, looks = false;
	const struct opts_rule rules[] = {
		{ !(o->format->flags & SINKS_ROWS), true,
		  "'cudatrace stuck' prints rows: give --format table or json" },
		{ how->merge, !o->nargs,
		  "--merge needs files: what 'cudatrace stuck --format json' printed on each "
		  "machine" },
		{ is_stored, o->nargs > 1,
		  "give one recording: 'cudatrace merge' joins those of several ranks" },
		{ is_stored, is_stored && is_no_recording(o->args[0]),
		  "the FILE is no recording, and 'cudatrace stuck' starts no program: give a file "
		  "that 'cudatrace record' wrote, or -p PID" },
	};

	for (size_t i = 0; is_stored && i < ARRAY_LEN(live); i++)
		looks |= opts_is_given(l, live[i]);
	if (looks) {
		msg_error("'%s' is read as a recording, and no process is looked at: leave out it, "
			  "or the other options than --over, --format and -o",
			  o->args[0]);
		return -EINVAL;
	}
	return opts_judge(l, rules, ARRAY_LEN(rules));
}

/* clang-format off */
const struct command command_stuck = {
	.run = cmd_stuck,
	.check = check,
	.words = true,
	.options = &options,
	.usage = "Usage: cudatrace stuck [OPTIONS]\n"
		 "       cudatrace stuck [OPTIONS] FILE                      of a recording\n"
		 "       cudatrace stuck --merge [OPTIONS] A.json B.json...\n",
	.about = "\nPrints the threads that have been inside a CUDA call for longer than a second (or --over): the call, since when, its\n"
		 "arguments and its stack. A call that began before cudatrace is found on the thread's stack; FOR is then a lower bound,\n"
		 "such as >1.0s, and the arguments are not known. No thread is stopped. For jobs that use NCCL it also says which rank\n"
		 "has not begun the collective that the others wait in, and what the threads of that rank are doing. With a FILE that\n"
		 "'cudatrace record --layers nccl' wrote, it compares what the ranks asked for: counts, types, operations, roots, and the\n"
		 "sends and receives that have no partner.\n",
	.after = "\nExamples:\n"
		 "  cudatrace stuck                               looks at every process of this machine\n"
		 "  cudatrace stuck -p 1234 --over 10s\n"
		 "  cudatrace stuck -p 1234 --watch               prints until SIGINT what hangs, and when it continues\n"
		 "  cudatrace stuck job.ctrace                    do the ranks ask for the same, and who waits for whom?\n"
		 "  cudatrace stuck --format json -o $(hostname).json    run this on each machine of a job, and then\n"
		 "  cudatrace stuck --merge a.json b.json         says which ranks are absent in the whole job\n"
		 "\nExit status: 4 if there are such threads (with --watch: at the last look) or absent ranks, 5 if none is known but some\n"
		 "thread could not be examined, 0 if there are none, 1 after an error, 2 for a wrong command line.\n",
};
/* clang-format on */
