/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * agent.c - see agent.h.
 *
 * One socket is listened on, next to the agent's file; the programs' environment names it, with
 * a key that only they have. What the loop waits on is one epoll descriptor, since agents come
 * and go. Anybody may connect: who has no agent of ours (agent_kin) is shut out at once and
 * counted, and of the others nobody takes the room of all. The environment of a program that is
 * started is the only thing that is changed in it, and never a value that the user set.
 */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "../../util/table/array.h"
#include "../../util/msg.h"
#include "../../util/now.h"
#include "agent.h"
#include "agent_attach.h"
#include "agent_child.h"
#include "agent_file.h"
#include "agent_kin.h"
#include "agent_peer.h"
#include "agent_process.h"

#define PEERS_MAX 1024
#define ACCEPT_MAX 64 /* at once, before those are listened to that are there */
/* that wait to be accepted; the kernel takes no more than net.core.somaxconn */
#define BACKLOG 4096
/* Connections that have not greeted, which an agent does at once: of one process, and of all
 * that are not known as the program's. */
#define SILENT_EACH 4
#define SILENT_NEIGHBOURS 16
#define HELLO_NS (2 * AGENT_WAIT_MS * 1000000ULL)
#define STOP_NS 8000000000ULL /* for all agents to leave */

struct agent_source {
	const struct capture_plan *plan;
	bool calls; /* the agents have the calls too: there is no other source */
	int epoll, listener;
	char path[108], key[AGENT_KEY + 1];
	/* CUDA_INJECTION64_PATH=..., CUDATRACE_AGENT=..., NVTX_INJECTION64_PATH=... or NULL */
	char *vars[3];
	char **env; /* the plan's, with these */
	struct agent_child cmd;
	struct agent_kins *kins;
	struct agent_peer **peers;
	int npeers, next;
	struct agent_totals totals;
	struct agent_counts counts;
	uint64_t stopped_ns, started_ns;
	pid_t stranger; /* the first one */
	uid_t stranger_uid;
	bool told;
};

/* ---- the environment ---- */

/* A path as a word of CUDATRACE_AGENT. */
static int escape(const char *path, char *out, size_t size)
{
	static const char hex[] = "0123456789abcdef";
	size_t n = 0;

	for (const char *p = path; *p; p++) {
		unsigned char c = (unsigned char)*p;

		if (n + 4 > size)
			return -ENAMETOOLONG;
		if (c <= ' ' || c == '%' || c == 0x7f) {
			out[n++] = '%';
			out[n++] = hex[c >> 4];
			out[n++] = hex[c & 15];
		} else {
			out[n++] = (char)c;
		}
	}
	out[n] = '\0';
	return 0;
}

