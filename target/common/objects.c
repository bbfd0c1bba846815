/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * objects.c - see objects.h. Reads tables in pieces of 64 KiB, because each read is a system call.
 * Keeps pages of words, because relocations are in the order of their symbols, not of their addresses.
 */
#include <elf.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "objects.h"

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#define RELOC_CALL R_X86_64_JUMP_SLOT
#define RELOC_ADDRESS R_X86_64_GLOB_DAT
#define RELOC_DATA R_X86_64_64
#else
#define MACHINE EM_AARCH64
#define RELOC_CALL R_AARCH64_JUMP_SLOT
#define RELOC_ADDRESS R_AARCH64_GLOB_DAT
#define RELOC_DATA R_AARCH64_ABS64
#endif
#define SEGMENTS_MAX 64
#define DYNAMIC_MAX 512
#define RELOCS_MAX 16000000ULL
#define SYMBOLS_MAX 8000000U
#define CHAIN_MAX 65536 /* symbols of one bucket */
#define PIECE 65536ULL

/* ---- pieces of memory ---- */

struct window {
	__u64 lo, n, piece;
	__u8 bytes[PIECE];
};

static struct window *window_open(__u64 piece)
{
	struct window *w = malloc(sizeof(*w));

	if (w) {
		w->lo = w->n = 0;
		w->piece = piece;
	}
	return w;
}

/* Returns the n bytes at `at` in the window, or NULL if they cannot be read. `end`: bytes from here
 * on are not read ahead. */
static const void *look(struct window *w, __u64 at, size_t n, __u64 end)
{
	if (at >= w->lo && at + n <= w->lo + w->n)
		return w->bytes + (at - w->lo);
	w->n = 0;
	if (at + n > end || at + n < at)
		return NULL;
	for (__u64 bytes = end - at < w->piece ? end - at : w->piece;; bytes = n) {
		if (!text_read(at, w->bytes, bytes)) {
			w->lo = at;
			w->n = bytes;
			return w->bytes;
		}
		if (bytes == n)
			return NULL; /* not even n bytes can be read */
	}
}

/* ---- the object ---- */

static bool is_header(const Elf64_Ehdr *e)
{
	return !memcmp(e->e_ident, ELFMAG, SELFMAG) && e->e_ident[EI_CLASS] == ELFCLASS64 &&
	       (e->e_type == ET_DYN || e->e_type == ET_EXEC) && e->e_machine == MACHINE &&
	       e->e_phentsize == sizeof(Elf64_Phdr) && e->e_phnum && e->e_phnum <= SEGMENTS_MAX;
}

/* glibc has replaced the values of the file by addresses; other loaders have not. */
static __u64 address_of(const struct object *o, __u64 value)
{
	return value < o->base ? value + o->base : value;
}

/* Returns the number of entries. */
static size_t get_dynamic(const struct object *o, Elf64_Dyn d[DYNAMIC_MAX])
{
	size_t n = o->dynamic_bytes / sizeof(*d);

	if (n > DYNAMIC_MAX)
		n = DYNAMIC_MAX;
	if (text_look(o->dynamic, d, n * sizeof(*d)))
		return 0;
	for (size_t i = 0; i < n; i++)
		if (d[i].d_tag == DT_NULL)
			return i;
	return n;
}

