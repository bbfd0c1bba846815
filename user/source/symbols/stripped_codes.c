/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stripped_codes.c - see stripped_codes.h.
 *
 * A hash alone would not do, because two of these functions may differ in nothing but what they call, and
 * short ones are alike in any program. So the functions count only as a row of neighbours in the runtime's order, and only
 * if enough of them call first what the functions that name themselves call.
 */
#include "stripped_codes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../util/table/array.h"
#include "stripped_isa.h"

#define MASKS 24	   /* places in one function that the linker fills in */
#define MASKED 4	   /* bytes at each */
#define BYTES_MAX 512	   /* of a function of the table */
#define PADDING 16	   /* functions begin at a multiple of this */
#define NEAR (2 << 20)	   /* bytes: the runtime has a quarter of that */
#define BETWEEN 2	   /* functions between two of a row that are none of it */
#define PROVEN 3	   /* of a row */
#define WINDOW (256 << 10) /* bytes of code that are read at a time */
#define FNV_BASIS 0xcbf29ce484222325ULL
#define FNV_PRIME 0x100000001b3ULL

/* Sorted by order. Of one order, a row for each way in which compilers have made the function. */
static const struct code {
	uint16_t machine;
	uint8_t order;
	const char *name;
	uint16_t bytes;
	uint64_t hash;
	uint16_t at[MASKS]; /* ends with 0: no function begins with such a place */
} codes[] = {
#define NUMBER(name, number)
#define CODE(machine, order, name, bytes, hash, ...) \
	{ machine, order, #name, bytes, hash, { __VA_ARGS__ } },
#define X86(...) CODE(EM_X86_64, __VA_ARGS__)
#define ARM64(...) CODE(EM_AARCH64, __VA_ARGS__)
#include "stripped.def"
#undef NUMBER
#undef CODE
#undef X86
#undef ARM64
};
#define CODES ((int)(sizeof(codes) / sizeof(*codes)))

/* A row of neighbours. */
struct row {
	struct stripped_func funcs[CODES];
	int n, proven;
	size_t last; /* the number of the last one in the list of functions */
	int order;   /* of the last one; -1: none */
};
/* That one of the functions that name themselves calls an address. */
struct target {
	uint64_t to;
	size_t func;
};
struct match {
	struct target *targets; /* sorted, each once */
	size_t ntargets;
	uint8_t *window; /* bytes of the file, at window_at */
	uint64_t window_at;
	size_t window_bytes;
	const struct elf_file *file;
	const struct stripped_isa *isa;
	const struct stripped *named;
	struct row row, best;
	bool several; /* rows that would do */
};

static uint64_t hash_of(const uint8_t *code, const struct code *c)
{
	uint64_t h = FNV_BASIS;
	int next = 0;

	for (uint16_t i = 0; i < c->bytes; i++) {
		while (next < MASKS && c->at[next] && i >= c->at[next] + MASKED)
			next++;
		if (next == MASKS || !c->at[next] || i < c->at[next])
			h = (h ^ code[i]) * FNV_PRIME;
	}
	return h;
}

/* Which code it is, behind those of this order; NULL: none. */
static const struct code *code_of(const struct match *m, const uint8_t *bytes, size_t len,
				  uint64_t gap, int order)
{
	for (int i = 0; i < CODES; i++)
		if (codes[i].machine == m->isa->machine && codes[i].order > order &&
		    codes[i].bytes <= len && codes[i].bytes <= gap &&
		    gap < (uint64_t)codes[i].bytes + PADDING &&
		    hash_of(bytes, &codes[i]) == codes[i].hash)
			return &codes[i];
	return NULL;
}

/* Copies code. What is asked for next lies behind it, as a rule. */
static int read_code(struct match *m, uint8_t *bytes, size_t len, uint64_t at)
{
	if (at < m->window_at || at + len > m->window_at + m->window_bytes) {
		uint64_t left = at < m->file->size ? m->file->size - at : 0;
		int err;

		m->window_bytes = left < WINDOW ? left : WINDOW;
		m->window_at = at;
		err = elf_read(m->file, m->window, m->window_bytes, at);
		if (err || len > m->window_bytes) {
			m->window_bytes = 0;
			return err ? err : -EBADMSG;
		}
	}
	memcpy(bytes, m->window + (at - m->window_at), len);
	return 0;
}

static int by_target(const void *a, const void *b)
{
	const struct target *x = a, *y = b;

	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	return (x->func > y->func) - (x->func < y->func);
}

/* What each function that names itself calls. */
static int find_targets(struct match *m)
{
	size_t n = 0;

	for (size_t i = 0; i < m->named->n; i++) {
		const struct stripped_func *func = &m->named->funcs[i];
		uint64_t at = elf_code_offset(m->file, func->address), to;
		uint8_t code[BYTES_MAX];
		size_t len = func->bytes < sizeof(code) ? func->bytes : sizeof(code);

		if (!at || read_code(m, code, len, at))
			continue;
		for (size_t k = 0; k + MASKED <= len; k += m->isa->step) {
			struct target *t;

			if (m->isa->branch(code, k, func->address, &to) != ISA_CALL)
				continue;
			t = array_add(m->targets, m->ntargets);
			if (!t)
				return -ENOMEM;
			*t = (struct target){ to, i };
		}
	}
	if (m->ntargets)
		qsort(m->targets, m->ntargets, sizeof(*m->targets), by_target);
	for (size_t i = 0; i < m->ntargets; i++)
		if (!n || by_target(&m->targets[n - 1], &m->targets[i]))
			m->targets[n++] = m->targets[i];
	m->ntargets = n;
	return 0;
}

/* Do most of those that name themselves call it, too? */
static bool is_common(const struct match *m, uint64_t to)
{
	size_t first = array_before(m->targets, m->ntargets, x, x->to < to), with = 0;

	while (first + with < m->ntargets && m->targets[first + with].to == to)
		with++;
	return with > m->named->n / 2;
}

/* __cudaLaunchKernel only jumps to cudaLaunchKernel. */
static bool leads_to_namesake(const struct match *m, uint64_t to, const struct code *c)
{
	for (size_t i = 0; i < m->named->n; i++)
		if (m->named->funcs[i].address == to)
			return !strcmp(m->named->funcs[i].name, c->name + strspn(c->name, "_"));
	return false;
}

static void end_row(struct match *m)
{
	if (m->row.proven >= PROVEN) {
		m->several |= m->best.n > 0;
		m->best = m->row;
	}
	m->row = (struct row){ .order = -1 };
}

static void on_function(struct match *m, const struct elf_start *start, size_t number, uint64_t gap)
{
	uint64_t at = elf_code_offset(m->file, start->address);
	const struct code *c;
	uint8_t bytes[BYTES_MAX];
	enum isa_branch how;
	uint64_t to = 0;
	size_t len = gap < sizeof(bytes) ? gap : sizeof(bytes);

	if (m->row.n && number - m->row.last > BETWEEN + 1)
		end_row(m);
	if (!at || read_code(m, bytes, len, at))
		return;
	c = code_of(m, bytes, len, gap, m->row.order);
	if (!c && m->row.n && code_of(m, bytes, len, gap, -1)) {
		/* what stood before it was none of the row: another function of the same code */
		end_row(m);
		c = code_of(m, bytes, len, gap, -1);
	}
	how = c ? m->isa->branch(bytes, c->at[0], start->address, &to) : ISA_NONE;
	if (!c || (how == ISA_JUMP && !leads_to_namesake(m, to, c)))
		return;
	m->row.funcs[m->row.n++] = (struct stripped_func){ c->name, start->address, c->bytes };
	m->row.proven += how == ISA_CALL && is_common(m, to);
	m->row.last = number;
	m->row.order = c->order;
}

int stripped_codes(const struct elf_file *file, const struct elf_starts *starts,
		   struct stripped *out)
{
	struct match *m = calloc(1, sizeof(*m));
	uint64_t lo = UINT64_MAX, hi = 0;
	int err = 0;

	if (!m)
		return -ENOMEM;
	m->file = file;
	m->isa = stripped_isa(file->ehdr.e_machine);
	m->named = out;
	m->row.order = -1;
	for (size_t i = 0; i < out->n; i++) {
		lo = out->funcs[i].address < lo ? out->funcs[i].address : lo;
		hi = out->funcs[i].address > hi ? out->funcs[i].address : hi;
	}
	m->window = malloc(WINDOW);
	err = m->window ? find_targets(m) : -ENOMEM;
	for (size_t i = 0; !err && out->n && i + 1 < starts->n; i++) {
		const struct elf_start *s = &starts->list[i];

		if (s->address + NEAR >= lo && s->address <= hi)
			on_function(m, s, i, s[1].address - s->address);
	}
	end_row(m);
	for (int i = 0; !m->several && i < m->best.n && !err; i++) {
		struct stripped_func *f = array_add(out->funcs, out->n);

		if (f)
			*f = m->best.funcs[i];
		else
			err = -ENOMEM;
	}
	free(m->targets);
	free(m->window);
	free(m);
	return err;
}
