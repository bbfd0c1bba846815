/* SPDX-License-Identifier: BSD-2-Clause */
/* nccl_find.c - see nccl_find.h. */
#include "nccl_find.h"
#include "nccl_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../proc/elf_read.h"
#include "../proc/target.h"
#include "../util/io/bounded.h"
#include "../util/msg.h"
#include "../util/now.h"

#define LAYOUT_MS 10000		/* time limit for the debug information of one file */
#define SEARCH_NS 5000000000ULL /* and for the search of one process's memory */
#define FILES 16		/* libraries whose layouts are kept */
#define FOUND_MAX 64		/* words that one step of a search finds */

struct library {
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec changed;
	int err;
	struct nccl_layout *layout; /* NULL: err says why */
	struct layout_job *job;	    /* it is being read; err is -EAGAIN then */
};

struct nccl_finder {
	struct library files[FILES];
	int nfiles;
};

void nccl_process_free(struct nccl_process *p)
{
	free(p->comms);
	p->comms = NULL;
	p->ncomms = 0;
}

/* ---- the library ---- */

/* Who frees a job whose worker was left behind: the one who comes last. */
enum lease { LEASE_WORKS, LEASE_DONE, LEASE_LEFT };

struct layout_job {
	struct bounded_job job;
	int fd, result;
	_Atomic int lease;
	uint64_t until_ns;
	struct nccl_layout layout;
	const char *folder; /* of layouts that are kept; NULL: none */
	struct nccl_key key;
	bool keyed, kept; /* it has a key; the layout is one that was kept */
};

static void run_layout(struct bounded_job *job)
{
	struct layout_job *j = (struct layout_job *)job;

	j->keyed = j->folder && nccl_key_of(j->fd, &j->key);
	j->kept = j->keyed && nccl_cache_load(j->folder, &j->key, &j->layout);
	j->result = j->kept ? 0 : nccl_layout_read(&j->layout, j->fd, j->until_ns);
}

static void free_job(struct layout_job *j)
{
	close(j->fd);
	free(j);
}

static void hand_in(struct bounded_job *job)
{
	struct layout_job *j = (struct layout_job *)job;

	if (atomic_exchange(&j->lease, LEASE_DONE) == LEASE_LEFT)
		free_job(j);
}

/* Takes what was read, and frees the job. */
static void take_layout(struct library *l, struct layout_job *j)
{
	l->job = NULL;
	l->err = j->result;
	l->layout = l->err ? NULL : malloc(sizeof(*l->layout));
	if (l->layout)
		*l->layout = j->layout;
	else if (!l->err)
		l->err = -ENOMEM;
	if (l->layout && j->kept)
		msg_verb("the layout of NCCL's communicators was kept in %s", j->folder);
	/* it is read again where there is no room for it */
	else if (l->layout && j->keyed)
		nccl_cache_store(j->folder, &j->key, l->layout);
	free_job(j);
}

/* Takes the descriptor. */
static void read_layout(struct library *l, int fd, uint32_t owner, unsigned int wait_ms)
{
	struct layout_job *j = calloc(1, sizeof(*j));
	int err;

	if (!j) {
		close(fd);
		l->err = -ENOMEM;
		return;
	}
	j->job = (struct bounded_job){ .run = run_layout, .drop = hand_in, .later = true };
	j->fd = fd;
	j->folder = nccl_cache_folder();
	j->until_ns = now_ns() + LAYOUT_MS * 1000000ULL;
	err = bounded_run(&j->job, owner, wait_ms);
	if (err == -ETIMEDOUT) {
		l->job = j;
		l->err = -EAGAIN;
		return;
	}
	if (err)
		j->result = err;
	take_layout(l, j);
}

struct nccl_finder *nccl_finder_open(void)
{
	return calloc(1, sizeof(struct nccl_finder));
}

void nccl_finder_close(struct nccl_finder *f)
{
	if (!f)
		return;
	for (int i = 0; i < f->nfiles; i++) {
		struct layout_job *j = f->files[i].job;

		if (j && atomic_exchange(&j->lease, LEASE_LEFT) == LEASE_DONE)
			free_job(j);
		free(f->files[i].layout);
	}
	free(f);
}

