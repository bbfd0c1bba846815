/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tensors.c - see tensors.h.
 *
 * A Tensor is a pointer to a TensorImpl. PyTorch's libraries export functions for code of other
 * languages that read one number of it, as aoti_torch_get_numel(). They begin alike:
 *
 *   48 8b 3f                mov (%rdi),%rdi         the TensorImpl
 *   0f b6 87 a6 00 00 00    movzbl 0xa6(%rdi),%eax  how sizes are found
 *   c0 e8 02                shr $0x2,%al
 *   83 e0 03                and $0x3,%eax
 *   3c 01                   cmp $0x1,%al
 *   77 13                   ja                      by a virtual function: such tensors are left out
 *   48 8b 87 98 00 00 00    mov 0x98(%rdi),%rax     the number
 *
 * So the code says where the rank, the number of elements and the type lie. Between them are five
 * sizes, five strides and the offset of the storage, which has been so since PyTorch 1.10: the
 * distances have to be these. The kernel side checks each tensor too: the product of its sizes has to be
 * its number of elements.
 */
#include "tensors.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../util/demangle.h"
#include "returns.h"

#define CODE 256 /* bytes of such a function that are looked at */

/* ---- the library's code ---- */

enum { DIM, NUMEL, DTYPE, FUNCTIONS };
static const char *const exported[FUNCTIONS] = {
	[DIM] = "aoti_torch_get_dim",
	[NUMEL] = "aoti_torch_get_numel",
	[DTYPE] = "aoti_torch_get_dtype",
};

struct look {
	const struct elf_file *file;
	uint64_t at[FUNCTIONS], size[FUNCTIONS];
};

static int on_export(void *ctx, const struct elf_sym *sym)
{
	struct look *l = ctx;

	for (int i = 0; i < FUNCTIONS; i++)
		if (sym->defined && sym->type == STT_FUNC && !strcmp(sym->name, exported[i])) {
			l->at[i] = elf_code_offset(l->file, sym->value);
			l->size[i] = sym->size;
		}
	return 0;
}

/* What the code of such a function says. Offsets of a TensorImpl; 0: not found. */
struct said {
	uint32_t byte;	/* of how sizes are found */
	uint32_t shift; /* its bits, and the highest value that means: by no virtual function */
	uint32_t mask;
	uint32_t most;
	uint32_t bits;	  /* or: the bits that must not be set */
	uint32_t word;	  /* the number of 64 bits */
	uint32_t half;	  /* the number of 16 bits */
	uint32_t highest; /* that it may have */
};

/* The displacement of an instruction's memory operand, with a base and no index, from its ModRM
 * byte on; 0: it has none. */
static uint32_t displacement(const uint8_t *modrm, const uint8_t *end)
{
	uint32_t d = 0;

	if ((*modrm & 7) == 4) /* a stack pointer, or an index */
		return 0;
	if (*modrm >> 6 == 1 && modrm + 1 < end && modrm[1] < 0x80)
		return modrm[1];
	if (*modrm >> 6 != 2 || modrm + 5 > end)
		return 0;
	memcpy(&d, modrm + 1, sizeof(d));
	return d < 4096 ? d : 0;
}

static void one_instruction(const uint8_t *p, unsigned n, struct said *said)
{
	const uint8_t *end = p + n;

	if (n >= 4 && p[0] == 0x0f && p[1] == 0xb6 && !said->byte)
		said->byte = displacement(p + 2, end);
	else if (n >= 4 && p[0] == 0x0f && p[1] == 0xb7 && !said->half)
		said->half = displacement(p + 2, end);
	else if (n >= 4 && p[0] == 0x48 && p[1] == 0x8b && !said->word)
		said->word = displacement(p + 2, end);
	else if (n == 3 && (p[0] == 0xc0 || p[0] == 0xc1) && (p[1] & 0xf8) == 0xe8)
		said->shift = p[2];
	else if (n == 3 && p[0] == 0x83 && (p[1] & 0xf8) == 0xe0)
		said->mask = p[2];
	else if (n == 2 && p[0] == 0x24) /* and $..,%al */
		said->mask = p[1];
	else if (n == 2 && p[0] == 0x3c)
		said->most = p[1];
	else if (n == 3 && p[0] == 0x80 && (p[1] & 0xf8) == 0xf8)
		said->most = p[2];
	else if (n == 4 && p[0] == 0x66 && p[1] == 0x83 && (p[2] & 0xf8) == 0xf8)
		said->highest = p[3];
	else if (n == 3 && p[0] == 0x83 && (p[1] & 0xf8) == 0xf8)
		said->highest = p[2];
	else if (n >= 4 && p[0] == 0xf6 && !(p[1] & 0x38) && !said->byte) { /* testb $..,..(reg) */
		said->byte = displacement(p + 1, end - 1);
		said->bits = end[-1];
	}
}

