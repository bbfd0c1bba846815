/* SPDX-License-Identifier: BSD-2-Clause */
/* parse.h - numbers as people type them, and the nearest known word to an unknown one. All
 * return 0 or -EINVAL (also -ERANGE) and write *out only on success. */
#ifndef CT_PARSE_H
#define CT_PARSE_H

#include "types.h"

/* Reads a decimal number from min to max, with nothing after it. */
int parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *out);
/* "1.5s", "500ms", "10us", "3ns", "2m", "1h"; a bare number is multiplied by bare_ns, or refused
 * when that is 0. */
int parse_duration(const char *text, uint64_t bare_ns, uint64_t *out_ns);
/* "4096", "1MB" (10^6), "1MiB", "1M" (2^20), "1.5GiB". */
int parse_size(const char *text, uint64_t *out_bytes);

#define PARSE_NEAREST 3
struct parse_nearest {
	char names[PARSE_NEAREST][64]; /* nearest first */
	int cost[PARSE_NEAREST];
	int n;
};
/* Offers a candidate. It is kept if it is near enough to `word` (edit distance, case ignored)
 * and among the nearest so far. The struct is zeroed before the first one. */
void parse_nearest_add(struct parse_nearest *, const char *word, const char *candidate);
/* Writes "; did you mean X, Y or Z?", or "" if no candidate is near. */
const char *parse_nearest_text(const struct parse_nearest *, char *buf, size_t size);

#endif
