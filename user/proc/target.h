/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * target.h - what can be read of a running process from outside: its memory, its mappings, the
 * files behind them.
 *
 * A process may end, exec, or have its number reused at any moment: everything goes through a
 * descriptor of /proc/PID taken at the beginning, which never names another process. What is read
 * is untrusted. A process whose main thread has ended shows its memory and files under another
 * thread's number: that one is found.
 *
 * A process may hold up whoever reads its memory, its arguments or its files, for ever: by a
 * page that nobody serves. So every function here has a time limit (util/bounded.h) and returns
 * -ETIMEDOUT after it; then the process is left alone for half a minute, and each function
 * returns -ETIMEDOUT at once. -EBUSY: too many reads are held up already, for this user or in
 * all.
 */
#ifndef CT_TARGET_H
#define CT_TARGET_H

#include "../util/types.h"

/* A mapping, of whatever kind. */
struct target_map {
	uint64_t start, end;
	uint64_t offset;   /* in the file, bytes */
	uint64_t dev, ino; /* as /proc/PID/maps shows them; ino 0: no file */
	bool read, write, exec;
	/* as the process sees it: a file's, or "[heap]" and the like; "" when there is none */
	const char *path;
};

struct target;

/* Opens a process by its number in our pid namespace. start_boottime_ns, if not 0, is when it
 * began (as CT_PROCESS has it): another process under the number is refused. Returns 0, -ESRCH
 * (gone, or another one), -EPERM, -ENOMEM. */
int target_open(struct target **, pid_t pid, uint64_t start_boottime_ns);
void target_close(struct target *); /* takes NULL */
pid_t target_pid(const struct target *);
uint32_t target_uid(const struct target *); /* its user, as bounded_run() wants an owner */

/* Copies exactly len bytes of the process's memory. Returns 0, -EFAULT (not all of it is
 * readable), -ESRCH, -EPERM. */
int target_read(struct target *, uint64_t addr, void *buf, size_t len);
/* Copies a string of at most size - 1 bytes and its NUL. Returns its length, -E2BIG when no NUL
 * came within size (buf then holds size - 1 bytes and a NUL), or as target_read(). */
ssize_t target_read_string(struct target *, uint64_t addr, char *buf, size_t size);

/* Does the memory hold what is in the file that is mapped there: has no page of it been written
 * to, or been swapped out since? 1, 0, or -errno. */
int target_is_as_in_file(struct target *, uint64_t addr, size_t len);

/* The mappings, sorted by address, as of the last target_refresh() (the first call makes one).
 * Returns their number or -errno. Valid until the next refresh or close. */
int target_maps(struct target *, const struct target_map **);
/* Reads them anew. Returns 1 when they changed, 0 when not, -errno when the process is gone: the
 * old ones stay. */
int target_refresh(struct target *);
/* The mapping that holds an address; NULL: none. */
const struct target_map *target_map_at(struct target *, uint64_t addr);

/* Opens the regular file behind a mapping: that very file, also when it was deleted or replaced,
 * in whatever mount namespace. The caller closes it. -ENOENT (gone), -EPERM, -EINVAL (no regular
 * file), -EREMOTE (on FUSE: a program serves it, and may stop whoever reads it). */
int target_open_map(struct target *, const struct target_map *);

/* Opens a regular file by the name that it has for the process, or, if that is gone (t NULL),
 * for us. The caller closes it. -ENOENT, -EREMOTE (no regular file, or on FUSE). */
int target_open_path(struct target *t, const char *path);

/* A file of /proc/PID as it is: "cmdline", "environ", "cgroup". At most size - 1 bytes and a
 * NUL. Returns their number or -errno. */
ssize_t target_proc(struct target *, const char *name, char *buf, size_t size);
/* The path of its executable, in its own mount namespace. Likewise. */
ssize_t target_exe(struct target *, char *buf, size_t size);

/* A descriptor (O_PATH) of the process's root directory, for what it names by path (debug
 * files); owned by the target, valid until its next call; -errno. */
int target_root(struct target *);

#endif
