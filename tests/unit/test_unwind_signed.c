/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_unwind_signed.c - the walk of aarch64, on any machine, through stacks whose return addresses
 * are signed: unwind.c is compiled here as it is on aarch64. Code and tables are this file's own.
 */
#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../user/util/msg.h"
#include "unit.h"

/* Only for the project's files: those of the system are included above. */
#ifndef __aarch64__
#define __aarch64__ 1
#endif
#undef __x86_64__
#define unwind_record signed_unwind_record
#define unwind_thread signed_unwind_thread
#define cfi_find signed_cfi_find
#define space_find signed_space_find
#define space_end signed_space_end
#define space_refresh signed_space_refresh
#define symbols_function signed_symbols_function
#define object_lent signed_object_lent
#define object_read signed_object_read
#include "../../user/resolve/stacks/unwind.c"

#define FUNCTIONS 0x400000ULL /* code with tables, then as much without */
#define NO_TABLES 0x500000ULL
#define CODE_END 0x600000ULL
#define TRAMPOLINE 0x700000ULL
#define STACK 0x7ffff000ULL
#define FRAME 32 /* bytes of each frame: x29 and x30, then two words */
#define SIGNED(address, n) ((address) | (0x2bULL + (n)) << 48 | 0x55ULL << 56)

static int the_object;

bool object_lent(const struct object *o)
{
	(void)o;
	return false;
}

/* What compilers describe for `stp x29, x30, [sp, -32]!`, and for the first function, as an outermost one. */
const struct cfi_row *cfi_find(struct object *o, uint64_t address)
{
	static struct cfi_row row, first;

	(void)o;
	row = (struct cfi_row){ .ra = 30,
				.cfa = { .how = CFI_REGISTER, .reg = 31, .offset = FRAME } };
	for (int i = 0; i < CFI_REGS; i++)
		row.regs[i].how = CFI_SAME;
	row.regs[29] = (struct cfi_rule){ .how = CFI_SAVED, .offset = -FRAME };
	row.regs[30] = (struct cfi_rule){ .how = CFI_SAVED, .offset = 8 - FRAME };
	first = row;
	first.regs[30].how = CFI_UNDEFINED;
	return address < FUNCTIONS + 0x100 ? &first : &row;
}

struct space_place space_find(struct space *s, struct target *t, uint64_t addr)
{
	struct space_place p = { .kind = SPACE_DATA };

	(void)s;
	(void)t;
	if (addr >= FUNCTIONS && addr < NO_TABLES)
		p = (struct space_place){ SPACE_OBJECT, (struct object *)&the_object, addr };
	else if (addr >= NO_TABLES && addr < CODE_END)
		p.kind = SPACE_CODE;
	else if (addr >= TRAMPOLINE && addr < TRAMPOLINE + 4096)
		p.kind = SPACE_UPROBES;
	return p;
}

uint64_t space_end(const struct space *s, uint64_t addr)
{
	(void)s;
	(void)addr;
	return 0;
}

int space_refresh(struct space *s, struct target *t)
{
	(void)s;
	(void)t;
	return 0;
}

bool symbols_function(struct object *o, uint64_t address, bool exact, struct symbols_function *f)
{
	(void)o;
	(void)address;
	(void)exact;
	(void)f;
	return false;
}

/* ---- a stack ---- */

#define DEPTH 5
static struct {
	struct ct_user_stack s;
	uint64_t words[DEPTH * FRAME / 8];
} record;
static struct unwind_frame frames[16];
static uint32_t flags;

/* DEPTH frames, whose return addresses lead to `code`, and the last one to the outermost function. */
static void make(uint64_t code, bool sign)
{
	memset(&record, 0, sizeof(record));
	record.s.h.size = sizeof(record);
	record.s.h.kind = CT_USER_STACK;
	record.s.sp = record.s.bp = STACK;
	record.s.ip = code;
	record.s.len = sizeof(record.words);
	for (uint64_t i = 0; i < DEPTH; i++) {
		uint64_t ra = i < DEPTH - 1 ? code + 0x1000 * (i + 1) : FUNCTIONS + 0x40;

		record.words[i * FRAME / 8] = STACK + (i + 1) * FRAME;
		record.words[i * FRAME / 8 + 1] = sign ? SIGNED(ra, i) : ra;
	}
}

static int unwind(void)
{
	return unwind_record(NULL, NULL, &record.s, frames, 16, &flags);
}

static void check_frames(int n, uint64_t code)
{
	CHECK_EQ(0, flags);
	if (!CHECK_EQ(DEPTH + 1, n))
		return;
	for (uint64_t i = 0; i < DEPTH; i++)
		CHECK_EQ((long long)(code + 0x1000 * i), (long long)frames[i].ip);
	CHECK_EQ((long long)FUNCTIONS + 0x40, (long long)frames[DEPTH].ip);
}

static void test_by_tables(void)
{
	make(FUNCTIONS + 0x200, false);
	check_frames(unwind(), FUNCTIONS + 0x200);
	make(FUNCTIONS + 0x200, true);
	check_frames(unwind(), FUNCTIONS + 0x200);
}

static void test_by_frame_pointers(void)
{
	make(NO_TABLES + 0x200, false);
	check_frames(unwind(), NO_TABLES + 0x200);
	make(NO_TABLES + 0x200, true);
	check_frames(unwind(), NO_TABLES + 0x200);
}

/* A function's probe replaces the return address before the function signs it. */
static void test_trampoline(void)
{
	make(FUNCTIONS + 0x200, true);
	record.s.nsaved = 1;
	record.s.saved[0] = (struct ct_saved){ STACK + 2 * FRAME, FUNCTIONS + 0x2200 };
	record.words[FRAME / 8 + 1] = SIGNED(TRAMPOLINE, 7);
	check_frames(unwind(), FUNCTIONS + 0x200);
}

/* The stack pointer of a pending call leads to no return address, but to what the caller has put there: here its caller's
 * frame pointer. */
static void test_word_at_stack_pointer(void)
{
	make(NO_TABLES + 0x200, true);
	record.s.nsaved = 1;
	record.s.saved[0] = (struct ct_saved){ STACK + 2 * FRAME, NO_TABLES + 0x2200 };
	check_frames(unwind(), NO_TABLES + 0x200);
}

/* A word whose lower bits are no code is no frame, whatever its upper bits are. */
static void test_no_code(void)
{
	make(FUNCTIONS + 0x200, true);
	record.words[2 * FRAME / 8 + 1] = SIGNED(CODE_END + 8, 1);
	CHECK_EQ(3, unwind());
	CHECK_EQ(CT_STACK_BROKEN, flags);
}

int main(void)
{
	RUN(test_by_tables);
	RUN(test_by_frame_pointers);
	RUN(test_trampoline);
	RUN(test_word_at_stack_pointer);
	RUN(test_no_code);
	return unit_end();
}
