/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * elf_read.h - the parts of an ELF file, read with bounded copies. Knows nothing of CUDA.
 */
#ifndef CT_ELF_READ_H
#define CT_ELF_READ_H

#include <elf.h>

#include "../util/types.h"

struct elf_file {
	int fd;
	/* size of the file when it was opened; if the file has become shorter, reads past its end
	 * fail */
	uint64_t size;
	Elf64_Ehdr ehdr;
	Elf64_Phdr *phdr;
	int nphdr;
	Elf64_Shdr *shdr;
	uint32_t nshdr;
	char *shstr; /* names of the sections, NUL-terminated; NULL: none */
	uint64_t shstr_len;
	/* CLOCK_MONOTONIC. The caller may set it after the file is open: walks of symbol tables
	 * then stop at this time with -ETIME. 0: no limit. */
	uint64_t until_ns;
};

/* A symbol table above these limits is not walked (-EFBIG). */
#define ELF_SYMBOLS_MAX (4 << 20)
#define ELF_STRINGS_MAX (512ULL << 20)

/* bytes of a symbol's name with its NUL; only the beginning of a longer name is seen */
#define ELF_NAME_MAX 16384

/* A symbol as elf_symbols() passes it to fn. `name` is valid during the call. */
struct elf_sym {
	const char *name;
	uint64_t name_at; /* where the name is in the file */
	uint64_t value;
	uint64_t size; /* 0: not known */
	uint8_t type;  /* STT_ */
	bool defined;
};
typedef int (*elf_sym_fn)(void *ctx, const struct elf_sym *);

/* Reads and checks the headers: 64-bit, this machine's order and architecture, executable or
 * shared object. Returns 0, -ENOEXEC, -EBADMSG, -EIO or -ENOMEM. Close it in any case. */
int elf_file_open(struct elf_file *, int fd);
/* The same of any architecture. */
int elf_file_open_any(struct elf_file *, int fd);
void elf_file_close(struct elf_file *);

/* Calls fn for the FUNC, GNU_IFUNC and NOTYPE symbols of the symbol table of type `sh_type` (SHT_DYNSYM,
 * SHT_SYMTAB) whose names begin with one of `begins`, a list that NULL ends. A negative return of
 * fn stops the walk. Returns 0 or -errno: -EFBIG if there are too many symbols, -ETIME. */
int elf_symbols(const struct elf_file *, uint32_t sh_type, const char *const *begins, elf_sym_fn fn,
		void *ctx);
/* The same for OBJECT and NOTYPE symbols. */
int elf_variables(const struct elf_file *, uint32_t sh_type, const char *const *begins,
		  elf_sym_fn fn, void *ctx);
/* The same for all symbols whose type is in `types`, a set of 1 << STT_. */
int elf_symbols_of(const struct elf_file *, uint32_t sh_type, uint32_t types, elf_sym_fn fn,
		   void *ctx);
/* Copies len bytes of the file. Returns 0, -EBADMSG (beyond its end) or -EIO. */
int elf_read(const struct elf_file *, void *buf, uint64_t len, uint64_t off);

const char *elf_section_name(const struct elf_file *, uint32_t index); /* "" when there is none */
bool elf_has_section(const struct elf_file *, uint32_t sh_type);
/* The file offset of an address in an executable segment; 0: it is in none. */
uint64_t elf_code_offset(const struct elf_file *, uint64_t vaddr);
/* The same in any segment. */
uint64_t elf_offset(const struct elf_file *, uint64_t vaddr);
/* Copies DT_SONAME into buf ("" when there is none). */
void elf_soname(const struct elf_file *, char *buf, size_t len);

#endif
