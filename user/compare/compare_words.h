/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * compare_words.h - what changed, in sentences, and the numbers of conditions in words. Knows no
 * format: each has its own way to write a name, which is untrusted bytes.
 */
#ifndef CT_COMPARE_WORDS_H
#define CT_COMPARE_WORDS_H

#include "compare.h"

typedef void words_name(struct out *, const char *name);

/* "calls of cudaMalloc", "time in CUDA calls" */
void words_of(struct out *, const struct judge_change *, words_name *);
/* The changes that are worth a sentence, the largest first, at most WORDS_MAX: each between
 * `before` and a line feed. Always one line at least. */
#define WORDS_MAX 8
void words_changes(struct out *, const struct compare *, const char *before, words_name *);

/* A number with its unit, in at most 12 columns; NAN: "-". Returns buf. */
const char *words_value(char *buf, size_t size, enum saved_unit, double v);
/* The chance that noise alone makes the change, up or down; NAN: not tested. */
double words_chance(const struct judge_change *);

#endif
