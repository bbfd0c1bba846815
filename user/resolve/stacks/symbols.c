/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * symbols.c - see symbols.h.
 *
 * libdwfl searches a symbol table from one end to the other for each address; libtorch_cuda.so
 * has 200 000 symbols. So the table is read once into an index that is sorted by address.
 */
#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <stdlib.h>
#include <string.h>

#include "../../proc/dwarf_strings.h"
#include "../../util/io/bounded.h"
#include "../../util/now.h"
#include "symbols.h"
#include "../../util/table/array.h"

#define SYMBOLS_INDEX_MAX (4 << 20) /* 128 MiB of index; the largest libraries have a million */
/* how many symbols before an address are checked for one that is large enough to contain it */
#define BACK_MAX 64
#define SIZELESS_MAX 0x10000 /* assumed size in bytes of a symbol without a size */
#define NAME_LEN_MAX 16384
#define COMPARED_MAX 128       /* bytes of two names that are compared */
#define INDEX_NS 5000000000ULL /* a table that takes longer to be read has no names */
#define STRING_TABLES_MAX 16   /* string tables of one file; linkers make three */

struct symbol {
	uint64_t address, size;
	const char *name;
	uint32_t number; /* in the table */
	/* of several symbols at one address, the one with the highest rank is shown */
	uint8_t rank;
};

struct symbol_index {
	struct symbol *symbols;
	size_t n;
	bool looked;	      /* for DWARF */
	const Elf_Data *info; /* .debug_info: some strings lie in it */
};

void symbols_close(struct symbol_index *x)
{
	if (!x)
		return;
	free(x->symbols);
	free(x);
}

/* ---- symbol tables ---- */

static int by_address(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;
	int order;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	/* Any order will do that is the same each time. Names may be long, and the same for millions
	 * of symbols. */
	order = -strncmp(x->name, y->name, COMPARED_MAX);
	return order ? order : x->number < y->number ? 1 : -1;
}

static uint8_t rank_of(const GElf_Sym *sym, const char *name)
{
	uint8_t bind = GELF_ST_BIND(sym->st_info);

	/* .symtab has versions in its names: "memcpy@@GLIBC_2.14" */
	return (uint8_t)((GELF_ST_TYPE(sym->st_info) != STT_NOTYPE) * 16 + (sym->st_size != 0) * 8 +
			 (bind == STB_GLOBAL ? 2 : bind != STB_LOCAL) * 2 + !strchr(name, '@'));
}

/* The string tables of one file, as libelf keeps them in memory. */
struct string_tables {
	Elf *elf;
	Elf_Data *tables[STRING_TABLES_MAX];
	int n;
};

static void string_tables_of(struct string_tables *t, Elf *elf)
{
	Elf_Scn *scn = NULL;

	t->elf = elf;
	t->n = 0;
	while (t->n < STRING_TABLES_MAX && (scn = elf_nextscn(elf, scn))) {
		GElf_Shdr shdr;

		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type != SHT_STRTAB)
			continue;
		t->tables[t->n] = elf_getdata(scn, NULL);
		t->n += t->tables[t->n] && t->tables[t->n]->d_buf;
	}
}

/*
 * Whether the name ends inside its string table. libdwfl checks only where a name begins: if a
 * table has no final NUL, its last name continues into the memory behind the table.
 */
static bool name_ends(const struct string_tables *t, const char *name)
{
	for (int i = 0; i < t->n; i++) {
		const char *begin = t->tables[i]->d_buf, *end = begin + t->tables[i]->d_size;

		if (name >= begin && name < end)
			return memchr(name, '\0',
				      end - name < NAME_LEN_MAX ? (size_t)(end - name)
								: NAME_LEN_MAX);
	}
	return false;
}

static void read_index(struct object *o, struct symbol_index *x, Dwfl_Module *mod)
{
	uint64_t until_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) + INDEX_NS;
	int n = dwfl_module_getsymtab(mod);
	struct string_tables strings = { 0 };

	if (n > SYMBOLS_INDEX_MAX)
		object_complain(o, "it has more symbols than cudatrace reads");
	if (n <= 0 || n > SYMBOLS_INDEX_MAX)
		return;
	x->symbols = malloc((size_t)n * sizeof(*x->symbols));
	for (int i = 0; x->symbols && i < n; i++) {
		GElf_Sym sym;
		GElf_Addr address;
		GElf_Word shndx;
		Elf *elf = NULL;
		const char *name =
			dwfl_module_getsym_info(mod, i, &sym, &address, &shndx, &elf, NULL);
		uint8_t type;

		if (!(i & 4095) && clock_ns(CLOCK_THREAD_CPUTIME_ID) > until_ns) {
			object_complain(o, "its symbols take too long to be read");
			break;
		}
		if (!name)
			continue;
		if (elf != strings.elf)
			string_tables_of(&strings, elf);
		if (!name_ends(&strings, name))
			continue;
		type = GELF_ST_TYPE(sym.st_info);
		if ((type != STT_FUNC && type != STT_NOTYPE && type != STT_GNU_IFUNC) || !*name)
			continue;
		if (shndx == SHN_UNDEF || shndx == SHN_ABS || shndx == SHN_COMMON)
			continue;
		/* the assembler's marks for data in code */
		if (type == STT_NOTYPE && name[0] == '$')
			continue;
		x->symbols[x->n++] = (struct symbol){ .address = address,
						      .size = sym.st_size,
						      .name = name,
						      .number = (uint32_t)i,
						      .rank = rank_of(&sym, name) };
	}
	if (x->n)
		qsort(x->symbols, x->n, sizeof(*x->symbols), by_address);
}

