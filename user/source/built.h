/* SPDX-License-Identifier: BSD-2-Clause */
/* built.h - what this program was built from and with, for --version. */
#ifndef CT_BUILT_H
#define CT_BUILT_H

#include <stddef.h>

/* Writes a line each for the version, the commit (if the source was a git repository), how it was
 * built and which sources of calls it has. Returns the length of the text, which always fits 512
 * bytes; of a smaller `size`, what fits is written, with a null byte at its end. */
size_t built_text(char *buf, size_t size);

#endif
