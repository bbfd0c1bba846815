/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memo.h - remembers a number for a key of any length, of which only a hash is kept.
 *
 * The hash has 128 bits and uses a secret of the run, so two keys do not have the same hash in
 * practice, even if a hostile program chooses them. Knows nothing of what the keys are.
 */
#ifndef CT_MEMO_H
#define CT_MEMO_H

#include "../types.h"

struct memo_key {
	uint64_t a, b;
};

struct memo_key memo_begin(uint64_t kind); /* keys of different kinds differ */
void memo_add(struct memo_key *, uint64_t word);
void memo_add_bytes(struct memo_key *, const void *, size_t len);

struct memo;
struct memo *memo_open(void);	/* NULL: no memory */
void memo_close(struct memo *); /* takes NULL */
bool memo_find(const struct memo *, struct memo_key, uint64_t *value);
int memo_put(struct memo *, struct memo_key, uint64_t value); /* 0 or -ENOMEM */
/* Forgets the values for which `old` answers true. */
void memo_forget(struct memo *, bool (*old)(void *ctx, uint64_t value), void *ctx);
uint32_t memo_count(const struct memo *);

#endif
