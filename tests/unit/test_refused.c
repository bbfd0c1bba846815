/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_refused.c - where outputs go: whatever becomes of a path after it was looked up, what is
 * opened, made, renamed and removed stays in the folder that was found, and no link that comes later
 * is followed. (Links of other users need a second user: case output_links and others.)
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../user/trace/writer.h"
#include "../../user/util/io/safe_open.h"
#include "../../user/util/whole/unfinished.h"
#include "unit.h"

static char dir[] = "/tmp/cudatrace-places.XXXXXX";

/* A path below the folder of this test, of 4 in turn. */
static const char *in(const char *name)
{
	static char paths[4][128];
	static int next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
	return path;
}

static void put(const char *name, const char *text)
{
	FILE *f = fopen(in(name), "w");

	CHECK(f && fputs(text, f) >= 0 && !fclose(f));
}

static void check_text(const char *want, const char *name)
{
	char *got = unit_read(in(name));

	CHECK_TEXT(want, got ? got : "(no file)");
	free(got);
}

static bool there(const char *name)
{
	struct stat st;

	return !lstat(in(name), &st);
}

/* A folder "at" with what is to be found, one "precious" with what is not to be touched. */
static void begin(void)
{
	char cmd[128];

	snprintf(cmd, sizeof(cmd), "rm -rf %s && mkdir -p %s/at %s/precious", dir, dir, dir);
	CHECK(!system(cmd));
	put("precious/file", "precious");
}

/* The path leads elsewhere from now on. */
static void exchange(void)
{
	CHECK(!rename(in("at"), in("moved")) && !symlink("precious", in("at")));
}

static void test_folder(void)
{
	struct safe_place at, made;
	struct stat st;
	int fd;

	begin();
	CHECK_EQ(0, safe_place_find(&at, in("at/file")));
	CHECK_EQ(-ENOENT, safe_place_look(&at, &st));
	exchange();
	CHECK_EQ(-ENOENT, safe_place_look(&at, &st));
	fd = safe_place_open(&at, "file", NULL, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && write(fd, "ours", 4) == 4);
	close(fd);
	check_text("ours", "moved/file");
	fd = safe_place_new(&at, &made, false, "file", NULL);
	CHECK(fd >= 0 && write(fd, "newer", 5) == 5);
	close(fd);
	CHECK_EQ(0, safe_place_rename(&at, "file.old"));
	CHECK_EQ(0, safe_place_rename(&made, at.name));
	check_text("ours", "moved/file.old");
	check_text("newer", "moved/file");
	check_text("precious", "precious/file");
	safe_place_close(&at);
}

static void test_last_link(void)
{
	struct safe_place at;
	struct stat st;

	begin();
	CHECK_EQ(0, safe_place_find(&at, in("at/file")));
	CHECK(!symlink("../precious/file", in("at/file")));
	CHECK(!safe_place_look(&at, &st) && S_ISLNK(st.st_mode));
	CHECK_EQ(-ELOOP, safe_place_open(&at, "file", NULL, O_WRONLY | O_CREAT | O_TRUNC, 0600));
	check_text("precious", "precious/file");
	safe_place_close(&at);
	/* one that is there in time, and our own, leads to the place */
	CHECK_EQ(0, safe_place_find(&at, in("at/file")));
	CHECK_TEXT("file", at.name);
	CHECK_EQ(0, safe_place_rename(&at, "file.old"));
	check_text("precious", "precious/file.old");
	safe_place_close(&at);
}

/* What is no file and no folder is neither moved nor replaced: a rename must not take a device. */
static void test_what_stays(void)
{
	struct safe_place at;
	struct stat st;

	begin();
	CHECK(!mkfifo(in("at/pipe"), 0600) && !symlink("nowhere", in("at/link")));
	put("at/file", "ours");
	CHECK_EQ(0, safe_place_find(&at, in("at/file")));
	CHECK_EQ(-EEXIST, safe_place_rename(&at, "pipe"));
	CHECK_EQ(-EEXIST, safe_place_rename(&at, "link"));
	check_text("ours", "at/file");
	strcpy(at.name, "pipe");
	CHECK_EQ(-EEXIST, safe_place_rename(&at, "free"));
	strcpy(at.name, "link");
	CHECK_EQ(-EEXIST, safe_place_rename(&at, "free"));
	CHECK(!lstat(in("at/pipe"), &st) && S_ISFIFO(st.st_mode));
	CHECK(!lstat(in("at/link"), &st) && S_ISLNK(st.st_mode));
	safe_place_close(&at);
}

