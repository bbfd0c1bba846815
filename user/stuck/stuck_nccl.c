/* SPDX-License-Identifier: BSD-2-Clause */
/* stuck_nccl.c - see stuck_nccl.h. */
#include "stuck_nccl.h"
#include "stuck_threads.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../nccl/nccl_find.h"
#include "../proc/running.h"
#include "../source/host.h"
#include "../util/io/json.h"
#include "../util/msg.h"
#include "../util/now.h"
#include "../util/table/array.h"

#define SEARCH_AGAIN_NS 10000000000ULL /* until processes are searched again */
#define SEARCH_NS 20000000000ULL       /* time of one search of all processes */
#define PROCESSES_MAX 4096	       /* with NCCL, that are kept */

/* A communicator of a process. */
struct seat {
	struct nccl_comm now;
	uint64_t changed_ns; /* when its counts were seen to change, or it was found */
	bool gone;
};

struct party {
	struct nccl_process process; /* without its list of communicators */
	struct seat *seats;
	size_t nseats;
};

struct stuck_nccl {
	const pid_t *pids;
	int npids;
	struct nccl_finder *finder;
	struct party *parties;
	size_t nparties;
	uint64_t searched_ns, looked_ns, again_ns;
};

struct stuck_nccl *stuck_nccl_open(const pid_t *pids, int npids)
{
	struct stuck_nccl *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->pids = pids;
	s->npids = npids;
	s->again_ns = SEARCH_AGAIN_NS;
	s->finder = nccl_finder_open();
	if (s->finder)
		return s;
	free(s);
	return NULL;
}

void stuck_nccl_close(struct stuck_nccl *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->nparties; i++)
		free(s->parties[i].seats);
	free(s->parties);
	nccl_finder_close(s->finder);
	free(s);
}

/* ---- looks ---- */

static struct party *party_of(struct stuck_nccl *s, pid_t pid)
{
	for (size_t i = 0; i < s->nparties; i++)
		if (s->parties[i].process.pid == pid)
			return &s->parties[i];
	return NULL;
}

static bool has_seat(const struct party *p, const struct nccl_comm *c)
{
	for (size_t i = 0; i < p->nseats; i++)
		if (!p->seats[i].gone && p->seats[i].now.addr == c->addr &&
		    p->seats[i].now.hash == c->hash)
			return true;
	return false;
}

/* Keeps what was found of a process; of one that was found before, what is new. */
static int keep(struct stuck_nccl *s, const struct nccl_process *found)
{
	struct party *p = party_of(s, found->pid);

	if (!p && s->nparties == PROCESSES_MAX)
		return 0;
	if (!p)
		p = array_add(s->parties, s->nparties);
	if (!p)
		return -ENOMEM;
	p->process = *found;
	p->process.comms = NULL;
	for (int i = 0; i < found->ncomms; i++) {
		struct seat *seat;

		if (has_seat(p, &found->comms[i]))
			continue;
		seat = array_add(p->seats, p->nseats);
		if (!seat)
			return -ENOMEM;
		*seat = (struct seat){ .now = found->comms[i], .changed_ns = now_ns() };
	}
	return 0;
}

/* Returns 1 when the process has NCCL, 0, or -ENOMEM. */
static int find(struct stuck_nccl *s, pid_t pid)
{
	struct nccl_process found;
	int has = nccl_find(s->finder, pid, &found), err = 0;

	if (has <= 0)
		return has;
	err = keep(s, &found);
	if (found.why)
		msg_verb("process %d: %s: %s", (int)pid, found.library, found.why);
	else
		msg_verb("process %d: %d communicators of NCCL%s", (int)pid, found.ncomms,
			 found.searched ? ", found by a search of its memory" : "");
	nccl_process_free(&found);
	return err ? err : 1;
}

static bool is_asked_for(const struct stuck_nccl *s, pid_t pid)
{
	for (int i = 0; i < s->npids; i++)
		if (s->pids[i] == pid)
			return true;
	return !s->npids;
}

/* The other ranks of the processes that are asked for may be anywhere on the machine. */
static int search(struct stuck_nccl *s)
{
	uint64_t until_ns = now_ns() + SEARCH_NS;
	bool any = !s->npids;
	pid_t *list;
	int n, err = 0;

	for (int i = 0; i < s->npids && err >= 0; i++) {
		err = find(s, s->pids[i]);
		any |= err > 0;
	}
	if (err < 0 || !any)
		return err < 0 ? err : 0;
	n = running_pids(&list);
	for (int i = 0; i < n && err >= 0 && now_ns() < until_ns; i++)
		if ((!s->npids || !is_asked_for(s, list[i])) && list[i] != getpid())
			err = find(s, list[i]);
	free(list);
	return n == -ENOMEM || err < 0 ? -ENOMEM : 0;
}

static bool is_changed(const struct nccl_comm *a, const struct nccl_comm *b)
{
	return a->ncounts != b->ncounts ||
	       memcmp(a->counts, b->counts, (size_t)a->ncounts * sizeof(a->counts[0])) != 0;
}

static void look_again(struct party *p)
{
	for (size_t i = 0; i < p->nseats; i++) {
		struct seat *seat = &p->seats[i];
		struct nccl_comm now;

		if (seat->gone)
			continue;
		seat->gone = nccl_find_again(&p->process, &seat->now, &now) != 0;
		if (seat->gone)
			continue;
		if (is_changed(&seat->now, &now))
			seat->changed_ns = now_ns();
		seat->now = now;
	}
}

int stuck_nccl_look(struct stuck_nccl *s)
{
	int err = 0;

	for (size_t i = 0; i < s->nparties; i++)
		look_again(&s->parties[i]);
	s->looked_ns = now_ns();
	if (!s->searched_ns || s->looked_ns - s->searched_ns > s->again_ns) {
		err = search(s);
		s->searched_ns = now_ns();
	}
	return err;
}

