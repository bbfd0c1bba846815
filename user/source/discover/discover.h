/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * discover.h - which files to probe: every mapped ELF file that defines a row's symbol, found
 * through the target's own root, told apart by the real inode, kept up to date by the kernel's
 * mmap and exec records.
 */
#ifndef CT_DISCOVER_H
#define CT_DISCOVER_H

#include "elf.h"
#include "../../flow/plan.h"

struct files;

/* A file worth probing. Owned by discover; valid until gone(), or discover_close(). */
struct probe_file {
	/* of the real inode (behind overlayfs, btrfs), as the kernel's vm_file has it */
	uint64_t dev, ino;
	/* during found(), and between probe_file_open() and _shut(): open for reading, attach
	 * through /proc/self/fd/N; else -1, but with discover_keep_open() */
	int fd;
	char *path; /* for people: as the target sees it */
	struct elf_scan scan;
	/* number of functions attached; -errno; 0 not yet. Set by the callback's owner */
	int attached;
	void *attach; /* the owner's (struct attach_file *) */

	/* discover's own */
	struct files *files;
	struct ct_vma seen; /* a mapping of it that was there lately; pid 0: none */
	uint64_t stat_dev, stat_ino, generation; /* as fstat(2) has them */
	uint32_t uid, round;  /* which user it is counted for; of the listing that met it last */
	unsigned descriptors; /* that it is charged with */
	int mark;	      /* rewrites.h; negative: it has none */
	bool installed;	      /* found on disk: held whether it is mapped or not */
	bool nameless;	      /* nobody may come to map it again once it is not mapped */
	uint64_t unmapped_ns; /* since when nobody maps it; 0: it is mapped */
};

/* Opens the file again, as it was when it was found. The caller shuts it in any case. Returns 0
 * or -errno. */
int probe_file_open(struct probe_file *);
void probe_file_shut(struct probe_file *);

/* Those but found may be NULL. */
struct discover_ops {
	/* A new file was found, mapped by process pid (in our namespace; 0: found on disk).
	 * Attach now: the process may be stopped and waiting. Return 0 or -errno; after -EMFILE
	 * the file is refused, behind gone(). */
	int (*found)(void *ctx, struct probe_file *, pid_t pid);
	/* A file that was searched has functions of the table of which no probe tells (scan->silent), whether there are others
	 * in it or not. Before found(). */
	void (*silent)(void *ctx, const struct elf_scan *);
	/* A file that was searched has a runtime without symbols, of which functions were not found. Before found(). */
	void (*stripped)(void *ctx, const char *path, const struct elf_scan *);
	/* The number of descriptors that the file needs at most, or has taken: called before and
	 * after found(). */
	unsigned (*cost)(void *ctx, const struct probe_file *);
	/* Descriptors that gone() has not freed yet. */
	unsigned (*closing)(void *ctx);
	/* The file is forgotten, because no process maps it any more. rewritten: its content has
	 * changed, and no probe of the old content may be left when this returns. */
	void (*gone)(void *ctx, struct probe_file *, bool rewritten);
	/* The mapped files of a process have changed. Called after its new files have been
	 * examined. pid is in our namespace. */
	void (*mapped)(void *ctx, pid_t pid);
};

/* A process (in our namespace) mapped a file at from_ns, and the file got its probes only at to_ns.
 * Or the file could not be examined, and has the name of one of CUDA's libraries. pid 0: there may
 * have been such processes, but they are not known. */
typedef void (*discover_unprobed_fn)(void *ctx, pid_t pid, uint64_t from_ns, uint64_t to_ns);

struct discover;

/*
 * maps_prog_fd: a loaded BPF iter/task_vma program (see bpf/cudatrace.bpf.c, ct_maps), or -1:
 * /proc/PID/maps is read instead. Opens the wake-up (perf_event on every CPU). Returns 0 or
 * -errno after one message.
 */
int discover_open(struct discover **, const struct capture_plan *, int maps_prog_fd,
		  const struct discover_ops *, void *ctx);

/* Looks at all processes of the plan (all of the machine without pids), and, for the whole
 * machine, at the paths where CUDA's libraries are installed, so that programs that start later
 * are seen from their first call. Calls found() once for every new file, whichever and however
 * many processes map it. Returns the number of files known, or -errno. With plan->library only
 * that file is looked at, and a failure is returned after one message. */
int discover_scan(struct discover *);

/* Looks at one process now (it is stopped, or has just mapped something). */
int discover_scan_pid(struct discover *, pid_t pid);

/* Descriptors to wait on; readable: call discover_drain(), which scans the processes that mapped
 * something. */
int discover_fds(struct discover *, int *fd, int max);
int discover_drain(struct discover *);

/* Adds a process to watch (a child, with --follow); pid is in our namespace. Looks at it at once
 * if it is known to have mapped something already. */
int discover_add_pid(struct discover *, pid_t pid);

/* All files together may take this many descriptors, and those of one user no more than are
 * still free; 0: no limit. */
void discover_limit(struct discover *, unsigned descriptors);

/* Sets the callback for processes that map a file before it has its probes. It is called from
 * discover_begin() on; files that were mapped earlier count from that time. discover_end() reports
 * the remaining ones. Times are CLOCK_MONOTONIC. */
void discover_on_unprobed(struct discover *, discover_unprobed_fn);
void discover_begin(struct discover *, uint64_t at_ns);
void discover_end(struct discover *, uint64_t at_ns);

/* Keeps files open, because links are made again when no process maps the files. */
void discover_keep_open(struct discover *);

/* All files that are held now. */
int discover_files(struct discover *, struct probe_file ***files);
/* The number of files so far that were worth probing but were refused, because their users had too
 * many. */
uint64_t discover_refused(const struct discover *);
/* Finds the name of a recently mapped executable file, as the process sees it, by its inode number
 * (another file may have the same number). False: no such file is remembered. */
bool discover_recent(struct discover *, uint64_t ino, char *name, size_t size);
void discover_close(struct discover *);

#endif
