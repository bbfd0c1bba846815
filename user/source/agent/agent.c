/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * agent.c - see agent.h.
 *
 * One socket is listened on, next to the agent's file; the programs' environment names it, with
 * a key that only they have. What the loop waits on is one epoll descriptor, since agents come
 * and go. Anybody may connect: a process that can have no agent of ours (agent_kin) is shut out at once and counted, and none of the others can take all the room. The environment of a program that is
 * started is the only thing that is changed in it, and never a value that the user set.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../util/self/caps.h"
#include "../../util/io/safe_open.h"
#include "../../util/table/array.h"
#include "../../util/msg.h"
#include "../../util/now.h"
#include "agent.h"
#include "agent_child.h"
#include "agent_conn.h"
#include "agent_listener.h"
#include "agent_env.h"
#include "agent_file.h"
#include "agent_peer.h"
#include "agent_refused.h"
#include "agent_process.h"

#define STOP_NS 1000000000ULL /* for all agents to leave, if nobody else waits for them */
#define DRAIN_NS 20000000ULL  /* the longest drain() before that */

struct agent_source {
	const struct capture_plan *plan;
	bool calls; /* the agents have the calls too: there is no other source */
	struct agent_listener listener;
	struct agent_env env;
	struct agent_child cmd;
	struct agent_peer **peers;
	int npeers;
	struct agent_totals totals;
	struct agent_counts counts;
	struct agent_refused places; /* processes that found none */
	uint64_t stopped_ns, started_ns;
	bool reported;
};

/* ---- the environment ---- */

/* " cupti=PATH", with the path made absolute: the program may be anywhere. */
static int cupti_word(const struct capture_plan *plan, char *out, size_t size)
{
	char *full, escaped[1600];
	int err;

	out[0] = '\0';
	if (!plan->device.cupti)
		return 0;
	full = realpath(plan->device.cupti, NULL);
	err = full ? agent_env_escape(full, escaped, sizeof(escaped)) : -errno;
	free(full);
	if (!err && (size_t)snprintf(out, size, " cupti=%s", escaped) >= size)
		err = -ENAMETOOLONG;
	return err;
}

int agent_how(const struct capture_plan *plan, int fd, char *buf, size_t size)
{
	char cupti[1700], number[16] = "N";
	int err = cupti_word(plan, cupti, sizeof(cupti));

	if (fd >= 0)
		snprintf(number, sizeof(number), "%d", fd);
	if (!err && (size_t)snprintf(buf, size, "v1 fd=%s%s", number, cupti) >= size)
		err = -ENAMETOOLONG;
	return err;
}

static int make_env(struct agent_source *a, struct capture_plan *plan, const char *file)
{
	char path[400], cupti[1700];
	int err = agent_env_escape(a->listener.path, path, sizeof(path));

	if (!err)
		err = cupti_word(plan, cupti, sizeof(cupti));
	if (err) {
		msg_error("--cupti: %s: %s", plan->device.cupti, strerror(-err));
		return err;
	}
	err = agent_env_add(&a->env, AGENT_INJECTION_ENV "=%s", file);
	if (!err)
		err = agent_env_add(&a->env, AGENT_ENV "=v1 path=%s key=%s%s", path,
				    a->listener.key, cupti);
	if (plan->device.kinds & AGENT_NVTX && agent_env_value(plan->env, AGENT_NVTX_ENV))
		msg_warn(AGENT_NVTX_ENV " is set already: NVTX ranges go there, and are not shown");
	else if (plan->device.kinds & AGENT_NVTX && !err)
		err = agent_env_add(&a->env, AGENT_NVTX_ENV "=%s", file);
	return err ? err : agent_env_set(&a->env, plan);
}

/* A peer waits on its socket first, then on its inbox. False, after a message: it cannot. */
static bool change_fd(struct agent_source *a, int from, const struct agent_peer *p)
{
	int to = agent_peer_fd(p);

	if (from == to)
		return true;
	agent_listener_remove(&a->listener, from);
	if (!agent_listener_add(&a->listener, to))
		return true;
	msg_error("process %d: not enough memory for its agent: the agent is ignored",
		  (int)agent_peer_conn(p)->pid);
	return false;
}

