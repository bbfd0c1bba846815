/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * object.h - the files that processes have mapped. Each is opened once for all processes. The
 * unwinder and the symboliser read the files through this.
 *
 * All addresses of an object are the linked ones. So everything about it is computed once and is
 * valid for every process, wherever the file is mapped. Knows files; knows no process and no
 * record. The contents of a file are untrusted.
 */
#ifndef CT_OBJECT_H
#define CT_OBJECT_H

#include "../../util/types.h"

struct Dwarf;
struct Dwfl_Module;
struct objects;
struct object;
struct cfi_rows;
struct symbol_index;

/*
 * A file may be large beyond measure, be made so that it takes long to be read, or lie on a server
 * that does not answer. So a worker reads it (util/io/bounded.h), for whom the main loop waits for
 * a limited time. If that is not enough, the worker keeps the object until it is done: meanwhile
 * the object is lent, and everything that is asked of it has the answer "not known".
 */

/* How much memory cudatrace may take, in bytes, where that is less than the machine has: half of it
 * is for all files. Before objects_open(). */
void objects_memory(uint64_t bytes);
struct objects *objects_open(void);   /* NULL: no memory */
void objects_close(struct objects *); /* close all spaces that use them first */
/* The files are not only those of processes that the user chose. Then each user's files have only
 * an allowance of the main loop's time (util/allowance.h). */
void objects_impatient(struct objects *);
/* For whom files are read from now on: a user's number (see bounded_run()). And the root directory
 * of the process: separate debug files are searched there first; -1: none. */
void objects_set_process(struct objects *, int root, uint32_t owner);
/* Whether something was not known since the last call because an object is lent. */
bool objects_missed(struct objects *);

/* Returns the object of an open file, with a reference. `path` is what users see: the same file
 * under two paths is two objects. Takes over the descriptor. NULL: not a regular file, or no
 * memory. */
struct object *objects_file(struct objects *, int fd, const char *path);
/* Whether the file was written since it was opened, as far as this machine knows: a file server is
 * not asked. */
bool object_changed(const struct object *);
/* Whether a worker that took too long has it. */
bool object_lent(const struct object *);
/* Returns the object of an image in memory: the vdso, which is not a file. The bytes are copied. */
struct object *objects_image(struct objects *, const void *bytes, size_t len, const char *path);
struct object *object_keep(struct object *);
void object_release(struct object *); /* takes NULL */

uint32_t object_serial(const struct object *); /* from 1 on; never reused */
const char *object_path(const struct object *);

/* Finds the linked address of a byte of the file's code. False: it is in no executable segment, or
 * this is not an ELF file. */
bool object_address(struct object *, uint64_t file_offset, uint64_t *address);
/* Copies code from the file, by its linked address; at most OBJECT_READ_MAX bytes. */
#define OBJECT_READ_MAX 64
bool object_read(struct object *, uint64_t address, void *buf, size_t len);

/*
 * Runs a task that reads the file or what is kept with it, with `args`, which are `size` bytes that
 * contain no pointer to memory of the caller. True: it ran, and what it changed in args is there.
 * False: a worker has the object; objects_missed() says so.
 *
 * The functions below are for tasks only.
 */
bool object_do(struct object *, void (*task)(struct object *, void *args), void *args, size_t size);

/* A worker calls it when it begins a task. NULL, except in tests. */
extern void (*objects_begins)(void);
/* Bytes of symbols and debug information that are kept of the files of one user, where the files
 * are not only those of processes that the user of cudatrace chose. Changed in tests. */
extern uint64_t objects_owner_max;
/* And of all files; 0: not known yet. */
extern uint64_t objects_all_max;
/* Tasks are run without a worker, so that a crash is seen: for tests and fuzzing of damaged files. */
extern bool objects_in_place;

/* Returns libdwfl's module, at bias 0: addresses are the linked ones. NULL: the file cannot be read
 * (reported once). */
struct Dwfl_Module *object_module(struct object *);
/* Reports that the file is damaged, when the task is over. Only the first call warns, with its
 * reason `why`, a text that stays. */
void object_complain(struct object *, const char *why);
/* From now on this object's DWARF is not parsed, because it could not be read. */
void object_drop_dwarf(struct object *);
bool object_has_dwarf(struct object *);
/* Gives libdw the file that the debug information shares with others (.gnu_debugaltlink), if it may
 * be used as a separate debug file may. False: it refers to one, and has none. */
bool object_find_alt(struct object *, struct Dwarf *);

/* What cfi.c and symbols.c keep with an object. It is freed with cfi_close() and
 * symbols_close(). */
struct cfi_rows **object_rows(struct object *);
struct symbol_index **object_symbols(struct object *);

#endif
