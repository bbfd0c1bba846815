/* SPDX-License-Identifier: BSD-2-Clause */
/* nccl_print.c - what was found of communicators, for people and as JSON: see nccl_job.h. */
#include <inttypes.h>
#include <string.h>

#include "../util/io/json.h"
#include "nccl_group.h"
#include "../util/table/array.h"

#define RANGES_MAX 16	 /* of a list of ranks */
#define BEHIND_MAX 8	 /* lines about one kind of collective */
#define MEMBERS_SHOWN 64 /* of a communicator, that are named one by one */
#define FRAME_MAX 512	 /* bytes of a frame */
#define THREADS_NAMED 16 /* of those that do the same, beside the first */
#define UNSEEN_MAX 1024	 /* ranks that one line of JSON lists */

static void nccl_print_put_name(struct out *o, const char *s, size_t max)
{
	out_plain(o, s, strnlen(s, max));
}

/* ---- lists of ranks ---- */

/* Chooses ranks. */
typedef bool (*choose_fn)(const struct nccl_group *, int rank, const void *arg);

/* The members with ranks begin behind those without. */
static const struct nccl_member *of_rank(const struct nccl_group *g, int rank)
{
	size_t at = array_before(g->members, g->n, x, x->rank < rank);

	return at < g->n && g->members[at].rank == rank ? &g->members[at] : NULL;
}

/* "rank 3 has", "ranks 0-2,5 have". Returns how many there are. */
static int put_ranks(struct out *o, const struct nccl_group *g, choose_fn choose, const void *arg)
{
	int all = 0, ranges = 0;

	for (int r = 0; r < g->nranks; r++)
		all += choose(g, r, arg);
	out_str(o, all == 1 ? "rank " : "ranks ");
	for (int r = 0; r < g->nranks; r++) {
		int end = r;

		if (!choose(g, r, arg))
			continue;
		while (end + 1 < g->nranks && choose(g, end + 1, arg))
			end++;
		if (ranges == RANGES_MAX) {
			out_str(o, " and others");
			break;
		}
		out_fmt(o, "%s%d", ranges++ ? "," : "", r);
		if (end > r)
			out_fmt(o, "-%d", end);
		r = end;
	}
	out_str(o, all == 1 ? " has" : " have");
	return all;
}

struct beyond {
	struct nccl_kind kind;
	uint64_t n;
};

static bool has_begun(const struct nccl_group *g, int rank, const void *arg)
{
	const struct nccl_member *m = of_rank(g, rank);
	const struct beyond *b = arg;
	uint64_t n;

	return m && nccl_group_count(m, &b->kind, &n) && n > b->n;
}

static bool is_at(const struct nccl_group *g, int rank, const void *arg)
{
	const struct nccl_member *m = of_rank(g, rank);
	const struct beyond *b = arg;
	uint64_t n;

	return m && nccl_group_count(m, &b->kind, &n) && n == b->n;
}

static bool is_absent(const struct nccl_group *g, int rank, const void *arg)
{
	const struct nccl_member *m = of_rank(g, rank);

	(void)arg;
	return m && nccl_group_lags(g, m);
}

static bool is_unseen(const struct nccl_group *g, int rank, const void *arg)
{
	(void)arg;
	return !of_rank(g, rank);
}

/* ---- for people ---- */

/* The lowest count above `after` of a kind, below its highest. */
static bool next_behind(const struct nccl_group *g, const struct nccl_kind *k, bool first,
			uint64_t after, uint64_t *out)
{
	bool found = false;

	for (size_t i = 0; i < g->n; i++) {
		uint64_t n;

		if (!nccl_group_count(&g->members[i], k, &n) || n >= k->most ||
		    (!first && n <= after) || (found && n >= *out))
			continue;
		*out = n;
		found = true;
	}
	return found;
}

/* A line for each count that ranks are behind with. */
static void put_kind(struct out *o, const struct nccl_group *g, const struct nccl_kind *k)
{
	struct beyond b = { .kind = *k };

	for (int i = 0; i < BEHIND_MAX && next_behind(g, k, !i, b.n, &b.n); i++) {
		out_str(o, "  ");
		nccl_print_put_name(o, k->name, NCCL_KIND_BYTES);
		out_fmt(o, " #%" PRIu64 ": ", b.n + 1);
		put_ranks(o, g, is_at, &b);
		if (b.n)
			out_fmt(o, " not begun it (the last was #%" PRIu64 "), ", b.n);
		else
			out_str(o, " not begun it, nor any before, ");
		put_ranks(o, g, has_begun, &b);
		out_char(o, '\n');
	}
}

static bool same_text(const char *a, const char *b, size_t max)
{
	return !strncmp(a, b, max);
}

