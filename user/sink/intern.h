/* SPDX-License-Identifier: BSD-2-Clause */
/* intern.h - numbers for byte strings, as formats with a dictionary want them. Knows no format. */
#ifndef CT_INTERN_H
#define CT_INTERN_H

#include "../util/types.h"

struct intern;
struct intern *intern_open(void); /* NULL: no memory */
void intern_close(struct intern *);

/* The number of the bytes, from 1 on; 0: no memory. *is_new: it was given just now. A number is never given twice. */
uint32_t intern_bytes(struct intern *, const void *s, size_t n, bool *is_new);
uint32_t intern_str(struct intern *, const char *s, bool *is_new);
/* So much is remembered that it is time to forget it. */
bool intern_is_full(const struct intern *);
/* Forgets all: what comes again gets a new number. */
void intern_forget(struct intern *);

#endif
