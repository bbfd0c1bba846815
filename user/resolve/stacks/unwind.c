/* SPDX-License-Identifier: BSD-2-Clause */
/* unwind.c - see unwind.h. */
#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "cfi.h"
#include "symbols.h"
#include "unwind.h"

#define WINDOW 16384	/* bytes of a live stack that are read at once */
#define WINDOWS_MAX 256 /* reads of one stack */
/* a stack pointer further away than this does not belong to the thread's stack */
#define STACK_FAR (1ULL << 30)
#define OPS_STEPS 1000 /* operations executed for one expression */
#define OPS_DEPTH 64

#if defined(__aarch64__)
static const uint8_t callee_saved[10] = { 19, 20, 21, 22, 23, 24, 25, 26, 27, 28 };
#define NCALLEE_SAVED 10
/* A program may sign its return addresses. The signature is in the bits above those of addresses, which end at 1 << 48 (a
 * program gets higher ones only if it asks for them). Programs that sign nothing have zeros there. */
#define RETURN_ADDRESS(word) ((word) & ((1ULL << 48) - 1))
#define RETURN_ON_STACK 0 /* a call puts it into a register */
#else
static const uint8_t callee_saved[5] = { 3, 12, 13, 14, 15 }; /* rbx, r12 to r15 */
#define NCALLEE_SAVED 5
#define RETURN_ADDRESS(word) (word)
#define RETURN_ON_STACK 1
#endif

struct walk {
	struct space *space;
	/* memory that was not copied is read from here; NULL: it cannot be read */
	struct target *live;
	struct target *target; /* used to read its mappings; may be NULL */
	const uint8_t *bytes;
	uint64_t start, len; /* of the copy */
	uint64_t sp_first;
	bool cut;    /* the stack continues behind the copy */
	bool beyond; /* something behind the copy was needed */
	const struct ct_saved *saved;
	int nsaved, nwindows;
	uint8_t *window; /* WINDOW bytes; used with `live` */
	/* the current frame */
	uint64_t r[CFI_REGS], ip;
	uint64_t known; /* one bit for each register: its value is known */
	bool exact;
	/* the frames' registers are stored here; NULL: they are not needed */
	struct unwind_regs *full;
};

/* ---- memory ---- */

static bool window_at(struct walk *w, uint64_t addr)
{
	uint64_t end = space_end(w->space, addr), len;

	if (w->nwindows++ >= WINDOWS_MAX)
		return false;
	if (end <= addr) {
		/* stacks grow downwards: this page may be newer than the snapshot */
		if (w->nwindows == 1 && !space_refresh(w->space, w->live))
			end = space_end(w->space, addr);
		if (end <= addr)
			return false;
	}
	len = end - addr < WINDOW ? end - addr : WINDOW;
	if (len < 8 || target_read(w->live, addr, w->window, len))
		return false;
	w->bytes = w->window;
	w->start = addr;
	w->len = len;
	return true;
}

static bool read_word(struct walk *w, uint64_t addr, uint64_t *out)
{
	if (addr & 7)
		return false;
	for (int i = 0; RETURN_ON_STACK && i < w->nsaved; i++)
		if (w->saved[i].sp == addr) {
			*out = w->saved[i].ip;
			return true;
		}
	if (addr < w->start || addr - w->start >= w->len || w->len - (addr - w->start) < 8) {
		if (!w->live) {
			w->beyond |= w->cut && addr >= w->start && addr - w->start < STACK_FAR;
			return false;
		}
		if (!window_at(w, addr))
			return false;
	}
	memcpy(out, w->bytes + (addr - w->start), 8);
	return true;
}

/* ---- expressions ---- */

struct values {
	uint64_t v[OPS_DEPTH];
	int n;
	bool bad;
};

static void push(struct values *s, uint64_t v)
{
	if (s->n == OPS_DEPTH)
		s->bad = true;
	else
		s->v[s->n++] = v;
}

static uint64_t pop(struct values *s)
{
	if (!s->n) {
		s->bad = true;
		return 0;
	}
	return s->v[--s->n];
}

static uint64_t peek(struct values *s, uint64_t depth)
{
	if (depth >= (uint64_t)s->n) {
		s->bad = true;
		return 0;
	}
	return s->v[s->n - 1 - (int)depth];
}

