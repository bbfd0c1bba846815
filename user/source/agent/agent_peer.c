/* SPDX-License-Identifier: BSD-2-Clause */
/* agent_peer.c - see agent_peer.h. Knows nothing of how the agent came into its process. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../event/holes/holes.h"
#include "../../util/msg.h"
#include "../../util/now.h"
#include "../host.h"
#include "agent_funcs.h"
#include "agent_inbox.h"
#include "agent_peer.h"
#include "agent_process.h"
#include "agent_tids.h"

#define MESSAGES 64		/* of one drain */
#define SAYS_AT_ALL 1000	/* an agent has a few words to say */
#define RECEIVE_BYTES (8 << 20) /* asked of the kernel, which may give less */

struct agent_peer {
	struct agent_conn conn;
	/* reads the connection; NULL until the greeting is known to be good */
	struct agent_inbox *inbox;
	enum peer_state state;
	bool ran, calls;
	const struct capture_plan *plan;
	struct agent_funcs *funcs;
	uint64_t since_ns;    /* device records are made */
	uint64_t withdrew_ns; /* ... until then; 0: they still are */
	uint32_t kinds;	      /* of these kinds: enum agent_kind */
	bool left;	      /* gone without a word, while it ran */
	bool lives;	      /* then: its process goes on, with the same program */
	uint64_t known_ns; /* until then calls and work are known: the end of the last one; 0: of none yet */
	uint64_t layout[HOST_LAYOUT];
	uint32_t cupti_version, driver_version;
	char *msg;	       /* MEET_MSG_MAX: the message at work */
	size_t size, at;       /* at: the next record in it; 0: no message */
	uint64_t since_msg_ns; /* how long the message at work had waited: since then */
};

struct agent_peer *agent_peer_open(int fd, const struct agent_conn_who *who,
				   const struct capture_plan *plan, bool calls)
{
	struct agent_peer *p = calloc(1, sizeof(*p));
	int bytes = RECEIVE_BYTES, err;

	if (!p) {
		close(fd);
		return NULL;
	}
	err = agent_conn_open(&p->conn, fd, who);
	p->plan = plan;
	p->calls = calls;
	host_layout(p->conn.pid, p->layout);
	p->msg = malloc(MEET_MSG_MAX);
	p->funcs = agent_funcs_open();
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	if (err || !p->msg || !p->funcs) {
		agent_peer_close(p);
		return NULL;
	}
	return p;
}

void agent_peer_close(struct agent_peer *p)
{
	if (!p)
		return;
	agent_inbox_close(p->inbox);
	agent_conn_close(&p->conn);
	agent_funcs_close(p->funcs);
	free(p->msg);
	free(p);
}

static void end_peer(struct agent_peer *p)
{
	p->state = PEER_ENDED;
	p->at = 0;
}

static void mistrust(struct agent_peer *p, const char *why)
{
	msg_warn("process %d: its agent sent invalid data (%s): the agent is ignored",
		 (int)p->conn.pid, why);
	end_peer(p);
}

/* ---- to the agent ---- */

static int agent_peer_put(void *ctx, const void *msg, size_t n)
{
	struct agent_peer *p = ctx;

	return agent_conn_put(&p->conn, msg, n, -1);
}

static int put_start(struct agent_peer *p)
{
	const struct plan_device *d = &p->plan->device;
	struct agent_start s = {
		.h = { .type = AGENT_START, .size = sizeof(s) },
		.version = AGENT_VERSION,
		.kinds = d->kinds,
		.flags = (d->graphs ? AGENT_S_GRAPHS : 0) | (p->calls ? AGENT_S_CALLS : 0) |
			 (p->plan->nested ? AGENT_S_NESTED : 0) |
			 (p->plan->enter ? AGENT_S_ENTER : 0),
		.clock = d->clock,
		.buffer_bytes = d->buffer_bytes,
		.buffers = d->buffers,
		.min_duration_ns = p->plan->filter.min_duration_ns,
	};
	int err = agent_peer_put(p, &s, sizeof(s));

	return err ? err
		   : agent_funcs_send(p->funcs, p->plan, p->calls, p->cupti_version, agent_peer_put,
				      p);
}