/* Walks a function. */
static bool listen(const struct look *l, int which, struct said *said)
{
	uint64_t size = l->size[which] < CODE ? l->size[which] : CODE;
	uint8_t code[CODE];
	unsigned n;

	memset(said, 0, sizeof(*said));
	if (!l->at[which] || elf_read(l->file, code, size, l->at[which]))
		return false;
	for (uint64_t i = 0; i < size; i += n) {
		n = returns_length(code + i, size - i);
		if (!n) /* the function is longer than what was read */
			return size == CODE;
		one_instruction(code + i, n, said);
	}
	return true;
}

/* The bits of the byte of which none may be set. 0: not known. */
static uint32_t virtual_bits(const struct said *said)
{
	if (said->bits)
		return said->bits;
	/* of two bits the higher one */
	return said->mask == 3 && said->most == 1 && said->shift < 7 ? 2u << said->shift : 0;
}

int tensors_layout(const struct elf_file *file, struct tensors_layout *out)
{
	static const char *const begins[] = { "aoti_torch_get_", NULL };
	struct look l = { .file = file };
	struct said dim, numel, dtype;
	int err = elf_symbols(file, SHT_DYNSYM, begins, on_export, &l);

	*out = (struct tensors_layout){ 0 };
	if (err || file->ehdr.e_machine != EM_X86_64)
		return err == -ENOMEM || err == -ETIME ? err : 0;
	if (!listen(&l, DIM, &dim) || !listen(&l, NUMEL, &numel) || !listen(&l, DTYPE, &dtype))
		return 0;
	if (!dim.word || dim.word % 8 || dim.word / 8 > 31 || numel.word != dim.word + 96 ||
	    dtype.half != dim.word + 104 || dtype.highest >= CT_TENSOR_SPECIAL || !dtype.highest ||
	    numel.byte != dim.byte || dim.byte < dtype.half + 2 || dim.byte > dtype.half + 7 ||
	    !virtual_bits(&dim) || virtual_bits(&dim) != virtual_bits(&numel))
		return 0;
	out->plan = CT_TENSORS_LAYOUT(dim.word / 8, dim.byte - dtype.half, virtual_bits(&dim));
	out->undefined = (uint8_t)dtype.highest;
	return 0;
}

/* ---- an operator's schema ---- */

#define SCHEMA_KNOWN 0x100
#define SCHEMA_IN_MEMORY 0x200 /* the caller says where the result is to be put */

/* How many arguments the list has that begins behind text[0], a parenthesis; `*` is none. *end: the
 * place of the closing parenthesis. -1: it has no end. */
static int count_args(const char *text, size_t len, size_t *end)
{
	int depth = 0, n = 0;
	bool in_one = false;

	for (size_t i = 0; i < len && text[i]; i++) {
		char c = text[i];

		if (c == '(' || c == '[') {
			depth++;
		} else if (c == ')' || c == ']') {
			if (!--depth) {
				*end = i;
				return n + in_one;
			}
		} else if (c == ',' && depth == 1) {
			n += in_one;
			in_one = false;
		} else if (depth == 1 && !isspace((unsigned char)c) && c != '*') {
			in_one = true;
		}
	}
	return -1;
}