static void binary(struct values *s, uint8_t op)
{
	uint64_t b = pop(s), a = pop(s);
	int64_t sa = (int64_t)a, sb = (int64_t)b;

	switch (op) {
	case DW_OP_and: push(s, a & b); break;
	case DW_OP_or: push(s, a | b); break;
	case DW_OP_xor: push(s, a ^ b); break;
	case DW_OP_plus: push(s, a + b); break;
	case DW_OP_minus: push(s, a - b); break;
	case DW_OP_mul: push(s, a * b); break;
	case DW_OP_shl: push(s, b < 64 ? a << b : 0); break;
	case DW_OP_shr: push(s, b < 64 ? a >> b : 0); break;
	case DW_OP_shra: push(s, (uint64_t)(sa >> (b < 63 ? b : 63))); break;
	case DW_OP_eq: push(s, a == b); break;
	case DW_OP_ne: push(s, a != b); break;
	case DW_OP_ge: push(s, sa >= sb); break;
	case DW_OP_gt: push(s, sa > sb); break;
	case DW_OP_le: push(s, sa <= sb); break;
	case DW_OP_lt: push(s, sa < sb); break;
	case DW_OP_mod:
		if (!b)
			s->bad = true;
		else
			push(s, a % b);
		break;
	case DW_OP_div:
		if (!b || (sb == -1 && sa == INT64_MIN))
			s->bad = true;
		else
			push(s, (uint64_t)(sa / sb));
		break;
	default: s->bad = true;
	}
}

static void push_reg(struct walk *w, struct values *s, uint64_t reg, uint64_t offset)
{
	if (reg >= CFI_REGS || !(w->known >> reg & 1))
		s->bad = true;
	else
		push(s, w->r[reg] + offset);
}

/* Executes operations that are neither arithmetic on two values nor branches. */
static void simple(struct walk *w, struct values *s, const struct cfi_op *op, uint64_t cfa)
{
	uint64_t a, b, c;

	switch (op->op) {
	case DW_OP_const1u:
	case DW_OP_const1s:
	case DW_OP_const2u:
	case DW_OP_const2s:
	case DW_OP_const4u:
	case DW_OP_const4s:
	case DW_OP_const8u:
	case DW_OP_const8s:
	case DW_OP_constu:
	case DW_OP_consts: push(s, op->arg); break;
	case DW_OP_bregx: push_reg(w, s, op->arg, op->arg2); break;
	case DW_OP_call_frame_cfa: push(s, cfa); break;
	case DW_OP_deref:
		if (!read_word(w, pop(s), &a))
			s->bad = true;
		else
			push(s, a);
		break;
	case DW_OP_dup: push(s, peek(s, 0)); break;
	case DW_OP_drop: pop(s); break;
	case DW_OP_over: push(s, peek(s, 1)); break;
	case DW_OP_pick: push(s, peek(s, op->arg)); break;
	case DW_OP_swap:
		a = pop(s);
		b = pop(s);
		push(s, a);
		push(s, b);
		break;
	case DW_OP_rot:
		a = pop(s);
		b = pop(s);
		c = pop(s);
		push(s, a);
		push(s, c);
		push(s, b);
		break;
	case DW_OP_abs:
		a = pop(s);
		push(s, (int64_t)a < 0 ? 0 - a : a);
		break;
	case DW_OP_neg: push(s, 0 - pop(s)); break;
	case DW_OP_not: push(s, ~pop(s)); break;
	case DW_OP_plus_uconst: push(s, pop(s) + op->arg); break;
	case DW_OP_nop: break;
	default: binary(s, op->op);
	}
}

static bool evaluate(struct walk *w, const struct cfi_row *row, const struct cfi_rule *rule,
		     uint64_t cfa, uint64_t *out)
{
	const struct cfi_op *ops = &row->ops[rule->first];
	struct values s = { .n = 0 };
	int at = 0;

	for (int steps = 0; at < rule->nops && !s.bad; steps++) {
		const struct cfi_op *op = &ops[at++];

		if (steps == OPS_STEPS)
			return false;
		if (op->op >= DW_OP_lit0 && op->op <= DW_OP_lit31)
			push(&s, op->op - DW_OP_lit0);
		else if (op->op >= DW_OP_breg0 && op->op <= DW_OP_breg31)
			push_reg(w, &s, op->op - DW_OP_breg0, op->arg);
		else if (op->op == DW_OP_skip || (op->op == DW_OP_bra && pop(&s)))
			at = op->to;
		else if (op->op != DW_OP_bra)
			simple(w, &s, op, cfa);
	}
	*out = pop(&s);
	return !s.bad;
}

