/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pickle.h - writes values as Python's pickle module reads them (protocol 2): numbers, texts, lists
 * and dictionaries. Only what makes values: no name of a class or a function is written. Knows no memory.
 */
#ifndef CT_PICKLE_H
#define CT_PICKLE_H

#include "../../util/io/out.h"
#include "../../util/text.h"

struct pickle {
	struct out *out;
	uint32_t kept;		 /* values that can be written again by their number */
	const char *const *keys; /* texts of dictionaries' keys, by number */
	uint32_t *key_kept;	 /* of each: its number + 1; 0: not written yet */
	struct text text;
};

/* A list that is being written: readers take few items at a time, so that they need little stack. */
struct pickle_list {
	uint32_t n;
};

/* keys: `nkeys` of them, at most 256; kept by pointer. Returns 0 or -ENOMEM. */
int pickle_begin(struct pickle *, struct out *, const char *const *keys, uint32_t nkeys);
void pickle_end(struct pickle *);
void pickle_number(struct pickle *, uint64_t);
void pickle_bool(struct pickle *, bool);
void pickle_text(struct pickle *,
		 const char *); /* untrusted bytes: what is no UTF-8 becomes U+FFFD */
void pickle_pair(struct pickle *, uint64_t a, uint64_t b);
void pickle_dict(struct pickle *);
void pickle_key(struct pickle *, uint32_t key); /* the value follows */
void pickle_dict_end(struct pickle *);
void pickle_list(struct pickle *, struct pickle_list *);
void pickle_item(struct pickle *, struct pickle_list *); /* the value follows */
void pickle_list_end(struct pickle *, struct pickle_list *);
/* Keeps the value that was written last, and returns its number for pickle_again(). */
uint32_t pickle_keep(struct pickle *);
void pickle_again(struct pickle *, uint32_t number);

#endif
