/* SPDX-License-Identifier: BSD-2-Clause */
/* hooks_peer.c - see hooks_peer.h. Knows nothing of how the hooks came into their process. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../api/api.h"
#include "../../util/msg.h"
#include "../../util/now.h"
#include "../agent/agent_process.h"
#include "../agent/agent_tids.h"
#include "../cgroup.h"
#include "../host.h"
#include "../python_seek.h"
#include "hooks_peer.h"

#define LISTS_MAX 32	     /* lists of one process about which something is said */
#define UNANSWERED_MAX 10000 /* lists of one process: who answers may map files without an end */
#define MESSAGES 64	     /* of one drain */
#define LAST_MESSAGES 4096   /* of a process that is gone: another one may hold its socket */
#define READS_MAX 100000     /* records that are waited for at a time */
#define RESULTS 16
#define LIMITED_BLOCKS \
	64 /* in a limited address space, rings become smaller until there are so many */
#define LIMITED_CELLS 1024u /* cells come in so many, which are whole pages */
#define RING_LEAST 65536
#define MEMORY_PART 64 /* of the memory that we may take, for one process */
#define BLOCK_COST 8192

struct hooks_peer {
	struct agent_conn conn;
	struct hooks_peer_opts o;
	enum hooks_peer_state state;
	bool ran, reported, announced, has_python;
	struct hooks_mapped *mapped;
	struct hooks_ring *ring;
	uint64_t started_ns;
	int lists, waiting;	 /* lists that it has not answered */
	uint64_t sent, answered; /* functions, and results for them */
	/* refused: by reason; told: of them, how many a warning has said */
	unsigned int on, refused[RESULTS], refused_reported[RESULTS];
	bool no_room_reported;
	struct hooks_holes *holes;
	struct hooks_birth birth; /* fd -1: none */
	bool bye, left;
	bool forbidden;		  /* to all its threads: system calls */
	unsigned int no_write;	  /* functions that were refused for that */
	unsigned int with_probes; /* functions that were given to probes */
	bool given;		  /* its calls are recorded by probes */
	bool gone;		  /* the process; `last` messages of it are read yet */
	int last;
	int reads;	    /* HOOKS_READ that have not been answered */
	uint32_t read_last; /* the newest of their numbers */
	struct hooks_life life;
	int filters_place; /* -1: the kernel does not tell it of its filters */
	struct hooks_muted_sent told;
	char msg[MEET_MSG_MAX];
	size_t size;
};

struct hooks_peer *hooks_peer_open(int fd, const struct hooks_peer_opts *o)
{
	struct hooks_peer *p = calloc(1, sizeof(*p));
	int err;

	if (!p) {
		close(fd);
		return NULL;
	}
	err = agent_conn_open(&p->conn, fd, &o->who);
	p->birth.fd = -1;
	p->filters_place = -1;
	p->o = *o;
	p->started_ns = agent_process_started_ns(o->who.pid);
	hooks_life_open(&p->life, o->who.pid);
	p->mapped = hooks_mapped_open();
	p->holes = hooks_holes_open((uint32_t)o->who.pid, p->conn.opened_ns, o->plan->owners);
	if (!err && p->mapped && p->holes)
		return p;
	hooks_peer_close(p);
	return NULL;
}

/* Why functions have no hooks: as engine.h numbers it. */
static const char *reason(const struct hooks_peer *p, int result)
{
	static const char rarer[] =
		"the memory where the jump would land is in use, which is rarer in "
		"programs that cudatrace starts";
	static const char *const texts[RESULTS] = {
		"",
		"there is no room for more hooks",
		"no code there",
		"the first bytes are not those of the file",
		"another tracer has a breakpoint there",
		"the first instruction is not understood",
		"the first instruction is a branch",
		"the first instruction cannot be moved so far",
		"shorter than five bytes",
		"a jump leads back to its beginning",
		"the memory where the jump would land is in use",
		"shadow stacks (CET) are in use",
		"the process may not write to its code",
		"",
		("so far nothing calls them through the dynamic loader, which hooks need on this "
		 "processor"),
		"the reason is not known",
	};

	if (result == HOOKS_ZONE && !hooks_peer_loaded(p))
		return rarer;
	return texts[result & (RESULTS - 1)];
}