static void test_odd_paths(void)
{
	struct safe_place at;
	int fds[2];
	char path[64];

	begin();
	CHECK_EQ(-ENOENT, safe_place_find(&at, ""));
	CHECK_EQ(-EISDIR, safe_place_find(&at, in("at/")));
	CHECK_EQ(-ENOENT, safe_place_find(&at, in("none/file")));
	CHECK_EQ(-ENOTDIR, safe_place_find(&at, in("precious/file/x")));
	CHECK(!symlink("loop", in("loop")));
	CHECK_EQ(-ELOOP, safe_place_find(&at, in("loop")));
	CHECK(at.dir < 0);
	/* a pipe has no name; a file behind a link of /proc has the one that it was opened by */
	CHECK(!pipe(fds));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fds[1]);
	CHECK_EQ(-ENXIO, safe_place_find(&at, path));
	close(fds[0]);
	close(fds[1]);
	fds[0] = open(in("precious/file"), O_RDONLY | O_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fds[0]);
	CHECK_EQ(0, safe_place_find(&at, path));
	CHECK_TEXT("file", at.name);
	safe_place_close(&at);
	CHECK(!unlink(in("precious/file")));
	CHECK_EQ(-ENXIO, safe_place_find(&at, path));
	close(fds[0]);
}

/* A recording: what was there is kept beside it, also behind a link of our own. */
static void test_old(void)
{
	struct writer *w;

	begin();
	CHECK(!symlink("../precious/file", in("at/file")));
	CHECK_EQ(0, writer_open(&w, in("at/file"), "x 1\n"));
	CHECK_EQ(0, writer_close(w));
	check_text("precious", "precious/file.old");
	CHECK(there("precious/file") && there("at/file"));
}

/* What somebody else has put there is not removed, nor anything in another folder. */
static void test_unfinished(void)
{
	struct unfinished u;
	int fd;

	begin();
	/* nobody has begun to write to it */
	unfinished_open(&u, in("at/file"));
	put("at/file", "theirs");
	unfinished_close(&u, false);
	check_text("theirs", "at/file");
	/* what was begun goes, and what it was to take the place of stays */
	unfinished_open(&u, in("at/file"));
	fd = open(in("at/file.tmp"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	unfinished_begun(fd, "file.tmp");
	unfinished_close(&u, false);
	CHECK(!there("at/file.tmp"));
	check_text("theirs", "at/file");
	close(fd);
	/* another file took the name */
	unfinished_open(&u, in("at/file"));
	fd = open(in("at/file"), O_WRONLY | O_CLOEXEC);
	unfinished_begun(fd, NULL);
	put("at/other", "other");
	CHECK(!rename(in("at/other"), in("at/file")));
	unfinished_close(&u, false);
	check_text("other", "at/file");
	close(fd);
	/* complete */
	unfinished_open(&u, in("at/file"));
	fd = open(in("at/file"), O_WRONLY | O_CLOEXEC);
	unfinished_begun(fd, NULL);
	unfinished_close(&u, true);
	check_text("other", "at/file");
	/* the path leads elsewhere, to a file of this name */
	unfinished_open(&u, in("at/file"));
	unfinished_begun(fd, NULL);
	exchange();
	unfinished_close(&u, false);
	check_text("precious", "precious/file");
	CHECK(!there("moved/file"));
	close(fd);
	/* without a watcher nothing happens */
	unfinished_begun(0, NULL);
}

int main(void)
{
	char cmd[64];

	CHECK(mkdtemp(dir) != NULL);
	RUN(test_folder);
	RUN(test_last_link);
	RUN(test_what_stays);
	RUN(test_odd_paths);
	RUN(test_old);
	RUN(test_unfinished);
	snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	CHECK(!system(cmd));
	return unit_end();
}