static void read_dynamic(struct object *o)
{
	__u64 relative = 0, rela = 0, rela_bytes = 0, calls = 0, calls_bytes = 0;
	Elf64_Dyn d[DYNAMIC_MAX];
	size_t n = get_dynamic(o, d);

	for (size_t i = 0; i < n; i++)
		switch (d[i].d_tag) {
		case DT_SYMTAB: o->symbols = address_of(o, d[i].d_un.d_ptr); break;
		case DT_STRTAB: o->strings = address_of(o, d[i].d_un.d_ptr); break;
		case DT_STRSZ: o->strings_bytes = d[i].d_un.d_val; break;
		case DT_GNU_HASH: o->hash = address_of(o, d[i].d_un.d_ptr); break;
		case DT_RELA: rela = address_of(o, d[i].d_un.d_ptr); break;
		case DT_RELASZ: rela_bytes = d[i].d_un.d_val; break;
		case DT_RELACOUNT: relative = d[i].d_un.d_val; break;
		case DT_JMPREL: calls = address_of(o, d[i].d_un.d_ptr); break;
		case DT_PLTRELSZ: calls_bytes = d[i].d_un.d_val; break;
		default: break;
		}
	rela_bytes /= sizeof(Elf64_Rela);
	calls_bytes /= sizeof(Elf64_Rela);
	if (rela && relative < rela_bytes && rela_bytes < RELOCS_MAX)
		o->relocs[0] = (struct object_relocs){ rela + relative * sizeof(Elf64_Rela),
						       rela_bytes - relative };
	if (calls && calls_bytes < RELOCS_MAX)
		o->relocs[1] = (struct object_relocs){ calls, calls_bytes };
}

struct hash_head {
	__u32 buckets, first, bloom, shift;
};

static bool read_head(const struct object *o, struct hash_head *h)
{
	return o->hash && !text_look(o->hash, h, sizeof(*h)) && h->buckets &&
	       h->buckets < SYMBOLS_MAX && h->bloom && h->bloom < SYMBOLS_MAX &&
	       !(h->bloom & (h->bloom - 1)) && h->first < SYMBOLS_MAX;
}

static __u64 buckets_at(const struct object *o, const struct hash_head *h)
{
	return o->hash + sizeof(*h) + h->bloom * 8ULL;
}

static __u64 chain_at(const struct object *o, const struct hash_head *h, __u32 symbol)
{
	return buckets_at(o, h) + h->buckets * 4ULL + (symbol - h->first) * 4ULL;
}

bool object_read(const struct text_map *m, struct object *o)
{
	struct hash_head h;
	Elf64_Phdr p[SEGMENTS_MAX];
	const Elf64_Phdr *dynamic = NULL;
	__u64 program = getauxval(AT_PHDR), first = ~0ULL, last = 0;
	Elf64_Ehdr e;

	*o = (struct object){ 0 };
	if (m->offset || !m->ino || !m->read || !m->is_private || m->hi - m->lo < sizeof(e) ||
	    text_look(m->lo, &e, sizeof(e)) || !is_header(&e) ||
	    text_look(m->lo + e.e_phoff, p, e.e_phnum * sizeof(*p)))
		return false;
	for (int i = 0; i < e.e_phnum; i++) {
		if (p[i].p_type == PT_DYNAMIC)
			dynamic = &p[i];
		if (p[i].p_type != PT_LOAD)
			continue;
		if (first == ~0ULL)
			first = p[i].p_vaddr & ~4095ULL;
		if (p[i].p_vaddr + p[i].p_memsz > last)
			last = p[i].p_vaddr + p[i].p_memsz;
	}
	if (!dynamic || first == ~0ULL || last <= first)
		return false;
	o->base = m->lo - first;
	o->lo = m->lo;
	o->hi = o->base + last;
	o->is_main = program >= o->lo && program < o->hi;
	o->dynamic = o->base + dynamic->p_vaddr;
	o->dynamic_bytes = dynamic->p_memsz;
	read_dynamic(o);
	if (read_head(o, &h)) {
		o->hashes = chain_at(o, &h, h.first);
		o->hashed = h.first;
	}
	return o->symbols && o->strings;
}

bool object_find(const struct text_maps *maps, __u64 address, struct object *o)
{
	const struct text_map *m = text_maps_find(maps, address);

	for (; m && m >= maps->maps; m--)
		if (object_read(m, o))
			return address >= o->lo && address < o->hi;
	return false;
}

/* ---- the loader's list ---- */

#define LOADED_MAX 100000
#define LOADED_TRIES 3
#define PATH_BYTES 4096