/* Without these hooks calls of CUDA are not shown. Told once. */
static void tell_no_room(struct hooks_peer *p)
{
	unsigned int n = hooks_holes_no_room(p->holes);

	if (!n || p->no_room_reported)
		return;
	p->no_room_reported = true;
	if (n == 1)
		msg_warn("process %d: one of the functions for which there is no room is a "
			 "function of CUDA's runtime or driver: calls of CUDA are missing; ask for "
			 "fewer functions, or use --source=probes",
			 (int)p->conn.pid);
	else
		msg_warn("process %d: %u of the functions for which there is no room are functions "
			 "of CUDA's runtime or driver: calls of CUDA are missing; ask for fewer "
			 "functions, or use --source=probes",
			 (int)p->conn.pid, n);
}

/* Each reason is told once, when it is first met, and once more at the end if it was met again: a
 * program that loads many libraries would be told of without an end. */
static void tell_refused(struct hooks_peer *p, bool at_end)
{
	const char *by = p->o.plan->owners ? "--complete-calls" : "--source=probes";

	/* it is not decided yet, or is decided, that it gets probes */
	if (p->given || (p->o.plan->owners && p->o.opening))
		return;
	for (int i = 1; i < RESULTS; i++) {
		unsigned int n = p->refused[i];

		if (n == p->refused_reported[i] || (p->refused_reported[i] && !at_end))
			continue;
		if (n == 1)
			msg_warn("process %d: one function has no hook, and its calls are shown "
				 "by %s alone: %s",
				 (int)p->conn.pid, by, reason(p, i));
		else
			msg_warn("process %d: %u functions%s have no hooks, and their calls are "
				 "shown by %s alone: %s",
				 (int)p->conn.pid, n, p->refused_reported[i] ? " in all" : "", by,
				 reason(p, i));
		p->refused_reported[i] = n;
	}
	tell_no_room(p);
}

void hooks_peer_close(struct hooks_peer *p)
{
	if (!p)
		return;
	tell_refused(p, true);
	agent_conn_close(&p->conn);
	hooks_ring_bell(p->ring);
	if (p->birth.fd >= 0)
		close(p->birth.fd);
	filter_watch_remove(p->o.filters, p->life.pidfd, p->filters_place);
	hooks_life_close(&p->life);
	hooks_mapped_close(p->mapped);
	hooks_holes_close(p->holes);
	if (p->ring && p->o.reader)
		hooks_reader_remove(p->o.reader, p->ring);
	hooks_ring_close(p->ring);
	free(p);
}

static void mistrust(struct hooks_peer *p, const char *why)
{
	msg_warn("process %d: its hooks sent invalid data (%s): the hooks are ignored, and its "
		 "calls are not shown",
		 (int)p->conn.pid, why);
	hooks_holes_gone(p->holes, p->ran ? CT_HOLE_HOOKS_GONE : CT_HOLE_NO_HOOKS, now_ns());
	p->state = HOOKS_PEER_ENDED;
}

/* ---- to the process ---- */

static int put(void *ctx, const void *msg, size_t n)
{
	struct hooks_peer *p = ctx;

	int err;

	hooks_holes_sent(p->holes, msg, n);
	err = agent_conn_put(&p->conn, msg, n, -1);
	hooks_ring_bell(p->ring);
	return err;
}

/* What it still said says why; then its end of the socket is found to be closed. */
static bool has_hung_up(int err)
{
	return err == -EPIPE || err == -ECONNRESET;
}

static bool has_layers(const struct capture_plan *plan)
{
	for (int i = 0; i < api_nfuncs; i++)
		if (api_funcs[i].layer && !api_layer_reports(&api_funcs[i]) &&
		    plan_has(plan->capture, i))
			return true;
	return false;
}

