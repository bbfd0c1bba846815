/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scans.c - see scans.h. A worker that is left behind (bounded.h) hands its file in when it is
 * done, on a list that is pushed to without a lock, as a worker is no thread of ours.
 */
#include "scans.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "../../util/allowance.h"
#include "../../util/now.h"

/* What one owner's files may hold the main loop up at once. */
#define WAIT_MAX_NS 1000000000ULL
#define WAIT_PART 20 /* and of the time */
/* where no worker can be had */
#define INLINE_NS 50000000ULL

int (*scans_by)(int fd, const uint64_t *capture, uint64_t until_ns,
		struct elf_scan *) = elf_scan_until;

struct scans {
	_Atomic(struct scan_job *) done;
	_Atomic unsigned int refs; /* ours, and one of each file that is under way */
	_Atomic bool closed;
	int fd;
	bool generous;
	struct scan_job *taken; /* off the list, in its order */
	struct allowance allowance;
};

static void scans_put(struct scans *s)
{
	if (atomic_fetch_sub(&s->refs, 1) > 1)
		return;
	free(s);
}

struct scans *scans_open(bool generous)
{
	struct scans *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->fd < 0) {
		free(s);
		return NULL;
	}
	s->refs = 1;
	s->generous = generous;
	s->allowance.max_ns = WAIT_MAX_NS;
	s->allowance.part = WAIT_PART;
	return s;
}

void scans_close(struct scans *s)
{
	struct scan_job *j;

	if (!s)
		return;
	atomic_store(&s->closed, true);
	while ((j = scans_next(s)))
		scan_job_free(j);
	close(s->fd);
	scans_put(s);
}

int scans_fd(const struct scans *s)
{
	return s->fd;
}

/* ---- files ---- */

static void run(struct bounded_job *b)
{
	struct scan_job *j = (struct scan_job *)b;

	j->err = scans_by(j->fd, j->all ? NULL : j->capture, now_ns() + SCANS_S * 1000000000ULL,
			  &j->scan);
}

static void hand_in(struct bounded_job *b)
{
	struct scan_job *j = (struct scan_job *)b;
	struct scans *s = j->home;
	uint64_t one = 1;

	if (atomic_load(&s->closed)) {
		scan_job_free(j);
	} else {
		j->next = atomic_load(&s->done);
		while (!atomic_compare_exchange_weak(&s->done, &j->next, j))
			;
		if (write(s->fd, &one, sizeof(one)) < 0) {
			/* it is readable already */
		}
	}
	scans_put(s);
}

struct scan_job *scan_job_new(const struct ct_vma *vma, int fd, const uint64_t *capture)
{
	struct scan_job *j = calloc(1, sizeof(*j));

	if (!j)
		return NULL;
	j->job = (struct bounded_job){ .run = run, .drop = hand_in, .later = true };
	j->vma = *vma;
	j->fd = fd;
	j->all = !capture;
	if (capture)
		memcpy(j->capture, capture, sizeof(j->capture));
	j->scan.version_from = "";
	return j;
}

void scan_job_free(struct scan_job *j)
{
	if (!j)
		return;
	if (j->fd >= 0)
		close(j->fd);
	elf_scan_free(&j->scan);
	free(j->path);
	free(j);
}

/* ---- searching ---- */

int scans_run(struct scans *s, struct scan_job *j, uint32_t owner)
{
	uint64_t *left = allowance_of(&s->allowance, owner), began = now_ns();
	uint64_t wait_ns = s->generous ? WAIT_MAX_NS : *left;
	int err;

	j->home = s;
	atomic_fetch_add(&s->refs, 1);
	err = bounded_run(&j->job, owner, (unsigned int)(wait_ns / 1000000));
	allowance_take(left, began);
	if (err == -ETIMEDOUT)
		return j->job.crashed ? -ECHILD : -EINPROGRESS;
	atomic_fetch_sub(&s->refs, 1);
	if (!err)
		return 0;
	/* there is no worker: what is found at once is found all the same */
	j->err = scans_by(j->fd, j->all ? NULL : j->capture, now_ns() + INLINE_NS, &j->scan);
	return j->err == -ETIME ? -EBUSY : 0;
}

static void give_up(struct bounded_job *b)
{
	scan_job_free((struct scan_job *)b);
}

int scans_again(struct scans *s, int fd, const uint64_t *capture, uint32_t owner,
		struct elf_scan *found)
{
	uint64_t *left, wait_ns, began = now_ns();
	struct ct_vma none = { 0 };
	struct scan_job *j;
	int err;

	*found = (struct elf_scan){ .version_from = "" };
	if (!s)
		return scans_by(fd, capture, began + WAIT_MAX_NS, found);
	left = allowance_of(&s->allowance, owner);
	wait_ns = s->generous ? WAIT_MAX_NS : *left;
	j = scan_job_new(&none, fcntl(fd, F_DUPFD_CLOEXEC, 0), capture);
	if (!j || j->fd < 0) {
		scan_job_free(j);
		return -ENOMEM;
	}
	j->job = (struct bounded_job){ .run = run, .drop = give_up };
	err = bounded_run(&j->job, owner, (unsigned int)(wait_ns / 1000000));
	allowance_take(left, began);
	if (err == -ETIMEDOUT)
		return err;
	err = err ? err : j->err;
	*found = j->scan;
	j->scan = (struct elf_scan){ .version_from = "" };
	scan_job_free(j);
	return err;
}

struct scan_job *scans_next(struct scans *s)
{
	struct scan_job *j;
	uint64_t n;

	if (!s->taken && atomic_load(&s->done)) {
		if (read(s->fd, &n, sizeof(n)) < 0) {
			/* nothing has come; the list says so too */
		}
		s->taken = atomic_exchange(&s->done, NULL);
	}
	j = s->taken;
	if (j)
		s->taken = j->next;
	return j;
}
