/* SPDX-License-Identifier: BSD-2-Clause */
/* packed.c - see packed.h. */
#include <lzma.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "packed.h"

/* how many times larger debug sections may become; DWARF becomes about three times larger */
#define GROWS_MAX 64
#define GROWS_FREE (1ULL << 20)	       /* a size in bytes that is always accepted */
#define SYMBOLS_PACKED_MAX (16u << 20) /* bytes of .gnu_debugdata */
#define SYMBOLS_PLAIN_MAX (64u << 20)
#define LZMA_MEMORY_MAX (128ULL << 20)
#define CHUNK 65536
#define INDEX_BYTES 32 /* of symbols.c, for each symbol */

static uint64_t section_bytes(const struct elf_file *f, const Elf64_Shdr *sh)
{
	Elf64_Chdr chdr;

	if (!(sh->sh_flags & SHF_COMPRESSED))
		return sh->sh_size;
	if (elf_read(f, &chdr, sizeof(chdr), sh->sh_offset))
		return 0; /* libelf cannot read it either */
	return chdr.ch_size / GROWS_MAX > sh->sh_size + GROWS_FREE / GROWS_MAX ? UINT64_MAX
									       : chdr.ch_size;
}

uint64_t packed_dwarf_bytes(const struct elf_file *f)
{
	uint64_t sum = 0, n;

	for (uint32_t i = 0; i < f->nshdr; i++) {
		const Elf64_Shdr *sh = &f->shdr[i];
		const char *name = elf_section_name(f, i);

		if (sh->sh_type == SHT_NOBITS)
			continue;
		/* the format from before 2015, whose size field only libdw reads */
		if (!strncmp(name, ".zdebug_", 8))
			return UINT64_MAX;
		if (strncmp(name, ".debug_", 7))
			continue;
		n = section_bytes(f, sh);
		if (sum + n < sum)
			return UINT64_MAX;
		sum += n;
	}
	return sum;
}

bool packed_tables(const struct elf_file *f)
{
	for (uint32_t i = 0; i < f->nshdr; i++) {
		const Elf64_Shdr *sh = &f->shdr[i];

		if (sh->sh_flags & SHF_COMPRESSED &&
		    (sh->sh_type == SHT_SYMTAB || sh->sh_type == SHT_DYNSYM ||
		     sh->sh_type == SHT_STRTAB || sh->sh_type == SHT_SYMTAB_SHNDX))
			return true;
	}
	return false;
}

uint64_t packed_tables_bytes(const struct elf_file *f)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < f->nshdr; i++) {
		const Elf64_Shdr *sh = &f->shdr[i];
		/* the file's end bounds what can be read of it */
		uint64_t size = sh->sh_size < f->size ? sh->sh_size : f->size;

		if (sh->sh_type == SHT_SYMTAB || sh->sh_type == SHT_DYNSYM)
			bytes += size + size / sizeof(Elf64_Sym) * INDEX_BYTES;
		else if (sh->sh_type == SHT_STRTAB || !strcmp(elf_section_name(f, i), ".eh_frame"))
			bytes += size;
		else if (packed_is_symbols(f, i))
			bytes += SYMBOLS_PLAIN_MAX;
	}
	return bytes;
}

/* ---- .gnu_debugdata ---- */

bool packed_is_symbols(const struct elf_file *f, uint32_t section)
{
	return !strcmp(elf_section_name(f, section), ".gnu_debugdata");
}

/* Unpacks into a file in memory. False: it is damaged, or too large. */
static bool unpack(const void *from, size_t len, int fd)
{
	lzma_stream z = LZMA_STREAM_INIT;
	lzma_ret ret = lzma_auto_decoder(&z, LZMA_MEMORY_MAX, 0);
	uint8_t out[CHUNK];

	z.next_in = from;
	z.avail_in = len;
	while (ret == LZMA_OK) {
		size_t n;

		z.next_out = out;
		z.avail_out = sizeof(out);
		ret = lzma_code(&z, LZMA_FINISH);
		n = sizeof(out) - z.avail_out;
		if (z.total_out > SYMBOLS_PLAIN_MAX || write(fd, out, n) != (ssize_t)n)
			break;
	}
	lzma_end(&z);
	return ret == LZMA_STREAM_END && z.total_out <= SYMBOLS_PLAIN_MAX;
}

static bool is_sane(const struct elf_file *f, const Elf64_Shdr *sh)
{
	int fd = memfd_create("symbols", MFD_CLOEXEC);
	struct elf_file inner;
	bool sane = false;
	void *packed;

	if (fd < 0)
		return false;
	packed = sh->sh_size && sh->sh_size <= SYMBOLS_PACKED_MAX && sh->sh_type != SHT_NOBITS
			 ? malloc(sh->sh_size)
			 : NULL;
	if (packed && !elf_read(f, packed, sh->sh_size, sh->sh_offset) &&
	    unpack(packed, sh->sh_size, fd)) {
		sane = !elf_file_open(&inner, fd) && !packed_tables(&inner);
		elf_file_close(&inner);
	}
	free(packed);
	close(fd);
	return sane;
}

bool packed_symbols_are_sane(const struct elf_file *f)
{
	for (uint32_t i = 0; i < f->nshdr; i++)
		if (packed_is_symbols(f, i) && !is_sane(f, &f->shdr[i]))
			return false;
	return true;
}
