/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * safe_open.c - see safe_open.h. The path is walked name by name, so that what was looked at is
 * what is opened.
 *
 * Whether sudo's user may write to a folder is told by its mode: by what holds for its owner, for
 * its group, or for all others. The user's other groups are not known. So where the answer depends
 * on them, or on an access list, it is no.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "../msg.h"
#include "../parse.h"
#include "../self/caps.h"
#include "safe_open.h"

#define LINKS_MAX 40	/* the kernel's own limit */
#define PARENTS_MAX 256 /* folders above one */
#define TRIES 100 /* attempts, because others may make or remove the same name at the same time */
#define RANDOM_LEN 6 /* of a name that nobody else has */

/* ---- sudo's user ---- */

struct owner {
	uid_t uid;
	gid_t gid;
};

static bool id_of(const char *name, uint32_t *id)
{
	const char *text = getenv(name);
	uint64_t v;

	if (!text || parse_u64(text, 1, UINT32_MAX - 1, &v))
		return false;
	*id = (uint32_t)v;
	return true;
}

/* Finds the user who called sudo. Returns false if nobody did, if it was root, or if this
 * process is not root. */
static bool sudo_user(struct owner *u)
{
	return !getuid() && !geteuid() && id_of("SUDO_UID", &u->uid) && id_of("SUDO_GID", &u->gid);
}

uint64_t safe_open_caps(void)
{
	struct owner u;

	return sudo_user(&u) ? CAPS_BIT(CAP_CHOWN) : 0;
}

/* Whether the folder has an access list, or whether that cannot be known. */
static bool has_list(int dir)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool no = fd >= 0 && fgetxattr(fd, "system.posix_acl_access", NULL, 0) < 0 &&
		  (errno == ENODATA || errno == EOPNOTSUPP);

	if (fd >= 0)
		close(fd);
	return !no;
}

/* Whether the user has these rights (S_IROTH and so on) to the folder. */
static bool may(const struct owner *u, int dir, mode_t rights)
{
	mode_t have;
	struct stat st;

	if (fstat(dir, &st) < 0 || !S_ISDIR(st.st_mode))
		return false;
	if (st.st_uid == u->uid)
		have = st.st_mode >> 6;
	else if (st.st_gid == u->gid)
		have = st.st_mode >> 3;
	else
		have = st.st_mode & st.st_mode >> 3; /* the user may belong to its group, too */
	return (have & rights) == rights && (st.st_uid == u->uid || !has_list(dir));
}

/* Whether the user may reach the folder from the root. */
static bool may_reach(const struct owner *u, int dir)
{
	struct stat st, above;
	int at = dir, up;
	bool reached = false;

	for (int i = 0; i < PARENTS_MAX && !reached && may(u, at, S_IXOTH); i++) {
		up = openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (up < 0)
			break;
		reached = !fstat(at, &st) && !fstat(up, &above) && st.st_dev == above.st_dev &&
			  st.st_ino == above.st_ino;
		if (at != dir)
			close(at);
		at = up;
	}
	if (at != dir)
		close(at);
	return reached;
}

/* What is asked for, for all names of the path. */
struct want {
	const char *path, *said; /* path, for a message */
	int flags;
	mode_t mode;
	bool folder;		  /* is made, and not opened */
	const struct stat *old;	  /* whose place a new file takes; NULL: of none */
	struct safe_place *place; /* what is wanted, instead of a descriptor; NULL: is not */
};

/* Whether the user may put a file into the folder, where another one is or was. */
static bool may_put(const struct owner *u, int dir, const struct stat *old)
{
	struct stat st;

	if (!may(u, dir, S_IWOTH | S_IXOTH) || !may_reach(u, dir) || fstat(dir, &st) < 0)
		return false;
	return !old || !(st.st_mode & S_ISVTX) || old->st_uid == u->uid || st.st_uid == u->uid;
}

/* Gives a file that this process has just made in the folder to sudo's user, or says once how
 * the user gets it. */
static void give(int dir, int fd, const struct want *w)
{
	static bool said;
	struct owner u;
	int err;

	if (!sudo_user(&u))
		return;
	if (!may_put(&u, dir, w->old))
		err = -EACCES;
	else
		err = fchown(fd, u.uid, u.gid) ? -errno : 0;
	if (!err || __atomic_exchange_n(&said, true, __ATOMIC_RELAXED))
		return;
	msg_note("%s belongs to root and not to you: %s; to have it, type: sudo chown %s%u:%u %s",
		 w->said,
		 err == -EACCES ? "you may not put files there without sudo" : strerror(-err),
		 w->folder ? "-R " : "", u.uid, u.gid, w->said);
}

/* ---- opening ---- */

/* Whether it can be a file that we have given to sudo's user. */
static bool given(const struct stat *st)
{
	struct owner u;

	return S_ISREG(st->st_mode) && sudo_user(&u) && st->st_uid == u.uid;
}

