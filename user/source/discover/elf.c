/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * elf.c - which functions of the table an ELF file defines, where they are, and of which version
 * they come.
 *
 * All symbols that begin as those of a traced library do are looked up in the table: those of .dynsym (shared
 * libraries) and those of .symtab, where static libcudart lives, LOCAL and HIDDEN. The version
 * decides which row a symbol gets, and is itself told by the symbols (api/domains.def), so the names
 * are kept until all have been seen.
 *
 * Must not know processes, paths or probes.
 */
#include "elf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../api/api.h"
#include "../../proc/elf_read.h"
#include "../../flow/plan.h"
#include "../symbols/many.h"
#include "../symbols/stripped.h"
#include "../../util/now.h"
#include "../../util/table/array.h"

#define FNV_PRIME 0x100000001b3ULL

#define MAX_FOUND 65536 /* definitions of one file: CUDA's own have fewer than a thousand */

struct found {
	uint64_t offset;
	uint32_t size;
	uint32_t name; /* in scan.names */
	bool indirect;
};

/* The state of one scan: what was found, until the version is known. */
struct scan {
	const struct elf_file *file;
	struct elf_scan *out;
	const uint64_t *capture;
	struct found *found;
	size_t nfound;
	char *names;
	size_t names_len, names_cap;
	size_t nprobes;	   /* out->probes, before one is left for each offset */
	struct many *many; /* made when there is a function of a row for many */
	uint32_t imports;  /* stripped_imported() */
	uint64_t indirect[PLAN_WORDS], shared[PLAN_WORDS]; /* those in out->silent */
	struct {
		bool there, inlined;
		int version; /* what the symbols say, then what is taken */
	} domains[API_DOMAIN_END];
};

static int keep(struct scan *s, uint64_t offset, const struct elf_sym *sym)
{
	size_t len = strlen(sym->name) + 1;

	if (s->nfound == MAX_FOUND)
		return -EBADMSG;
	if (!array_room(s->found, s->nfound) ||
	    !array_fit(s->names, s->names_cap, s->names_len + len))
		return -ENOMEM;
	memcpy(s->names + s->names_len, sym->name, len);
	s->found[s->nfound++] = (struct found){
		.offset = offset,
		.size = sym->size <= UINT32_MAX ? sym->size : 0,
		.name = s->names_len,
		.indirect = sym->type == STT_GNU_IFUNC,
	};
	s->names_len += len;
	return 0;
}

static int elf_on_symbol(void *ctx, const struct elf_sym *sym)
{
	struct scan *s = ctx;
	bool per_thread;
	enum api_domain domain;
	uint64_t offset;
	int func = api_lookup(sym->name, 0, &per_thread), version, err;

	if (!sym->defined && stripped_imported(&s->imports, sym->name))
		return 0;
	if (func < 0) {
		for (int d = 0; d < API_DOMAIN_END; d++)
			if (api_domains[d].inlined && sym->defined &&
			    !strcmp(sym->name, api_domains[d].inlined))
				s->domains[d].inlined = true;
		return 0;
	}
	if (!sym->defined) {
		/* An importer is not a definer: its value is 0 or a PLT stub's. */
		s->out->imports_cuda = true;
		return 0;
	}
	if (sym->type != STT_FUNC && sym->type != STT_GNU_IFUNC)
		return 0;
	offset = elf_code_offset(s->file, sym->value);
	if (!offset)
		return 0;
	domain = (enum api_domain)api_funcs[func].domain;
	s->domains[domain].there = true;
	version = api_domain_since(domain, sym->name);
	if (version > s->domains[domain].version)
		s->domains[domain].version = version;
	if (api_funcs[func].named && (!s->capture || plan_has(s->capture, func))) {
		if (!s->many)
			s->many = many_open();
		err = s->many ? many_add(s->many, &api_funcs[func], sym->name) : -ENOMEM;
		if (err)
			return err;
	}
	return keep(s, offset, sym);
}