static struct ct_config config_of(const struct capture_plan *plan)
{
	return (struct ct_config){
		.enter = plan->enter,
		.nested = plan->nested,
		.no_return = plan->no_return,
		.stacks = plan->stack != PLAN_STACK_NONE,
		.python = plan->stack && plan->python,
		.python_only = plan_python_only(plan),
		.count = plan->count,
		.count_by = plan->count_by,
		.hist = plan->hist,
		.sizes = plan->sizes,
		.memory = plan->memory,
		.layers = has_layers(plan),
		.stop_on_map = plan->cmd != NULL,
		.filter = plan->filter,
	};
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint32_t ring_bytes(const struct capture_plan *plan)
{
	uint32_t bytes = plan->ring_bytes / 4;

	return bytes < RING_LEAST ? RING_LEAST : bytes;
}

/* Whether it runs Python is looked for until it does: the interpreter may be loaded later. */
static int put_python(struct hooks_peer *p)
{
	struct hooks_python m = { .h = { .size = sizeof(m), .type = HOOKS_PYTHON } };

	if (!p->o.python || p->has_python ||
	    python_seek_look(p->o.python, p->conn.pid, &m.python) != 1)
		return 0;
	p->has_python = true;
	return put(p, &m, sizeof(m));
}

bool hooks_peer_mutes(const struct hooks_peer *p, int func)
{
	return hooks_mapped_mutes(p->mapped, func);
}

static int put_mute(struct hooks_peer *p, int number)
{
	struct hooks_mute m;

	hooks_muted_message(p->o.muted, number, p->mapped, &m);
	return put(p, &m, sizeof(m));
}

/* The functions of what was mapped since the last time. number: of the question that this answers. */
static int put_funcs(struct hooks_peer *p, uint32_t number)
{
	uint64_t lo, bytes, lo_now, bytes_now;
	int err = put_python(p), n;

	if (err)
		return err;
	hooks_mapped_runtime(p->mapped, &lo, &bytes);
	n = hooks_funcs_send(p->o.files, p->mapped, p->conn.pid, number, put, p);
	if (n < 0)
		return n;
	hooks_holes_silent(p->holes, CT_HOLE_INDIRECT, hooks_mapped_indirect(p->mapped));
	hooks_holes_silent(p->holes, CT_HOLE_SHARED_CODE, hooks_mapped_shared(p->mapped));
	hooks_holes_stripped(p->holes, hooks_mapped_stripped(p->mapped));
	p->sent += (unsigned int)n;
	p->waiting++;
	hooks_mapped_runtime(p->mapped, &lo_now, &bytes_now);
	for (int i = 0; p->o.muted && i < hooks_muted_n(p->o.muted) && !err &&
			(n || lo != lo_now || bytes != bytes_now);
	     i++)
		err = put_mute(p, i);
	return err;
}

/* Makes the area smaller: fewer blocks where this process may take little memory, for each block that the
 * process writes to costs it some (the page of its page table, and what is remembered of the block); and less
 * of all in a process whose address space is limited, which it needs itself. */
static void fit(const struct hooks_peer *p, struct hooks_ring_opts *o)
{
	uint64_t n = cgroup_memory_fit(o->threads, BLOCK_COST, MEMORY_PART), room,
		 each = o->cells ? HOOKS_LISTS * sizeof(uint64_t) : 0, cells;
	struct rlimit l;

	if (!prlimit(p->conn.pid, RLIMIT_AS, NULL, &l) && l.rlim_cur != RLIM_INFINITY) {
		room = l.rlim_cur / HOOKS_LIMIT_PART;
		if (o->cells) {
			room /= 2;
			cells = room / (sizeof(struct ct_entry) + sizeof(union hooks_extra)) /
				LIMITED_CELLS * LIMITED_CELLS;
			o->cells = (uint32_t)least(o->cells, cells ? cells : LIMITED_CELLS);
		}
		while (o->ring_bytes > RING_LEAST &&
		       room / (hooks_block_bytes(o->ring_bytes) + each) < LIMITED_BLOCKS)
			o->ring_bytes /= 2;
		n = least(n, room / (hooks_block_bytes(o->ring_bytes) + each));
	}
	o->threads = n ? (uint32_t)n : 1;
}

/* Our process id as the process knows it; 0: it does not, or that cannot be found out. */
static uint32_t our_pid(pid_t pid)
{
	struct stat ours, theirs;
	char path[48];

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)pid);
	if (stat("/proc/self/ns/pid", &ours) || stat(path, &theirs) ||
	    ours.st_ino != theirs.st_ino || ours.st_dev != theirs.st_dev)
		return 0;
	return (uint32_t)getpid();
}

/* Without this it looks once a second whether it has filters. */
static int put_filters(struct hooks_peer *p)
{
	struct hooks_filters f = { .h = { .size = sizeof(f), .type = HOOKS_FILTERS } };

	p->filters_place = filter_watch_add(p->o.filters, p->life.pidfd);
	if (p->filters_place < 0)
		return 0;
	f.place = (__u32)p->filters_place;
	return agent_conn_put(&p->conn, &f, sizeof(f), filter_watch_fd(p->o.filters));
}

