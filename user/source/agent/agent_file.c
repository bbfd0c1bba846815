/* SPDX-License-Identifier: BSD-2-Clause */
/* agent_file.c - see agent_file.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../util/msg.h"
#include "agent_file.h"
#include "../inject/inject.h"
#include "../inject/inject_check.h"
#include "../../util/io/embed.h"
#include "../../util/own_folder.h"

#define INJECT_MS 5000

EMBED(agent_file, CT_AGENT_FILE);

void agent_image_agent(struct agent_image *i)
{
	*i = (struct agent_image){ .name = "agent",
				   .title = "the agent",
				   .start = "cudatrace_agent_start",
				   .after_cuda = true, /* it is never the first to start CUDA */
				   .bytes = agent_file_begin,
				   .n = (size_t)(agent_file_end - agent_file_begin) };
}

static int write_all(const struct agent_image *i, int fd)
{
	size_t at = 0;

	while (at < i->n) {
		ssize_t n = write(fd, i->bytes + at, i->n - at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		at += (size_t)n;
	}
	return 0;
}

static uint64_t content(const struct agent_image *i)
{
	uint64_t h = 0xcbf29ce484222325ULL;

	for (const char *p = i->bytes; p < i->bytes + i->n; p++)
		h = (h ^ (uint8_t)*p) * 0x100000001b3ULL;
	return h;
}

/* May code be loaded from there? noexec says no, and so may a security module. */
static bool loadable(int fd)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

	if (p == MAP_FAILED)
		return false;
	munmap(p, 4096);
	return true;
}

static bool same(const struct agent_image *i, int fd)
{
	struct stat st;
	const char *p;
	bool equal;

	if (fstat(fd, &st) || (size_t)st.st_size != i->n || st.st_uid != geteuid())
		return false;
	p = mmap(NULL, i->n, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		return false;
	equal = !memcmp(p, i->bytes, i->n);
	munmap((void *)p, i->n);
	return equal;
}

/* The file in this folder, written if it is not there: under another name first, so that nobody
 * loads half of it. */
static int put_file(const struct agent_image *i, const char *dir, char *path, size_t size)
{
	char temporary[512];
	int fd, err;

	if ((size_t)snprintf(path, size, "%s/%s-%016llx.so", dir, i->name,
			     (unsigned long long)content(i)) >= size ||
	    (size_t)snprintf(temporary, sizeof(temporary), "%s/.agent-%d", dir, (int)getpid()) >=
		    sizeof(temporary))
		return -ENAMETOOLONG;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd >= 0 && same(i, fd)) {
		err = loadable(fd) ? 0 : -EACCES;
		close(fd);
		return err;
	}
	if (fd >= 0)
		close(fd);
	unlink(temporary);
	fd = open(temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	err = fchmod(fd, 0644) ? -errno : write_all(i, fd);
	if (!err && !loadable(fd))
		err = -EACCES;
	if (!err && rename(temporary, path))
		err = -errno;
	close(fd);
	if (err)
		unlink(temporary);
	return err;
}

int agent_image_path(const struct agent_image *image, char *path, size_t size, char *dir,
		     size_t dir_size)
{
	const char *run = getenv("XDG_RUNTIME_DIR"), *home = getenv("HOME");
	char tried[4][256];
	int n = 0, err = -ENOENT;

	if (!geteuid()) {
		/* another user's program is to find it: no folder of root's own */
		snprintf(tried[n++], sizeof(tried[0]), "/run/cudatrace");
		snprintf(tried[n++], sizeof(tried[0]), "/var/lib/cudatrace");
	} else {
		if (run && *run == '/')
			snprintf(tried[n++], sizeof(tried[0]), "%.200s/cudatrace", run);
		if (home && *home == '/')
			snprintf(tried[n++], sizeof(tried[0]), "%.200s/.cudatrace", home);
	}
	snprintf(tried[n++], sizeof(tried[0]), "/tmp/cudatrace-%u", (unsigned int)geteuid());
	for (int i = 0; i < n; i++) {
		err = own_folder(tried[i]);
		if (!err)
			err = put_file(image, tried[i], path, size);
		if (!err && strlen(tried[i]) < dir_size) {
			strcpy(dir, tried[i]);
			return 0;
		}
		msg_verb("the agent cannot be in %s: %s", tried[i], strerror(-err));
	}
	if (err == -EMFILE || err == -ENFILE) {
		msg_error("the code that is put into programs needs more open files than are "
			  "allowed: raise "
			  "`ulimit -n`");
		return err;
	}
	msg_error("there is no folder that programs can load the agent from (tried last: %s: %s); "
		  "a file system without noexec is needed",
		  tried[n - 1], strerror(-err));
	return err;
}

int agent_file_path(char *path, size_t size, char *dir, size_t dir_size)
{
	struct agent_image image;

	agent_image_agent(&image);
	return agent_image_path(&image, path, size, dir, dir_size);
}

int agent_image_inject(const struct agent_image *image, pid_t pid, const char *how,
		       const struct capture_plan *plan)
{
	const struct inject_what what = {
		.name = image->title,
		.so = image->bytes,
		.so_bytes = image->n,
		.symbol = image->start,
		.how = how,
		.sock_type = SOCK_SEQPACKET,
		.limit_ms = INJECT_MS,
		.ready = image->after_cuda ? inject_check_cuda : NULL,
		.frames = plan->frames,
		.ctx = plan->frames_ctx,
		.meanwhile = plan->meanwhile,
		.meanwhile_ctx = plan->meanwhile_ctx,
	};
	struct inject_result got = { .sock = -1 };
	int err = inject_run(pid, &what, &got);

	return err ? err : got.sock;
}