void agent_peer_stop(struct agent_peer *p)
{
	if (p->state != PEER_ENDED)
		agent_conn_stop(&p->conn, AGENT_STOP);
}

/* ---- from the agent ---- */

static void hello(struct agent_peer *p)
{
	struct agent_hello h;
	const char *wrong;
	char path[256];
	size_t n;

	memcpy(&h, p->msg, sizeof(h));
	wrong = agent_conn_greet(&p->conn, (const struct meet_hello *)p->msg, AGENT_MAGIC,
				 AGENT_VERSION);
	if (wrong) {
		mistrust(p, wrong);
		return;
	}
	p->cupti_version = h.cupti_version;
	p->driver_version = h.driver_version < 1000000 ? h.driver_version : 0;
	n = h.path_len < sizeof(path) - 1 ? h.path_len : sizeof(path) - 1;
	for (size_t i = 0; i < n; i++) {
		char c = p->msg[sizeof(h) + i];

		path[i] = c < ' ' || c == 0x7f ? '?' : c;
	}
	path[n] = '\0';
	/* a stranger gets no thread and no memory */
	p->inbox = agent_inbox_open(p->conn.fd, MEET_MSG_MAX, AGENT_INBOX_BYTES);
	if (!p->inbox) {
		msg_error("process %d: not enough memory for its agent: the agent is ignored",
			  (int)p->conn.pid);
		end_peer(p);
		return;
	}
	p->state = PEER_NAMES;
	if (h.cupti_version && p->driver_version)
		msg_verb("process %d: CUPTI version %u, %s; driver for CUDA %u.%u",
			 (int)p->conn.pid, h.cupti_version, path, p->driver_version / 1000,
			 p->driver_version % 1000 / 10);
	else if (h.cupti_version)
		msg_verb("process %d: CUPTI version %u, %s", (int)p->conn.pid, h.cupti_version,
			 path);
}

static void names(struct agent_peer *p)
{
	int r = p->state == PEER_NAMES ? agent_funcs_names(p->funcs, p->msg, p->size) : -EBADMSG;

	if (r < 0) {
		mistrust(p, "its list of functions");
		return;
	}
	if (!r)
		return;
	p->state = PEER_STARTING;
	p->since_ns = now_ns();
	if (put_start(p)) {
		msg_warn("process %d: its agent does not accept its settings: the agent is "
			 "ignored, and what its devices do is not shown",
			 (int)p->conn.pid);
		end_peer(p);
	}
	agent_funcs_close(p->funcs);
	p->funcs = NULL;
}

static void started(struct agent_peer *p)
{
	static const char *const clocks[] = { "not chosen", "CLOCK_MONOTONIC, read by CUPTI",
					      "CUPTI's own, its distance measured" };
	struct agent_started s;

	memcpy(&s, p->msg, sizeof(s));
	/* one that found no CUPTI never comes to the names */
	if (p->state != PEER_STARTING && !(p->state == PEER_NAMES && s.err)) {
		mistrust(p, "its start");
		return;
	}
	if (s.err) {
		msg_verb("process %d: the agent did not start: %s", (int)p->conn.pid,
			 strerror(s.err < 0 && s.err > -4096 ? -s.err : EIO));
		p->state = PEER_STARTING;
		return; /* BYE follows */
	}
	p->state = PEER_RUNNING;
	p->ran = true;
	p->kinds = p->plan->device.kinds & s.kinds;
	/* into a program that runs it comes while calls are made; one that is started waits for it */
	if (!p->conn.keyed)
		p->since_ns = now_ns();
	msg_verb("process %d: the agent has started; clock: %s; known faults of this CUPTI: 0x%x",
		 (int)p->conn.pid, s.clock < ARRAY_LEN(clocks) ? clocks[s.clock] : "?", s.faults);
}

