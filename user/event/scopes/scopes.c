/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scopes.c - see scopes.h.
 *
 * The source numbers the scopes of a thread, and says with each record which one is innermost. So a
 * lost record is noticed: a scope with a higher number than the innermost one is no longer open,
 * and one that is not known here has no name, and its children have an unknown parent.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../api/layers/symbol.h"
#include "../../util/table/array.h"
#include "../../util/table/owned.h"
#include "../registry.h"
#include "products/descriptors.h"
#include "products/gemms.h"
#include "group.h"
#include "scopes.h"
#include "shapes.h"

#define PROCESSES_MAX 131072
#define THREADS_MAX 524288     /* that have a scope open */
#define OPEN_MAX 256	       /* of one thread */
#define NAMES_MAX 262144       /* domains, texts and categories that were registered */
#define RANGES_MAX 65536       /* started and not ended */
#define NEWEST_MAX 262144      /* threads that have begun scopes */
#define BYTES_MAX (64UL << 20) /* of the records of what is open */
#define OPEN_BYTES 64	       /* what an open scope takes beside its record */
/* what a payload that waits takes beside its text: all of BYTES_MAX gives fewer than THREADS_MAX */
#define PAYLOAD_BYTES 128
/* One process has this part of each of them, so that others keep theirs. */
#define SHARE 16
#define TEXT_MAX 256 /* bytes of a name, of a domain's and of a category's */
#define WIDE_BYTES 4 /* of a wchar_t */

struct open {
	uint32_t serial;
	bool folded; /* a product inside a call for products: rec is a copy of the outer one's */
	struct ct_scope *rec;
};

struct proc {
	struct registered r; /* held: it has something open */
	uint32_t next_id;
	size_t bytes; /* of what it has open */
};

struct thread {
	uint32_t pid, tid;
	struct open *open; /* the innermost one is the last */
	uint32_t n;
	char *payload;	     /* of what begins next; NULL: none */
	struct group *group; /* of calls for its end; NULL: none is open */
};

/* What a handle means. */
struct name {
	uint32_t pid;
	uint32_t what; /* enum api_layer */
	uint64_t domain, handle;
	char *text;
};

struct range {
	uint32_t pid, pad;
	uint64_t id;
	struct ct_scope *rec;
};

/* The number of the newest scope of a thread: one that is missing was lost. */
struct newest {
	uint32_t pid, tid;
	uint32_t serial;
};

struct scopes {
	emit_fn out;
	void *ctx;
	struct registry procs; /* of struct proc */
	struct hash_map threads;
	struct owned names, ranges, newest;
	struct collectives *collectives;
	struct descriptors *descriptors;
	uint64_t dropped;
	size_t bytes;	/* of all that is open */
	uint32_t floor; /* processes that are new here begin their ids above it */
	union {
		struct ct_scope scope;
		char room[sizeof(struct ct_scope) + 5 * TEXT_MAX + sizeof(struct ct_collective)];
		char gemm_room[sizeof(struct ct_scope) + 5 * TEXT_MAX + sizeof(struct ct_gemm)];
		struct ct_call call;
		char call_room[sizeof(struct ct_call) + CT_DATA_MAX + 16];
	};
};

/* What a call of a layer's function says. */
struct said {
	uint64_t domain, id, string;
	uint32_t category, color;
	uint64_t payload;
	uint8_t payload_type;
	bool cut, known; /* known: text[] is the name */
	bool extended;	 /* the payload is one with a schema */
	char text[TEXT_MAX];
	/* of an operator's arguments, or of what a call of a library for networks computes; "": not
	 * known */
	char shapes[TEXT_MAX];
	struct ct_gemm described; /* of such a call */
};

static void free_name(void *thing)
{
	free(((struct name *)thing)->text);
}

/* The ids of its scopes go on in the next program. */
static void renewed(void *ctx, void *item, const struct ct_hdr *h)
{
	(void)ctx, (void)item, (void)h;
}

static void forgotten(void *ctx, void *item, const struct ct_hdr *h)
{
	struct scopes *s = ctx;
	const struct proc *p = item;

	(void)h;
	/* ids are not given twice; after half of the numbers they may be */
	if (p->next_id > s->floor)
		s->floor = p->next_id < UINT32_MAX / 2 ? p->next_id : 0;
	owned_forget(&s->names, p->r.pid);
	owned_forget(&s->newest, p->r.pid);
}

static const struct registry_rules rules = { .size = sizeof(struct proc),
					     .most = PROCESSES_MAX,
					     .stays_ns = UINT64_MAX,
					     .exec = renewed,
					     .gone = forgotten };

