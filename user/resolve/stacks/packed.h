/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * packed.h - inside the resolve room: what of an ELF file libelf and libdwfl would unpack into
 * memory, and how much that would be. They unpack all of it, whatever it grows to: 700 kB of xz
 * make 3 GB of zeros.
 *
 * Knows the file alone; unpacks nothing but the mini debug information, within bounds.
 */
#ifndef CT_PACKED_H
#define CT_PACKED_H

#include "../../proc/elf_read.h"

/* Bytes of the debug sections once unpacked. UINT64_MAX: they are packed as no linker packs, and
 * must not be read. */
uint64_t packed_dwarf_bytes(const struct elf_file *);
/* Whether a table of symbols or of their names is compressed, which no linker does. */
bool packed_tables(const struct elf_file *);
/* Whether .gnu_debugdata (an ELF file with more symbols, xz) is a sound file of a sane size;
 * true also where there is none. */
bool packed_symbols_are_sane(const struct elf_file *);
bool packed_is_symbols(const struct elf_file *, uint32_t section); /* is it that section? */

#endif
