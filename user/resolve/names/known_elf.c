/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * known_elf.c - see known_elf.h.
 *
 * The index keeps addresses, hashes and places of names. A name is read from the file again when it
 * is needed, and is used only if its hash is still the same. libtorch_cuda.so has 21 495 handles
 * and 200 000 functions: the index takes 6 MB of memory and the names would take 60.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../proc/elf_read.h"
#include "known_code.h"
#include "known_elf.h"
#include "stub.h"
#include "../../util/table/array.h"
#include "../../../wire/cudatrace.h"

/* Limits; a file that exceeds them has no names. */
#define MAX_FUNCS (2u << 20)
#define MAX_HANDLES (256u << 10)
#define MAX_STUBS (1u << 20)
#define MAX_NAME_BYTES (1ULL << 30) /* all names of a file */
#define NOT_ASKED (-1000000)

struct func {
	uint64_t addr, hash; /* address, and hash of the name that stub_plain() makes */
	uint64_t name_at;
};

struct var {
	uint64_t addr, hash; /* address, and hash of the whole symbol */
	uint64_t name_at;
};

struct known_elf {
	struct elf_file file;
	bool device_code, indexed;
	int index_err;
	struct func *funcs; /* by address */
	struct var *vars;   /* by address */
	uint64_t *names;    /* the functions' hashes, sorted */
	/* hashes of the kernels that have a stub from nvcc, sorted, without duplicates */
	uint64_t *stubs;
	uint32_t nfuncs, nvars, nstubs;
	int kernels; /* result of known_elf_kernels(), or NOT_ASKED */
	char *kernel;
};

static uint64_t hash_of(const char *s, size_t len)
{
	uint64_t h = 0xcbf29ce484222325ULL; /* FNV-1a */

	for (size_t i = 0; i < len; i++)
		h = (h ^ (uint8_t)s[i]) * 0x100000001b3ULL;
	return h;
}

/* ---- the file ---- */

int known_elf_open(struct known_elf **out, int fd)
{
	struct known_elf *e = calloc(1, sizeof(*e));
	int err;

	*out = NULL;
	if (!e) {
		close(fd);
		return -ENOMEM;
	}
	e->kernels = NOT_ASKED;
	err = elf_file_open(&e->file, fd);
	e->file.fd = fd;
	if (err) {
		known_elf_close(e);
		return err;
	}
	e->device_code = code_is_there(&e->file);
	*out = e;
	return 0;
}

void known_elf_close(struct known_elf *e)
{
	int fd;

	if (!e)
		return;
	fd = e->file.fd;
	elf_file_close(&e->file);
	close(fd);
	free(e->funcs);
	free(e->vars);
	free(e->names);
	free(e->stubs);
	free(e->kernel);
	free(e);
}

bool known_elf_has_device_code(const struct known_elf *e)
{
	return e->device_code;
}

bool known_elf_is_fixed(const struct known_elf *e)
{
	return e->file.ehdr.e_type == ET_EXEC;
}

void known_elf_facts(const struct known_elf *e, struct known_elf_facts *facts)
{
	*facts = (struct known_elf_facts){ .device_code = e->device_code,
					   .sections = e->file.nshdr != 0,
					   .symtab = elf_has_section(&e->file, SHT_SYMTAB),
					   .nstubs = e->nstubs,
					   .nhandles = e->nvars };
}

bool known_elf_bias(const struct known_elf *e, const struct target_map *map, uint64_t *bias)
{
	if (!map->exec)
		return false;
	for (int i = 0; i < e->file.nphdr; i++) {
		const Elf64_Phdr *p = &e->file.phdr[i];
		uint64_t first = p->p_offset & ~4095ULL; /* a loader maps whole pages */

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) || map->offset < first ||
		    map->offset - first >= p->p_filesz + (p->p_offset - first))
			continue;
		*bias = map->start - map->offset - (p->p_vaddr - p->p_offset);
		return true;
	}
	return false;
}

/* ---- the index ---- */

struct build {
	struct known_elf *e;
	uint64_t bytes;
	char name[CT_NAME_MAX];
};

/* Makes room for one more element. */
#define room_for(array, n, max) ((n) >= (max) ? -E2BIG : array_room(array, n) ? 0 : -ENOMEM)

static int add_stub(struct build *b, size_t len)
{
	struct known_elf *e = b->e;
	int err = room_for(e->stubs, e->nstubs, MAX_STUBS);

	if (!err)
		e->stubs[e->nstubs++] = hash_of(b->name, len);
	return err;
}

