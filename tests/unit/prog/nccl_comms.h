/* SPDX-License-Identifier: BSD-2-Clause */
/* nccl_comms.h - the communicator of nccl_comms.c. */
#ifndef CT_NCCL_COMMS_H
#define CT_NCCL_COMMS_H

#include <stdint.h>

#include "../../standin/nccl_funcs.h"

#define COMM_MAGIC 0x0280028002800280ULL

#ifndef STRUCT
#define STRUCT ncclComm
#endif
struct STRUCT {
	uint64_t before; /* the word by which it is found is not the first one */
	uint64_t startMagic, commHash;
	int rank, nRanks;
	uint64_t seqNumber[ncclFuncSendRecv];
	uint64_t endMagic;
};

#endif