struct scopes *scopes_open(emit_fn out, communicator_fn ask, void *ctx)
{
	struct scopes *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->out = out;
	s->ctx = ctx;
	registry_open(&s->procs, &rules, s);
	hash_map_open_of(&s->threads, struct thread, tid, THREADS_MAX);
	owned_open_of(&s->names, struct name, handle, NAMES_MAX, SHARE);
	s->names.drop = free_name;
	owned_open_of(&s->ranges, struct range, id, RANGES_MAX, SHARE);
	owned_open_of(&s->newest, struct newest, tid, NEWEST_MAX, SHARE);
	s->collectives = collectives_open(ask, ctx);
	s->descriptors = descriptors_open();
	if (s->collectives && s->descriptors)
		return s;
	scopes_close(s);
	return NULL;
}

/* ---- what each process has ---- */

/* NULL: there are too many. */
static struct proc *proc_of(struct scopes *s, uint32_t pid)
{
	struct proc *p = registry_get(&s->procs, pid);

	if (p && !p->next_id)
		p->next_id = s->floor;
	return p;
}

/* Counts what a process has open. False: it, or all together, have too much. */
static bool take(struct scopes *s, uint32_t pid, size_t bytes)
{
	struct proc *p = proc_of(s, pid);

	if (!p || p->bytes + bytes > BYTES_MAX / SHARE || s->bytes + bytes > BYTES_MAX)
		return false;
	p->bytes += bytes;
	p->r.held = true;
	s->bytes += bytes;
	return true;
}

static void give_back(struct scopes *s, uint32_t pid, size_t bytes)
{
	struct proc *p = registry_find(&s->procs, pid);

	INVARIANT(p && p->bytes >= bytes && s->bytes >= bytes);
	p->bytes -= bytes;
	p->r.held = p->bytes;
	s->bytes -= bytes;
}

/* Copies the record of a scope that stays open. NULL: the process has too much open, or there is no
 * memory. */
static struct ct_scope *hold(struct scopes *s, const struct ct_scope *r)
{
	struct ct_scope *copy;

	if (!take(s, r->h.pid, r->h.size + OPEN_BYTES))
		return NULL;
	copy = malloc(r->h.size);
	if (copy)
		return memcpy(copy, r, r->h.size);
	give_back(s, r->h.pid, r->h.size + OPEN_BYTES);
	return NULL;
}

static void let_go(struct scopes *s, struct ct_scope *r)
{
	give_back(s, r->h.pid, r->h.size + OPEN_BYTES);
	free(r);
}

/* The thread's group, which is made. NULL: the process has too much open, or there is no memory. */
static struct group *make_group(struct scopes *s, struct thread *t)
{
	if (!take(s, t->pid, sizeof(*t->group) + OPEN_BYTES))
		return NULL;
	t->group = calloc(1, sizeof(*t->group));
	if (!t->group)
		give_back(s, t->pid, sizeof(*t->group) + OPEN_BYTES);
	return t->group;
}

static void free_group(struct scopes *s, struct thread *t)
{
	if (!t->group)
		return;
	give_back(s, t->pid, sizeof(*t->group) + OPEN_BYTES);
	free(t->group);
	t->group = NULL;
}

static void free_payload(struct scopes *s, struct thread *t)
{
	if (!t->payload)
		return;
	give_back(s, t->pid, strlen(t->payload) + PAYLOAD_BYTES);
	free(t->payload);
	t->payload = NULL;
}

static void free_thread(struct scopes *s, struct thread *t)
{
	free_group(s, t);
	free_payload(s, t);
	for (uint32_t i = 0; i < t->n; i++)
		let_go(s, t->open[i].rec);
	free(t->open);
	hash_map_remove(&s->threads, t);
}

static void drop_empty(struct scopes *s, struct thread *t)
{
	if (!t->n && !t->payload && !t->group)
		free_thread(s, t);
}

static void drop_range(struct scopes *s, struct range *r)
{
	let_go(s, r->rec);
	owned_remove(&s->ranges, r);
}

void scopes_close(struct scopes *s)
{
	struct thread *t;
	struct range *r;

	if (!s)
		return;
	hash_map_each(&s->threads, t) free_thread(s, t);
	owned_each(&s->ranges, r) drop_range(s, r);
	hash_map_close(&s->threads);
	owned_close(&s->names);
	owned_close(&s->ranges);
	owned_close(&s->newest);
	registry_close(&s->procs);
	collectives_close(s->collectives);
	descriptors_close(s->descriptors);
	free(s);
}

