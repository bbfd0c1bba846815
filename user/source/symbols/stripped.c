/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stripped.c - see stripped.h.
 *
 * The names are looked for among the file's constants, then the words that point to them (older runtimes load a name's
 * address from a table), then the instructions that refer to either. Which function such an instruction is in is
 * known from the table for unwinding.
 */
#include "stripped.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../proc/elf_starts.h"
#include "../../util/now.h"
#include "../../util/table/array.h"
#include "stripped_codes.h"
#include "stripped_isa.h"

#define PIECE (24 << 15)	   /* bytes that are read at a time: whole relocations */
#define OVERLAP 128		   /* longer than any name */
#define SECTION_MAX (512ULL << 20) /* larger ones are not searched */
#define PLACES_MAX 65536	   /* of one file: the runtime's are some 900 */
#define HERE 64	      /* different names, of some 450, that say that it is the runtime */
#define MANY 8	      /* functions that have a number that is no mark of one */
#define CODE_MAX 4096 /* bytes of a function: the runtime's have less than 1024 */

const char *const stripped_imports[STRIPPED_IMPORTS + 1] = {
	"dlvsym",     "nftw",	"get_nprocs", "pthread_rwlockattr_setpshared",
	"__getdelim", "mkfifo", NULL
};

/* Sorted by name. A function whose arguments have changed under the same name has two numbers. */
static const struct number {
	const char *name;
	uint16_t number;
} numbers[] = {
#define NUMBER(name, number) { #name, number },
#define X86(order, name, bytes, hash, ...)
#define ARM64 X86
#include "stripped.def"
#undef NUMBER
#undef ARM64
#undef X86
};
#define NUMBERS (sizeof(numbers) / sizeof(*numbers))

/* Something that leads to a name: the text, or a word with its address. */
struct place {
	uint64_t address;
	uint16_t name; /* the first row of numbers[] */
};
struct search {
	const struct elf_file *file;
	struct elf_starts starts;
	struct place *places; /* sorted by address once all are known */
	size_t nplaces, ntexts;
	struct claim {
		uint64_t function;
		uint16_t name;
		bool common;
	} * claims; /* what refers to a place */
	size_t nclaims;
	uint8_t *piece;
	const struct stripped_isa *isa;
	uint64_t registers[ISA_REGISTERS];
};

bool stripped_imported(uint32_t *seen, const char *name)
{
	for (int i = 0; i < STRIPPED_IMPORTS; i++)
		if (!strcmp(name, stripped_imports[i])) {
			*seen |= 1u << i;
			return true;
		}
	return false;
}

bool stripped_likely(uint32_t seen)
{
	return seen == (1u << STRIPPED_IMPORTS) - 1;
}

/* ---- pieces of sections ---- */

/* `address` is that of bytes[0]. What begins in the last `len - own` bytes begins in the next piece, too. */
typedef int (*piece_fn)(struct search *, const uint8_t *bytes, size_t len, size_t own,
			uint64_t address);

static int each_piece(struct search *s, const Elf64_Shdr *sh, piece_fn fn)
{
	int err = 0;

	for (uint64_t at = 0; at < sh->sh_size && !err; at += PIECE) {
		uint64_t left = sh->sh_size - at, own = left < PIECE ? left : PIECE;
		uint64_t len = left < PIECE + OVERLAP ? left : PIECE + OVERLAP;

		if (s->file->until_ns && now_ns() > s->file->until_ns)
			return -ETIME;
		err = elf_read(s->file, s->piece, len, sh->sh_offset + at);
		if (!err)
			err = fn(s, s->piece, len, own, sh->sh_addr + at);
	}
	return err;
}

/* Of the sections of this type whose names begin so, or that have these flags. */
static int each_section(struct search *s, uint32_t type, const char *begin, uint64_t flags,
			piece_fn fn)
{
	int err = 0;

	for (uint32_t i = 0; i < s->file->nshdr && !err; i++) {
		const Elf64_Shdr *sh = &s->file->shdr[i];

		if (sh->sh_type == type && (sh->sh_flags & flags) == flags &&
		    sh->sh_size <= SECTION_MAX &&
		    !strncmp(elf_section_name(s->file, i), begin, strlen(begin)))
			err = each_piece(s, sh, fn);
	}
	return err;
}

/* ---- names ---- */

static int find_name(const char *name)
{
	size_t at = array_before(numbers, NUMBERS, x, strcmp(x->name, name) < 0);

	return at < NUMBERS && !strcmp(numbers[at].name, name) ? (int)at : -1;
}

static int add_place(struct search *s, uint64_t address, uint16_t name)
{
	struct place *p;

	if (s->nplaces == PLACES_MAX)
		return 0;
	p = array_add(s->places, s->nplaces);
	if (!p)
		return -ENOMEM;
	*p = (struct place){ address, name };
	return 0;
}

