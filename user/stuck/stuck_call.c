/* SPDX-License-Identifier: BSD-2-Clause */
/* stuck_call.c - see stuck_call.h. */
#include "stuck_call.h"

#include <string.h>

#include "../api/api.h"
#include "../../wire/control.h"
#include "../util/table/array.h"

#define PAGE_BYTES 4096
#define JUMPS_MAX 3 /* followed from a call's target: a linker's stub, a wrapper that is a jump */

/* The function of the table whose code contains an address; if the function's size is not known,
 * only its first byte counts. */
static const struct snapshot_func *func_at(const struct snapshot_process *p, uint64_t addr)
{
	size_t n = array_before(p->funcs, p->nfuncs, x, x->start <= addr);
	const struct snapshot_func *f = n ? &p->funcs[n - 1] : NULL;

	return f && addr - f->start < (f->size ? f->size : 1) ? f : NULL;
}

static const struct snapshot_func *func_begins(const struct snapshot_process *p, uint64_t addr)
{
	const struct snapshot_func *f = func_at(p, addr);

	return f && f->start == addr ? f : NULL;
}

bool stuck_call_begins(const struct snapshot_process *p, uint64_t addr)
{
	return func_begins(p, addr) != NULL;
}

/* ---- code ---- */

#if defined(__x86_64__)

static uint64_t relative(uint64_t from, const uint8_t *disp)
{
	int32_t d;

	memcpy(&d, disp, 4);
	return from + (uint64_t)(int64_t)d;
}

/* The target of the call whose return address is `ret`, if the instruction contains it: e8
 * rel32, ff 15 [rip + disp32]. */
static bool call_target(uint64_t ret, stuck_read_fn read, void *ctx, uint64_t *target)
{
	uint8_t b[6];

	if (ret < sizeof(b) || read(ctx, ret - sizeof(b), b, sizeof(b)))
		return false;
	if (b[0] == 0xff && b[1] == 0x15)
		return !read(ctx, relative(ret, &b[2]), target, 8);
	*target = relative(ret, &b[2]);
	return b[1] == 0xe8;
}

/* The jump's target, if the code at an address only jumps: [endbr64] [bnd] jmp *[rip + disp32], or
 * jmp rel32. */
static bool jump_target(uint64_t addr, stuck_read_fn read, void *ctx, uint64_t *target)
{
	uint8_t b[12];
	size_t at = 0;

	if (read(ctx, addr, b, sizeof(b)))
		return false;
	if (!memcmp(b, "\xf3\x0f\x1e\xfa", 4))
		at = 4;
	at += b[at] == 0xf2;
	if (b[at] == 0xff && b[at + 1] == 0x25)
		return !read(ctx, relative(addr + at + 6, &b[at + 2]), target, 8);
	*target = relative(addr + at + 5, &b[at + 1]);
	return b[at] == 0xe9;
}

/* Does a call instruction end before this address? e8 rel32, or ff /2 with any operand, whose
 * length its bytes give. */
static bool after_call(uint64_t ret, stuck_read_fn read, void *ctx)
{
	uint8_t b[7];

	if (ret < sizeof(b) || read(ctx, ret - sizeof(b), b, sizeof(b)))
		return false;
	if (b[2] == 0xe8)
		return true;
	for (int len = 2; len <= 7; len++) {
		const uint8_t *insn = b + 7 - len;
		uint8_t mod = insn[1] >> 6, rm = insn[1] & 7;
		bool sib = mod != 3 && rm == 4;
		int want = 2 + sib + (mod == 1 ? 1 : mod == 2 ? 4 : 0);

		if (insn[0] != 0xff || (insn[1] >> 3 & 7) != 2 || (sib && len < 3))
			continue;
		if (!mod && (rm == 5 || (sib && (insn[2] & 7) == 5)))
			want += 4;
		if (want == len)
			return true;
	}
	return false;
}

/* Is there a jump to `target` in the code that was read from address `at`? jmp rel32 or jcc rel32. The code is not decoded:
 * it is enough that other bytes cannot well be the distance to this very target. */
static bool has_jump(const uint8_t *code, size_t len, uint64_t at, uint64_t target)
{
	for (size_t i = 0; i + 5 <= len; i++) {
		if (code[i] == 0xe9 && relative(at + i + 5, &code[i + 1]) == target)
			return true;
		if (i + 6 <= len && code[i] == 0x0f && code[i + 1] >> 4 == 8 &&
		    relative(at + i + 6, &code[i + 2]) == target)
			return true;
	}
	return false;
}

