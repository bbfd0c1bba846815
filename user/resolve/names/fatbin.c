/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fatbin.c - see fatbin.h.
 *
 *   container: magic 0xBA55ED50, u16 version 1, u16 size of this header (16), u64 size of the
 *   entries
 *   entry:     u16 kind (1 PTX, 2 cubin), u16, u32 size of this header (64 at least), u64 size
 *              of the payload with its padding,
 *              u32 size of the compressed payload, ... at 40 u64 flags, ... at 56 u64 size of
 *              the payload once decompressed
 *
 * Every field is checked before it is used, and read by memcpy: nothing in a damaged file is
 * aligned.
 */
#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <lz4.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "fatbin.h"
#include "stub.h"
#include "../../../wire/cudatrace.h"

enum { KIND_PTX = 1, KIND_CUBIN = 2 };
#define FLAG_LZ4 0x2000u
#define FLAG_ZSTD 0x8000u
#define CONTAINER_MIN 16
#define ENTRY_MIN 64
#define PAYLOAD_MAX (256u << 20) /* bytes of one payload, decompressed */
#define SYMBOLS_MAX (256u << 10) /* of a cubin */
#define CUDA_ENTRY 0x10		 /* in st_other: a function that can be launched */

static uint16_t get16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint32_t get32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint64_t get64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static bool inside(size_t len, uint64_t off, uint64_t size)
{
	return off <= len && size <= len - off;
}

/* ---- cubin ---- */

static int cubin_symbols(const uint8_t *p, size_t len, const Elf64_Shdr *tab,
			 const Elf64_Shdr *strs, fatbin_fn fn, void *ctx)
{
	int err = 0;

	if (tab->sh_entsize != sizeof(Elf64_Sym) || !inside(len, tab->sh_offset, tab->sh_size) ||
	    !inside(len, strs->sh_offset, strs->sh_size))
		return -EBADMSG;
	if (tab->sh_size / sizeof(Elf64_Sym) > SYMBOLS_MAX)
		return -E2BIG;
	for (uint64_t i = 0; !err && i < tab->sh_size / sizeof(Elf64_Sym); i++) {
		const char *name;
		Elf64_Sym sym;
		size_t n;

		memcpy(&sym, p + tab->sh_offset + i * sizeof(sym), sizeof(sym));
		if (ELF64_ST_TYPE(sym.st_info) != STT_FUNC || !(sym.st_other & CUDA_ENTRY) ||
		    sym.st_shndx == SHN_UNDEF)
			continue;
		if (sym.st_name >= strs->sh_size)
			return -EBADMSG;
		name = (const char *)p + strs->sh_offset + sym.st_name;
		n = strnlen(name, strs->sh_size - sym.st_name);
		if (n == strs->sh_size - sym.st_name || !stub_is_name(name, n))
			return -EBADMSG;
		err = fn(ctx, name);
	}
	return err;
}

static int cubin(const void *data, size_t len, fatbin_fn fn, void *ctx)
{
	const uint8_t *p = data;
	Elf64_Shdr tab, strs;
	Elf64_Ehdr ehdr;
	int err = 0;

	if (len < sizeof(ehdr))
		return -EBADMSG;
	memcpy(&ehdr, p, sizeof(ehdr));
	if (memcmp(ehdr.e_ident, ELFMAG, SELFMAG) || ehdr.e_ident[EI_DATA] != ELFDATA2LSB ||
	    ehdr.e_machine != EM_CUDA)
		return -EBADMSG;
	if (ehdr.e_ident[EI_CLASS] != ELFCLASS64)
		return -ENOTSUP;
	if (!ehdr.e_shoff || !ehdr.e_shnum)
		return -ENOTSUP; /* no sections: the contents cannot be determined */
	if (ehdr.e_shentsize != sizeof(Elf64_Shdr) ||
	    !inside(len, ehdr.e_shoff, (uint64_t)ehdr.e_shnum * sizeof(Elf64_Shdr)))
		return -EBADMSG;
	for (uint32_t i = 0; !err && i < ehdr.e_shnum; i++) {
		memcpy(&tab, p + ehdr.e_shoff + i * sizeof(tab), sizeof(tab));
		if (tab.sh_type != SHT_SYMTAB)
			continue;
		if (tab.sh_link >= ehdr.e_shnum)
			return -EBADMSG;
		memcpy(&strs, p + ehdr.e_shoff + tab.sh_link * sizeof(strs), sizeof(strs));
		if (strs.sh_type != SHT_STRTAB)
			return -EBADMSG;
		return cubin_symbols(p, len, &tab, &strs, fn, ctx);
	}
	return -ENOTSUP; /* no symbol table */
}

/* ---- PTX ---- */

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_part(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       c == '_' || c == '$' || c == '%';
}

