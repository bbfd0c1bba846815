/* SPDX-License-Identifier: BSD-2-Clause */
/* listener.c - see listener.h. */
#include "../common/compat.h"

#include "listener.h"

#include <linux/futex.h>
#include <poll.h>
#include <time.h>

#include "../common/along.h"
#include "../common/meet.h"
#include "../common/sys.h"

#define SLICE_MS 20
#define STALE_NS 5000000000ULL /* who waited has been killed meanwhile */

/* CLAIMED: the thread of the hooks is about to answer; LEFT: the same, and nobody waits any more. */
enum listener_state { FREE, RESERVED, FILLING, WAITING, CLAIMED, LEFT, DONE };

/* ---- the bell ---- */

void bell_ring(struct hooks_area *a)
{
	__atomic_add_fetch(&a->bell, 1, __ATOMIC_SEQ_CST);
	sys_call(SYS_futex, (long)&a->bell, FUTEX_WAKE, 1 << 30, 0, 0, 0);
}

__u32 bell_look(const struct hooks_area *a)
{
	return __atomic_load_n(&a->bell, __ATOMIC_SEQ_CST);
}

void bell_wait(struct hooks_area *a, __u32 looked, int wait_ms)
{
	struct timespec wait = { .tv_sec = wait_ms / 1000, .tv_nsec = wait_ms % 1000 * 1000000L };

	sys_call(SYS_futex, (long)&a->bell, FUTEX_WAIT, looked, (long)&wait, 0, 0);
}

/* ---- who waits ---- */

static bool turn(struct hooks_listener *d, __u32 from, __u32 to)
{
	return __atomic_compare_exchange_n(&d->state, &from, to, 0, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
}

static __u32 state_of(const struct hooks_listener *d)
{
	return __atomic_load_n(&d->state, __ATOMIC_ACQUIRE);
}

/* Takes any listener that is free, or whose opener has been killed. */
static struct hooks_listener *take_any(struct hooks_area *a, __u64 now, __u32 to)
{
	for (int i = 0; i < HOOKS_LISTENERS; i++) {
		struct hooks_listener *d = &a->listeners[i];
		__u32 is = state_of(d);

		if ((is == FREE || (is == DONE && now - d->ns > STALE_NS)) && turn(d, is, to))
			return d;
	}
	return NULL;
}

static struct hooks_listener *take_listener(struct hooks_area *a, struct hooks_listener *reserved,
					    const struct hooks_listener *who)
{
	struct hooks_listener *d = reserved;

	if (!d || !turn(d, RESERVED, FILLING))
		d = take_any(a, who->ns, FILLING);
	if (!d)
		return NULL;
	d->kind = who->kind;
	d->pid = who->pid;
	d->tid = who->tid;
	d->ns = who->ns;
	d->err = 0;
	memset(d->connector, 0, sizeof(d->connector));
	return d;
}

static void wait_at(struct hooks_area *a, struct hooks_listener *d)
{
	__atomic_store_n(&d->state, WAITING, __ATOMIC_RELEASE);
	bell_ring(a);
}

static void leave_listener(struct hooks_listener *d)
{
	if (!turn(d, WAITING, FREE) && !turn(d, CLAIMED, LEFT))
		turn(d, DONE, FREE);
}

/* Returns the connection if the thread of the hooks has made it; -EAGAIN: nobody has. */
static int accept_one(int s, const struct hooks_listener *d)
{
	__u8 from[ALONG_ADDRESS];
	int fd = along_accept(s, from);

	if (fd < 0 || !memcmp(from, d->connector, sizeof(from)))
		return fd;
	close(fd);
	return -EAGAIN;
}

static int wait_for_connection(const struct hooks_area *a, int s, const struct hooks_listener *d,
			       int wait_ms)
{
	uint64_t until = meet_now() + (uint64_t)wait_ms * 1000000;
	struct pollfd p = { .fd = s, .events = POLLIN };
	int fd = -EAGAIN;

	while (fd == -EAGAIN && meet_now() < until) {
		if (state_of(d) == DONE && d->err)
			return d->err;
		if (__atomic_load_n(&a->listeners_closed, __ATOMIC_ACQUIRE))
			return -EPIPE;
		poll(&p, 1, SLICE_MS);
		fd = accept_one(s, d);
	}
	return fd == -EAGAIN ? -ETIMEDOUT : fd;
}

/* Waits for the connection on a socket that listens already. */
static int wait_in(struct hooks_area *a, int s, struct hooks_listener *d, int wait_ms)
{
	int fd;

	if (s < 0)
		d->err = s; /* for nobody: only so that it is said */
	wait_at(a, d);
	if (s < 0)
		return s;
	fd = wait_for_connection(a, s, d, wait_ms);
	leave_listener(d);
	return fd;
}

int listener_open(struct hooks_area *a, struct hooks_listener *reserved,
		  const struct hooks_listener *who, int wait_ms)
{
	struct hooks_listener *d = take_listener(a, reserved, who);
	int s, fd;

	if (!d)
		return -EAGAIN;
	s = along_listen(d->address);
	fd = wait_in(a, s, d, wait_ms);
	if (s >= 0)
		close(s);
	return fd;
}

/* ---- before and after a fork ---- */

struct hooks_listener *listener_reserve(struct hooks_area *a)
{
	return take_any(a, meet_now(), RESERVED);
}

bool listener_is_reserved(const struct hooks_listener *d)
{
	return state_of(d) == RESERVED;
}

bool listener_is_answered(const struct hooks_listener *d)
{
	__u32 state = state_of(d);

	return state == DONE || state == FREE;
}

void listener_release(struct hooks_listener *d)
{
	turn(d, RESERVED, FREE);
}

/* ---- the thread of the hooks ---- */

struct hooks_listener *listener_next(struct hooks_area *a)
{
	for (int i = 0; i < HOOKS_LISTENERS; i++)
		if (state_of(&a->listeners[i]) == WAITING &&
		    turn(&a->listeners[i], WAITING, CLAIMED))
			return &a->listeners[i];
	return NULL;
}

void listeners_close(struct hooks_area *a)
{
	struct hooks_listener *d;

	__atomic_store_n(&a->listeners_closed, 1, __ATOMIC_SEQ_CST);
	while ((d = listener_next(a)))
		listener_done(d, -EPIPE);
}

int listener_connect(struct hooks_listener *d)
{
	__u8 address[8];
	int s = along_socket(address), err;

	if (s < 0)
		return s;
	memcpy(d->connector, address, sizeof(address));
	err = along_connect(s, d->address);
	if (!err)
		return s;
	close(s);
	return err;
}

void listener_done(struct hooks_listener *d, int err)
{
	if (d->err) { /* nobody waits */
		__atomic_store_n(&d->state, FREE, __ATOMIC_RELEASE);
		return;
	}
	d->err = err;
	if (!turn(d, CLAIMED, DONE))
		turn(d, LEFT, FREE);
}
