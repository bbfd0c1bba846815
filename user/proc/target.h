/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * target.h - reads from a running process from outside: its memory, its mappings, and the files
 * behind them.
 *
 * A process may end, exec, or have its number reused at any moment. So everything is read through a
 * descriptor of /proc/PID that is opened at the beginning and never refers to another process. What
 * is read is untrusted. If the main thread of a process has ended, its memory and files can be read
 * only under the number of another of its threads: this file finds that thread.
 *
 * A process may block a reader of its memory, its arguments or its files for ever, with a page that
 * nobody serves. So every function here has a time limit (util/bounded.h) and returns -ETIMEDOUT
 * after it. Then the process is not read for half a minute, and each function returns -ETIMEDOUT at
 * once. -EBUSY: too many reads are blocked already, for this user or in total.
 */
#ifndef CT_TARGET_H
#define CT_TARGET_H

#include "../util/types.h"

/* A mapping of any kind. */
struct target_map {
	uint64_t start, end;
	uint64_t offset;   /* offset in the file, in bytes */
	uint64_t dev, ino; /* as /proc/PID/maps shows them; ino 0: no file */
	bool read, write, exec;
	/* path as the process sees it: of a file, or "[heap]" and the like; "" if there is none */
	const char *path;
};

struct target;

/* Opens a process by its number in our pid namespace. start_boottime_ns, if not 0, is when the
 * process began (as in CT_PROCESS): another process with the same number is refused. Returns 0,
 * -ESRCH (gone, or another one), -EPERM, -ENOMEM. */
int target_open(struct target **, pid_t pid, uint64_t start_boottime_ns);
void target_close(struct target *); /* takes NULL */
pid_t target_pid(const struct target *);
uint32_t target_uid(const struct target *); /* its user, for the `owner` of bounded_run() */

/* Copies exactly len bytes of the process's memory. Returns 0, -EFAULT (not all of it is
 * readable), -ESRCH, -EPERM. */
int target_read(struct target *, uint64_t addr, void *buf, size_t len);
/* Copies a string of at most size - 1 bytes and its NUL. Returns its length, -E2BIG when no NUL
 * came within size (buf then holds size - 1 bytes and a NUL), or as target_read(). */
ssize_t target_read_string(struct target *, uint64_t addr, char *buf, size_t size);

/* Whether the memory still holds what is in the file that is mapped there: no page of it was
 * written to or swapped out. Returns 1, 0, or -errno. */
int target_is_as_in_file(struct target *, uint64_t addr, size_t len);

/*
 * Searches the memory from *at to end for a word at an address that is a multiple of 8. Only pages
 * that are resident are read. It stops after a fraction of a second or when there is no more room
 * in `found`, and moves *at to where it has come: the caller goes on from there as long as it
 * likes. Returns how many addresses it found, or -errno as target_read().
 */
int target_find_word(struct target *, uint64_t *at, uint64_t end, uint64_t word, uint64_t *found,
		     int max);

/* Returns the mappings, sorted by address, as the last target_refresh() read them (the first call
 * does a refresh). Returns their number or -errno. They are valid until the next refresh or
 * close. */
int target_maps(struct target *, const struct target_map **);
/* Reads the mappings again. Returns 1 if they changed, 0 if not, -errno if the process is gone:
 * then the old ones stay. */
int target_refresh(struct target *);
/* The mapping that holds an address; NULL: none. */
const struct target_map *target_map_at(struct target *, uint64_t addr);

/* Opens the regular file behind a mapping: exactly that file, even if it was deleted or replaced,
 * in any mount namespace. The caller closes it. -ENOENT (gone), -EPERM, -EINVAL (not a regular
 * file), -EREMOTE (on FUSE: a program serves it, and may block a reader). */
int target_open_map(struct target *, const struct target_map *);

/* Opens a regular file by its name in the process's view, or, if the process is gone (t NULL), in
 * ours. The caller closes it. -ENOENT, -EREMOTE (not a regular file, or on FUSE). */
int target_open_path(struct target *t, const char *path);

/* Copies a file of /proc/PID: "cmdline", "environ", "cgroup". Copies at most size - 1 bytes and a
 * NUL. Returns the number of bytes or -errno. */
ssize_t target_proc(struct target *, const char *name, char *buf, size_t size);
/* Copies the path of its executable, as seen in its own mount namespace. Same limits and
 * returns. */
ssize_t target_exe(struct target *, char *buf, size_t size);

/* Returns a descriptor (O_PATH) of the process's root directory, to open what the process names by
 * path (debug files), or -errno. The target owns it; it is valid until the next call for this
 * target. */
int target_root(struct target *);

#endif
