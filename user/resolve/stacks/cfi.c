/* SPDX-License-Identifier: BSD-2-Clause */
/* cfi.c - see cfi.h. */
#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "../../util/hash.h"
#include "cfi.h"

#define FIRST_BUCKETS 64 /* a power of two */
#define ROWS_MAX 16384	 /* rows of one object; if there are more, all are dropped */
#define OPS_MAX 64	 /* operations of a row's expressions */
#define X86_RBX 3

struct bucket {
	uint64_t address;
	struct cfi_row *row; /* NULL with used: there is no row */
	bool used;
};

struct cfi_rows {
	struct bucket *buckets;
	uint32_t nbuckets, used;
	bool looked;
	Dwarf_CFI *eh, *debug;
	Dwarf_Addr eh_bias, debug_bias;
};

static void free_row(struct cfi_row *row)
{
	if (row)
		free(row->ops);
	free(row);
}

static void forget(struct cfi_rows *r)
{
	for (uint32_t i = 0; i < r->nbuckets; i++)
		free_row(r->buckets[i].row);
	free(r->buckets);
	r->buckets = NULL;
	r->nbuckets = r->used = 0;
}

void cfi_close(struct cfi_rows *r)
{
	if (!r)
		return;
	forget(r);
	free(r);
}

/* ---- from libdw's form to rows ---- */

/* Branches refer to bytes of the encoded expression: finds the operation at that place. */
static int branch_to(const Dwarf_Op *ops, size_t n, size_t at)
{
	/* number is the signed 16-bit distance from the end of the operation, which is 3 bytes long */
	int64_t want = (int64_t)ops[at].offset + 3 + (int16_t)ops[at].number;

	for (size_t i = 0; i < n; i++)
		if ((int64_t)ops[i].offset == want && ops[i].atom != DW_OP_call_frame_cfa)
			return (int)i;
	/* the end of the expression */
	return want > (int64_t)ops[n - 1].offset ? (int)n : -1;
}

/* Appends an expression to those that the row has. */
static bool keep_ops(struct cfi_row *row, struct cfi_rule *rule, const Dwarf_Op *ops, size_t n)
{
	struct cfi_op *more;

	if (!n || n + row->nops > OPS_MAX)
		return false;
	more = realloc(row->ops, (row->nops + n) * sizeof(*more));
	if (!more)
		return false;
	row->ops = more;
	rule->first = row->nops;
	rule->nops = (uint16_t)n;
	for (size_t i = 0; i < n; i++) {
		struct cfi_op *op = &row->ops[row->nops + i];

		*op = (struct cfi_op){
			.op = ops[i].atom, .arg = ops[i].number, .arg2 = ops[i].number2, .to = -1
		};
		if (op->op != DW_OP_skip && op->op != DW_OP_bra)
			continue;
		op->to = branch_to(ops, n, i);
		if (op->to < 0)
			return false;
	}
	row->nops = (uint16_t)(row->nops + n);
	return true;
}

static bool cfa_rule(struct cfi_row *row, const Dwarf_Op *ops, size_t n)
{
	struct cfi_rule *rule = &row->cfa;
	bool breg = n == 1 && ops->atom >= DW_OP_breg0 && ops->atom <= DW_OP_breg31;

	if (breg || (n == 1 && ops->atom == DW_OP_bregx)) {
		uint64_t reg = breg ? (uint64_t)(ops->atom - DW_OP_breg0) : ops->number;

		rule->how = CFI_REGISTER;
		rule->reg = (uint8_t)reg;
		rule->offset = (int64_t)(breg ? ops->number : ops->number2);
		return reg < CFI_REGS;
	}
	rule->how = CFI_VALUE_EXPR;
	return keep_ops(row, rule, ops, n);
}

