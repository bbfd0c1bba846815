/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * discover.h - which files to probe: every mapped ELF file that defines a row's symbol, found through the target's own
 * root, told apart by the real inode, kept up to date by the kernel's mmap and exec records.
 */
#ifndef CT_DISCOVER_H
#define CT_DISCOVER_H

#include "elf.h"
#include "plan.h"

/* A file worth probing. Owned by discover; valid until discover_close(). */
struct probe_file {
	uint64_t dev, ino;   /* of the real inode (behind overlayfs, btrfs), as the kernel's vm_file has it */
	int fd;		     /* open for reading: attach through /proc/self/fd/N */
	char *path;	     /* for people: as the target sees it */
	struct elf_scan scan;
	int attached;	     /* number of functions attached; -errno; 0 not yet. Set by the callback's owner */
	void *attach;	     /* the owner's (struct attach_file *) */
};

/* A new file was found, mapped by process pid (in our namespace; 0: found on disk). Attach now: the process may be
 * stopped and waiting. Return 0 or -errno. */
typedef int (*discover_found_fn)(void *ctx, struct probe_file *, pid_t pid);

/* A process maps other files than before: told once its new files have been looked at. pid is in our namespace. */
typedef void (*discover_mapped_fn)(void *ctx, pid_t pid);

/* A process (in our namespace) mapped a file at from_ns that got its probes at to_ns only. Or nobody could look at the file, whose
 * name is that of a library of CUDA's. pid 0: there may have been such processes, which are not known. */
typedef void (*discover_unprobed_fn)(void *ctx, pid_t pid, uint64_t from_ns, uint64_t to_ns);

struct discover;

/*
 * maps_prog_fd: a loaded BPF iter/task_vma program (see bpf/cudatrace.bpf.c, ct_maps), or -1: /proc/PID/maps is read
 * instead. Opens the wake-up (perf_event on every CPU). Returns 0 or -errno after one message.
 */
int discover_open(struct discover **, const struct capture_plan *, int maps_prog_fd, discover_found_fn, void *ctx);

/* Looks at all processes of the plan (all of the machine without pids), and, for the whole machine, at the places where
 * CUDA's libraries are installed, so that programs that start later are seen from their first call.
 * Calls found() once for every new file, whichever and however many processes map it. Returns the number of files
 * known, or -errno. With plan->library only that file is looked at, and a failure is returned after one message. */
int discover_scan(struct discover *);

/* Looks at one process now (it is stopped, or has just mapped something). */
int discover_scan_pid(struct discover *, pid_t pid);

/* Descriptors to wait on; readable: call discover_drain(), which scans the processes that mapped something. */
int discover_fds(struct discover *, int *fd, int max);
int discover_drain(struct discover *);

/* Adds a process to watch (a child, with --follow); pid is in our namespace. Looks at it at once if it is known to have
 * mapped something already. */
int discover_add_pid(struct discover *, pid_t pid);

/* Whom to tell of processes with new mappings; the ctx is that of found(). */
void discover_on_mapped(struct discover *, discover_mapped_fn);

/* Whom to tell of processes that map a file before it has its probes, likewise; from discover_begin() on, what was mapped before that
 * counting from then, and with those that discover_end() still knows of. Times are CLOCK_MONOTONIC. */
void discover_on_unprobed(struct discover *, discover_unprobed_fn);
void discover_begin(struct discover *, uint64_t at_ns);
void discover_end(struct discover *, uint64_t at_ns);

/* All known files. */
int discover_files(struct discover *, struct probe_file ***files);
/* The name of a file that was mapped for execution lately, as the process sees it, by its inode's number, which another file may have
 * too. False: none is remembered. */
bool discover_recent(struct discover *, uint64_t ino, char *name, size_t size);
void discover_close(struct discover *);

#endif
