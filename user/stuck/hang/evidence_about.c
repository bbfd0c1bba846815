/* SPDX-License-Identifier: BSD-2-Clause */
/* evidence_about.c - see evidence_about.h. */
#include "evidence_about.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../proc/target.h"
#include "../../source/host.h"

#define ENVIRON_MAX (1u << 20)
#define TEXT_MAX 16384
#define LOG_LINES 1000
#define LOG_LINE 1024
#define LOG_READS 200000 /* of a log to which much is written meanwhile */

/* Untrusted bytes; those of /proc have tabs between values. */
static void put(struct out *o, const char *s, size_t n)
{
	for (size_t len; n; s += len, n -= len) {
		bool tab = *s == '\t';
		const char *next = memchr(s, '\t', n);

		len = tab ? 1 : next ? (size_t)(next - s) : n;
		if (tab)
			out_char(o, ' ');
		else
			out_plain(o, s, len);
	}
}

/* Lines of /proc/PID/status that matter. */
static void put_status(struct out *o, pid_t pid)
{
	static const char *const keys[] = {
		"State", "Threads", "VmPeak", "VmRSS",	 "RssAnon",	      "VmSwap",
		"VmLck", "Uid",	    "NSpid",  "Seccomp", "Cpus_allowed_list", "Mems_allowed_list"
	};
	char text[TEXT_MAX];

	if (host_status(pid, text, sizeof(text)))
		return;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const char *at = host_status_line(text, keys[i]);

		if (!at)
			continue;
		out_fmt(o, "  %s ", keys[i]);
		put(o, at, strcspn(at, "\n"));
		out_char(o, '\n');
	}
}

/* A whole file of /proc/PID, each line behind blanks. */
static void put_file(struct out *o, struct target *t, const char *name)
{
	char text[TEXT_MAX];
	ssize_t n = target_proc(t, name, text, sizeof(text));

	if (n <= 0)
		return;
	out_fmt(o, "  %s\n", name);
	for (const char *at = text; *at; at += strcspn(at, "\n"), at += *at == '\n') {
		out_str(o, "    ");
		put(o, at, strcspn(at, "\n"));
		out_char(o, '\n');
	}
}

static void put_libraries(struct out *o, struct target *t)
{
	static const char *const patterns[] = { "*/libcuda.so*", "*/libcudart*", "*/libnccl*",
						"*/libcupti*",	 "*/libcublas*", "*/libcudnn*",
						"*/libnvshmem*", "*/libtorch*",	 "*/libpython*",
						"*/python3*",	 "*/libc.so*" };
	const struct target_map *maps;
	int n = target_maps(t, &maps);
	const char *last = "";

	out_str(o, "  libraries\n");
	for (int i = 0; i < n; i++) {
		const char *path = maps[i].path;
		bool matters = false;

		for (size_t k = 0; k < sizeof(patterns) / sizeof(patterns[0]); k++)
			matters |= !fnmatch(patterns[k], path, 0);
		if (!matters || !maps[i].exec || !strcmp(path, last))
			continue;
		last = path;
		out_str(o, "    ");
		put(o, path, strnlen(path, 4096));
		out_char(o, '\n');
	}
}

/* ---- the environment ---- */

static bool matters(const char *name)
{
	static const char *const patterns[] = {
		"NCCL_*",	  "CUDA_*",   "CUBLAS_*", "CUDNN_*",  "TORCH_*",    "PYTORCH_*",
		"TORCHELASTIC_*", "OMP_*",    "MKL_*",	  "UCX_*",    "NVSHMEM_*",  "VLLM_*",
		"SGLANG_*",	  "SLURM_*",  "OMPI_*",	  "PMI*",     "RAY_*",	    "NVIDIA_*",
		"PYTHON*",	  "MASTER_*", "RANK",	  "LOCAL_*",  "WORLD_SIZE", "GLOO_*",
		"FI_*",		  "LD_*",     "MALLOC_*", "TRITON_*",
	};

	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++)
		if (!fnmatch(patterns[i], name, 0))
			return true;
	return false;
}