static bool reg_rule(struct cfi_row *row, struct cfi_rule *rule, const Dwarf_Op *ops, size_t n,
		     const Dwarf_Op *mem)
{
	bool value = n && ops[n - 1].atom == DW_OP_stack_value;
	size_t len = n - value;

	if (!n) {
		rule->how = ops == mem ? CFI_UNDEFINED : CFI_SAME;
		return true;
	}
	if (n == 1 &&
	    ((ops->atom >= DW_OP_reg0 && ops->atom <= DW_OP_reg31) || ops->atom == DW_OP_regx)) {
		uint64_t reg = ops->atom == DW_OP_regx ? ops->number
						       : (uint64_t)(ops->atom - DW_OP_reg0);

		rule->how = CFI_REGISTER;
		rule->reg = (uint8_t)reg;
		return reg < CFI_REGS;
	}
	if (len && ops[0].atom == DW_OP_call_frame_cfa &&
	    (len == 1 || (len == 2 && ops[1].atom == DW_OP_plus_uconst))) {
		rule->how = value ? CFI_VALUE : CFI_SAVED;
		rule->offset = len == 2 ? (int64_t)ops[1].number : 0;
		return true;
	}
	rule->how = value ? CFI_VALUE_EXPR : CFI_SAVED_EXPR;
	return keep_ops(row, rule, ops, len);
}

static struct cfi_row *row_of(Dwarf_Frame *frame)
{
	struct cfi_row *row = calloc(1, sizeof(*row));
	Dwarf_Op mem[3], *ops;
	size_t n;
	int ra;

	if (!row)
		return NULL;
	ra = dwarf_frame_info(frame, NULL, NULL, &row->signal);
	if (ra < 0 || ra >= CFI_REGS || dwarf_frame_cfa(frame, &ops, &n) || !cfa_rule(row, ops, n))
		goto bad;
	row->ra = (uint8_t)ra;
	for (int reg = 0; reg < CFI_REGS; reg++)
		if (dwarf_frame_register(frame, reg, mem, &ops, &n))
			row->regs[reg].how = CFI_UNDEFINED;
		else if (!reg_rule(row, &row->regs[reg], ops, n, mem))
			goto bad;
#if defined(__x86_64__)
	/* Callees save rbx. libdw (0.188) has the number of rax in its place in the list of such registers, and says that
	 * rbx is lost where a function does not mention it. */
	if (row->regs[X86_RBX].how == CFI_UNDEFINED)
		row->regs[X86_RBX].how = CFI_SAME;
#endif
	return row;
bad:
	free_row(row);
	return NULL;
}

static struct cfi_row *ask(Dwarf_CFI *cfi, uint64_t address)
{
	Dwarf_Frame *frame = NULL;
	struct cfi_row *row;

	if (!cfi || dwarf_cfi_addrframe(cfi, address, &frame))
		return NULL;
	row = row_of(frame);
	free(frame);
	return row;
}

/* ---- the rows that are known ---- */

static struct bucket *bucket_of(struct bucket *buckets, uint32_t nbuckets, uint64_t address)
{
	uint32_t i = (uint32_t)hash_number(address) & (nbuckets - 1);

	while (buckets[i].used && buckets[i].address != address)
		i = (i + 1) & (nbuckets - 1);
	return &buckets[i];
}

static bool make_room(struct cfi_rows *r)
{
	uint32_t nbuckets = r->nbuckets ? 2 * r->nbuckets : FIRST_BUCKETS;
	struct bucket *buckets;

	if (r->used >= ROWS_MAX) {
		forget(r);
		nbuckets = FIRST_BUCKETS;
	}
	if (r->nbuckets && r->used < r->nbuckets / 2)
		return true;
	buckets = calloc(nbuckets, sizeof(*buckets));
	if (!buckets)
		return false;
	for (uint32_t i = 0; i < r->nbuckets; i++)
		if (r->buckets[i].used)
			*bucket_of(buckets, nbuckets, r->buckets[i].address) = r->buckets[i];
	free(r->buckets);
	r->buckets = buckets;
	r->nbuckets = nbuckets;
	return true;
}

static void look(struct cfi_rows *r, Dwfl_Module *mod)
{
	r->looked = true;
	if (mod)
		r->eh = dwfl_module_eh_cfi(mod, &r->eh_bias);
}

struct question {
	uint64_t address, begin; /* begin 0: not known */
};