/* Skips white space, comments and strings. Returns `end` if there is nothing else. */
static const char *skip(const char *s, const char *end)
{
	while (s < end) {
		if (is_space(*s)) {
			s++;
		} else if (*s == '/' && end - s > 1 && s[1] == '/') {
			while (s < end && *s != '\n')
				s++;
		} else if (*s == '/' && end - s > 1 && s[1] == '*') {
			for (s += 2; s < end && !(*s == '*' && end - s > 1 && s[1] == '/'); s++)
				;
			s = end - s > 1 ? s + 2 : end;
		} else if (*s == '"') {
			for (s++; s < end && *s != '"' && *s != '\n'; s++)
				s += *s == '\\' && end - s > 1;
			s += s < end;
		} else {
			break;
		}
	}
	return s;
}

int fatbin_ptx(const char *text, size_t len, fatbin_fn fn, void *ctx)
{
	static const char entry[] = ".entry";
	const char *end = text + strnlen(text, len), *s = text;
	bool version = false;
	char name[CT_NAME_MAX];

	while ((s = skip(s, end)) < end) {
		const char *word = s;
		size_t n;
		int err;

		for (s++; s < end && is_part(*s); s++)
			;
		version = version || (s - word == 8 && !memcmp(word, ".version", 8));
		if (s - word != sizeof(entry) - 1 || memcmp(word, entry, sizeof(entry) - 1))
			continue;
		word = skip(s, end);
		for (s = word; s < end && is_part(*s); s++)
			;
		n = (size_t)(s - word);
		if (!stub_is_name(word, n))
			return -EBADMSG;
		memcpy(name, word, n);
		name[n] = '\0';
		err = fn(ctx, name);
		if (err)
			return err;
	}
	/* every PTX text begins with .version; a text without it is not PTX */
	return version ? 0 : -EBADMSG;
}

/* ---- the container ---- */

static int payload(uint16_t kind, const uint8_t *p, size_t len, fatbin_fn fn, void *ctx)
{
	return kind == KIND_CUBIN ? cubin(p, len, fn, ctx)
				  : fatbin_ptx((const char *)p, len, fn, ctx);
}

/* LZ4 and zstd return the size of their output; if it differs from the announced size, the payload
 * is damaged. */
static int compressed(uint16_t kind, bool lz4, const uint8_t *p, size_t len, uint64_t want,
		      uint64_t *budget, fatbin_fn fn, void *ctx)
{
	uint8_t *plain;
	size_t got;
	int err, n;

	if (!want || want > PAYLOAD_MAX || len > INT_MAX)
		return -EBADMSG;
	if (want > *budget)
		return -E2BIG;
	*budget -= want;
	plain = malloc(want + 1);
	if (!plain)
		return -ENOMEM;
	if (lz4) {
		n = LZ4_decompress_safe((const char *)p, (char *)plain, (int)len, (int)want);
		got = n < 0 ? 0 : (size_t)n;
	} else {
		got = ZSTD_decompress(plain, want, p, len);
		if (ZSTD_isError(got))
			got = 0;
	}
	err = got == want ? payload(kind, plain, got, fn, ctx) : -EBADMSG;
	free(plain);
	return err;
}

/* Reads one entry at p. Stores its size in *size. */
static int entry_at(const uint8_t *p, size_t len, uint64_t *size, uint64_t *budget, fatbin_fn fn,
		    void *ctx)
{
	uint64_t header, padded, flags;
	uint16_t kind;

	if (len < ENTRY_MIN)
		return -EBADMSG;
	kind = get16(p);
	header = get32(p + 4);
	padded = get64(p + 8);
	flags = get64(p + 40);
	if (header < ENTRY_MIN || !inside(len, header, padded))
		return -EBADMSG;
	*size = header + padded;
	if (kind != KIND_PTX && kind != KIND_CUBIN)
		return -ENOTSUP;
	p += header;
	if (flags & (FLAG_LZ4 | FLAG_ZSTD)) {
		uint32_t packed = get32(p - header + 16);

		if ((flags & FLAG_LZ4 && flags & FLAG_ZSTD) || packed > padded)
			return -EBADMSG;
		return compressed(kind, flags & FLAG_LZ4, p, packed, get64(p - header + 56), budget,
				  fn, ctx);
	}
	return padded <= PAYLOAD_MAX ? payload(kind, p, padded, fn, ctx) : -EBADMSG;
}

int fatbin_kernels(const void *data, size_t len, uint64_t *budget, fatbin_fn fn, void *ctx)
{
	const uint8_t *p = data, *end = p + len;

	while (p < end) {
		uint64_t header, body;

		if (!*p) {
			p++;
			continue;
		}
		if (end - p < CONTAINER_MIN || get32(p) != FATBIN_MAGIC)
			return -EBADMSG;
		header = get16(p + 6);
		body = get64(p + 8);
		if (get16(p + 4) != 1)
			return -ENOTSUP;
		if (header < CONTAINER_MIN || !inside((size_t)(end - p), header, body))
			return -EBADMSG;
		p += header;
		for (const uint8_t *stop = p + body; p < stop;) {
			uint64_t size = 0;
			int err = entry_at(p, (size_t)(stop - p), &size, budget, fn, ctx);

			if (err)
				return err;
			p += size;
		}
	}
	return 0;
}
