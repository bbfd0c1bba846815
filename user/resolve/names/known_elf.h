/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * known_elf.h - finds out which kernels were compiled into one ELF file, from the symbols of the
 * host code and from the device code. This is done once for a file, and all processes that map the
 * file share the result. Knows no process.
 */
#ifndef CT_KNOWN_ELF_H
#define CT_KNOWN_ELF_H

#include "../../proc/target.h"

struct known_elf;

struct known_elf_facts {
	bool device_code;
	bool sections; /* the section headers are there */
	bool symtab;   /* .symtab is there */
	/* kernels with a host stub, and variables that hold a handle, in the symbol table */
	uint32_t nstubs, nhandles;
};

/* Reads the headers, but no symbols yet. Takes over the descriptor, even on failure. Returns 0,
 * -ENOEXEC, -EBADMSG, -EIO or -ENOMEM. */
int known_elf_open(struct known_elf **, int fd);
void known_elf_close(struct known_elf *); /* takes NULL */

bool known_elf_has_device_code(const struct known_elf *);
bool known_elf_is_fixed(const struct known_elf *);
/* Reads the symbols, once. Returns 0, or why there are none: -ENOENT (stripped), -E2BIG,
 * -EBADMSG, -EIO, -ENOMEM. */
int known_elf_index(struct known_elf *);
/* the counts are 0 before known_elf_index() */
void known_elf_facts(const struct known_elf *, struct known_elf_facts *);

/* Returns in *bias what must be added to the file's addresses in a process that has the executable
 * mapping `map` of it. False: `map` is not such a mapping. */
bool known_elf_bias(const struct known_elf *, const struct target_map *map, uint64_t *bias);

/* Finds the kernel of the host function at an address of the file. Copies the name and returns its
 * length; 0: not known, or several names are possible. */
size_t known_elf_stub(struct known_elf *, uint64_t addr, char *out, size_t size);

/* The variables that hold handles, by address. */
uint32_t known_elf_handles(const struct known_elf *);
uint64_t known_elf_handle_addr(const struct known_elf *, uint32_t i);
/* Finds the kernel whose handle variable `i` holds, as above. *sure: the device code has this name
 * too, not only the host code. Returns 0 also if it cannot be determined whether the kernel is
 * extern "C". */
size_t known_elf_handle(struct known_elf *, uint32_t i, char *out, size_t size, bool *sure);

/* Returns how many kernels the device code has: 0, 1 (the name is in `out`, "" if it does not fit)
 * or 2 for more; or -errno if not all of it can be understood. */
int known_elf_kernels(struct known_elf *, char *out, size_t size);

#endif