/* ---- one step ---- */

enum step {
	STEP_ON,     /* the caller is the current frame now */
	STEP_END,    /* this was the outermost one */
	STEP_BROKEN, /* it has a caller that cannot be found */
	STEP_NO_CFI,
};

/* Computes a register's value in the caller. */
static bool caller_reg(struct walk *w, const struct cfi_row *row, int reg, uint64_t cfa,
		       uint64_t *out)
{
	const struct cfi_rule *rule = &row->regs[reg];
	uint64_t addr;

	switch (rule->how) {
	case CFI_SAME: *out = w->r[reg]; return w->known >> reg & 1;
	case CFI_SAVED: return read_word(w, cfa + (uint64_t)rule->offset, out);
	case CFI_VALUE: *out = cfa + (uint64_t)rule->offset; return true;
	case CFI_REGISTER:
		*out = w->r[rule->reg] + (uint64_t)rule->offset;
		return w->known >> rule->reg & 1;
	case CFI_SAVED_EXPR: return evaluate(w, row, rule, cfa, &addr) && read_word(w, addr, out);
	case CFI_VALUE_EXPR: return evaluate(w, row, rule, cfa, out);
	default: return false;
	}
}

static enum step step_cfi(struct walk *w, const struct cfi_row *row, int depth)
{
	uint64_t cfa, next[CFI_REGS], known = 0;

	if (row->cfa.how == CFI_REGISTER) {
		if (!(w->known >> row->cfa.reg & 1))
			return STEP_BROKEN;
		cfa = w->r[row->cfa.reg] + (uint64_t)row->cfa.offset;
	} else if (!evaluate(w, row, &row->cfa, 0, &cfa)) {
		return STEP_BROKEN;
	}
	if (row->regs[row->ra].how == CFI_UNDEFINED)
		return STEP_END;
	/* A caller's frame is at a higher address; only a signal handler may run on another
	 * stack. */
	if (!row->signal && (cfa < w->r[CFI_SP] || (cfa == w->r[CFI_SP] && depth)))
		return STEP_BROKEN;
	for (int reg = 0; reg < CFI_REGS; reg++) {
		next[reg] = 0;
		if (reg == CFI_SP && row->regs[reg].how == CFI_SAME) {
			next[reg] = cfa;
			known |= 1ull << reg;
		} else if (caller_reg(w, row, reg, cfa, &next[reg])) {
			known |= 1ull << reg;
		}
	}
	if (!(known >> row->ra & 1) || !(known >> CFI_SP & 1))
		return STEP_BROKEN;
	w->ip = RETURN_ADDRESS(next[row->ra]);
	w->exact = row->signal;
	memcpy(w->r, next, sizeof(next));
	w->known = known;
	return STEP_ON;
}

#if defined(__x86_64__)
/* Whether the instruction before a return address is a call. It checks the possible encodings: e8,
 * and ff /2 with every form of operand, whose length follows from its ModRM and SIB bytes. If the
 * code cannot be read, the answer is yes. */
static bool after_call(struct walk *w, uint64_t ip)
{
	struct space_place p = space_find(w->space, w->target, ip - 1);
	uint8_t b[8]; /* b[8 - n] is n bytes before ip */

	if (p.kind == SPACE_OBJECT) {
		if (!object_read(p.object, p.address - 7, b, sizeof(b)))
			return false;
	} else if (p.kind != SPACE_CODE) {
		return false;
	} else if (!w->target || target_read(w->target, ip - 8, b, sizeof(b))) {
		return true;
	}
	if (b[3] == 0xe8)
		return true;
	for (int n = 2; n <= 7; n++) {
		uint8_t modrm = b[8 - n + 1], mod = modrm >> 6, rm = modrm & 7;
		int len = 2 + (mod == 1 ? 1 : mod == 2 ? 4 : 0);

		if (b[8 - n] != 0xff || (modrm >> 3 & 7) != 2)
			continue;
		if (mod != 3 && rm == 4) {
			uint8_t base = n > 2 ? b[8 - n + 2] & 7 : 0;

			len += 1 + (!mod && base == 5 ? 4 : 0);
		}
		if (!mod && rm == 5)
			len += 4;
		if (len == n)
			return true;
	}
	return false;
}
#else
static bool after_call(struct walk *w, uint64_t ip)
{
	struct space_place p = space_find(w->space, w->target, ip - 4);

	return p.kind == SPACE_OBJECT || p.kind == SPACE_CODE;
}
#endif