static int on_object(struct build *b, const struct elf_sym *sym, size_t len)
{
	struct known_elf *e = b->e;
	size_t n = sym->name[0] == '_' ? stub_of_handle(sym->name, len, b->name, sizeof(b->name))
				       : 0;
	int err;

	if (!n) {
		n = sym->name[0] == '_' ? stub_of_any(sym->name, len, b->name, sizeof(b->name)) : 0;
		return n ? add_stub(b, n) : 0;
	}
	if (sym->value & 7)
		return 0;
	err = room_for(e->vars, e->nvars, MAX_HANDLES);
	if (err)
		return err;
	e->vars[e->nvars++] = (struct var){ sym->value, hash_of(sym->name, len), sym->name_at };
	return add_stub(b, n);
}

static int on_symbol(void *ctx, const struct elf_sym *sym)
{
	struct build *b = ctx;
	struct known_elf *e = b->e;
	size_t len, n;
	int err;

	len = strnlen(sym->name, ELF_NAME_MAX);
	b->bytes += len + 1;
	if (b->bytes > MAX_NAME_BYTES)
		return -E2BIG;
	if (!sym->value || len >= ELF_NAME_MAX)
		return 0;
	if (sym->type == STT_OBJECT)
		return sym->defined ? on_object(b, sym, len) : 0;
	/* an undefined function with an address is the entry that a program with fixed addresses
	 * has for it; the program passes this address */
	n = stub_of_any(sym->name, len, b->name, sizeof(b->name));
	if (n)
		return add_stub(b, n);
	n = stub_plain(sym->name, len, b->name, sizeof(b->name));
	if (!n)
		return 0;
	err = room_for(e->funcs, e->nfuncs, MAX_FUNCS);
	if (!err)
		e->funcs[e->nfuncs++] =
			(struct func){ sym->value, hash_of(b->name, n), sym->name_at };
	return err;
}