uint64_t scopes_dropped(const struct scopes *s)
{
	return s->dropped + descriptors_dropped(s->descriptors);
}

/* ---- what a call says ---- */

/* UTF-8 of a text of wchar_t. What is no character becomes '?'. */
static void from_wide(struct said *said, const char *bytes, uint32_t len)
{
	uint32_t code, n = 0, at;

	for (at = 0; at + WIDE_BYTES <= len && n + 4 < sizeof(said->text); at += WIDE_BYTES) {
		memcpy(&code, bytes + at, sizeof(code));
		if (!code)
			break;
		if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
			code = '?';
		if (code < 0x80) {
			said->text[n++] = (char)code;
			continue;
		}
		if (code >= 0x10000) {
			said->text[n++] = (char)(0xf0 | code >> 18);
			said->text[n++] = (char)(0x80 | (code >> 12 & 0x3f));
		} else if (code >= 0x800) {
			said->text[n++] = (char)(0xe0 | code >> 12);
		}
		if (code >= 0x800)
			said->text[n++] = (char)(0x80 | (code >> 6 & 0x3f));
		else
			said->text[n++] = (char)(0xc0 | code >> 6);
		said->text[n++] = (char)(0x80 | (code & 0x3f));
	}
	said->text[n] = '\0';
	said->cut = at + WIDE_BYTES > len;
	said->known = true;
}

static void from_text(struct said *said, const struct field *f)
{
	uint32_t n = f->str_len < sizeof(said->text) ? f->str_len : sizeof(said->text) - 1;

	memcpy(said->text, f->str, n);
	said->text[n] = '\0';
	said->cut = f->cut || n < f->str_len;
	said->known = true;
}

static void from_symbol(struct said *said, const char *name)
{
	if (!name)
		return;
	said->cut = (size_t)snprintf(said->text, sizeof(said->text), "%s", name) >=
		    sizeof(said->text);
	said->known = true;
}

/* nvtxEventAttributes_t, version 2 or later. */
#define ATTRIB_EXTENDED 0xdfbd0009u /* as a type of payloads */
enum { ATTRIB_COLOR_ARGB = 1, ATTRIB_ASCII = 1, ATTRIB_UNICODE = 2, ATTRIB_REGISTERED = 3 };
struct attrib {
	uint16_t version, size;
	uint32_t category;
	uint32_t color_type, color;
	uint32_t payload_type, reserved;
	uint64_t payload;
	uint32_t message_type, pad;
	uint64_t message;
};
_Static_assert(sizeof(struct attrib) == 48, "as NVTX has it");

/* Returns the type of its message. */
static uint32_t from_attrib(struct said *said, const struct field *f)
{
	struct attrib a;

	if (f->str_len < sizeof(a))
		return 0;
	memcpy(&a, f->str, sizeof(a));
	if (a.size < sizeof(a))
		return 0;
	said->category = a.category;
	said->color = a.color_type == ATTRIB_COLOR_ARGB ? a.color : 0;
	said->extended = a.payload_type == ATTRIB_EXTENDED;
	said->payload_type = a.payload_type <= CT_PAYLOAD_FLOAT ? (uint8_t)a.payload_type : 0;
	said->payload = said->payload_type ? a.payload : 0;
	if (said->payload_type >= CT_PAYLOAD_U32)
		said->payload &= 0xffffffff;
	if (a.message_type == ATTRIB_REGISTERED)
		said->string = a.message;
	return a.message_type;
}

static bool is_text(const struct field *arg)
{
	return !strcmp(arg->name, "message") || !strcmp(arg->name, "name") ||
	       !strcmp(arg->name, "string");
}

/* The arguments by the names that their rows give them. */
static void hear(const struct ct_call *c, struct said *said)
{
	struct field args[EVENT_MAX_FIELDS];
	int n = api_decode(c, API_ARCH_HERE, args, EVENT_MAX_FIELDS);
	uint32_t message = ATTRIB_ASCII;

	memset(said, 0, sizeof(*said));
	if (collectives_has(&api_funcs[c->func]) || gemms_has(&api_funcs[c->func])) {
		snprintf(said->text, sizeof(said->text), "%s", api_funcs[c->func].name);
		said->known = true;
		return;
	}
	if (api_funcs[c->func].layer == API_LAYER_OPERATOR)
		shapes_of(c, said->shapes, sizeof(said->shapes));
	for (int i = 0; i < n; i++) {
		const struct field *arg = &args[i];

		if (arg->absent || !arg->name)
			continue;
		if (!strcmp(arg->name, "domain"))
			said->domain = arg->u;
		else if (!strcmp(arg->name, "id"))
			said->id = arg->u;
		else if (!strcmp(arg->name, "category"))
			said->category = (uint32_t)arg->u;
		else if (!strcmp(arg->name, "eventAttrib"))
			message = from_attrib(said, arg);
		else if (!strcmp(arg->name, "symbol"))
			from_symbol(said, symbol_text(arg->u));
		else if (is_text(arg) && arg->type == FIELD_BYTES)
			from_wide(said, arg->str, arg->str_len);
		else if (is_text(arg) && arg->type == FIELD_STR && message == ATTRIB_ASCII)
			from_text(said, arg);
	}
}

