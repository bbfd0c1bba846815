/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * packed.h - inside the resolve room: finds out which parts of an ELF file libelf and libdwfl would
 * unpack into memory, and how large they would become. These libraries unpack everything, whatever
 * its size: 700 kB of xz can become 3 GB of zeros.
 *
 * Knows only the file. Unpacks only the mini debug information, up to a limit.
 */
#ifndef CT_PACKED_H
#define CT_PACKED_H

#include "../../proc/elf_read.h"

/* Returns the size of the debug sections after unpacking. UINT64_MAX: they are packed in a way that
 * no linker uses, and must not be read. */
uint64_t packed_dwarf_bytes(const struct elf_file *);
/* Returns about how many bytes of memory the file's symbols and call frames take: their sections, the
 * index of symbols.c, and mini debug information if the file has any. */
uint64_t packed_tables_bytes(const struct elf_file *);
/* Whether a symbol table or a table of symbol names is compressed, which no linker does. */
bool packed_tables(const struct elf_file *);
/* Whether .gnu_debugdata (an ELF file with more symbols, xz) is a valid file of an acceptable size.
 * Also true if there is none. */
bool packed_symbols_are_sane(const struct elf_file *);
bool packed_is_symbols(const struct elf_file *, uint32_t section); /* is it that section? */

#endif
