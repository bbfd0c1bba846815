/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stripped.h - the functions of NVIDIA's static runtime in a file that has no symbols of them. The file is
 * untrusted.
 *
 * Each function of the runtime tells profilers its name and its number when it is called, so its code has both. A
 * function has a name if it refers to the text of this name and has this name's number, and if no other function does. The
 * few functions that tell nothing are known by their code (stripped_codes.h).
 */
#ifndef CT_STRIPPED_H
#define CT_STRIPPED_H

#include "../../proc/elf_read.h"

/* The beginnings of names that a file imports if the runtime is in it; NULL ends the list. */
#define STRIPPED_IMPORTS 6
extern const char *const stripped_imports[STRIPPED_IMPORTS + 1];
/* Notes an undefined symbol. True: it is one of these. */
bool stripped_imported(uint32_t *seen, const char *name);
/* Are all of them there? Hardly any other code needs all of them. */
bool stripped_likely(uint32_t seen);

struct stripped_func {
	const char *name; /* of the table: it stays */
	uint64_t address, bytes;
};
struct stripped {
	bool there; /* the runtime is in the file */
	struct stripped_func *funcs;
	size_t n;
	/* functions that are there and were not found: claimed by several; or, if hardly any was found, all whose names are there */
	const char **missing;
	size_t nmissing;
};

/* Of a file that is likely to have it. Returns 0, -ENOMEM, -ETIME (file->until_ns), -EIO or -EBADMSG. Free it in any case. */
int stripped_find(const struct elf_file *, struct stripped *);
void stripped_free(struct stripped *);

#endif
