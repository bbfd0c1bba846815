/* SPDX-License-Identifier: BSD-2-Clause */
/* frames.c - see frames.h. */
#include <stdlib.h>
#include <string.h>

#include "frames.h"
#include "symbols.h"

#define FUNCTION_MAX 16384
#define PATH_LEN_MAX 4096

enum { KEY_PLACE = 1, KEY_UNKNOWN, KEY_PYTHON, KEY_CODE, KEY_STACK, KEY_BARE };

struct frames {
	emit_fn out;
	void *ctx;
	int err;
	/* The value that is kept for a place: first | count << 32 | evaluates << 48. */
	struct memo *places;
	/* The value that is kept for a stack: id | its smallest frame id << 32. */
	struct memo *stacks;
	uint32_t next_frame, next_stack;     /* the next ids to assign */
	uint32_t oldest_frame, oldest_stack; /* all smaller ids are forgotten */
	uint32_t last_stack, last_smallest;  /* the stack that was found or made last */
	_Alignas(8) char rec[sizeof(struct ct_frame) + FUNCTION_MAX + 2 * PATH_LEN_MAX];
	_Alignas(8) char stack[sizeof(struct ct_stack) + FRAMES_MAX * sizeof(uint32_t)];
};

struct frames *frames_open(emit_fn out, void *ctx)
{
	struct frames *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->places = memo_open();
	f->stacks = memo_open();
	if (!f->places || !f->stacks) {
		frames_close(f);
		return NULL;
	}
	f->out = out;
	f->ctx = ctx;
	f->next_frame = f->oldest_frame = f->next_stack = f->oldest_stack = 1;
	return f;
}

void frames_close(struct frames *f)
{
	if (!f)
		return;
	memo_close(f->places);
	memo_close(f->stacks);
	free(f);
}

int frames_error(const struct frames *f)
{
	return f->err;
}

static void emit(struct frames *f, const void *rec)
{
	int err = f->out(f->ctx, rec);

	if (err < 0 && !f->err)
		f->err = err;
}

/* ---- forgetting ---- */

static bool old_place(void *ctx, uint64_t value)
{
	return (uint32_t)value < ((struct frames *)ctx)->oldest_frame;
}

static bool old_stack(void *ctx, uint64_t value)
{
	const struct frames *f = ctx;

	return (uint32_t)value < f->oldest_stack || value >> 32 < f->oldest_frame;
}

/* Forgets old frames if a stack might not find enough room, and with them the stacks that have
 * these frames. There are more keys than stacks, because the same frames can come from several
 * mappings. */
void frames_room(struct frames *f)
{
	bool frames = f->next_frame - f->oldest_frame + FRAMES_MAX > STACK_TABLE_FRAMES;
	bool stacks = f->next_stack - f->oldest_stack >= STACK_TABLE_STACKS;

	if (frames)
		f->oldest_frame = f->next_frame - STACK_TABLE_FRAMES / 2;
	if (stacks || memo_count(f->stacks) > 4 * STACK_TABLE_STACKS)
		f->oldest_stack += (f->next_stack - f->oldest_stack) / 2;
	if (frames)
		memo_forget(f->places, old_place, f);
	if (frames || stacks || memo_count(f->stacks) > 4 * STACK_TABLE_STACKS)
		memo_forget(f->stacks, old_stack, f);
	if (memo_count(f->stacks) > 4 * STACK_TABLE_STACKS) {
		f->oldest_stack = f->next_stack;
		memo_forget(f->stacks, old_stack, f);
	}
}

/* ---- frames ---- */

static uint16_t put(char **at, const char *s, size_t max)
{
	size_t len = s ? strnlen(s, max) : 0;

	memcpy(*at, s ? s : "", len);
	*at += len;
	return (uint16_t)len;
}

/* Writes the function's name without the symbol's version: "memcpy@@GLIBC_2.14". No compiler uses @
 * in mangled names. */
static uint16_t put_function(char **at, const char *s, uint8_t kind)
{
	size_t len = s && kind != CT_FRAME_PYTHON ? strcspn(s, "@") : FUNCTION_MAX;

	return put(at, s, len && len < FUNCTION_MAX ? len : FUNCTION_MAX);
}

static uint32_t send(struct frames *f, const struct ct_frame *head, const char *function,
		     const char *file, const char *object)
{
	struct ct_frame *rec = (struct ct_frame *)f->rec;
	char *at = rec->strings;

	*rec = *head;
	rec->function_len = put_function(&at, function, head->kind);
	rec->file_len = put(&at, file, PATH_LEN_MAX);
	rec->object_len = put(&at, object, PATH_LEN_MAX);
	while ((at - f->rec) & 7)
		*at++ = '\0';
	rec->h.size = (uint16_t)(at - f->rec);
	rec->h.kind = CT_FRAME;
	rec->id = f->next_frame++;
	emit(f, rec);
	return rec->id;
}

/* Whether it is "_PyEval_EvalFrameDefault", or a part that a compiler split off from it. */
static bool evaluates(const char *function)
{
	static const char name[] = "_PyEval_EvalFrameDefault";

	return function && !strncmp(function, name, sizeof(name) - 1) &&
	       (!function[sizeof(name) - 1] || function[sizeof(name) - 1] == '.');
}

