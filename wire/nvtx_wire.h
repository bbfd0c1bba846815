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

/*
 * All of it. Its functions lie one behind the other, module by module: 15 of CORE, 8 of CUDA, 14 of OpenCL,
 * 6 of CUDART, 15 of CORE2, 6 of SYNC. So do the modules' tables, each with an empty place in front and one
 * behind: by the function's number in its module they say where its slot is.
 */
#define NVTX_IDS 16 /* of CORE and CORE2; the first number is 1 */
#define NVTX_SLOTS 64
#define NVTX_SLOT_CORE 0
#define NVTX_SLOT_CORE_2 43
#define NVTX_TABLES 76
#define NVTX_TABLE_CORE 0
#define NVTX_TABLE_CORE_2 51
struct nvtx_layout {
	struct nvtx_globals head;
	uint64_t slots[NVTX_SLOTS];
	uint64_t tables[NVTX_TABLES];
};
#define NVTX_GLOBALS_BYTES sizeof(struct nvtx_layout)

/* Returns whether the tables of what is at this address lead to the slots in it. */
static inline int nvtx_tables_lead(const struct nvtx_layout *l, uint64_t at)
{
	uint64_t slots = at + sizeof(l->head);

	for (unsigned int i = 1; i < NVTX_IDS; i++)
		if (l->tables[NVTX_TABLE_CORE + i] != slots + (NVTX_SLOT_CORE + i - 1) * 8 ||
		    l->tables[NVTX_TABLE_CORE_2 + i] != slots + (NVTX_SLOT_CORE_2 + i - 1) * 8)
			return 0;
	return 1;
}

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