static int put_start(struct hooks_peer *p)
{
	const struct capture_plan *plan = p->o.plan;
	struct hooks_ring_opts o = { .threads = HOOKS_THREADS_MAX,
				     .ring_bytes = ring_bytes(plan),
				     .cells = plan->count ? HOOKS_CELLS : 0,
				     .pid = p->conn.pid,
				     .tids = p->conn.tids,
				     .ahead_ns = p->conn.ahead_ns,
				     .clock = p->o.clock,
				     .layers = has_layers(plan) };
	struct hooks_start s = {
		.h = { .size = sizeof(s), .type = HOOKS_START },
		.version = HOOKS_VERSION,
		.flags = (p->o.clock ? HOOKS_S_TSC : 0u) | (plan->follow ? HOOKS_S_FOLLOW : 0u),
		.min_ticks = p->o.clock
				     ? hooks_clock_ticks(p->o.clock, plan->filter.min_duration_ns)
				     : plan->filter.min_duration_ns,
		.config = config_of(plan),
		.tracer = our_pid(p->conn.pid),
	};
	int fd, err;

	fit(p, &o);
	s.threads = o.threads;
	s.ring_bytes = o.ring_bytes;
	s.cells = o.cells;

	p->ring = hooks_ring_open(&o, &fd);
	if (!p->ring)
		return fd;
	hooks_ring_count_by(p->ring, p->o.count_by);
	hooks_ring_phase(p->ring, p->o.closing	 ? CT_PHASE_CLOSED
				  : p->o.opening ? CT_PHASE_OPENING
						 : CT_PHASE_RUNNING);
	err = agent_conn_put(&p->conn, &s, sizeof(s), fd);
	close(fd);
	if (!err)
		err = put_filters(p);
	if (!err)
		err = hooks_funcs_specs(plan, put, p);
	return err ? err : put_funcs(p, 0);
}

void hooks_peer_mute(struct hooks_peer *p, int number)
{
	/* before the start: it is told then; if it cannot be told, its calls are recorded as before */
	if (p->state == HOOKS_PEER_HOOKING || p->state == HOOKS_PEER_RUNNING)
		put_mute(p, number);
}

struct hooks_muted_sent *hooks_peer_sent(struct hooks_peer *p)
{
	return &p->told;
}

void hooks_peer_opened(struct hooks_peer *p)
{
	p->o.opening = false;
	tell_refused(p, false);
}

void hooks_peer_give(struct hooks_peer *p)
{
	p->given = true;
	hooks_peer_stop(p);
}

void hooks_peer_stop(struct hooks_peer *p)
{
	p->o.closing = true;
	if (p->state != HOOKS_PEER_ENDED)
		agent_conn_stop(&p->conn, HOOKS_STOP);
	hooks_ring_bell(p->ring);
}

/* ---- from the process ---- */

static void hello(struct hooks_peer *p)
{
	const char *wrong = agent_conn_greet(&p->conn, (const struct meet_hello *)p->msg,
					     HOOKS_MAGIC, HOOKS_VERSION);
	int err;

	if (wrong) {
		mistrust(p, wrong);
	} else {
		p->state = HOOKS_PEER_HOOKING;
		err = put_start(p);
		if (!err || has_hung_up(err))
			return;
		msg_warn("process %d: its hooks did not receive what to record (%s): its calls are "
			 "not shown",
			 (int)p->conn.pid, strerror(-err));
		p->state = HOOKS_PEER_ENDED;
	}
}

/* A thread of it did not wait for the hooks of what it had mapped, which are on only now. */
static void went_on(struct hooks_peer *p, uint32_t ms)
{
	uint64_t now = now_ns(), from = now - ms * 1000000ULL;
	struct host_task t = { .comm = "" };

	if (from > now || from < p->conn.opened_ns)
		from = p->conn.opened_ns;
	host_task(p->conn.pid, &t);
	hooks_holes_alone(p->holes, from, now, t.comm);
}

