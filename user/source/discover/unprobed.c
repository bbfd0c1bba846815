/* SPDX-License-Identifier: BSD-2-Clause */
/* unprobed.c - see unprobed.h. */
#include "unprobed.h"
#include "../../util/table/array.h"

#include <stdlib.h>
#include <string.h>

#include "../../api/domain.h"

/* mappings whose file has not been looked at; of more the oldest are given up */
#define WAITING 4096
#define SAME 64

struct waiting {
	uint64_t number; /* 0: free */
	pid_t pid;
	uint64_t at_ns, dev, ino;
	bool likely;
};

struct probed {
	uint64_t dev, ino, at_ns;
};

struct unprobed {
	unprobed_fn fn;
	void *ctx;
	uint64_t begin_ns;		 /* 0: has not begun */
	struct waiting waiting[WAITING]; /* by number */
	uint64_t last;			 /* number */
	struct probed *probed;
	int nprobed;
	uint64_t last_probed_ns;
	struct {
		uint64_t dev, ino, real_dev, real_ino;
	} same[SAME];
	unsigned int nsame;
};

struct unprobed *unprobed_open(unprobed_fn fn, void *ctx)
{
	struct unprobed *u = calloc(1, sizeof(*u));

	if (u) {
		u->fn = fn;
		u->ctx = ctx;
	}
	return u;
}

void unprobed_close(struct unprobed *u)
{
	if (u)
		free(u->probed);
	free(u);
}

void unprobed_begin(struct unprobed *u, uint64_t at_ns)
{
	u->begin_ns = at_ns;
}

static void unprobed_tell(struct unprobed *u, pid_t pid, uint64_t from_ns, uint64_t to_ns)
{
	if (from_ns < u->begin_ns)
		from_ns = u->begin_ns;
	if (u->begin_ns && from_ns < to_ns)
		u->fn(u->ctx, pid, from_ns, to_ns);
}

static bool is_same(const struct unprobed *u, uint64_t dev, uint64_t ino, uint64_t real_dev,
		    uint64_t real_ino)
{
	if (dev == real_dev && ino == real_ino)
		return true;
	for (unsigned int i = 0; i < SAME && i < u->nsame; i++)
		if (u->same[i].dev == dev && u->same[i].ino == ino &&
		    u->same[i].real_dev == real_dev && u->same[i].real_ino == real_ino)
			return true;
	return false;
}

void unprobed_same(struct unprobed *u, uint64_t dev, uint64_t ino, uint64_t real_dev,
		   uint64_t real_ino)
{
	if (is_same(u, dev, ino, real_dev, real_ino))
		return;
	u->same[u->nsame % SAME].dev = dev;
	u->same[u->nsame % SAME].ino = ino;
	u->same[u->nsame % SAME].real_dev = real_dev;
	u->same[u->nsame % SAME].real_ino = real_ino;
	u->nsame++;
}

uint64_t unprobed_mapped(struct unprobed *u, const struct watch_map *m, bool known)
{
	uint64_t dev = (uint64_t)m->major << 20 | m->minor;
	struct waiting *w;

	/* what the records say may be read late: the file has its probes meanwhile */
	for (int i = u->nprobed - 1; i >= 0 && (!known || m->time_ns < u->last_probed_ns); i--) {
		if (!is_same(u, dev, m->ino, u->probed[i].dev, u->probed[i].ino))
			continue;
		unprobed_tell(u, m->pid, m->time_ns, u->probed[i].at_ns);
		return 0;
	}
	if (known)
		return 0;
	w = &u->waiting[++u->last % WAITING];
	if (w->number && w->likely)
		unprobed_tell(u, w->pid, w->at_ns, m->time_ns);
	*w = (struct waiting){ .number = u->last,
			       .pid = m->pid,
			       .at_ns = m->time_ns,
			       .dev = dev,
			       .ino = m->ino,
			       .likely = api_domain_of_file(m->name) != API_DOMAIN_END };
	return u->last;
}

void unprobed_forget(struct unprobed *u, uint64_t number)
{
	struct waiting *w = &u->waiting[number % WAITING];

	if (number && w->number == number)
		w->number = 0;
}

void unprobed_none(struct unprobed *u, uint64_t real_dev, uint64_t real_ino)
{
	for (int i = 0; i < WAITING; i++)
		if (u->waiting[i].number &&
		    is_same(u, u->waiting[i].dev, u->waiting[i].ino, real_dev, real_ino))
			u->waiting[i].number = 0;
}

bool unprobed_waits(const struct unprobed *u, uint64_t number)
{
	return number && u->waiting[number % WAITING].number == number;
}

void unprobed_probed(struct unprobed *u, uint64_t real_dev, uint64_t real_ino, uint64_t at_ns)
{
	if (array_room(u->probed, u->nprobed)) {
		u->probed[u->nprobed++] = (struct probed){ real_dev, real_ino, at_ns };
		u->last_probed_ns = at_ns;
	}
	for (int i = 0; i < WAITING; i++) {
		struct waiting *w = &u->waiting[i];

		if (!w->number || !is_same(u, w->dev, w->ino, real_dev, real_ino))
			continue;
		w->number = 0;
		unprobed_tell(u, w->pid, w->at_ns, at_ns);
	}
}

void unprobed_gone(struct unprobed *u, uint64_t real_dev, uint64_t real_ino)
{
	int n = 0;

	for (int i = 0; i < u->nprobed; i++)
		if (u->probed[i].dev != real_dev || u->probed[i].ino != real_ino)
			u->probed[n++] = u->probed[i];
	u->nprobed = n;
}

uint64_t unprobed_last(const struct unprobed *u)
{
	return u->last_probed_ns;
}

void unprobed_end(struct unprobed *u, uint64_t at_ns)
{
	for (int i = 0; i < WAITING; i++) {
		struct waiting *w = &u->waiting[i];

		if (w->number && w->likely)
			unprobed_tell(u, w->pid, w->at_ns, at_ns);
		w->number = 0;
	}
}