/* Whether ip is in a signal's frame. The kernel puts this frame below the interrupted one, and
 * makes the handler return into it. */
static bool is_signal(struct walk *w, uint64_t ip)
{
	struct space_place p = space_find(w->space, w->target, ip - 1);
	const struct cfi_row *row = p.kind == SPACE_OBJECT ? cfi_find(p.object, p.address) : NULL;

	return row && row->signal;
}

/* Finds the caller by the frame pointer, if no table describes the code: code made at run time, or
 * hand-written assembler. */
static enum step step_pointer(struct walk *w)
{
	uint64_t bp = w->r[CFI_BP], caller_bp, ip;

	if (!(w->known >> CFI_BP & 1) || bp < w->r[CFI_SP] || !read_word(w, bp, &caller_bp) ||
	    !read_word(w, bp + 8, &ip))
		return STEP_BROKEN;
	ip = RETURN_ADDRESS(ip);
	if (!ip)
		return STEP_END;
	if (!after_call(w, ip) && !is_signal(w, ip))
		return STEP_BROKEN;
	w->known = 1ull << CFI_BP | 1ull << CFI_SP;
	w->r[CFI_BP] = caller_bp;
	w->r[CFI_SP] = bp + 16;
	w->ip = ip;
	w->exact = false;
	return STEP_ON;
}

/* Whether a thread or program begins here. Needed for libraries whose tables do not mark these
 * functions as outermost. */
static bool is_beginning(struct walk *w, const struct space_place *p)
{
	static const char *const names[] = { "_start", "clone",	   "__clone",
					     "clone3", "__clone3", "_dl_start_user" };
	struct symbols_function f;

	if (p->kind != SPACE_OBJECT || !symbols_function(p->object, p->address, w->exact, &f))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (!strcmp(f.name, names[i]))
			return true;
	return false;
}

/* A word that does not point to code is not a frame. If the process is gone, not all of its
 * mappings may be known. */
static bool is_code(const struct walk *w, enum space_kind kind)
{
	return kind == SPACE_CODE || kind == SPACE_OBJECT ||
	       (kind == SPACE_NONE && !w->target && w->ip >= 4096 && !(w->ip >> 56));
}

static struct space_place place_of(struct walk *w)
{
	struct space_place p = space_find(w->space, w->target, w->ip - !w->exact);

	/* the linked address of ip itself */
	p.address += !w->exact;
	return p;
}

/* Replaces a return address that is still the trampoline's. On x86-64 its place was known, so this
 * does not happen there. */
static void repair(struct walk *w, int *used)
{
	if (w->nsaved <= *used || space_find(w->space, NULL, w->ip).kind != SPACE_UPROBES)
		return;
	while (*used < w->nsaved) {
		const struct ct_saved *s = &w->saved[w->nsaved - 1 - (*used)++];

		if (s->sp < w->sp_first)
			continue;
		w->ip = s->ip;
		return;
	}
}

static void get_regs(const struct walk *w, struct unwind_regs *out)
{
	*out = (struct unwind_regs){ .ip = w->ip, .sp = w->r[CFI_SP] };
	if (w->known >> CFI_BP & 1)
		out->bp = w->r[CFI_BP];
	for (int i = 0; i < NCALLEE_SAVED; i++)
		if (w->known >> callee_saved[i] & 1)
			out->regs[i] = w->r[callee_saved[i]];
}

static int walk(struct walk *w, struct unwind_frame *out, int max, uint32_t *flags)
{
	enum step step = STEP_ON;
	int n = 0, repaired = 0;

	while (n < max) {
		struct space_place p;
		const struct cfi_row *row;

		repair(w, &repaired);
		p = place_of(w);
		/* the kernel says that the first one is the caller */
		if (n && !is_code(w, p.kind)) {
			*flags |= CT_STACK_BROKEN;
			if (w->full)
				w->full[n].ip = w->ip;
			return n;
		}
		out[n++] = (struct unwind_frame){ .ip = w->ip, .exact = w->exact };
		if (w->full)
			get_regs(w, &w->full[n - 1]);
		if (w->full && n < max)
			w->full[n].ip = 0;
		row = p.kind == SPACE_OBJECT ? cfi_find(p.object, p.address - !w->exact) : NULL;
		/* the handler returns to the first byte of the signal's frame, and there is no call
		 * before it */
		if (row && row->signal)
			out[n - 1].exact = true;
		/* what describes the frame cannot be read now */
		if (!row && p.object && object_lent(p.object)) {
			*flags |= CT_STACK_BROKEN;
			return n;
		}
		step = row		     ? step_cfi(w, row, n - 1)
		       : is_beginning(w, &p) ? STEP_END
					     : step_pointer(w);
		if (step == STEP_END || (step == STEP_ON && !w->ip))
			return n;
		if (step != STEP_ON) {
			*flags |= w->beyond ? CT_STACK_CUT : CT_STACK_BROKEN;
			return n;
		}
	}
	*flags |= CT_STACK_CUT;
	return n;
}