/* ---- names ---- */

static const char *name_of(const struct scopes *s, uint32_t pid, uint32_t what, uint64_t domain,
			   uint64_t handle)
{
	struct name key = { .pid = pid, .what = what, .domain = domain, .handle = handle };
	const struct name *n = owned_find(&s->names, &key);

	return n ? n->text : NULL;
}

static int learn(struct scopes *s, uint32_t pid, uint32_t what, uint64_t handle,
		 const struct said *said)
{
	struct name key = { .pid = pid, .what = what, .domain = said->domain, .handle = handle };
	struct name *n;
	char *text;

	if (what == API_LAYER_DOMAIN)
		key.domain = 0;
	if (!said->known || (!handle && what != API_LAYER_CATEGORY))
		return 0;
	n = proc_of(s, pid) ? owned_get(&s->names, &key, &(bool){ false }) : NULL;
	if (!n) {
		s->dropped++;
		return 0;
	}
	text = strdup(said->text);
	if (!text) {
		if (!n->text)
			owned_remove(&s->names, n);
		return -ENOMEM;
	}
	free(n->text);
	n->text = text;
	return 0;
}

static struct thread *thread_of(struct scopes *s, const struct ct_hdr *h, bool make)
{
	struct thread key = { .pid = h->pid, .tid = h->tid };

	return make ? hash_map_get(&s->threads, &key, &(bool){ false })
		    : hash_map_find(&s->threads, &key);
}

/* What the payload of the thread's next event says. */
static int keep_payload(struct scopes *s, const struct ct_hdr *h, const struct said *said)
{
	struct thread *t = said->known ? thread_of(s, h, true) : NULL;
	size_t bytes = strlen(said->text) + PAYLOAD_BYTES;

	if (!said->known)
		return 0;
	if (t)
		free_payload(s, t);
	if (t && take(s, h->pid, bytes)) {
		t->payload = strdup(said->text);
		if (t->payload)
			return 0;
		give_back(s, h->pid, bytes);
	}
	s->dropped++;
	if (t)
		drop_empty(s, t);
	return 0;
}

/* ---- records ---- */

static uint16_t add_text(struct ct_scope *r, const char *text)
{
	size_t n = text ? strlen(text) : 0;

	if (n >= TEXT_MAX)
		n = TEXT_MAX - 1;
	memcpy((char *)r + r->h.size, text ? text : "", n);
	r->h.size = (uint16_t)(r->h.size + n);
	return (uint16_t)n;
}

/* Adds what the payload says, or what a group launches; what was reported for a lost event is dropped. */
static uint16_t add_payload(struct scopes *s, struct ct_scope *r, const struct said *said,
			    const struct api_func *f)
{
	struct thread *t = thread_of(s, &r->h, false);
	char names[TEXT_MAX];
	uint16_t n = 0;

	if (f->layer == API_LAYER_GROUP_END && t && t->group && t->group->depth == 1) {
		group_names(t->group, names, sizeof(names));
		return add_text(r, names);
	}
	if (f->layer == API_LAYER_OPERATOR || f->layer == API_LAYER_DESCRIBED)
		return add_text(r, said->shapes);
	if (!t || !t->payload)
		return 0;
	if (said->extended)
		n = add_text(r, t->payload);
	free_payload(s, t);
	return n;
}

/* Makes the record of a scope that begins. */
static struct ct_scope *make(struct scopes *s, const struct ct_call *c, uint8_t kind,
			     struct said *said)
{
	struct proc *p = proc_of(s, c->h.pid);
	struct ct_scope *r = &s->scope;
	const char *text = said->known ? said->text : NULL, *domain = NULL;

