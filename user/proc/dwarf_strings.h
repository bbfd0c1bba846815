/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dwarf_strings.h - strings of debug information that is not trusted. libdw returns a string wherever it
 * lies and does not look for its end: without one it continues into the memory behind the section.
 */
#ifndef CT_DWARF_STRINGS_H
#define CT_DWARF_STRINGS_H

#include <elfutils/libdw.h>

#include "../util/types.h"

#define DWARF_STRING_MAX 16384 /* a longer one is not returned */

/* The section of this name; NULL: there is none. */
Elf_Data *dwarf_section(Elf *, const char *name);
/* Whether the last string of each section of strings has an end. */
bool dwarf_strings_end(Dwarf *);
/* The string of an attribute, of a file whose sections of strings were checked by dwarf_strings_end(); info:
 * its .debug_info, in which a string may lie, or NULL. NULL: it is none. */
const char *dwarf_string(Dwarf_Attribute *, const Elf_Data *info);

#endif