#else

/* bl */
static bool call_target(uint64_t ret, stuck_read_fn read, void *ctx, uint64_t *target)
{
	uint32_t insn;

	if (ret < 4 || read(ctx, ret - 4, &insn, 4) || (insn & 0xfc000000) != 0x94000000)
		return false;
	*target = ret - 4 + (uint64_t)((int64_t)(int32_t)(insn << 6) >> 4);
	return true;
}

/* adrp x16, page; ldr x17, [x16, #off]; ...; br x17: a linker's stub. b is a jump too. */
static bool jump_target(uint64_t addr, stuck_read_fn read, void *ctx, uint64_t *target)
{
	uint32_t insn[2];
	uint64_t page;

	if (read(ctx, addr, insn, sizeof(insn)))
		return false;
	if ((insn[0] & 0xfc000000) == 0x14000000) {
		*target = addr + (uint64_t)((int64_t)(int32_t)(insn[0] << 6) >> 4);
		return true;
	}
	if ((insn[0] & 0x9f00001f) != 0x90000010 || (insn[1] & 0xffc003ff) != 0xf9400211)
		return false;
	page = (uint64_t)((int64_t)((uint64_t)(insn[0] >> 5 & 0x7ffff) << 45) >> 31) |
	       (uint64_t)(insn[0] >> 29 & 3) << 12;
	return !read(ctx, (addr & ~0xfffULL) + page + (insn[1] >> 10 & 0xfff) * 8, target, 8);
}

/* bl, blr */
static bool after_call(uint64_t ret, stuck_read_fn read, void *ctx)
{
	uint32_t insn;

	if (ret < 4 || read(ctx, ret - 4, &insn, 4))
		return false;
	return (insn & 0xfc000000) == 0x94000000 || (insn & 0xfffffc1f) == 0xd63f0000;
}

/* b */
static bool has_jump(const uint8_t *code, size_t len, uint64_t at, uint64_t target)
{
	for (size_t i = 0; i + 4 <= len; i += 4) {
		uint32_t insn;

		memcpy(&insn, code + i, 4);
		if ((insn & 0xfc000000) == 0x14000000 &&
		    at + i + (uint64_t)((int64_t)(int32_t)(insn << 6) >> 4) == target)
			return true;
	}
	return false;
}

#endif

/* The function of the table that the call before a return address went to. */
static const struct snapshot_func *called(const struct snapshot_process *p, uint64_t ret,
					  stuck_read_fn read, void *ctx)
{
	const struct snapshot_func *f;
	uint64_t target;

	if (!call_target(ret, read, ctx, &target))
		return NULL;
	f = func_begins(p, target);
	for (int i = 0; !f && i < JUMPS_MAX && jump_target(target, read, ctx, &target); i++)
		f = func_begins(p, target);
	return f;
}

/* ---- stacks ---- */

static void set_call(struct stuck_call *c, const struct snapshot_func *f, int caller, uint64_t ip,
		     uint64_t sp)
{
	*c = (struct stuck_call){
		.func = f->func, .per_thread = f->per_thread, .caller = caller, .ip = ip, .sp = sp
	};
}

/* Code of the process, as much as is read at once. */
struct page {
	uint64_t at;
	size_t len;
	uint8_t code[PAGE_BYTES];
};

/* The code of a function, or its first PAGE_BYTES. *len is 0 if it cannot be read. */
static const uint8_t *code_of(struct page *page, const struct snapshot_func *f, stuck_read_fn read,
			      void *ctx, size_t *len)
{
	size_t want = f->size && f->size < PAGE_BYTES ? f->size : PAGE_BYTES;

	if (f->start < page->at || f->start - page->at >= page->len ||
	    page->len - (f->start - page->at) < want) {
		page->at = f->start;
		page->len = PAGE_BYTES;
		/* what follows the function need not be mapped */
		if (read(ctx, f->start, page->code, PAGE_BYTES))
			page->len = read(ctx, f->start, page->code, want) ? 0 : want;
	}
	*len = page->len < want ? page->len : want;
	return page->code + (f->start - page->at);
}