/* How a function returns what a schema says behind "-> ", up to its NUL. 0: not known. */
static uint32_t returning(const char *what, size_t len)
{
	size_t n = strnlen(what, len);

	if (n == len)
		return 0;
	if (!strcmp(what, "()") || !strcmp(what, "bool") || !strcmp(what, "int") ||
	    !strcmp(what, "float"))
		return SCHEMA_KNOWN;
	if (!strcmp(what, "Tensor") || !strcmp(what, "Tensor[]") || !strcmp(what, "Scalar"))
		return SCHEMA_KNOWN | SCHEMA_IN_MEMORY;
	/* several results: a std::tuple, which libstdc++ never returns in registers */
	if (what[0] == '(' && strchr(what, ','))
		return SCHEMA_KNOWN | SCHEMA_IN_MEMORY;
	if (strncmp(what, "Tensor(", 7))
		return 0;
	if (strchr(what, '[') || !strchr(what, '!'))
		return SCHEMA_KNOWN | SCHEMA_IN_MEMORY;
	return n == 10 ? SCHEMA_KNOWN : 0; /* "Tensor(a!)": a reference */
}

uint32_t tensors_schema(const char *text, size_t len)
{
	static const char arrow[] = " -> ";
	size_t end = 0, n = sizeof(arrow) - 1;
	int args = count_args(text, len, &end);
	uint32_t how;

	if (args < 0 || args > 0xff || end + 1 + n >= len || memcmp(text + end + 1, arrow, n))
		return 0;
	how = returning(text + end + 1 + n, len - end - 1 - n);
	return how ? how | (uint32_t)args : 0;
}

/* ---- its arguments in registers ---- */

enum where { ON_STACK, WORD, WORDS, FLOAT, WORD_FLOAT };
struct type {
	const char *name;
	enum where where;
	char code; /* as in struct symbol_args; I: an L that is passed by its address */
};
/* How the ABI passes each type: a class that is not trivial is passed by its address. */
static const struct type types[] = {
	{ "at::Tensor const&", WORD, 'T' },
	{ "at::Tensor&", WORD, 'T' },
	{ "std::optional<at::Tensor> const&", WORD, 'O' },
	{ "c10::ArrayRef<at::Tensor>", WORDS, 'L' },
	{ "c10::IListRef<at::Tensor> const&", WORD, 'I' },
	{ "c10::List<std::optional<at::Tensor> > const&", WORD, 'l' },
	{ "c10::Scalar const&", WORD, 's' },
	{ "bool", WORD, 's' },
	{ "long", WORD, 's' },
	{ "double", FLOAT, 's' },
	{ "c10::SymInt", WORD, 's' },
	{ "c10::ArrayRef<c10::SymInt>", WORDS, 'a' },
	{ "c10::ArrayRef<long>", WORDS, 'a' },
	{ "c10::ArrayRef<double>", WORDS, 'a' },
	{ "c10::ArrayRef<c10::Scalar>", WORDS, 'a' },
	{ "c10::OptionalArrayRef<long>", ON_STACK, '-' },
	{ "c10::OptionalArrayRef<c10::SymInt>", ON_STACK, '-' },
	{ "std::optional<c10::ArrayRef<double> >", ON_STACK, '-' },
	{ "std::optional<c10::Scalar> const&", WORD, '-' },
	{ "std::optional<c10::SymInt>", WORD, '-' },
	{ "std::optional<at::Generator>", WORD, '-' },
	{ "std::optional<c10::ScalarType>", WORD, '-' },
	{ "std::optional<c10::Layout>", WORD, '-' },
	{ "std::optional<c10::Device>", WORD, '-' },
	{ "std::optional<c10::MemoryFormat>", WORD, '-' },
	{ "std::optional<bool>", WORD, '-' },
	{ "std::optional<long>", WORDS, '-' },
	{ "std::optional<double>", WORD_FLOAT, '-' },
	{ "std::array<bool, 2ul>", WORD, '-' },
	{ "std::array<bool, 3ul>", WORD, '-' },
	{ "std::array<bool, 4ul>", WORD, '-' },
	{ "std::basic_string_view<char, std::char_traits<char> >", WORDS, '-' },
	{ "std::optional<std::basic_string_view<char, std::char_traits<char> > >", ON_STACK, '-' },
	{ "c10::ScalarType", WORD, '-' },
	{ "c10::Device", WORD, '-' },
	{ "c10::Layout", WORD, '-' },
	{ "c10::MemoryFormat", WORD, '-' },
	{ "c10::Storage", WORD, '-' },
	{ "signed char", WORD, 's' },
};

