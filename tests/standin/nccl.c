/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nccl.c - a libnccl that needs no GPU: communicators in memory as the real one has them, with
 * members at other offsets, and collectives that are counted and do nothing. -DNO_LIST: without the
 * list of all communicators, as the real one is when its RAS is switched off.
 */
#include <nccl.h>

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC 0x0280028002800280ULL
#define API __attribute__((visibility("default")))

typedef enum {
	ncclFuncBroadcast,
	ncclFuncReduce,
	ncclFuncAllGather,
	ncclFuncReduceScatter,
	ncclFuncAllReduce,
	ncclFuncSendRecv,
	ncclNumFuncs,
} ncclFunc_t;

struct ncclComm {
	uint64_t startMagic;
	char channels[1 << 20];
	uint64_t commHash;
	int rank, nRanks, cudaDev;
	char state[1000];
	volatile uint64_t seqNumber[ncclFuncSendRecv];
	uint64_t endMagic;
};

#ifndef NO_LIST
#define COMMS_MAX 64
struct ncclComm **ncclComms;
int nNcclComms;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void enlist(struct ncclComm *comm)
{
	pthread_mutex_lock(&lock);
	if (!ncclComms)
		ncclComms = calloc(COMMS_MAX, sizeof(*ncclComms));
	if (nNcclComms < COMMS_MAX)
		ncclComms[nNcclComms++] = comm;
	pthread_mutex_unlock(&lock);
}
#else
static void enlist(struct ncclComm *comm)
{
	(void)comm;
}
#endif

API ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
	memset(id, 0, sizeof(*id));
	strcpy(id->internal, "standin");
	return ncclSuccess;
}

API ncclResult_t ncclCommInitRank(ncclComm_t *out, int nranks, ncclUniqueId id, int rank)
{
	struct ncclComm *comm = calloc(1, sizeof(*comm));
	uint64_t hash = 0xcbf29ce484222325ULL;

	if (!comm || rank < 0 || rank >= nranks)
		return ncclInvalidArgument;
	for (size_t i = 0; i < sizeof(id.internal); i++)
		hash = (hash ^ (uint8_t)id.internal[i]) * 0x100000001b3ULL;
	comm->startMagic = comm->endMagic = MAGIC;
	comm->commHash = hash;
	comm->rank = comm->cudaDev = rank;
	comm->nRanks = nranks;
	enlist(comm);
	*out = comm;
	return ncclSuccess;
}

API ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
	comm->startMagic = comm->endMagic = 0;
	return ncclSuccess;
}

API ncclResult_t ncclAllReduce(const void *sendbuff, void *recvbuff, size_t count,
			       ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
			       cudaStream_t stream)
{
	(void)sendbuff, (void)recvbuff, (void)count, (void)type, (void)op, (void)stream;
	comm->seqNumber[ncclFuncAllReduce]++;
	return ncclSuccess;
}

API ncclResult_t ncclBroadcast(const void *sendbuff, void *recvbuff, size_t count,
			       ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream)
{
	(void)sendbuff, (void)recvbuff, (void)count, (void)type, (void)root, (void)stream;
	comm->seqNumber[ncclFuncBroadcast]++;
	return ncclSuccess;
}
