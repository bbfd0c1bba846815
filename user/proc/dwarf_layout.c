/* SPDX-License-Identifier: BSD-2-Clause */
/* dwarf_layout.c - see dwarf_layout.h. The file is read, not mapped: it may be cut off meanwhile. */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <errno.h>
#include <string.h>

#include "../util/now.h"
#include "dwarf_layout.h"
#include "dwarf_strings.h"

#define TYPES_MAX 16	   /* typedefs and qualifiers around a type that are followed */
#define ENTRIES_MAX 100000 /* children of one entry */
#define LOOK_EVERY 256	   /* entries between two looks at the clock */
#define ELEMENTS_MAX 65536

struct walk {
	struct dwarf_wanted *want;
	const Elf_Data *info; /* .debug_info */
	uint64_t until_ns;
	unsigned int entries;
};

static bool late(struct walk *w)
{
	return ++w->entries % LOOK_EVERY == 0 && now_ns() > w->until_ns;
}

static const char *dwarf_layout_name_of(const struct walk *w, Dwarf_Die *die)
{
	Dwarf_Attribute attr, *a = dwarf_attr_integrate(die, DW_AT_name, &attr);

	return a ? dwarf_string(a, w->info) : NULL;
}

static bool is_named(const struct walk *w, Dwarf_Die *die, const char *name)
{
	const char *s = dwarf_layout_name_of(w, die);

	return s && !strcmp(s, name);
}

static bool dwarf_layout_number_of(Dwarf_Die *die, unsigned int what, uint64_t *out)
{
	Dwarf_Attribute attr;
	Dwarf_Word v;

	if (!dwarf_attr(die, what, &attr) || dwarf_formudata(&attr, &v))
		return false;
	*out = v;
	return true;
}

/* The type of an entry behind its typedefs and qualifiers. */
static bool dwarf_layout_type_of(Dwarf_Die *die, Dwarf_Die *type)
{
	Dwarf_Attribute attr;

	*type = *die;
	for (int i = 0; i < TYPES_MAX; i++) {
		Dwarf_Die next;

		if (!dwarf_attr(type, DW_AT_type, &attr) || !dwarf_formref_die(&attr, &next))
			return false;
		*type = next;
		switch (dwarf_tag(type)) {
		case DW_TAG_typedef:
		case DW_TAG_const_type:
		case DW_TAG_volatile_type:
		case DW_TAG_atomic_type: break;
		default: return true;
		}
	}
	return false;
}

/* The number of elements of an array of one dimension; 0: it is another. */
static uint32_t elements(Dwarf_Die *array)
{
	Dwarf_Die child, more;
	uint64_t n = 0;

	if (dwarf_child(array, &child) || dwarf_tag(&child) != DW_TAG_subrange_type ||
	    dwarf_siblingof(&child, &more) != 1)
		return 0;
	if (!dwarf_layout_number_of(&child, DW_AT_count, &n) &&
	    dwarf_layout_number_of(&child, DW_AT_upper_bound, &n))
		n++;
	return n <= ELEMENTS_MAX ? (uint32_t)n : 0;
}

static void fill_member(struct dwarf_member *m, Dwarf_Die *die)
{
	Dwarf_Die type, element;
	uint64_t offset, size;
	uint32_t n = 1;

	if (dwarf_hasattr(die, DW_AT_bit_size) ||
	    !dwarf_layout_number_of(die, DW_AT_data_member_location, &offset) ||
	    !dwarf_layout_type_of(die, &type))
		return;
	if (dwarf_tag(&type) == DW_TAG_array_type) {
		n = elements(&type);
		element = type;
		if (!n || !dwarf_layout_type_of(&element, &type))
			return;
	}
	switch (dwarf_tag(&type)) {
	case DW_TAG_pointer_type: size = sizeof(uint64_t); break;
	case DW_TAG_base_type:
	case DW_TAG_enumeration_type:
		if (dwarf_layout_number_of(&type, DW_AT_byte_size, &size) &&
		    (size == 1 || size == 2 || size == 4 || size == 8))
			break;
		return;
	default: return;
	}
	m->known = true;
	m->offset = offset;
	m->size = (uint32_t)size;
	m->n = n;
}

/* All of a member must lie in the struct. */
bool dwarf_member_fits(const struct dwarf_member *m, uint64_t bytes)
{
	uint64_t own = (uint64_t)m->size * m->n;

	return (m->size == 1 || m->size == 2 || m->size == 4 || m->size == 8) && m->n &&
	       m->n <= ELEMENTS_MAX && own <= bytes && m->offset <= bytes - own;
}

static void check_members(struct dwarf_wanted *want)
{
	for (int i = 0; i < want->nmembers; i++) {
		struct dwarf_member *m = &want->members[i];

		if (m->known && !dwarf_member_fits(m, want->bytes))
			*m = (struct dwarf_member){ .name = m->name };
	}
}

