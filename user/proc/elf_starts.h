/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * elf_starts.h - where functions begin, as the table for unwinding says (.eh_frame_hdr), which a
 * stripped file keeps. Knows no symbols. The file is untrusted.
 */
#ifndef CT_ELF_STARTS_H
#define CT_ELF_STARTS_H

#include "elf_read.h"

struct elf_start {
	uint64_t address;
	uint64_t entry; /* the address of its entry in .eh_frame */
};
struct elf_starts {
	struct elf_start *list; /* sorted by address */
	size_t n;
};

#define ELF_STARTS_MAX (4 << 20)

/* Returns 0 or -errno: -ENOENT if the file has no such table, or one of another form than linkers
 * make. Free it in any case. */
int elf_starts_read(const struct elf_file *, struct elf_starts *);
void elf_starts_free(struct elf_starts *);

/* The last one at or before this address; NULL: there is none. */
const struct elf_start *elf_start_of(const struct elf_starts *, uint64_t address);
/* The bytes of the function, as its entry says; 0: it does not say. */
uint64_t elf_start_bytes(const struct elf_file *, const struct elf_start *);

#endif
