/* SPDX-License-Identifier: BSD-2-Clause */
/* pythons.c - see pythons.h. Knows what python_find() answers and nothing of Python. */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../proc/python.h"
#include "../../util/msg.h"
#include "pythons.h"
#include "../../../bpf/control.h"

#define MAX_REASONS 8

struct pythons {
	int map_fd;
	uint32_t generation;
	int nreasons;
	char *reasons[MAX_REASONS]; /* that were told */
};

struct pythons *pythons_open(int map_fd)
{
	struct pythons *p = calloc(1, sizeof(*p));

	if (p)
		p->map_fd = map_fd;
	return p;
}

void pythons_close(struct pythons *p)
{
	for (int i = 0; p && i < p->nreasons; i++)
		free(p->reasons[i]);
	free(p);
}

static void tell(struct pythons *p, pid_t ns_pid, const char *why)
{
	for (int i = 0; i < p->nreasons; i++)
		if (!strcmp(p->reasons[i], why))
			return;
	if (p->nreasons == MAX_REASONS || !(p->reasons[p->nreasons] = strdup(why)))
		return;
	p->nreasons++;
	msg_warn("process %d: no Python frames: %s", (int)ns_pid, why);
}

int pythons_look(struct pythons *p, pid_t ns_pid, uint32_t initial_pid)
{
	struct ct_python found, held;
	const char *why = "";
	struct target *t;
	int err;

	/* what is in the map is of this very process: the kernel side takes out what ends or
	 * becomes another program */
	if (!bpf_map_lookup_elem(p->map_fd, &initial_pid, &held))
		return 1;
	err = target_open(&t, ns_pid, 0);
	if (err)
		return err;
	err = python_find(t, &found, &why);
	target_close(t);
	if (err == -ENOTSUP)
		tell(p, ns_pid, why);
	if (err == -ENOENT || err == -ENOTSUP)
		return 0;
	if (err)
		return err;
	found.generation = ++p->generation;
	if (!bpf_map_update_elem(p->map_fd, &initial_pid, &found, BPF_NOEXIST) || errno == EEXIST)
		return 1;
	err = -errno;
	return err;
}

void pythons_gone(struct pythons *p, uint32_t initial_pid)
{
	bpf_map_delete_elem(p->map_fd, &initial_pid);
}
