/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nvtx_wire.h - what cudatrace and its object for NVTX 3 (hooks/nvtx.c) say to each other in a
 * process that was running already: one message there, one answer back.
 */
#ifndef CT_NVTX_WIRE_H
#define CT_NVTX_WIRE_H

#include <stdint.h>

/*
 * What header-only NVTX 3 keeps in each translation unit or shared object: nvtxGlobals_v3
 * (nvtx3/nvtxDetail/nvtxImpl.h). Only its beginning; the functions' slots follow.
 */
struct nvtx_globals {
	uint32_t state; /* enum nvtx_state */
	uint32_t pad;
	uint64_t callbacks_size; /* 16 */
	uint64_t get_table;	 /* a function of the same object */
	uint64_t version_size;	 /* 24 */
	uint32_t version;	 /* 3 */
	uint32_t reserved;	 /* 0 */
	uint64_t set_version;	 /* a function of the same object */
};
#define NVTX_GLOBALS_BYTES 1024 /* at least so long is the whole of it */

enum nvtx_state { NVTX_FRESH, NVTX_STARTED, NVTX_COMPLETE };

/* Is it one, as far as it can be told without the object's code? */
static inline int nvtx_globals_plausible(const struct nvtx_globals *g)
{
	return g->state <= NVTX_COMPLETE && g->callbacks_size == 16 && g->version_size == 24 &&
	       g->version == 3 && !g->reserved && g->get_table && g->set_version;
}

#define NVTX_ASK_MAX 256
#define NVTX_GLOBALS_MAX 2048 /* of one process */

struct nvtx_ask {
	uint32_t n;
	/* Take over what is not initialised yet. Not where the program's environment names a tool:
	 * the slots are that tool's. */
	uint32_t fresh;
	uint64_t at[NVTX_ASK_MAX]; /* addresses of globals */
};

struct nvtx_reported {
	uint32_t taken;	  /* globals that lead here now, or will */
	uint32_t others;  /* those that lead to another tool */
	uint32_t refused; /* what was none, or for which there was no room */
};

#endif
