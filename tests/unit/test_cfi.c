/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_cfi.c - call frame information as compilers write it, and as somebody may write it who wants harm: functions that
 * are assembled here, each with one rule, and the row that comes of it.
 */
#include "../../user/resolve/stacks/cfi.h"
#include "unit.h"

#include <dwarf.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define BEGIN 0x1000 /* where the functions begin */
#define EACH 64	     /* bytes of one, with what separates it from the next */
#define CODE 16	     /* bytes of its code */

#define NO_RULE -1 /* as `how`: the function has no row */
#define RBX 3
#define RBP 6
#define RSP 7
#define R12 12
#define RIP 16
#define CFA CFI_REGS /* as a register: the frame's own address */

/* What rows say of a register, where the function's row is the usual one else. */
struct row {
	const char *what, *directives;
	int reg, how;
	int64_t offset; /* or with CFI_REGISTER of a register: its number */
	int nops;
	struct cfi_op ops[5];
};

/* DW_CFA_expression and its like: the register, the length, the operations. */
#define ESCAPE(bytes) ".cfi_escape " bytes
#define CFA_IS(bytes) ESCAPE("0x0f, " bytes)
#define SAVED_AT(bytes) ESCAPE("0x10, 3, " bytes)
#define VALUE_IS(bytes) ESCAPE("0x16, 3, " bytes)

