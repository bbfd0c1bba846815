/* SPDX-License-Identifier: BSD-2-Clause */
/* nvtx_find.c - see nvtx_find.h. */
#include "nvtx_find.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../../wire/nvtx_wire.h"
#include "../../util/table/array.h"

#define CHUNK (256u << 10)
#define MAPPING_MAX (256ull << 20) /* bytes of one that are searched */
#define ROUND_MAX (1ull << 30)	   /* bytes of all, in one round */

/* Code of the same file. */
static bool is_code(struct target *t, const struct target_map *of, uint64_t addr)
{
	const struct target_map *m = target_map_at(t, addr);

	return m && m->exec && m->dev == of->dev && m->ino == of->ino;
}

static int check(struct nvtx_find *f, struct target *t, const struct target_map *m, uint64_t at,
		 const struct nvtx_globals *g)
{
	if (!nvtx_globals_plausible(g) || m->end - at < NVTX_GLOBALS_BYTES ||
	    f->n >= NVTX_GLOBALS_MAX || !is_code(t, m, g->get_table) ||
	    !is_code(t, m, g->set_version))
		return 0;
	if (!array_room(f->at, f->n))
		return -ENOMEM;
	f->at[f->n++] = at;
	return 0;
}

#define NEAR 8

/* A mapping of an object that is loaded: its code is mapped beside it. Data sets that a program has mapped are not searched. */
static bool is_object(const struct target_map *maps, int n, int at)
{
	for (int i = at > NEAR ? at - NEAR : 0; i < n && i < at + NEAR; i++)
		if (maps[i].exec && maps[i].ino == maps[at].ino && maps[i].dev == maps[at].dev)
			return true;
	return false;
}

/* `left`: how many bytes may still be read in this round. */
static int nvtx_find_search(struct nvtx_find *f, struct target *t, const struct target_map *m,
			    char *buf, uint64_t *left)
{
	uint64_t at = m->start;
	int err = 0;

	while (!err && m->end - at >= sizeof(struct nvtx_globals)) {
		size_t len = m->end - at < CHUNK ? m->end - at : CHUNK;

		if (len > *left || at - m->start > MAPPING_MAX || target_read(t, at, buf, len)) {
			f->cut = true;
			break;
		}
		*left -= len;
		for (size_t i = 0; !err && i + sizeof(struct nvtx_globals) <= len; i += 8) {
			struct nvtx_globals g;

			memcpy(&g, buf + i, sizeof(g));
			if (g.callbacks_size == 16)
				err = check(f, t, m, at + i, &g);
		}
		if (len < CHUNK)
			break;
		at += len - sizeof(struct nvtx_globals); /* one may lie across the border */
	}
	return err;
}

static struct nvtx_seen *seen(struct nvtx_find *f, const struct target_map *m)
{
	for (size_t i = 0; i < f->nseen; i++) {
		struct nvtx_seen *s = &f->seen[i];

		if (s->start == m->start && s->end == m->end && s->ino == m->ino &&
		    s->dev == m->dev)
			return s;
	}
	return NULL;
}

/* What is not mapped any more may be mapped again, by another object. */
static void forget_old(struct nvtx_find *f)
{
	size_t n = 0;

	for (size_t i = 0; i < f->nseen; i++)
		if (f->seen[i].round == f->round)
			f->seen[n++] = f->seen[i];
	f->nseen = n;
}

int nvtx_find_new(struct nvtx_find *f, struct target *t)
{
	const struct target_map *maps;
	uint64_t left = ROUND_MAX;
	int changed = target_refresh(t), n, err = 0;
	char *buf;

	if (changed < 0 || (!changed && f->round))
		return changed;
	n = target_maps(t, &maps);
	buf = n < 0 ? NULL : malloc(CHUNK);
	if (!buf)
		return n < 0 ? n : -ENOMEM;
	f->round++;
	f->n = 0;
	f->cut = false;
	for (int i = 0; i < n && !err; i++) {
		const struct target_map *m = &maps[i];
		struct nvtx_seen *s;

		if (!m->read || !m->write || m->exec || !m->ino || !is_object(maps, n, i))
			continue;
		s = seen(f, m);
		if (s) {
			s->round = f->round;
			continue;
		}
		err = nvtx_find_search(f, t, m, buf, &left);
		if (!err && array_room(f->seen, f->nseen))
			f->seen[f->nseen++] =
				(struct nvtx_seen){ m->start, m->end, m->dev, m->ino, f->round };
	}
	forget_old(f);
	free(buf);
	return err ? err : 1;
}

void nvtx_find_free(struct nvtx_find *f)
{
	free(f->seen);
	free(f->at);
	memset(f, 0, sizeof(*f));
}