static int prepare(struct source *s, struct capture_plan *plan)
{
	struct agent_source *a = calloc(1, sizeof(*a));
	const char *theirs = agent_env_value(plan->env, AGENT_INJECTION_ENV);
	char file[300], dir[200];
	int err;

	if (!a)
		return -ENOMEM;
	s->priv = a;
	a->cmd.child.fd = -1;
	a->cmd.status = -1;
	a->calls = plan->calls_by_agent;
	err = agent_listener_init(&a->listener);
	if (err || !plan->cmd)
		return err; /* agents come by agent_connect_fd() */
	if (theirs && *theirs) {
		msg_error(AGENT_INJECTION_ENV " is set already, to %s: only one tool at a time can "
					      "come into a program that way; "
					      "unset it, or leave out %s",
			  theirs, a->calls ? "--source=cupti" : "--gpu");
		return -EEXIST;
	}
	err = agent_file_path(file, sizeof(file), dir, sizeof(dir));
	if (err)
		return err;
	err = agent_listener_open(&a->listener, dir);
	return err ? err : make_env(a, plan, file);
}

/* ---- agents ---- */

static void drop(void *ctx, int i)
{
	struct agent_source *a = ctx;
	bool greeted = agent_peer_conn(a->peers[i])->greeted;

	a->counts.ended += greeted;
	a->counts.failed += greeted && agent_peer_failed(a->peers[i]);
	agent_peer_close(a->peers[i]);
	a->peers[i] = a->peers[--a->npeers];
}

static const struct agent_conn *conn_at(const void *ctx, int i)
{
	const struct agent_source *a = ctx;

	return agent_peer_conn(a->peers[i]);
}

static int add_peer(struct agent_source *a, int fd, const struct agent_conn_who *who)
{
	struct agent_peer *p;
	int err;

	if (!agent_refused_room(&a->places, (struct agent_conns){ a->npeers, conn_at, a }, who,
				drop, a)) {
		msg_warn("the agent of process %d finds no place, because the processes of user %u "
			 "have as many as one user may have: what its devices do is not shown",
			 (int)who->pid, (unsigned int)who->uid);
		close(fd);
		return -EMFILE;
	}
	if (!array_room(a->peers, a->npeers)) {
		close(fd);
		return -ENOMEM;
	}
	p = agent_peer_open(fd, who, a->plan, a->calls);
	err = p ? agent_listener_add(&a->listener, agent_peer_fd(p)) : -ENOMEM;
	if (err) {
		msg_warn("process %d: its agent's messages cannot be received (%s): what its "
			 "devices do is not shown",
			 (int)who->pid, strerror(-err));
		agent_peer_close(p);
		return err;
	}
	a->peers[a->npeers++] = p;
	if (a->stopped_ns)
		agent_peer_stop(p);
	return 0;
}

int agent_connect_fd(struct source *s, int fd, pid_t pid)
{
	return add_peer(s->priv, fd, &(struct agent_conn_who){ .pid = pid });
}

void agent_counts(const struct source *s, struct agent_counts *out)
{
	const struct agent_source *a = s->priv;

	*out = a->counts;
	out->live = (unsigned int)a->npeers;
}

static void come(void *ctx, const struct agent_accepted *g)
{
	struct agent_source *a = ctx;

	add_peer(a, g->fd,
		 &(struct agent_conn_who){ .pid = g->pid,
					   .key = a->listener.key,
					   .neighbour = g->neighbour,
					   .uid = g->uid });
}

static void accept_all(struct agent_source *a)
{
	agent_listener_accept(&a->listener, come, a);
	a->counts.strangers = a->listener.strangers;
}

/* ---- the source's functions ---- */

/*
 * As the only source there are no probes: what is left to do is to look at the processes, to end
 * them, and, with -p, to put the agent into them. The program was forked before, with the
 * privileges that it is to have.
 */
static void give_up(const struct capture_plan *plan)
{
	uint64_t keep = CAPS_BIT(CAP_SYS_PTRACE) | CAPS_BIT(CAP_DAC_READ_SEARCH) |
			CAPS_BIT(CAP_KILL);
	int err;

	/* without it the kernel lets us look at the program only while we have all that it has */
	if (!(caps_effective() & CAPS_BIT(CAP_SYS_PTRACE)))
		return;
	if (plan->opens_files || !plan->cmd)
		keep |= CAPS_BIT(CAP_DAC_OVERRIDE) | CAPS_BIT(CAP_FOWNER) | safe_open_caps();
	/* the seccomp filter of a process is read with it; into its namespaces go the agent's files */
	if (!plan->cmd)
		keep |= CAPS_BIT(CAP_SYS_ADMIN) | CAPS_BIT(CAP_SYS_CHROOT) | CAPS_BIT(CAP_CHOWN) |
			CAPS_BIT(CAP_SETUID) | CAPS_BIT(CAP_SETGID);
	if (plan->counters_interval_ns)
		keep |= CAPS_BIT(CAP_SYS_ADMIN);
	err = caps_keep(keep);
	if (!err)
		err = caps_no_new();
	if (err)
		msg_verb("capabilities cannot be given up: %s", strerror(-err));
}