/* Of these the value is shown, if it is numbers. */
static bool is_number_of_job(const char *name)
{
	static const char *const names[] = { "RANK",
					     "WORLD_SIZE",
					     "LOCAL_RANK",
					     "LOCAL_WORLD_SIZE",
					     "CUDA_VISIBLE_DEVICES",
					     "CUDA_DEVICE_MAX_CONNECTIONS",
					     "CUDA_LAUNCH_BLOCKING",
					     "OMP_NUM_THREADS",
					     "NCCL_TIMEOUT",
					     "TORCH_NCCL_BLOCKING_WAIT",
					     "TORCH_NCCL_ASYNC_ERROR_HANDLING",
					     "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC",
					     "TORCH_NCCL_TRACE_BUFFER_SIZE" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

static void put_variable(struct out *o, char *entry)
{
	char *value = strchr(entry, '=');

	if (!value)
		return;
	*value++ = '\0';
	if (!matters(entry))
		return;
	out_str(o, "    ");
	put(o, entry, strnlen(entry, 256));
	if (is_number_of_job(entry) && *value && strlen(value) < 64 &&
	    !value[strspn(value, "0123456789,")]) {
		out_char(o, '=');
		put(o, value, strlen(value));
	}
	out_char(o, '\n');
}

static void put_environment(struct out *o, struct target *t)
{
	char *text = malloc(ENVIRON_MAX);
	ssize_t n = text ? target_proc(t, "environ", text, ENVIRON_MAX) : -1;

	out_str(o, "  variables (names; values are left out but for some numbers)\n");
	for (char *at = text; n > 0 && at < text + n;) {
		size_t len = strnlen(at, (size_t)(text + n - at));

		if (at + len == text + n)
			break; /* cut */
		put_variable(o, at);
		at += len + 1;
	}
	free(text);
}

void evidence_process(struct out *o, pid_t pid)
{
	struct target *t = NULL;
	char exe[4096];

	out_fmt(o, "process %d", (int)pid);
	if (target_open(&t, pid, 0)) {
		out_str(o, " has ended\n");
		return;
	}
	if (target_exe(t, exe, sizeof(exe)) > 0) {
		out_str(o, " runs ");
		put(o, exe, strnlen(exe, sizeof(exe)));
	}
	out_char(o, '\n');
	put_status(o, pid);
	put_file(o, t, "io");
	put_file(o, t, "cgroup");
	put_file(o, t, "limits");
	put_libraries(o, t);
	put_environment(o, t);
	target_close(t);
}

/* ---- the machine ---- */

static void put_gpu(void *ctx, const char *text)
{
	struct out *o = ctx;

	out_str(o, "GPU ");
	put(o, text, strnlen(text, 1024));
	out_char(o, '\n');
}

static void put_whole(struct out *o, const char *name)
{
	char text[TEXT_MAX];

	if (host_machine(name, text, sizeof(text)))
		return;
	out_fmt(o, "%s\n", name);
	for (const char *at = text; *at; at += strcspn(at, "\n"), at += *at == '\n') {
		out_str(o, "  ");
		put(o, at, strcspn(at, "\n"));
		out_char(o, '\n');
	}
}

void evidence_machine(struct out *o, const char *version)
{
	char text[1024];

	out_fmt(o, "cudatrace %s\n", version);
	out_fmt(o, "kernel %s\n", host_kernel(text, sizeof(text)));
	if (host_driver(text, sizeof(text)))
		out_fmt(o, "driver %s\n", text);
	host_gpus(put_gpu, o);
	put_whole(o, "loadavg");
	put_whole(o, "pressure/cpu");
	put_whole(o, "pressure/memory");
	put_whole(o, "pressure/io");
	put_whole(o, "meminfo");
}

/* A record of /dev/kmsg: "priority,number,microseconds,flags;text". False: a program wrote it. */
static bool of_kernel(const char *line)
{
	return strtoul(line, NULL, 10) >> 3 == 0 && strchr(line, ';');
}

struct ring_of_lines {
	char (*lines)[LOG_LINE];
	size_t n;
};

static void keep_line(struct ring_of_lines *r, const char *record, size_t len)
{
	const char *text = memchr(record, ';', len), *us = memchr(record, ',', len);
	char *to = r->lines[r->n % LOG_LINES];
	size_t n = text ? strcspn(text + 1, "\n") : 0;
	unsigned long long at;

	us = us ? strchr(us + 1, ',') : NULL;
	if (!text || !us)
		return;
	at = strtoull(us + 1, NULL, 10);
	snprintf(to, LOG_LINE, "[%llu.%06llu] %.*s", at / 1000000, at % 1000000, (int)n, text + 1);
	r->n++;
}

void evidence_kernel_log(struct out *o)
{
	struct ring_of_lines r = { .lines = malloc(LOG_LINES * sizeof(*r.lines)) };
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	char record[8192];
	ssize_t n;
	int reads = 0;

	if (fd < 0 || !r.lines)
		out_fmt(o, "the kernel's log cannot be read: %s\n", strerror(errno));
	/* -EPIPE: what was to be read next was written over; the next read goes on behind it */
	while (fd >= 0 && r.lines && reads++ < LOG_READS &&
	       ((n = read(fd, record, sizeof(record) - 1)) > 0 || (n < 0 && errno == EPIPE))) {
		if (n < 0)
			continue;
		record[n] = '\0';
		if (of_kernel(record))
			keep_line(&r, record, (size_t)n);
	}
	for (size_t i = r.n > LOG_LINES ? r.n - LOG_LINES : 0; i < r.n; i++) {
		put(o, r.lines[i % LOG_LINES], strlen(r.lines[i % LOG_LINES]));
		out_char(o, '\n');
	}
	if (fd >= 0)
		close(fd);
	free(r.lines);
}
