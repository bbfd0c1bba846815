/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fold.c - see fold.h.
 *
 * Names are kept once; a node is found by its parent and its name in a hash of all nodes. Stacks
 * repeat: a table of places remembers the node where the last call of a process, stack, function
 * and kernel ended, so that no walk is needed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../util/msg.h"
#include "../../util/utf8.h"
#include "../../flow/about.h"
#include "../../event/scopes/lineage.h"
#include "fold.h"

#define SCOPES_MAX 64	     /* in each other, as frames */
#define NODES_MAX (2u << 20) /* of 24 bytes */
#define NAMES_MAX (512u << 10)
#define NAMES_BYTES (64u << 20) /* text of all names */
#define NAME_CUT 4096		/* bytes of a name; NAME_CUT_FULL with full_names */
#define NAME_CUT_FULL 16384
#define PLACES 65536 /* a power of two */
#define FIRST 1024   /* nodes to begin with, a power of two */

#define NONE 0u

struct place {
	/* names, but for `stack`, an id; thread: NONE without `tid` */
	uint32_t comm, thread, stack, func, kernel;
	uint32_t captured; /* stack of the call that a graph captured, an id */
	uint32_t node;	   /* NONE: the place is free */
};

struct fold_index {
	uint32_t max_nodes, cap_nodes;
	uint32_t *by_edge; /* twice the capacity; NONE: free */
	struct text scratch;
	uint32_t graph;	  /* the name of a graph as a whole; NONE: none came */
	bool graph_nodes; /* work that is a graph's node came */
	struct place places[PLACES];
};

/* ---- names ---- */

static uint32_t hash_edge(uint32_t parent, uint32_t name)
{
	uint64_t h = ((uint64_t)parent << 32 | name) * 0x9e3779b97f4a7c15;

	return (uint32_t)(h >> 32);
}

void fold_clean(struct text *t, const char *s, size_t max, bool in_line)
{
	size_t all = strnlen(s, max + 1), n = all > max ? text_cut(s, max) : all;
	bool cut = n < all;
	char *p = text_room(t, n + 3);

	if (!p)
		return;
	while (n) {
		uint32_t code;
		int len = utf8_next(s, n, &code);

		if (!len || !utf8_is_safe(code)) {
			*p++ = len && (code == '\n' || code == '\t') ? ' ' : '?';
		} else if (code == ';' && in_line) {
			*p++ = ':';
		} else {
			memcpy(p, s, (size_t)len);
			p += len;
		}
		len = len ? len : 1;
		s += len;
		n -= (size_t)len;
	}
	t->len = (size_t)(p - t->s);
	if (cut)
		text_str(t, "...");
}

/*
 * A name in `scratch` and in the table of names: what tells it apart beside its text, the text
 * with a NUL, the file. The same bytes are the same name.
 */
struct head {
	uint8_t kind, has_file;
	uint8_t line[4];
};

/* An empty name in scratch, for the text to be appended. */
static struct text *name_begin(struct fold *f)
{
	struct text *t = &f->index->scratch;

	t->len = 0;
	t->bad = false;
	text_mem(t, &(struct head){ 0 }, sizeof(struct head));
	return t;
}

/* The number of the name in scratch, in a place (file NULL: none); NONE: no room. */
static uint32_t intern_at(struct fold *f, enum fold_kind kind, const char *file, uint32_t line)
{
	struct head head = { .kind = (uint8_t)kind, .has_file = file != NULL };
	struct text *t = &f->index->scratch;
	uint32_t name;

	if (t->len == sizeof(head))
		text_str(t, "[unknown]");
	text_mem(t, "", 1);
	if (file)
		text_str(t, file);
	if (t->bad)
		return NONE;
	memcpy(head.line, &line, sizeof(line));
	memcpy(t->s, &head, sizeof(head));
	name = strings_add(&f->names, t->s, t->len);
	return name == STRINGS_NONE ? NONE : name;
}

