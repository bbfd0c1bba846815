/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * make_call.h - makes call records as the kernel side would: arguments placed as the ABI has it,
 * and the reads of the function's capture spec done against a little memory of our own.
 */
#ifndef CT_MAKE_CALL_H
#define CT_MAKE_CALL_H

#include <stdarg.h>
#include <string.h>

#include "../../user/event/event.h"
#include "../../wire/control.h"

#define MAKE_REGS (API_ARCH_HERE == API_X86_64 ? 6 : 8)

struct made_call {
	union {
		struct ct_call c;
		char room[sizeof(struct ct_call) + CT_DATA_MAX + CT_READ_MAX];
	};
};

static struct {
	uint64_t addr;
	const void *data;
	size_t len;
} make_memory[16];
static int make_nmemory;

/* From now on the "target" has these bytes at addr. */
static inline void make_mem(uint64_t addr, const void *data, size_t len)
{
	if (make_nmemory == 16)
		make_nmemory = 0;
	make_memory[make_nmemory].addr = addr;
	make_memory[make_nmemory].data = data;
	make_memory[make_nmemory++].len = len;
}

/* Copies at most len bytes; the number copied, 0: nothing there. */
static inline size_t make_peek(void *dst, uint64_t addr, size_t len)
{
	for (int i = make_nmemory - 1; i >= 0; i--) {
		uint64_t off = addr - make_memory[i].addr;

		if (addr < make_memory[i].addr || off >= make_memory[i].len)
			continue;
		if (len > make_memory[i].len - off)
			len = make_memory[i].len - off;
		memcpy(dst, (const char *)make_memory[i].data + off, len);
		return len;
	}
	return 0;
}

static inline uint64_t make_source(const struct ct_call *c, const uint16_t *start, uint8_t from,
				   uint16_t off)
{
	uint64_t v = 0;

	if (from == CT_FROM_RETURN)
		return (uint64_t)c->ret;
	if (!(from & CT_FROM_READ))
		return c->words[from];
	if (start[from & 7] != 0xffff)
		memcpy(&v, (const char *)c->words + start[from & 7] + off, sizeof(v));
	return v;
}

static inline void make_reads(struct made_call *m, const struct ct_spec *spec, bool returned)
{
	uint16_t start[8] = { 0xffff, 0xffff, 0xffff, 0xffff, 0xffff, 0xffff, 0xffff, 0xffff };
	char *data = (char *)m->c.words;
	size_t off = m->c.nwords * 8u;

	for (int i = 0; i < spec->nreads; i++) {
		const struct ct_read *r = &spec->reads[i];
		uint64_t ptr, head;
		size_t n;

		if (r->when == CT_AT_RETURN && !returned)
			continue;
		ptr = make_source(&m->c, start, r->from, r->off);
		if (!ptr)
			continue;
		memset(data + off, 0, r->len + 16u);
		if (r->kind == CT_READ_BYTES) {
			if (make_peek(data + off, ptr, r->len) != r->len)
				continue;
			start[i] = (uint16_t)off;
			off += (r->len + 7u) & ~7u;
		} else if (r->kind == CT_READ_STR) {
			n = make_peek(data + off + 8, ptr, r->len);
			if (!n)
				continue;
			n = strnlen(data + off + 8, n) + 1;
			head = n >= r->len ? r->len | CT_STR_CUT : n;
			n = (uint32_t)head;
			data[off + 8 + n - 1] = '\0';
			memcpy(data + off, &head, 8);
			off += 8 + ((n + 7) & ~(size_t)7);
		} else {
			uint64_t want =
				(uint32_t)make_source(&m->c, start, r->count_from, r->count_off) *
				(uint64_t)r->elem;

			n = want < r->len ? want : r->len;
			if (!n || make_peek(data + off + 8, ptr, n) != n)
				continue;
			head = n | (want > n ? CT_STR_CUT : 0);
			memcpy(data + off, &head, 8);
			off += 8 + ((n + 7) & ~(size_t)7);
		}
		m->c.got |= 1u << i;
	}
	m->c.h.size = (uint16_t)(sizeof(m->c) + off);
}

/*
 * One call of the row `func` with its arguments in the order of the header, an 8-byte value
 * each, two for a dim3 (x | y << 32, z) and n / 8 for larger aggregates; arguments in
 * floating-point registers are left out. Flags: CT_F_*. kind: CT_CALL or CT_ENTER.
 */
static inline struct ct_call *make_callv(struct made_call *m, int func, int kind, int flags,
					 int64_t ret, va_list ap)
{
	const struct api_func *f = &api_funcs[func];
	int reg = (f->flags & API_SRET) && API_ARCH_HERE == API_X86_64, stack = MAKE_REGS;
	struct ct_spec spec;

	memset(m, 0, sizeof(*m));
	memset(&spec, 0, sizeof(spec));
	api_spec(func, API_ARCH_HERE, true, &spec);
	m->c.h = (struct ct_hdr){ .kind = (uint16_t)kind,
				  .flags = (uint16_t)flags,
				  .pid = 12345,
				  .tid = 12345,
				  .start_ns = 1234018000,
				  .end_ns = kind == CT_ENTER ? 1234018000 : 1234018000 + 112400 };
	m->c.func = (uint16_t)func;
	m->c.ret = kind == CT_ENTER ? 0 : ret;
	m->c.nwords = spec.nwords > MAKE_REGS ? spec.nwords : MAKE_REGS;
	for (int i = 0; i < f->nargs; i++) {
		int n = f->args[i].abi == API_ABI_PAIR ? 2 : 1, at;

		if (f->args[i].abi == API_ABI_FLOAT)
			continue;
		if (f->args[i].abi == API_ABI_MEMORY && API_ARCH_HERE == API_X86_64) {
			n = (f->args[i].width + 7) / 8;
			at = stack;
			stack += n;
		} else if (reg + n <= MAKE_REGS) {
			at = reg;
			reg += n;
		} else {
			at = stack;
			stack += n;
		}
		for (int w = 0; w < n; w++) {
			uint64_t v = va_arg(ap, uint64_t);

			if (at + w < CT_LAYER_WORDS)
				m->c.words[at + w] = v;
		}
	}
	make_reads(m, &spec,
		   kind == CT_CALL && !(flags & (CT_F_UNFINISHED | CT_F_NO_RETURN)) &&
			   !(int32_t)ret);
	return &m->c;
}

/* The same by name; NULL when the table has no such row. */
static inline struct ct_call *make_call(struct made_call *m, const char *name, int kind, int flags,
					int64_t ret, ...)
{
	int func = api_next(name, -1);
	struct ct_call *c;
	va_list ap;

	if (func < 0)
		return NULL;
	va_start(ap, ret);
	c = make_callv(m, func, kind, flags, ret, ap);
	va_end(ap);
	return c;
}

#define U(x) ((uint64_t)(x))

#endif
