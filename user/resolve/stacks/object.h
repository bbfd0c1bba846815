/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * object.h - the files that processes have mapped, opened once each for all processes: what the
 * unwinder and the symboliser read them with.
 *
 * Everything about an object is in the addresses that it was linked for, so it is worked out
 * once and holds for every process, wherever the file is mapped. Knows files; knows no process
 * and no record. What a file holds is untrusted.
 */
#ifndef CT_OBJECT_H
#define CT_OBJECT_H

#include "../../util/types.h"

struct Dwfl_Module;
struct objects;
struct object;
struct cfi_rows;
struct symbol_index;

struct objects *objects_open(void);   /* NULL: no memory */
void objects_close(struct objects *); /* all spaces that use them are closed before */

/* The object of an open file, with a reference. `path` is what users see: the same file under
 * two paths is two objects. The descriptor is consumed. NULL: no regular file, or no memory. */
struct object *objects_file(struct objects *, int fd, const char *path);
bool object_changed(const struct object *); /* the file was written since it was opened */
/* The object of an image in memory: the vdso, which is no file. The bytes are copied. */
struct object *objects_image(struct objects *, const void *bytes, size_t len, const char *path);
struct object *object_keep(struct object *);
void object_release(struct object *); /* takes NULL */

uint32_t object_serial(const struct object *); /* from 1 on; never reused */
const char *object_path(const struct object *);

/* The linked address of a byte of the file's code. False: it is in no executable segment, or
 * this is no ELF file. */
bool object_address(struct object *, uint64_t file_offset, uint64_t *address);
/* Copies code, by its linked address, out of the file. */
bool object_read(struct object *, uint64_t address, void *buf, size_t len);

/* libdwfl's module, at bias 0: addresses are the linked ones. NULL: the file cannot be read
 * (said once). */
struct Dwfl_Module *object_module(struct object *);
/* The file is damaged: one warning, and `why` is the first reason. */
void object_complain(struct object *, const char *why);
/* The root of the process that is being looked at: where separate debug files are searched
 * first; -1: none. */
void objects_set_root(struct objects *, int root);
/* No parsing of this object's DWARF from here on: it could not be read. */
void object_drop_dwarf(struct object *);
bool object_has_dwarf(struct object *);

/* What cfi.c and symbols.c keep with an object. Freed with the functions that are given. */
struct cfi_rows **object_rows(struct object *);
struct symbol_index **object_symbols(struct object *);

#endif