	if (!p || p->next_id >= CT_SCOPE_UNKNOWN - 1) {
		s->dropped++;
		return NULL;
	}
	memset(s->room, 0, sizeof(s->room));
	r->h = c->h;
	r->h.kind = CT_SCOPE_BEGIN;
	r->h.size = sizeof(*r);
	r->h.flags = 0;
	r->h.lost = 0;
	r->h.end_ns = r->h.start_ns;
	r->id = ++p->next_id;
	r->kind = kind;
	r->category = said->category;
	r->color = said->color;
	r->payload = said->payload;
	r->payload_type = said->payload_type;
	if (said->string)
		text = name_of(s, c->h.pid, API_LAYER_STRING, said->domain, said->string);
	r->flags = (text ? 0 : CT_SCOPE_UNNAMED) | (said->cut ? CT_SCOPE_CUT : 0);
	if (said->domain) {
		domain = name_of(s, c->h.pid, API_LAYER_DOMAIN, 0, said->domain);
		domain = domain ? domain : "?";
	}
	r->text_len = add_text(r, text);
	r->domain_len = add_text(r, domain);
	r->category_len = add_text(r, said->category ? name_of(s, c->h.pid, API_LAYER_CATEGORY,
							       said->domain, said->category)
						     : NULL);
	r->layer_len = add_text(r, api_domain_name(api_funcs[c->func].domain));
	r->fields_len = add_payload(s, r, said, &api_funcs[c->func]);
	r->h.size = (uint16_t)((r->h.size + 7u) & ~7u);
	return r;
}

/* Is the thread inside a call of a library for collectives? */
static bool is_inner(const struct thread *t)
{
	for (uint32_t i = 0; i < t->n; i++)
		if (scope_collective(t->open[i].rec))
			return true;
	return false;
}

/* Adds what a call of a library for collectives says. */
static void add_collective(struct scopes *s, struct ct_scope *r, const struct ct_call *c,
			   struct thread *t)
{
	struct ct_collective *more = (struct ct_collective *)((char *)r + r->h.size);
	bool inner = is_inner(t);

	collectives_begin(s->collectives, c, inner, more);
	r->h.size = (uint16_t)(r->h.size + sizeof(*more));
	if (!t->group || inner)
		return;
	if (api_funcs[c->func].layer == API_LAYER_GROUP_END) {
		if (--t->group->depth)
			return;
		group_says(t->group, more);
		free_group(s, t);
	} else if (more->how != CT_COLLECTIVE_OTHER) {
		group_add(t->group, c->func, more);
		more->flags |= CT_COLLECTIVE_GROUPED;
	}
}

/* Adds what a call for products of matrices says. */
static void add_gemm(struct ct_scope *r, const struct ct_call *c, const struct ct_gemm *described)
{
	struct ct_gemm *g = (struct ct_gemm *)((char *)r + r->h.size);

	if (api_funcs[c->func].layer == API_LAYER_DESCRIBED)
		*g = *described;
	else
		gemms_begin(c, g);
	r->h.size = (uint16_t)(r->h.size + sizeof(struct ct_gemm));
}

/* The call for products of matrices that the thread is in: one inside it, as cuBLAS calls cuBLASLt, is
 * a part of it. NULL: none. */
static const struct ct_scope *outer_gemm(const struct thread *t)
{
	for (uint32_t i = t->n; i; i--)
		if (scope_gemm(t->open[i - 1].rec))
			return t->open[i - 1].rec;
	return NULL;
}

/* What is inside such a call is inside the outer one. */
static int fold(struct scopes *s, struct thread *t, const struct ct_scope *outer, uint32_t serial)
{
	struct ct_scope *copy = t->n < OPEN_MAX ? hold(s, outer) : NULL;
	struct open *o = copy ? array_add(t->open, t->n) : NULL;

	if (!o) {
		if (copy)
			let_go(s, copy);
		s->dropped++;
		return 0;
	}
	o->serial = serial;
	o->folded = true;
	o->rec = copy;
	return 0;
}

/* A group has begun in the thread, or one more inside it. */
static void nest_group(struct scopes *s, struct thread *t)
{
	if (!t->group && !make_group(s, t))
		s->dropped++;
	else
		t->group->depth++;
}

/* Notices scopes of a thread that did not arrive: a communicator may have been made or destroyed by
 * them. */