static void bye(struct agent_peer *p, struct agent_totals *t)
{
	struct agent_bye b;

	memcpy(&b, p->msg, sizeof(b));
	msg_verb("process %d: the agent has left: %llu records, %llu found no room; CUPTI %s",
		 (int)p->conn.pid, (unsigned long long)b.records, (unsigned long long)b.unsent,
		 b.finalized ? "ended" : "not ended");
	losses_add(&t->lost[CT_LOSS_AGENT], b.left);
	if (b.err == -ETIMEDOUT)
		msg_warn("process %d: CUPTI did not end within its time: calls may stay a little "
			 "slower until the program ends",
			 (int)p->conn.pid);
	end_peer(p);
}

/* ---- records ---- */

/* What an agent itself can lose. Of other losses, as of calls that a probe saw, it knows nothing. */
static bool is_agents(uint32_t cause)
{
	return cause == CT_LOSS_DEVICE || cause == CT_LOSS_AGENT || cause == CT_LOSS_TIME ||
	       cause == CT_LOSS_DEPTH;
}

/* What an agent can say of what is not seen: it has left CUPTI to its program, or a child in the program's memory makes
 * calls. */
static bool is_its_hole(const struct ct_hole *hole)
{
	bool taken = hole->reason == CT_HOLE_PROFILER && hole->state == CT_HOLE_TAKEN;
	bool shares = hole->reason == CT_HOLE_SHARED_MEMORY && hole->state == CT_HOLE_UNSEEN;

	return (hole->layer == CT_HOLE_CALLS ? taken || shares
					     : taken && hole->layer == CT_HOLE_DEVICE) &&
	       !hole->text_len && !hole->comm[0] && !hole->ns_pid;
}

/* What an agent may tell; the rest is the kernel side's, or made here. */
static bool allowed(const struct agent_peer *p, const struct ct_hdr *h)
{
	switch (h->kind) {
	case CT_CALL:
	case CT_ENTER:
		/* Only of a call that began before the trace may the words be missing; an agent
		 * knows of no such call, and without the flag, which own() takes away, they
		 * would be read. */
		return p->calls && h->end_ns >= h->start_ns && !(h->flags & CT_F_BEFORE);
	case CT_NAME: return p->calls || ((const struct ct_name *)h)->handle & CT_HANDLE_DEVICE;
	case CT_LOST: return is_agents(((const struct ct_lost *)h)->cause);
	case CT_HOLE: return is_its_hole((const struct ct_hole *)h);
	default: return kind_is(h->kind, KIND_AGENT);
	}
}

/* A time of the process's clock as one of ours; 0: it is not known. */
static void as_ours(const struct agent_peer *p, __u64 *ns)
{
	*ns = *ns ? agent_process_ours(*ns, p->conn.ahead_ns) : 0;
}

/* Of calls that were made while the agent had withdrawn no device record is missing. */
static void own_hole(struct agent_peer *p, struct ct_hole *hole)
{
	bool open = hole->until_ns == CT_HOLE_OPEN;

	hole->h.flags = 0;
	if (!open)
		as_ours(p, &hole->until_ns);
	if (hole->layer != CT_HOLE_DEVICE)
		return;
	p->withdrew_ns = open ? hole->h.start_ns : 0;
	if (!open && hole->until_ns > p->since_ns)
		p->since_ns = hole->until_ns;
}