/* Do two threads do the same, as those of a pool that wait for work? */
static bool same_thread(const struct nccl_thread *a, const struct nccl_thread *b)
{
	if (!same_text(a->name, b->name, sizeof(a->name)) ||
	    !same_text(a->state, b->state, sizeof(a->state)) ||
	    !same_text(a->wait, b->wait, sizeof(a->wait)) ||
	    !same_text(a->inside, b->inside, sizeof(a->inside)) || a->nframes != b->nframes)
		return false;
	for (int i = 0; i < a->nframes; i++)
		if (!same_text(a->frames[i], b->frames[i], FRAME_MAX))
			return false;
	return true;
}

/* Is it one of those that an earlier thread of the process stands for? */
static bool stood_for(const struct nccl_member *m, int at)
{
	for (int i = 0; i < at; i++)
		if (same_thread(&m->threads[i], &m->threads[at]))
			return true;
	return false;
}

/* ", and 3 others: 4102 4103 4104" */
static void put_others(struct out *o, const struct nccl_member *m, int at)
{
	int others = 0, shown = 0;

	for (int i = at + 1; i < m->nthreads; i++)
		others += same_thread(&m->threads[at], &m->threads[i]);
	if (!others)
		return;
	out_fmt(o, ", and %d other%s:", others, others == 1 ? "" : "s");
	for (int i = at + 1; i < m->nthreads && shown < THREADS_NAMED; i++)
		if (same_thread(&m->threads[at], &m->threads[i])) {
			out_fmt(o, " %u", m->threads[i].tid);
			shown++;
		}
	if (shown < others)
		out_str(o, " ...");
}

static void put_thread(struct out *o, const struct nccl_member *m, int at, bool frames)
{
	const struct nccl_thread *t = &m->threads[at];

	out_fmt(o, "    thread %u (", t->tid);
	nccl_print_put_name(o, t->name, sizeof(t->name));
	out_char(o, ')');
	if (t->inside[0]) {
		out_str(o, " is inside ");
		nccl_print_put_name(o, t->inside, sizeof(t->inside));
	} else if (t->state[0]) {
		out_char(o, ' ');
		nccl_print_put_name(o, t->state, sizeof(t->state));
		if (t->wait[0]) {
			out_str(o, " in ");
			nccl_print_put_name(o, t->wait, sizeof(t->wait));
		}
	}
	put_others(o, m, at);
	out_char(o, '\n');
	for (int i = 0; frames && i < t->nframes; i++) {
		out_str(o, "        ");
		nccl_print_put_name(o, t->frames[i], FRAME_MAX);
		out_str(o, " [python]\n");
	}
}

/* An absent rank's threads with their stacks; of another the threads that are inside CUDA. */
static void put_member(struct out *o, const struct nccl_group *g, const struct nccl_member *m,
		       bool merged)
{
	bool absent = nccl_group_lags(g, m);

	out_fmt(o, "  rank %d%s: ", m->rank, absent ? ", absent" : "");
	nccl_print_put_name(o, m->comm, sizeof(m->comm));
	out_fmt(o, ", PID %u", m->pid);
	if (merged && m->host[0]) {
		out_str(o, ", on ");
		nccl_print_put_name(o, m->host, sizeof(m->host));
	}
	out_char(o, '\n');
	for (int i = 0; i < m->nthreads; i++)
		if ((absent || m->threads[i].inside[0]) && !stood_for(m, i))
			put_thread(o, m, i, absent);
}

static bool is_inside(const struct nccl_group *g)
{
	for (size_t i = 0; i < g->n; i++)
		for (int k = 0; k < g->members[i].nthreads; k++)
			if (g->members[i].threads[k].inside[0])
				return true;
	return false;
}

/* The last collectives that all ranks have begun. */
static void put_last(struct out *o, const struct nccl_group *g)
{
	int shown = 0;

	for (int i = 0; i < g->nkinds; i++)
		if (g->kinds[i].most) {
			out_str(o, shown++ ? ", " : "");
			nccl_print_put_name(o, g->kinds[i].name, NCCL_KIND_BYTES);
			out_fmt(o, " #%" PRIu64, g->kinds[i].most);
		}
	if (!shown)
		out_str(o, "none");
}

/* The ranks that nobody has looked at. */
static void put_unseen(struct out *o, const struct nccl_group *g, bool merged)
{
	struct nccl_group all = *g;

	all.nranks = nccl_group_ranks(g);
	if (all.nranks < 0 || g->nseen >= (size_t)all.nranks)
		return;
	out_str(o, "  ");
	put_ranks(o, &all, is_unseen, NULL);
	out_str(o, merged ? " not been seen: in none of the files\n"
			  : " not been seen on this machine (stuck --merge puts the answers of "
			    "several machines together)\n");
}

