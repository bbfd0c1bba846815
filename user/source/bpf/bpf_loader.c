/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bpf_loader.c - inside the bpf source: the dynamic loaders of the traced processes. A probe on
 * _dl_debug_state, which a loader calls when it has mapped a library and before the library's
 * code runs, stops a program that was started here, and has one that runs already wait for a
 * moment (bpf/hold.bpf.h), until what is mapped has been looked at. Knows no record of calls.
 */
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "../../util/msg.h"
#include "../../util/now.h"
#include "bpf_inside.h"
#include "bpf_maps.h"
#include "cudatrace.skel.h" /* behind control.h, whose structs it holds */

#define LOOKS_BYTES 4096 /* of questions that are taken at once; each has 16 with its length */

static void fails(struct bpf_source *b, pid_t pid)
{
	b->ld_so_fails[b->nld_so_fails++ % BPF_LD_SO_FAILS] = pid;
}

bool bpf_loader_fails(const struct bpf_source *b, pid_t pid)
{
	for (unsigned int i = 0; i < b->nld_so_fails && i < BPF_LD_SO_FAILS; i++)
		if (b->ld_so_fails[i] == pid)
			return true;
	return false;
}

bool bpf_loader_watches(struct bpf_source *b, pid_t pid, uint64_t at_ns)
{
	uint64_t dev, ino, offset;
	int fd = bpf_maps_open_ld_so(pid, &dev, &ino, &offset);

	if (fd < 0)
		return false;
	close(fd);
	for (int i = 0; i < b->nld_so; i++)
		if (b->ld_so[i].dev == dev && b->ld_so[i].ino == ino)
			return b->ld_so[i].since_ns <= at_ns;
	return false;
}

void bpf_loader_watch(struct bpf_source *b, pid_t pid)
{
	uint64_t dev, ino, offset;
	int i, fd;

	fd = bpf_maps_open_ld_so(pid, &dev, &ino, &offset);
	if (fd < 0)
		return;
	for (i = 0; i < b->nld_so; i++)
		if (b->ld_so[i].dev == dev && b->ld_so[i].ino == ino)
			goto out;
	if (b->nld_so < BPF_LD_SO_MAX) {
		struct bpf_ld_so *l = &b->ld_so[b->nld_so];
		int err = attach_single(b->kind, bpf_program__fd(b->skel->progs.ct_dl_state), fd,
					offset, &l->links);

		if (err) {
			msg_warn("the dynamic loader of process %d cannot be watched (%s): the "
				 "first calls into a library loaded later may be missed",
				 pid, strerror(-err));
			fails(b, pid);
			goto out;
		}
		l->since_ns = now_ns();
		l->dev = dev;
		l->ino = ino;
		b->nld_so++;
	} else {
		fails(b, pid);
	}
out:
	close(fd);
}

int bpf_loader_open(struct bpf_source *b)
{
	if (!b->skel->rodata->config.hold)
		return 0;
	return ring_open(&b->looks, bpf_map__fd(b->skel->maps.looks),
			 bpf_map__max_entries(b->skel->maps.looks));
}

uint64_t bpf_loader_asked(struct bpf_source *b)
{
	uint64_t asked = __atomic_load_n(&b->skel->bss->looks_asked, __ATOMIC_ACQUIRE), size;
	char records[LOOKS_BYTES];
	struct ct_look look;
	size_t n;

	if (!b->looks.map_fd)
		return 0;
	while ((n = ring_take(&b->looks, records, sizeof(records)))) {
		for (size_t at = 0; at < n; at += RING_TAKEN(size)) {
			memcpy(&size, records + at, sizeof(size));
			if (size != sizeof(look))
				continue;
			memcpy(&look, records + at + sizeof(size), sizeof(look));
			if (look.anew)
				bpf_probe_anew(b, (pid_t)look.ns_pid);
		}
	}
	return asked;
}

void bpf_loader_answer(struct bpf_source *b, uint64_t asked)
{
	__atomic_store_n(&b->skel->bss->looks_done, asked, __ATOMIC_RELEASE);
}

void bpf_loader_close(struct bpf_source *b)
{
	if (b->skel && b->skel->bss)
		bpf_loader_answer(b, UINT64_MAX - 1);
	for (int i = 0; i < b->nld_so; i++)
		attach_single_close(&b->ld_so[i].links);
	b->nld_so = 0;
	ring_close(&b->looks);
}
