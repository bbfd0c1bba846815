/* SPDX-License-Identifier: BSD-2-Clause */
/* dwarf_strings.c - see dwarf_strings.h. */
#include <dwarf.h>
#include <string.h>

#include "dwarf_strings.h"

Elf_Data *dwarf_section(Elf *elf, const char *want)
{
	Elf_Scn *scn = NULL;
	size_t strings;

	if (elf_getshdrstrndx(elf, &strings)) /* NULL has none */
		return NULL;
	while ((scn = elf_nextscn(elf, scn))) {
		GElf_Shdr shdr;
		const char *name = gelf_getshdr(scn, &shdr) ? elf_strptr(elf, strings, shdr.sh_name)
							    : NULL;

		if (name && !strcmp(name, want))
			return elf_getdata(scn, NULL);
	}
	return NULL;
}

/* The sections are unpacked at this point. */
bool dwarf_strings_end(Dwarf *dwarf)
{
	static const char *const names[] = { ".debug_str", ".debug_line_str" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		Elf_Data *d = dwarf_section(dwarf_getelf(dwarf), names[i]);

		if (d && d->d_size && (!d->d_buf || ((const char *)d->d_buf)[d->d_size - 1]))
			return false;
	}
	return true;
}

const char *dwarf_string(Dwarf_Attribute *attr, const Elf_Data *info)
{
	const char *s = dwarf_formstring(attr), *begin = info ? info->d_buf : NULL;

	if (!s)
		return NULL;
	if (dwarf_whatform(attr) == DW_FORM_string) {
		if (!begin || s < begin || s >= begin + info->d_size ||
		    !memchr(s, '\0', (size_t)(begin + info->d_size - s)))
			return NULL;
	}
	return strnlen(s, DWARF_STRING_MAX) < DWARF_STRING_MAX ? s : NULL;
}