struct fold_name fold_name(const struct fold *f, uint32_t i)
{
	const char *bytes = strings_get(&f->names, i);
	struct fold_name name = { .text = bytes + sizeof(struct head) };
	struct head head;

	memcpy(&head, bytes, sizeof(head));
	name.kind = head.kind;
	memcpy(&name.line, head.line, sizeof(name.line));
	if (head.has_file)
		name.file = name.text + strlen(name.text) + 1;
	return name;
}

static uint32_t fold_intern(struct fold *f, enum fold_kind kind)
{
	return intern_at(f, kind, NULL, 0);
}

static size_t name_cut(const struct fold *f)
{
	return f->opts->look.full_names || f->opts->look.mangled ? NAME_CUT_FULL : NAME_CUT;
}

static uint32_t intern_text(struct fold *f, const char *s, enum fold_kind kind)
{
	fold_clean(name_begin(f), s, name_cut(f), true);
	return fold_intern(f, kind);
}

static const char *base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* `train_step (train.py)`, `vecadd_step`, `[libfoo.so]`, `[unknown]`: no lines and no offsets,
 * which would tell apart what belongs together, unless places are asked for. */
static uint32_t intern_frame(struct fold *f, const struct stack_frame *fr)
{
	struct text *t = name_begin(f);
	enum fold_kind kind = fr->kind == CT_FRAME_PYTHON ? FOLD_PYTHON : FOLD_NATIVE;

	if (fr->function) {
		fold_clean(t, f->opts->look.mangled && fr->mangled ? fr->mangled : fr->function,
			   name_cut(f), true);
		if (kind == FOLD_PYTHON && fr->file && !f->places) {
			text_str(t, " (");
			fold_clean(t, base(fr->file), name_cut(f), true);
			text_str(t, ")");
		}
	} else {
		kind = FOLD_UNKNOWN;
		if (fr->object) {
			text_str(t, "[");
			fold_clean(t, base(fr->object), name_cut(f), true);
			text_str(t, "]");
		}
	}
	if (f->places && fr->file) {
		struct text file = { 0 };
		uint32_t name;

		fold_clean(&file, fr->file, name_cut(f), false);
		text_mem(&file, "", 1);
		name = file.bad ? NONE : intern_at(f, kind, file.s, fr->line);
		text_free(&file);
		return name;
	}
	return fold_intern(f, kind);
}

static uint32_t intern_kernel(struct fold *f, const struct kernel_name *k, enum fold_kind kind)
{
	fold_clean(name_begin(f),
		   f->opts->look.mangled      ? k->mangled
		   : f->opts->look.full_names ? k->full
					      : k->brief,
		   name_cut(f), true);
	if (k->cut)
		text_str(&f->index->scratch, "...");
	return fold_intern(f, kind);
}

/* ---- nodes ---- */

/* The table doubles together with what it indexes. */
static int grow_nodes(struct fold *f)
{
	struct fold_index *ix = f->index;
	uint32_t cap = ix->cap_nodes ? ix->cap_nodes * 2 : FIRST, *by;
	struct fold_node *nodes = realloc(f->nodes, cap * sizeof(*nodes));

	if (!nodes)
		return -ENOMEM;
	f->nodes = nodes;
	by = calloc((size_t)cap * 2, sizeof(*by));
	if (!by)
		return -ENOMEM;
	free(ix->by_edge);
	ix->by_edge = by;
	ix->cap_nodes = cap;
	for (uint32_t i = 1; i < f->nnodes; i++) {
		uint32_t at = hash_edge(nodes[i].parent, nodes[i].name) & (cap * 2 - 1);

		while (by[at])
			at = (at + 1) & (cap * 2 - 1);
		by[at] = i;
	}
	return 0;
}

