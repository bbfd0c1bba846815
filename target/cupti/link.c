/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * link.c - the socket to cudatrace; agent_wire.h has the messages. Nothing here ever waits without a
 * limit, and the connection to a peer that does not follow the protocol is closed. Used by one
 * thread at a time: the one that starts the agent, then the agent's.
 */
#include "agent_state.h"
#include "../common/meet.h"

#include <stdarg.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define HOLES 64	     /* ids in a row without a name: there are no more */
#define SEND_BYTES (4 << 20) /* asked of the kernel, which may give less */

static struct held held = { .fd = -1 };
static char *batch;    /* MEET_MSG_MAX bytes: a message on its way */
static size_t pending; /* bytes of it that could not be sent yet */
static uint64_t sent;
static bool gone;
static _Atomic bool stop_asked;

/* ---- the beginning ---- */

int link_parse(const char *text, struct how *how)
{
	int err = meet_parse(text, &how->meet);

	if (!err && meet_word(text, "cupti", how->cupti, sizeof(how->cupti)) < 0)
		err = -EINVAL;
	return err;
}

int link_connect(const struct how *how, uint64_t until_ns)
{
	int bytes = SEND_BYTES, err;

	gone = false;
	atomic_store(&stop_asked, false);
	sent = pending = 0;
	if (!batch)
		batch = malloc(MEET_MSG_MAX);
	if (!batch)
		return -ENOMEM;
	err = meet_connect(&how->meet, until_ns, &held);
	if (!err)
		setsockopt(held.fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	return err;
}

void link_close(void)
{
	held_close(&held);
}

void link_forget(void)
{
	link_close();
	pending = 0;
}

int link_fd(void)
{
	if (!gone && held_fd(&held) < 0)
		gone = true; /* the program has closed it */
	return gone ? -1 : held.fd;
}

/* ---- sending ---- */

/* Sends one packet, and waits at most wait_ms. Returns 0, -EAGAIN, or -EPIPE if the peer is gone. */
static int put(const void *msg, size_t n, int wait_ms)
{
	int err = link_fd() < 0 ? -EPIPE : meet_put(&held, msg, n, wait_ms);

	gone = gone || err == -EPIPE;
	return err;
}

void link_say(enum meet_level level, const char *fmt, ...)
{
	va_list args;

	if (link_fd() < 0)
		return;
	va_start(args, fmt);
	gone = meet_say(&held, AGENT_SAY, level, fmt, args) == -EPIPE || gone;
	va_end(args);
}

static int put_names(void)
{
	struct agent_list *l = (struct agent_list *)batch;
	size_t at = sizeof(*l);

	*l = (struct agent_list){ .h.type = AGENT_NAMES };
	for (int domain = AGENT_DRIVER; domain <= AGENT_RUNTIME; domain++) {
		for (uint32_t id = 1, holes = 0; id < FUNCS_MAX && holes < HOLES; id++) {
			struct agent_name e = { .cbid = (uint16_t)id, .domain = (uint8_t)domain };
			const char *name = NULL;
			size_t len;
			int err;

			if (agent.cupti.cuptiGetCallbackName(domain, id, &name) || !name) {
				holes++;
				continue;
			}
			holes = 0;
			len = strlen(name);
			if (len > 255 || !len)
				continue;
			if (at + sizeof(e) + len + 4 > MEET_MSG_MAX) {
				l->h.size = (uint32_t)at;
				err = put(batch, at, MEET_WAIT_MS);
				if (err)
					return err;
				l->n = 0;
				at = sizeof(*l);
			}
			e.len = (uint8_t)len;
			memset(batch + at, 0, (sizeof(e) + len + 3) & ~(size_t)3);
			memcpy(batch + at, &e, sizeof(e));
			memcpy(batch + at + sizeof(e), name, len);
			at += (sizeof(e) + len + 3) & ~(size_t)3;
			l->n++;
		}
	}
	l->h.size = (uint32_t)at;
	l->flags = AGENT_LAST;
	return put(batch, at, MEET_WAIT_MS);
}

int link_hello(const struct how *how)
{
	struct agent_hello *h = (struct agent_hello *)batch;
	size_t len = strlen(agent.cupti.path);
	int err;

	*h = (struct agent_hello){
		.h = { .type = AGENT_HELLO, .size = (uint32_t)(sizeof(*h) + len) },
		.magic = AGENT_MAGIC,
		.version = AGENT_VERSION,
		.pid = agent.pid,
		.cupti_version = agent.cupti.version,
		.driver_version = agent.cupti.driver,
		.path_len = (uint32_t)len,
	};
	memcpy(h->key, how->meet.key, MEET_KEY);
	memcpy(h->path, agent.cupti.path, len);
	err = put(batch, h->h.size, MEET_WAIT_MS);
	return err || !agent.cupti.lib ? err : put_names();
}

int link_started(int err)
{
	struct agent_started s = {
		.h = { .type = AGENT_STARTED, .size = sizeof(s) },
		.err = err,
		.clock = agent.clock,
		.kinds = agent.kinds,
		.faults = agent.faults,
	};

	return put(&s, sizeof(s), MEET_WAIT_MS);
}

int link_send(int wait_ms)
{
	struct meet_head *h = (struct meet_head *)batch;

	for (;;) {
		int err;

		if (!pending) {
			pending = queue_take(batch + sizeof(*h), MEET_MSG_MAX - sizeof(*h));
			if (!pending)
				return 0;
			pending += sizeof(*h);
			*h = (struct meet_head){ .size = (uint32_t)pending, .type = AGENT_RECORDS };
		}
		err = put(batch, pending, wait_ms);
		if (err)
			return err;
		for (size_t at = sizeof(*h); at < pending; sent++)
			at += ((const struct ct_hdr *)(batch + at))->size;
		pending = 0;
	}
}

static uint64_t records_in(size_t at, size_t end)
{
	uint64_t n = 0;

	for (; at < end; at += ((const struct ct_hdr *)(batch + at))->size) {
		const struct ct_hdr *h = (const struct ct_hdr *)(batch + at);

		n += h->kind == CT_LOST ? ((const struct ct_lost *)h)->count : 1;
	}
	return n;
}

/* Drops and counts what could not be sent in time. */
static uint64_t drop_rest(void)
{
	size_t at = sizeof(struct meet_head), n;
	uint64_t left = pending ? records_in(at, pending) : 0;

	pending = 0;
	while ((n = queue_take(batch + at, MEET_MSG_MAX - at)))
		left += records_in(at, at + n);
	return left;
}

void link_bye(int err, int wait_ms)
{
	struct agent_bye b = {
		.h = { .type = AGENT_BYE, .size = sizeof(b) },
		.err = err,
		.finalized = atomic_load(&agent.finalized),
		.records = sent,
		.unsent = queue_lost(),
		.left = drop_rest(),
	};

	put(&b, sizeof(b), wait_ms);
}

/* ---- receiving ---- */

/* Reads the next message into `batch`. Returns its type; 0 if none has come; -errno if the peer is
 * gone or does not follow the protocol. */
static int get(int wait_ms, size_t *size)
{
	int type = -EPIPE, fd;

	if (link_fd() >= 0)
		type = meet_get(&held, batch, wait_ms, agent_msg_check, size, &fd);
	if (type > 0 && fd >= 0)
		close(fd); /* none is ever sent */
	gone = gone || type < 0;
	return type;
}

/* Checks that nothing is read beyond a call's record, nor beyond the longest parameters of any
 * function. */
static bool is_sane(const struct agent_call *call)
{
	if (call->spec.nwords > CT_MAX_WORDS || call->spec.nreads > CT_MAX_READS ||
	    call->spec.nentry > call->spec.nreads)
		return false;
	for (int i = 0; i < CT_MAX_WORDS; i++)
		if (call->words[i].off > AGENT_PARAMS_MAX - 8) /* 8: the widest word */
			return false;
	return true;
}

static int take_funcs(size_t size, bool *last)
{
	struct agent_list l;
	size_t at = sizeof(l);

	memcpy(&l, batch, sizeof(l));
	*last = l.flags & AGENT_LAST;
	for (uint32_t i = 0; i < l.n && i < AGENT_FUNCS_MAX; i++) {
		const struct agent_func *e = agent_func_at(batch, size, &at);
		struct agent_call call;
		struct func *f;

		if (!e || (e->domain != AGENT_DRIVER && e->domain != AGENT_RUNTIME))
			return -EPROTO;
		if (e->cbid >= FUNCS_MAX)
			continue;
		f = &agent.funcs[e->domain][e->cbid];
		f->row = e->row;
		f->flags = e->flags & (uint8_t)~AGENT_F_CALL;
		if (!(e->flags & AGENT_F_CALL))
			continue;
		/* it is checked before it is stored, because a call of an earlier attach may still
		 * be inside a callback and read it */
		memcpy(&call, e + 1, sizeof(call));
		if (!is_sane(&call))
			return -EPROTO;
		if (!f->call)
			f->call = malloc(sizeof(*f->call));
		if (!f->call)
			return -ENOMEM;
		*f->call = call;
		f->flags |= AGENT_F_CALL;
	}
	return 0;
}

int link_begin(void)
{
	uint64_t until = clock_now() + MEET_WAIT_MS * 1000000ULL;
	bool started = false, last = false;
	size_t size = 0;

	for (int d = AGENT_DRIVER; d <= AGENT_RUNTIME; d++) {
		if (!agent.funcs[d])
			agent.funcs[d] = calloc(FUNCS_MAX, sizeof(struct func));
		if (!agent.funcs[d])
			return -ENOMEM;
		for (int i = 0; i < FUNCS_MAX; i++)
			agent.funcs[d][i].flags = 0;
	}
	while (!started || !last) {
		int type = get(100, &size), err;

		if (type == 0 && clock_now() < until)
			continue;
		if (type <= 0)
			return type ? type : -ETIMEDOUT;
		if (type == AGENT_START) {
			memcpy(&agent.want, batch, sizeof(agent.want));
			if (agent.want.version != AGENT_VERSION)
				return -EPROTO;
			started = true;
		} else if (type == AGENT_FUNCS) {
			err = take_funcs(size, &last);
			if (err)
				return err;
		} else {
			return type == AGENT_STOP ? -ECANCELED : -EPROTO;
		}
	}
	return 0;
}

int link_asked(void)
{
	char packet[sizeof(struct agent_start)];
	struct meet_head h;
	ssize_t n;
	int fd;

	if (atomic_load(&stop_asked)) {
		shutdown(link_fd(), SHUT_RDWR);
		gone = true;
	}
	/* not into `batch`, which may hold records that are not sent yet */
	while ((fd = link_fd()) >= 0) {
		n = recv(fd, packet, sizeof(packet), MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return 0;
		if (n < (ssize_t)sizeof(h)) {
			gone = true;
			break;
		}
		memcpy(&h, packet, sizeof(h));
		if (h.type == AGENT_STOP)
			return 1;
	}
	return 1;
}

void link_stop(void)
{
	atomic_store(&stop_asked, true);
	agent_wake();
}
