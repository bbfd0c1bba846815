/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * held.c - inside discover: which user the files with probes belong to, and how long they are held.
 * A probe keeps its file from being freed, the memory of a memfd with it, and takes descriptors: so
 * a file is let go when nobody maps it any more, unless it is installed, or has a name under which
 * it may be mapped again: of these each user keeps a few. What a user may hold in all is bounded
 * (shares.h).
 *
 * Also: what becomes of a file that was rewritten in place.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../util/msg.h"
#include "../../util/now.h"
#include "files.h"
#include "../host.h"
#include "rewrites.h"
#include "scans.h"

#define KEPT 64 /* files of one user that nobody maps */

/* ---- the file again ---- */

static bool same_file(const struct probe_file *p, int fd)
{
	struct stat st;

	return !fstat(fd, &st) && st.st_dev == p->stat_dev && st.st_ino == p->stat_ino;
}

/* The file, if this mapping is of it. Returns 0 or -errno. */
static int open_mapping(struct probe_file *p, const struct ct_vma *vma)
{
	int fd = vma->pid ? maps_open(vma) : -ENOENT;

	if (fd < 0)
		return fd;
	if (!same_file(p, fd)) {
		close(fd);
		return -ENOENT;
	}
	p->fd = fd;
	return 0;
}

static int on_reopen(void *ctx, const struct ct_vma *vma)
{
	struct probe_file *p = ctx;

	if (p->fd >= 0 || vma->dev != p->dev || vma->ino != p->ino || open_mapping(p, vma))
		return 0;
	p->seen = *vma;
	return 0;
}