/* The child of that name; NONE: no room, or no parent or name to begin with. */
static uint32_t child(struct fold *f, uint32_t parent, uint32_t name)
{
	struct fold_index *ix = f->index;
	uint32_t mask = ix->cap_nodes * 2 - 1, at = hash_edge(parent, name) & mask;

	if (!name)
		return NONE;
	for (; ix->by_edge[at]; at = (at + 1) & mask) {
		const struct fold_node *n = &f->nodes[ix->by_edge[at]];

		if (n->parent == parent && n->name == name)
			return ix->by_edge[at];
	}
	if (f->nnodes >= ix->max_nodes)
		return NONE;
	if (f->nnodes == ix->cap_nodes) {
		if (grow_nodes(f))
			return NONE;
		return child(f, parent, name);
	}
	f->nodes[f->nnodes] = (struct fold_node){ .parent = parent,
						  .next = f->nodes[parent].child,
						  .name = name };
	f->nodes[parent].child = f->nnodes;
	ix->by_edge[at] = f->nnodes;
	return f->nnodes++;
}

/* `pt_autograd_0 (417)`, or `thread 417` where its name is not known. Work without a thread:
 * `[no thread]`. */
static uint32_t intern_thread(struct fold *f, const struct event *ev)
{
	struct text *t = name_begin(f);
	const char *name = about_thread(ev);

	if (!ev->rec->tid) {
		text_str(t, "[no thread]");
	} else if (name && *name) {
		fold_clean(t, name, CT_COMM_LEN, true);
		text_str(t, " (");
		text_u64(t, ev->rec->tid);
		text_str(t, ")");
	} else {
		text_str(t, "thread ");
		text_u64(t, ev->rec->tid);
	}
	return fold_intern(f, FOLD_PROCESS);
}

/* From a node down through the scopes around an event, outermost first. NONE: no room. */
static uint32_t walk_scopes(struct fold *f, uint32_t at, const struct event *ev)
{
	const struct scope_line *lines[SCOPES_MAX];
	uint32_t n = 0, id = lineage_from(ev, ~0u);

	while (n < SCOPES_MAX && (lines[n] = lineage_find(ev->lineage, ev->rec->pid, id)))
		id = lines[n++]->parent;
	if (id != CT_SCOPE_NONE)
		at = child(f, at, intern_text(f, "[unknown range]", FOLD_UNKNOWN));
	else if (!n)
		at = child(f, at, intern_text(f, "[no range]", FOLD_UNKNOWN));
	while (n-- && at)
		at = child(f, at, intern_text(f, lines[n]->name, FOLD_NATIVE));
	return at;
}

/* Whether the launch of the graph is inside the scope. */
static bool is_around(const struct event *ev, uint32_t scope)
{
	const struct scope_line *line;
	uint32_t id = ev->scope_id;

	for (uint32_t i = 0; i < SCOPES_MAX && id != scope; i++) {
		line = lineage_find(ev->lineage, ev->rec->pid, id);
		if (!line)
			return false;
		id = line->parent;
	}
	return id == scope;
}

/* From the process, or its thread, down to the caller. NONE: no room. */
static uint32_t walk(struct fold *f, const struct place *key, const struct event *ev)
{
	const struct stack *s = ev->stack;
	uint32_t at = child(f, 0, key->comm);
	struct stack_view v;

	if (at && key->thread)
		at = child(f, at, key->thread);
	if (!at)
		return NONE;
	if (f->opts->look.stack_of_scopes)
		return walk_scopes(f, at, ev);
	if (!s || !s->nframes)
		return child(f, at, intern_text(f, "[no stack]", FOLD_UNKNOWN));
	if (s->flags & (CT_STACK_CUT | CT_STACK_BROKEN))
		at = child(f, at, intern_text(f, "[cut]", FOLD_UNKNOWN));
	v = stack_view(s, f->opts->look.all_frames);
	for (uint32_t i = v.n; i-- && at;)
		if (stack_shows(&v, s->frames[i]))
			at = child(f, at, intern_frame(f, s->frames[i]));
	return at;
}

/* From the launch of a graph down through the scopes around the call that was captured, outermost first,
 * without those that are around the launch too. */
