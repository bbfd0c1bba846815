/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * links_multi.c - uprobe_multi and uprobe_session links by raw bpf(2): the libbpf of the stable
 * distributions (1.1) has no call for them. One link carries all offsets of a file; closing it
 * takes all breakpoints away at once.
 *
 * Source of the layout and of the numbers: include/uapi/linux/bpf.h of Linux 6.13 (commits
 * 89ae89f53d20 "bpf: Add multi uprobe link", d920179b3d48 "bpf: Add support for uprobe multi
 * session attach").
 */
#include <errno.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "links.h"

#define CMD_LINK_CREATE 28
#define UPROBE_MULTI_RETURN 1

struct link_create_attr {
	__u32 prog_fd, target_fd, attach_type, flags;
	__u64 path, offsets, ref_ctr_offsets, cookies;
	__u32 cnt, multi_flags, pid, pad;
};

static int link_create(int prog_fd, int type, __u32 multi_flags, const char *path,
		       const __u64 *offsets, const __u64 *cookies, int cnt, pid_t pid)
{
	struct link_create_attr attr = {
		.prog_fd = prog_fd,
		.attach_type = type,
		.path = (uintptr_t)path,
		.offsets = (uintptr_t)offsets,
		.cookies = (uintptr_t)cookies,
		.cnt = cnt,
		.multi_flags = multi_flags,
		.pid = pid,
	};
	int fd = syscall(SYS_bpf, CMD_LINK_CREATE, &attr, sizeof(attr));

	return fd < 0 ? -errno : fd;
}

static int links_multi_make(const struct attach_progs *progs, const struct link_target *t,
			    struct link_set *set, bool session)
{
	int entry_type = session ? ATTACH_TYPE_SESSION : ATTACH_TYPE_MULTI;
	__u64 *offsets = NULL, *cookies = NULL;
	char path[64];
	int i, err;

	memset(set, 0, sizeof(*set));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", t->file_fd);
	offsets = calloc(t->nprobes, sizeof(*offsets));
	cookies = calloc(t->nprobes, sizeof(*cookies));
	set->fds = calloc(2, sizeof(*set->fds));
	if (!offsets || !cookies || !set->fds) {
		err = -ENOMEM;
		goto out;
	}
	for (i = 0; i < t->nprobes; i++) {
		offsets[i] = t->probes[i].offset;
		cookies[i] = CT_COOKIE(t->probes[i].func, t->probes[i].per_thread) |
			     CT_COOKIE_OF(t->probes[i].symbol, t->probes[i].ends) |
			     CT_COOKIE_GENERATION(t->generation);
	}
	/* The return link first: an entry that is seen then always has its return probe. */
	if (!session && !t->entry_only) {
		err = link_create(progs->return_fd, ATTACH_TYPE_MULTI, UPROBE_MULTI_RETURN, path,
				  offsets, cookies, t->nprobes, t->pid);
		if (err < 0)
			goto out;
		set->fds[set->nfds++] = err;
	}
	err = link_create(session ? progs->session_fd : progs->entry_fd, entry_type, 0, path,
			  offsets, cookies, t->nprobes, t->pid);
	if (err < 0)
		goto out;
	set->fds[set->nfds++] = err;
	err = 0;
out:
	free(offsets);
	free(cookies);
	if (err) {
		while (set->nfds)
			close(set->fds[--set->nfds]);
		free(set->fds);
		set->fds = NULL;
	}
	return err;
}

int links_session(const struct attach_progs *progs, const struct link_target *t,
		  struct link_set *set, int *bad)
{
	*bad = -1;
	return links_multi_make(progs, t, set, true);
}

int links_multi(const struct attach_progs *progs, const struct link_target *t, struct link_set *set,
		int *bad)
{
	*bad = -1;
	return links_multi_make(progs, t, set, false);
}
