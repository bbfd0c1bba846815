/* SPDX-License-Identifier: BSD-2-Clause */
/* agent_listener.c - see agent_listener.h. The socket lies next to the agent's file; the programs'
 * environment names it. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "../../util/msg.h"
#include "agent_listener.h"
#include "agent_kin.h"

/* that wait to be accepted; the kernel takes no more than net.core.somaxconn */
#define BACKLOG 4096
#define ACCEPT_MAX 64 /* at once, before those are listened to that are there */

static int make_key(char *key)
{
	unsigned char bytes[MEET_KEY / 2];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return -EIO;
	for (size_t i = 0; i < sizeof(bytes); i++)
		sprintf(key + 2 * i, "%02x", bytes[i]);
	return 0;
}

/* Sockets of those that were killed: nobody listens there. Asked by a socket of another type,
 * which no listener gets to see. */
static void sweep(const char *dir)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	DIR *d = opendir(dir);
	struct dirent *e;

	while (d && (e = readdir(d))) {
		int fd;

		if (strncmp(e->d_name, "s-", 2) ||
		    (size_t)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/%s", dir,
				     e->d_name) >= sizeof(addr.sun_path))
			continue;
		fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (fd >= 0 && connect(fd, (struct sockaddr *)&addr, sizeof(addr)) &&
		    errno == ECONNREFUSED)
			unlink(addr.sun_path);
		if (fd >= 0)
			close(fd);
	}
	if (d)
		closedir(d);
}

static int listen_at(struct agent_listener *d, const char *dir)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	if ((size_t)snprintf(d->path, sizeof(d->path), "%s/s-%d-%.8s", dir, (int)getpid(),
			     d->key) >= sizeof(d->path))
		return -ENAMETOOLONG;
	sweep(dir);
	strcpy(addr.sun_path, d->path);
	d->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (d->fd < 0 || bind(d->fd, (struct sockaddr *)&addr, sizeof(addr)))
		return -errno;
	/* the program may run as another user: the key is what lets in */
	return chmod(d->path, 0666) || listen(d->fd, BACKLOG) ? -errno : 0;
}

int agent_listener_init(struct agent_listener *d)
{
	memset(d, 0, sizeof(*d));
	d->fd = -1;
	d->epoll = epoll_create1(EPOLL_CLOEXEC);
	return d->epoll < 0 ? -errno : 0;
}

int agent_listener_add(struct agent_listener *d, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(d->epoll, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

void agent_listener_remove(struct agent_listener *d, int fd)
{
	epoll_ctl(d->epoll, EPOLL_CTL_DEL, fd, NULL);
}

int agent_listener_open(struct agent_listener *d, const char *dir)
{
	int err;

	d->kins = agent_kins_open(d->key);
	err = d->kins ? make_key(d->key) : -ENOMEM;
	if (!err)
		err = listen_at(d, dir);
	if (err)
		msg_error("no socket for the agent in %s: %s", dir, strerror(-err));
	return err ? err : agent_listener_add(d, d->fd);
}

/* Returns 1: a connection was accepted (fd -1: it was closed again, as a stranger's); 0: none waits. */
static int accept_one(struct agent_listener *d, struct agent_accepted *g)
{
	struct ucred cred = { 0 };
	socklen_t len = sizeof(cred);
	enum agent_kin kin;

	g->fd = d->fd < 0 ? -1 : accept4(d->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	d->no_room = g->fd < 0 &&
		     (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM);
	if (g->fd < 0)
		return 0;
	if (getsockopt(g->fd, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		cred.pid = 0;
	kin = agent_kins_find(d->kins, cred.pid, cred.uid);
	g->pid = cred.pid;
	g->uid = cred.uid;
	g->neighbour = kin == AGENT_NEIGHBOUR;
	if (kin != AGENT_STRANGER)
		return 1;
	if (!d->strangers++) {
		d->stranger = cred.pid;
		d->stranger_uid = cred.uid;
	}
	close(g->fd);
	g->fd = -1;
	return 1;
}

static void mind_room(struct agent_listener *d)
{
	if (d->no_room == d->paused || d->fd < 0)
		return;
	if (d->no_room) {
		msg_warn("an agent cannot connect, because no file descriptor is left: raise the "
			 "limit of open files (`ulimit -n`)");
		agent_listener_remove(d, d->fd);
		d->paused = true;
	} else if (!agent_listener_add(d, d->fd)) {
		d->paused = false;
	}
}

void agent_listener_accept(struct agent_listener *d,
			   void (*come)(void *ctx, const struct agent_accepted *), void *ctx)
{
	struct agent_accepted g;

	for (int i = 0; i < ACCEPT_MAX && accept_one(d, &g); i++)
		if (g.fd >= 0)
			come(ctx, &g);
	mind_room(d);
}

void agent_listener_tell(const struct agent_listener *d)
{
	if (d->strangers)
		msg_note(d->strangers == 1
				 ? "%llu connection to the agents' socket was closed at once: its "
				   "process is not the program's (process %d of user %u)"
				 : "%llu connections to the agents' socket were closed at once: "
				   "their processes are not the program's (the first: process %d "
				   "of user %u)",
			 (unsigned long long)d->strangers, (int)d->stranger,
			 (unsigned int)d->stranger_uid);
}

void agent_listener_close(struct agent_listener *d)
{
	if (d->fd >= 0)
		close(d->fd);
	if (d->epoll >= 0)
		close(d->epoll);
	d->fd = d->epoll = -1;
	if (*d->path)
		unlink(d->path);
	agent_kins_close(d->kins);
	d->kins = NULL;
}