static uint32_t walk_captured_scopes(struct fold *f, uint32_t at, const struct event *ev)
{
	const struct scope_line *lines[SCOPES_MAX];
	uint32_t n = 0, id = ev->capture->scope;

	if (lineage_from(ev, ~0u) == id)
		return at; /* the scopes are above the launch, and nothing else is around it */
	while (n < SCOPES_MAX && (lines[n] = lineage_find(ev->lineage, ev->rec->pid, id)) &&
	       !is_around(ev, id))
		id = lines[n++]->parent;
	while (n-- && at)
		at = child(f, at, intern_text(f, lines[n]->name, FOLD_NATIVE));
	return at;
}

/* The same through the captured call's stack, without the callers that the launch has too. */
static uint32_t walk_captured_stack(struct fold *f, uint32_t at, const struct event *ev)
{
	const struct stack *s = ev->captured_stack, *launch = ev->stack;
	uint32_t n = s->nframes, m = launch ? launch->nframes : 0;
	struct stack_view v = stack_view(s, f->opts->look.all_frames);

	while (n && m &&
	       intern_frame(f, s->frames[n - 1]) == intern_frame(f, launch->frames[m - 1]))
		n--, m--;
	while (n-- && at)
		if (n < v.n && stack_shows(&v, s->frames[n]))
			at = child(f, at, intern_frame(f, s->frames[n]));
	return at;
}

static uint32_t walk_captured(struct fold *f, uint32_t at, const struct event *ev)
{
	if (!ev->capture)
		return at;
	if (ev->capture->before)
		return child(f, at, intern_text(f, "[captured before the trace]", FOLD_UNKNOWN));
	if (f->opts->look.stack_of_scopes)
		return walk_captured_scopes(f, at, ev);
	return ev->captured_stack ? walk_captured_stack(f, at, ev) : at;
}

/* Sets in the key what ends a call's stack: the call and, for a launch, its kernel. */
static void call_ends(struct fold *f, const struct event *ev, struct place *key)
{
	const struct ct_call *c = (const struct ct_call *)ev->rec;
	bool launch = ev->rec->kind == CT_CALL && ev->kernel &&
		      api_funcs[c->func].class == API_LAUNCH;

	about_name(name_begin(f), f->opts, ev);
	key->func = fold_intern(f, FOLD_CALL);
	key->kernel = launch ? intern_kernel(f, ev->kernel, FOLD_KERNEL) : NONE;
	if (launch && !key->kernel)
		key->func = NONE;
}

/* Sets in the key what ends device work's stack: the call that caused it, and the work. */
static void work_ends(struct fold *f, const struct event *ev, struct place *key)
{
	bool known = ev->cause && ev->cause->func < api_nfuncs;

	key->func = intern_text(f, known ? api_funcs[ev->cause->func].name : "[unknown call]",
				known ? FOLD_CALL : FOLD_UNKNOWN);
	if (ev->rec->kind == CT_KERNEL && ev->kernel) {
		key->kernel = intern_kernel(f, ev->kernel, FOLD_DEVICE);
	} else {
		about_name(name_begin(f), f->opts, ev);
		key->kernel = fold_intern(f, FOLD_DEVICE);
	}
	if (ev->rec->kind == CT_GRAPH)
		f->index->graph = key->kernel;
	else
		f->index->graph_nodes |= ((const struct ct_work *)ev->rec)->graph_node != 0;
	if (!key->kernel)
		key->func = NONE;
}

