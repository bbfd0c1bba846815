/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sampler.c - see sampler.h.
 *
 * A window is open while the kernel side's `sampled` says so for a function. The probes are
 * attached before it opens and detached after it closes, so that its length is known to the
 * microsecond. For each entry of the kernel side's counters, and for each pair of process and
 * function, only sums over the windows are kept.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "../../event/event.h"
#include "../../util/table/hash_map.h"
#include "../../util/now.h"
#include "../host.h"
#include "throttle.h"
#include "duty.h"
#include "estimator.h"
#include "may.h"
#include "sampler.h"

/* the first stretch; each next one is twice as long, until it has the length for the duty */
#define FIRST_STRETCH_NS 62500000ULL
#define PAIRS_MAX 65536
#define PRUNE_NS 60000000000ULL /* how long after its end the data of a process is dropped */
#define BATCH 256
/* so many nested calls are needed to treat a function as called inside another one */
#define INSIDE_MIN 100
#define PACE_DOUBT 1.25	     /* the factor by which more threads may have worked at the end */
#define PACE_NS 5000000ULL   /* a shorter time does not show how many threads work */
#define CHECK_NS 50000000ULL /* between two looks whether a function was counted for long enough */

/* The data for an entry of the kernel's counters, by its index. */
struct place {
	struct ct_count_key key;
	uint64_t last; /* number of calls at the last read */
	/* likewise the calls whose duration is known, and the sum of their durations */
	uint64_t last_timed, last_ns;
	uint64_t begun; /* number of calls when counting of each call began */
	double rate;	/* calls per ns of work while each was counted; 0: not known */
	uint64_t work_begun;
	double x, xx, xr, xw;
	struct ct_estimated banked; /* the estimate for the time before the duty was last changed */
	uint64_t hits;		    /* number of calls at the last look at the cost */
};

/* A process and a function. */
struct pair {
	struct {
		uint32_t tgid, start, func;
	} key;
	uint32_t n;
	double r, rr, w, ww;
	uint64_t refs_begun, work_begun; /* values when the function's probes were taken off */
	/* for a process that has ended: the work that it did, and the most that it may have done */
	uint64_t refs_end, work_end, work_most, ended_ns;
	bool ended;
};

/* A process. Its work is its CPU time. If that cannot be read, or with a duty, it is elapsed time,
 * because readings of CPU time are late by a tick, which is a large part of a window. */
struct runner {
	struct ct_progress_key key;
	uint64_t born_ns, cpu;	  /* when it was first seen; its CPU time when that was read last */
	uint64_t refs, refs_open; /* calls of other functions, now and when the window was opened */
	uint64_t work, work_open, work_at_ns; /* likewise; and when that was read */
	/* its maximum work per time: the number of threads that work at once */
	double pace;
	double hits, windows; /* probe hits in all windows, and the work done in them */
	/* of the calls counted there those whose duration is known, and its sum */
	double timed, spent;
	uint64_t ended_ns;
	bool ended;
	/* the cost of its calls is counted from the first look on, like its CPU time */
	bool looked;
};

struct function {
	/* when counting of each call began, and when the probes were taken off; 0: not yet */
	uint64_t counted_ns, off_ns;
	uint64_t noticed_work; /* the work, at that time, of the process that called it too often */
	uint32_t noticed_pid, n;
};

struct sampler {
	struct sampler_maps m;
	struct sampler_hooks hooks;
	bool may[CT_MAX_FUNCS], shown[CT_MAX_FUNCS];
	struct function funcs[CT_MAX_FUNCS];
	/* the noff functions whose probes are off, each behind those that are called inside of
	 * it */
	uint16_t off[CT_MAX_FUNCS];
	int noff;
	struct place *places; /* nplaces of them, as many as there are entries in use */
	size_t nplaces;
	struct hash_map pairs, processes;
	struct duty duty;
	struct duty_seen seen;
	double duty_next; /* the duty to use after the open window is closed */
	/* numbers of folded calls: when the window was opened, and in all windows; at the last
	 * look: all, and those in windows */
	uint64_t folded_open, folded_in, folded, folded_sampled;
	uint64_t pair_ns, tick_ns, random;
	int timer;
	/* by_time: work is time; counts: all calls are counted, of every process */
	bool any, any_off, open, stopped, broken, by_time, counts;
	bool inner;	 /* we are in a pid namespace that is not the initial one */
	size_t nrunning; /* processes */
	uint64_t coming_ns, opened_ns, next_ns, stretch_ns, stretch_end_ns, pruned_ns, read_ns;
};

/* The kernel adds up what another process runs at each of its ticks (thread_group_cputime()
 * brings only the caller's threads up to date). The coarse clock has a tick's resolution. */