static const struct library *nccl_find_known(struct library *l)
{
	if (l->job && atomic_load(&l->job->lease) == LEASE_DONE)
		take_layout(l, l->job);
	return l;
}

/* Takes the descriptor. NULL: no memory. */
static const struct library *library_of(struct nccl_finder *f, int fd, uint32_t owner,
					unsigned int wait_ms)
{
	struct library *l;
	struct stat st;

	if (fstat(fd, &st))
		memset(&st, 0, sizeof(st));
	for (int i = 0; i < f->nfiles; i++)
		if (f->files[i].dev == st.st_dev && f->files[i].ino == st.st_ino &&
		    f->files[i].size == st.st_size &&
		    !memcmp(&f->files[i].changed, &st.st_ctim, sizeof(st.st_ctim))) {
			close(fd);
			return nccl_find_known(&f->files[i]);
		}
	if (f->nfiles == FILES) {
		close(fd);
		return NULL; /* processes with so many libraries mean no good */
	}
	l = &f->files[f->nfiles++];
	*l = (struct library){
		.dev = st.st_dev, .ino = st.st_ino, .size = st.st_size, .changed = st.st_ctim
	};
	read_layout(l, fd, owner, wait_ms);
	return l;
}

static const char *why_not(int err)
{
	switch (err) {
	case -ENODATA:
		return "the library has no debug information, which says where they have their "
		       "rank";
	case -ENOENT: return "the library's debug information does not describe them";
	case -ETIME:
	case -EAGAIN: return "the library's debug information could not be read in time";
	default: return "the library could not be read";
	}
}

static bool is_nccl(const char *path)
{
	const char *name = strrchr(path, '/');

	return name && !strncmp(name + 1, "libnccl.so", 10);
}

static const struct target_map *library_map(struct target *t)
{
	const struct target_map *maps;
	int n = target_maps(t, &maps);

	for (int i = 0; i < n; i++)
		if (maps[i].ino && !maps[i].offset && is_nccl(maps[i].path))
			return &maps[i];
	return NULL;
}

/* What is added to the addresses of a file that is mapped from its beginning at m. */
static bool bias_of(int fd, const struct target_map *m, uint64_t *bias)
{
	struct elf_file f;
	bool found = false;

	if (!elf_file_open(&f, fd))
		for (int i = 0; i < f.nphdr && !found; i++)
			if (f.phdr[i].p_type == PT_LOAD && !f.phdr[i].p_offset) {
				*bias = m->start - f.phdr[i].p_vaddr;
				found = true;
			}
	elf_file_close(&f);
	return found;
}

/* ---- the communicators ---- */

static int read_target(void *ctx, uint64_t addr, void *buf, size_t len)
{
	return target_read(ctx, addr, buf, len);
}

/* Adds the communicator at an address if there is one. Returns 0, or -ENOMEM. */
static int nccl_find_add(struct nccl_process *p, struct target *t, uint64_t addr)
{
	struct nccl_comm c;

	for (int i = 0; i < p->ncomms; i++)
		if (p->comms[i].addr == addr)
			return 0;
	if (nccl_comm_read(p->layout, addr, read_target, t, &c))
		return 0;
	if (p->ncomms == NCCL_COMMS_MAX) {
		p->cut = true;
		return 0;
	}
	if (!p->comms)
		p->comms = calloc(NCCL_COMMS_MAX, sizeof(*p->comms));
	if (!p->comms)
		return -ENOMEM;
	p->comms[p->ncomms++] = c;
	return 0;
}

static int from_list(struct nccl_process *p, struct target *t, uint64_t bias)
{
	const int room = NCCL_COMMS_MAX + 1; /* one more tells that there are too many */
	uint64_t *list = calloc((size_t)room, sizeof(*list));
	int n = list ? nccl_list_read(p->layout, bias, read_target, t, list, room) : 0,
	    err = list ? 0 : -ENOMEM;

	p->cut = n == room;
	for (int i = 0; i < n && !err; i++)
		if (list[i])
			err = nccl_find_add(p, t, list[i]);
	free(list);
	return err;
}

/* Memory that malloc() may have given out: private, writable, of no file. */
static bool may_hold(const struct nccl_process *p, const struct target_map *m)
{
	return m->read && m->write && !m->exec && !m->ino &&
	       (!m->path[0] || !strcmp(m->path, "[heap]") || !strncmp(m->path, "[anon", 5)) &&
	       m->end - m->start >= p->layout->bytes;
}

