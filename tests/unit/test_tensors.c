/* SPDX-License-Identifier: BSD-2-Clause */
/* test_tensors.c - where tensors are among an operator's arguments, and the texts of their shapes. */
#include "../../user/event/scopes/shapes.h"
#include "../../user/source/symbols/tensors.h"
#include "unit.h"

#include <fcntl.h>
#include <unistd.h>

/* The names of functions in namespaces, of their symbols. */
static void test_names(void)
{
	static const struct {
		const char *symbol, *name;
	} rows[] = {
		{ "_ZN2at4_ops2mm4callERKNS_6TensorES4_", "at::_ops::mm::call" },
		{ "_ZN2atL2mmEv", "at::mm" }, /* of one file */
		{ "_Z2mmv", "" },
		{ "_ZN2at2mm", "" },
		{ "_ZN2at9mmEv", "" },
		{ "_ZN2at0Ev", "" },
		{ "_ZN2at99999999999999999999mmEv", "" },
		{ "_ZN2at2mmEv.cold", "" },
		{ "_ZNK2at2mmEv", "" },
		{ "_ZN", "" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		size_t len = strlen(rows[i].name);
		char some[32];

		CASE_ROW("%s", rows[i].symbol);
		CHECK_EQ(len, symbol_name(rows[i].symbol, some, sizeof(some)));
		/* where it just fits, and in one byte less */
		for (size_t room = len; len && room <= len + 1; room++) {
			char *name = malloc(room);

			if (!name)
				abort();
			CHECK_EQ(room > len ? len : 0, symbol_name(rows[i].symbol, name, room));
			if (room > len)
				CHECK_TEXT(rows[i].name, name);
			free(name);
		}
	}
}

/* What a schema says, of a text with the NUL that ends it. */
#define SCHEMA(text) tensors_schema(strchr(text, '('), strlen(strchr(text, '(')) + 1)

static void test_schemas(void)
{
	static const struct {
		const char *text;
		int args;    /* -1: nothing is known */
		bool memory; /* the first register has the place of the result */
	} rows[] = {
		{ "mm(Tensor self, Tensor mat2) -> Tensor", 2, true },
		{ "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) "
		  "-> Tensor",
		  5, true },
		{ "add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)", 3,
		  false },
		{ "view(Tensor(a) self, SymInt[] size) -> Tensor(a)", 2, true },
		{ "chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]", 3, true },
		{ "equal(Tensor self, Tensor other) -> bool", 2, false },
		{ "max.dim_max(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) max, "
		  "Tensor(b!) max_values) -> (Tensor(a!) values, Tensor(b!) indices)",
		  5, true },
		{ "_fused(Tensor(a!)[] self, float lr) -> ()", 2, false },
		{ "conv(Tensor x, int[2] stride=[1, 1], str pad='(,)') -> Tensor", 3, true },
		{ "none() -> Tensor", 0, true },
		{ "_local_scalar_dense(Tensor self) -> Scalar", 1, true },
		/* how these come back is not known */
		{ "result_type(Tensor self) -> ScalarType", -1, false },
		{ "mm(self, other): the shapes differ", -1, false },
		{ "mm(Tensor self, Tensor mat2 -> Tensor", -1, false },
		{ "mm(Tensor self) ->", -1, false },
		{ "mm( -> Tensor", -1, false }, /* its arguments have no end */
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint32_t said = SCHEMA(rows[i].text);

		CASE_ROW("row %zu", i);
		if (rows[i].args < 0) {
			CHECK_EQ(0, said);
			continue;
		}
		CHECK_EQ((unsigned)rows[i].args, TENSORS_SCHEMA_ARGS(said));
		CHECK_EQ(rows[i].memory, (said & 0x200) != 0);
	}
	/* a text that is cut says nothing */
	CHECK_EQ(0, tensors_schema("(Tensor self) -> Tensor", 23));
}

static void test_plans(void)
{
	static const struct tensors_layout layout = { .plan = CT_TENSORS_LAYOUT(7, 6, 8),
						      .undefined = 47 };
	static const struct {
		const char *symbol, *schema, *codes;
		uint32_t regs; /* two bits for each */
	} rows[] = {
		{ "_ZN2at4_ops2mm4callERKNS_6TensorES4_", "mm(Tensor self, Tensor mat2) -> Tensor",
		  "TT", 0x14 },
		{ "_ZN2at4_ops5addmm4callERKNS_6TensorES4_S4_RKN3c106ScalarES8_",
		  "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) "
		  "-> Tensor",
		  "TTTss", 0x54 },
		{ "_ZN2at4_ops11add__Tensor4callERNS_6TensorERKS2_RKN3c106ScalarE",
		  "add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
		  "TTs", 0x05 },
		/* a list takes two registers, a double none of these */
		{ "_ZN2at4_ops10shapes_all4callERKNS_6TensorERKSt8optionalIS2_EN3c108ArrayRefIS2_"
		  "EEdbS4_",
		  "shapes.all(Tensor self, Tensor? weight, Tensor[] list, float eps, *, bool flag, "
		  "Tensor last) -> Tensor",
		  "TOLss?", 0xe4 },
		/* other than the schema has, or of a type that is not known */
		{ "_ZN2at4_ops2mm4callERKNS_6TensorES4_", "mm(Tensor self) -> Tensor", "", 0 },
		{ "_ZN2at4_ops2mm4callERKNS_6TensorENS_5OtherE",
		  "mm(Tensor self, Other o) -> Tensor", "", 0 },
		{ "not_mangled", "mm(Tensor self) -> Tensor", "", 0 },
	};
	struct symbol_args args;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CASE_ROW("row %zu", i);
		tensors_plan(&layout, rows[i].symbol, SCHEMA(rows[i].schema), &args);
		CHECK_TEXT(rows[i].codes, args.codes);
		CHECK_EQ(rows[i].regs, args.plan & 0xfff);
		CHECK_EQ(rows[i].regs ? 7u : 0, CT_TENSORS_RANK_WORD(args.plan));
	}
	/* without a layout nothing is read */
	tensors_plan(&(struct tensors_layout){ 0 }, rows[0].symbol, SCHEMA(rows[0].schema), &args);
	CHECK_EQ(0, args.plan);
}