/* The mapping of a file's code that has an address; NULL: none. */
static const struct snapshot_range *mapping_of(const struct snapshot_process *p, uint64_t addr)
{
	for (size_t i = 0; i < p->ncode; i++)
		if (addr >= p->code[i].start && addr < p->code[i].end)
			return &p->code[i];
	return NULL;
}

/* The function of the table whose code jumps to the function that begins at `begin`: of the same file, as such a jump does not
 * lead out of one. *sure: no other function does, but the twin of this one. */
static const struct snapshot_func *jumped(const struct snapshot_process *p, uint64_t begin,
					  stuck_read_fn read, void *ctx, bool *sure)
{
	const struct snapshot_func *found = NULL;
	const struct snapshot_range *in = mapping_of(p, begin);
	struct page page = { .len = 0 };

	*sure = true;
	for (size_t i = 0; in && i < p->nfuncs; i++) {
		const struct snapshot_func *f = &p->funcs[i];
		const uint8_t *code;
		size_t len;

		if (f->start < in->start || f->start >= in->end)
			continue;
		code = code_of(&page, f, read, ctx, &len);
		if (!has_jump(code, len, f->start, begin))
			continue;
		if (found && found->func != f->func)
			*sure = false;
		if (!found || (found->func == f->func && found->per_thread))
			found = f;
	}
	return found;
}

/* The quality of a match: 0 none, 1 of class internal, 2 a call. */
static int worth(const struct snapshot_func *f)
{
	if (!f || api_funcs[f->func].flags & CT_S_CALLBACK)
		return 0;
	return api_funcs[f->func].class == API_INTERNAL ? 1 : 2;
}

bool stuck_call_enters(const struct snapshot_process *p, const struct stuck_frame *frame,
		       const struct stuck_frame *caller)
{
	return !caller->exact && snapshot_in_code(p, frame->ip - !frame->exact) &&
	       !snapshot_in_code(p, caller->ip - 1);
}

bool stuck_call_of_frames(struct stuck_call *out, const struct snapshot_process *p,
			  const struct stuck_frame *frames, int n, stuck_read_fn read, void *ctx)
{
	int best = 0;

	for (int i = n - 1; i >= 0 && best < 2; i--) {
		const struct stuck_frame *caller = i + 1 < n ? &frames[i + 1] : NULL;
		const struct snapshot_func *f = func_at(p, frames[i].ip - !frames[i].exact),
					   *by = NULL;
		bool sure = true;

		/* __cudaLaunchKernel is called, and jumps to cudaLaunchKernel */
		if (worth(f) < 2 && caller && !caller->exact)
			by = called(p, caller->ip, read, ctx);
		if (!f && !by && caller && frames[i].begin &&
		    stuck_call_enters(p, &frames[i], caller))
			by = jumped(p, frames[i].begin, read, ctx, &sure);
		if (worth(by) > worth(f))
			f = by;
		if (worth(f) <= best)
			continue;
		best = worth(f);
		if (caller)
			set_call(out, f, i + 1, caller->ip, caller->sp);
		else
			set_call(out, f, -1, 0, frames[i].sp);
		out->by_scan = !sure;
	}
	return best > 0;
}

/*
 * A word counts as the return address of a call into CUDA if the instruction before it calls a
 * function of the table (then the call is its frame's owner), or if it lies in such a function
 * behind any call.
 */
bool stuck_call_by_scan(struct stuck_call *out, const struct snapshot_process *p, uint64_t sp,
			const uint8_t *stack, size_t len, stuck_read_fn read, void *ctx)
{
	bool inside = false; /* a word further in points into CUDA's code */
	int best = 0;

	for (size_t at = 0; at + 8 <= len; at += 8) {
		const struct snapshot_func *f;
		uint64_t word;

		memcpy(&word, stack + at, 8);
		if (word < 4096 || word >> 56)
			continue;
		if (snapshot_in_code(p, word)) {
			inside = true;
			f = func_at(p, word - 1);
			if (worth(f) && worth(f) >= best && after_call(word, read, ctx)) {
				best = worth(f);
				set_call(out, f, -1, 0, sp + at + 8);
			}
		}
		if (!inside)
			continue;
		f = called(p, word, read, ctx);
		if (worth(f) && worth(f) >= best) {
			best = worth(f);
			set_call(out, f, -1, word, sp + at + 8);
		}
	}
	out->by_scan = true;
	return best > 0;
}