static int by_offset(const void *a, const void *b)
{
	const struct elf_probe *x = a, *y = b;

	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	if (x->func != y->func)
		return x->func < y->func ? -1 : 1;
	return x->per_thread - y->per_thread;
}

static int add_probe(struct scan *s, const struct elf_probe *probe)
{
	struct elf_probe *p = array_add(s->out->probes, s->nprobes);

	if (!p)
		return -ENOMEM;
	*p = *probe;
	return 0;
}

static int add_silent(struct scan *s, uint16_t func, uint16_t as)
{
	uint64_t *known = as == ELF_INDIRECT ? s->indirect : s->shared;
	struct elf_silent *f;

	if (plan_has(known, func))
		return 0;
	f = array_add(s->out->silent, s->out->nsilent);
	if (!f)
		return -ENOMEM;
	*f = (struct elf_silent){ func, as };
	plan_add(known, func);
	return 0;
}

static bool out_of_time(const struct scan *s)
{
	return s->file->until_ns && now_ns() > s->file->until_ns;
}

/* A function of a row for many has probes at its entry and where it returns, or none. */
static int add_operator(struct scan *s, const struct elf_probe *entry, const char *name)
{
	const struct api_func *f = &api_funcs[entry->func];
	struct elf_probe p = *entry;
	uint64_t at[RETURNS_MAX];
	int err, n = many_returns(s->file, p.offset, p.size, at);

	p.symbol = (uint16_t)many_symbol(s->many, f, name);
	p.tensors = many_tensors(p.symbol);
	for (int i = 0; i < n; i++)
		if (elf_can_probe(s->file->fd, at[i]) <= 0)
			n = 0;
	if (!n || !p.symbol || elf_can_probe(s->file->fd, p.offset) <= 0) {
		s->out->nunseen++;
		return 0;
	}
	err = add_probe(s, &p);
	p.ends = true;
	p.tensors = 0;
	p.size = 0;
	for (int i = 0; i < n && !err; i++) {
		p.offset = at[i];
		err = add_probe(s, &p);
	}
	return err;
}

/* Looks the kept names up again, now for the version. */
static int look_up(struct scan *s, const uint64_t *capture)
{
	int err = 0;

	for (size_t i = 0; i < s->nfound && !err; i++) {
		bool per_thread = false;
		const char *name = s->names + s->found[i].name;
		struct elf_probe p = { .offset = s->found[i].offset, .size = s->found[i].size };
		int func = api_lookup(name, 0, &per_thread);

		if (func >= 0)
			func = api_lookup(name, s->domains[api_funcs[func].domain].version,
					  &per_thread);
		if (func < 0 || s->domains[api_funcs[func].domain].inlined)
			continue;
		p.func = (uint16_t)func;
		p.per_thread = per_thread;
		p.query = api_funcs[func].class == API_QUERY;
		if (s->found[i].indirect) {
			if (!capture || plan_has(capture, func))
				err = add_silent(s, (uint16_t)func, ELF_INDIRECT);
			continue;
		}
		if (api_funcs[func].named && (!capture || plan_has(capture, func)) && s->many)
			err = out_of_time(s) ? -ETIME : add_operator(s, &p, name);
		else
			err = add_probe(s, &p);
	}
	return err;
}

/* Where the ends of ranges are not seen, their begins are of no use. */
static void drop_endless(struct scan *s)
{
	bool ends[API_DOMAIN_END] = { false };
	size_t n = 0;

	for (size_t i = 0; i < s->nprobes; i++) {
		const struct api_func *f = &api_funcs[s->out->probes[i].func];

		ends[f->domain] |= f->layer == API_LAYER_POP;
	}
	for (size_t i = 0; i < s->nprobes; i++) {
		const struct api_func *f = &api_funcs[s->out->probes[i].func];

		if (f->layer != API_LAYER_PUSH || !api_domains[f->domain].own_ranges ||
		    ends[f->domain])
			s->out->probes[n++] = s->out->probes[i];
	}
	s->nprobes = n;
}