static int open_source(struct source *s, const struct capture_plan *plan)
{
	struct agent_source *a = s->priv;
	int err;

	a->plan = plan;
	err = a->calls && plan->cmd ? agent_child_open(&a->cmd, plan) : 0;
	if (!err && a->calls)
		give_up(plan);
	return err;
}

static int discard(void *ctx, const struct ct_hdr *rec)
{
	(void)ctx;
	(void)rec;
	return 0;
}

/* Answers the agents that do not record yet. Their records stay where they are: they are of calls that nobody has
 * seen. False: all record, or cannot. */
static bool meet_agents(struct agent_source *a)
{
	const bool paused = true;
	bool waiting = false;

	for (int i = a->npeers - 1; i >= 0; i--) {
		struct agent_peer *p = a->peers[i];
		bool greeted = agent_peer_conn(p)->greeted;
		int fd = agent_peer_fd(p);

		if (agent_peer_settled(p))
			continue;
		agent_peer_drain(p, &a->totals, &paused, discard, NULL);
		a->counts.started += agent_peer_conn(p)->greeted && !greeted;
		waiting |= !agent_peer_settled(p);
		if (!change_fd(a, fd, p))
			drop(a, i);
	}
	return waiting;
}

/* They wait for an answer for some seconds, and to come into the next process may take as long. */
static void answer(struct source *s)
{
	struct agent_source *a = s->priv;

	if (!a->calls && !a->plan->cmd)
		meet_agents(a);
}

static void wait_for_agents(struct agent_source *a)
{
	uint64_t until = now_ns() + AGENT_HELLO_NS;

	while (meet_agents(a) && now_ns() < until) {
		struct pollfd ready = { .fd = a->listener.epoll, .events = POLLIN };

		poll(&ready, 1, 20);
		if (a->plan->meanwhile)
			a->plan->meanwhile(a->plan->meanwhile_ctx);
	}
}

/* Into each process of -p. A message names each process that cannot have it. If none can, there is nothing to trace without probes. */
static int attach_all(struct source *s)
{
	struct agent_source *a = s->priv;
	struct agent_image image;
	char how[1800];
	int err = agent_how(a->plan, -1, how, sizeof(how)), in = 0;

	agent_image_agent(&image);
	if (err)
		msg_error("--cupti: %s: %s", a->plan->device.cupti, strerror(-err));
	for (int i = 0; i < a->plan->npids && !err; i++) {
		int fd = agent_image_inject(&image, a->plan->pids[i], how, a->plan);

		if (fd >= 0 && !agent_connect_fd(s, fd, a->plan->pids[i]))
			in++;
	}
	/* as the only source the agents say by their first records what the processes are */
	if (!a->calls)
		wait_for_agents(a);
	return err ? err : in || !a->calls ? 0 : -ECHILD;
}

static int start(struct source *s)
{
	struct agent_source *a = s->priv;
	int err;

	a->started_ns = now_ns();
	if (!a->plan->cmd)
		return attach_all(s);
	if (!a->calls)
		return 0;
	err = agent_child_start(&a->cmd);
	if (err)
		msg_error("the program does not start: %s", strerror(-err));
	return err;
}

static int fds(struct source *s, int *fd, int max)
{
	struct agent_source *a = s->priv;

	if (max < 1)
		return 0;
	fd[0] = a->listener.epoll;
	return 1;
}

/* Reports once what is unusual: a program that ended although its driver had not loaded the agent, and connections of other processes. */
static void tell_end(struct agent_source *a)
{
	if (a->reported)
		return;
	a->reported = true;
	agent_listener_tell(&a->listener);
	if (!a->counts.started && a->plan->cmd)
		msg_warn("the agent was not loaded: CUDA's driver, which loads it, was not started "
			 "in the program, or could not load it (a sandbox, or another libc)%s",
			 a->calls ? "; without it --source=cupti sees nothing" : "");
}

static int wait_a_little(const struct agent_source *a)
{
	struct pollfd p = { .fd = a->listener.epoll, .events = POLLIN };

	poll(&p, 1, 20);
	return 1;
}

/* Processes that found no place, in records. */
static int tell_refused(struct agent_source *a, emit_fn emit, void *ctx)
{
	struct hole_text t;
	int err = 0;

	while (!err &&
	       agent_refused_next(&a->places, a->calls ? CT_HOLE_CALLS : CT_HOLE_DEVICE, &t))
		err = emit(ctx, &t.hole.h);
	return err;
}

/* The one that was read first is read last: a drain may end after the first one's records. */
static void take_turns(struct agent_source *a)
{
	struct agent_peer *first = a->npeers ? a->peers[a->npeers - 1] : NULL;

	for (int i = a->npeers - 1; i > 0; i--)
		a->peers[i] = a->peers[i - 1];
	if (first)
		a->peers[0] = first;
}