static void follow(struct scopes *s, const struct ct_hdr *h, struct thread *t, uint32_t serial)
{
	struct newest key = { .pid = h->pid, .tid = h->tid }, *n;
	struct proc *p = serial ? proc_of(s, h->pid) : NULL;
	bool made;

	if (!serial)
		return;
	n = p ? owned_get(&s->newest, &key, &made) : NULL;
	if (p && !n && owned_of(&s->newest, h->pid) == s->newest.each) {
		owned_forget(&s->newest, h->pid);
		n = owned_get(&s->newest, &key, &made);
	}
	/* a thread that has this number anew begins with 1 */
	if (!n || (serial != n->serial + 1 && serial != 1)) {
		collectives_forget(s->collectives, h->pid);
		free_group(s, t);
	}
	if (n)
		n->serial = serial;
}

static struct ct_scope *copy_of(const struct ct_scope *r)
{
	struct ct_scope *copy = malloc(r->h.size);

	return copy ? memcpy(copy, r, r->h.size) : NULL;
}

static int end_scope(struct scopes *s, struct ct_scope *r, uint64_t ns, uint8_t flags)
{
	r->h.kind = CT_SCOPE_END;
	r->h.end_ns = ns > r->h.start_ns ? ns : r->h.start_ns;
	r->flags |= flags;
	return s->out(s->ctx, &r->h);
}

/* Begins and ends at once. */
static int instant(struct scopes *s, const struct ct_scope *r)
{
	struct ct_scope *copy = copy_of(r);
	int err = copy ? s->out(s->ctx, &copy->h) : -ENOMEM;

	if (!err)
		err = end_scope(s, copy, copy->h.start_ns, 0);
	free(copy);
	return err;
}

/* ---- the scopes of a thread ---- */

/* Takes the scope at a place out of the list, and ends it. */
static int end_at(struct scopes *s, struct thread *t, uint32_t i, uint64_t ns, uint8_t flags)
{
	struct ct_scope *r = t->open[i].rec;
	bool folded = t->open[i].folded;
	int err;

	memmove(&t->open[i], &t->open[i + 1], (t->n - i - 1) * sizeof(*t->open));
	t->n--;
	err = folded ? 0 : end_scope(s, r, ns, flags);
	let_go(s, r);
	return err;
}

/* Ends those whose end was not seen: they are inside the one that is innermost now. */
static int end_inside(struct scopes *s, struct thread *t, uint32_t innermost, uint64_t ns)
{
	int err = 0;

	while (t->n && t->open[t->n - 1].serial > innermost && !err)
		err = end_at(s, t, t->n - 1, ns, CT_SCOPE_UNFINISHED);
	return err;
}

/* The parent of what begins now. */
static void place(struct ct_scope *r, const struct thread *t, uint32_t parent)
{
	r->parent = parent ? CT_SCOPE_UNKNOWN : CT_SCOPE_NONE;
	r->depth = t->n < UINT8_MAX ? (uint8_t)t->n : UINT8_MAX;
	for (uint32_t i = t->n; i && r->parent == CT_SCOPE_UNKNOWN; i--)
		if (t->open[i - 1].serial == parent)
			r->parent = t->open[i - 1].rec->id;
}

static int begin(struct scopes *s, const struct ct_call *c, uint32_t serial, uint32_t parent,
		 uint8_t kind)
{
	struct thread *t = thread_of(s, &c->h, true);
	const struct ct_scope *outer;
	struct ct_scope *r;
	struct said said;
	struct open *o;
	int err;

	if (!t) {
		s->dropped++;
		return 0;
	}
	err = parent == CT_SCOPE_UNKNOWN ? 0 : end_inside(s, t, parent, c->h.start_ns);
	if (err)
		return err;
	follow(s, &c->h, t, serial);
	outer = kind == CT_SCOPE_GEMM ? outer_gemm(t) : NULL;
	if (outer)
		return fold(s, t, outer, serial);
	hear(c, &said);
	if (api_funcs[c->func].layer == API_LAYER_DESCRIBED)
		descriptors_begin(s->descriptors, c, &said.described, said.shapes,
				  sizeof(said.shapes));
	r = make(s, c, kind, &said);
	if (r)
		place(r, t, parent);
	if (!r) /* what it does is not known */
		collectives_forget(s->collectives, c->h.pid);
	else if (collectives_has(&api_funcs[c->func]))
		add_collective(s, r, c, t);
	else if (gemms_has(&api_funcs[c->func]))
		add_gemm(r, c, &said.described);
	if (r && !serial) {
		err = instant(s, r);
	} else if (r && t->n >= OPEN_MAX) {
		s->dropped++;
	} else if (r) {
		r = hold(s, r);
		o = r ? array_add(t->open, t->n) : NULL;
		if (!o) {
			if (r)
				let_go(s, r);
			s->dropped++;
		} else {
			o->serial = serial;
			o->folded = false;
			o->rec = r;
			err = s->out(s->ctx, &r->h);
		}
	}
	drop_empty(s, t);
	return err;
}

