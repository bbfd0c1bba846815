/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * known.h - finds names of kernels in programs that ran before the trace began. It is asked when a
 * call has a handle that no call has taught. The names come from the symbols of the mapped files
 * (known_elf), the driver's memory (known_driver), and device code (fatbin).
 */
#ifndef CT_KNOWN_H
#define CT_KNOWN_H

#include "../../../wire/cudatrace.h"
#include "../../proc/target.h"
#include "known_elf.h"
#include "../../../wire/cudatrace.h"

struct known;

/* forgets() returns how many CT_S_FORGETS calls the source has seen begin so far. If it is NULL,
 * names are not read from memory. Returns NULL if there is no memory. */
struct known *known_open(uint64_t (*forgets)(void *ctx), void *ctx);
void known_close(struct known *); /* takes NULL */

/*
 * Looks for the name of `handle` in the process. Returns the name, NUL-terminated, valid until the
 * next call, with its length and its source. NULL: the name is not known, or cannot be found now:
 * ask again at the next launch, which costs little. `driver`: the call is one of the driver's API,
 * where a handle is never the address of a host stub.
 */
const char *known_find(struct known *, struct target *, uint32_t pid, uint64_t handle, bool driver,
		       enum ct_name_source *source, uint32_t *len);
/* Teaches a pair that is certain: a handle of the driver (CUfunction, CUkernel, cudaKernel_t) and
 * its complete registered name. */
void known_teach(struct known *, struct target *, uint32_t pid, uint64_t handle, const char *name,
		 uint32_t len);
/* Call this when code was unloaded, or when the process exec'd or ended: nothing that was read
 * before is valid. */
void known_forget(struct known *, uint32_t pid);
/* Sets how many records of CT_S_FORGETS calls have arrived so far, of all processes. forgets()
 * counts the same calls at their entry. While the two numbers differ, something is being unloaded,
 * and nothing that is read from memory is trusted. */
void known_unloads(struct known *, uint64_t seen);

/* ---- for doctor: what can be named in a process ---- */

struct known_file {
	char *path; /* as the process sees it */
	struct known_elf_facts facts;
	int index_err; /* why there are no symbols; 0: there are symbols */
	/* kernels in its device code: 0, 1, or 2 for more; -errno: cannot be determined */
	int kernels;
};

struct known_survey {
	struct known_file *files; /* those that hold device code */
	int nfiles;
	char *driver; /* path of the mapped libcuda; NULL: none is mapped */
	/* whether it is a driver whose descriptions of kernels are known to be readable */
	bool measured;
};

/* Returns 0 or -errno. Call known_survey_free() in any case. */
int known_survey(struct target *, struct known_survey *);
void known_survey_free(struct known_survey *);

#endif