static void installed(struct hooks_peer *p)
{
	struct hooks_installed i;

	memcpy(&i, p->msg, sizeof(i));
	for (uint32_t k = 0; k < i.n; k++) {
		__s32 result;

		memcpy(&result, p->msg + sizeof(i) + k * sizeof(result), sizeof(result));
		p->no_write += result == HOOKS_NO_WRITE;
		if (hooks_holes_result(p->holes, result)) {
			p->with_probes += result != 0;
			continue;
		}
		if (result == HOOKS_PARTLY)
			continue;
		p->refused[(uint32_t)result < RESULTS ? result : RESULTS - 1]++;
	}
	hooks_holes_late(p->holes, i.late);
	if (i.on && i.alone_ms)
		went_on(p, i.alone_ms);
	if (i.n && p->lists++ < LISTS_MAX) {
		unsigned int on = i.on < i.n ? i.on : i.n;

		p->on += on;
		msg_verb("process %d: hooks are on; %u of %u functions", (int)p->conn.pid, on, i.n);
		tell_refused(p, false);
	}
	p->answered += i.n;
	p->waiting -= p->waiting > 0;
	if (p->answered >= p->sent)
		p->state = HOOKS_PEER_RUNNING;
	p->ran = true;
}

static void say(struct hooks_peer *p)
{
	p->reported |= agent_conn_say(&p->conn, (const struct meet_say *)p->msg);
}

/* The descriptor that came with the message, if it is what a child sends. */
static void child(struct hooks_peer *p, int fd)
{
	struct hooks_child c;
	int type = 0, domain = 0;
	socklen_t len = sizeof(int);

	memcpy(&c, p->msg, sizeof(c));
	if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) || type != SOCK_SEQPACKET ||
	    getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) || domain != AF_UNIX) {
		if (fd >= 0)
			close(fd);
		mistrust(p, "a child without a socket");
		return;
	}
	p->birth.fd = fd;
	p->birth.tid = agent_tids_find(p->conn.tids, c.tid);
	p->birth.ns = agent_process_ours(c.ns, p->conn.ahead_ns);
}

static void bye(struct hooks_peer *p)
{
	struct hooks_bye b;

	memcpy(&b, p->msg, sizeof(b));
	msg_verb("process %d: the hooks are off; %u KiB of their code stay mapped, idle",
		 (int)p->conn.pid, b.kept / 1024);
	if (!p->ran && !p->reported)
		msg_warn("process %d: its functions could not be hooked: its calls are not shown",
			 (int)p->conn.pid);
	p->bye = true;
	p->state = HOOKS_PEER_ENDED;
}

/* *fd: a descriptor that came with it, the caller's; else -1. */
static bool receive(struct hooks_peer *p, int *fd)
{
	ssize_t n = -EAGAIN;

	*fd = -1;
	if (!p->gone || p->last-- > 0)
		n = agent_conn_get(&p->conn, p->msg, fd);
	if (n > 0) {
		p->size = (size_t)n;
		return true;
	}
	/* an empty packet may bring one, too */
	if (*fd >= 0)
		close(*fd);
	if (n == -EAGAIN && !p->gone)
		return false;
	p->left = !p->gone && p->conn.greeted;
	p->state = HOOKS_PEER_ENDED;
	return false;
}

static uint32_t number_of(const struct hooks_peer *p)
{
	struct hooks_ask a;

	memcpy(&a, p->msg, sizeof(a));
	return a.number;
}

/* A thread of it waits for the functions of what it has mapped. */
static void mapped(struct hooks_peer *p)
{
	int err = p->waiting >= UNANSWERED_MAX ? -E2BIG : put_funcs(p, number_of(p));

	if (err && !has_hung_up(err))
		mistrust(p, "too much that was mapped");
}

/* Its thread of ours could not be asked to take the hooks off: it has ended, or sleeps from now on. */
static void look_at_filters(struct hooks_peer *p)
{
	if (p->forbidden || !p->ran || p->bye || p->o.closing ||
	    !filter_watch_all(p->o.filters, p->filters_place))
		return;
	p->forbidden = true;
	p->left = false;
	p->state = HOOKS_PEER_ENDED;
	hooks_ring_phase(p->ring, CT_PHASE_CLOSED);
	hooks_holes_gone(p->holes, CT_HOLE_HOOKS_GONE, now_ns());
	msg_warn("process %d restricts the system calls of all its threads (seccomp) by an "
		 "instruction of its own: its hooks do nothing from now on but take it some "
		 "nanoseconds a call, and stay in its code until it ends; its calls are not "
		 "shown from now on",
		 (int)p->conn.pid);
}