void stuck_nccl_every(struct stuck_nccl *s, uint64_t ns)
{
	s->again_ns = ns;
}

void stuck_nccl_search(struct stuck_nccl *s)
{
	s->searched_ns = 0;
}

/* ---- what they found ---- */

/* Does a process that is asked for take part? */
static bool is_wanted(const struct stuck_nccl *s, uint64_t hash)
{
	for (size_t i = 0; i < s->nparties; i++)
		for (size_t k = 0; k < s->parties[i].nseats; k++)
			if (!s->parties[i].seats[k].gone &&
			    s->parties[i].seats[k].now.hash == hash &&
			    is_asked_for(s, s->parties[i].process.pid))
				return true;
	return false;
}

static int add_member(struct nccl_job *j, const struct stuck_nccl *s, const struct party *p,
		      const struct seat *seat, uint64_t over_ns)
{
	struct nccl_member *m = nccl_job_add(j);
	uint64_t still = s->looked_ns > seat->changed_ns ? s->looked_ns - seat->changed_ns : 0;

	if (!m)
		return -ENOMEM;
	m->hash = seat->now.hash;
	m->rank = seat->now.rank;
	m->nranks = seat->now.nranks;
	m->device = seat->now.device;
	host_name(m->host, sizeof(m->host));
	host_boot_id(m->boot, sizeof(m->boot));
	m->pid = (uint32_t)p->process.pid;
	memcpy(m->comm, p->process.comm, sizeof(m->comm));
	m->ts_ns = s->looked_ns;
	m->still_ns = still >= over_ns ? still : 0;
	m->ncounts = seat->now.ncounts;
	memcpy(m->counts, seat->now.counts, sizeof(m->counts));
	return 0;
}

/* The threads of a process that goes on are of no interest. */
static int add_party(struct nccl_job *j, const struct stuck_nccl *s, const struct party *p,
		     uint64_t over_ns, const struct stuck_row *rows, size_t nrows, bool python)
{
	size_t first = j->n;
	int err = 0;

	for (size_t i = 0; i < p->nseats && !err; i++)
		if (!p->seats[i].gone && is_wanted(s, p->seats[i].now.hash))
			err = add_member(j, s, p, &p->seats[i], over_ns);
	for (size_t i = first; i < j->n && !err; i++) {
		struct nccl_member *m = &j->members[i];

		if (!m->still_ns)
			continue;
		m->nthreads = stuck_threads((pid_t)m->pid, rows, nrows, python, &m->threads);
		if (m->nthreads < 0) {
			m->nthreads = 0;
			err = -ENOMEM;
		}
	}
	return err;
}

int stuck_nccl_job(const struct stuck_nccl *s, uint64_t over_ns, const struct stuck_row *rows,
		   size_t nrows, bool python, struct nccl_job *j)
{
	int err = 0;

	*j = (struct nccl_job){ 0 };
	for (size_t i = 0; i < s->nparties && !err; i++)
		err = add_party(j, s, &s->parties[i], over_ns, rows, nrows, python);
	nccl_job_sort(j);
	return err;
}

static bool has_wanted(const struct stuck_nccl *s, const struct party *p)
{
	for (size_t i = 0; i < p->nseats; i++)
		if (is_wanted(s, p->seats[i].now.hash))
			return true;
	return is_asked_for(s, p->process.pid);
}

bool stuck_nccl_any(const struct stuck_nccl *s)
{
	for (size_t i = 0; i < s->nparties; i++)
		if (has_wanted(s, &s->parties[i]))
			return true;
	return false;
}

/* Why not all communicators of a process are known. */
static const char *why_unknown(const struct nccl_process *p)
{
	if (p->why)
		return p->why;
	return p->ncomms == NCCL_COMMS_MAX
		       ? "it has more communicators of NCCL than cudatrace reads of one process"
		       : "not all of its memory was searched for communicators of NCCL in the "
			 "time that there is";
}

static void text_unknown(const struct nccl_process *p, struct out *o)
{
	out_plain(o, p->comm, strlen(p->comm));
	out_fmt(o, ", PID %d, rank ?: ", (int)p->pid);
	if (p->why) {
		out_plain(o, p->library, strlen(p->library));
		out_str(o, ": ");
	}
	out_fmt(o, "%s\n", why_unknown(p));
}

static void json_unknown(const struct stuck_nccl *s, const struct nccl_process *p, struct out *o)
{
	char host[NCCL_HOST_BYTES], boot[NCCL_HOST_BYTES];
	struct json j = json_to(o);

	json_open_object(&j, NULL);
	json_put_str(&j, "type", "communicator");
	json_put_u64(&j, "start_ns", s->looked_ns);
	json_put_u64(&j, "pid", (uint64_t)p->pid);
	json_put_str(&j, "process", p->comm);
	json_put_str(&j, "host", host_name(host, sizeof(host)));
	json_put_str(&j, "boot", host_boot_id(boot, sizeof(boot)));
	json_put_str(&j, "library", p->library);
	json_put_str(&j, "unknown", why_unknown(p));
	json_end(&j);
	out_char(o, '\n');
}

void stuck_nccl_unknown(const struct stuck_nccl *s, bool json, struct out *o)
{
	for (size_t i = 0; i < s->nparties; i++) {
		const struct nccl_process *p = &s->parties[i].process;

		if ((!p->why && !p->cut) || !has_wanted(s, &s->parties[i]))
			continue;
		if (json)
			json_unknown(s, p, o);
		else
			text_unknown(p, o);
	}
}