static struct symbol_index *index_of(struct object *o)
{
	struct symbol_index **home = object_symbols(o);
	Dwfl_Module *mod;

	if (*home)
		return *home;
	*home = calloc(1, sizeof(**home));
	if (!*home)
		return NULL;
	mod = object_module(o);
	if (mod)
		read_index(o, *home, mod);
	return *home;
}

/* Finds the nearest symbol before an address that contains it. A symbol without a size is used only
 * if no other symbol is between. */
static const struct symbol *lookup(const struct symbol_index *x, uint64_t address)
{
	const struct symbol *sizeless = NULL;
	size_t n = array_before(x->symbols, x->n, at, at->address <= address);

	for (size_t back = 0; back < BACK_MAX && back < n; back++) {
		const struct symbol *s = &x->symbols[n - 1 - back];

		if (s->size && address - s->address < s->size)
			return s;
		if (!s->size && !back && address - s->address < SIZELESS_MAX)
			sizeless = s;
	}
	return sizeless;
}

static bool function_of(const struct symbol_index *x, uint64_t address, bool exact,
			struct symbols_function *out)
{
	const struct symbol *s = x ? lookup(x, address - !exact) : NULL;

	if (!s)
		return false;
	out->name = s->name;
	out->offset = address - s->address;
	return true;
}

static void make_index(struct object *o, void *args)
{
	(void)args;
	index_of(o);
}

bool symbols_function(struct object *o, uint64_t address, bool exact, struct symbols_function *out)
{
	char none = 0;

	if (object_lent(o) ||
	    (!*object_symbols(o) && !object_do(o, make_index, &none, sizeof(none))))
		return false;
	return function_of(*object_symbols(o), address, exact, out);
}

/* ---- DWARF ---- */

static const char *string_of(const struct symbol_index *x, Dwarf_Die *die, unsigned int what)
{
	Dwarf_Attribute attr, *a = dwarf_attr_integrate(die, what, &attr);

	return a ? dwarf_string(a, x->info) : NULL;
}

static const char *die_name(const struct symbol_index *x, Dwarf_Die *die)
{
	const char *name = string_of(x, die, DW_AT_linkage_name);

	if (!name)
		name = string_of(x, die, DW_AT_MIPS_linkage_name);
	return name ? name : string_of(x, die, DW_AT_name);
}

/* Finds where an inlined function was called. */
static void call_place(Dwarf_Die *cu, Dwarf_Die *die, struct symbols_place *p)
{
	Dwarf_Files *files;
	Dwarf_Attribute attr;
	Dwarf_Word v;
	size_t n;

	p->file = NULL;
	p->line = 0;
	if (!dwarf_formudata(dwarf_attr(die, DW_AT_call_file, &attr), &v) &&
	    !dwarf_getsrcfiles(cu, &files, &n) && v < n)
		p->file = dwarf_filesrc(files, v, NULL, NULL);
	if (!dwarf_formudata(dwarf_attr(die, DW_AT_call_line, &attr), &v) && v <= INT32_MAX)
		p->line = (uint32_t)v;
}

/* Finds the chain of inlined functions at pc; out[0] already has the line. Returns the number of
 * places, or -1 if the DWARF there is damaged: then libdw leaks the memory that it had
 * allocated. */
static int inlined(const struct symbol_index *x, Dwarf_Die *cu, Dwarf_Addr pc,
		   struct symbols_place *out, int max)
{
	Dwarf_Die *scopes = NULL, *around = NULL;
	int n = dwarf_getscopes(cu, pc, &scopes), found = -1, at = 0, naround = 0;

	if (n < 0)
		return -1;
	for (int i = 0; i < n && found < 0; i++) {
		int tag = dwarf_tag(&scopes[i]);

		if (tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine ||
		    tag == DW_TAG_entry_point)
			found = i;
	}
	/* getscopes continues with the scopes where an inlined function was defined; another call
	 * gets the scopes that contain its code */
	if (found >= 0)
		naround = dwarf_getscopes_die(&scopes[found], &around);
	for (int i = 0; i < naround && at < max - 1; i++) {
		int tag = dwarf_tag(&around[i]);

		if (tag == DW_TAG_subprogram || tag == DW_TAG_entry_point) {
			if (!out[at].function)
				out[at].function = die_name(x, &around[i]);
			break;
		}
		if (tag != DW_TAG_inlined_subroutine)
			continue;
		out[at + 1] = out[at];
		out[at].function = die_name(x, &around[i]);
		out[at].inlined = true;
		out[at].offset = 0;
		call_place(cu, &around[i], &out[++at]);
	}
	free(around);
	free(scopes);
	return at + 1;
}

