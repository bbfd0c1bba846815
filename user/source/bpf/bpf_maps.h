/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bpf_maps.h - inside the bpf source: what it tells the kernel side through maps, and asks it
 * through iterators.
 */
#ifndef CT_BPF_MAPS_H
#define CT_BPF_MAPS_H

#include "../discover/discover.h"
#include "../../event/event.h"

struct cudatrace_bpf;

/* The thread group of a pid or tid of our namespace, from /proc; -ESRCH. */
pid_t bpf_maps_tgid(pid_t pid);

/* Has a process (our namespace) traced; with_children: those that it has already, too. Returns
 * 0, -ESRCH when it has ended, -ENOENT when BPF programs are not shown it, or another -errno. */
int bpf_maps_add_pid(struct cudatrace_bpf *, pid_t pid, bool with_children);

/* Other calls of it, which is traced, are recorded in the process itself. Returns 0 or -errno. */
int bpf_maps_beside(struct cudatrace_bpf *, pid_t pid);

/* Tells where the file's functions lie, for kernels without cookies. Returns 0 or -errno. */
int bpf_maps_add_offsets(int map_fd, const struct probe_file *);
void bpf_maps_drop_offsets(int map_fd, const struct probe_file *);

/* Adds up the kernel side's counters. */
void bpf_maps_counters(int map_fd, struct losses *);

/* Reads the whole of an iterator. *rows is the caller's to free. Returns the bytes read, or -errno. */
ssize_t bpf_maps_read_iter(int prog_fd, void **rows);

/* Opens the dynamic loader that a process maps: the one mapped file that defines _dl_debug_state
 * at *offset. Returns a descriptor, or -errno. */
int bpf_maps_open_ld_so(pid_t pid, uint64_t *dev, uint64_t *ino, uint64_t *offset);

/* May a plain return probe end a thread of the processes that are traced by name (CT_WANTS_*)? */
bool bpf_maps_want_sessions(struct cudatrace_bpf *);

/* The number of a process in the initial pid namespace, given that in ours; 0: not to be had. */
uint32_t bpf_maps_initial_pid(struct cudatrace_bpf *, pid_t pid);

#endif
