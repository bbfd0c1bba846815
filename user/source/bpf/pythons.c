/* SPDX-License-Identifier: BSD-2-Clause */
/* pythons.c - see pythons.h. Knows the map, and nothing of Python. */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>

#include "../python_seek.h"
#include "pythons.h"
#include "../../../wire/control.h"

struct pythons {
	int map_fd;
	struct python_seek *seek;
};

struct pythons *pythons_open(int map_fd)
{
	struct pythons *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->map_fd = map_fd;
	p->seek = python_seek_open();
	if (p->seek)
		return p;
	free(p);
	return NULL;
}

void pythons_close(struct pythons *p)
{
	if (p)
		python_seek_close(p->seek);
	free(p);
}

int pythons_look(struct pythons *p, pid_t ns_pid, uint32_t initial_pid)
{
	struct ct_python found, held;
	int err;

	/* what is in the map is of this very process: the kernel side takes out what ends or
	 * becomes another program */
	if (!bpf_map_lookup_elem(p->map_fd, &initial_pid, &held))
		return 1;
	err = python_seek_look(p->seek, ns_pid, &found);
	if (err != 1)
		return err;
	if (!bpf_map_update_elem(p->map_fd, &initial_pid, &found, BPF_NOEXIST) || errno == EEXIST)
		return 1;
	return -errno;
}

void pythons_gone(struct pythons *p, uint32_t initial_pid)
{
	bpf_map_delete_elem(p->map_fd, &initial_pid);
}