#if defined(__x86_64__)
static const struct row rows[] = {
	{ "the usual one", "", RIP, CFI_SAVED, -8, 0, { { 0 } } },
	{ "the caller's stack pointer", "", RSP, CFI_VALUE, 0, 0, { { 0 } } },
	{ "a register that callees save", "", RBX, CFI_SAME, 0, 0, { { 0 } } },
	{ "one that they do not save", "", 1, CFI_UNDEFINED, 0, 0, { { 0 } } },
	{ "the frame is there", ".cfi_def_cfa rsp, 264", CFA, CFI_REGISTER, 264, 0, { { 0 } } },
	{ "saved", ".cfi_offset rbx, -24", RBX, CFI_SAVED, -24, 0, { { 0 } } },
	{ "a value", ".cfi_val_offset rbx, -24", RBX, CFI_VALUE, -24, 0, { { 0 } } },
	{ "in another register", ".cfi_register rbx, r12", RBX, CFI_REGISTER, R12, 0, { { 0 } } },
	{ "in a register that does not exist", ".cfi_register 3, 17", RBX, NO_RULE, 0, 0, { { 0 } } },
	{ "in one that has a long number", ".cfi_register 3, 300", RBX, NO_RULE, 0, 0, { { 0 } } },
	{ "the outermost frame", ".cfi_undefined rip", RIP, CFI_UNDEFINED, 0, 0, { { 0 } } },
	{ "a frame by a register that does not exist",
	  ".cfi_def_cfa 17, 8",
	  CFA,
	  NO_RULE,
	  0,
	  0,
	  { { 0 } } },
	{ "a frame by a long number", ".cfi_def_cfa 300, 8", CFA, NO_RULE, 0, 0, { { 0 } } },
	{ "a frame by a short number", ".cfi_def_cfa 16, 8", CFA, CFI_REGISTER, 8, 0, { { 0 } } },
	{ "no such column", ".cfi_return_column 17", RIP, NO_RULE, 0, 0, { { 0 } } },
	/* expressions: breg7 8 is a rule without one */
	{ "a frame by an expression that is a register",
	  CFA_IS("2, 0x77, 8"),
	  CFA,
	  CFI_REGISTER,
	  8,
	  0,
	  { { 0 } } },
	{ "the same with a number of two bytes",
	  CFA_IS("3, 0x92, 7, 8"),
	  CFA,
	  CFI_REGISTER,
	  8,
	  0,
	  { { 0 } } },
	{ "the same of a register that does not exist",
	  CFA_IS("3, 0x92, 17, 8"),
	  CFA,
	  NO_RULE,
	  0,
	  0,
	  { { 0 } } },
	{ "a frame by what is in memory",
	  CFA_IS("3, 0x77, 8, 6"),
	  CFA,
	  CFI_VALUE_EXPR,
	  0,
	  2,
	  { { DW_OP_breg7, 8, 0, -1 }, { DW_OP_deref, 0, 0, -1 } } },
	{ "a frame by nothing", CFA_IS("0"), CFA, NO_RULE, 0, 0, { { 0 } } },
	{ "saved by no operation", SAVED_AT("0"), RBX, CFI_SAME, 0, 0, { { 0 } } },
	{ "a value by no operation", VALUE_IS("0"), RBX, CFI_SAME, 0, 0, { { 0 } } },
	/* an expression begins with the frame's address */
	{ "by one that says it is a value", SAVED_AT("1, 0x9f"), RBX, CFI_VALUE, 0, 0, { { 0 } } },
	{ "saved at an address",
	  SAVED_AT("2, 0x77, 16"),
	  RBX,
	  CFI_SAVED_EXPR,
	  0,
	  2,
	  { { DW_OP_call_frame_cfa, 0, 0, -1 }, { DW_OP_breg7, 16, 0, -1 } } },
	{ "saved at a distance", SAVED_AT("2, 0x23, 16"), RBX, CFI_SAVED, 16, 0, { { 0 } } },
	{ "a value by an expression",
	  VALUE_IS("2, 0x77, 16"),
	  RBX,
	  CFI_VALUE_EXPR,
	  0,
	  2,
	  { { DW_OP_call_frame_cfa, 0, 0, -1 }, { DW_OP_breg7, 16, 0, -1 } } },
	/* branches: cfa, lit0, bra, lit1, lit2 */
	{ "over one",
	  SAVED_AT("6, 0x30, 0x28, 1, 0, 0x31, 0x32"),
	  RBX,
	  CFI_SAVED_EXPR,
	  0,
	  5,
	  { { DW_OP_call_frame_cfa, 0, 0, -1 },
	    { DW_OP_lit0, 0, 0, -1 },
	    { DW_OP_bra, 1, 0, 4 },
	    { DW_OP_lit1, 0, 0, -1 },
	    { DW_OP_lit2, 0, 0, -1 } } },
	{ "to the end",
	  SAVED_AT("4, 0x30, 0x2f, 0, 0"),
	  RBX,
	  CFI_SAVED_EXPR,
	  0,
	  3,
	  { { DW_OP_call_frame_cfa, 0, 0, -1 },
	    { DW_OP_lit0, 0, 0, -1 },
	    { DW_OP_skip, 0, 0, 3 } } },
	{ "to itself",
	  SAVED_AT("4, 0x30, 0x2f, 0xfd, 0xff"),
	  RBX,
	  CFI_SAVED_EXPR,
	  0,
	  3,
	  { { DW_OP_call_frame_cfa, 0, 0, -1 },
	    { DW_OP_lit0, 0, 0, -1 },
	    { DW_OP_skip, (uint64_t)-3, 0, 2 } } },
	{ "into an operation", SAVED_AT("6, 0x2f, 1, 0, 8, 7, 0x30"), RBX, NO_RULE, 0, 0, { { 0 } } },
	{ "before the beginning",
	  SAVED_AT("4, 0x30, 0x2f, 0xf0, 0xff"),
	  RBX,
	  NO_RULE,
	  0,
	  0,
	  { { 0 } } },
	{ "far before the beginning",
	  SAVED_AT("4, 0x30, 0x2f, 0, 0x80"),
	  RBX,
	  NO_RULE,
	  0,
	  0,
	  { { 0 } } },
};
#endif

static char dir[] = "/tmp/test_cfi.XXXXXX";

