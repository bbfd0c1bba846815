/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stacks.c - see stacks.h.
 *
 * A stack is unwound for every call: with the kept rows of call frame information (cfi.c) this
 * costs less than to compare the 16 KiB with those of an earlier call, and it cannot be wrong. The
 * names and lines of the addresses are costly, so they are looked up once.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "frames.h"
#include "../../proc/python.h"
#include "python_stack.h"
#include "stacks.h"
#include "unwind.h"
#include "../../util/io/bounded.h"
#include "../../util/msg.h"
#include "../../event/registry.h"
#include "../../../wire/control.h"

#define SPACES_MAX 1024 /* processes whose mappings are kept */
#define SETS 128	/* raw stacks that wait for their calls: SETS times WAYS, by thread */
#define LOOK_AGAIN_NS 100000000ULL
#define WAYS 8

struct owner {
	struct registered r;
	struct space *space;
	uint64_t looked_ns;	 /* when it was searched for an interpreter; 0: not yet */
	struct ct_python python; /* runtime 0: there is none */
};

/* What is known of the stack of one call. After it is resolved, only its id is kept, because the
 * call's entry and its return are two records. */
struct raw {
	uint32_t pid, tid;
	uint64_t start_ns;
	uint64_t used; /* 0: free */
	bool done;
	uint32_t id;
	struct ct_user_stack *native; /* NULL: no native stack came */
	struct ct_py_frame *python;
	uint32_t npython;
	bool python_cut;
};

struct stacks {
	struct objects *objects;
	bool lent; /* they are the caller's */
	struct frames *frames;
	struct python *python;
	struct registry owners; /* of struct owner */
	struct raw raws[SETS][WAYS];
	uint64_t clock, resolved, broken;
	struct unwind_frame native[UNWIND_MAX];
	uint32_t ids[FRAMES_MAX];
};

static void forgotten(void *ctx, void *item, const struct ct_hdr *h)
{
	(void)ctx, (void)h;
	space_close(((struct owner *)item)->space);
}

static const struct registry_rules rules = { .size = sizeof(struct owner),
					     .most = SPACES_MAX,
					     .stays_ns = UINT64_MAX,
					     .forgets = true,
					     .gone = forgotten };

struct stacks *stacks_open(emit_fn out, void *ctx, struct objects *lent, bool impatient)
{
	struct stacks *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	registry_open(&s->owners, &rules, s);
	s->objects = lent ? lent : objects_open();
	s->lent = lent != NULL;
	s->frames = frames_open(out, ctx);
	s->python = python_open();
	if (!s->objects || !s->frames || !s->python) {
		stacks_close(s);
		return NULL;
	}
	if (impatient)
		objects_impatient(s->objects);
	return s;
}

static void raw_clear(struct raw *r)
{
	free(r->native);
	free(r->python);
	r->native = NULL;
	r->python = NULL;
	r->npython = 0;
}

static void drop_owner(struct stacks *s, struct owner *o)
{
	if (!o)
		return;
	registry_forget(&s->owners, o);
}

void stacks_close(struct stacks *s)
{
	if (!s)
		return;
	for (int i = 0; i < SETS * WAYS; i++)
		raw_clear(&s->raws[i / WAYS][i % WAYS]);
	registry_close(&s->owners);
	python_close(s->python);
	frames_close(s->frames);
	if (!s->lent)
		objects_close(s->objects);
	free(s);
}

int stacks_error(const struct stacks *s)
{
	return frames_error(s->frames);
}

void stacks_totals(const struct stacks *s, uint64_t *resolved, uint64_t *broken)
{
	*resolved = s->resolved;
	*broken = s->broken;
}

/* ---- processes ---- */

static struct owner *owner_of(const struct stacks *s, uint32_t pid)
{
	return registry_find(&s->owners, pid);
}

static struct owner *owner_add(struct stacks *s, uint32_t pid, struct space *space)
{
	struct owner *o = space ? registry_get(&s->owners, pid) : NULL;

	if (o)
		o->space = space;
	else
		space_close(space);
	return o;
}

static struct space *space_of(struct stacks *s, struct target *t, uint32_t pid)
{
	struct owner *o = owner_of(s, pid);

	if (!o)
		o = owner_add(s, pid, space_open(s->objects));
	if (!o)
		return NULL;
	/* a stack that comes after its process has ended belongs to the next process with the same
	 * number */
	if (o->r.exited && t && !space_refresh(o->space, t))
		registry_lives(&s->owners, o);
	registry_get(&s->owners, pid);
	return o->space;
}

static void look_again(struct stacks *s, struct target *t, uint32_t pid)
{
	struct space *space = t ? space_of(s, t, pid) : NULL;

	if (space)
		space_changed(space, t);
}

