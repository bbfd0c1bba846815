/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * objects.h - the ELF objects that the dynamic loader has mapped into this process, as their own memory
 * describes them: relocations and dynamic symbols. The loader is not asked: its locks may be held by a
 * thread that waits for us. An object may be unmapped at any moment, and its memory may hold anything:
 * all is read by text_read(), and every length is bounded. For the agent's own thread.
 */
#ifndef CT_HOOKS_OBJECTS_H
#define CT_HOOKS_OBJECTS_H

#include <linux/types.h>
#include <stdbool.h>

#include "text.h"

#define OBJECT_NAME 2048 /* bytes of a symbol's name, at the most */

struct object {
	__u64 base;   /* is added to the addresses in the file */
	__u64 lo, hi; /* its segments */
	bool is_main; /* the program itself: it is never unmapped */
	__u64 symbols, strings, strings_bytes;
	__u64 hash; /* DT_GNU_HASH; 0: it has none */
	__u64 dynamic, dynamic_bytes;
	struct object_relocs {
		__u64 at, n;
	} relocs[2]; /* without those that name no symbol; of calls */
};

/* A word that the loader fills in with a symbol's address. */
enum object_use {
	OBJECT_CALL,	/* R_X86_64_JUMP_SLOT, R_AARCH64_JUMP_SLOT */
	OBJECT_ADDRESS, /* ..._GLOB_DAT: it is called through, or taken as a pointer */
	OBJECT_DATA,	/* R_X86_64_64, R_AARCH64_ABS64, without an addend */
};
struct object_word {
	__u64 at;    /* its address */
	__u64 value; /* what is there now */
	enum object_use use;
	__u32 symbol;
};

/* Reads the object whose file begins at this mapping. False: there is none that the loader has
 * mapped. */
bool object_read(const struct text_map *, struct object *);

/* Calls f for each of its words. Stops where f returns false. */
typedef bool (*object_word_fn)(void *ctx, const struct object *, const struct object_word *);
void object_words(const struct object *, object_word_fn f, void *ctx);

/* Calls f for each function that it defines, until f returns false. */
typedef bool (*object_function_fn)(void *ctx, const struct object *, __u64 address, __u32 symbol);
void object_functions(const struct object *, object_function_fn f, void *ctx);

/* A symbol's name. False: it cannot be read, or is longer than OBJECT_NAME. */
bool object_name(const struct object *, __u32 symbol, char name[OBJECT_NAME]);

/* Does it define the name, as far as its table says? An object without that table may. */
__u32 object_hash(const char *name);
bool object_may_define(const struct object *, const char *name, __u32 hash);

/* Is it, or does its file name, the other object, so that this one stays mapped for as long as it? */
bool object_needs(const struct object *, const struct object *other);

/* Those of its symbols that are virtual tables of C++ classes. */
struct object_tables {
	struct object_table {
		__u64 lo, hi;
	} * tables; /* by address */
	unsigned int n;
};
/* An empty list if there is no memory. */
void object_tables_read(const struct object *, struct object_tables *);
void object_tables_free(struct object_tables *);
bool object_tables_hold(const struct object_tables *, __u64 address);

#endif