int probe_file_open(struct probe_file *p)
{
	struct stat st;
	int fd;

	if (p->fd >= 0 || !open_mapping(p, &p->seen))
		return 0;
	/* By its name only where root has put it: elsewhere a name may lead to a file system
	 * that never answers. */
	if (p->installed && !stat(p->path, &st) && S_ISREG(st.st_mode) &&
	    st.st_dev == p->stat_dev && st.st_ino == p->stat_ino) {
		fd = open(p->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		if (fd >= 0 && same_file(p, fd)) {
			p->fd = fd;
			return 0;
		}
		if (fd >= 0)
			close(fd);
	}
	files_list(p->files, 0, on_reopen, p);
	return p->fd >= 0 ? 0 : -ENOENT;
}

void probe_file_shut(struct probe_file *p)
{
	if (p->fd < 0 || p->files->open)
		return;
	close(p->fd);
	p->fd = -1;
}

/* ---- whose ---- */

/* The real user: a program can make root the owner of its /proc/PID (PR_SET_DUMPABLE). */
uint32_t files_uid(struct files *f, pid_t pid)
{
	char status[4096];
	const char *uid;

	if (f->uid_pid == pid && f->uid_round == f->round)
		return f->uid;
	uid = host_status(pid, status, sizeof(status)) ? NULL : host_status_line(status, "Uid");
	f->uid = uid ? (uint32_t)strtoul(uid, NULL, 10) : 65534;
	f->uid_pid = pid;
	f->uid_round = f->round;
	return f->uid;
}

static unsigned closing(const struct files *f)
{
	return f->ops->closing ? f->ops->closing(f->ctx) : 0;
}

/* A file that this user has, or anybody with SHARES_INSTALLED, and that has not been mapped for
 * the longest time. */
static struct probe_file *oldest_unmapped(const struct files *f, uint32_t uid, int *count)
{
	struct probe_file *oldest = NULL;

	*count = 0;
	for (int i = 0; i < f->n; i++) {
		struct probe_file *p = f->list[i];

		if (!p->unmapped_ns || (uid != SHARES_INSTALLED && p->uid != uid))
			continue;
		++*count;
		if (!oldest || p->unmapped_ns < oldest->unmapped_ns)
			oldest = p;
	}
	return oldest;
}

bool files_room(const struct files *f, uint32_t uid, unsigned want)
{
	int count;

	return shares_fit(&f->shares, uid, want, 0) || oldest_unmapped(f, SHARES_INSTALLED, &count);
}

void files_refuse(struct files *f, struct cached_file *v, const char *path, uint32_t uid,
		  unsigned want)
{
	int i;

	f->refused += !v->counted;
	v->refused = v->counted = true;
	v->uid = uid;
	v->freed = f->freed;
	v->cost = want;
	for (i = 0; i < f->nwarned && f->warned[i] != uid; i++)
		;
	if (i < f->nwarned || i == FILES_WARNED)
		return;
	f->warned[f->nwarned++] = uid;
	msg_warn("%s is not probed, and its calls are not shown: the programs of user %u map too "
		 "many files with CUDA's functions; those that are refused are counted. A higher "
		 "limit of open files (`ulimit -n`) makes room",
		 path, uid);
}

bool files_charge(struct files *f, struct probe_file *p, struct cached_file *v, unsigned want)
{
	unsigned more = want - p->descriptors, busy = closing(f);
	struct probe_file *old;
	int count;

	while (!shares_fit(&f->shares, p->uid, more, busy)) {
		old = oldest_unmapped(f, p->uid, &count);
		if (!old)
			old = oldest_unmapped(f, SHARES_INSTALLED, &count);
		if (!old || old == p) {
			f->retry |= busy > 0;
			files_refuse(f, v, p->path, p->uid, want);
			return false;
		}
		more = want - p->descriptors;
		files_release(f, old, false);
	}
	if (shares_take(&f->shares, p->uid, more))
		return false;
	p->descriptors = want;
	return true;
}

/* The user found with the file now is charged for it, because the earlier one may be gone. */
static void charge_anew(struct files *f, struct probe_file *p, uint32_t uid)
{
	if (p->uid == uid || shares_take(&f->shares, uid, p->descriptors))
		return;
	shares_give(&f->shares, p->uid, p->descriptors);
	p->uid = uid;
}

void files_installed(struct files *f, struct probe_file *p, bool installed)
{
	struct cached_file *v = file_cache_find(&f->cache, p->dev, p->ino);

	if (installed)
		charge_anew(f, p, SHARES_INSTALLED);
	p->installed = installed;
	if (v)
		v->installed = installed;
}

/* ---- how long ---- */

void files_release(struct files *f, struct probe_file *p, bool rewritten)
{
	struct cached_file *v = file_cache_find(&f->cache, p->dev, p->ino);
	int i;

	for (i = 0; i < f->n && f->list[i] != p; i++)
		;
	if (i < f->n)
		f->list[i] = f->list[--f->n];
	if (f->ops->gone)
		f->ops->gone(f->ctx, p, rewritten);
	if (v) {
		v->file = NULL;
		v->checked_ns = v->refused ? v->checked_ns : 0;
	}
	if (p->descriptors)
		shares_give(&f->shares, p->uid, p->descriptors);
	if (!rewritten) /* else there is more to come of it */
		rewrites_remove(f->rewrites, p->mark);
	f->freed++;
	f->retry |= f->refused > 0;
	if (p->fd >= 0)
		close(p->fd);
	free(p->path);
	elf_scan_free(&p->scan);
	free(p);
}

bool files_lost(const struct files *f)
{
	for (int i = 0; i < f->n; i++) {
		const struct probe_file *p = f->list[i];

		if (!p->installed && !p->unmapped_ns && (!p->seen.pid || !maps_there(&p->seen)))
			return true;
	}
	return false;
}

void files_sweep(struct files *f)
{
	f->sweep++;
	files_next_round(f);
}

int files_sweep_vma(void *ctx, const struct ct_vma *vma)
{
	struct files *f = ctx;
	struct cached_file *v = file_cache_find(&f->cache, vma->dev, vma->ino);

	if (!v || !v->file || v->file->round == f->sweep)
		return 0;
	v->file->round = f->sweep;
	v->file->seen = *vma;
	v->file->unmapped_ns = 0;
	if (!v->file->installed)
		charge_anew(f, v->file, files_uid(f, (pid_t)vma->pid));
	return 0;
}

int files_swept(struct files *f)
{
	uint64_t now = now_ns();
	int found = 0, count;

	for (int i = f->n; i-- > 0;) {
		struct probe_file *p = f->list[i], *old;

		if (p->installed || p->unmapped_ns || p->round == f->sweep ||
		    (p->seen.pid && maps_there(&p->seen)))
			continue;
		found++;
		p->unmapped_ns = now;
		p->seen.pid = 0;
		msg_verb("%s is not mapped any more", p->path);
		old = p->nameless ? p : oldest_unmapped(f, p->uid, &count);
		if (p->nameless || (old && count > KEPT)) {
			files_release(f, old, false);
			/* the last one has moved to its place: it was looked at, or is p itself */
			i = i < f->n ? i : f->n;
		}
	}
	f->retry |= found && f->refused;
	return found;
}

/* ---- rewritten in place ---- */

struct probe_file *files_marked(const struct files *f, int mark)
{
	for (int i = 0; i < f->n; i++)
		if (f->list[i]->mark == mark)
			return f->list[i];
	return NULL;
}

void files_rewritten(struct files *f, struct probe_file *p)
{
	msg_warn("%s was rewritten in place while it had probes: they are removed, and the new "
		 "content is probed; a program that loads or uses it at that moment can crash. "
		 "Replace a library by a new file (install, mv), or stop tracing first",
		 p->path);
	files_release(f, p, true);
}

bool files_compare(struct files *f, struct probe_file *p, const struct ct_vma *vma,
		   uint64_t generation)
{
	struct elf_scan scan;
	bool same;
	int mark;

	if (p->fd < 0 && open_mapping(p, vma))
		return false;
	mark = p->mark;
	/* what takes longer than its user's share of the time is taken as another content */
	same = !scans_again(f->scans, p->fd, f->capture, p->uid, &scan) &&
	       scan.nprobes == p->scan.nprobes && scan.code == p->scan.code;
	elf_scan_free(&scan);
	probe_file_shut(p);
	if (same) {
		p->generation = generation;
		return false;
	}
	files_rewritten(f, p);
	rewrites_remove(f->rewrites, mark);
	return true;
}