static void put_group(struct out *o, const struct nccl_job *j, const struct nccl_group *g,
		      size_t absent)
{
	bool compared = j->compared && j->compared(j->ctx, g->members[0].hash);
	bool merged = j->merged;
	bool unseen = g->nseen < (size_t)g->nranks;

	out_fmt(o, "communicator 0x%" PRIx64 " of %d ranks: ", g->members[0].hash, g->nranks);
	if (absent) {
		put_ranks(o, g, is_absent, NULL);
		out_str(o, " not arrived");
	} else {
		out_str(o, unseen ? "the ranks that were seen have begun as many collectives of "
				    "each kind, the last: "
				  : "all ranks have begun as many collectives of each kind, the "
				    "last: ");
		put_last(o, g);
	}
	out_char(o, '\n');
	if (!absent && !compared)
		out_str(o, "  whether their sizes, types, operations and roots are the same is not "
			   "known here; 'cudatrace stuck FILE' compares them in a recording of the "
			   "job that was made with --layers nccl\n");
	for (int i = 0; i < g->nkinds; i++)
		put_kind(o, g, &g->kinds[i]);
	if (nccl_group_disagrees(g))
		out_str(o, "  the ranks do not call the same collectives: each of some ranks has "
			   "begun one that another has not\n");
	put_unseen(o, g, merged);
	for (size_t i = 0; i < g->n && i < MEMBERS_SHOWN; i++)
		if (absent || g->members[i].nthreads)
			put_member(o, g, &g->members[i], merged);
	if (g->n > MEMBERS_SHOWN)
		out_fmt(o, "  and %zu others\n", g->n - MEMBERS_SHOWN);
}

int nccl_job_print(const struct nccl_job *j, struct out *o)
{
	struct nccl_group g;
	int shown = 0;

	for (size_t at = 0; at < j->n;) {
		size_t absent = 0;

		at = nccl_group_next(j, at, &g);
		for (size_t i = 0; i < g.n; i++)
			absent += nccl_group_lags(&g, &g.members[i]);
		if (!g.still && j->merged) {
			out_fmt(o,
				"communicator 0x%" PRIx64
				": its ranks cannot be compared: they went on between the looks, "
				"or do not agree how many they are\n",
				g.members[0].hash);
			put_unseen(o, &g, true);
			shown++;
		}
		if (!g.still ||
		    !(absent || (j->merged && g.nseen < (size_t)g.nranks) || is_inside(&g)))
			continue;
		put_group(o, j, &g, absent);
		shown++;
	}
	return shown;
}

/* ---- JSON ---- */

static void put_known(struct json *j, const char *key, const char *s, size_t max)
{
	if (s[0])
		json_put_bytes(j, key, s, strnlen(s, max));
}

static void json_thread(struct json *j, const struct nccl_thread *t)
{
	json_open_object(j, NULL);
	json_put_u64(j, "tid", t->tid);
	json_put_bytes(j, "name", t->name, strnlen(t->name, sizeof(t->name)));
	put_known(j, "state", t->state, sizeof(t->state));
	put_known(j, "wait", t->wait, sizeof(t->wait));
	put_known(j, "inside", t->inside, sizeof(t->inside));
	if (t->nframes) {
		json_open_array(j, "python");
		for (int i = 0; i < t->nframes; i++)
			json_put_bytes(j, NULL, t->frames[i], strnlen(t->frames[i], FRAME_MAX));
		json_end(j);
	}
	json_end(j);
}

static void put_rank(struct json *j, const char *key, int n)
{
	if (n >= 0)
		json_put_u64(j, key, (uint64_t)n);
}

static void json_member(struct json *j, const struct nccl_member *m)
{
	json_open_object(j, NULL);
	json_put_str(j, "type", "communicator");
	json_put_u64(j, "start_ns", m->ts_ns);
	json_put_u64(j, "pid", m->pid);
	json_put_bytes(j, "process", m->comm, strnlen(m->comm, sizeof(m->comm)));
	json_put_str(j, "host", m->host);
	json_put_str(j, "boot", m->boot);
	json_put_hex(j, "hash", m->hash);
	put_rank(j, "rank", m->rank);
	put_rank(j, "ranks", m->nranks);
	put_rank(j, "device", m->device);
	json_put_u64(j, "still_ns", m->still_ns);
	json_open_object(j, "begun");
	for (int i = 0; i < m->ncounts; i++)
		json_put_u64(j, m->counts[i].kind, m->counts[i].n);
	json_end(j);
	json_open_array(j, "threads");
	for (int i = 0; i < m->nthreads; i++)
		json_thread(j, &m->threads[i]);
	json_end(j);
	json_end(j);
	out_char(j->out, '\n');
}