static int search_map(struct nccl_process *p, struct target *t, const struct target_map *m,
		      uint64_t until_ns)
{
	uint64_t at = m->start, found[FOUND_MAX],
		 start = p->layout->members[NCCL_START_MAGIC].offset;
	int err = 0;

	while (at < m->end && !err) {
		int n;

		if (now_ns() > until_ns) {
			p->cut = true;
			return 0;
		}
		n = target_find_word(t, &at, m->end, NCCL_MAGIC, found, FOUND_MAX);
		if (n < 0) {
			p->cut = true;
			return n == -ENOMEM ? n : 0;
		}
		for (int i = 0; i < n && !err; i++)
			err = nccl_find_add(p, t, found[i] - start);
	}
	return err;
}

static int nccl_find_search(struct nccl_process *p, struct target *t)
{
	uint64_t until_ns = now_ns() + SEARCH_NS;
	const struct target_map *maps;
	int n = target_maps(t, &maps), err = 0;

	p->searched = true;
	for (int i = 0; i < n && !err; i++)
		if (may_hold(p, &maps[i]))
			err = search_map(p, t, &maps[i], until_ns);
	return err;
}

/* ---- a process ---- */

static void nccl_find_describe(struct nccl_process *p, struct target *t, const struct target_map *m)
{
	size_t len = strlen(m->path), room = sizeof(p->library) - 1;
	ssize_t n = target_proc(t, "comm", p->comm, sizeof(p->comm));

	snprintf(p->library, sizeof(p->library), "%s", m->path + (len > room ? len - room : 0));
	p->comm[n > 0 ? n : 0] = '\0';
	p->comm[strcspn(p->comm, "\n")] = '\0';
}

static int nccl_find_look(struct nccl_finder *f, struct target *t, struct nccl_process *p)
{
	const struct target_map *m = library_map(t);
	const struct library *l;
	uint64_t bias = 0;
	bool mapped;
	int fd, err;

	if (!m)
		return 0;
	nccl_find_describe(p, t, m);
	fd = target_open_map(t, m);
	if (fd < 0) {
		p->why = why_not(fd == -ENOENT ? -EIO : fd);
		return 1;
	}
	mapped = bias_of(fd, m, &bias);
	l = library_of(f, fd, target_uid(t), LAYOUT_MS + 1000);
	if (!l || !l->layout) {
		p->why = why_not(l ? l->err : -EIO);
		return 1;
	}
	p->layout = l->layout;
	err = mapped ? from_list(p, t, bias) : 0;
	if (!err && !p->ncomms)
		err = nccl_find_search(p, t);
	return err ? err : 1;
}

int nccl_find(struct nccl_finder *f, pid_t pid, struct nccl_process *p)
{
	struct target *t;
	int err;

	*p = (struct nccl_process){ .pid = pid };
	err = target_open(&t, pid, 0);
	if (err)
		return err == -ENOMEM ? err : 0;
	err = nccl_find_look(f, t, p);
	target_close(t);
	if (err < 0)
		nccl_process_free(p);
	return err;
}

int nccl_find_again(const struct nccl_process *p, const struct nccl_comm *c, struct nccl_comm *now)
{
	struct target *t;
	int err = target_open(&t, p->pid, 0);

	if (err)
		return err;
	err = nccl_comm_read(p->layout, c->addr, read_target, t, now);
	target_close(t);
	return !err && now->hash != c->hash ? -ESRCH : err;
}

int nccl_find_at(struct nccl_finder *f, struct target *t, uint64_t addr, unsigned int wait_ms,
		 struct nccl_comm *out)
{
	const struct target_map *m = library_map(t);
	const struct library *l;
	int fd;

	if (!m && target_refresh(t) > 0)
		m = library_map(t);
	fd = m ? target_open_map(t, m) : -ENOENT;
	if (fd < 0)
		return fd;
	l = library_of(f, fd, target_uid(t), wait_ms);
	if (!l || !l->layout)
		return l && l->err == -EAGAIN ? -EAGAIN : -ENODATA;
	return nccl_comm_read(l->layout, addr, read_target, t, out);
}
