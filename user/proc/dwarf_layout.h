/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dwarf_layout.h - where the members of a struct lie, and what the values of an enumeration are
 * called, from the debug information of the very file that a program has mapped. Knows no library.
 */
#ifndef CT_DWARF_LAYOUT_H
#define CT_DWARF_LAYOUT_H

#include "../util/types.h"

/* A member that the struct itself contains: an integer, an enumeration or a pointer, or an array
 * of one dimension of these. */
struct dwarf_member {
	const char *name;
	bool known;	 /* it is there, and of such a type; else the rest is 0 */
	uint64_t offset; /* bytes from the struct's beginning */
	uint32_t size;	 /* bytes of one element: 1, 2, 4 or 8 */
	uint32_t n;	 /* elements; 1 when it is no array */
};

/* Is it one that a struct of so many bytes may have? */
bool dwarf_member_fits(const struct dwarf_member *, uint64_t bytes);

#define DWARF_NAME_BYTES 48

struct dwarf_wanted {
	const char *structure;	      /* its name; the first one that is defined counts */
	struct dwarf_member *members; /* whose names are given; the rest is filled in */
	int nmembers;
	uint64_t bytes; /* out: the struct's size */
	/* The enumeration that contains this name, where it is in the same unit. NULL: none. */
	const char *enumerator;
	/* out: its names by value, "" where there is none, or where the name is too long */
	char (*names)[DWARF_NAME_BYTES];
	int nnames;
};

/* Reads the file at most until `until_ns` (CLOCK_MONOTONIC). The file is untrusted, and may block its reader: call this from a worker (util/io/bounded.h). Returns 0; -ENODATA (there is
 * no debug information), -ENOENT (the struct is not in it), -ETIME, -ENOEXEC, -ENOMEM. */
int dwarf_layout(int fd, struct dwarf_wanted *, uint64_t until_ns);

#endif