static void drain_messages(struct hooks_peer *p)
{
	bool looks = false;
	int fd;

	for (int i = 0;
	     i < MESSAGES && p->state != HOOKS_PEER_ENDED && p->birth.fd < 0 && receive(p, &fd);
	     i++) {
		int type = p->size > MEET_MSG_MAX ? -1 : hooks_msg_check(p->msg, p->size);

		if (type != HOOKS_HELLO && type != HOOKS_SAY && p->state == HOOKS_PEER_HELLO)
			type = -1;
		if (type != HOOKS_CHILD && fd >= 0)
			close(fd);
		switch (type) {
		case HOOKS_HELLO:
			hello(p);
			return; /* what the process is is told before its records */
		case HOOKS_INSTALLED: installed(p); break;
		case HOOKS_SAY:
			if (p->state != HOOKS_PEER_HELLO || !p->conn.keyed)
				say(p);
			break;
		case HOOKS_MAPPED:
			mapped(p);
			looks = false;
			break;
		case HOOKS_LOOK: looks = true; break;
		case HOOKS_READ:
			if (p->reads++ == READS_MAX)
				mistrust(p, "too much that is to be read now");
			if ((int32_t)(number_of(p) - p->read_last) > 0)
				p->read_last = number_of(p);
			break;
		case HOOKS_CHILD: child(p, fd); break;
		case HOOKS_BYE: bye(p); break;
		default: mistrust(p, "a message");
		}
	}
	if (looks && p->state != HOOKS_PEER_ENDED)
		hooks_funcs_ahead(p->o.files, p->mapped, p->conn.pid);
}

void hooks_peer_drain(struct hooks_peer *p)
{
	drain_messages(p);
	look_at_filters(p);
}

bool hooks_peer_birth(struct hooks_peer *p, struct hooks_birth *out)
{
	if (p->birth.fd < 0)
		return false;
	*out = p->birth;
	p->birth.fd = -1;
	return true;
}

void hooks_peer_gone(struct hooks_peer *p)
{
	if (!p->gone)
		p->last = LAST_MESSAGES;
	p->gone = true;
}

struct hooks_life *hooks_peer_life(struct hooks_peer *p)
{
	return &p->life;
}

void hooks_peer_was_read(struct hooks_peer *p)
{
	struct hooks_ask a = { .h = { .size = sizeof(a), .type = HOOKS_READ },
			       .number = p->read_last };

	if (!p->reads || p->state == HOOKS_PEER_ENDED)
		return;
	p->reads = 0;
	/* no room: they wait no longer than for a library */
	send(p->conn.fd, &a, sizeof(a), MSG_DONTWAIT | MSG_NOSIGNAL);
	hooks_ring_bell(p->ring);
}

bool hooks_peer_bye(const struct hooks_peer *p)
{
	return p->bye;
}

bool hooks_peer_left(const struct hooks_peer *p)
{
	return p->left;
}

const struct agent_conn *hooks_peer_conn(const struct hooks_peer *p)
{
	return &p->conn;
}

pid_t hooks_peer_pid(const struct hooks_peer *p)
{
	return p->conn.pid;
}

enum hooks_peer_state hooks_peer_state(const struct hooks_peer *p)
{
	return p->state;
}

uint64_t hooks_peer_started_ns(const struct hooks_peer *p)
{
	return p->started_ns;
}

bool hooks_peer_loaded(const struct hooks_peer *p)
{
	return p->conn.keyed;
}

bool hooks_peer_ran(const struct hooks_peer *p)
{
	return p->ran;
}

bool hooks_peer_unannounced(const struct hooks_peer *p)
{
	return !p->announced && p->state > HOOKS_PEER_HELLO;
}

void hooks_peer_announced(struct hooks_peer *p)
{
	p->announced = true;
}

struct hooks_ring *hooks_peer_ring(const struct hooks_peer *p)
{
	return p->ring;
}

bool hooks_peer_barred(const struct hooks_peer *p)
{
	return p->answered && p->no_write == p->answered;
}

unsigned int hooks_peer_with_probes(const struct hooks_peer *p)
{
	return p->with_probes;
}

unsigned int hooks_peer_on(const struct hooks_peer *p)
{
	return p->on;
}

uint64_t hooks_peer_unhooked(const struct hooks_peer *p)
{
	return hooks_holes_unhooked(p->holes);
}

bool hooks_peer_lacks(const struct hooks_peer *p)
{
	return hooks_holes_lacks(p->holes);
}

uint64_t hooks_peer_partly(const struct hooks_peer *p)
{
	return hooks_holes_partly(p->holes);
}

struct hooks_holes *hooks_peer_holes(const struct hooks_peer *p)
{
	return p->holes;
}