/* Reads a text up to its end, page by page: what follows may not be mapped. */
static bool read_path(__u64 at, char path[PATH_BYTES])
{
	for (size_t n = 0, part; n < PATH_BYTES; n += part) {
		part = 4096 - (at + n) % 4096;
		if (part > PATH_BYTES - n)
			part = PATH_BYTES - n;
		if (text_read(at + n, path + n, part))
			return false;
		if (memchr(path + n, 0, part))
			return true;
	}
	return false;
}

/* Returns whether all of the list was read: each object's predecessor is the one that we come from. */
static bool walk(bool (*f)(void *ctx, const struct link_map *), void *ctx)
{
	__u64 at = (__u64)(uintptr_t)_r_debug.r_map, before = 0;
	struct link_map m;

	for (int i = 0; at && i < LOADED_MAX; i++) {
		if (text_read(at, &m, sizeof(m)) || (__u64)(uintptr_t)m.l_prev != before ||
		    !f(ctx, &m))
			return false;
		before = at;
		at = (__u64)(uintptr_t)m.l_next;
	}
	return true;
}

struct loaded {
	void (*f)(void *ctx, const char *name);
	void *ctx;
};

static bool one_loaded(void *ctx, const struct link_map *m)
{
	struct loaded *l = ctx;
	char path[PATH_BYTES];

	if (!read_path((__u64)(uintptr_t)m->l_name, path))
		return false;
	l->f(l->ctx, path);
	return true;
}

void objects_loaded(void (*f)(void *ctx, const char *name), void *ctx)
{
	struct loaded l = { f, ctx };

	for (int i = 0; i < LOADED_TRIES && !walk(one_loaded, &l); i++)
		;
}

/* The last object: what is loaded later comes behind it. */
struct last {
	__u64 at;
	struct link_map m;
};

static bool note_last(void *ctx, const struct link_map *m)
{
	struct last *l = ctx;

	l->at = l->m.l_next ? (__u64)(uintptr_t)l->m.l_next : (__u64)(uintptr_t)_r_debug.r_map;
	l->m = *m;
	return true;
}

/* Is it in the list, and still the last one? */
static bool is_last(const struct last *l)
{
	struct link_map m, before;

	return l->at && !text_read(l->at, &m, sizeof(m)) && !memcmp(&m, &l->m, sizeof(m)) &&
	       !m.l_next && m.l_prev &&
	       !text_read((__u64)(uintptr_t)m.l_prev, &before, sizeof(before)) &&
	       (__u64)(uintptr_t)before.l_next == l->at;
}

__u64 objects_state(void)
{
	static struct last last;
	static __u64 state;

	if (is_last(&last))
		return state;
	last = (struct last){ 0 };
	if (!walk(note_last, &last))
		last.at = 0;
	return ++state;
}

/* ---- words ---- */

static bool use_of(const Elf64_Rela *r, enum object_use *use)
{
	switch (ELF64_R_TYPE(r->r_info)) {
	case RELOC_CALL: *use = OBJECT_CALL; return true;
	case RELOC_ADDRESS: *use = OBJECT_ADDRESS; return true;
	case RELOC_DATA: *use = OBJECT_DATA; return !r->r_addend && ELF64_R_SYM(r->r_info);
	default: return false;
	}
}

void object_words(const struct object *o, bool calls, object_word_fn f, void *ctx)
{
	struct window *relocs = window_open(PIECE);

	for (int list = calls; list < 2 && relocs; list++) {
		__u64 end = o->relocs[list].at + o->relocs[list].n * sizeof(Elf64_Rela);

		for (__u64 at = o->relocs[list].at; at < end; at += sizeof(Elf64_Rela)) {
			const Elf64_Rela *r = look(relocs, at, sizeof(*r), end);
			struct object_word w;

			if (!r)
				break;
			w.at = o->base + r->r_offset;
			if (!use_of(r, &w.use) || w.at % 8 || w.at < o->lo || w.at >= o->hi)
				continue;
			if (text_look(w.at, &w.value, 8))
				continue;
			w.symbol = (__u32)ELF64_R_SYM(r->r_info);
			if (!f(ctx, o, &w))
				goto out;
		}
	}
out:
	free(relocs);
}