void stacks_process(struct stacks *s, struct target *t, const struct ct_hdr *h)
{
	struct owner *o = owner_of(s, h->pid);
	uint32_t child;

	switch (h->kind) {
	case CT_PROCESS:
		if (o && !o->r.exited)
			break;
		drop_owner(s, o);
		look_again(s, t, h->pid);
		break;
	case CT_EXEC:
		drop_owner(s, o);
		python_drop(s->python, h->pid);
		look_again(s, t, h->pid);
		break;
	case CT_EXIT:
		registry_record(&s->owners, h);
		python_drop(s->python, h->pid);
		break;
	case CT_FORK:
		child = ((const struct ct_fork *)h)->child_pid;
		if (!o || child == h->pid)
			break;
		drop_owner(s, owner_of(s, child));
		owner_add(s, child, space_copy(o->space));
		break;
	case CT_MAP: look_again(s, t, h->pid); break;
	}
}

/* ---- raw records ---- */

static struct raw *raw_find(struct stacks *s, const struct ct_hdr *h, bool make)
{
	struct raw *set = s->raws[(h->tid * 2654435761u >> 16) % SETS], *oldest = set;

	for (int i = 0; i < WAYS; i++) {
		if (set[i].used && set[i].tid == h->tid && set[i].pid == h->pid &&
		    set[i].start_ns == h->start_ns)
			return &set[i];
		if (set[i].used < oldest->used)
			oldest = &set[i];
	}
	if (!make)
		return NULL;
	raw_clear(oldest);
	*oldest = (struct raw){
		.pid = h->pid, .tid = h->tid, .start_ns = h->start_ns, .used = ++s->clock
	};
	return oldest;
}

static int keep_native(struct stacks *s, const struct ct_user_stack *us)
{
	struct raw *r;

	if (us->h.size < sizeof(*us) || us->len > us->h.size - sizeof(*us) ||
	    us->nsaved > CT_MAX_FRAMES || (us->how == CT_STACK_ADDRESSES && us->len % 8))
		return -EBADMSG;
	r = raw_find(s, &us->h, true);
	if (r->done)
		return 0;
	free(r->native);
	r->native = malloc(us->h.size);
	if (!r->native)
		return -ENOMEM;
	memcpy(r->native, us, us->h.size);
	return 0;
}