/* ---- from outside ---- */

static void set_regs(struct walk *w, uint64_t ip, uint64_t sp, uint64_t bp, const uint64_t *regs,
		     bool all)
{
	w->ip = ip;
	w->sp_first = w->r[CFI_SP] = sp;
	w->known = 1ull << CFI_SP;
	if (!all)
		return;
	w->r[CFI_BP] = bp;
	w->known |= 1ull << CFI_BP;
	for (int i = 0; i < NCALLEE_SAVED; i++) {
		w->r[callee_saved[i]] = regs[i];
		w->known |= 1ull << callee_saved[i];
	}
}

/* Takes the addresses that the kernel has found by frame pointers. */
static int addresses(struct space *space, struct target *t, const struct ct_user_stack *us,
		     struct unwind_frame *out, int max, uint32_t *flags)
{
	struct walk w = { .space = space,
			  .target = t,
			  .saved = us->saved,
			  .nsaved = us->nsaved,
			  .sp_first = us->sp };
	int n = 0, repaired = 0;

	for (uint32_t i = 0; i < us->len / 8 && n < max; i++) {
		memcpy(&w.ip, us->bytes + 8 * i, 8);
		repair(&w, &repaired);
		/* after code without frame pointers, the next word may be something else */
		if (n && !is_code(&w, place_of(&w).kind)) {
			*flags |= w.ip ? CT_STACK_BROKEN : 0;
			return n;
		}
		out[n++] = (struct unwind_frame){ .ip = w.ip };
	}
	if (us->cut)
		*flags |= CT_STACK_CUT;
	return n;
}

int unwind_record(struct space *space, struct target *t, const struct ct_user_stack *us,
		  struct unwind_frame *out, int max, uint32_t *flags)
{
	struct walk w = { .space = space, .target = t, .saved = us->saved, .nsaved = us->nsaved };
	uint8_t window[WINDOW];

	*flags = 0;
	if (us->nsaved > CT_MAX_FRAMES || us->h.size < sizeof(*us) ||
	    us->len > us->h.size - sizeof(*us)) {
		*flags = CT_STACK_BROKEN;
		return 0;
	}
	if (us->how == CT_STACK_ADDRESSES)
		return addresses(space, t, us, out, max, flags);
	w.bytes = us->bytes;
	w.start = us->sp;
	w.len = us->len;
	w.cut = us->cut;
	w.live = us->how == CT_STACK_LIVE ? t : NULL;
	w.window = window;
	set_regs(&w, us->ip, us->sp, us->bp, (const uint64_t *)us->regs, true);
	return walk(&w, out, max, flags);
}

int unwind_thread(struct space *space, struct target *t, const struct unwind_regs *regs,
		  const void *copy, size_t len, const struct ct_saved *saved, int nsaved,
		  struct unwind_regs *out, int max, uint32_t *flags)
{
	struct walk w = {
		.space = space, .target = t, .live = t, .saved = saved, .nsaved = nsaved, .full = out
	};
	struct unwind_frame *frames = malloc((size_t)max * sizeof(*frames));
	uint8_t window[WINDOW];
	int n;

	*flags = 0;
	if (!frames)
		return 0;
	w.bytes = copy;
	w.start = regs->sp;
	w.len = len;
	w.window = window;
	set_regs(&w, regs->ip, regs->sp, regs->bp, regs->regs, true);
#if defined(__aarch64__)
	w.r[30] = regs->lr;
	w.known |= 1ull << 30;
#endif
	w.exact = regs->exact;
	n = walk(&w, frames, max, flags);
	for (int i = 0; i < n; i++)
		out[i].exact = frames[i].exact;
	free(frames);
	return n;
}
