/* SPDX-License-Identifier: BSD-2-Clause */
/* along.c - see along.h. */
#include "compat.h"

#include "along.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "meet.h"
#include "fd_table.h"

#define BACKLOG 64
#define TRIES 100    /* of a millisecond: while others have filled the backlog */
#define TAKE_MS 5000 /* how long the one thread waits for the other */
#define SLICE_MS 20
#define NAME 6 /* bytes of an address: a zero and five digits */

/* ---- sockets ---- */

static int bind_anywhere(int s, uint8_t address[ALONG_ADDRESS])
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	socklen_t len = sizeof(at);

	if (bind(s, (struct sockaddr *)&at, sizeof(sa_family_t)) ||
	    getsockname(s, (struct sockaddr *)&at, &len))
		return -errno;
	if (len != sizeof(sa_family_t) + NAME)
		return -EPROTO;
	memset(address, 0, ALONG_ADDRESS);
	memcpy(address, at.sun_path, NAME);
	return 0;
}

int along_socket(uint8_t address[ALONG_ADDRESS])
{
	int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), err;

	if (s < 0)
		return -errno;
	err = bind_anywhere(s, address);
	if (!err)
		return s;
	close(s);
	return err;
}

int along_listen(uint8_t address[ALONG_ADDRESS])
{
	int s = along_socket(address), err;

	if (s < 0 || !listen(s, BACKLOG))
		return s;
	err = -errno;
	close(s);
	return err;
}

int along_accept(int s, uint8_t address[ALONG_ADDRESS])
{
	struct sockaddr_un at;
	socklen_t len = sizeof(at);
	int fd = accept4(s, (struct sockaddr *)&at, &len, SOCK_CLOEXEC);

	if (fd < 0)
		return errno == EINTR || errno == ECONNABORTED ? -EAGAIN : -errno;
	memset(address, 0, ALONG_ADDRESS);
	if (len == sizeof(sa_family_t) + NAME)
		memcpy(address, at.sun_path, NAME);
	return fd;
}

int along_connect(int s, const uint8_t address[ALONG_ADDRESS])
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int err = -EAGAIN;

	memcpy(to.sun_path, address, NAME);
	for (int i = 0; i < TRIES && err == -EAGAIN; i++) {
		if (i)
			poll(NULL, 0, 1);
		err = connect(s, (struct sockaddr *)&to, sizeof(sa_family_t) + NAME) ? -errno : 0;
	}
	return err;
}

bool along_is_own(int s)
{
	struct ucred cred = { 0 };
	socklen_t len = sizeof(cred);

	return !getsockopt(s, SOL_SOCKET, SO_PEERCRED, &cred, &len) && cred.pid == getpid();
}

/* ---- descriptors ---- */

union fds_room {
	struct cmsghdr head;
	char room[CMSG_SPACE(ALONG_FDS * sizeof(int))];
};