/* The functions whose code is that of probes[i], which is the first within the plan's choice. */
static int find_sharers(struct scan *s, size_t i)
{
	const struct elf_probe *all = s->out->probes, p = all[i];
	size_t from = i, to = i;
	int err = 0;

	while (from && all[from - 1].offset == p.offset)
		from--;
	while (to < s->nprobes && all[to].offset == p.offset)
		to++;
	for (size_t k = from; k < to && !err && !p.ends; k++)
		if (all[k].func != p.func && !all[k].ends)
			err = add_silent(s, all[k].func, p.func);
	return err;
}

/* Sorts the probes, and leaves one for each offset. */
static int elf_choose(struct scan *s, const uint64_t *capture)
{
	struct elf_scan *out = s->out;
	uint64_t last = 0, seen = 0; /* no offset is 0 */
	int err = look_up(s, capture);

	if (err || !s->nprobes)
		return err;
	drop_endless(s);
	qsort(out->probes, s->nprobes, sizeof(*out->probes), by_offset);
	for (size_t i = 0; i < s->nprobes; i++) {
		const struct elf_probe p = out->probes[i];

		out->ndefined += p.offset != seen && !p.ends;
		seen = p.offset;
		if (p.offset == last || (capture && !plan_has(capture, p.func)))
			continue;
		last = p.offset;
		err = find_sharers(s, i);
		if (err)
			return err;
		/* nprobes <= i: what is before this offset is not looked at any more */
		out->probes[out->nprobes++] = p;
	}
	return 0;
}

/*
 * The soname says the major version, the symbols say more as long as they agree. libcuda.so.1
 * has the same name in all versions. What is said of the file is said of the first library that
 * it holds.
 */
static void find_versions(struct scan *s, const char *soname)
{
	struct elf_scan *out = s->out;
	int first = API_DOMAIN_END;

	for (int d = API_DOMAIN_END - 1; d >= 0; d--) {
		int major = api_domain_version((enum api_domain)d, soname);
		int *version = &s->domains[d].version;

		if (!s->domains[d].there)
			continue;
		first = d;
		out->version_from = *version ? "symbols" : "";
		if (major && *version / 1000 != major / 1000) {
			*version = major;
			out->version_from = "soname";
		}
		out->version = *version;
	}
	out->domain = (uint8_t)first;
	out->role = !api_domains[first].linked || (int)api_domain_of_file(soname) == first
			    ? ELF_LIBRARY
			    : ELF_STATIC;
}

static void find_sections(const struct elf_file *f, struct elf_scan *out)
{
	out->has_symtab = elf_has_section(f, SHT_SYMTAB);
	for (uint32_t i = 0; i < f->nshdr; i++) {
		const char *name = elf_section_name(f, i);

		if (!strcmp(name, ".nv_fatbin") || !strcmp(name, "__nv_relfatbin") ||
		    !strcmp(name, ".nvFatBinSegment"))
			out->has_device_code = true;
	}
}

/* The beginnings of all names that are asked for. Made once; two threads that make it write the same. */
static const char *const *asked(void)
{
	static const char *all[STRIPPED_IMPORTS + API_DOMAIN_END * API_DOMAIN_SYMBOLS + 1];
	static bool made;
	const char *const *domains = api_domain_symbols();
	size_t n = 0;

	for (; !made && n < STRIPPED_IMPORTS; n++)
		all[n] = stripped_imports[n];
	for (int i = 0; !made && domains[i]; i++)
		all[n++] = domains[i];
	made = true;
	return all;
}