static const struct type *type_of(const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (strlen(types[i].name) == len && !memcmp(types[i].name, name, len))
			return &types[i];
	return NULL;
}

/* The length of the first of several types, which commas separate. */
static size_t first_type(const char *at)
{
	size_t n = 0;

	for (int depth = 0; at[n]; n++) {
		depth += at[n] == '<' || at[n] == '(';
		depth -= at[n] == '>' || (at[n] == ')' && depth);
		if (!depth && (at[n] == ',' || (at[n] == ')' && !at[n + 1])))
			break;
	}
	return n;
}

#define REGISTERS 6
#define FLOATS 8

/* Which registers have an argument: its first one, or -1. Of two words either both are in registers
 * or none is. */
static int tensors_place(const struct type *t, int *words, int *floats)
{
	int w = t->where == WORDS ? 2 : t->where == WORD || t->where == WORD_FLOAT;
	int f = t->where == FLOAT || t->where == WORD_FLOAT;

	if (t->where == ON_STACK || *words + w > REGISTERS || *floats + f > FLOATS)
		return -1;
	*words += w;
	*floats += f;
	return w ? *words - w : -1;
}

/* Fills in codes and registers of the types in a list. False: one is not known. */
static bool places(const char *at, int words, struct symbol_args *out)
{
	int floats = 0, n = 0;
	char list = 0; /* all lists that are read are passed in one way */

	while (*at && *at != ')') {
		size_t len = first_type(at);
		const struct type *t = type_of(at, len);
		int first = t && n < SYMBOL_ARGS - 1 ? tensors_place(t, &words, &floats) : -1;

		if (!t || n >= SYMBOL_ARGS - 1)
			return false;
		out->codes[n] = t->code == 'I' ? 'L' : t->code;
		if (first >= 0 && out->codes[n] == 'L' && !list)
			list = t->code;
		if (!isupper((unsigned char)t->code))
			;
		else if (out->codes[n] == 'L' && (first < 0 || t->code != list))
			out->codes[n] = 'l';
		else if (first < 0)
			out->codes[n] = '?';
		else
			out->plan |= (t->code == 'T'   ? CT_TENSORS_ONE
				      : t->code == 'O' ? CT_TENSORS_OPTIONAL
						       : CT_TENSORS_LIST)
				     << 2 * first;
		n++;
		at += len;
		while (*at == ',' || *at == ' ')
			at++;
	}
	out->codes[n] = '\0';
	if (list == 'I')
		out->plan |= CT_TENSORS_BY_REFERENCE;
	return true;
}

unsigned tensors_params(const char *symbol)
{
	char *full = demangle_full(symbol);
	const char *at = full ? strchr(full, '(') : NULL;
	unsigned n = 0;

	for (at = at ? at + 1 : ""; *at && *at != ')'; n++) {
		at += first_type(at);
		while (*at == ',' || *at == ' ')
			at++;
	}
	free(full);
	return n;
}

void tensors_plan(const struct tensors_layout *layout, const char *symbol, uint32_t schema,
		  struct symbol_args *out)
{
	char *full = layout->plan && schema ? demangle_full(symbol) : NULL;
	const char *at = full ? strchr(full, '(') : NULL;

	*out = (struct symbol_args){ 0 };
	if (at && places(at + 1, schema & SCHEMA_IN_MEMORY ? 1 : 0, out) &&
	    strlen(out->codes) == TENSORS_SCHEMA_ARGS(schema) && out->plan) {
		out->plan |= layout->plan;
		out->undefined = layout->undefined;
	} else {
		*out = (struct symbol_args){ 0 };
	}
	free(full);
}