int along_send(int to, const int fds[ALONG_FDS])
{
	union fds_room control = { .head = { .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
	uint8_t which = 0;
	struct iovec io = { &which, 1 };
	struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1, .msg_control = &control };
	size_t n = 0;

	for (int i = 0; i < ALONG_FDS; i++) {
		if (fds[i] < 0)
			continue;
		memcpy(CMSG_DATA(&control.head) + n++ * sizeof(int), &fds[i], sizeof(int));
		which |= (uint8_t)(1u << i);
	}
	control.head.cmsg_len = CMSG_LEN(n * sizeof(int));
	m.msg_controllen = n ? CMSG_SPACE(n * sizeof(int)) : 0;
	return sendmsg(to, &m, MSG_NOSIGNAL | MSG_DONTWAIT) == 1 ? 0 : -errno;
}

int along_receive(int from, int fds[ALONG_FDS], int wait_ms)
{
	union fds_room control = { .head = { 0 } };
	uint8_t which = 0;
	struct iovec io = { &which, 1 };
	struct msghdr m = { .msg_iov = &io,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	struct pollfd p = { .fd = from, .events = POLLIN };
	const struct cmsghdr *c;
	size_t n = 0, got;

	for (int i = 0; i < ALONG_FDS; i++)
		fds[i] = -1;
	poll(&p, 1, wait_ms);
	if (recvmsg(from, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != 1)
		return -EPIPE;
	c = CMSG_FIRSTHDR(&m);
	if (!which)
		return 0;
	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
		return -EPIPE;
	got = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	for (int i = 0; i < ALONG_FDS && n < got; i++)
		if (which & 1u << i)
			memcpy(&fds[i], CMSG_DATA(c) + n++ * sizeof(int), sizeof(int));
	for (int rest; n < got; n++) {
		memcpy(&rest, CMSG_DATA(c) + n * sizeof(rest), sizeof(rest));
		close(rest);
	}
	return 0;
}

/* ---- a thread of ours ---- */

enum { NOT_TAKEN, BEING_TAKEN, TAKEN, NOT_TO_BE_TAKEN };

static bool turn(struct along *a, uint32_t from, uint32_t to)
{
	return __atomic_compare_exchange_n(&a->taking, &from, to, 0, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
}

/* Returns whether the thread has come and was given them. */
static bool give(int s, const int fds[ALONG_FDS])
{
	uint8_t unused[ALONG_ADDRESS];
	int to = along_accept(s, unused);
	bool given = to >= 0 && along_is_own(to) && !along_send(to, fds);

	if (to >= 0)
		close(to);
	return given;
}

/* s: the socket at which the thread gets them; below 0: it takes them itself. */
static int wait_for_it(struct along *a, int s, const int fds[ALONG_FDS])
{
	struct timespec wait = { .tv_nsec = SLICE_MS * 1000000L };
	struct pollfd p = { .fd = s, .events = POLLIN };
	bool given = s < 0;
	uint32_t is;

	for (int ms = 0; (is = __atomic_load_n(&a->taking, __ATOMIC_ACQUIRE)) < TAKEN;
	     ms += SLICE_MS) {
		if (ms >= TAKE_MS && turn(a, NOT_TAKEN, NOT_TO_BE_TAKEN))
			continue;
		if (given)
			syscall(SYS_futex, &a->taking, FUTEX_WAIT_PRIVATE, is, &wait, NULL, 0);
		else if (poll(&p, 1, SLICE_MS) > 0)
			given = give(s, fds);
	}
	return is == TAKEN ? 0 : -EAGAIN;
}

int along_begin(struct along *a, void *(*run)(void *), void *arg, const int fds[ALONG_FDS])
{
	int s, err, cancel;

	/* the program may want to cancel the calling thread; this must be finished first */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	s = along_listen(a->address);
	a->gives = s >= 0;
	a->own = false;
	__atomic_store_n(&a->taking, NOT_TAKEN, __ATOMIC_RELEASE);
	err = meet_thread(run, arg);
	if (!err)
		err = wait_for_it(a, s, fds);
	if (s >= 0)
		close(s);
	pthread_setcancelstate(cancel, NULL);
	return err;
}

static int come_for_them(const struct along *a, int fds[ALONG_FDS])
{
	uint8_t unused[ALONG_ADDRESS];
	int s = along_socket(unused), err;

	if (s < 0)
		return s;
	err = along_connect(s, a->address);
	if (!err)
		err = along_is_own(s) ? along_receive(s, fds, TAKE_MS) : -EPERM;
	close(s);
	return err;
}

static void set_taking(struct along *a, uint32_t from, uint32_t to)
{
	turn(a, from, to);
	syscall(SYS_futex, &a->taking, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

int along_take(struct along *a, int fds[ALONG_FDS])
{
	bool own = a->gives && table_empty();
	int err = 0;

	if (own)
		err = come_for_them(a, fds);
	else
		own = table_copy(fds, ALONG_FDS);
	if (!err && !turn(a, NOT_TAKEN, BEING_TAKEN))
		err = -ETIMEDOUT;
	if (err)
		set_taking(a, NOT_TAKEN, NOT_TO_BE_TAKEN);
	else
		a->own = own;
	return err;
}

void along_taken(struct along *a)
{
	set_taking(a, BEING_TAKEN, TAKEN);
}
