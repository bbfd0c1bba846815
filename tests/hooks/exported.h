/* SPDX-License-Identifier: BSD-2-Clause */
/* exported.h - the functions that a library exports, as the engine wants them, read from its file. */
#ifndef EXPORTED_H
#define EXPORTED_H

#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../target/engine/engine.h"

/* The functions that the file exports, loaded at `base`, with their sizes and the file's bytes: at most
 * so many. Returns how many; 0: the file cannot be read. */
static inline unsigned int exported(const char *file, __u64 base, struct hook_spec *specs,
				    unsigned int most)
{
	int fd = open(file, O_RDONLY);
	struct stat st;
	const char *at;
	const Elf64_Ehdr *e;
	const Elf64_Shdr *s;
	const Elf64_Phdr *p;
	unsigned int n = 0;

	if (fd < 0)
		return 0;
	at = fstat(fd, &st) ? MAP_FAILED
			    : mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (at == MAP_FAILED)
		return 0;
	e = (const void *)at;
	s = (const void *)(at + e->e_shoff);
	p = (const void *)(at + e->e_phoff);
	for (int i = 0; i < e->e_shnum; i++) {
		const Elf64_Sym *sym = (const void *)(at + s[i].sh_offset);

		for (size_t k = 0; s[i].sh_type == SHT_DYNSYM && k < s[i].sh_size / sizeof(*sym);
		     k++) {
			struct hook_spec *spec = &specs[n];
			bool twice = false;

			if (ELF64_ST_TYPE(sym[k].st_info) != STT_FUNC || !sym[k].st_shndx)
				continue;
			for (unsigned int o = 0; o < n; o++)
				twice |= specs[o].address == base + sym[k].st_value;
			if (twice || n == most)
				continue;
			*spec = (struct hook_spec){ .address = base + sym[k].st_value,
						    .size = sym[k].st_size,
						    .id = n };
			for (int h = 0; h < e->e_phnum; h++)
				if (p[h].p_type == PT_LOAD && sym[k].st_value >= p[h].p_vaddr &&
				    sym[k].st_value + 16 <= p[h].p_vaddr + p[h].p_filesz) {
					spec->nfile = 16;
					memcpy(spec->file,
					       at + sym[k].st_value - p[h].p_vaddr + p[h].p_offset,
					       16);
				}
			n++;
		}
	}
	munmap((void *)at, (size_t)st.st_size);
	return n;
}

#endif