static int fill_struct(struct walk *w, Dwarf_Die *die)
{
	struct dwarf_wanted *want = w->want;
	Dwarf_Die child;
	int found = dwarf_child(die, &child);

	for (int n = 0; !found && n < ENTRIES_MAX; n++) {
		if (late(w))
			return -ETIME;
		for (int i = 0; dwarf_tag(&child) == DW_TAG_member && i < want->nmembers; i++)
			if (!want->members[i].known && is_named(w, &child, want->members[i].name))
				fill_member(&want->members[i], &child);
		found = dwarf_siblingof(&child, &child);
	}
	check_members(want);
	return 0;
}

/* Is it a definition of the struct? */
static bool is_struct(const struct walk *w, Dwarf_Die *die, uint64_t *bytes)
{
	return (dwarf_tag(die) == DW_TAG_structure_type || dwarf_tag(die) == DW_TAG_class_type) &&
	       is_named(w, die, w->want->structure) && !dwarf_hasattr(die, DW_AT_declaration) &&
	       dwarf_layout_number_of(die, DW_AT_byte_size, bytes) && *bytes;
}

/* Keeps the names of an enumeration if it is the one. */
static void fill_names(struct walk *w, Dwarf_Die *die)
{
	struct dwarf_wanted *want = w->want;
	bool is_it = false;
	Dwarf_Die child;
	int found;

	if (dwarf_tag(die) != DW_TAG_enumeration_type)
		return;
	found = dwarf_child(die, &child);
	for (int n = 0; !found && n < ENTRIES_MAX && !late(w); n++) {
		const char *name = dwarf_layout_name_of(w, &child);
		uint64_t v;

		if (dwarf_tag(&child) == DW_TAG_enumerator && name &&
		    dwarf_layout_number_of(&child, DW_AT_const_value, &v)) {
			is_it |= !strcmp(name, want->enumerator);
			if (v < (uint64_t)want->nnames && !want->names[v][0] &&
			    strlen(name) < sizeof(want->names[v]))
				strcpy(want->names[v], name);
		}
		found = dwarf_siblingof(&child, &child);
	}
	if (!is_it)
		memset(want->names, 0, (size_t)want->nnames * sizeof(want->names[0]));
}

/* One compilation unit: 1 when it has the struct, 0, or -ETIME. */
static int search_unit(struct walk *w, Dwarf_Die *unit)
{
	struct dwarf_wanted *want = w->want;
	Dwarf_Die die;
	int found = dwarf_child(unit, &die), err = 0;
	bool here = false;
	uint64_t bytes;

	while (!found && !err) {
		if (late(w))
			return -ETIME;
		if (!here && is_struct(w, &die, &bytes)) {
			here = true;
			want->bytes = bytes;
			err = fill_struct(w, &die);
		} else if (want->enumerator && !want->names[0][0]) {
			fill_names(w, &die);
		}
		found = dwarf_siblingof(&die, &die);
	}
	if (!here && want->enumerator)
		memset(want->names, 0, (size_t)want->nnames * sizeof(want->names[0]));
	return err ? err : here;
}

static int dwarf_layout_search(struct walk *w, Dwarf *dwarf)
{
	Dwarf_Off off = 0, next;
	size_t header;
	int found = 0;

	while (!found && !dwarf_nextcu(dwarf, off, &next, &header, NULL, NULL, NULL)) {
		Dwarf_Die unit;

		if (next <= off || now_ns() > w->until_ns)
			return next <= off ? -ENOENT : -ETIME;
		if (dwarf_offdie(dwarf, off + header, &unit))
			found = search_unit(w, &unit);
		off = next;
	}
	return found > 0 ? 0 : found ? found : -ENOENT;
}

/* Whether nothing is in a file that it shares with others: libdw would open whatever file it names. */
static bool is_whole(Dwarf *dwarf)
{
	const char *name;
	const void *id;

	return !dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &id);
}

int dwarf_layout(int fd, struct dwarf_wanted *want, uint64_t until_ns)
{
	struct walk w = { .want = want, .until_ns = until_ns };
	Dwarf *dwarf;
	Elf *elf;
	int err;

	for (int i = 0; i < want->nmembers; i++)
		want->members[i] = (struct dwarf_member){ .name = want->members[i].name };
	if (want->enumerator)
		memset(want->names, 0, (size_t)want->nnames * sizeof(want->names[0]));
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!elf)
		return -ENOEXEC;
	dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
	w.info = dwarf_section(elf, ".debug_info");
	err = dwarf && is_whole(dwarf) && dwarf_strings_end(dwarf) ? dwarf_layout_search(&w, dwarf)
								   : -ENODATA;
	if (dwarf)
		dwarf_end(dwarf);
	elf_end(elf);
	return err;
}
