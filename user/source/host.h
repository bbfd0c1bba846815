/* SPDX-License-Identifier: BSD-2-Clause */
/* host.h - what this machine's kernel offers, and what a process is like: facts for messages and
 * for doctor. */
#ifndef CT_HOST_H
#define CT_HOST_H

#include "../util/types.h"

/* A thread's process and how it is confined: from /proc/TID/status. */
struct host_task {
	pid_t tgid;
	int seccomp; /* 0 off, 1 strict, 2 filter */
	char comm[16];
};
/* Returns 0, or -ESRCH. */
int host_task(pid_t tid, struct host_task *out);

/* The executable of a process, opened for reading, or -errno. */
int host_open_exe(pid_t pid);

/* Has the process opened the device of CUDA's memory (/dev/nvidia-uvm), which the driver does for each
 * program that uses CUDA, and for no other? Of very many descriptors only the first are looked at. */
bool host_uses_gpu(pid_t pid);

/* True when we are in the initial pid namespace, where our ids are those of the records. */
bool host_initial_pid_ns(void);

/* This machine's name; a number that no other boot of any machine has ("" without /proc);
 * NVIDIA's kernel module ("580.65.06"), false when there is none. */
#define HOST_NAME_BYTES 256
const char *host_name(char *buf, size_t size);
const char *host_boot_id(char *buf, size_t size);
bool host_driver(char *buf, size_t size);
/* A line for each GPU, as the kernel module describes it: "0000:19:00.0 NVIDIA H200 GPU-..." */
void host_gpus(void (*each)(void *ctx, const char *text), void *ctx);

/* kernel.yama.ptrace_scope, 0 to 3: which processes a user may trace; 0 where there is none. */
int host_ptrace_scope(void);

/* "6.18.0 x86_64" */
const char *host_kernel(char *buf, size_t size);
bool host_has_btf(void);
/* Is the kernel's lockdown `confidentiality`, which keeps all kernel memory from BPF programs? */
bool host_is_confidential(void);
/* Makes a ring buffer and gives it up again: 1, 0 (this kernel has none), or -EPERM. */
int host_has_ringbuf(void);
/* Does it have bpf_loop(), the newest function that the BPF programs call on every kernel (Linux 5.17)?
 * True too where we are not permitted to ask. */
bool host_has_bpf_loop(void);

/* A file of /proc/TID (0: our own), as much as there is room for, NUL-terminated; one of /proc itself: "pressure/cpu".
 * Returns 0 or -errno. */
int host_file(pid_t tid, const char *name, char *buf, size_t size);
int host_machine(const char *name, char *buf, size_t size);
/* The whole of /proc/TID/status (0: our own), and the value of one of its lines; NULL: no such
 * line. */
int host_status(pid_t tid, char *buf, size_t size);
const char *host_status_line(const char *text, const char *key);
/* Does this text of /proc/TID/status say that the thread has a shadow stack (CET)? */
bool host_shadow_stack(const char *status);
/* Reads /proc/PID/stat into buf, and returns where its third field begins, the letter of the state;
 * NULL: no such process. The name before it may hold anything. */
const char *host_stat(pid_t pid, char *buf, size_t size);
/* Where the process's code begins and ends, and where its stack begins: other numbers once it runs another program. All 0
 * if it may not be known, or the process ends or is gone. */
#define HOST_LAYOUT 3
void host_layout(pid_t pid, uint64_t layout[HOST_LAYOUT]);
/* A later field of it, by its number in proc_pid_stat(5); NULL: it has fewer. */
const char *host_stat_field(const char *state, int field);

#endif