static int on_constants(struct search *s, const uint8_t *bytes, size_t len, size_t own,
			uint64_t address)
{
	const uint8_t *at = bytes, *end = bytes + len, *hit;

	while ((hit = memmem(at, (size_t)(end - at), "cuda", 4))) {
		const uint8_t *begin = hit;
		const char *name;
		int row, err;

		at = hit + 4;
		if (begin - bytes >= 2 && begin[-1] == '_' && begin[-2] == '_')
			begin -= 2;
		name = (const char *)begin;
		/* a part of a longer name; or it is too long */
		if (begin >= bytes + own ||
		    (begin > bytes && (isalnum(begin[-1]) || begin[-1] == '_')) ||
		    !memchr(begin, 0, (size_t)(end - begin)))
			continue;
		row = find_name(name);
		err = row < 0 ? 0
			      : add_place(s, address + (uint64_t)(begin - bytes), (uint16_t)row);
		if (err)
			return err;
	}
	return 0;
}

static int by_address(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

/* Among the first n places, which are sorted. */
static const struct place *place_at(const struct search *s, size_t n, uint64_t address)
{
	size_t at;

	if (!n || address < s->places[0].address || address > s->places[n - 1].address)
		return NULL;
	at = array_before(s->places, n, x, x->address < address);
	return at < n && s->places[at].address == address ? &s->places[at] : NULL;
}

/* Words that have a name's address in the file, and those that get one when it is loaded. */
static int on_words(struct search *s, const uint8_t *bytes, size_t len, size_t own,
		    uint64_t address)
{
	int err = 0;

	for (size_t i = (8 - address % 8) % 8; i < own && i + 8 <= len && !err; i += 8) {
		const struct place *p;
		uint64_t word;

		memcpy(&word, bytes + i, 8);
		p = place_at(s, s->ntexts, word);
		err = p ? add_place(s, address + i, p->name) : 0;
	}
	return err;
}

static int on_relocations(struct search *s, const uint8_t *bytes, size_t len, size_t own,
			  uint64_t address)
{
	int err = 0;

	(void)address;
	for (size_t i = 0; i < own && i + sizeof(Elf64_Rela) <= len && !err;
	     i += sizeof(Elf64_Rela)) {
		const struct place *p;
		Elf64_Rela r;

		memcpy(&r, bytes + i, sizeof(r));
		p = ELF64_R_TYPE(r.r_info) == s->isa->relative
			    ? place_at(s, s->ntexts, (uint64_t)r.r_addend)
			    : NULL;
		err = p ? add_place(s, r.r_offset, p->name) : 0;
	}
	return err;
}

/* ---- code ---- */

static int add_claim(struct search *s, uint64_t address, const struct place *p)
{
	const struct elf_start *in = p ? elf_start_of(&s->starts, address) : NULL;
	struct claim *c;

	if (!in || s->nclaims == PLACES_MAX)
		return 0;
	c = array_add(s->claims, s->nclaims);
	if (!c)
		return -ENOMEM;
	*c = (struct claim){ .function = in->address, .name = p->name };
	return 0;
}

static int on_reference(void *ctx, uint64_t at, uint64_t to)
{
	struct search *s = ctx;

	return add_claim(s, at, place_at(s, s->nplaces, to));
}

static int on_code(struct search *s, const uint8_t *bytes, size_t len, size_t own, uint64_t address)
{
	return s->isa->refers(s->registers, bytes, len, own, address, on_reference, s);
}

/* Has the function the number of this name, as often as the runtime's own has? Its size, or 0. */
static uint64_t prove(const struct search *s, const struct claim *c)
{
	uint64_t bytes = elf_start_bytes(s->file, elf_start_of(&s->starts, c->function));
	uint64_t at = elf_code_offset(s->file, c->function);
	uint8_t code[CODE_MAX];

	if (!at || !bytes || bytes > CODE_MAX || elf_read(s->file, code, bytes, at))
		return 0;
	for (size_t i = c->name; i < NUMBERS && !strcmp(numbers[i].name, numbers[c->name].name);
	     i++)
		if (s->isa->count(code, bytes, numbers[i].number) >= s->isa->times)
			return bytes;
	return 0;
}

static int by_function(const void *a, const void *b)
{
	const struct claim *x = a, *y = b;

	if (x->function != y->function)
		return x->function < y->function ? -1 : 1;
	return x->name - y->name;
}

static int miss(struct stripped *out, uint16_t name)
{
	if (!array_room(out->missing, out->nmissing))
		return -ENOMEM;
	out->missing[out->nmissing++] = numbers[name].name;
	return 0;
}

/* Keeps the proven claims, in the order of functions, each once. */
static void keep_proven(struct search *s)
{
	size_t n = 0;

	qsort(s->claims, s->nclaims, sizeof(*s->claims), by_function);
	for (size_t i = 0; i < s->nclaims; i++)
		if ((!n || by_function(&s->claims[i], &s->claims[n - 1])) &&
		    prove(s, &s->claims[i]))
			s->claims[n++] = s->claims[i];
	s->nclaims = n;
}

static void count_names(const struct search *s, size_t taken[NUMBERS])
{
	memset(taken, 0, NUMBERS * sizeof(*taken));
	for (size_t i = 0; i < s->nclaims; i++)
		taken[s->claims[i].name]++;
}

static bool has_another(const struct search *s, size_t i)
{
	const struct claim *c = &s->claims[i];

	return (i && c[-1].function == c->function) ||
	       (i + 1 < s->nclaims && c[1].function == c->function);
}

/* A number that many functions have proves nothing where a function has another name: 1, and a text from which the addresses of
 * others are computed. */
static void drop_common(struct search *s, const size_t taken[NUMBERS])
{
	size_t n = 0;

	for (size_t i = 0; i < s->nclaims; i++)
		s->claims[i].common = taken[s->claims[i].name] >= MANY && has_another(s, i);
	for (size_t i = 0; i < s->nclaims; i++)
		if (!s->claims[i].common)
			s->claims[n++] = s->claims[i];
	s->nclaims = n;
}

/* Of the proven claims those that no other one contradicts: one function a name, one name a function. */
static int decide(struct search *s, struct stripped *out)
{
	size_t taken[NUMBERS];
	int err = 0;

	keep_proven(s);
	count_names(s, taken);
	drop_common(s, taken);
	count_names(s, taken);
	for (size_t i = 0; i < s->nclaims && !err; i++) {
		const struct claim *c = &s->claims[i];
		struct stripped_func *f;

		if (taken[c->name] == 1 && !has_another(s, i)) {
			f = array_add(out->funcs, out->n);
			err = f ? 0 : -ENOMEM;
			if (f)
				*f = (struct stripped_func){ numbers[c->name].name, c->function,
							     prove(s, c) };
		} else if (taken[c->name]) {
			taken[c->name] = 0; /* said once */
			err = miss(out, c->name);
		}
	}
	return err;
}

/* The names that the file has as texts; `seen` has them. */
static int count_texts(const struct search *s, uint8_t seen[NUMBERS])
{
	int n = 0;

	memset(seen, 0, NUMBERS);
	for (size_t i = 0; i < s->ntexts; i++) {
		n += !seen[s->places[i].name];
		seen[s->places[i].name] = 1;
	}
	return n;
}

static int find_texts(struct search *s)
{
	int err = each_section(s, SHT_PROGBITS, ".rodata", SHF_ALLOC, on_constants);

	s->ntexts = s->nplaces;
	if (s->nplaces)
		qsort(s->places, s->nplaces, sizeof(*s->places), by_address);
	return err;
}

static int find_functions(struct search *s, struct stripped *out)
{
	int err = elf_starts_read(s->file, &s->starts);

	if (err)
		return err == -ENOENT ? 0 : err;
	err = each_section(s, SHT_PROGBITS, ".data.rel.ro", SHF_ALLOC, on_words);
	if (!err)
		err = each_section(s, SHT_RELA, ".rela.dyn", SHF_ALLOC, on_relocations);
	qsort(s->places, s->nplaces, sizeof(*s->places), by_address);
	if (!err)
		err = each_section(s, SHT_PROGBITS, "", SHF_ALLOC | SHF_EXECINSTR, on_code);
	if (!err)
		err = decide(s, out);
	if (!err)
		err = stripped_codes(s->file, &s->starts, out);
	return err;
}

int stripped_find(const struct elf_file *file, struct stripped *out)
{
	struct search s = { .file = file,
			    .piece = malloc(PIECE + OVERLAP),
			    .isa = stripped_isa(file->ehdr.e_machine) };
	uint8_t texts[NUMBERS];
	int err = s.piece ? 0 : -ENOMEM;

	memset(out, 0, sizeof(*out));
	if (!err)
		err = find_texts(&s);
	out->there = !err && count_texts(&s, texts) >= HERE;
	if (out->there && s.isa)
		err = find_functions(&s, out);
	if (out->there && out->n < HERE) {
		out->n = out->nmissing = 0;
		for (size_t i = 0; i < NUMBERS && err != -ENOMEM; i++)
			if (texts[i])
				err = miss(out, (uint16_t)i);
	}
	elf_starts_free(&s.starts);
	free(s.places);
	free(s.claims);
	free(s.piece);
	return err;
}

void stripped_free(struct stripped *s)
{
	free(s->funcs);
	free(s->missing);
	memset(s, 0, sizeof(*s));
}
