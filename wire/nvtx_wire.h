/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nvtx_wire.h - the messages between cudatrace and its object for NVTX 3 (target/nvtx/nvtx.c) in a
 * process that was already running: one request and one answer.
 */
#ifndef CT_NVTX_WIRE_H
#define CT_NVTX_WIRE_H

#include <stdint.h>

/*
 * The beginning of nvtxGlobals_v3 (nvtx3/nvtxDetail/nvtxImpl.h), which header-only NVTX 3 has in
 * each translation unit or shared object. The functions' slots follow.
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
#define NVTX_GLOBALS_BYTES 1024 /* the whole struct has at least this size */

enum nvtx_state { NVTX_FRESH, NVTX_STARTED, NVTX_COMPLETE };

/* Returns whether it is such a struct, as far as this is visible without the object's code. */
static inline int nvtx_globals_plausible(const struct nvtx_globals *g)
{
	return g->state <= NVTX_COMPLETE && g->callbacks_size == 16 && g->version_size == 24 &&
	       g->version == 3 && !g->reserved && g->get_table && g->set_version;
}

#define NVTX_ASK_MAX 256
#define NVTX_GLOBALS_MAX 2048 /* of one process */

struct nvtx_ask {
	uint32_t n;
	/* Take over globals that are not initialised yet. Not set if the program's environment
	 * names a tool, because then the slots belong to that tool. */
	uint32_t fresh;
	uint64_t at[NVTX_ASK_MAX]; /* addresses of globals */
};

struct nvtx_reported {
	uint32_t taken;	  /* globals that lead here now, or will */
	uint32_t others;  /* those that lead to another tool */
	uint32_t refused; /* addresses that were no globals, or for which there was no room */
};

#endif