static int add_unnamed(struct elf_scan *out, const char *name)
{
	bool per_thread;
	int func = api_lookup(name, 0, &per_thread);

	if (func < 0 || api_funcs[func].class == API_INTERNAL)
		return 0;
	if (!out->unnamed)
		out->unnamed = calloc(PLAN_WORDS, sizeof(*out->unnamed));
	if (!out->unnamed)
		return -ENOMEM;
	plan_add(out->unnamed, func);
	return 0;
}

/* A runtime in it that has no symbols. */
static int find_stripped(struct scan *s)
{
	struct stripped found;
	int err;

	/* a file that has some symbols of a library that programs can hold has all of them */
	for (int d = 0; d < API_DOMAIN_END; d++)
		if (api_domains[d].linked && s->domains[d].there)
			return 0;
	if (!stripped_likely(s->imports))
		return 0;
	err = stripped_find(s->file, &found);
	s->out->has_stripped = found.there;
	for (size_t i = 0; i < found.n && !err; i++) {
		const struct elf_sym sym = { .name = found.funcs[i].name,
					     .value = found.funcs[i].address,
					     .size = found.funcs[i].bytes,
					     .type = STT_FUNC,
					     .defined = true };

		err = elf_on_symbol(s, &sym);
		s->out->nstripped++;
	}
	for (size_t i = 0; i < found.nmissing && !err; i++)
		err = add_unnamed(s->out, found.missing[i]);
	stripped_free(&found);
	/* what is broken in it is no reason to leave out the rest */
	return err == -EBADMSG || err == -EIO ? 0 : err;
}

static uint64_t code_of(int fd, const struct elf_scan *scan)
{
	uint64_t h = 0xcbf29ce484222325ULL;

	for (int i = 0; i < scan->nprobes; i++) {
		const struct elf_probe *e = &scan->probes[i];
		uint64_t words[4] = { e->offset, e->func };

		if (pread(fd, &words[2], 16, (off_t)e->offset) < 0)
			words[2] = words[3] = 0;
		for (int k = 0; k < 4; k++)
			h = ((h ^ words[k]) * FNV_PRIME) ^ h >> 32;
	}
	return h;
}

int elf_scan_until(int fd, const uint64_t *capture, uint64_t until_ns, struct elf_scan *out)
{
	struct elf_file file;
	struct scan s = { .file = &file, .out = out, .capture = capture };
	char soname[64];
	int err;

	memset(out, 0, sizeof(*out));
	out->version_from = "";
	err = elf_file_open(&file, fd);
	if (err)
		goto out;
	file.until_ns = until_ns;
	find_sections(&file, out);
	err = elf_symbols(&file, SHT_DYNSYM, asked(), elf_on_symbol, &s);
	if (!err)
		err = elf_symbols(&file, SHT_SYMTAB, api_domain_symbols(), elf_on_symbol, &s);
	if (!err)
		err = find_stripped(&s);
	if (err || !s.nfound)
		goto out;
	elf_soname(&file, soname, sizeof(soname));
	find_versions(&s, soname);
	err = s.many ? many_schemas(s.many, &file) : 0;
	if (!err)
		err = elf_choose(&s, capture);
	/* A table whose rows end before this version may leave nothing. */
	if (!err && !out->ndefined)
		out->role = ELF_NONE;
	if (!err)
		out->code = code_of(fd, out);
out:
	free(s.found);
	free(s.names);
	many_close(s.many);
	elf_file_close(&file);
	if (err)
		elf_scan_free(out);
	return err;
}

void elf_scan_free(struct elf_scan *s)
{
	free(s->probes);
	free(s->silent);
	free(s->unnamed);
	memset(s, 0, sizeof(*s));
	s->version_from = "";
}

void elf_silent(const struct elf_scan *scan, const uint64_t *shown, uint64_t *indirect,
		uint64_t *shared)
{
	for (size_t i = 0; i < scan->nsilent; i++) {
		const struct elf_silent *s = &scan->silent[i];

		if (s->as == ELF_INDIRECT && plan_has(shown, s->func))
			plan_add(indirect, s->func);
		else if (s->as != ELF_INDIRECT &&
			 (plan_has(shown, s->func) || plan_has(shown, s->as)))
			plan_add(shared, s->func);
	}
}