/* Whether it belongs to somebody else, in a folder where everybody may put files. */
static bool foreign(const struct stat *dir, const struct stat *st)
{
	if ((dir->st_mode & (S_ISVTX | S_IWOTH)) != (S_ISVTX | S_IWOTH))
		return false;
	return (st->st_uid != geteuid() && st->st_uid != dir->st_uid && !given(st)) ||
	       (S_ISREG(st->st_mode) && st->st_nlink > 1);
}

/* Links in /proc lead to what no path names: the kernel follows them. */
static bool in_proc(int dir)
{
	struct statfs fs;

	return !fstatfs(dir, &fs) && fs.f_type == PROC_SUPER_MAGIC;
}

static int open_last(int dir, const char *name, int flags, mode_t mode, const struct stat *dir_st)
{
	int fd = openat(dir, name, (flags & ~O_TRUNC) | O_NOFOLLOW, mode),
	    err = fd < 0 ? -errno : 0;
	struct stat st;

	if (err)
		return err;
	/* it may be another file than the one that was examined */
	if (fstat(fd, &st) < 0)
		err = -errno;
	else if (foreign(dir_st, &st))
		err = -EACCES;
	else if (flags & O_TRUNC && S_ISREG(st.st_mode) && ftruncate(fd, 0) < 0)
		err = -errno;
	if (err)
		close(fd);
	return err ? err : fd;
}

/* Whether it is the folder that we have made. Another one that is ours and empty would do as
 * well. */
