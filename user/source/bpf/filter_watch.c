/* SPDX-License-Identifier: BSD-2-Clause */
/* filter_watch.c - see filter_watch.h. */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "../../../wire/filters.h"
#include "../../util/msg.h"
#include "filter_watch.h"
#include "filters.skel.h"

struct filter_watch {
	struct filters_bpf *skel;
	const uint64_t *words; /* of all places */
	/* a word is for one process at a time, and for none behind one that has set it: nobody but the BPF
	 * program can clear it */
	bool taken[FILTER_PLACES];
};

/* What libbpf says is of use only to who looks for the reason, and no error: all goes on without this. */
static int say_nothing(enum libbpf_print_level level, const char *fmt, va_list args)
{
	(void)level;
	(void)fmt;
	(void)args;
	return 0;
}

/* Before libbpf reads all types of the kernel: may we load anything? */
static bool may_load(void)
{
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, NULL, 4, 8, 1, NULL);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

struct filter_watch *filter_watch_open(void)
{
	struct filter_watch *w = may_load() ? calloc(1, sizeof(*w)) : NULL;
	libbpf_print_fn_t said;
	int err;

	if (!w)
		return NULL;
	said = libbpf_set_print(say_nothing);
	w->skel = filters_bpf__open_and_load();
	err = w->skel ? filters_bpf__attach(w->skel) : -errno;
	libbpf_set_print(said);
	/* its descriptor goes to other users' processes: from here on it can only be read */
	if (!err && bpf_map_freeze(bpf_map__fd(w->skel->maps.places)))
		err = -errno;
	if (!err) {
		void *at = mmap(NULL, FILTER_BYTES, PROT_READ, MAP_SHARED,
				bpf_map__fd(w->skel->maps.places), 0);

		if (at == MAP_FAILED)
			err = -errno;
		else
			w->words = at;
	}
	if (!err)
		return w;
	msg_verb("this kernel does not tell of filters of system calls (%s): they are looked for "
		 "once a second",
		 strerror(-err));
	filter_watch_close(w);
	return NULL;
}

void filter_watch_close(struct filter_watch *w)
{
	if (!w)
		return;
	if (w->words)
		munmap((void *)w->words, FILTER_BYTES);
	filters_bpf__destroy(w->skel);
	free(w);
}

int filter_watch_fd(const struct filter_watch *w)
{
	return w ? bpf_map__fd(w->skel->maps.places) : -1;
}

int filter_watch_add(struct filter_watch *w, int pidfd)
{
	uint32_t place = 0;

	while (w && place < FILTER_PLACES && w->taken[place])
		place++;
	if (!w || pidfd < 0 || place == FILTER_PLACES ||
	    bpf_map_update_elem(bpf_map__fd(w->skel->maps.processes), &pidfd, &place, BPF_ANY))
		return -1;
	w->taken[place] = true;
	return (int)place;
}

bool filter_watch_all(const struct filter_watch *w, int place)
{
	return w && place >= 0 &&
	       __atomic_load_n(&w->words[place], __ATOMIC_ACQUIRE) & FILTER_OF_ALL;
}

void filter_watch_remove(struct filter_watch *w, int pidfd, int place)
{
	int map = w ? bpf_map__fd(w->skel->maps.processes) : -1;
	uint32_t now, at = (uint32_t)place;

	if (!w || place < 0)
		return;
	/* the program that this process has executed may have another place by now */
	if (!bpf_map_lookup_elem(map, &pidfd, &now) && now == at)
		bpf_map_delete_elem(map, &pidfd);
	if (!__atomic_load_n(&w->words[place], __ATOMIC_ACQUIRE))
		w->taken[place] = false;
}
