/* SPDX-License-Identifier: BSD-2-Clause */
/* test_known.c - names of programs that run already: of programs made by nvcc, and of forged ones. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../user/proc/elf_read.h"
#include "../../user/resolve/names/known.h"
#include "../../user/resolve/names/known_driver.h"
#include "../../user/resolve/names/stub.h"
#include "make_forged.h"

/* ---- forged programs ---- */

struct child {
	pid_t pid;
	int in, out;
	char text[65536];
};

/* Starts a program with its input and output in our hands and the stand-in's libraries, and
 * reads what it says until a line that begins with `until`. */
static bool start(struct child *c, const char *until, const char *env, char *const argv[])
{
	int in[2], out[2];
	size_t have = 0;

	if (pipe(in) || pipe(out))
		return false;
	fflush(stdout);
	c->pid = fork();
	if (!c->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(in[0], 0);
		dup2(out[1], 1);
		for (int fd = 3; fd < 64; fd++)
			close(fd);
		if (env)
			putenv((char *)env);
		execv(argv[0], argv);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	c->in = in[1];
	c->out = out[0];
	for (;;) {
		ssize_t n = read(c->out, c->text + have, sizeof(c->text) - 1 - have);

		if (n <= 0)
			return false;
		have += (size_t)n;
		c->text[have] = '\0';
		for (const char *line = c->text; line;
		     line = strchr(line, '\n'), line += line != NULL)
			if (!strncmp(line, until, strlen(until)))
				return true;
	}
}

static void end(struct child *c)
{
	close(c->in);
	close(c->out);
	kill(c->pid, SIGKILL);
	waitpid(c->pid, NULL, 0);
}

/* The handle before a word in what the child said. */
static uint64_t handle_of(const struct child *c, const char *word)
{
	const char *at;
	char key[32];

	snprintf(key, sizeof(key), " %s\n", word);
	at = strstr(c->text, key);
	while (at && at > c->text && at[-1] != '\n')
		at--;
	return at ? strtoull(at, NULL, 16) : 0;
}

static uint64_t forgets;
static uint64_t forgets_change; /* is counted after so many looks */

static uint64_t count_forgets(void *ctx)
{
	(void)ctx;
	if (forgets_change && !--forgets_change)
		forgets++;
	return forgets;
}

static struct known *open_known(bool memory)
{
	forgets = 0;
	forgets_change = 0;
	return known_open(memory ? count_forgets : NULL, NULL);
}

static void check_find(struct known *k, struct target *t, uint64_t handle, bool driver,
		       const char *want, enum ct_name_source want_source, int line)
{
	enum ct_name_source source = 99;
	uint32_t len = 99;
	const char *got = known_find(k, t, (uint32_t)target_pid(t), handle, driver, &source, &len);

	unit_check(handle != 0, __FILE__, line, "a handle");
	unit_text(want ? want : "(none)", got ? got : "(none)", __FILE__, line);
	unit_check(source == (want ? want_source : CT_NAME_NONE), __FILE__, line, "source");
	unit_check(len == (got ? strlen(got) : 0), __FILE__, line, "length");
}
#define FIND(k, t, handle, driver, want, source) \
	check_find(k, t, handle, driver, want, source, __LINE__)

static void test_forged(void)
{
	struct child c;
	struct target *t = NULL;
	struct known *k = open_known(true);
	char *argv[] = { text("%s/forged", forged_dir), NULL };

	if (!start(&c, "end", NULL, argv) || target_open(&t, c.pid, 0)) {
		CHECK(!"the forged program runs");
		return;
	}
	FIND(k, t, handle_of(&c, "a"), false, "_Z1aPi", CT_NAME_SYMBOL);
	FIND(k, t, handle_of(&c, "b"), false, NULL, 0);
	FIND(k, t, handle_of(&c, "d"), false, "d", CT_NAME_SYMBOL);
	FIND(k, t, handle_of(&c, "e"), false, NULL, 0);
	FIND(k, t, handle_of(&c, "bad"), false, NULL, 0);
	FIND(k, t, handle_of(&c, "fa"), false, "_Z1aPi", CT_NAME_SYMBOL);
	FIND(k, t, handle_of(&c, "fd"), false, "d", CT_NAME_SYMBOL);
	FIND(k, t, handle_of(&c, "fstatic"), false, "_Z4statPi", CT_NAME_SYMBOL);
	FIND(k, t, handle_of(&c, "fclang"), false, "_Z2clPi", CT_NAME_SYMBOL);
	FIND(k, t, handle_of(&c, "falias"), false, NULL, 0);
	CHECK(handle_of(&c, "fbad"));
	FIND(k, t, handle_of(&c, "fbad"), false, NULL, 0);
	/* static or not: two spellings, no stub tells which */
	FIND(k, t, handle_of(&c, "fsame"), false, NULL, 0);
	FIND(k, t, handle_of(&c, "main"), false, NULL, 0);
	/* a driver's call never passes the address of a host stub */
	FIND(k, t, handle_of(&c, "fa"), true, NULL, 0);
	/* no driver: its memory is not read */
	FIND(k, t, handle_of(&c, "driver"), true, NULL, 0);
	FIND(k, t, 8, true, NULL, 0);
	FIND(k, t, UINT64_MAX - 7, true, NULL, 0);
	known_close(k);

	/* nothing that is being unloaded is believed, and it is asked for again afterwards */
	k = open_known(true);
	forgets = 5;
	FIND(k, t, handle_of(&c, "a"), false, NULL, 0);
	known_unloads(k, 5);
	forgets_change = 2; /* in the middle of it */
	FIND(k, t, handle_of(&c, "a"), false, NULL, 0);
	FIND(k, t, handle_of(&c, "fa"), false, NULL, 0);
	known_unloads(k, 6);
	FIND(k, t, handle_of(&c, "a"), false, "_Z1aPi", CT_NAME_SYMBOL);
	/* the variable has another value after the unloading: the old one names nothing */
	CHECK(write(c.in, "x", 1) == 1 && read(c.out, c.text + 60000, 10) > 0);
	/* read before, and nothing was unloaded since */
	FIND(k, t, handle_of(&c, "a"), false, "_Z1aPi", CT_NAME_SYMBOL);
	forgets = 7;
	known_unloads(k, 7);
	FIND(k, t, handle_of(&c, "a"), false, NULL, 0);
	known_close(k);

	/* without a count of unloading calls only the files are looked at */
	k = open_known(false);
	FIND(k, t, handle_of(&c, "fa"), false, "_Z1aPi", CT_NAME_SYMBOL);
	FIND(k, t, handle_of(&c, "d"), false, NULL, 0);
	known_close(k);
	target_close(t);
	end(&c);
}

/* The same program under a name that makes it "a driver" too. */
static void test_driver_memory(void)
{
	struct child c;
	struct target *t = NULL;
	struct known *k = open_known(true);
	char *argv[] = { text("%s/libcuda.so.580.1", forged_dir), NULL };

	if (!start(&c, "end", NULL, argv) || target_open(&t, c.pid, 0)) {
		CHECK(!"the forged driver runs");
		return;
	}
	FIND(k, t, handle_of(&c, "driver"), true, "_Z6driverPi", CT_NAME_DRIVER);
	FIND(k, t, handle_of(&c, "a"), false, "_Z1aPi", CT_NAME_SYMBOL);
	FIND(k, t, handle_of(&c, "d"), false, "d", CT_NAME_SYMBOL);
	/* what the symbols leave open */
	FIND(k, t, handle_of(&c, "e"), false, "e", CT_NAME_DRIVER);
	FIND(k, t, handle_of(&c, "hostile"), true, NULL, 0);
	FIND(k, t, handle_of(&c, "digit"), true, NULL, 0);
	FIND(k, t, handle_of(&c, "big"), true, NULL, 0);
	FIND(k, t, handle_of(&c, "none"), true, NULL, 0);
	FIND(k, t, handle_of(&c, "nowhere"), true, NULL, 0);
	FIND(k, t, 16, true, NULL, 0);
	FIND(k, t, handle_of(&c, "infile"), true, NULL, 0);
	FIND(k, t, handle_of(&c, "odd"), true, NULL, 0);
	FIND(k, t, handle_of(&c, "readonly"), true, NULL, 0);
	/* a handle that names another kernel than memory says: never again */
	known_teach(k, t, (uint32_t)c.pid, handle_of(&c, "other"), "_Z5wrongPi", 10);
	FIND(k, t, handle_of(&c, "other"), true, NULL, 0);
	known_close(k);
	target_close(t);
	end(&c);
}

/* A driver that is believed contradicts a symbol: neither is believed then, and the driver never
 * again. */
static void test_contradiction(void)
{
	struct child c;
	struct target *t = NULL;
	struct known *k = open_known(true);
	char *argv[] = { text("%s/libcuda.so.580.1", forged_dir), "_Z1yPi", NULL };

	if (!start(&c, "end", NULL, argv) || target_open(&t, c.pid, 0)) {
		CHECK(!"the forged driver runs");
		return;
	}
	FIND(k, t, handle_of(&c, "driver"), true, "_Z6driverPi", CT_NAME_DRIVER);
	FIND(k, t, handle_of(&c, "a"), false, NULL, 0);
	known_forget(k, (uint32_t)c.pid);
	FIND(k, t, handle_of(&c, "driver"), true, NULL, 0);
	FIND(k, t, handle_of(&c, "a"), false, "_Z1aPi", CT_NAME_SYMBOL);
	known_close(k);
	target_close(t);
	end(&c);
}

/* A driver of a release on which nothing was measured is believed after a pair. */
static void test_calibration(void)
{
	struct child c;
	struct target *t = NULL;
	struct known *k = open_known(true);
	char *argv[] = { text("%s/libcuda.so.1", forged_dir), "_Z1yPi", NULL };

	if (system(text("cp %s/forged-stripped %s/libcuda.so.1", forged_dir, forged_dir)) ||
	    !start(&c, "end", NULL, argv) || target_open(&t, c.pid, 0)) {
		CHECK(!"the forged driver runs");
		return;
	}
	FIND(k, t, handle_of(&c, "driver"), true, NULL, 0);
	/* nothing like a name there: says nothing */
	known_teach(k, t, (uint32_t)c.pid, handle_of(&c, "hostile"), "_Z1xPi", 6);
	/* cut: says nothing */
	known_teach(k, t, (uint32_t)c.pid, handle_of(&c, "other"), "_Z5oth", 6);
	FIND(k, t, handle_of(&c, "other"), true, NULL, 0);
	known_teach(k, t, (uint32_t)c.pid, handle_of(&c, "other"), "_Z5otherPi", 10);
	known_forget(k, (uint32_t)c.pid);
	FIND(k, t, handle_of(&c, "driver"), true, "_Z6driverPi", CT_NAME_DRIVER);
	known_close(k);
	target_close(t);
	end(&c);
	/* a symbol's variable is a pair as well: this one does not agree, so memory is not
	 * believed, then or later */
	k = open_known(true);
	if (system(text("cp %s/forged %s/libcuda.so.1", forged_dir, forged_dir)) ||
	    !start(&c, "end", NULL, argv) || target_open(&t, c.pid, 0)) {
		CHECK(!"the forged driver runs");
		return;
	}
	FIND(k, t, handle_of(&c, "a"), false, "_Z1aPi", CT_NAME_SYMBOL);
	FIND(k, t, handle_of(&c, "other"), true, NULL, 0);
	known_teach(k, t, (uint32_t)c.pid, handle_of(&c, "other"), "_Z5otherPi", 10);
	known_forget(k, (uint32_t)c.pid);
	FIND(k, t, handle_of(&c, "driver"), true, NULL, 0);
	known_close(k);
	target_close(t);
	end(&c);
}

/* A process that ends after its mappings were read again, and before its variables are: what they held before still counts. */
static void test_ended_between(void)
{
	struct known *k = open_known(true);
	struct timespec longer_than_values_are_kept = { 0, 60000000 };
	char *argv[] = { text("%s/libcuda.so.580.1", forged_dir), NULL };
	struct target *t = NULL;
	struct child c;

	if (!start(&c, "end", NULL, argv) || target_open(&t, c.pid, 0)) {
		CHECK(!"a child");
		return;
	}
	FIND(k, t, handle_of(&c, "a"), false, "_Z1aPi", CT_NAME_SYMBOL);
	nanosleep(&longer_than_values_are_kept, NULL);
	known_teach(k, t, (uint32_t)c.pid, handle_of(&c, "a"), "_Z1aPi", 6);
	end(&c);
	FIND(k, t, handle_of(&c, "d"), false, "d", CT_NAME_SYMBOL);
	target_close(t);
	known_close(k);
}

/* Processes that end, or become another program, at any moment. */
static void test_vanishing(void)
{
	struct known *k = open_known(true);
	char *argv[] = { text("%s/libcuda.so.580.1", forged_dir), NULL };
	enum ct_name_source source;
	uint32_t len;

	for (int i = 0; i < 40; i++) {
		struct target *t = NULL;
		struct child c;
		uint64_t a, fa;
		pid_t killer;

		argv[0] = text("%s/libcuda.so.580.1", forged_dir);
		if (!start(&c, "end", NULL, argv) || target_open(&t, c.pid, 0)) {
			CHECK(!"a child");
			return;
		}
		a = handle_of(&c, "a");
		fa = handle_of(&c, "fa");
		if (i % 2)
			known_find(k, t, (uint32_t)c.pid, a, false, &source, &len);
		fflush(stdout);
		killer = fork();
		if (!killer) {
			struct timespec ts = { 0, 50000 * i };

			nanosleep(&ts, NULL);
			kill(c.pid, SIGKILL);
			_exit(0);
		}
		for (int j = 0; j < 200; j++) {
			const char *name = known_find(k, t, (uint32_t)c.pid, j % 2 ? a : fa, false,
						      &source, &len);

			CHECK(!name || !strcmp(name, "_Z1aPi"));
		}
		waitpid(killer, NULL, 0);
		end(&c);
		/* what was read once is still true of its last calls; what was not is lost */
		if (i % 2)
			FIND(k, t, handle_of(&c, "d"), false, "d", CT_NAME_SYMBOL);
		FIND(k, t, handle_of(&c, "driver"), true, NULL, 0);
		forgets++;
		known_unloads(k, forgets);
		FIND(k, t, a, false, NULL, 0);
		target_close(t);
	}
	known_close(k);
}

/* ---- programs made by nvcc ---- */

struct launched {
	uint64_t handle;
	char *name;
};

/* What the stand-in's driver launched: "PID HANDLE NAME" lines. */
static int read_log(const char *path, struct launched *out, int max)
{
	char *log = unit_read(path), *save = NULL;
	int n = 0;

	for (char *line = log ? strtok_r(log, "\n", &save) : NULL; line && n < max;
	     line = strtok_r(NULL, "\n", &save)) {
		char *name;

		strtoul(line, &line, 10);
		out[n].handle = strtoull(line, &name, 16);
		out[n++].name = strdup(name + 1);
	}
	free(log);
	return n;
}

/* The host has another name for a kernel over an extended lambda, and for a static one of
 * separately compiled code. */
static bool differs(const char *name)
{
	return strstr(name, "Ul") || strstr(name, "__nv_static_");
}

static void check_program(const char *program, bool legacy, bool measured,
			  enum ct_name_source source)
{
	char *argv[] = { text(PROGRAMS "/%s", program), "--wait", "--print", NULL },
	     *log = text("%s/%s.log", forged_dir, program);
	struct known *k = open_known(true);
	struct launched made[64];
	struct target *t = NULL;
	struct child c;
	/* the first handle that a symbol and the memory agree on tells that the memory can be read */
	bool readable = measured || (!legacy && source == CT_NAME_SYMBOL);
	int n, named = 0;
	char *at;

	if (access(argv[0], X_OK)) {
		printf("skipped: no %s (make programs, with nvcc)\n", argv[0]);
		known_close(k);
		return;
	}
	unlink(log);
	setenv("STANDIN_LAUNCHES", log, 1);
	if (!start(&c, "ready", measured ? "LD_LIBRARY_PATH=" PROGRAMS "/580" : NULL, argv) ||
	    target_open(&t, c.pid, 0)) {
		CHECK(!"the program runs");
		return;
	}
	n = read_log(log, made, 64);
	CHECK(n == 14);
	at = c.text;
	for (int i = 0; i < n; i++) {
		uint64_t handle = made[i].handle;
		enum ct_name_source got_source;
		const char *got;
		uint32_t len;

		if (legacy) { /* the program says what it passed, of all but the last three */
			at = strstr(at, "launched ");
			if (!at)
				break;
			handle = strtoull(at += 9, NULL, 16);
		}
		got = known_find(k, t, (uint32_t)c.pid, handle, false, &got_source, &len);
		named += got != NULL;
		if (!source || !got) {
			CHECK(!source && !got);
			continue;
		}
		/* where the host spells a name in another way, the driver's memory is asked */
		CHECK(got_source == (readable && differs(made[i].name) ? CT_NAME_DRIVER : source));
		CHECK_TEXT(made[i].name, got);
	}
	CHECK(named == (!source ? 0 : legacy ? 11 : 14));
	known_close(k);
	target_close(t);
	end(&c);
	for (int i = 0; i < n; i++)
		free(made[i].name);
}

static void check_one(const char *program, const char *env, const char *want,
		      enum ct_name_source source)
{
	char *argv[] = { text(PROGRAMS "/%s", program), "--wait", NULL };
	struct known *k = open_known(true);
	struct target *t = NULL;
	struct child c;
	const struct target_map *maps;
	int n;
	bool found = false;

	if (access(argv[0], X_OK)) {
		printf("skipped: no %s (make programs, with nvcc)\n", argv[0]);
		known_close(k);
		return;
	}
	if (!start(&c, "ready", env, argv) || target_open(&t, c.pid, 0)) {
		CHECK(!"the program runs");
		return;
	}
	/* any address of its code may be the host function; a stripped file cannot tell which */
	n = target_maps(t, &maps);
	for (int i = 0; i < n && !found; i++)
		if (maps[i].exec && strstr(maps[i].path, program)) {
			found = true;
			FIND(k, t, maps[i].start + 64, false, want, source);
		}
	CHECK(found);
	known_close(k);
	target_close(t);
	end(&c);
}

static void test_programs(void)
{
	check_program("kernels", false, false, CT_NAME_SYMBOL);
	check_program("kernels-static", false, false, CT_NAME_SYMBOL);
	check_program("kernels-rdc", false, false, CT_NAME_SYMBOL);
	check_program("kernels-legacy", true, false, CT_NAME_SYMBOL);
	check_program("kernels-legacy-static", true, false, CT_NAME_SYMBOL);
	check_program("kernels-stripped", false, false, CT_NAME_NONE);
	check_program("kernels-static-stripped", false, false, CT_NAME_NONE);
	check_program("kernels-legacy-stripped", true, false, CT_NAME_NONE);
	/* on a driver whose descriptions can be read */
	check_program("kernels", false, true, CT_NAME_SYMBOL);
	check_program("kernels-rdc", false, true, CT_NAME_SYMBOL);
	check_program("kernels-stripped", false, true, CT_NAME_DRIVER);
	check_program("kernels-static-stripped", false, true, CT_NAME_DRIVER);
	check_program("kernels-legacy-stripped", true, true, CT_NAME_NONE);
	check_one("one-legacy-stripped", NULL, "_Z4onlyPi", CT_NAME_FATBIN);
	check_one("one-legacy-nosections", NULL, "_Z4onlyPi", CT_NAME_FATBIN);
	check_one("kernels-legacy-stripped", NULL, NULL, 0);
	/* another file's kernel is no matter, unless the program has an entry of its own for the
	 * other's functions */
	check_one("one-legacy-stripped", "LD_PRELOAD=" PROGRAMS "/libalpha-legacy.so", "_Z4onlyPi",
		  CT_NAME_FATBIN);
	check_one("one-fixed-legacy-stripped", NULL, "_Z4onlyPi", CT_NAME_FATBIN);
	check_one("one-fixed-legacy-stripped", "LD_PRELOAD=" PROGRAMS "/libalpha-legacy.so", NULL,
		  0);
	unsetenv("STANDIN_LAUNCHES");
}

static void test_survey(void)
{
	char *argv[] = { text(PROGRAMS "/kernels"), "--wait", NULL };
	struct known_survey s = { 0 };
	struct target *t = NULL;
	struct child c;

	if (access(argv[0], X_OK))
		return;
	if (!start(&c, "ready", NULL, argv) || target_open(&t, c.pid, 0)) {
		CHECK(!"the program runs");
		return;
	}
	CHECK(!known_survey(t, &s));
	if (CHECK_EQ(1, s.nfiles))
		CHECK(strstr(s.files[0].path, "programs/kernels"));
	CHECK(s.nfiles);
	CHECK_EQ(14, s.files[0].facts.nhandles);
	CHECK_EQ(13, s.files[0].facts.nstubs);
	CHECK(s.files[0].facts.symtab);
	CHECK(s.nfiles);
	CHECK_EQ(2, s.files[0].kernels);
	CHECK(!s.files[0].index_err);
	if (CHECK(s.driver)) {
		CHECK(strstr(s.driver, "libcuda.so.1"));
		CHECK(!s.measured);
	}
	known_survey_free(&s);
	target_close(t);
	end(&c);
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	if (forged_build()) {
		RUN(test_forged);
		RUN(test_driver_memory);
		RUN(test_contradiction);
		RUN(test_calibration);
		RUN(test_ended_between);
		RUN(test_vanishing);
	} else {
		CHECK(!"the forged program can be built");
	}
	RUN(test_programs);
	RUN(test_survey);
	forged_remove();
	return unit_end();
}