/* ---- symbols ---- */

/* Returns the number of symbols: the last symbol is at the end of the last chain. 0: not known. */
static __u32 count_symbols(const struct object *o, struct window *w)
{
	__u32 last = 0, word = 0;
	struct hash_head h;
	__u64 at, end;

	if (!read_head(o, &h))
		return 0;
	at = buckets_at(o, &h);
	end = at + h.buckets * 4ULL;
	for (; at < end; at += 4) {
		const __u32 *bucket = look(w, at, 4, end);

		if (!bucket)
			return 0;
		if (*bucket > last)
			last = *bucket;
	}
	if (last < h.first || last >= SYMBOLS_MAX)
		return h.first;
	for (int i = 0; i < CHAIN_MAX && !(word & 1); i++, last++)
		if (text_look(chain_at(o, &h, last), &word, 4))
			return 0;
	return last;
}

/* Calls f for each symbol that the object defines, until f returns false. */
typedef bool (*symbol_fn)(void *ctx, const struct object *, const Elf64_Sym *, __u32 number);
static void each_symbol(const struct object *o, symbol_fn f, void *ctx)
{
	struct window *w = window_open(PIECE);
	__u32 n = w ? count_symbols(o, w) : 0;
	__u64 end = o->symbols + n * sizeof(Elf64_Sym);

	for (__u32 i = 1; i < n; i++) {
		const Elf64_Sym *s = look(w, o->symbols + i * sizeof(*s), sizeof(*s), end);

		if (!s)
			break;
		if (s->st_shndx && s->st_shndx < SHN_LORESERVE && !f(ctx, o, s, i))
			break;
	}
	free(w);
}

struct functions {
	object_function_fn f;
	void *ctx;
};

static bool one_function(void *ctx, const struct object *o, const Elf64_Sym *s, __u32 number)
{
	const struct functions *fs = ctx;

	return ELF64_ST_TYPE(s->st_info) != STT_FUNC ||
	       fs->f(fs->ctx, o, o->base + s->st_value, number);
}

void object_functions(const struct object *o, object_function_fn f, void *ctx)
{
	struct functions fs = { f, ctx };

	each_symbol(o, one_function, &fs);
}

static bool read_text(const struct object *o, __u32 at, char name[OBJECT_NAME])
{
	__u64 n = at < o->strings_bytes ? o->strings_bytes - at : 0;

	/* read little first: most names are short, and the table may end where the mapping ends */
	for (__u64 piece = 128; n; piece = OBJECT_NAME) {
		__u64 bytes = n < piece ? n : piece;

		if (text_look(o->strings + at, name, bytes))
			return false;
		if (memchr(name, 0, bytes))
			return true;
		if (bytes == n || bytes == OBJECT_NAME)
			return false;
	}
	return false;
}

bool object_name(const struct object *o, __u32 symbol, char name[OBJECT_NAME])
{
	Elf64_Sym s;

	return symbol && symbol < SYMBOLS_MAX &&
	       !text_look(o->symbols + symbol * sizeof(s), &s, sizeof(s)) && s.st_name &&
	       read_text(o, s.st_name, name);
}

__u32 object_hash(const char *name)
{
	__u32 h = 5381;

	for (; *name; name++)
		h = h * 33 + (__u8)*name;
	return h;
}

bool object_hash_of(const struct object *o, __u32 symbol, __u32 *hash)
{
	return o->hashes && symbol >= o->hashed && symbol < SYMBOLS_MAX &&
	       !text_look(o->hashes + (symbol - o->hashed) * 4ULL, hash, sizeof(*hash));
}

static bool is_defined_as(const struct object *o, __u32 symbol, const char *name)
{
	char text[OBJECT_NAME];
	Elf64_Sym s;

	if (text_look(o->symbols + symbol * sizeof(s), &s, sizeof(s)))
		return true;
	return s.st_shndx && read_text(o, s.st_name, text) && !strcmp(text, name);
}

