/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * known.h - names of kernels of programs that ran before the trace began, asked when a call has
 * a handle that nothing has taught. From the symbols of the mapped files (known_elf), the
 * driver's memory (known_driver), and device code (fatbin).
 */
#ifndef CT_KNOWN_H
#define CT_KNOWN_H

#include "../../proc/target.h"
#include "known_elf.h"

struct known;

/* forgets: how many CT_S_FORGETS calls the source has seen begin, ever; NULL: names are not read
 * from memory. NULL: no memory. */
struct known *known_open(uint64_t (*forgets)(void *ctx), void *ctx);
void known_close(struct known *); /* takes NULL */

/*
 * Looks for the name of `handle` in the process. Returns it, NUL-terminated, valid until the
 * next call, with its length and how it is known; NULL: not known, or not now: ask again at the
 * next launch, which costs little. `driver`: the call is one of the driver's API, where a handle
 * is never the address of a host stub.
 */
const char *known_find(struct known *, struct target *, uint32_t pid, uint64_t handle, bool driver,
		       enum ct_name_source *source, uint32_t *len);
/* A certain pair: a handle of the driver's (CUfunction, CUkernel, cudaKernel_t) and its
 * registered name, whole. */
void known_teach(struct known *, struct target *, uint32_t pid, uint64_t handle, const char *name,
		 uint32_t len);
/* Code was unloaded, the process exec'd or ended: nothing read before holds. */
void known_forget(struct known *, uint32_t pid);
/* How many calls of rows with CT_S_FORGETS have come by, of all processes, ever: what forgets()
 * counted at their entry. As long as the two differ something is being unloaded, and nothing
 * that is read from memory is believed. */
void known_unloads(struct known *, uint64_t seen);

/* ---- for doctor: what can be named in a process ---- */

struct known_file {
	char *path; /* as the process sees it */
	struct known_elf_facts facts;
	int index_err; /* why there are no symbols; 0: there are */
	int kernels;   /* in its device code: 0, 1, 2: more; -errno: cannot be told */
};

struct known_survey {
	struct known_file *files; /* those that hold device code */
	int nfiles;
	char *driver;  /* path of the mapped libcuda; NULL: none is mapped */
	bool measured; /* its descriptions of kernels are known to be readable */
};

/* Returns 0 or -errno. known_survey_free() in any case. */
int known_survey(struct target *, struct known_survey *);
void known_survey_free(struct known_survey *);

#endif