/* Returns the node where the call or the device work ends. */
static uint32_t fold_place_of(struct fold *f, const struct event *ev)
{
	struct place key = { .stack = ev->stack ? ev->stack->id : 0,
			     .captured = ev->captured_stack ? ev->captured_stack->id
					 : ev->capture && ev->capture->before ? UINT32_MAX
									      : 0 },
		     *p;
	uint32_t at;

	key.comm = intern_text(f, ev->proc->comm, FOLD_PROCESS);
	key.thread = f->opts->look.tid ? intern_thread(f, ev) : NONE;
	if (about_is_call(ev->rec))
		call_ends(f, ev, &key);
	else
		work_ends(f, ev, &key);
	if (!key.comm || !key.func || (f->opts->look.tid && !key.thread))
		return NONE;
	p = &f->index->places[hash_edge(key.comm ^ key.func << 16 ^ key.thread << 8,
					key.stack ^ key.kernel << 12 ^ key.captured << 4) &
			      (PLACES - 1)];
	if (!f->opts->look.stack_of_scopes && p->node && p->comm == key.comm &&
	    p->thread == key.thread && p->stack == key.stack && p->func == key.func &&
	    p->kernel == key.kernel && p->captured == key.captured)
		return p->node;
	at = walk(f, &key, ev);
	if (at)
		at = child(f, at, key.func);
	if (at)
		at = walk_captured(f, at, ev);
	if (at && key.kernel)
		at = child(f, at, key.kernel);
	key.node = at;
	if (at)
		*p = key;
	return at;
}

/* ---- from outside ---- */

struct fold *fold_open(const struct sink_opts *opts, uint32_t max_nodes)
{
	struct fold *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->opts = opts;
	f->index = calloc(1, sizeof(*f->index));
	if (!f->index || grow_nodes(f) || strings_init(&f->names, NAMES_BYTES, NAMES_MAX) ||
	    strings_add(&f->names, (const char[sizeof(struct head) + 1]){ FOLD_OTHER },
			sizeof(struct head) + 1) != NONE) {
		fold_close(f);
		return NULL;
	}
	f->index->max_nodes = max_nodes ? max_nodes : NODES_MAX;
	f->nodes[0] = (struct fold_node){ 0 };
	f->nnodes = 1;
	f->other = child(f, 0, intern_text(f, "[other]", FOLD_OTHER));
	return f;
}

void fold_close(struct fold *f)
{
	if (!f)
		return;
	strings_free(&f->names);
	free(f->nodes);
	if (f->index) {
		free(f->index->by_edge);
		text_free(&f->index->scratch);
	}
	free(f->index);
	free(f);
}

static uint64_t took_ns(const struct ct_hdr *h)
{
	return h->flags & CT_F_BEFORE || h->end_ns < h->start_ns ? 0 : h->end_ns - h->start_ns;
}

static void add_to_sum(uint64_t *sum, uint64_t n)
{
	*sum = *sum + n < *sum ? UINT64_MAX : *sum + n;
}

/* 0 for bytes: the call moved none, or it is not known how many. */
static uint64_t weight_of(const struct fold *f, const struct ct_hdr *h)
{
	const struct ct_call *c = (const struct ct_call *)h;
	int64_t bytes;

	switch (f->opts->look.weight) {
	case SINK_WEIGHT_GPU: return about_duration_ns(h);
	case SINK_WEIGHT_TIME: return took_ns(h);
	case SINK_WEIGHT_BYTES:
		bytes = h->kind != CT_CALL || h->flags & CT_F_BEFORE || api_failed(c)
				? 0
				: api_size(c, API_ARCH_HERE);
		return (uint64_t)
			bytes; /* as an unsigned number, a negative one is larger than any possible size */
	default: return 1;
	}
}

/* Work that occupies the device: waits and allocations do not. */
static bool is_weighed(const struct fold *f, const struct ct_hdr *h)
{
	if (f->opts->look.weight == SINK_WEIGHT_GPU)
		return kind_is(h->kind, KIND_BUSY);
	return about_is_call(h) && !(h->flags & CT_F_PENDING);
}