/* The frame of a place whose object is lent. */
static struct frames_place bare(struct frames *f, struct object *o, uint64_t address)
{
	struct ct_frame head = { .address = address, .kind = CT_FRAME_NATIVE };
	struct memo_key key = memo_begin(KEY_BARE);
	uint64_t value;

	memo_add(&key, object_serial(o));
	memo_add(&key, address);
	if (!memo_find(f->places, key, &value)) {
		value = send(f, &head, NULL, NULL, object_path(o));
		memo_put(f->places, key, value);
	}
	return (struct frames_place){ .first = (uint32_t)value, .count = 1 };
}

struct frames_place frames_native(struct frames *f, struct object *o, uint64_t address, bool exact)
{
	struct memo_key key = memo_begin(KEY_PLACE);
	struct symbols_place places[SYMBOLS_MAX];
	struct frames_place p = { .first = f->next_frame };
	uint64_t value;
	int n;

	memo_add(&key, (uint64_t)object_serial(o) << 1 | exact);
	memo_add(&key, address);
	if (memo_find(f->places, key, &value)) {
		p.first = (uint32_t)value;
		p.count = (uint16_t)(value >> 32);
		p.evaluates = value >> 48;
		return p;
	}
	n = symbols_find(o, address, exact, places, SYMBOLS_MAX);
	if (!n)
		return bare(f, o, address);
	for (int i = 0; i < n; i++) {
		struct ct_frame head = { .address = address,
					 .offset = places[i].offset,
					 .line = places[i].line,
					 .kind = places[i].inlined ? CT_FRAME_INLINED
								   : CT_FRAME_NATIVE };

		send(f, &head, places[i].function, places[i].file, object_path(o));
		p.evaluates |= evaluates(places[i].function);
		p.count++;
	}
	memo_put(f->places, key, p.first | (uint64_t)p.count << 32 | (uint64_t)p.evaluates << 48);
	return p;
}

uint32_t frames_unknown(struct frames *f, uint64_t address)
{
	struct memo_key key = memo_begin(KEY_UNKNOWN);
	struct ct_frame head = { .address = address, .kind = CT_FRAME_UNKNOWN };
	uint64_t value;

	memo_add(&key, address);
	if (!memo_find(f->places, key, &value)) {
		value = send(f, &head, NULL, NULL, NULL);
		memo_put(f->places, key, value);
	}
	return (uint32_t)value;
}

uint32_t frames_python(struct frames *f, const char *function, const char *file, uint32_t line,
		       uint64_t code)
{
	struct memo_key key = memo_begin(function ? KEY_PYTHON : KEY_CODE);
	struct ct_frame head = { .line = line,
				 .kind = CT_FRAME_PYTHON,
				 .address = function ? 0 : code };
	uint64_t value;

	memo_add(&key, function ? line : code);
	memo_add_bytes(&key, function ? function : "", function ? strlen(function) : 0);
	memo_add_bytes(&key, file ? file : "", file ? strlen(file) : 0);
	if (!memo_find(f->places, key, &value)) {
		value = send(f, &head, function, file, NULL);
		memo_put(f->places, key, value);
	}
	return (uint32_t)value;
}

/* ---- stacks ---- */

uint32_t frames_recall(struct frames *f, struct memo_key key)
{
	uint64_t value;

	return memo_find(f->stacks, key, &value) && !old_stack(f, value) ? (uint32_t)value : 0;
}

void frames_remember(struct frames *f, struct memo_key key, uint32_t stack)
{
	if (stack == f->last_stack)
		memo_put(f->stacks, key, stack | (uint64_t)f->last_smallest << 32);
}

uint32_t frames_stack(struct frames *f, uint32_t pid, uint64_t time_ns, uint32_t flags,
		      const uint32_t *ids, uint32_t n)
{
	struct ct_stack *rec = (struct ct_stack *)f->stack;
	struct memo_key key = memo_begin(KEY_STACK);
	uint32_t smallest = UINT32_MAX;
	uint64_t value;

	memo_add(&key, (uint64_t)flags << 32 | n);
	for (uint32_t i = 0; i < n; i++) {
		memo_add(&key, ids[i]);
		if (ids[i] < smallest)
			smallest = ids[i];
	}
	f->last_smallest = smallest;
	if (memo_find(f->stacks, key, &value) && !old_stack(f, value))
		return f->last_stack = (uint32_t)value;
	memset(rec, 0, sizeof(*rec));
	rec->h.kind = CT_STACK;
	rec->h.size = (uint16_t)((sizeof(*rec) + n * sizeof(uint32_t) + 7) & ~7ul);
	rec->h.pid = pid;
	rec->h.start_ns = rec->h.end_ns = time_ns;
	rec->id = f->next_stack++;
	rec->nframes = n;
	rec->flags = flags;
	memcpy(rec->frames, ids, n * sizeof(uint32_t));
	if (n & 1)
		rec->frames[n] = 0;
	emit(f, rec);
	memo_put(f->stacks, key, rec->id | (uint64_t)smallest << 32);
	return f->last_stack = rec->id;
}
