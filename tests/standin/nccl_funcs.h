/* SPDX-License-Identifier: BSD-2-Clause */
/* nccl_funcs.h - the numbers that NCCL gives its collectives (nccl_common.h of NCCL), as debug information has them. */
#ifndef CT_NCCL_FUNCS_H
#define CT_NCCL_FUNCS_H

typedef enum {
	ncclFuncBroadcast,
	ncclFuncReduce,
	ncclFuncAllGather,
	ncclFuncReduceScatter,
	ncclFuncAllReduce,
	ncclFuncSendRecv,
	ncclNumFuncs,
} ncclFunc_t;

#endif