int fold_event(struct fold *f, const struct event *ev)
{
	uint64_t weight;
	uint32_t at;

	/* they are frames */
	if (ev->rec->kind == CT_SCOPE_END)
		return f->opts->look.stack_of_scopes;
	if (!is_weighed(f, ev->rec))
		return 0;
	weight = weight_of(f, ev->rec);
	if (weight >= CT_SIZE_MOST && f->opts->look.weight == SINK_WEIGHT_BYTES) {
		f->odd_sizes++;
		return 0;
	}
	if (!weight && f->opts->look.weight == SINK_WEIGHT_BYTES) {
		f->without_size++;
		return 0;
	}
	if (!weight && f->opts->look.weight == SINK_WEIGHT_GPU)
		return 0;
	at = fold_place_of(f, ev);
	f->no_room += !at;
	f->counted++;
	at = at ? at : f->other;
	add_to_sum(&f->nodes[at].self, weight);
	add_to_sum(&f->nodes[at].second,
		   f->opts->look.weight == SINK_WEIGHT_CALLS ? took_ns(ev->rec) : 1);
	return 1;
}

static uint64_t in_us(uint64_t ns)
{
	return ns && ns < 1000 ? 1 : ns / 1000 + (ns % 1000 >= 500);
}

uint64_t fold_weight(const struct fold *f, const struct fold_node *n)
{
	return f->opts->look.weight == SINK_WEIGHT_TIME ? in_us(n->self) : n->self;
}

uint64_t fold_second(const struct fold *f, const struct fold_node *n)
{
	return f->opts->look.weight == SINK_WEIGHT_CALLS ? in_us(n->second) : n->second;
}

/* ---- the order ---- */

static int fold_by_name(const void *pa, const void *pb, void *ctx)
{
	const struct fold *f = ctx;
	const struct fold_name a = fold_name(f, f->nodes[*(const uint32_t *)pa].name);
	const struct fold_name b = fold_name(f, f->nodes[*(const uint32_t *)pb].name);
	int order = strcmp(a.text, b.text);

	if (!order)
		order = (int)a.kind - (int)b.kind;
	if (!order && a.file && b.file)
		order = strcmp(a.file, b.file);
	return order ? order : (a.line > b.line) - (a.line < b.line);
}

int fold_finish(struct fold *f)
{
	uint32_t *list = malloc(f->nnodes * sizeof(*list));

	if (!list)
		return -ENOMEM;
	/* a graph's time is the time of its nodes, if these are known */
	for (uint32_t i = 0; i < f->nnodes && f->index->graph && f->index->graph_nodes; i++)
		if (f->nodes[i].name == f->index->graph)
			f->nodes[i].self = f->nodes[i].second = 0;
	for (uint32_t i = 0; i < f->nnodes; i++) {
		uint32_t n = 0, *link = &f->nodes[i].child;

		for (uint32_t at = *link; at; at = f->nodes[at].next)
			list[n++] = at;
		qsort_r(list, n, sizeof(*list), fold_by_name, f);
		for (uint32_t k = 0; k < n; k++) {
			*link = list[k];
			link = &f->nodes[list[k]].next;
		}
		*link = NONE;
	}
	free(list);
	return 0;
}

uint32_t fold_next(const struct fold *f, uint32_t at, uint32_t *depth)
{
	if (f->nodes[at].child) {
		++*depth;
		return f->nodes[at].child;
	}
	for (; at; at = f->nodes[at].parent, --*depth)
		if (f->nodes[at].next)
			return f->nodes[at].next;
	return NONE;
}

void fold_notes(const struct fold *f)
{
	if (f->opts->look.weight == SINK_WEIGHT_GPU && !f->counted)
		msg_note("there was no device work to add up: --weight gpu needs a trace or a "
			 "recording that was made with --gpu");
	if (f->without_size)
		msg_note("calls that failed or have no size in bytes are left out: %llu",
			 (unsigned long long)f->without_size);
	if (f->odd_sizes)
		msg_note("calls with a size that cannot be, of 256 TiB or more, are left out: %llu",
			 (unsigned long long)f->odd_sizes);
	if (f->no_room)
		msg_note("there were more distinct stacks than can be kept; calls added up as "
			 "[other]: %llu",
			 (unsigned long long)f->no_room);
}