bool elf_unnamed(const struct elf_scan *scan, const uint64_t *shown)
{
	for (int i = 0; scan->unnamed && i < PLAN_WORDS; i++)
		if (scan->unnamed[i] & shown[i])
			return true;
	return false;
}

struct by_name {
	const struct elf_file *file;
	const char *name;
	uint64_t offset;
};

static int on_name(void *ctx, const struct elf_sym *sym)
{
	struct by_name *b = ctx;

	if (!b->offset && sym->defined && sym->type == STT_FUNC && !strcmp(sym->name, b->name))
		b->offset = elf_code_offset(b->file, sym->value);
	return 0;
}

uint64_t elf_symbol_offset(int fd, const char *symbol)
{
	struct elf_file file;
	struct by_name b = { .file = &file, .name = symbol };
	const char *const begins[] = { symbol, NULL };

	if (!elf_file_open(&file, fd) && !elf_symbols(&file, SHT_DYNSYM, begins, on_name, &b) &&
	    !b.offset)
		elf_symbols(&file, SHT_SYMTAB, begins, on_name, &b);
	elf_file_close(&file);
	return b.offset;
}

#if defined(__aarch64__)
/*
 * arch/arm64/kernel/probes/decode-insn.c: instructions are aligned; none that raises an
 * exception, no exclusive load or store.
 */
static bool can_probe(const uint8_t *code, size_t len, uint64_t offset)
{
	uint32_t insn;

	if (len < 4 || offset % 4)
		return false;
	memcpy(&insn, code, 4);
	if ((insn & 0xff000000) == 0xd4000000) /* svc, hvc, smc, brk, hlt */
		return false;
	return (insn & 0x3f000000) != 0x08000000; /* ldxr, stxr and their kin */
}
#else
/*
 * arch/x86/kernel/uprobes.c: the prefixes es, cs, ss, ds and lock are refused, and so are the
 * instructions that trap, do I/O, are privileged, or do not exist in 64-bit mode.
 * (good_insns_64; two-byte and VEX opcodes are left to the kernel: no function begins with the
 * few that it refuses.)
 */
static bool can_probe(const uint8_t *code, size_t len, uint64_t offset)
{
	static const uint8_t refused[] = {
		0x06, 0x07, 0x0e, 0x16, 0x17, 0x1e, 0x1f, 0x27, 0x2f, 0x37, 0x3f, 0x60, 0x61,
		0x6c, 0x6d, 0x6e, 0x6f, 0x82, 0x9a, 0xcc, 0xcd, 0xce, 0xcf, 0xd4, 0xd5, 0xd6,
		0xe4, 0xe5, 0xe6, 0xe7, 0xea, 0xec, 0xed, 0xee, 0xef, 0xf1, 0xf4, 0xfa, 0xfb,
	};
	size_t i = 0;

	(void)offset;
	for (; i < len; i++) {
		switch (code[i]) {
		case 0x26:
		case 0x2e:
		case 0x36:
		case 0x3e:
		case 0xf0: return false;
		case 0x64:
		case 0x65:
		case 0x66:
		case 0x67:
		case 0xf2:
		case 0xf3: continue;
		}
		break;
	}
	if (i < len && (code[i] & 0xf0) == 0x40) /* REX */
		i++;
	return i < len && !memchr(refused, code[i], sizeof(refused));
}
#endif

int elf_can_probe(int fd, uint64_t offset)
{
	uint8_t code[16];
	ssize_t n;

	if (!offset)
		return 0;
	n = pread(fd, code, sizeof(code), offset);
	if (n < 0)
		return -errno;
	return can_probe(code, n, offset);
}