/* A call's record, with words behind that of its name. */
static void text_of(const struct symbol_args *args, const uint64_t *words, size_t n, char text[64])
{
	struct {
		struct ct_call c;
		uint64_t words[16];
	} r = { .c = { .nwords = 1 } };

	r.words[0] = symbol_number("aten::shapes_of_test", args);
	for (size_t i = 0; i < n; i++)
		r.words[i + 1] = words[i];
	r.c.h.size = (uint16_t)(sizeof(r.c) + (n + 2) * 8);
	shapes_of(&r.c, text, 64);
}

static void test_texts(void)
{
	struct symbol_args args = { .plan = 1, .undefined = 47, .codes = "TOs" };
	const uint64_t good[] = { 2 | 6 << 8, 4, 3, CT_TENSOR_NONE };
	const uint64_t undefined[] = { 1 | 47 << 8, 0, 0 | 15 << 8 };
	const uint64_t wrong[] = { CT_TENSOR_UNKNOWN, 5 | 6 << 8, 1, 2 };
	const uint64_t large[] = { 5 | 6 << 8, ~0ULL, ~0ULL, ~0ULL, ~0ULL, ~0ULL, CT_TENSOR_NONE };
	char text[64];

	text_of(&args, good, ARRAY_LEN(good), text);
	CHECK_TEXT("float32[4, 3], none, scalar", text);
	text_of(&args, undefined, ARRAY_LEN(undefined), text);
	CHECK_TEXT("none, bfloat16[], scalar", text);
	/* fewer words than they should be */
	text_of(&args, wrong, ARRAY_LEN(wrong), text);
	CHECK_TEXT("", text);
	text_of(&args, good, 0, text);
	CHECK_TEXT("", text);
	/* what does not fit */
	text_of(&args, large, ARRAY_LEN(large), text);
	CHECK_TEXT("...", text);
}

static void test_read_again(void)
{
	static const char good[] = "float32[4, 3], none, tensors[2], scalar, ?[], odd, bool[]";
	static const struct {
		int rank;
		const char *type;
	} want[] = { { 2, "float" }, { -1, "" }, { -1, "TensorList" }, { -1, "Scalar" },
		     { 0, "" },	     { -1, "" }, { 0, "bool" } };
	static const char *const bad[] = { "",		"...",	      "float32[",
					   "float32[1", "float32[x]", "float32[1, 2, 3, 4, 5, 6]",
					   "[1]" };
	const char *at = good, *end = good + strlen(good);
	struct shape s;

	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		CASE_ROW("word %zu", i);
		CHECK(shapes_next(&at, end, &s));
		CHECK_EQ(want[i].rank, s.rank);
		CHECK_TEXT(want[i].type, s.type);
	}
	CHECK(!shapes_next(&at, end, &s));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		at = bad[i];
		CASE_ROW("bad %zu", i);
		CHECK(!shapes_next(&at, at + strlen(at), &s));
	}
}

#if defined(__x86_64__)
/* What the functions say from whose code the layout is read: sizes at 0x48, their number at 0xa8, the type at 0xb0, and that
 * bits of the byte at 0xb5 are for tensors with functions of their own. */