/* Its ids and times as ours, and nothing in it that only we may say. */
static void own(struct agent_peer *p, struct ct_hdr *h)
{
	as_ours(p, &h->start_ns);
	as_ours(p, &h->end_ns);
	if (h->kind == CT_KERNEL) {
		as_ours(p, &((struct ct_kernel *)h)->queued_ns);
		as_ours(p, &((struct ct_kernel *)h)->submitted_ns);
	}
	h->pid = (uint32_t)p->conn.pid;
	h->tid = agent_tids_find(p->conn.tids, h->tid);
	h->lost = 0;
	if (h->kind == CT_CALL || h->kind == CT_ENTER) {
		h->flags &= CT_F_UNFINISHED | CT_F_NO_RETURN | CT_F_PER_THREAD | CT_F_HIDDEN;
	} else if (h->kind == CT_HOLE) {
		own_hole(p, (struct ct_hole *)h);
	} else if (kind_is(h->kind, KIND_WORK)) {
		struct ct_work *w = (struct ct_work *)h;

		h->flags &= CT_F_NO_TIME | CT_F_INFERRED;
		w->func = CT_NO_FUNC;
		w->stack = 0;
		w->call_ns = 0;
	} else {
		h->flags &= h->kind == CT_CONTEXT ? CT_F_HIDDEN : 0;
	}
}

/* The records of the message at work, from p->at on. */
static int records(struct agent_peer *p, struct agent_totals *t, const bool *paused, emit_fn emit,
		   void *ctx)
{
	int err = 0;

	while (!err && p->at && p->at < p->size && !source_paused(paused)) {
		struct ct_hdr *h = (struct ct_hdr *)(p->msg + p->at);

		if (record_check(h, p->size - p->at)) {
			t->lost[CT_LOSS_READ]++;
			mistrust(p, "a record");
			return 0;
		}
		p->at += h->size;
		if (!allowed(p, h)) {
			t->lost[CT_LOSS_READ]++;
			continue;
		}
		own(p, h);
		if ((h->kind == CT_CALL || kind_is(h->kind, KIND_WORK)) && h->end_ns > p->known_ns)
			p->known_ns = h->end_ns;
		if (h->kind == CT_LOST)
			losses_add(&t->lost[((struct ct_lost *)h)->cause],
				   ((struct ct_lost *)h)->count);
		t->records++;
		err = emit(ctx, h);
	}
	if (p->at >= p->size)
		p->at = 0;
	return err;
}

/* Does the process go on, with the same program? A process that ends has no layout any more when its descriptors are
 * closed. */
static bool lives(const struct agent_peer *p)
{
	uint64_t now[HOST_LAYOUT];

	host_layout(p->conn.pid, now);
	return now[0] && !memcmp(now, p->layout, sizeof(now));
}

/* Receives one message. 1: one is there; 0: none yet, or it is over. */
static int receive(struct agent_peer *p)
{
	int fd = -1;
	ssize_t n;

	p->since_msg_ns = p->inbox ? agent_inbox_since(p->inbox) : UINT64_MAX;
	if (p->inbox)
		n = agent_inbox_take(p->inbox, p->msg);
	else
		n = agent_conn_get(&p->conn, p->msg, &fd);
	if (fd >= 0)
		close(fd); /* an agent sends none */
	if (n == -EAGAIN)
		return 0;
	if (n <= 0) {
		p->left = p->state == PEER_RUNNING;
		p->lives = p->left && lives(p);
		if (p->lives)
			msg_warn("process %d: the program has closed the connection of its agent, "
				 "or put another file in its place: its further %s not known",
				 (int)p->conn.pid,
				 !p->calls  ? "device work is"
				 : p->kinds ? "calls and device work are"
					    : "calls are");
		else if (p->left)
			msg_warn("process %d ended without its exit handlers (killed, _exit, or "
				 "exec): what its device did last may be missing",
				 (int)p->conn.pid);
		else if (!p->ran && !p->conn.says && (p->conn.greeted || !p->conn.keyed))
			msg_warn("process %d ended, or became another program, before its agent "
				 "had started: what its devices did is not shown",
				 (int)p->conn.pid);
		else
			msg_verb("process %d: the agent is gone without a word", (int)p->conn.pid);
		end_peer(p);
		return 0;
	}
	p->size = (size_t)n;
	return 1;
}