/* " cupti=PATH", with the path made absolute: the program may be anywhere. */
static int cupti_word(const struct capture_plan *plan, char *out, size_t size)
{
	char *full, escaped[1600];
	int err;

	out[0] = '\0';
	if (!plan->device.cupti)
		return 0;
	full = realpath(plan->device.cupti, NULL);
	err = full ? escape(full, escaped, sizeof(escaped)) : -errno;
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

/* The value that a variable will have in the program; NULL: none. */
static const char *value_of(char *const *env, const char *name)
{
	const char *value = getenv(name);
	size_t n = strlen(name);

	for (int i = 0; env && env[i]; i++)
		if (!strncmp(env[i], name, n) && (env[i][n] == '=' || !env[i][n]))
			value = env[i][n] ? env[i] + n + 1 : NULL;
	return value;
}

static int make_key(char *key)
{
	unsigned char bytes[AGENT_KEY / 2];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return -EIO;
	for (size_t i = 0; i < sizeof(bytes); i++)
		sprintf(key + 2 * i, "%02x", bytes[i]);
	return 0;
}

static int make_env(struct agent_source *a, struct capture_plan *plan, const char *file)
{
	char path[400], cupti[1700];
	int n = 0, err = escape(a->path, path, sizeof(path));

	if (!err)
		err = cupti_word(plan, cupti, sizeof(cupti));
	if (err) {
		msg_error("--cupti: %s: %s", plan->device.cupti, strerror(-err));
		return err;
	}
	while (plan->env && plan->env[n])
		n++;
	a->env = calloc((size_t)n + 4, sizeof(*a->env));
	if (!a->env || asprintf(&a->vars[0], AGENT_INJECTION_ENV "=%s", file) < 0 ||
	    asprintf(&a->vars[1], AGENT_ENV "=v1 path=%s key=%s%s", path, a->key, cupti) < 0)
		return -ENOMEM;
	for (int i = 0; i < n; i++)
		a->env[i] = plan->env[i];
	a->env[n] = a->vars[0];
	a->env[n + 1] = a->vars[1];
	if (plan->device.kinds & AGENT_NVTX && value_of(plan->env, AGENT_NVTX_ENV))
		msg_warn(AGENT_NVTX_ENV " is set already: NVTX ranges go there, and are not shown");
	else if (plan->device.kinds & AGENT_NVTX &&
		 asprintf(&a->vars[2], AGENT_NVTX_ENV "=%s", file) < 0)
		return -ENOMEM;
	a->env[n + 2] = a->vars[2];
	plan->env = a->env;
	return 0;
}

static int add_fd(struct agent_source *a, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(a->epoll, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

/* A peer waits on its socket first, then on its inbox. */
static int change_fd(struct agent_source *a, int from, int to)
{
	if (from == to)
		return 0;
	epoll_ctl(a->epoll, EPOLL_CTL_DEL, from, NULL);
	return add_fd(a, to);
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

static int listen_at(struct agent_source *a, const char *dir)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	if ((size_t)snprintf(a->path, sizeof(a->path), "%s/s-%d-%.8s", dir, (int)getpid(),
			     a->key) >= sizeof(a->path))
		return -ENAMETOOLONG;
	sweep(dir);
	strcpy(addr.sun_path, a->path);
	a->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (a->listener < 0 || bind(a->listener, (struct sockaddr *)&addr, sizeof(addr)))
		return -errno;
	/* the program may run as another user: the key is what lets in */
	if (chmod(a->path, 0666) || listen(a->listener, BACKLOG))
		return -errno;
	return add_fd(a, a->listener);
}

static int prepare(struct source *s, struct capture_plan *plan)
{
	struct agent_source *a = calloc(1, sizeof(*a));
	const char *theirs = value_of(plan->env, AGENT_INJECTION_ENV);
	char file[300], dir[200];
	int err;

	if (!a)
		return -ENOMEM;
	s->priv = a;
	a->epoll = a->listener = -1;
	a->cmd.child.fd = -1;
	a->cmd.status = -1;
	a->calls = plan->calls_by_agent;
	a->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (a->epoll < 0)
		return -errno;
	if (!plan->cmd)
		return 0; /* agents come by agent_connect_fd() */
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
	a->kins = agent_kins_open(a->key);
	err = a->kins ? make_key(a->key) : -ENOMEM;
	if (!err)
		err = listen_at(a, dir);
	if (err) {
		msg_error("no socket for the agent in %s: %s", dir, strerror(-err));
		return err;
	}
	return make_env(a, plan, file);
}

/* ---- agents ---- */

static void drop(struct agent_source *a, int i)
{
	bool greeted = agent_peer_greeted(a->peers[i]);

	a->counts.ended += greeted;
	a->counts.failed += greeted && agent_peer_failed(a->peers[i]);
	agent_peer_close(a->peers[i]);
	a->peers[i] = a->peers[--a->npeers];
}

/* The oldest connection that has not greeted, of a process (0: any), of neighbours alone or of
 * all; n: how many there are. -1: none. */
static int oldest_silent(const struct agent_source *a, pid_t pid, bool neighbours, int *n)
{
	int oldest = -1;

	*n = 0;
	for (int i = 0; i < a->npeers; i++) {
		const struct agent_peer *p = a->peers[i];

		if (agent_peer_greeted(p) || (pid && agent_peer_pid(p) != pid) ||
		    (neighbours && !agent_peer_neighbour(p)))
			continue;
		(*n)++;
		if (oldest < 0 || agent_peer_opened_ns(p) < agent_peer_opened_ns(a->peers[oldest]))
			oldest = i;
	}
	return oldest;
}

static void drop_silent(struct agent_source *a, int i)
{
	msg_warn("process %d: one of its connections to the agents' socket is shut: it said "
		 "nothing, and there are too many like it",
		 (int)agent_peer_pid(a->peers[i]));
	drop(a, i);
}

/* Makes room for one more, of those that have not greeted. False: there is none. */
static bool make_room(struct agent_source *a, pid_t pid, bool neighbour)
{
	int n, i = oldest_silent(a, pid, false, &n);

	if (n >= SILENT_EACH)
		drop_silent(a, i);
	i = neighbour ? oldest_silent(a, 0, true, &n) : -1;
	if (neighbour && n >= SILENT_NEIGHBOURS)
		drop_silent(a, i);
	if (a->npeers < PEERS_MAX)
		return true;
	i = oldest_silent(a, 0, false, &n);
	if (i >= 0)
		drop_silent(a, i);
	return i >= 0;
}

static int add_peer(struct agent_source *a, int fd, const struct agent_peer_who *who)
{
	struct agent_peer *p;
	int err;

	if (!make_room(a, who->pid, who->neighbour)) {
		msg_warn("more than %d agents at once: that of process %d is turned away, and what "
			 "its devices do is not shown",
			 PEERS_MAX, (int)who->pid);
		close(fd);
		return -EMFILE;
	}
	if (!array_room(a->peers, a->npeers)) {
		close(fd);
		return -ENOMEM;
	}
	p = agent_peer_open(fd, who, a->plan, a->calls);
	err = p ? add_fd(a, agent_peer_fd(p)) : -ENOMEM;
	if (err) {
		msg_warn("process %d: its agent cannot be listened to (%s): what its devices do is "
			 "not shown",
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
	return add_peer(s->priv, fd, &(struct agent_peer_who){ .pid = pid });
}

void agent_counts(const struct source *s, struct agent_counts *out)
{
	const struct agent_source *a = s->priv;

	*out = a->counts;
	out->live = (unsigned int)a->npeers;
}

static void accept_all(struct agent_source *a)
{
	for (int i = 0; a->listener >= 0 && i < ACCEPT_MAX; i++) {
		int fd = accept4(a->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		struct ucred cred = { 0 };
		socklen_t len = sizeof(cred);
		enum agent_kin kin;

		if (fd < 0)
			return;
		if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len))
			cred.pid = 0;
		kin = agent_kins_find(a->kins, cred.pid, cred.uid);
		if (kin == AGENT_STRANGER) {
			if (!a->counts.strangers++) {
				a->stranger = cred.pid;
				a->stranger_uid = cred.uid;
			}
			close(fd);
			continue;
		}
		add_peer(a, fd,
			 &(struct agent_peer_who){ .pid = cred.pid,
						   .key = a->key,
						   .neighbour = kin == AGENT_NEIGHBOUR });
	}
}

/* ---- the source's functions ---- */

static int open_source(struct source *s, const struct capture_plan *plan)
{
	struct agent_source *a = s->priv;

	a->plan = plan;
	return a->calls && plan->cmd ? agent_child_open(&a->cmd, plan) : 0;
}

/* Into each process of -p. One that cannot have it is said to; all of them, and there is nothing
 * to trace without probes. */
static int attach_all(struct source *s)
{
	struct agent_source *a = s->priv;
	char how[1800];
	int err = agent_how(a->plan, -1, how, sizeof(how)), in = 0;

	if (err)
		msg_error("--cupti: %s: %s", a->plan->device.cupti, strerror(-err));
	for (int i = 0; i < a->plan->npids && !err; i++) {
		int fd = agent_attach(a->plan->pids[i], how, a->plan);

		if (fd >= 0 && !agent_connect_fd(s, fd, a->plan->pids[i]))
			in++;
	}
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
	fd[0] = a->epoll;
	return 1;
}

/* Says what is odd, once: a program that ended without its driver having loaded the agent, and
 * who else connected. */
static void tell_end(struct agent_source *a)
{
	if (a->told)
		return;
	a->told = true;
	if (a->counts.strangers)
		msg_note("%llu connections to the agents' socket were shut at once: their "
			 "processes are not the program's (the first: process %d "
			 "of user %u)",
			 (unsigned long long)a->counts.strangers, (int)a->stranger,
			 (unsigned int)a->stranger_uid);
	if (!a->counts.started && a->plan->cmd)
		msg_warn("no agent came into the program: CUDA's driver, which loads it, was not "
			 "started there, or could not load it "
			 "(a sandbox, or another libc)%s",
			 a->calls ? "; without it --source=cupti sees nothing" : "");
}

static int wait_a_little(const struct agent_source *a)
{
	struct pollfd p = { .fd = a->epoll, .events = POLLIN };

	poll(&p, 1, 20);
	return 1;
}

static int drain(struct source *s, emit_fn emit, void *ctx)
{
	struct agent_source *a = s->priv;
	uint64_t now = now_ns();
	int again;

	accept_all(a);
	do {
		again = 0;
		for (int i = a->npeers - 1; i >= 0; i--) {
			struct agent_peer *p = a->peers[i];
			enum peer_state before = agent_peer_state(p);
			bool greeted = agent_peer_greeted(p);
			int fd = agent_peer_fd(p), err = agent_peer_drain(p, &a->totals, emit, ctx);

			a->counts.started += agent_peer_greeted(p) && !greeted;
			if (change_fd(a, fd, agent_peer_fd(p))) {
				msg_error("process %d: no memory to listen to its agent: it is "
					  "left alone",
					  (int)agent_peer_pid(p));
				drop(a, i);
				continue;
			}
			if (err < 0)
				return err;
			again |= err;
			if (a->calls && before < PEER_STARTING &&
			    agent_peer_state(p) >= PEER_STARTING) {
				err = agent_process_tell(agent_peer_pid(p), emit, ctx);
				if (err)
					return err;
			}
			if (agent_peer_state(p) < PEER_STARTING &&
			    now_ns() - agent_peer_opened_ns(p) > HELLO_NS) {
				msg_warn("process %d: its agent says nothing: it is left alone, "
					 "and what its devices do is not shown",
					 (int)agent_peer_pid(p));
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
	} while (again);
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
	if (a->listener >= 0)
		close(a->listener);
	if (*a->path)
		unlink(a->path);
	if (a->epoll >= 0)
		close(a->epoll);
	agent_child_close(&a->cmd);
	agent_kins_close(a->kins);
	free(a->vars[0]);
	free(a->vars[1]);
	free(a->vars[2]);
	free(a->env);
	free(a);
	s->priv = NULL;
}

const struct source_ops source_agent = {
	.name = "agent",
	.prepare = prepare,
	.open = open_source,
	.start = start,
	.fds = fds,
	.drain = drain,
	.stop = stop,
	.losses = losses,
	.status = status,
	.signal = pass_signal,
	.close = close_source,
};