/* A library with these functions, EACH bytes apart. Returns a descriptor. head: what the assembler is told first. */
static int library(const char *name, const char *head, const char *const *directives, size_t n)
{
	char path[64], command[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s.s", dir, name);
	f = fopen(path, "w");
	if (!CHECK(f))
		return -1;
	fprintf(f, ".section .note.GNU-stack\n.text\n%s\n", head);
	for (size_t i = 0; i < n; i++)
		fprintf(f, ".balign %d\n.cfi_startproc\n%s\n.fill %d, 1, 0x90\n.cfi_endproc\n",
			EACH, directives[i], CODE);
	fclose(f);
	snprintf(command, sizeof(command), "cc -g -shared -nostdlib -Wl,-Ttext=%#x -o %s.so %s",
		 BEGIN, path, path);
	CHECK(!system(command));
	snprintf(path, sizeof(path), "%s/%s.s.so", dir, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

#if defined(__x86_64__)
static void check_ops(const struct cfi_row *row, const struct cfi_rule *rule,
		      const struct row *want)
{
	if (!CHECK_EQ(want->nops, rule->nops) || !CHECK(rule->first + rule->nops <= row->nops))
		return;
	for (int i = 0; i < want->nops; i++) {
		const struct cfi_op *op = &row->ops[rule->first + i];

		CHECK_EQ(want->ops[i].op, op->op);
		CHECK_EQ(want->ops[i].arg, op->arg);
		CHECK_EQ(want->ops[i].arg2, op->arg2);
		CHECK_EQ(want->ops[i].to, op->to);
	}
}

static void check_row(const struct cfi_row *row, const struct row *want)
{
	const struct cfi_rule *rule;

	if (want->how == NO_RULE) {
		CHECK(!row);
		return;
	}
	if (!CHECK(row))
		return;
	CHECK(!row->signal);
	CHECK_EQ(RIP, row->ra);
	rule = want->reg == CFA ? &row->cfa : &row->regs[want->reg];
	CHECK_EQ(want->how, rule->how);
	if (want->how == CFI_REGISTER && want->reg != CFA) {
		CHECK_EQ(want->offset, rule->reg);
	} else if (want->how != CFI_SAVED_EXPR && want->how != CFI_VALUE_EXPR) {
		CHECK_EQ(want->offset, rule->offset);
	}
	check_ops(row, rule, want);
}

static void test_rows(void)
{
	const char *directives[ARRAY_LEN(rows)];
	struct objects *objects = objects_open();
	struct object *o;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		directives[i] = rows[i].directives;
	o = objects_file(objects, library("rows", "", directives, ARRAY_LEN(rows)), "rows");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint64_t at = BEGIN + i * EACH;
		const struct cfi_row *row;

		CASE_ROW("%s", rows[i].what);
		check_row(cfi_find(o, at), &rows[i]);
		/* the whole function, and nothing behind it */
		row = cfi_find(o, at + CODE - 1);
		check_row(row, &rows[i]);
		CHECK(cfi_find(o, at + CODE - 1) == row);
		CHECK(!cfi_find(o, at + CODE));
	}
	CASE_ROW("no function");
	CHECK(!cfi_find(o, BEGIN - 1));
	CHECK(!cfi_find(o, 0));
	CHECK(!cfi_find(o, UINT64_MAX));
	object_release(o);
	objects_close(objects);
}

static void repeat(char *text, size_t len, const char *what, int n)
{
	size_t at = strlen(text);

	for (int i = 0; i < n; i++)
		at += (size_t)snprintf(text + at, len - at, "%s", what);
}

/* A row has 64 operations at most, with the one that libdw puts before each expression; all of its registers together. */
static void test_many_operations(void)
{
	static const struct {
		int first, second; /* operations */
		bool known;
	} tried[] = { { 63, 0, true },
		      { 64, 0, false },
		      { 100, 0, false },
		      { 31, 31, true },
		      { 31, 32, false } };
	char texts[ARRAY_LEN(tried)][2048];
	const char *directives[ARRAY_LEN(tried)];
	struct objects *objects = objects_open();
	struct object *o;

	for (size_t i = 0; i < ARRAY_LEN(tried); i++) {
		snprintf(texts[i], sizeof(texts[i]), ".cfi_escape 0x10, 3, %d", tried[i].first);
		repeat(texts[i], sizeof(texts[i]), ", 0x96", tried[i].first);
		if (tried[i].second) {
			snprintf(texts[i] + strlen(texts[i]), 64, "\n.cfi_escape 0x16, 12, %d",
				 tried[i].second);
			repeat(texts[i], sizeof(texts[i]), ", 0x96", tried[i].second);
		}
		directives[i] = texts[i];
	}
	o = objects_file(objects, library("many", "", directives, ARRAY_LEN(tried)), "many");
	for (size_t i = 0; i < ARRAY_LEN(tried); i++) {
		const struct cfi_row *row = cfi_find(o, BEGIN + i * EACH);

		CASE_ROW("%d and %d", tried[i].first, tried[i].second);
		CHECK_EQ(tried[i].known, row != NULL);
		if (!row)
			continue;
		CHECK_EQ(tried[i].first + 1, row->regs[RBX].nops);
		CHECK_EQ(tried[i].second ? tried[i].second + 1 : 0, row->regs[R12].nops);
		CHECK_EQ(row->regs[RBX].nops + row->regs[R12].nops, row->nops);
		CHECK_EQ(tried[i].second ? row->regs[RBX].nops : 0, row->regs[R12].first);
	}
	object_release(o);
	objects_close(objects);
}
#endif

static void test_signal(void)
{
	static const char *const directives[] = { "", ".cfi_signal_frame" };
	struct objects *objects = objects_open();
	struct object *o = objects_file(objects, library("signal", "", directives, 2), "signal");
	const struct cfi_row *row = cfi_find(o, BEGIN);

	if (CHECK(row))
		CHECK(!row->signal);
	row = cfi_find(o, BEGIN + EACH);
	if (CHECK(row))
		CHECK(row->signal);
	object_release(o);
	objects_close(objects);
}

/* Call frame information that only debuggers have is read where programs have none, and not more of it. */
static void test_debug_frame(void)
{
	static const char *const directives[] = { "", ".cfi_undefined 16" };
	struct objects *objects = objects_open();
	int fd = library("debug", ".cfi_sections .debug_frame", directives, 2);
	struct object *o = objects_file(objects, fd, "debug");
	const struct cfi_row *row;

	row = cfi_find(o, BEGIN);
	CHECK(row && row->cfa.how == CFI_REGISTER);
	row = cfi_find(o, BEGIN + EACH + 1);
#if defined(__x86_64__)
	CHECK(row && row->regs[RIP].how == CFI_UNDEFINED);
#endif
	CHECK(!cfi_find(o, BEGIN + CODE));
	object_release(o);
	objects_close(objects);
}

/* More rows than are kept: the first ones are asked for again, and are the same. */
static void test_many_rows(void)
{
	static const char *const directives[] = { ".fill 20000, 1, 0x90" };
	struct objects *objects = objects_open();
	struct object *o = objects_file(objects, library("long", "", directives, 1), "long");
	int none = 0;

	for (uint64_t at = 0; at < 20000; at++)
		none += !cfi_find(o, BEGIN + at);
	CHECK_EQ(0, none);
	CHECK(cfi_find(o, BEGIN) && cfi_find(o, BEGIN + 20000 + CODE - 1));
	CHECK(!cfi_find(o, BEGIN + 20000 + CODE));
	object_release(o);
	objects_close(objects);
}

/* ---- where functions begin ---- */

/* The library in memory, and where in it the index of .eh_frame is. */
static uint8_t *load(int fd, size_t *len, size_t *index)
{
	struct stat st;
	uint8_t *bytes;
	const Elf64_Phdr *ph;

	if (fstat(fd, &st))
		abort();
	*len = (size_t)st.st_size;
	bytes = malloc(*len);
	if (!bytes || pread(fd, bytes, *len, 0) != (ssize_t)*len)
		abort();
	close(fd);
	ph = (const Elf64_Phdr *)(bytes + ((const Elf64_Ehdr *)bytes)->e_phoff);
	while (ph->p_type != PT_GNU_EH_FRAME)
		ph++;
	*index = ph->p_offset;
	return bytes;
}

static uint64_t begin_of(const uint8_t *bytes, size_t len, uint64_t address)
{
	struct objects *objects = objects_open();
	int fd = memfd_create("index", MFD_CLOEXEC);
	uint64_t begin = 0;
	struct object *o;

	if (fd < 0 || write(fd, bytes, len) != (ssize_t)len)
		abort();
	o = objects_file(objects, fd, "index");
	if (!cfi_begin(o, address, &begin))
		begin = 0;
	object_release(o);
	objects_close(objects);
	return begin;
}

static void test_begins(void)
{
	static const char *const directives[] = { "", "", "" };
	size_t len, index;
	uint8_t *bytes = load(library("begins", "", directives, 3), &len, &index);

	for (uint64_t i = 0; i < 3; i++) {
		uint64_t begin = BEGIN + i * EACH;

		CASE_ROW("function %d", (int)i);
		CHECK_EQ(begin, begin_of(bytes, len, begin));
		CHECK_EQ(begin, begin_of(bytes, len, begin + 1));
		CHECK_EQ(begin, begin_of(bytes, len, begin + CODE - 1));
		CHECK_EQ(0, begin_of(bytes, len, begin + CODE));
		CHECK_EQ(0, begin_of(bytes, len, begin - 1));
	}
	free(bytes);
}

/* An index that is damaged says nothing; .eh_frame itself still has the row. */
static void test_begins_hostile(void)
{
	static const char *const directives[] = { "", "", "" };
	static const struct {
		const char *what;
		size_t at;
		uint32_t value;
		uint64_t begin; /* of what is asked for, which is in the second function */
	} tried[] = {
		{ "version and forms", 0, 0x3b031b02, 0 },
		{ "another form of the numbers", 0, 0x3b041b01, 0 },
		{ "another form of the addresses", 0, 0x3c031b01, 0 },
		{ "no table", 0, 0xff031b01, 0 },
		{ "no rows", 8, 0, 0 },
		{ "one row", 8, 1, 0 },
		{ "as many rows as there is room for", 8, 3, BEGIN + EACH },
		{ "one more", 8, 4, 0 },
		{ "too many rows", 8, UINT32_MAX, 0 },
		/* what is not sorted is another function, never an address beyond the one that is asked for */
		{ "the first behind it", 12, 0x7fffffff, BEGIN + EACH },
		{ "the second behind it", 20, 0x7fffffff, 0 },
	};
	size_t len, index;
	uint8_t *good = load(library("hostile", "", directives, 3), &len, &index);

	for (size_t i = 0; i < ARRAY_LEN(tried); i++) {
		uint8_t *bad = malloc(len);

		CASE_ROW("%s", tried[i].what);
		memcpy(bad, good, len);
		memcpy(bad + index + tried[i].at, &tried[i].value, 4);
		CHECK_EQ(tried[i].begin, begin_of(bad, len, BEGIN + EACH + 3));
		free(bad);
	}
	/* an index that is cut, or lies elsewhere */
	for (int i = 0; i < 4; i++) {
		static const uint64_t sizes[] = { 0, 11, 12, 35 };
		uint8_t *bad = malloc(len);
		Elf64_Phdr *ph;

		CASE_ROW("%d bytes", (int)sizes[i]);
		memcpy(bad, good, len);
		ph = (Elf64_Phdr *)(bad + ((Elf64_Ehdr *)bad)->e_phoff);
		while (ph->p_type != PT_GNU_EH_FRAME)
			ph++;
		ph->p_filesz = sizes[i];
		CHECK_EQ(0, begin_of(bad, len, BEGIN + EACH + 3));
		ph->p_filesz = 36;
		ph->p_offset = len - 35;
		CHECK_EQ(0, begin_of(bad, len, BEGIN + EACH + 3));
		ph->p_offset = UINT64_MAX - 8;
		CHECK_EQ(0, begin_of(bad, len, BEGIN + EACH + 3));
		free(bad);
	}
	free(good);
}

int main(void)
{
	char command[64];

	if (!mkdtemp(dir))
		abort();
	objects_in_place = true;
#if defined(__x86_64__)
	RUN(test_rows);
	RUN(test_many_operations);
#endif
	RUN(test_signal);
	RUN(test_debug_frame);
	RUN(test_many_rows);
	RUN(test_begins);
	RUN(test_begins_hostile);
	cfi_close(NULL);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	CHECK(!system(command));
	return unit_end();
}