#define SHIFTED "movzbl 0xb5(%rdi), %eax; shr $3, %al; and $3, %eax; cmp $1, %al; "
#define TESTED "testb $0x10, 0xb5(%rdi); "
#define DIM "mov 0x48(%rdi), %rax; ret"
#define NUMEL "mov 0xa8(%rdi), %rax; ret"
#define DTYPE "movzwl 0xb0(%rdi), %eax; cmp $47, %ax; ret"

/* The layout that a library says which has these functions. */
static struct tensors_layout layout_of(const char *dir, const char *dim, const char *numel,
				       const char *dtype)
{
	static const char text[] =
		"for f in 'dim:%s' 'numel:%s' 'dtype:%s'; do\n"
		"n=aoti_torch_get_${f%%%%:*}; printf '.globl %%s\\n.type "
		"%%s,@function\\n%%s:\\n%%s\\n.size %%s, . - %%s\\n' $n $n $n \"${f#*:}\" $n "
		"$n\ndone > %s/code.s\n"
		"cc -shared -nostdlib -Wl,-z,noexecstack -o %s/library %s/code.s";
	struct tensors_layout layout = { .plan = 77 };
	char command[2048], path[64];
	struct elf_file f;
	int fd;

	snprintf(command, sizeof(command), text, dim, numel, dtype, dir, dir, dir);
	CHECK(!system(command));
	snprintf(path, sizeof(path), "%s/library", dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(!elf_file_open(&f, fd));
	CHECK_EQ(0, tensors_layout(&f, &layout));
	elf_file_close(&f);
	close(fd);
	return layout;
}

static void test_layouts(void)
{
	static const struct {
		const char *what, *dim, *numel, *dtype;
		bool known;
	} rows[] = {
		{ "two bits", SHIFTED DIM, SHIFTED NUMEL, DTYPE, true },
		{ "one bit", TESTED DIM, TESTED NUMEL, DTYPE, true },
		{ "in two ways", TESTED DIM, SHIFTED NUMEL, DTYPE, true },
		{ "the type compared otherwise", TESTED DIM, TESTED NUMEL,
		  "movzwl 0xb0(%rdi), %eax; cmp $47, %eax; ret", true },
		/* its offset is none of the tensor's */
		{ "something on the stack", "mov 8(%rsp), %rax; " TESTED DIM, TESTED NUMEL, DTYPE,
		  true },
		{ "their number elsewhere", TESTED DIM, TESTED "mov 0xa0(%rdi), %rax; ret", DTYPE,
		  false },
		{ "sizes elsewhere", TESTED "mov 0x50(%rdi), %rax; ret", TESTED NUMEL, DTYPE,
		  false },
		{ "sizes at no multiple of 8", TESTED "mov 0x4c(%rdi), %rax; ret",
		  TESTED "mov 0xac(%rdi), %rax; ret", "movzwl 0xb4(%rdi), %eax; cmp $47, %ax; ret",
		  false },
		{ "sizes far away", TESTED "mov 0x1000(%rdi), %rax; ret", TESTED NUMEL, DTYPE,
		  false },
		{ "the type elsewhere", TESTED DIM, TESTED NUMEL,
		  "movzwl 0xb2(%rdi), %eax; cmp $47, %ax; ret", false },
		{ "no highest type", TESTED DIM, TESTED NUMEL, "movzwl 0xb0(%rdi), %eax; ret",
		  false },
		{ "other bits", TESTED DIM, "testb $0x20, 0xb5(%rdi); " NUMEL, DTYPE, false },
		{ "another byte", TESTED DIM, "testb $0x10, 0xb6(%rdi); " NUMEL, DTYPE, false },
		{ "a byte that is not near the type", "testb $0x10, 0xb9(%rdi); " DIM,
		  "testb $0x10, 0xb9(%rdi); " NUMEL, DTYPE, false },
		{ "an instruction that is not known", ".byte 6; " TESTED DIM, TESTED NUMEL, DTYPE,
		  false },
		{ "no bits", DIM, NUMEL, DTYPE, false },
	};
	char dir[] = "/tmp/test_tensors.XXXXXX", command[64];

	if (!mkdtemp(dir))
		abort();
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct tensors_layout got =
			layout_of(dir, rows[i].dim, rows[i].numel, rows[i].dtype);

		CASE_ROW("%s", rows[i].what);
		CHECK_EQ(rows[i].known ? CT_TENSORS_LAYOUT(9, 5, 16) : 0, got.plan);
		CHECK_EQ(rows[i].known ? 47 : 0, got.undefined);
	}
	snprintf(command, sizeof(command), "rm -r %s", dir);
	CHECK(!system(command));
}
#endif

int main(void)
{
#if defined(__x86_64__)
	RUN(test_layouts);
#endif
	RUN(test_names);
	RUN(test_schemas);
	RUN(test_plans);
	RUN(test_texts);
	RUN(test_read_again);
	return unit_end();
}
