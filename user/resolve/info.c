/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * info.c - see info.h. The process itself controls all of this data: lengths are checked, and sinks
 * treat the texts as untrusted bytes.
 */
#include <stdlib.h>
#include <string.h>

#include "../util/parse.h"
#include "info.h"

#define ENVIRON_MAX (256u << 10)
#define CMDLINE_MAX 2048 /* bytes of arguments; the rest is left out */
#define EXE_MAX 1024

union info {
	struct ct_process_info i;
	char room[sizeof(struct ct_process_info) + EXE_MAX + CMDLINE_MAX + INFO_CONTAINER +
		  INFO_POD + 8];
};

/* Returns the number in the first of these variables that has one. CT_UNKNOWN: none has. */
static uint32_t variable(const char *environ, size_t len, const char *const *names)
{
	for (; *names; names++) {
		size_t n = strlen(*names);

		for (size_t at = 0; at < len; at += strlen(environ + at) + 1) {
			uint64_t v;

			if (!strncmp(environ + at, *names, n) && environ[at + n] == '=' &&
			    !parse_u64(environ + at + n + 1, 0, INT32_MAX, &v))
				return (uint32_t)v;
		}
	}
	return CT_UNKNOWN;
}

/* Reads the rank from the variables of torchrun and similar launchers, of Open MPI, or of Slurm. */
static void ranks(struct target *t, struct ct_process_info *i)
{
	static const char *const rank[] = { "RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK",
					    "SLURM_PROCID", NULL };
	static const char *const size[] = { "WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
					    "SLURM_NTASKS", NULL };
	static const char *const local[] = { "LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
					     "SLURM_LOCALID", NULL };
	char *environ = malloc(ENVIRON_MAX);
	ssize_t n = environ ? target_proc(t, "environ", environ, ENVIRON_MAX) : 0;

	if (n > 0) {
		i->rank = variable(environ, (size_t)n, rank);
		i->world_size = variable(environ, (size_t)n, size);
		i->local_rank = variable(environ, (size_t)n, local);
	}
	free(environ);
}

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* Forms: docker-ID.scope, cri-containerd-ID.scope, kubepods-podUID.slice, /docker/ID,
 * /kubepods/podUID/ID. systemd writes _ for -. */
void info_container(const char *cgroup, char container[INFO_CONTAINER], char pod[INFO_POD])
{
	container[0] = pod[0] = '\0';
	for (const char *p = cgroup; *p; p++) {
		size_t n = 0;

		if (is_hex(*p) && (p == cgroup || !is_hex(p[-1]))) {
			while (is_hex(p[n]))
				n++;
			/* of several ids, the innermost one */
			if (n == INFO_CONTAINER - 1) {
				memcpy(container, p, n);
				container[n] = '\0';
			}
			p += n - 1;
		} else if (!strncmp(p, "pod", 3)) {
			while (is_hex(p[3 + n]) || p[3 + n] == '-' || p[3 + n] == '_')
				n++;
			if (n != INFO_POD - 1)
				continue;
			for (size_t k = 0; k < n; k++)
				pod[k] = p[3 + k] == '_' ? '-' : p[3 + k];
			pod[n] = '\0';
		}
	}
}

int info_of_process(struct target *t, const struct ct_hdr *rec, emit_fn emit, void *ctx)
{
	char container[INFO_CONTAINER] = "", pod[INFO_POD] = "", cgroup[4096];
	struct ct_process_info *i;
	union info info = { .i = { .h = *rec } };
	char *at;
	ssize_t n;

	if (!t)
		return 0;
	i = &info.i;
	i->h.kind = CT_PROCESS_INFO;
	i->h.flags = i->h.lost = 0;
	i->rank = i->world_size = i->local_rank = CT_UNKNOWN;
	ranks(t, i);
	if (target_proc(t, "cgroup", cgroup, sizeof(cgroup)) > 0)
		info_container(cgroup, container, pod);
	at = i->text;
	n = target_exe(t, at, EXE_MAX);
	i->exe_len = (uint16_t)(n > 0 ? n : 0);
	at += i->exe_len;
	n = target_proc(t, "cmdline", at, CMDLINE_MAX);
	/* each argument ends with a NUL, including the last one */
	i->cmdline_len = (uint16_t)(n > 0 ? n - !at[n - 1] : 0);
	at += i->cmdline_len;
	i->container_len = (uint16_t)strlen(container);
	i->pod_len = (uint16_t)strlen(pod);
	at = stpcpy(stpcpy(at, container), pod);
	memset(at, 0, 8);
	i->h.size = (uint16_t)((size_t)(at - info.room + 7) & ~(size_t)7);
	return emit(ctx, &i->h);
}
