/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * known_elf.h - what one ELF file says of the kernels that were compiled into it: by the symbols
 * of the host's side, and by its device code. Built once for a file and shared by all processes
 * that map it. Knows no process.
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

/* Reads the headers, no symbols yet. Takes the descriptor over, also on failure. Returns 0,
 * -ENOEXEC, -EBADMSG, -EIO or -ENOMEM. */
int known_elf_open(struct known_elf **, int fd);
void known_elf_close(struct known_elf *); /* takes NULL */

bool known_elf_has_device_code(const struct known_elf *);
bool known_elf_is_fixed(const struct known_elf *);
/* Reads the symbols, once. Returns 0, or why there are none: -ENOENT (stripped), -E2BIG,
 * -EBADMSG, -EIO, -ENOMEM. */
int known_elf_index(struct known_elf *);
/* counts are 0 before the index is there */
void known_elf_facts(const struct known_elf *, struct known_elf_facts *);

/* What is to be added to the file's addresses where `map`, an executable mapping of it, is;
 * false: it is no such. */
bool known_elf_bias(const struct known_elf *, const struct target_map *map, uint64_t *bias);

/* The kernel of the host function at an address of the file. Copies the name, returns its
 * length; 0: not known, or several names are possible. */
size_t known_elf_stub(struct known_elf *, uint64_t addr, char *out, size_t size);

/* The variables that hold handles, by address. */
uint32_t known_elf_handles(const struct known_elf *);
uint64_t known_elf_handle_addr(const struct known_elf *, uint32_t i);
/* The kernel whose handle it holds, as above. *sure: the device's code calls it so too, not only
 * the host's. Where the kernel may or may not be extern "C" there is no telling: 0. */
size_t known_elf_handle(struct known_elf *, uint32_t i, char *out, size_t size, bool *sure);

/* How many kernels the device code holds: 0, 1 (the name is in `out`, "" where it does not fit)
 * or 2, which stands for more; or -errno when not all of it can be understood. */
int known_elf_kernels(struct known_elf *, char *out, size_t size);

#endif