/* Ends the scope that was pushed, or the call that has returned. */
static int pop(struct scopes *s, const struct ct_call *c, uint32_t serial)
{
	struct thread *t = thread_of(s, &c->h, false);
	const struct api_func *f = &api_funcs[c->func];
	struct ct_collective *more;
	struct ct_gemm *gemm;
	int err = 0;

	for (uint32_t i = t ? t->n : 0; i; i--) {
		if (t->open[i - 1].serial != serial)
			continue;
		more = (struct ct_collective *)scope_collective(t->open[i - 1].rec);
		if (more && collectives_has(f)) {
			collectives_end(s->collectives, c, more);
			if (f->layer == API_LAYER_GROUP_START && !more->ret)
				nest_group(s, t);
		}
		gemm = (struct ct_gemm *)scope_gemm(t->open[i - 1].rec);
		if (gemm && gemms_has(f)) {
			gemm->ret = (int32_t)c->ret;
			gemm->flags |= CT_GEMM_RETURNED;
		}
		err = end_at(s, t, i - 1, c->h.end_ns, 0);
		break;
	}
	if (t)
		drop_empty(s, t);
	return err;
}

/* ---- ranges that are started and ended, in any thread ---- */

static int start(struct scopes *s, const struct ct_call *c)
{
	struct range key = { .pid = c->h.pid, .id = (uint64_t)c->ret }, *r;
	struct ct_scope *rec;
	struct thread *t;
	struct said said;
	int err = 0;

	hear(c, &said);
	rec = make(s, c, key.id ? CT_SCOPE_RANGE : CT_SCOPE_MARK, &said);
	if (!rec)
		return 0;
	t = thread_of(s, &c->h, false);
	if (t)
		drop_empty(s, t);
	rec->flags |= key.id ? CT_SCOPE_ANY_THREAD : CT_SCOPE_UNPAIRED;
	if (!key.id)
		return instant(s, rec);
	/* the program gives the same number again: the first range has ended */
	r = owned_find(&s->ranges, &key);
	if (r) {
		err = end_scope(s, r->rec, c->h.start_ns, CT_SCOPE_UNFINISHED);
		drop_range(s, r);
	}
	rec = hold(s, rec);
	r = rec ? owned_get(&s->ranges, &key, &(bool){ false }) : NULL;
	if (!r) {
		s->dropped++;
		if (rec)
			let_go(s, rec);
		return err;
	}
	r->rec = rec;
	return err ? err : s->out(s->ctx, &rec->h);
}

static int stop(struct scopes *s, const struct ct_call *c)
{
	struct range key = { .pid = c->h.pid }, *r;
	struct said said;
	int err;

	hear(c, &said);
	key.id = said.id;
	r = owned_find(&s->ranges, &key);
	if (!r)
		return 0;
	err = end_scope(s, r->rec, c->h.start_ns, 0);
	drop_range(s, r);
	return err;
}

/* ---- all of them ---- */

static int layer(struct scopes *s, const struct ct_call *c)
{
	const struct api_func *f = &api_funcs[c->func];
	uint64_t word = 0;
	struct said said;

	memcpy(&word, (const char *)c + c->h.size - sizeof(word), sizeof(word));
	if (collectives_has(f))
		return c->h.kind == CT_LAYER_END
			       ? pop(s, c, (uint32_t)word)
			       : begin(s, c, (uint32_t)word, (uint32_t)(word >> 32),
				       f->class == API_COLLECTIVE ? CT_SCOPE_COLLECTIVE
								  : CT_SCOPE_COMMUNICATOR);
	if (gemms_has(f))
		return c->h.kind == CT_LAYER_END
			       ? pop(s, c, (uint32_t)word)
			       : begin(s, c, (uint32_t)word, (uint32_t)(word >> 32), CT_SCOPE_GEMM);
	if (descriptors_has(f)) {
		descriptors_learn(s->descriptors, c);
		return 0;
	}
	switch (f->layer) {
	case API_LAYER_PUSH:
		return begin(s, c, (uint32_t)word, (uint32_t)(word >> 32), CT_SCOPE_RANGE);
	case API_LAYER_MARK: return begin(s, c, 0, (uint32_t)(word >> 32), CT_SCOPE_MARK);
	case API_LAYER_POP: return pop(s, c, (uint32_t)word);
	case API_LAYER_OPERATOR:
	case API_LAYER_NODE:
		if (c->h.kind == CT_LAYER_END)
			return pop(s, c, (uint32_t)word);
		return begin(s, c, (uint32_t)word, (uint32_t)(word >> 32), CT_SCOPE_OPERATOR);
	case API_LAYER_START: return start(s, c);
	case API_LAYER_END: return stop(s, c);
	case API_LAYER_DOMAIN:
	case API_LAYER_STRING:
		hear(c, &said);
		return learn(s, c->h.pid, f->layer, (uint64_t)c->ret, &said);
	case API_LAYER_PAYLOAD: hear(c, &said); return keep_payload(s, &c->h, &said);
	case API_LAYER_CATEGORY:
		hear(c, &said);
		return learn(s, c->h.pid, f->layer, said.category, &said);
	default: return 0;
	}
}

