/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * agent_kin.c - see agent_kin.h.
 *
 * First the parents are followed, up to ourselves. A daemon has left its parents: one of our own
 * user is believed, since such a process could do us whatever it likes; of one of another user
 * the environment is read, which has the key if it came from the program. That takes time, so
 * each user has a number of readings in a second; and a process that was found to be a stranger stays one for a moment, which is shorter than it takes to use a process number again.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../../wire/agent_wire.h"
#include "../../proc/target.h"
#include "../../util/now.h"
#include "agent_kin.h"
#include "../host.h"

#define PARENTS_MAX 256
#define TRIES 3 /* a parent that ends while we look gives its children to another */
#define STRANGERS 64
#define STRANGER_NS 50000000ULL
#define USERS 16
#define READINGS 8 /* of one user's processes in a second */
#define SECOND_NS 1000000000ULL
#define ENVIRON_BYTES (256 << 10)

struct agent_kins {
	const char *key;
	struct {
		pid_t pid;
		uint64_t found_ns;
	} strangers[STRANGERS];
	int next;
	struct {
		uid_t uid;
		int readings;
		uint64_t since_ns; /* 0: free */
	} users[USERS];
	char environ[ENVIRON_BYTES];
};

struct agent_kins *agent_kins_open(const char *key)
{
	struct agent_kins *k = calloc(1, sizeof(*k));

	if (k)
		k->key = key;
	return k;
}

void agent_kins_close(struct agent_kins *k)
{
	free(k);
}

/* 0: none that can be seen; -1: the process has gone. */
static pid_t parent_of(pid_t pid)
{
	const char *parent;
	char text[8192];

	if (host_status(pid, text, sizeof(text)))
		return -1;
	parent = host_status_line(text, "PPid");
	return parent ? (pid_t)strtol(parent, NULL, 10) : 0;
}

static bool descends(pid_t pid)
{
	pid_t we = getpid();

	for (int i = 0; i < TRIES; i++) {
		pid_t at = pid;

		for (int depth = 0; at > 1 && at != we && depth < PARENTS_MAX; depth++)
			at = parent_of(at);
		if (at >= 0)
			return at == we;
	}
	return false;
}

/* May one more process of this user be looked into? Of many users at once the one that came
 * first makes room. */
static bool may_read(struct agent_kins *k, uid_t uid)
{
	uint64_t now = now_ns();
	int at = 0;

	for (int i = 0; i < USERS; i++) {
		if (k->users[i].since_ns && k->users[i].uid == uid) {
			at = i;
			break;
		}
		if (k->users[i].since_ns < k->users[at].since_ns)
			at = i;
	}
	if (k->users[at].uid != uid || !k->users[at].since_ns ||
	    now - k->users[at].since_ns >= SECOND_NS) {
		k->users[at].uid = uid;
		k->users[at].since_ns = now;
		k->users[at].readings = 0;
	}
	return k->users[at].readings++ < READINGS;
}

static bool has_key(struct agent_kins *k, pid_t pid)
{
	static const char name[] = AGENT_ENV "=";
	struct target *t;
	bool has = false;
	ssize_t n = 0;

	if (target_open(&t, pid, 0))
		return false;
	n = target_proc(t, "environ", k->environ, sizeof(k->environ));
	target_close(t);
	for (ssize_t at = 0; at < n && !has; at += (ssize_t)strlen(k->environ + at) + 1)
		has = !strncmp(k->environ + at, name, sizeof(name) - 1) &&
		      strstr(k->environ + at, k->key);
	return has;
}

static bool was_stranger(const struct agent_kins *k, pid_t pid)
{
	for (int i = 0; i < STRANGERS; i++)
		if (k->strangers[i].pid == pid && now_ns() - k->strangers[i].found_ns < STRANGER_NS)
			return true;
	return false;
}

enum agent_kin agent_kins_find(struct agent_kins *k, pid_t pid, uid_t uid)
{
	if (pid <= 0 || was_stranger(k, pid))
		return AGENT_STRANGER;
	if (descends(pid))
		return AGENT_CHILD;
	if (uid == geteuid() || (may_read(k, uid) && has_key(k, pid)))
		return AGENT_NEIGHBOUR;
	k->strangers[k->next].pid = pid;
	k->strangers[k->next].found_ns = now_ns();
	k->next = (k->next + 1) % STRANGERS;
	return AGENT_STRANGER;
}
