/* SPDX-License-Identifier: BSD-2-Clause */
/* known_driver.c - see known_driver.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "known_driver.h"
#include "stub.h"

#define MAX_DRIVERS 16
#define NAME_AT 8      /* the pointer to the name is this many bytes behind a handle */
#define PAIRS_FIRST 32 /* the first certain pairs, which are all compared */

/* Releases (their first number) on which it was measured: CUfunction from modules and from
 * libraries, CUkernel, cudaKernel_t; 64-bit Linux. */
static const unsigned int measured[] = { 580 };

struct driver {
	uint64_t dev, ino;
	int64_t mtime_ns;
	bool measured, refuted;
	uint64_t agreed, asked;
};

struct driver_table {
	struct driver rows[MAX_DRIVERS];
	int n;
};

struct driver_table *driver_table_open(void)
{
	return calloc(1, sizeof(struct driver_table));
}

void driver_table_close(struct driver_table *t)
{
	free(t);
}

/* "/usr/lib/libcuda.so.580.159.04" -> "580.159.04"; NULL: not libcuda. */
static const char *version_of(const char *path)
{
	static const char name[] = "libcuda.so";
	const char *base = strrchr(path, '/');

	if (!base || strncmp(base + 1, name, sizeof(name) - 1))
		return NULL;
	base += sizeof(name);
	return *base == '.' ? base + 1 : *base ? NULL : base;
}

bool driver_is(const struct target_map *m)
{
	return m->ino && version_of(m->path);
}

static bool was_measured(const char *version)
{
	char *end;
	unsigned long v = strtoul(version, &end, 10);

	if (end == version || *end != '.')
		return false; /* "libcuda.so.1" has no version in it */
	for (size_t i = 0; i < ARRAY_LEN(measured); i++)
		if (measured[i] == v)
			return true;
	return false;
}

struct driver *driver_of(struct driver_table *t, struct target *target, const struct target_map *m)
{
	struct driver d = { .measured = was_measured(version_of(m->path)) };
	int fd = target_open_map(target, m);
	struct stat st;

	if (fd < 0)
		return NULL;
	if (fstat(fd, &st)) {
		close(fd);
		return NULL;
	}
	close(fd);
	d.dev = st.st_dev;
	d.ino = st.st_ino;
	d.mtime_ns = st.st_mtim.tv_sec * 1000000000LL + st.st_mtim.tv_nsec;
	for (int i = 0; i < t->n; i++)
		if (t->rows[i].dev == d.dev && t->rows[i].ino == d.ino &&
		    t->rows[i].mtime_ns == d.mtime_ns)
			return &t->rows[i];
	if (t->n == MAX_DRIVERS)
		return NULL;
	t->rows[t->n] = d;
	return &t->rows[t->n++];
}

bool driver_is_trusted(const struct driver *d)
{
	return d && !d->refuted && (d->measured || d->agreed);
}

bool driver_is_refuted(const struct driver *d)
{
	return d && d->refuted;
}

bool driver_wants_pair(struct driver *d)
{
	return d && !d->refuted && (d->asked++ < PAIRS_FIRST || d->asked % 64 == 0);
}

void driver_pair(struct driver *d, bool agreed)
{
	d->agreed += agreed;
	d->refuted = d->refuted || !agreed;
}

ssize_t driver_read_name(struct target *t, uint64_t handle, char *out, size_t size)
{
	const struct target_map *m;
	uint64_t at;
	ssize_t n;
	int err;

	/* the heap, or a mapping without a file: a kernel's description is made at run time */
	m = target_map_at(t, handle);
	if (!handle || handle & 7 || !m || m->ino || !m->read || !m->write)
		return 0;
	err = target_read(t, handle + NAME_AT, &at, sizeof(at));
	if (err)
		return err == -ESRCH ? err : 0;
	m = target_map_at(t, at);
	if (!at || !m || !m->read)
		return 0;
	n = target_read_string(t, at, out, size);
	if (n < 0)
		return n == -ESRCH ? n : 0;
	return stub_is_name(out, (size_t)n) ? n : 0;
}
