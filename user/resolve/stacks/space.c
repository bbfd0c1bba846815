/* SPDX-License-Identifier: BSD-2-Clause */
/* space.c - see space.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../util/now.h"
#include "space.h"
#include "../../util/table/array.h"

#define MAPS_MAX 131072
#define IMAGE_MAX (64 << 10) /* bytes of the vdso that are read */

struct map {
	uint64_t start, end, offset, dev, ino;
	enum space_kind kind;
	struct object *object; /* NULL: not a file that can be opened */
};

struct space {
	struct objects *objects;
	struct map *maps;
	int nmaps;
	uint64_t generation;
	uint64_t read_ns, cost_ns; /* when the mappings were read last, and how long that took */
	bool stale;
};

static uint64_t generations;

struct space *space_open(struct objects *objects)
{
	struct space *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->objects = objects;
	s->generation = ++generations;
	return s;
}

static void free_maps(struct map *maps, int n)
{
	for (int i = 0; i < n; i++)
		object_release(maps[i].object);
	free(maps);
}

void space_close(struct space *s)
{
	if (!s)
		return;
	free_maps(s->maps, s->nmaps);
	free(s);
}

struct space *space_copy(const struct space *from)
{
	struct space *s = space_open(from->objects);

	if (!s)
		return NULL;
	s->maps = malloc((size_t)(from->nmaps + 1) * sizeof(*s->maps));
	if (!s->maps) {
		free(s);
		return NULL;
	}
	for (int i = 0; i < from->nmaps; i++) {
		s->maps[i] = from->maps[i];
		if (s->maps[i].object)
			object_keep(s->maps[i].object);
	}
	s->nmaps = from->nmaps;
	return s;
}

static struct map *map_at(const struct space *s, uint64_t addr)
{
	size_t at = array_before(s->maps, s->nmaps, x, x->end <= addr);

	return at < (size_t)s->nmaps && s->maps[at].start <= addr ? &s->maps[at] : NULL;
}

static struct object *open_image(struct space *s, struct target *t, const struct target_map *m)
{
	uint64_t len = m->end - m->start;
	struct object *o = NULL;
	void *bytes;

	if (len > IMAGE_MAX)
		return NULL;
	bytes = malloc(len);
	if (bytes && !target_read(t, m->start, bytes, len))
		o = objects_image(s->objects, bytes, len, m->path);
	free(bytes);
	return o;
}

/* Finds out what a mapping is. A file that was open in the last snapshot is not opened again. */
static void describe(struct space *s, struct target *t, const struct target_map *m, struct map *out)
{
	const struct map *old = map_at(s, m->start);
	bool same, uprobes = !strcmp(m->path, "[uprobes]");
	int fd;

	*out = (struct map){
		.start = m->start, .end = m->end, .offset = m->offset, .dev = m->dev, .ino = m->ino
	};
	out->kind = uprobes ? SPACE_UPROBES : m->exec ? SPACE_CODE : SPACE_DATA;
	if (out->kind != SPACE_CODE)
		return;
	same = old && old->object && old->start == m->start && old->offset == m->offset &&
	       old->dev == m->dev && old->ino == m->ino;
	/* the same file may have been rewritten since, with the same inode number */
	if (same && m->ino && !object_changed(old->object)) {
		out->object = object_keep(old->object);
	} else if (m->ino) {
		fd = target_open_map(t, m);
		out->object = fd >= 0 ? objects_file(s->objects, fd, m->path) : NULL;
	} else if (!strcmp(m->path, "[vdso]")) {
		out->object = open_image(s, t, m);
	}
	if (out->object)
		out->kind = SPACE_OBJECT;
}

static bool differ(const struct space *s, const struct map *maps, int n)
{
	if (s->nmaps != n)
		return true;
	for (int i = 0; i < n; i++) {
		const struct map *a = &s->maps[i], *b = &maps[i];

		/* data mappings grow and shrink all the time, and say nothing about code */
		if (a->kind != b->kind || a->object != b->object)
			return true;
		if (a->kind != SPACE_DATA &&
		    (a->start != b->start || a->end != b->end || a->offset != b->offset))
			return true;
	}
	return false;
}

int space_refresh(struct space *s, struct target *t)
{
	uint64_t began = now_ns(), cost = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	const struct target_map *from;
	struct map *maps;
	int n, err = target_refresh(t);

	s->read_ns = began;
	if (err < 0)
		return err;
	n = target_maps(t, &from);
	if (n < 0)
		return n;
	if (n > MAPS_MAX)
		n = MAPS_MAX;
	maps = malloc((size_t)(n + 1) * sizeof(*maps));
	if (!maps)
		return -ENOMEM;
	for (int i = 0; i < n; i++)
		describe(s, t, &from[i], &maps[i]);
	if (differ(s, maps, n))
		s->generation = ++generations;
	free_maps(s->maps, s->nmaps);
	s->maps = maps;
	s->nmaps = n;
	/* our own work: the time that workers and other programs take says nothing about it */
	s->cost_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cost;
	s->stale = false;
	return 0;
}

/* Reading takes at most a twentieth of the time: a program that loads a thousand libraries is
 * not read a thousand times. */
static bool may_read(const struct space *s)
{
	return !s->nmaps || now_ns() - s->read_ns > 20 * s->cost_ns;
}

void space_changed(struct space *s, struct target *t)
{
	s->stale = true;
	if (may_read(s))
		space_refresh(s, t);
}

void space_settle(struct space *s, struct target *t)
{
	if (s->stale)
		space_refresh(s, t);
}

struct space_place space_find(struct space *s, struct target *t, uint64_t addr)
{
	struct space_place p = { .kind = SPACE_NONE };
	struct map *m = map_at(s, addr);

	if (!m && t && may_read(s)) {
		space_refresh(s, t);
		m = map_at(s, addr);
	}
	if (!m)
		return p;
	p.kind = m->kind;
	if (m->kind == SPACE_OBJECT) {
		p.object = m->object;
		if (!object_address(m->object, addr - m->start + m->offset, &p.address))
			p.kind = SPACE_CODE;
	}
	return p;
}

uint64_t space_end(const struct space *s, uint64_t addr)
{
	const struct map *m = map_at(s, addr);

	return m ? m->end : 0;
}

uint64_t space_generation(const struct space *s)
{
	return s->generation;
}