static int by_addr(const void *a, const void *b)
{
	/* the first word of func and var, or a hash */
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static int sort_index(struct known_elf *e)
{
	uint32_t n = 0;

	if (e->nfuncs) {
		e->names = malloc(e->nfuncs * sizeof(*e->names));
		if (!e->names)
			return -ENOMEM;
		for (uint32_t i = 0; i < e->nfuncs; i++)
			e->names[i] = e->funcs[i].hash;
		qsort(e->names, e->nfuncs, sizeof(*e->names), by_addr);
		qsort(e->funcs, e->nfuncs, sizeof(*e->funcs), by_addr);
	}
	if (e->nvars)
		qsort(e->vars, e->nvars, sizeof(*e->vars), by_addr);
	if (e->nstubs)
		qsort(e->stubs, e->nstubs, sizeof(*e->stubs), by_addr);
	for (uint32_t i = 0; i < e->nstubs; i++)
		if (!n || e->stubs[n - 1] != e->stubs[i])
			e->stubs[n++] = e->stubs[i];
	e->nstubs = n;
	return 0;
}

int known_elf_index(struct known_elf *e)
{
	uint32_t types = 1 << STT_FUNC | 1 << STT_OBJECT;
	struct build *b;
	int err;

	if (e->indexed)
		return e->index_err;
	b = calloc(1, sizeof(*b));
	if (!b)
		return -ENOMEM;
	b->e = e;
	/* .symtab has all symbols of .dynsym */
	err = elf_has_section(&e->file, SHT_SYMTAB)
		      ? elf_symbols_of(&e->file, SHT_SYMTAB, types, on_symbol, b)
		      : elf_symbols_of(&e->file, SHT_DYNSYM, types, on_symbol, b);
	free(b);
	if (!err)
		err = sort_index(e);
	/* with half an index, an ambiguous name would look certain */
	if (err)
		e->nfuncs = e->nvars = e->nstubs = 0;
	else if (!e->nfuncs && !e->nvars)
		err = -ENOENT;
	e->indexed = true;
	e->index_err = err;
	return err;
}

/* ---- names ---- */

/* Reads a symbol's name again. Returns its length; 0: it cannot be read. */
static size_t name_at(const struct known_elf *e, uint64_t at, char *buf)
{
	size_t have = 0;

	while (have < ELF_NAME_MAX && at + have < e->file.size) {
		size_t len = ELF_NAME_MAX - have < 1024 ? ELF_NAME_MAX - have : 1024;
		char *nul;

		if (len > e->file.size - at - have)
			len = e->file.size - at - have;
		if (elf_read(&e->file, buf + have, len, at + have))
			return 0;
		nul = memchr(buf + have, '\0', len);
		if (nul)
			return (size_t)(nul - buf);
		have += len;
	}
	return 0;
}

static bool in_set(const uint64_t *set, uint32_t n, const char *name, size_t len)
{
	uint64_t h = hash_of(name, len);

	return n && bsearch(&h, set, n, sizeof(h), by_addr);
}

static bool has_stub(const struct known_elf *e, const char *kernel, size_t len)
{
	return in_set(e->stubs, e->nstubs, kernel, len);
}

static bool has_func(const struct known_elf *e, const char *name, size_t len)
{
	return in_set(e->names, e->nfuncs, name, len);
}

/* Returns the first element with at least this address. */
static uint32_t lower(const void *array, uint32_t n, size_t size, uint64_t addr)
{
	uint32_t lo = 0, hi = n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (*(const uint64_t *)((const char *)array + mid * size) < addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Finds the kernel's name from one symbol at the address of a host function. *stub: nvcc made a
 * stub for a kernel of that name. */
static size_t func_kernel(const struct known_elf *e, const struct func *f, char *out, bool *stub)
{
	char symbol[ELF_NAME_MAX];
	size_t len = name_at(e, f->name_at, symbol), n;

	*stub = false;
	if (!len)
		return 0;
	n = stub_plain(symbol, len, out, CT_NAME_MAX);
	if (!n || hash_of(out, n) != f->hash)
		return 0; /* the file has changed */
	*stub = has_stub(e, out, n);
	if (*stub)
		return n;
	n = stub_of_clang(symbol, len, out, CT_NAME_MAX);
	if (n) {
		*stub = true;
		return n;
	}
	/* extern "C", or a name that exists only on the host: a template with an extended lambda */
	memcpy(out, symbol, len + 1);
	return len;
}

size_t known_elf_stub(struct known_elf *e, uint64_t addr, char *out, size_t size)
{
	char best[CT_NAME_MAX] = "", name[CT_NAME_MAX];
	bool best_stub = false, clash = false;
	size_t best_len = 0;

	if (known_elf_index(e))
		return 0;
	/* several symbols at one address: aliases, or functions that the linker merged because they
	 * are equal */
	for (uint32_t i = lower(e->funcs, e->nfuncs, sizeof(*e->funcs), addr);
	     i < e->nfuncs && e->funcs[i].addr == addr; i++) {
		bool stub;
		size_t n = func_kernel(e, &e->funcs[i], name, &stub);

		if (!n)
			return 0;
		if (best_len && stub == best_stub && (n != best_len || memcmp(name, best, n)))
			clash = true;
		if (best_len && stub <= best_stub)
			continue;
		clash = false;
		best_len = n;
		best_stub = stub;
		memcpy(best, name, n + 1);
	}
	if (clash || !best_len || best_len >= size || !stub_is_name(best, best_len))
		return 0;
	memcpy(out, best, best_len + 1);
	return best_len;
}

uint32_t known_elf_handles(const struct known_elf *e)
{
	return e->nvars;
}

uint64_t known_elf_handle_addr(const struct known_elf *e, uint32_t i)
{
	return e->vars[i].addr;
}

size_t known_elf_handle(struct known_elf *e, uint32_t i, char *out, size_t size, bool *sure)
{
	char symbol[ELF_NAME_MAX], c[CT_NAME_MAX];
	size_t len = name_at(e, e->vars[i].name_at, symbol), n, nc;
	bool cpp;

	*sure = false;
	if (!len || hash_of(symbol, len) != e->vars[i].hash)
		return 0;
	n = stub_of_handle(symbol, len, out, size);
	if (!n || !stub_is_name(out, n))
		return 0;
	/* The stub's name is mangled even if the kernel's is not, because it is extern "C". The
	 * host function's symbol shows which case it is. */
	cpp = has_func(e, out, n);
	nc = stub_extern_c(out, n, c, sizeof(c));
	if (nc && has_func(e, c, nc)) {
		if (cpp)
			return 0;
		memcpy(out, c, nc + 1);
		return nc;
	}
	*sure = cpp;
	return n;
}

/* ---- device code ---- */

int known_elf_kernels(struct known_elf *e, char *out, size_t size)
{
	char name[CT_NAME_MAX];

	if (e->kernels == NOT_ASKED) {
		e->kernels = code_kernels(&e->file, name);
		if (e->kernels == 1)
			e->kernel = strdup(name);
	}
	if (size)
		out[0] = '\0';
	if (e->kernels == 1 && e->kernel && strlen(e->kernel) < size)
		strcpy(out, e->kernel);
	return e->kernels;
}
