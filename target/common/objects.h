/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * objects.h - the ELF objects that the dynamic loader has mapped into this process, as their own
 * memory describes them: relocations and dynamic symbols. The loader's functions are not called,
 * because a thread that waits for us may hold the loader's locks. An object may be unmapped at any
 * moment, and its memory may contain anything. So everything is read by text_read(), and every
 * length is bounded. All functions are for our own thread.
 */
#ifndef CT_HOOKS_OBJECTS_H
#define CT_HOOKS_OBJECTS_H

#include <linux/types.h>
#include <stdbool.h>

#include "code_text.h"

#define OBJECT_NAME 2048 /* the longest name of a symbol, in bytes */

struct object {
	__u64 base;   /* add this to the addresses in the file */
	__u64 lo, hi; /* the range of its segments */
	bool is_main; /* the program itself: it is never unmapped */
	__u64 symbols, strings, strings_bytes;
	__u64 hash;   /* DT_GNU_HASH; 0: it has none */
	__u64 hashes; /* the hash of each symbol from hashed on; 0: not known */
	__u32 hashed;
	__u64 dynamic, dynamic_bytes;
	struct object_relocs {
		__u64 at, n;
	} relocs[2]; /* [0]: without those that name no symbol; [1]: of calls */
};

/* Finds the object that contains the address. */
bool object_find(const struct text_maps *, __u64 address, struct object *);

/* Calls f for each object that the loader has loaded, with its name as the loader knows it. The list that
 * debuggers read is read without the loader's lock. If it changes meanwhile it is read again, so f may be
 * called for an object more than once. */
void objects_loaded(void (*f)(void *ctx, const char *name), void *ctx);
/* Returns a number that is another one if the loader has loaded something. It is not noticed that the same file
 * was unloaded and loaded again at its place. Two reads if nothing has changed. */
__u64 objects_state(void);

/* A word that the loader fills in with a symbol's address. */
enum object_use {
	OBJECT_CALL,	/* R_X86_64_JUMP_SLOT, R_AARCH64_JUMP_SLOT */
	OBJECT_ADDRESS, /* ..._GLOB_DAT: code calls through it, or uses it as a pointer */
	OBJECT_DATA,	/* R_X86_64_64, R_AARCH64_ABS64, without an addend */
};
struct object_word {
	__u64 at;    /* its address */
	__u64 value; /* what is there now */
	enum object_use use;
	__u32 symbol;
};

/* Reads the object whose file begins at this mapping. Returns false if the loader has mapped no
 * object there. */
bool object_read(const struct text_map *, struct object *);

/* Calls f for each of the object's words, or only for those of calls, until f returns false. */
typedef bool (*object_word_fn)(void *ctx, const struct object *, const struct object_word *);
void object_words(const struct object *, bool calls, object_word_fn f, void *ctx);

/* Calls f for each function that the object defines, until f returns false. */
typedef bool (*object_function_fn)(void *ctx, const struct object *, __u64 address, __u32 symbol);
void object_functions(const struct object *, object_function_fn f, void *ctx);

/* Gets a symbol's name. Returns false if it cannot be read, or is longer than OBJECT_NAME. */
bool object_name(const struct object *, __u32 symbol, char name[OBJECT_NAME]);

/* Gets the hash of a symbol's name, but for its lowest bit, from the object's table, which has those that the object defines. That is
 * cheaper than the name, for which two other tables are read. */
bool object_hash_of(const struct object *, __u32 symbol, __u32 *hash);
/* object_may_define() returns whether the object defines the name, according to its hash table. It
 * returns true if the object has no such table. */
__u32 object_hash(const char *name);
bool object_may_define(const struct object *, const char *name, __u32 hash);

/* Gets the name that the object has for those that need it; false: it has none. */
bool object_soname(const struct object *, char name[OBJECT_NAME]);

/* Returns whether the other object stays mapped for as long as this one: it is the same object, or
 * this object's file names it. */
bool object_needs(const struct object *, const struct object *other);

/* The symbols of an object that are virtual tables of C++ classes. */
struct object_tables {
	struct object_table {
		__u64 lo, hi;
	} * tables; /* sorted by address */
	unsigned int n;
};
/* Reads the tables. If there is no memory, the list is empty. */
void object_tables_read(const struct object *, struct object_tables *);
void object_tables_free(struct object_tables *);
bool object_tables_hold(const struct object_tables *, __u64 address);

#endif