/* It is gone, and its process or program with it: what it had not sent is to be counted. */
static int tell_tail(const struct agent_peer *p, emit_fn emit, void *ctx)
{
	struct ct_tail t = {
		.h = { .size = sizeof(t),
		       .kind = CT_TAIL,
		       .pid = (uint32_t)p->conn.pid,
		       .start_ns = p->since_ns,
		       .end_ns = p->withdrew_ns ? p->withdrew_ns : now_ns() },
		.kinds = (p->kinds & AGENT_KERNEL ? 1u << CT_KERNEL : 0) |
			 (p->kinds & AGENT_MEMCPY ? 1u << CT_COPY : 0) |
			 (p->kinds & AGENT_MEMSET ? 1u << CT_SET : 0),
	};

	return t.kinds ? emit(ctx, &t.h) : 0;
}

/* It is gone, and its process goes on. What came after the last that is known may have been lost on the way. */
static int tell_gone(const struct agent_peer *p, emit_fn emit, void *ctx)
{
	const enum ct_hole_layer layers[] = { CT_HOLE_DEVICE, CT_HOLE_CALLS };
	const bool concerned[] = { p->kinds, p->calls };
	uint64_t now = now_ns(), from = p->known_ns ? p->known_ns : p->since_ns;
	int err = 0;

	for (int i = 0; i < 2 && !err; i++) {
		struct ct_hole hole = hole_of((uint32_t)p->conn.pid, layers[i], CT_HOLE_UNSEEN,
					      CT_HOLE_AGENT_GONE);

		hole_when(&hole, from && from < now ? from : now, CT_HOLE_OPEN);
		err = concerned[i] ? emit(ctx, &hole.h) : 0;
	}
	return err;
}

int agent_peer_drain(struct agent_peer *p, struct agent_totals *t, const bool *paused, emit_fn emit,
		     void *ctx)
{
	for (int i = 0; i < MESSAGES && p->state != PEER_ENDED; i++) {
		int type, err;

		if (p->at) {
			err = records(p, t, paused, emit, ctx);
			/* what is no record is dealt with in a pause too: the program waits for it */
			if (err || source_paused(paused))
				return err;
			continue;
		}
		if (!receive(p)) {
			err = p->left ? tell_tail(p, emit, ctx) : 0;
			return !err && p->lives ? tell_gone(p, emit, ctx) : err;
		}
		type = p->size > MEET_MSG_MAX ? -1 : agent_msg_check(p->msg, p->size);
		switch (type) {
		case AGENT_HELLO: hello(p); break;
		case AGENT_NAMES:
			names(p);
			/* what comes next may be records: who the process is is told before */
			if (p->state != PEER_NAMES)
				return p->state != PEER_ENDED;
			break;
		case AGENT_STARTED: started(p); break;
		case AGENT_SAY:
			if (p->conn.says > SAYS_AT_ALL)
				mistrust(p, "messages without an end");
			else if (p->state != PEER_HELLO || !p->conn.keyed)
				agent_conn_say(&p->conn, (const struct meet_say *)p->msg);
			break;
		case AGENT_BYE: bye(p, t); break;
		case AGENT_RECORDS:
			if (p->state == PEER_HELLO || p->state == PEER_NAMES)
				mistrust(p, "records before the start");
			else
				p->at = sizeof(struct meet_head);
			break;
		default: mistrust(p, "a message");
		}
	}
	return p->state != PEER_ENDED;
}

enum peer_state agent_peer_state(const struct agent_peer *p)
{
	return p->state;
}

bool agent_peer_failed(const struct agent_peer *p)
{
	return p->state == PEER_ENDED && !p->ran;
}

const struct agent_conn *agent_peer_conn(const struct agent_peer *p)
{
	return &p->conn;
}

bool agent_peer_settled(const struct agent_peer *p)
{
	/* one that cannot may have records, too, which say why */
	return p->state >= PEER_RUNNING || p->at;
}

uint64_t agent_peer_since(const struct agent_peer *p)
{
	return p->at ? p->since_msg_ns : p->inbox ? agent_inbox_since(p->inbox) : UINT64_MAX;
}

int agent_peer_fd(const struct agent_peer *p)
{
	return p->inbox ? agent_inbox_fd(p->inbox) : p->conn.fd;
}