static int drain(struct source *s, emit_fn emit, void *ctx)
{
	struct agent_source *a = s->priv;
	uint64_t now = now_ns();
	int again, err;

	accept_all(a);
	do {
		again = 0;
		take_turns(a);
		for (int i = a->npeers - 1; i >= 0; i--) {
			struct agent_peer *p = a->peers[i];
			enum peer_state before = agent_peer_state(p);
			bool greeted = agent_peer_conn(p)->greeted;
			int fd = agent_peer_fd(p);

			err = agent_peer_drain(p, &a->totals, s->paused, emit, ctx);

			a->counts.started += agent_peer_conn(p)->greeted && !greeted;
			if (!change_fd(a, fd, p)) {
				drop(a, i);
				continue;
			}
			if (err < 0)
				return err;
			again |= err;
			if (a->calls && before < PEER_STARTING &&
			    agent_peer_state(p) >= PEER_STARTING) {
				err = agent_process_tell(agent_peer_conn(p)->pid, emit, ctx);
				if (err)
					return err;
			}
			if (agent_peer_state(p) < PEER_STARTING &&
			    now_ns() - agent_peer_conn(p)->opened_ns > AGENT_HELLO_NS) {
				msg_warn("process %d: its agent does not answer: the agent is "
					 "ignored, and what its devices do is not shown",
					 (int)agent_peer_conn(p)->pid);
				drop(a, i);
			} else if (agent_peer_state(p) == PEER_ENDED) {
				drop(a, i);
			}
		}
		accept_all(a);
		/* as the session's only source nobody comes back for what the agents still say
		 * when they leave */
		if (a->calls && a->stopped_ns && a->npeers && now_ns() - a->stopped_ns < STOP_NS)
			again = wait_a_little(a);
		/* what they say need not be records, after which there may be a pause */
	} while (again && !source_paused(s->paused) &&
		 (a->stopped_ns ? now_ns() - a->stopped_ns < STOP_NS : now_ns() - now < DRAIN_NS));
	err = tell_refused(a, emit, ctx);
	if (err)
		return err;
	if (a->calls && !a->stopped_ns) {
		/* what it left in its socket was read above, or is there still */
		if (a->npeers || (a->plan->cmd && !agent_child_ended(&a->cmd)))
			return 0;
		tell_end(a);
		return 1;
	}
	if (!a->stopped_ns)
		return 0;
	tell_end(a);
	return !a->npeers || now - a->stopped_ns > STOP_NS;
}

/* What agents have sent; what CUPTI keeps until it is asked is not known. */
static uint64_t complete(struct source *s)
{
	const struct agent_source *a = s->priv;
	uint64_t least = now_ns();

	for (int i = 0; i < a->npeers; i++) {
		uint64_t since = agent_peer_since(a->peers[i]);

		least = since < least ? since : least;
	}
	return least;
}

static void stop(struct source *s)
{
	struct agent_source *a = s->priv;

	if (a->stopped_ns)
		return;
	a->stopped_ns = now_ns();
	for (int i = 0; i < a->npeers; i++)
		agent_peer_stop(a->peers[i]);
}

static void losses(struct source *s, struct losses *out)
{
	const struct agent_source *a = s->priv;

	for (int i = 0; i < CT_LOSS_END; i++)
		losses_add(&out->lost[i], a->totals.lost[i]);
	if (a->calls) {
		out->calls += a->totals.records;
		out->sent += a->totals.records;
	}
}

static int status(struct source *s)
{
	const struct agent_source *a = s->priv;

	return a->cmd.ended ? a->cmd.status : -1;
}

static pid_t program(struct source *s)
{
	return ((const struct agent_source *)s->priv)->cmd.child.pid;
}

static void pass_signal(struct source *s, int sig)
{
	const struct agent_source *a = s->priv;

	agent_child_signal(&a->cmd, sig);
}

static void close_source(struct source *s)
{
	struct agent_source *a = s->priv;

	if (!a)
		return;
	while (a->npeers)
		drop(a, a->npeers - 1);
	free(a->peers);
	agent_listener_close(&a->listener);
	agent_child_close(&a->cmd);
	agent_env_free(&a->env);
	free(a);
	s->priv = NULL;
}

const struct source_ops source_agent = {
	.name = "agent",
	.prepare = prepare,
	.open = open_source,
	.start = start,
	.answer = answer,
	.fds = fds,
	.drain = drain,
	.complete = complete,
	.stop = stop,
	.losses = losses,
	.status = status,
	.program = program,
	.signal = pass_signal,
	.close = close_source,
	.endless = CT_HOLE_DEVICE,
};