static int keep_python(struct stacks *s, const struct ct_py_stack *ps)
{
	struct ct_py_frame *more;
	struct raw *r;

	if (ps->h.size < sizeof(*ps) || ps->n > (ps->h.size - sizeof(*ps)) / sizeof(ps->frames[0]))
		return -EBADMSG;
	r = raw_find(s, &ps->h, true);
	if (r->done)
		return 0;
	/* pieces come in order; if one is missing, the place of the frames behind it is not
	 * known */
	r->python_cut |= ps->cut || ps->first != r->npython;
	if (ps->first != r->npython || ps->n > CT_PY_MAX - r->npython || !ps->n)
		return 0;
	more = realloc(r->python, (r->npython + ps->n) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	memcpy(more + r->npython, ps->frames, ps->n * sizeof(*more));
	r->python = more;
	r->npython += ps->n;
	return 0;
}

int stacks_record(struct stacks *s, struct target *t, const struct ct_hdr *h)
{
	(void)t;
	switch (h->kind) {
	case CT_USER_STACK: return keep_native(s, (const struct ct_user_stack *)h);
	case CT_PY_STACK: return keep_python(s, (const struct ct_py_stack *)h);
	case CT_PY_CODE: return python_code(s->python, (const struct ct_py_code *)h);
	}
	return 0;
}

/* ---- joining ---- */

struct join {
	struct stacks *s;
	const struct raw *r;
	struct space *space;
	struct target *target;
	uint32_t n, next_python;
	bool incomplete; /* something could not be looked up now, but may be known later */
};

static void add(struct join *j, uint32_t id)
{
	if (j->n < FRAMES_MAX)
		j->s->ids[j->n++] = id;
}

/* A program that has frames of Python may have been another one, or not far enough, when it was looked at. */
static void look_for_python(struct join *j, struct owner *o)
{
	uint64_t now = j->r->start_ns;

	if (o->python.runtime || (o->looked_ns && now < o->looked_ns + LOOK_AGAIN_NS))
		return;
	target_refresh(j->target);
	if (python_find(j->target, &o->python, NULL))
		o->python.runtime = 0;
	o->looked_ns = now;
}

/* The checks of the code objects that are at the frames' addresses now, of frames that came without: they
 * were taken where reading more was too much. */
static void add_checks(struct join *j)
{
	struct owner *o = owner_of(j->s, j->r->pid);
	__u64 words[CT_PY_CHECK_WORDS];

	for (uint32_t i = 0; i < j->r->npython && j->target && o; i++) {
		struct ct_py_frame *f = &j->r->python[i];

		if (f->check || f->flags & CT_PY_SHIM)
			continue;
		look_for_python(j, o);
		if (o->python.runtime &&
		    !target_read(j->target, f->code + o->python.code_check, words, sizeof(words)))
			f->check = ct_py_check(words);
	}
}

/* Reads a code object from the process, because its record was lost or forgotten. */
static bool learn_code(struct join *j, uint64_t code)
{
	struct owner *o = owner_of(j->s, j->r->pid);
	_Alignas(8) char rec[PYTHON_CODE_BYTES];

	if (!j->target || !o)
		return false;
	look_for_python(j, o);
	if (!o->python.runtime ||
	    python_read_code(j->target, &o->python, code, rec, sizeof(rec)) < 0)
		return false;
	((struct ct_py_code *)rec)->h.pid = j->r->pid;
	return !python_code(j->s->python, (struct ct_py_code *)rec);
}

static void add_python(struct join *j, const struct ct_py_frame *f)
{
	struct python_place p;

	if (python_frame(j->s->python, j->r->pid, f, &p) ||
	    (learn_code(j, f->code) && python_frame(j->s->python, j->r->pid, f, &p))) {
		add(j, frames_python(j->s->frames, p.function ? p.function : "", p.file, p.line,
				     f->code));
		return;
	}
	j->incomplete = true;
	add(j, frames_python(j->s->frames, NULL, NULL, 0, f->code));
}

/*
 * Adds the Python frames that one evaluation loop runs, up to and including the one that C called.
 * When a frame ends, the objects that it held are destroyed, which may run Python code again. At
 * that moment the loop has left its last frame and has only a shim, which is not a frame of the
 * program. Returns how many frames were added.
 */
static uint32_t add_run(struct join *j)
{
	uint32_t before = j->n;

	while (j->next_python < j->r->npython) {
		const struct ct_py_frame *f = &j->r->python[j->next_python++];

		if (!(f->flags & CT_PY_SHIM))
			add_python(j, f);
		if (f->flags & CT_PY_ENTRY)
			break;
	}
	return j->n - before;
}

static void add_native(struct join *j, const struct unwind_frame *f)
{
	struct space_place p = space_find(j->space, NULL, f->ip - !f->exact);
	struct frames_place place;

	if (p.kind != SPACE_OBJECT) {
		add(j, frames_unknown(j->s->frames, f->ip));
		return;
	}
	place = frames_native(j->s->frames, p.object, p.address + !f->exact, f->exact);
	if (place.evaluates && j->next_python < j->r->npython && add_run(j))
		return;
	for (uint32_t i = 0; i < place.count; i++)
		add(j, place.first + i);
}

/* Makes a key of everything that the addresses depend on: equal keys give equal stacks. */
static struct memo_key key_of(const struct stacks *s, const struct raw *r,
			      const struct space *space, int n, uint32_t flags)
{
	struct memo_key k = memo_begin(100);

	memo_add(&k, space ? space_generation(space) : 0);
	memo_add(&k, (uint64_t)n << 32 | flags);
	for (int i = 0; i < n; i++) {
		memo_add(&k, s->native[i].ip);
		memo_add(&k, s->native[i].exact);
	}
	memo_add(&k, (uint64_t)r->pid << 32 | r->npython);
	memo_add_bytes(&k, r->python, r->npython * sizeof(r->python[0]));
	return k;
}

static uint32_t resolve(struct stacks *s, struct target *t, const struct raw *r, uint64_t time_ns)
{
	struct join j = { .s = s, .r = r, .target = t, .space = space_of(s, t, r->pid) };
	uint32_t flags = 0, id;
	struct memo_key key;
	int n = 0;

	objects_set_process(s->objects, t ? target_root(t) : -1,
			    t ? target_uid(t) : BOUNDED_NOBODY);
	objects_missed(s->objects);
	if (j.space && t)
		space_settle(j.space, t);
	if (r->native && j.space)
		n = unwind_record(j.space, t, r->native, s->native, UNWIND_MAX, &flags);
	if (r->python_cut)
		flags |= CT_STACK_CUT;
	msg_debug(MSG_STACKS, "process %u: %d native and %u Python frames%s%s", r->pid, n,
		  (unsigned int)r->npython, flags & CT_STACK_CUT ? ", cut" : "",
		  flags & CT_STACK_BROKEN ? ", not followed to the end" : "");
	s->resolved++;
	s->broken += !!(flags & CT_STACK_BROKEN);
	frames_room(s->frames);
	add_checks(&j);
	key = key_of(s, r, j.space, n, flags);
	id = frames_recall(s->frames, key);
	if (id)
		return id;
	for (int i = 0; i < n; i++)
		add_native(&j, &s->native[i]);
	/* the native frames end too early for these; the Python frames are valid without them */
	while (j.next_python < r->npython)
		add_run(&j);
	if (!j.n)
		return 0;
	id = frames_stack(s->frames, r->pid, time_ns, flags, s->ids, j.n);
	/* an object is read by a worker: it may be known later */
	if (!objects_missed(s->objects) && !j.incomplete)
		frames_remember(s->frames, key, id);
	return id;
}

uint32_t stacks_of_call(struct stacks *s, struct target *t, const struct ct_call *c)
{
	struct raw *r = raw_find(s, &c->h, false);

	if (!r)
		return 0;
	if (!r->done) {
		r->id = resolve(s, t, r, c->h.start_ns);
		r->done = true;
		raw_clear(r);
	}
	return r->id;
}
