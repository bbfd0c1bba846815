/* SPDX-License-Identifier: BSD-2-Clause */
/* dwarf_sections.h - which sections fuzz_dwarf.c's inputs have, in the order of their numbers: seeds.c takes them
 * out of a library. */
#ifndef CT_FUZZ_DWARF_SECTIONS_H
#define CT_FUZZ_DWARF_SECTIONS_H

#include <elf.h>
#include <stdbool.h>

static const struct {
	const char *name;
	Elf64_Word type;
	bool loaded;
} dwarf_sections[] = {
	{ ".eh_frame", SHT_PROGBITS, true },	    { ".eh_frame_hdr", SHT_PROGBITS, true },
	{ ".debug_frame", SHT_PROGBITS, false },    { ".debug_info", SHT_PROGBITS, false },
	{ ".debug_abbrev", SHT_PROGBITS, false },   { ".debug_str", SHT_PROGBITS, false },
	{ ".debug_line", SHT_PROGBITS, false },	    { ".debug_line_str", SHT_PROGBITS, false },
	{ ".debug_aranges", SHT_PROGBITS, false },  { ".debug_rnglists", SHT_PROGBITS, false },
	{ ".debug_loclists", SHT_PROGBITS, false },
};

#endif