bool object_may_define(const struct object *o, const char *name, __u32 hash)
{
	struct hash_head h;
	__u32 symbol, word = 0;
	__u64 bloom;

	if (!read_head(o, &h) ||
	    text_look(o->hash + sizeof(h) + hash / 64 % h.bloom * 8ULL, &bloom, 8))
		return true;
	if (!(bloom >> hash % 64 & bloom >> (hash >> (h.shift & 31)) % 64 & 1))
		return false;
	if (text_look(buckets_at(o, &h) + hash % h.buckets * 4ULL, &symbol, 4))
		return true;
	if (symbol < h.first)
		return false;
	for (int i = 0; i < CHAIN_MAX && symbol < SYMBOLS_MAX && !(word & 1); i++, symbol++) {
		if (text_look(chain_at(o, &h, symbol), &word, 4))
			return true;
		if ((word | 1) == (hash | 1) && is_defined_as(o, symbol, name))
			return true;
	}
	return false;
}

bool object_soname(const struct object *o, char name[OBJECT_NAME])
{
	Elf64_Dyn d[DYNAMIC_MAX];
	size_t n = get_dynamic(o, d);

	for (size_t i = 0; i < n; i++)
		if (d[i].d_tag == DT_SONAME)
			return read_text(o, (__u32)d[i].d_un.d_val, name) && *name;
	return false;
}

bool object_needs(const struct object *o, const struct object *other)
{
	char name[OBJECT_NAME], needed[OBJECT_NAME];
	Elf64_Dyn d[DYNAMIC_MAX];
	size_t n;

	if (o->lo == other->lo)
		return true;
	n = object_soname(other, name) ? get_dynamic(o, d) : 0;
	for (size_t i = 0; i < n; i++)
		if (d[i].d_tag == DT_NEEDED && read_text(o, (__u32)d[i].d_un.d_val, needed) &&
		    !strcmp(needed, name))
			return true;
	return false;
}

/* ---- virtual tables ---- */

struct finding {
	struct object_tables *t;
	unsigned int room;
};

static bool one_table(void *ctx, const struct object *o, const Elf64_Sym *s, __u32 number)
{
	struct finding *f = ctx;
	char prefix[4];

	(void)number;
	if (ELF64_ST_TYPE(s->st_info) != STT_OBJECT || s->st_size < 16 || s->st_size > 1 << 20 ||
	    s->st_name + 4ULL > o->strings_bytes || text_look(o->strings + s->st_name, prefix, 4) ||
	    memcmp(prefix, "_ZTV", 4))
		return true;
	if (f->t->n == f->room) {
		void *more = realloc(f->t->tables, (f->room + 4096) * sizeof(*f->t->tables));

		if (!more)
			return false;
		f->t->tables = more;
		f->room += 4096;
	}
	f->t->tables[f->t->n++] =
		(struct object_table){ o->base + s->st_value, o->base + s->st_value + s->st_size };
	return true;
}

static int by_address(const void *a, const void *b)
{
	const struct object_table *x = a, *y = b;

	return x->lo < y->lo ? -1 : x->lo > y->lo;
}

void object_tables_read(const struct object *o, struct object_tables *t)
{
	struct finding f = { .t = t };

	*t = (struct object_tables){ 0 };
	each_symbol(o, one_table, &f);
	if (t->n)
		qsort(t->tables, t->n, sizeof(*t->tables), by_address);
}

void object_tables_free(struct object_tables *t)
{
	free(t->tables);
	*t = (struct object_tables){ 0 };
}

bool object_tables_hold(const struct object_tables *t, __u64 address)
{
	unsigned int lo = 0, hi = t->n;

	while (lo < hi) {
		unsigned int mid = (lo + hi) / 2;

		if (address < t->tables[mid].lo)
			hi = mid;
		else if (address >= t->tables[mid].hi)
			lo = mid + 1;
		else
			return true;
	}
	return false;
}