/* Ends what a process (0: each one) has open in its threads. */
static int end_threads(struct scopes *s, uint32_t pid, uint64_t ns)
{
	struct thread *t;
	int err = 0;

	hash_map_each(&s->threads, t)
	{
		if (t->pid != pid && pid)
			continue;
		while (t->n && !err)
			err = end_at(s, t, t->n - 1, ns, CT_SCOPE_UNFINISHED);
		free_thread(s, t);
	}
	return err;
}

static int end_ranges(struct scopes *s, uint32_t pid, uint64_t ns)
{
	struct range *r;
	int err = 0;

	owned_each(&s->ranges, r)
	{
		if (r->pid != pid && pid)
			continue;
		if (!err)
			err = end_scope(s, r->rec, ns, CT_SCOPE_UNFINISHED);
		drop_range(s, r);
	}
	return err;
}

/* The process has ended, or runs another program. Only the tables that it is in are searched: many
 * short processes would take the time of all others. */
static int over(struct scopes *s, uint32_t pid, uint64_t ns)
{
	struct proc *p = registry_find(&s->procs, pid);
	int err = 0;

	descriptors_forget(s->descriptors, pid);
	if (!p)
		return 0;
	if (p->bytes)
		err = end_threads(s, pid, ns);
	if (owned_of(&s->ranges, pid) && !err)
		err = end_ranges(s, pid, ns);
	owned_forget(&s->names, pid);
	owned_forget(&s->newest, pid);
	collectives_forget(s->collectives, pid);
	return err;
}

const struct ct_hdr *scopes_around(struct scopes *s, const struct ct_hdr *h)
{
	struct thread key = { .pid = h->pid, .tid = h->tid };
	const struct thread *t;
	uint64_t word;
	uint32_t id, at;

	if ((h->kind != CT_CALL && h->kind != CT_ENTER) || !(h->flags & CT_F_SCOPE) ||
	    h->size > sizeof(s->call_room))
		return h;
	at = h->size - (h->flags & CT_F_STACK ? 16 : 8);
	memcpy(&word, (const char *)h + at, sizeof(word));
	if (word >> 32 == CT_SCOPE_BY_ID)
		return h;
	id = (uint32_t)word ? CT_SCOPE_UNKNOWN : CT_SCOPE_NONE;
	t = id == CT_SCOPE_NONE ? NULL : hash_map_find(&s->threads, &key);
	for (uint32_t i = t ? t->n : 0; i && id == CT_SCOPE_UNKNOWN; i--)
		if (t->open[i - 1].serial == (uint32_t)word)
			id = t->open[i - 1].rec->id;
	word = id | (uint64_t)CT_SCOPE_BY_ID << 32;
	memcpy(s->call_room, h, h->size);
	memcpy(s->call_room + at, &word, sizeof(word));
	return &s->call.h;
}

int scopes_record(struct scopes *s, const struct ct_hdr *h)
{
	switch (h->kind) {
	case CT_LAYER_BEGIN:
	case CT_LAYER_END: return layer(s, (const struct ct_call *)h);
	case CT_PROCESS: registry_record(&s->procs, h); return 0;
	case CT_EXEC:
	case CT_EXIT: registry_record(&s->procs, h); return over(s, h->pid, h->end_ns);
	case CT_LOST:
		if (((const struct ct_lost *)h)->cause == CT_LOSS_RING)
			descriptors_lost(s->descriptors);
		return 0;
	default: return 0;
	}
}

int scopes_flush(struct scopes *s, uint64_t now_ns)
{
	int err = end_threads(s, 0, now_ns);

	return err ? err : end_ranges(s, 0, now_ns);
}