/* Returns the module if it has DWARF that can be read. */
static Dwfl_Module *dwarf_of(struct object *o, struct symbol_index *x)
{
	Dwfl_Module *mod = object_has_dwarf(o) ? object_module(o) : NULL;
	Dwarf_Addr bias;
	Dwarf *dwarf, *alt;

	if (!mod || x->looked)
		return mod;
	x->looked = true;
	dwarf = dwfl_module_getdwarf(mod, &bias);
	if (dwarf)
		dwarf_new_oom_handler(dwarf, bounded_no_memory);
	if (dwarf && !object_find_alt(o, dwarf)) {
		object_complain(o, "its debug information needs another file, which is not "
				   "there, or is not root's");
		object_drop_dwarf(o);
		return NULL;
	}
	alt = dwarf ? dwarf_getalt(dwarf) : NULL;
	if (alt)
		dwarf_new_oom_handler(alt, bounded_no_memory);
	if (dwarf && dwarf_strings_end(dwarf) && (!alt || dwarf_strings_end(alt))) {
		x->info = dwarf_section(dwarf_getelf(dwarf), ".debug_info");
		return mod;
	}
	if (dwarf || dwarf_section(dwfl_module_getelf(mod, &bias), ".debug_info"))
		object_complain(o, "its debug information cannot be read");
	object_drop_dwarf(o);
	return NULL;
}

/* Whether the rest of the unit is in a file of its own, which libdw would open by the path that the
 * unit gives, whatever is there. It has lines all the same. */
static bool is_split(Dwarf_Die *cu)
{
	uint8_t type;

	return dwarf_cu_info(cu->cu, NULL, &type, NULL, NULL, NULL, NULL, NULL) ||
	       type == DW_UT_skeleton;
}

static int symbols_look_up(struct object *o, uint64_t address, bool exact,
			   struct symbols_place *out, int max)
{
	struct symbol_index *x = index_of(o);
	uint64_t lookup_at = address - !exact;
	struct symbols_function f;
	Dwarf_Addr bias;
	Dwfl_Module *mod;
	Dwfl_Line *line;
	Dwarf_Die *cu;
	bool split;
	int n = 0;

	memset(&out[0], 0, sizeof(out[0]));
	if (function_of(x, address, exact, &f)) {
		out[0].function = f.name;
		out[0].offset = f.offset;
	}
	mod = x ? dwarf_of(o, x) : NULL;
	if (!mod)
		return 1;
	cu = dwfl_module_addrdie(mod, lookup_at, &bias);
	split = cu && is_split(cu);
	/* libdwfl assumes that code between two pieces of a unit belongs to that unit; this is
	 * wrong, for example, for the C library's _start */
	if (cu && (!split || dwarf_hasattr(cu, DW_AT_ranges) || dwarf_hasattr(cu, DW_AT_low_pc)) &&
	    !dwarf_haspc(cu, lookup_at - bias))
		return 1;
	line = dwfl_module_getsrc(mod, lookup_at);
	if (line) {
		out[0].file = dwfl_lineinfo(line, NULL, &n, NULL, NULL, NULL);
		out[0].line = n > 0 ? (uint32_t)n : 0;
	}
	n = cu && !split ? inlined(x, cu, lookup_at - bias, out, max) : 1;
	if (n > 0)
		return n;
	object_complain(o, "its debug information is damaged");
	object_drop_dwarf(o);
	return 1;
}

struct question {
	uint64_t address;
	bool exact;
	int n, max;
	struct symbols_place places[SYMBOLS_MAX];
};

static void ask(struct object *o, void *args)
{
	struct question *q = args;

	q->n = symbols_look_up(o, q->address, q->exact, q->places, q->max);
	/* the names are in memory when the main loop reads them, also those that libdwfl has mapped
	 * from a file */
	for (int i = 0; i < q->n; i++)
		if (q->places[i].file && strnlen(q->places[i].file, NAME_LEN_MAX) == NAME_LEN_MAX)
			q->places[i].file = NULL;
}

int symbols_find(struct object *o, uint64_t address, bool exact, struct symbols_place *out, int max)
{
	struct question q = { .address = address,
			      .exact = exact,
			      .max = max < SYMBOLS_MAX ? max : SYMBOLS_MAX };

	if (!object_do(o, ask, &q, sizeof(q)))
		return 0;
	memcpy(out, q.places, (size_t)q.n * sizeof(*out));
	return q.n;
}