/* Asks libdw, and keeps the answer. */
static void cfi_look_up(struct object *o, void *args)
{
	const struct question *q = args;
	struct cfi_rows **home = object_rows(o), *r = *home;
	Dwfl_Module *mod = object_module(o);
	struct cfi_row *row;
	struct bucket *bucket;

	if (!r)
		r = *home = calloc(1, sizeof(*r));
	if (!r || !make_room(r))
		return;
	if (!r->looked)
		look(r, mod);
	row = ask(r->eh, q->address - r->eh_bias);
	/* .debug_frame is used only if .eh_frame has nothing, because it makes libdwfl search for
	 * separate debug files */
	if (!row && mod && object_has_dwarf(o)) {
		if (!r->debug)
			r->debug = dwfl_module_dwarf_cfi(mod, &r->debug_bias);
		row = ask(r->debug, q->address - r->debug_bias);
	}
	bucket = bucket_of(r->buckets, r->nbuckets, q->address);
	*bucket = (struct bucket){ .address = q->address, .row = row, .used = true };
	r->used++;
}

static const struct bucket *kept(struct object *o, uint64_t address)
{
	const struct cfi_rows *r = *object_rows(o);
	const struct bucket *bucket = r && r->nbuckets ? bucket_of(r->buckets, r->nbuckets, address)
						       : NULL;

	return bucket && bucket->used ? bucket : NULL;
}

const struct cfi_row *cfi_find(struct object *o, uint64_t address)
{
	struct question q = { .address = address };
	const struct bucket *bucket = object_lent(o) ? NULL : kept(o, address);

	if (!bucket && object_do(o, cfi_look_up, &q, sizeof(q)))
		bucket = kept(o, address);
	return bucket ? bucket->row : NULL;
}

/* ---- where functions begin ---- */

/* The head of the index, and one of its rows, in the only encoding that linkers write: version 1, numbers of 4 bytes,
 * addresses as distances from the index's own, sorted. */
#define INDEX_HEAD "\x01\x1b\x03\x3b"
#define INDEX_FIRST 12 /* behind the head: 4 bytes that lead to .eh_frame, the number of rows */
#define INDEX_ROW 8

static int32_t number_at(const uint8_t *bytes)
{
	int32_t n;

	memcpy(&n, bytes, sizeof(n));
	return n;
}

/* The last row that begins at the address or before it. It is the one that describes the address, if any does. */
static uint64_t begin_in(const uint8_t *index, size_t size, uint64_t index_address,
			 uint64_t address)
{
	size_t lo = 0, hi;

	if (size < INDEX_FIRST || memcmp(index, INDEX_HEAD, 4))
		return 0;
	hi = (uint32_t)number_at(index + 8);
	if (hi > (size - INDEX_FIRST) / INDEX_ROW)
		return 0;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const uint8_t *row = index + INDEX_FIRST + mid * INDEX_ROW;

		if (index_address + (uint64_t)(int64_t)number_at(row) <= address)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo)
		return 0;
	return index_address +
	       (uint64_t)(int64_t)number_at(index + INDEX_FIRST + (lo - 1) * INDEX_ROW);
}

static void find_begin(struct object *o, void *args)
{
	Dwfl_Module *mod = object_module(o);
	struct question *q = args;
	GElf_Addr bias;
	Elf *elf = mod ? dwfl_module_getelf(mod, &bias) : NULL;
	size_t n = 0;

	if (!elf || elf_getphdrnum(elf, &n))
		return;
	for (size_t i = 0; i < n && i < INT_MAX; i++) {
		GElf_Phdr ph;
		Elf_Data *d;

		if (!gelf_getphdr(elf, (int)i, &ph) || ph.p_type != PT_GNU_EH_FRAME)
			continue;
		d = elf_getdata_rawchunk(elf, (int64_t)ph.p_offset, ph.p_filesz, ELF_T_BYTE);
		if (d && d->d_buf)
			q->begin = begin_in(d->d_buf, d->d_size, ph.p_vaddr, q->address);
		return;
	}
}

bool cfi_begin(struct object *o, uint64_t address, uint64_t *begin)
{
	struct question q = { .address = address };

	if (!cfi_find(o, address))
		return false;
	object_do(o, find_begin, &q, sizeof(q));
	*begin = q.begin;
	return q.begin;
}
