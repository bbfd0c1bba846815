/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stripped_codes.h - the functions of a static runtime that do not name themselves: those that nvcc's code
 * calls. All versions have them one behind the other, in one order. Each is known by the hash of its code without what
 * the linker fills in; and most of them begin with the same call as those that name themselves.
 */
#ifndef CT_STRIPPED_CODES_H
#define CT_STRIPPED_CODES_H

#include "../../proc/elf_starts.h"
#include "stripped.h"

/* Adds those that there are to the ones that name themselves. Returns 0 or -errno. */
int stripped_codes(const struct elf_file *, const struct elf_starts *, struct stripped *);

#endif