static uint64_t tick(void)
{
	struct timespec ts;

	return clock_getres(CLOCK_MONOTONIC_COARSE, &ts)
		       ? 10000000
		       : (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

struct sampler *sampler_open(const struct capture_plan *plan, const struct sampler_maps *maps,
			     const struct sampler_hooks *hooks, uint64_t pair_ns)
{
	struct sampler *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->m = *maps;
	s->hooks = *hooks;
	s->pair_ns = pair_ns;
	s->inner = !host_initial_pid_ns();
	s->by_time = plan->duty > 0 || plan->max_cost > 0;
	s->counts = plan->count;
	s->tick_ns = s->by_time ? 0 : tick();
	s->stretch_ns = FIRST_STRETCH_NS;
	s->read_ns = now_ns();
	duty_open(&s->duty, plan->duty, plan->max_cost, pair_ns,
		  s->by_time ? THROTTLE_RATE_DUTY : THROTTLE_RATE);
	s->duty_next = s->duty.now;
	hash_map_open(&s->pairs, sizeof(struct pair), sizeof(((struct pair *)0)->key), PAIRS_MAX);
	hash_map_open(&s->processes, sizeof(struct runner), sizeof(struct ct_progress_key),
		      PAIRS_MAX);
	if (getrandom(&s->random, sizeof(s->random), GRND_NONBLOCK) != sizeof(s->random))
		s->random = now_ns();
	s->random |= 1;
	for (int i = 0; i < api_nfuncs && i < CT_MAX_FUNCS; i++) {
		s->shown[i] = plan_has(plan->shown, i);
		s->may[i] = muted_may(plan, i);
	}
	s->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (s->timer >= 0)
		return s;
	sampler_close(s);
	return NULL;
}

void sampler_close(struct sampler *s)
{
	if (!s)
		return;
	if (s->timer >= 0)
		close(s->timer);
	hash_map_close(&s->pairs);
	hash_map_close(&s->processes);
	free(s->places);
	free(s);
}

int sampler_fd(const struct sampler *s)
{
	return s->timer;
}

bool sampler_may(const struct sampler *s, uint32_t func)
{
	return func < CT_MAX_FUNCS && s->may[func];
}

bool sampler_any(const struct sampler *s)
{
	return s->any;
}

uint64_t sampler_since(const struct sampler *s, uint32_t func)
{
	return func < CT_MAX_FUNCS ? s->funcs[func].counted_ns : 0;
}

uint32_t sampler_windows(const struct sampler *s, uint32_t func)
{
	return func < CT_MAX_FUNCS ? s->funcs[func].n : 0;
}

static void set_state(struct sampler *s, uint32_t func, enum ct_sampled state)
{
	__atomic_store_n(&s->m.sampled[func], (uint8_t)state, __ATOMIC_RELEASE);
}

/* ---- what the kernel side has ---- */

/* The place of an entry, which starts anew when the entry is another one's. NULL: no memory. */
static struct place *place_at(struct sampler *s, size_t at)
{
	struct place *more, *p;

	if (at >= s->m.entries_max)
		return NULL;
	if (at >= s->nplaces) {
		size_t n = (at + 1024) & ~(size_t)1023;

		more = realloc(s->places, n * sizeof(*more));
		if (!more)
			return NULL;
		memset(more + s->nplaces, 0, (n - s->nplaces) * sizeof(*more));
		s->places = more;
		s->nplaces = n;
	}
	p = &s->places[at];
	if (memcmp(&p->key, &s->m.entries[at].key, sizeof(p->key)))
		*p = (struct place){ .key = s->m.entries[at].key };
	return p;
}

static size_t used_entries(const struct sampler *s)
{
	uint64_t n = __atomic_load_n(s->m.used, __ATOMIC_ACQUIRE);

	return n < s->m.entries_max ? n : s->m.entries_max;
}

static uint64_t calls_at(const struct sampler *s, size_t at)
{
	return ((const volatile struct ct_entry *)&s->m.entries[at])->n.calls;
}

/* What was counted for an entry since the last read. */
struct counted {
	double calls, timed, ns;
};
static struct counted count_since(const struct sampler *s, size_t at, struct place *p)
{
	const volatile struct ct_sums *n =
		&((const volatile struct ct_entry *)&s->m.entries[at])->n;
	uint64_t calls = n->calls, timed = n->timed, ns = n->ns;

	return (struct counted){ (double)losses_rise(&p->last, calls),
				 (double)losses_rise(&p->last_timed, timed),
				 (double)losses_rise(&p->last_ns, ns) };
}

/* The CPU time of a process so far; 0: it cannot be read. From inside a pid namespace it cannot, because
 * there the numbers mean other processes. */
static uint64_t work_of(const struct sampler *s, uint32_t pid)
{
	struct timespec ts;
	clockid_t clock;

	if (s->inner || clock_getcpuclockid((pid_t)pid, &clock) || clock_gettime(clock, &ts))
		return 0;
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static struct runner *runner_get(struct sampler *s, uint32_t tgid, uint32_t start)
{
	struct ct_progress_key key = { tgid, start };
	struct runner *r;
	bool made;

	r = hash_map_get(&s->processes, &key, &made);
	if (r && made) {
		r->born_ns = now_ns();
		r->cpu = work_of(s, tgid);
	}
	return r;
}

/* The work of a running process; 0: it cannot be read. From inside a pid namespace the elapsed time of a
 * process stands for its CPU time also where its share that probes take is limited. */
static uint64_t work_now(struct sampler *s, struct runner *r)
{
	uint64_t cpu = r->ended			? 0
		       : s->inner && s->by_time ? now_ns() - r->born_ns
						: work_of(s, r->key.tgid);

	if (cpu > r->cpu) {
		s->seen.cpu_ns += r->looked ? cpu - r->cpu : 0;
		r->cpu = cpu;
	}
	return cpu && s->by_time ? now_ns() - r->born_ns : cpu;
}

/* Reads the work of each process. A process that has ended keeps its last value. */
static void read_work(struct sampler *s, bool opening)
{
	for (size_t i = 0, n = used_entries(s); i < n; i++) {
		const struct ct_count_key *key = &s->m.entries[i].key;

		if (key->tgid && key->func < CT_MAX_FUNCS &&
		    (s->by_time || s->funcs[key->func].counted_ns))
			runner_get(s, key->tgid, key->start);
	}
	s->nrunning = 0;
	for (size_t i = 0; i < s->processes.n; i++) {
		struct runner *r = hash_map_at(&s->processes, i);
		uint64_t work = work_now(s, r);

		s->nrunning += !r->ended;

		if (work > r->work) {
			uint64_t now = now_ns();

			if (r->work && now - r->work_at_ns >= PACE_NS)
				r->pace = fmax(r->pace, (double)(work - r->work) /
								(double)(now - r->work_at_ns));
			r->work = work;
			r->work_at_ns = now;
		}
		if (opening)
			r->work_open = r->work;
	}
	s->read_ns = now_ns();
}

/* Reads how many calls of other functions each process has made, and its work. */
static void read_progress(struct sampler *s, bool opening)
{
	struct ct_progress_key keys[BATCH], in = { 0 }, out = { 0 };
	uint64_t values[BATCH];
	bool first = true;
	int err;

	do {
		uint32_t n = BATCH;

		err = bpf_map_lookup_batch(s->m.progress_fd, first ? NULL : &in, &out, keys, values,
					   &n, NULL);
		if (err && err != -ENOENT)
			break;
		for (uint32_t i = 0; i < n; i++) {
			struct runner *p = runner_get(s, keys[i].tgid, keys[i].start);

			if (!p)
				continue;
			p->refs = values[i];
			if (opening)
				p->refs_open = values[i];
		}
		in = out;
		first = false;
	} while (!err);
	read_work(s, opening);
}

static struct runner *sampler_process_of(const struct sampler *s, uint32_t tgid, uint32_t start)
{
	struct ct_progress_key key = { tgid, start };

	return hash_map_find(&s->processes, &key);
}

static uint64_t runner_work(const struct sampler *s, const struct ct_count_key *key)
{
	const struct runner *r = sampler_process_of(s, key->tgid, key->start);

	return r ? r->work : 0;
}

/* ---- functions that are sampled ---- */

void sampler_notice(struct sampler *s, uint32_t func, uint32_t pid)
{
	struct function *f = &s->funcs[func];

	if (s->stopped || !sampler_may(s, func) || f->counted_ns)
		return;
	s->any = true;
	*s->m.sampling = true;
	f->counted_ns = now_ns();
	f->noticed_pid = pid;
	f->noticed_work = s->by_time ? 0 : work_of(s, pid);
	set_state(s, func, CT_SAMPLED_COUNTED);
	read_work(s, false);
	for (size_t i = 0; i < used_entries(s); i++) {
		struct place *p = s->m.entries[i].key.func == func ? place_at(s, i) : NULL;

		if (!p)
			continue;
		p->begun = p->last = calls_at(s, i);
		p->work_begun = runner_work(s, &p->key);
	}
}

void sampler_look(struct sampler *s, sampler_calls_fn fn, void *ctx)
{
	uint64_t now = now_ns();

	for (size_t i = 0, n = used_entries(s); i < n && !s->stopped; i++) {
		uint32_t func = s->m.entries[i].key.func;
		struct place *p =
			sampler_may(s, func) && !s->funcs[func].counted_ns ? place_at(s, i) : NULL;
		uint64_t calls = p ? calls_at(s, i) : 0, before = p ? p->last : 0;

		if (calls <= before)
			continue;
		p->last = calls;
		fn(ctx, p->key.tgid, func, calls - before, now);
	}
}

/* Takes the probes of these functions off, and those of sampled functions that are called inside
 * them. */
static void add_inside(struct sampler *s, uint64_t *funcs)
{
	for (int f = 0; f < api_nfuncs && f < CT_MAX_FUNCS; f++) {
		for (int i = 0; plan_has(funcs, f) && i < CT_INSIDE_MAX; i++) {
			int inner = (int)s->m.inside[f][i].func - 1;

			if (inner >= 0 && s->m.inside[f][i].calls >= INSIDE_MIN &&
			    sampler_may(s, (uint32_t)inner) && !s->funcs[inner].off_ns)
				plan_add(funcs, inner);
		}
	}
}

static void begin_pairs(struct sampler *s, uint32_t func)
{
	for (size_t i = 0; i < s->processes.n; i++) {
		const struct runner *p = hash_map_at(&s->processes, i);
		struct pair want = { .key = { p->key.tgid, p->key.start, func } }, *pair;
		bool made;

		pair = hash_map_get(&s->pairs, &want.key, &made);
		if (!pair)
			continue;
		pair->refs_begun = p->refs;
		pair->work_begun = p->work;
	}
}

/* Appends a function to those that are off, behind those of them that are called inside of it.
 * `left` has the ones to append. */
static void append_off(struct sampler *s, int func, uint64_t *left)
{
	plan_remove(left, func);
	for (int i = 0; i < CT_INSIDE_MAX; i++) {
		int inner = (int)s->m.inside[func][i].func - 1;

		if (inner >= 0 && inner < CT_MAX_FUNCS && plan_has(left, inner))
			append_off(s, inner, left);
	}
	s->off[s->noff++] = (uint16_t)func;
}

/* Adds these to the functions that are off. */
static void order_off(struct sampler *s, const uint64_t *funcs)
{
	uint64_t left[PLAN_WORDS];

	memcpy(left, funcs, sizeof(left));
	for (int i = 0; i < s->noff; i++)
		plan_add(left, s->off[i]);
	s->noff = 0;
	for (int f = 0; f < api_nfuncs; f++)
		if (plan_has(left, f))
			append_off(s, f, left);
}

/* While the calls of an outer function are not seen, calls inside it look as if the program had
 * made them. So the inner functions are closed before the outer one and opened after it, and
 * nothing else is done in between. */
static void close_all(struct sampler *s)
{
	for (int i = 0; i < s->noff; i++)
		set_state(s, s->off[i], CT_SAMPLED_OFF);
}

/* Is it called inside another function that is off? */
static bool is_inside(const struct sampler *s, uint16_t func)
{
	for (int i = 0; i < s->noff; i++)
		for (int j = 0; j < CT_INSIDE_MAX; j++)
			if (s->m.inside[s->off[i]][j].func == func + 1u)
				return true;
	return false;
}

static void open_all(struct sampler *s)
{
	__atomic_store_n(s->m.window, *s->m.window + 1, __ATOMIC_RELEASE);
	for (int i = s->noff - 1; i >= 0; i--)
		set_state(s, s->off[i],
			  is_inside(s, s->off[i]) ? CT_SAMPLED_INSIDE : CT_SAMPLED_COUNTED);
}

static void begin_off(struct sampler *s, uint32_t func, uint64_t now)
{
	struct function *f = &s->funcs[func];

	f->off_ns = now;
	if (!f->counted_ns)
		f->counted_ns = now;
	for (size_t i = 0; i < used_entries(s); i++) {
		struct place *p = s->m.entries[i].key.func == func ? place_at(s, i) : NULL;
		uint64_t worked;

		if (!p)
			continue;
		count_since(s, i, p);
		worked = runner_work(s, &p->key);
		/* its calls were not counted before it was noticed: it has its entry only since then */
		if (!p->work_begun && p->key.tgid == f->noticed_pid && !s->by_time)
			p->work_begun = f->noticed_work;
		if (worked > p->work_begun && p->work_begun)
			p->rate = (double)(p->last - p->begun) / (double)(worked - p->work_begun);
	}
	begin_pairs(s, func);
}

/* Was each of its calls counted for a long enough time? */
static bool is_counted_out(const struct sampler *s, const struct function *f, uint64_t now)
{
	uint64_t work = s->by_time ? 0 : work_of(s, f->noticed_pid);

	if (now - f->counted_ns < SAMPLER_COUNT_NS)
		return false;
	return !work || work - f->noticed_work >= SAMPLER_COUNT_NS ||
	       now - f->counted_ns >= SAMPLER_COUNT_MAX_NS;
}

/* Does it call a function whose probe must stay? The calls of that function would then look as if
 * the program had made them. */
static bool must_stay(const struct sampler *s, uint32_t func)
{
	for (int i = 0; i < CT_INSIDE_MAX; i++) {
		uint32_t inner = s->m.inside[func][i].func - 1;

		if (inner < CT_MAX_FUNCS && s->m.inside[func][i].calls >= INSIDE_MIN &&
		    s->shown[inner] && !sampler_may(s, inner))
			return true;
	}
	return false;
}

/* ---- the duty ---- */

static struct ct_estimated unseen_lately(struct sampler *s, uint32_t at);

static uint64_t first_stretch(const struct sampler *s)
{
	uint64_t least = duty_window_ns(&s->duty) * 5 / 2,
		 most = duty_stretch_ns(&s->duty, &s->seen),
		 first = least > FIRST_STRETCH_NS ? least : FIRST_STRETCH_NS;

	return first < most ? first : most;
}

/* Are there so many windows that they are enough for an estimate? */
static bool can_bank(const struct pair *p)
{
	return p && !p->ended && p->n >= DUTY_WINDOWS;
}

/* Calls per ns in the windows, or, if the windows do not show it, the earlier rate. */
static double rate_of(const struct sampler *s, const struct place *p, const struct pair *key)
{
	const struct pair *pair = hash_map_find(&s->pairs, &key->key);

	return pair && pair->w > 0 ? p->x / pair->w : p->rate;
}

/*
 * Windows of different duties must not be mixed: a busy stretch has fewer of them than a quiet one,
 * because the duty follows the cost. So the estimate until now is fixed, and new windows begin. If
 * a process has only few windows, they are continued.
 */
static void bank(struct sampler *s)
{
	for (size_t i = 0, n = used_entries(s); i < n; i++) {
		uint32_t func = s->m.entries[i].key.func;
		struct place *p = func < CT_MAX_FUNCS && s->funcs[func].off_ns ? place_at(s, i)
									       : NULL;
		struct pair want = { .key = { 0, 0, func } };
		struct ct_estimated e;

		if (!p)
			continue;
		want.key.tgid = p->key.tgid;
		want.key.start = p->key.start;
		if (!can_bank(hash_map_find(&s->pairs, &want.key)))
			continue;
		e = unseen_lately(s, (uint32_t)i);
		p->banked.calls += e.calls;
		p->banked.below += e.below;
		p->banked.above += e.above;
		p->rate = rate_of(s, p, &want);
		p->x = p->xx = p->xr = p->xw = 0;
	}
	for (size_t i = 0; i < s->pairs.n; i++) {
		struct pair *p = hash_map_at(&s->pairs, i);
		const struct runner *r = sampler_process_of(s, p->key.tgid, p->key.start);

		if (!can_bank(p) || !r)
			continue;
		p->n = 0;
		p->r = p->rr = p->w = p->ww = 0;
		p->refs_begun = r->refs;
		p->work_begun = r->work;
	}
}

/* No window is open. */
static void change_duty(struct sampler *s)
{
	if (s->duty_next >= s->duty.now && s->duty_next <= s->duty.now)
		return;
	bank(s);
	duty_set(&s->duty, s->duty_next, s->seen.windows);
	s->stretch_ns = first_stretch(s);
	s->next_ns = s->stretch_end_ns = 0;
}

/* Those whose time of being counted is over, together: their links are made anew once. */
static void turn_off(struct sampler *s, uint64_t now)
{
	uint64_t funcs[PLAN_WORDS] = { 0 };
	bool any = false;

	for (uint32_t f = 0; f < (uint32_t)api_nfuncs; f++) {
		if (!s->funcs[f].counted_ns || s->funcs[f].off_ns ||
		    !is_counted_out(s, &s->funcs[f], now) || must_stay(s, f))
			continue;
		plan_add(funcs, (int)f);
		any = true;
	}
	if (!any)
		return;
	add_inside(s, funcs);
	order_off(s, funcs);
	read_progress(s, false);
	now = now_ns();
	close_all(s);
	for (uint32_t f = 0; f < (uint32_t)api_nfuncs; f++)
		if (plan_has(funcs, (int)f))
			begin_off(s, f, now);
	s->any_off = true;
	if (!s->seen.sampled_from)
		s->seen.sampled_from = now;
	s->hooks.off(s->hooks.ctx, funcs);
	s->duty_next = duty_first(&s->duty);
	change_duty(s);
	/* the windows begin anew, close together: little is known of what joins them */
	s->stretch_ns = first_stretch(s);
	s->next_ns = s->stretch_end_ns = 0;
}

/* ---- windows ---- */

static double uniform(struct sampler *s)
{
	s->random ^= s->random << 13;
	s->random ^= s->random >> 7;
	s->random ^= s->random << 17;
	return (double)(s->random >> 11) / 9007199254740992.0;
}

/* The next window's begin: anywhere in the next stretch. */
static void choose_next(struct sampler *s, uint64_t now)
{
	uint64_t begin = s->stretch_end_ns > now ? s->stretch_end_ns : now;

	s->next_ns =
		begin + (uint64_t)(uniform(s) * (double)(s->stretch_ns - duty_window_ns(&s->duty)));
	s->stretch_end_ns = begin + s->stretch_ns;
	s->stretch_ns *= 2;
	if (s->stretch_ns > duty_stretch_ns(&s->duty, &s->seen))
		s->stretch_ns = duty_stretch_ns(&s->duty, &s->seen);
}

static uint64_t folded_now(const struct sampler *s)
{
	return s->hooks.folded ? s->hooks.folded(s->hooks.ctx) : 0;
}

static void open_window(struct sampler *s)
{
	s->coming_ns = now_ns();
	s->broken = !s->hooks.open(s->hooks.ctx);
	if (s->broken)
		return;
	read_progress(s, true);
	s->open = true;
	s->folded_open = folded_now(s);
	s->opened_ns = now_ns();
	open_all(s);
}

/* Adds what the window showed for each process, and the process's other activity in it. */
static void take_pairs(struct sampler *s)
{
	for (size_t i = 0; i < s->processes.n; i++) {
		struct runner *p = hash_map_at(&s->processes, i);
		double r = (double)(p->refs - p->refs_open), w = (double)(p->work - p->work_open);

		p->hits += r;
		p->windows += w;
		for (int o = 0; o < s->noff && !p->ended; o++) {
			uint32_t f = s->off[o];
			struct pair want = { .key = { p->key.tgid, p->key.start, f } }, *pair;
			bool made;

			pair = hash_map_get(&s->pairs, &want.key, &made);
			if (!pair || pair->ended)
				continue;
			/* a process that began later did nothing in the windows before */
			if (made)
				pair->n = s->funcs[f].n;
			pair->n++;
			pair->r += r;
			pair->rr += r * r;
			pair->w += w;
			pair->ww += w * w;
		}
	}
}

static void take_places(struct sampler *s)
{
	for (size_t i = 0, n = used_entries(s); i < n; i++) {
		uint32_t func = s->m.entries[i].key.func;
		struct place *p = func < CT_MAX_FUNCS && s->funcs[func].off_ns ? place_at(s, i)
									       : NULL;
		struct runner *process;
		struct counted c;
		double x, r, w;

		if (!p)
			continue;
		c = count_since(s, i, p);
		x = c.calls;
		process = sampler_process_of(s, p->key.tgid, p->key.start);
		if (!process)
			continue;
		r = (double)(process->refs - process->refs_open);
		w = (double)(process->work - process->work_open);
		process->hits += x;
		process->timed += c.timed;
		process->spent += c.ns;
		p->x += x;
		p->xx += x * x;
		p->xr += x * r;
		p->xw += x * w;
	}
}

static void close_window(struct sampler *s)
{
	uint64_t closed;

	close_all(s);
	closed = now_ns();
	read_progress(s, false);
	s->folded_in += losses_rise(&s->folded_open, folded_now(s));
	s->hooks.close(s->hooks.ctx);
	s->open = false;
	take_places(s);
	take_pairs(s);
	for (uint32_t f = 0; f < (uint32_t)api_nfuncs; f++)
		s->funcs[f].n += s->funcs[f].off_ns != 0;
	s->seen.windows++;
	s->seen.window_ns += closed - s->opened_ns;
	s->seen.on_ns += closed + DUTY_GOING_NS - s->coming_ns;
	s->seen.switched += (uint64_t)s->noff * s->nrunning;
	change_duty(s);
}

static void set_timer(struct sampler *s, uint64_t now)
{
	struct itimerspec at = { 0 };
	uint64_t next = s->open			   ? s->opened_ns + duty_window_ns(&s->duty)
			: s->any_off && !s->broken ? s->next_ns
						   : 0;

	for (uint32_t f = 0; f < (uint32_t)api_nfuncs; f++) {
		bool goes = s->funcs[f].counted_ns && !s->funcs[f].off_ns && !must_stay(s, f);
		uint64_t off = goes ? s->funcs[f].counted_ns + SAMPLER_COUNT_NS : 0;

		if (off && off < now + CHECK_NS)
			off = now + CHECK_NS;
		next = off && (!next || off < next) ? off : next;
	}
	if (next && next <= now)
		next = now + 1;
	at.it_value.tv_sec = (time_t)(next / 1000000000);
	at.it_value.tv_nsec = (long)(next % 1000000000);
	timerfd_settime(s->timer, TFD_TIMER_ABSTIME, &at, NULL);
}

/* Forgets processes that ended long ago: their last sums were read. */
static void prune(struct sampler *s, uint64_t now)
{
	if (now - s->pruned_ns < PRUNE_NS / 4)
		return;
	s->pruned_ns = now;
	for (size_t i = s->pairs.n; i-- > 0;) {
		struct pair *p = hash_map_at(&s->pairs, i);

		if (p->ended && now > p->ended_ns + PRUNE_NS)
			hash_map_remove(&s->pairs, p);
	}
	for (size_t i = s->processes.n; i-- > 0;) {
		struct runner *r = hash_map_at(&s->processes, i);

		if (r->ended && now > r->ended_ns + PRUNE_NS)
			hash_map_remove(&s->processes, r);
	}
}

void sampler_step(struct sampler *s)
{
	uint64_t now, fired;

	if (!s->any || s->stopped)
		return;
	if (read(s->timer, &fired, sizeof(fired)) < 0)
		fired = 0;
	now = now_ns();
	if (s->open && now - s->opened_ns >= duty_window_ns(&s->duty))
		close_window(s);
	prune(s, now);
	if (!s->open) {
		change_duty(s);
		turn_off(s, now);
		now = now_ns();
		if (s->any_off && !s->broken && !s->next_ns)
			choose_next(s, now);
		if (s->any_off && !s->broken && now >= s->next_ns) {
			open_window(s);
			choose_next(s, now_ns());
		}
	}
	set_timer(s, now_ns());
}

/* ---- what it costs ---- */

void sampler_cost(struct sampler *s)
{
	uint64_t folded, in_window, rise, sampled;

	if (!s->by_time || !s->counts || s->stopped)
		return;
	s->seen.at_ns = now_ns();
	if (s->seen.at_ns - s->duty.last.at_ns < DUTY_LOOK_NS && s->duty.last.at_ns)
		return;
	read_work(s, false);
	for (size_t i = 0, n = used_entries(s); i < n; i++) {
		uint32_t func = s->m.entries[i].key.func;
		struct place *p = s->m.entries[i].key.tgid && func < CT_MAX_FUNCS ? place_at(s, i)
										  : NULL;
		const struct runner *r = p ? sampler_process_of(s, p->key.tgid, p->key.start)
					   : NULL;
		uint64_t calls = p ? calls_at(s, i) : 0, more = p ? calls - p->hits : 0;

		if (!r || calls < p->hits)
			continue;
		p->hits = calls;
		if (!r->looked)
			continue;
		if (s->funcs[func].off_ns)
			s->seen.sampled += more;
		else
			s->seen.kept += more;
	}
	for (size_t i = 0; i < s->processes.n; i++)
		((struct runner *)hash_map_at(&s->processes, i))->looked = true;
	folded = folded_now(s);
	in_window = s->open && folded > s->folded_open ? folded - s->folded_open : 0;
	rise = losses_rise(&s->folded, folded);
	sampled = losses_rise(&s->folded_sampled, s->folded_in + in_window);
	s->seen.sampled += sampled;
	s->seen.kept += rise > sampled ? rise - sampled : 0;
	s->duty_next = duty_look(&s->duty, &s->seen);
}

uint64_t sampler_rate(const struct sampler *s)
{
	return s->duty.max_cost > 0 && !s->duty.over ? 0 : s->duty.rate;
}

double sampler_kept_cost(const struct sampler *s)
{
	return s->duty.max_cost > 0 && s->duty.rate <= DUTY_RATE_LEAST && s->duty.over &&
			       s->duty.kept_cost > s->duty.max_cost
		       ? s->duty.kept_cost
		       : 0;
}

void sampler_tell_cost(const struct sampler *s, struct probe_cost *c)
{
	*c = (struct probe_cost){ .reported = s->by_time,
				  .duty = s->any_off ? s->duty.now : 1,
				  .cost = s->duty.cost,
				  .max_cost = s->duty.max_cost,
				  .ns = (uint64_t)duty_cost_ns(&s->duty, &s->seen),
				  .cpu_ns = s->seen.cpu_ns,
				  .functions = (unsigned int)s->noff };
}

/* ---- ends ---- */

void sampler_ended(struct sampler *s, uint32_t pid, uint64_t at_ns)
{
	if (!s->any)
		return;
	read_progress(s, false);
	for (size_t i = 0; i < s->processes.n; i++) {
		struct runner *r = hash_map_at(&s->processes, i);

		if (r->key.tgid != pid || at_ns < r->born_ns || r->ended)
			continue;
		r->ended = true;
		r->ended_ns = at_ns;
	}
	for (size_t i = 0; i < s->pairs.n; i++) {
		struct pair *p = hash_map_at(&s->pairs, i);
		const struct runner *process;

		if (p->key.tgid != pid || p->ended)
			continue;
		process = sampler_process_of(s, p->key.tgid, p->key.start);
		p->ended = true;
		p->ended_ns = at_ns;
		p->refs_end = process ? process->refs : p->refs_begun;
		/* its clock can no longer be read: all its threads may have worked until it
		 * ended */
		p->work_end = p->work_most = process ? process->work : p->work_begun;
		if (process && s->by_time && at_ns > process->born_ns)
			p->work_end = p->work_most = at_ns - process->born_ns;
		else if (process && at_ns > process->work_at_ns)
			p->work_most += (uint64_t)((double)(at_ns - process->work_at_ns) *
						   fmax(process->pace * PACE_DOUBT, 1));
	}
}

void sampler_stop(struct sampler *s)
{
	if (!s || s->stopped)
		return;
	if (s->open)
		close_window(s);
	read_progress(s, false);
	s->stopped = true;
}

/* ---- what went by unseen ---- */

void sampler_refresh(struct sampler *s)
{
	if (s->any && !s->stopped)
		read_progress(s, false);
}

/* Since the duty was last changed. */
static struct ct_estimated unseen_lately(struct sampler *s, uint32_t at)
{
	const struct ct_count_key *key = &s->m.entries[at].key;
	const struct function *f = &s->funcs[key->func & (CT_MAX_FUNCS - 1)];
	struct pair want = { .key = { key->tgid, key->start, key->func } };
	const struct runner *process;
	struct estimator_windows windows;
	struct estimator_rest rest;
	const struct pair *pair;
	const struct place *p;

	p = f->off_ns ? place_at(s, at) : NULL;
	pair = hash_map_find(&s->pairs, &want.key);
	process = sampler_process_of(s, key->tgid, key->start);
	if (!p || !process)
		return (struct ct_estimated){ 0 };
	windows = (struct estimator_windows){ .n = pair ? pair->n : f->n,
					      .x = p->x,
					      .xx = p->xx,
					      .xr = p->xr,
					      .xw = p->xw,
					      .r = pair ? pair->r : 0,
					      .rr = pair ? pair->rr : 0,
					      .w = pair ? pair->w : 0,
					      .ww = pair ? pair->ww : 0 };
	rest = (struct estimator_rest){ .rate = p->rate,
					.called = p->last > 0,
					.r = -1,
					.ns = (double)process->work,
					.most_ns = (double)process->work,
					.hits = process->hits,
					.window_ns = process->windows,
					.timed = process->timed,
					.spent_ns = process->spent,
					.tick_ns = (double)s->tick_ns,
					.by_time = s->by_time,
					.pair_ns = (double)s->pair_ns,
					.times = s->duty.now > 0 ? 1 / s->duty.now : 0 };
	if (!pair) {
		/* it began when the probes were off already, and ended in the window in which it
		 * was first seen */
		windows.w = process->windows;
		rest.ns = rest.most_ns = fmax(rest.ns - windows.w, 0);
	} else {
		rest.ns = (double)((pair->ended ? pair->work_end : process->work) -
				   pair->work_begun) -
			  pair->w;
		rest.most_ns =
			rest.ns + (pair->ended ? (double)(pair->work_most - pair->work_end) : 0);
		rest.r = (double)((pair->ended ? pair->refs_end : process->refs) -
				  pair->refs_begun) -
			 pair->r;
	}
	return estimator_estimate(&windows, &rest);
}

struct ct_estimated sampler_unseen(struct sampler *s, uint32_t at)
{
	const struct ct_count_key *key = &s->m.entries[at].key;
	struct ct_estimated e = unseen_lately(s, at);
	const struct place *p = s->funcs[key->func & (CT_MAX_FUNCS - 1)].off_ns ? place_at(s, at)
										: NULL;

	if (p) {
		e.calls += p->banked.calls;
		e.below += p->banked.below;
		e.above += p->banked.above;
	}
	return e;
}