static bool is_new_folder(int fd)
{
	DIR *d = fdopendir(openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	struct stat st;
	int n = 0;

	while (d && n < 3 && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n == 2 && !fstat(fd, &st) && st.st_uid == geteuid();
}

/* Makes the file or folder that is not there. Returns its descriptor, or -errno; -EEXIST:
 * another program was quicker. */
static int make_last(int dir, const char *name, const struct want *w)
{
	int fd;

	if (w->folder && mkdirat(dir, name, w->mode))
		return -errno;
	fd = openat(dir, name,
		    w->folder ? O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW
			      : w->flags | O_CREAT | O_EXCL | O_NOFOLLOW,
		    w->mode);
	if (fd < 0)
		return -errno;
	if (!w->folder || is_new_folder(fd))
		give(dir, fd, w);
	return fd;
}

/* A link of /proc leads to a file that has a path, which is its text: it can be followed as another
 * link. */
static bool has_path(int dir, const char *name, const char *link)
{
	struct stat to, named;

	return *link == '/' && !fstatat(dir, name, &to, 0) && S_ISREG(to.st_mode) &&
	       !stat(link, &named) && named.st_dev == to.st_dev && named.st_ino == to.st_ino;
}

/* Looks at one name of the path. Returns 0, with what is there, or a mode of 0; -ELOOP: a link that
 * is followed, whose text is in `link`; else -errno. */
static int safe_open_look(int dir, const char *name, bool last, const struct want *w,
			  struct stat *st, char *link)
{
	bool proc;
	struct stat dir_st;
	ssize_t n;

	if (fstatat(dir, name, st, AT_SYMLINK_NOFOLLOW) < 0) {
		st->st_mode = 0;
		return errno == ENOENT ? 0 : -errno;
	}
	proc = S_ISLNK(st->st_mode) && in_proc(dir);
	if (!S_ISLNK(st->st_mode) || (proc && !(last && w->place)) ||
	    (last && w->flags & O_CREAT && w->flags & O_EXCL))
		return 0;
	if (fstat(dir, &dir_st) < 0)
		return -errno;
	if (foreign(&dir_st, st))
		return -EACCES;
	n = readlinkat(dir, name, link, PATH_MAX);
	if (n < 0)
		return -errno;
	if (n >= PATH_MAX)
		return -ENAMETOOLONG;
	link[n] = '\0';
	return proc && !has_path(dir, name, link) ? -ENXIO : -ELOOP;
}

/* Opens the name, at which safe_open_look() has seen `st`. Returns its descriptor; -EAGAIN: it has just
 * changed; else -errno. */
static int open_name(int dir, const char *name, bool last, const struct want *w,
		     const struct stat *st)
{
	bool makes = last && (w->folder || w->flags & O_CREAT),
	     only = w->folder || w->flags & O_EXCL;
	int want = last ? w->flags : O_PATH | O_CLOEXEC, fd;
	struct stat dir_st;

	if (!st->st_mode) {
		fd = makes ? make_last(dir, name, w) : -ENOENT;
		return fd == -EEXIST && !only ? -EAGAIN : fd;
	}
	if (makes && only)
		return -EEXIST;
	if (S_ISLNK(st->st_mode)) {
		fd = openat(dir, name, want, w->mode);
		return fd < 0 ? -errno : fd;
	}
	if (!last) {
		fd = openat(dir, name, want | O_NOFOLLOW | O_DIRECTORY);
		return fd < 0 ? -errno : fd;
	}
	if (fstat(dir, &dir_st) < 0)
		return -errno;
	if (foreign(&dir_st, st))
		return -EACCES;
	/* fs.protected_regular would refuse what was given, if it might be made here */
	fd = open_last(dir, name, given(st) ? want & ~O_CREAT : want, w->mode, &dir_st);
	return fd == -ENOENT && makes ? -EAGAIN : fd;
}

static int walk(const struct want *w)
{
	char rest[PATH_MAX], link[PATH_MAX], more[2 * PATH_MAX], name[NAME_MAX + 1];
	int dir, fd = -ENOENT, links = 0, tries = 0;
	struct stat st;

	if (!*w->path)
		return -ENOENT;
	if (strlen(w->path) >= sizeof(rest))
		return -ENAMETOOLONG;
	strcpy(rest, w->path);
	dir = open(*rest == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	for (;;) {
		const char *at = rest + strspn(rest, "/");
		size_t n = strcspn(at, "/");
		bool last = !at[n];

		if (n >= sizeof(name)) {
			fd = -ENAMETOOLONG;
			break;
		}
		if (!n) { /* it ends in a slash */
			fd = -EISDIR;
			break;
		}
		memcpy(name, at, n);
		name[n] = '\0';
		fd = safe_open_look(dir, name, last, w, &st, link);
		if (!fd && last && w->place) {
			w->place->dir = dir;
			strcpy(w->place->name, name);
			return 0;
		}
		if (!fd)
			fd = open_name(dir, name, last, w, &st);
		if (fd == -EAGAIN && ++tries < TRIES)
			continue;
		if (fd >= 0 && last)
			break;
		if (fd < 0 && (fd != -ELOOP || ++links > LINKS_MAX))
			break;
		if (fd == -ELOOP) {
			if ((size_t)snprintf(more, sizeof(more), "%s%s", link, at + n) >=
			    sizeof(rest)) {
				fd = -ENAMETOOLONG;
				break;
			}
			strcpy(rest, more);
			fd = *rest == '/' ? open("/", O_PATH | O_DIRECTORY | O_CLOEXEC) : dir;
			if (fd < 0) {
				fd = -errno;
				break;
			}
		} else {
			memmove(rest, at + n, strlen(at + n) + 1);
		}
		if (fd != dir)
			close(dir);
		dir = fd;
	}
	close(dir);
	return fd;
}

int safe_open(const char *path, int flags, mode_t mode)
{
	const struct want w = { .path = path, .said = path, .flags = flags, .mode = mode };

	return walk(&w);
}

/* ---- places ---- */

int safe_place_find(struct safe_place *p, const char *path)
{
	const struct want w = { .path = path, .said = path, .place = p };

	p->dir = -1;
	return walk(&w);
}

int safe_place_look(const struct safe_place *p, struct stat *st)
{
	struct stat dir_st;

	if (fstatat(p->dir, p->name, st, AT_SYMLINK_NOFOLLOW) < 0 || fstat(p->dir, &dir_st) < 0)
		return -errno;
	return foreign(&dir_st, st) ? -EACCES : 0;
}

int safe_place_open(const struct safe_place *p, const char *said, const struct stat *old, int flags,
		    mode_t mode)
{
	const struct want w = { .said = said, .flags = flags, .mode = mode, .old = old };
	struct stat st;
	int fd = -EAGAIN;

	for (int i = 0; i < TRIES && fd == -EAGAIN; i++) {
		if (fstatat(p->dir, p->name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
			if (errno != ENOENT)
				return -errno;
			st.st_mode = 0;
		}
		fd = S_ISLNK(st.st_mode) ? -ELOOP : open_name(p->dir, p->name, true, &w, &st);
	}
	return fd;
}

/* Writes six random letters. */
static int put_random(char *at)
{
	static const char letters[] = "0123456789abcdefghijklmnopqrstuv";
	unsigned char bytes[RANDOM_LEN];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return -EIO;
	for (int i = 0; i < RANDOM_LEN; i++)
		at[i] = letters[bytes[i] % (sizeof(letters) - 1)];
	return 0;
}

int safe_place_new(const struct safe_place *p, struct safe_place *made, bool folder,
		   const char *said, const struct stat *old)
{
	const struct want w = { .said = said,
				.flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC,
				.mode = folder ? 0777 : 0666,
				.folder = folder,
				.old = old };
	char letters[RANDOM_LEN + 1] = "";
	int fd = -EEXIST;

	for (int i = 0; i < TRIES && fd == -EEXIST; i++) {
		fd = put_random(letters);
		if (fd)
			break;
		if ((size_t)snprintf(made->name, sizeof(made->name), "%s.%s.tmp", p->name,
				     letters) >= sizeof(made->name))
			return -ENAMETOOLONG;
		fd = make_last(p->dir, made->name, &w);
	}
	made->dir = p->dir;
	return fd;
}

/* Is it something that no rename may touch? */
static bool stays(int dir, const char *name)
{
	struct stat st;

	return !fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) && !S_ISREG(st.st_mode) &&
	       !S_ISDIR(st.st_mode);
}

int safe_place_rename(const struct safe_place *from, const char *name)
{
	if (stays(from->dir, from->name) || stays(from->dir, name))
		return -EEXIST;
	return renameat(from->dir, from->name, from->dir, name) < 0 ? -errno : 0;
}

void safe_place_close(struct safe_place *p)
{
	if (p->dir >= 0)
		close(p->dir);
	p->dir = -1;
}
