/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hooks_funcs.h - what a process's hooks are told: the capture specs, and where the functions are
 * that it has mapped. Knows ELF files and mappings; knows no socket.
 */
#ifndef CT_HOOKS_FUNCS_H
#define CT_HOOKS_FUNCS_H

#include "../../../wire/hooks_wire.h"
#include "../../flow/plan.h"

/* Sends a message. 0 or -errno. */
typedef int (*hooks_send_fn)(void *ctx, const void *msg, size_t n);

/* Files that were looked at, for all processes. */
struct hooks_files;
struct hooks_files *hooks_files_open(const struct capture_plan *);
void hooks_files_close(struct hooks_files *);
/* How many have functions of CUDA. */
unsigned int hooks_files_count(const struct hooks_files *);

/* Has the file behind this mapping functions that are to be recorded? False if it cannot be read any
 * more. */
struct ct_vma;
struct strings;
bool hooks_files_have(struct hooks_files *, const struct ct_vma *);

/* What one process has been told of. */
struct hooks_mapped;
struct hooks_mapped *hooks_mapped_open(void);
void hooks_mapped_close(struct hooks_mapped *);
/* Where the code of the library is whose calls of libraries below it are a part of its own (the runtime):
 * bytes 0: nowhere. */
void hooks_mapped_runtime(const struct hooks_mapped *, uint64_t *lo, uint64_t *bytes);
/* Is the function only counted there when it is muted? Not where the runtime is linked into other code. */
bool hooks_mapped_mutes(const struct hooks_mapped *, int func);

/* Functions in it that have no hook because they are IFUNCs, or because they have another one's code: PLAN_WORDS words. */
const uint64_t *hooks_mapped_indirect(const struct hooks_mapped *);
const uint64_t *hooks_mapped_shared(const struct hooks_mapped *);
/* Files that it has mapped with a runtime without symbols, whose functions were not found. */
const struct strings *hooks_mapped_stripped(const struct hooks_mapped *);

int hooks_funcs_specs(const struct capture_plan *, hooks_send_fn, void *ctx);
/* The functions of what it has mapped since the last time, as messages, the last of which says so and
 * has this number: of the question that it answers (0: none). It is sent also if there are no
 * functions. Those of the runtime's library and of the driver come first, and those of runtimes that
 * are linked into libraries last. Returns how many there are or -errno. */
int hooks_funcs_send(struct hooks_files *, struct hooks_mapped *, pid_t pid, uint32_t number,
		     hooks_send_fn, void *ctx);
/* Reads the files of what it has mapped since the last time, so that they are known when it asks. */
void hooks_funcs_ahead(struct hooks_files *, const struct hooks_mapped *, pid_t pid);

#endif
