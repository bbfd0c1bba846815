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
#include "../plan.h"
#include "../../util/table/array.h"

#define MAX_FOUND 65536 /* definitions of one file: CUDA's own have fewer than a thousand */

struct found {
	uint64_t offset;
	uint32_t size;
	uint32_t name; /* in scan.names */
};

/* The state of one scan: what was found, until the version is known. */
struct scan {
	const struct elf_file *file;
	struct elf_scan *out;
	struct found *found;
	size_t nfound;
	char *names;
	size_t names_len, names_cap;
	struct {
		bool there, inlined;
		int version; /* what the symbols say, then what is taken */
	} domains[API_DOMAIN_END];
};

static int keep(struct scan *s, uint64_t offset, uint64_t size, const char *name)
{
	size_t len = strlen(name) + 1;

	if (s->nfound == MAX_FOUND)
		return -EBADMSG;
	if (!array_room(s->found, s->nfound) ||
	    !array_fit(s->names, s->names_cap, s->names_len + len))
		return -ENOMEM;
	memcpy(s->names + s->names_len, name, len);
	s->found[s->nfound++] = (struct found){
		.offset = offset,
		.size = size <= UINT32_MAX ? size : 0,
		.name = s->names_len,
	};
	s->names_len += len;
	return 0;
}

static int on_symbol(void *ctx, const struct elf_sym *sym)
{
	struct scan *s = ctx;
	bool per_thread;
	enum api_domain domain;
	uint64_t offset;
	int func = api_lookup(sym->name, 0, &per_thread), version;

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
	if (sym->type != STT_FUNC)
		return 0;
	offset = elf_code_offset(s->file, sym->value);
	if (!offset)
		return 0;
	domain = (enum api_domain)api_funcs[func].domain;
	s->domains[domain].there = true;
	version = api_domain_since(domain, sym->name);
	if (version > s->domains[domain].version)
		s->domains[domain].version = version;
	return keep(s, offset, sym->size, sym->name);
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

/* Looks the kept names up again, now for the version; sorts; leaves one probe for each offset. */
static int choose(struct scan *s, const uint64_t *capture)
{
	struct elf_scan *out = s->out;
	uint64_t last = 0, seen = 0; /* no offset is 0 */
	size_t n = 0;

	out->probes = malloc(s->nfound * sizeof(*out->probes));
	if (!out->probes)
		return -ENOMEM;
	for (size_t i = 0; i < s->nfound; i++) {
		bool per_thread = false;
		const char *name = s->names + s->found[i].name;
		int func = api_lookup(name, 0, &per_thread);

		if (func >= 0)
			func = api_lookup(name, s->domains[api_funcs[func].domain].version,
					  &per_thread);
		if (func < 0 || s->domains[api_funcs[func].domain].inlined)
			continue;
		out->probes[n++] =
			(struct elf_probe){ .offset = s->found[i].offset,
					    .size = s->found[i].size,
					    .func = func,
					    .per_thread = per_thread,
					    .query = api_funcs[func].class == API_QUERY };
	}
	qsort(out->probes, n, sizeof(*out->probes), by_offset);
	for (size_t i = 0; i < n; i++) {
		const struct elf_probe p = out->probes[i];

		out->ndefined += p.offset != seen;
		seen = p.offset;
		if (p.offset == last || (capture && !plan_has(capture, p.func)))
			continue;
		last = p.offset;
		out->probes[out->nprobes++] = p; /* nprobes <= i */
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

int elf_scan_until(int fd, const uint64_t *capture, uint64_t until_ns, struct elf_scan *out)
{
	struct elf_file file;
	struct scan s = { .file = &file, .out = out };
	char soname[64];
	int err;

	memset(out, 0, sizeof(*out));
	out->version_from = "";
	err = elf_file_open(&file, fd);
	if (err)
		goto out;
	file.until_ns = until_ns;
	find_sections(&file, out);
	err = elf_symbols(&file, SHT_DYNSYM, api_domain_symbols(), on_symbol, &s);
	if (!err)
		err = elf_symbols(&file, SHT_SYMTAB, api_domain_symbols(), on_symbol, &s);
	if (err || !s.nfound)
		goto out;
	elf_soname(&file, soname, sizeof(soname));
	find_versions(&s, soname);
	err = choose(&s, capture);
	/* A table whose rows end before this version may leave nothing. */
	if (!err && !out->ndefined)
		out->role = ELF_NONE;
out:
	free(s.found);
	free(s.names);
	elf_file_close(&file);
	if (err)
		elf_scan_free(out);
	return err;
}

void elf_scan_free(struct elf_scan *s)
{
	free(s->probes);
	memset(s, 0, sizeof(*s));
	s->version_from = "";
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