static void json_unseen(struct out *o, const struct nccl_group *g)
{
	int nranks = nccl_group_ranks(g), shown = 0;
	struct json j = json_to(o);

	if (nranks < 0 || g->nseen >= (size_t)nranks)
		return;
	json_open_object(&j, NULL);
	json_put_str(&j, "type", "unseen_ranks");
	json_put_u64(&j, "start_ns", g->members[0].ts_ns);
	json_put_hex(&j, "communicator_hash", g->members[0].hash);
	json_put_u64(&j, "communicator_ranks", (uint64_t)nranks);
	json_put_u64(&j, "unseen", (uint64_t)nranks - g->nseen);
	json_open_array(&j, "ranks");
	for (int r = 0; r < nranks && shown < UNSEEN_MAX; r++)
		if (!of_rank(g, r)) {
			json_put_u64(&j, NULL, (uint64_t)r);
			shown++;
		}
	json_end(&j);
	json_end(&j);
	out_char(o, '\n');
}

static void json_unknown(struct out *o, const struct nccl_unknown *u)
{
	struct json j = json_to(o);

	json_open_object(&j, NULL);
	json_put_str(&j, "type", "communicator");
	json_put_u64(&j, "start_ns", u->ts_ns);
	json_put_u64(&j, "pid", u->pid);
	json_put_bytes(&j, "process", u->comm, strnlen(u->comm, sizeof(u->comm)));
	json_put_str(&j, "host", u->host);
	json_put_str(&j, "boot", u->boot);
	json_put_str(&j, "library", u->library);
	json_put_str(&j, "unknown", u->why);
	json_end(&j);
	out_char(o, '\n');
}

/* A process that a signal ended, and no hang. */
static bool is_ended(const struct nccl_said *s)
{
	return !strncmp(s->id, "rank-ended", sizeof(s->id));
}

static void json_said(struct out *o, const struct nccl_said *s)
{
	struct json j = json_to(o);

	json_open_object(&j, NULL);
	json_put_str(&j, "type", is_ended(s) ? "ended" : "hang");
	json_put_bytes(&j, "host", s->host, strnlen(s->host, sizeof(s->host)));
	json_put_bytes(&j, "boot", s->boot, strnlen(s->boot, sizeof(s->boot)));
	json_put_bytes(&j, "id", s->id, strnlen(s->id, sizeof(s->id)));
	json_put_bytes(&j, "claim", s->claim, strnlen(s->claim, sizeof(s->claim)));
	json_end(&j);
	out_char(o, '\n');
}

void nccl_job_json(const struct nccl_job *job, struct out *o)
{
	struct nccl_group g;

	for (size_t i = 0; i < job->n; i++) {
		struct json j = json_to(o);

		json_member(&j, &job->members[i]);
	}
	for (size_t at = 0; job->merged && at < job->n;) {
		at = nccl_group_next(job, at, &g);
		json_unseen(o, &g);
	}
	for (size_t i = 0; i < job->nunknown; i++)
		json_unknown(o, &job->unknown[i]);
	for (size_t i = 0; i < job->nsaid; i++)
		json_said(o, &job->said[i]);
}

void nccl_job_print_said(const struct nccl_job *j, struct out *o)
{
	for (size_t i = 0; i < j->nsaid && i < MEMBERS_SHOWN; i++) {
		const struct nccl_said *s = &j->said[i];

		out_str(o, is_ended(s) ? "ended on " : "a hang on ");
		nccl_print_put_name(o, s->host, sizeof(s->host));
		out_str(o, ": ");
		nccl_print_put_name(o, s->claim, sizeof(s->claim));
		out_char(o, '\n');
	}
	if (j->nsaid > MEMBERS_SHOWN)
		out_fmt(o, "and %zu other hangs\n", j->nsaid - MEMBERS_SHOWN);
}

void nccl_job_print_unknown(const struct nccl_job *j, struct out *o)
{
	for (size_t i = 0; i < j->nunknown && i < MEMBERS_SHOWN; i++) {
		const struct nccl_unknown *u = &j->unknown[i];

		nccl_print_put_name(o, u->comm, sizeof(u->comm));
		out_fmt(o, ", PID %u", u->pid);
		if (u->host[0]) {
			out_str(o, ", on ");
			nccl_print_put_name(o, u->host, sizeof(u->host));
		}
		out_str(o, ", rank ?: ");
		if (u->library[0]) {
			nccl_print_put_name(o, u->library, sizeof(u->library));
			out_str(o, ": ");
		}
		nccl_print_put_name(o, u->why, sizeof(u->why));
		out_char(o, '\n');
	}
}
