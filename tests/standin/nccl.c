/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nccl.c - a libnccl that needs no GPU: communicators in memory as the real one has them, with
 * members at other offsets, and collectives that are counted and do nothing. -DNO_LIST: without the
 * list of all communicators, as the real one is when its RAS is switched off. With STANDIN_NCCL_LAUNCH
 * in the environment a collective launches a kernel, or at the end of its group.
 */
#include <nccl.h>

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../target/common/prologue.h"
#include "nccl_funcs.h"

#define MAGIC 0x0280028002800280ULL
#define API __attribute__((visibility("default")))

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
	PUSHES();
	memset(id, 0, sizeof(*id));
	strcpy(id->internal, "standin");
	return ncclSuccess;
}

static ncclResult_t make(ncclComm_t *out, int nranks, ncclUniqueId id, int rank)
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

API ncclResult_t ncclCommInitRank(ncclComm_t *out, int nranks, ncclUniqueId id, int rank)
{
	PUSHES();
	return make(out, nranks, id, rank);
}

API ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
	PUSHES();
	comm->startMagic = comm->endMagic = 0;
	return ncclSuccess;
}

/* pncclX is at the address of ncclX. */
#define ALIAS(name) \
	extern __typeof__(name) p##name __attribute__((alias(#name), visibility("default")));

API ncclResult_t ncclCommInitAll(ncclComm_t *comms, int ndev, const int *devlist)
{
	PUSHES();
	ncclUniqueId id;

	(void)devlist;
	ncclGetUniqueId(&id);
	for (int i = 0; i < ndev; i++)
		if (ncclCommInitRank(&comms[i], ndev, id, i))
			return ncclInvalidArgument;
	return ncclSuccess;
}

API ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *newcomm,
			       void *config)
{
	PUSHES();
	ncclUniqueId id = { "split" };

	/* every second rank has the same color */
	id.internal[5] = (char)color;
	(void)key, (void)config;
	return make(newcomm, comm->nRanks / 2, id, comm->rank / 2);
}

API ncclResult_t ncclCommShrink(ncclComm_t comm, int *excluded, int n, ncclComm_t *newcomm,
				void *config, int flags)
{
	PUSHES();
	ncclUniqueId id = { "shrink" };
	int rank = comm->rank;

	(void)config, (void)flags;
	for (int i = 0; i < n; i++)
		rank -= excluded[i] < comm->rank;
	return make(newcomm, comm->nRanks - n, id, rank);
}

API ncclResult_t ncclCommCount(ncclComm_t comm, int *count)
{
	PUSHES();
	*count = comm->nRanks;
	return ncclSuccess;
}

API ncclResult_t ncclCommUserRank(ncclComm_t comm, int *rank)
{
	PUSHES();
	*rank = comm->rank;
	return ncclSuccess;
}

static __thread int groups, grouped;
/* The host's function that stands for the kernel; it is never called. */
static void device_kernel(void)
{
}

/* Not every program that loads this has the runtime. */
#pragma weak cudaLaunchKernel

static void launch(void)
{
	struct dim3 one = { 1, 1, 1 };

	if (cudaLaunchKernel)
		cudaLaunchKernel((void *)device_kernel, one, one, NULL, 0, 0);
}

static ncclResult_t enqueue(ncclComm_t comm, ncclFunc_t what)
{
	if (!comm || comm->startMagic != MAGIC)
		return ncclInvalidArgument;
	if (what < ncclFuncSendRecv)
		comm->seqNumber[what]++;
	if (!getenv("STANDIN_NCCL_LAUNCH"))
		return ncclSuccess;
	if (groups)
		grouped = 1;
	else
		launch();
	return ncclSuccess;
}

API ncclResult_t ncclGroupStart(void)
{
	PUSHES();
	groups++;
	return ncclSuccess;
}

API ncclResult_t ncclGroupEnd(void)
{
	PUSHES();
	groups--;
	if (grouped)
		launch();
	grouped = 0;
	return ncclSuccess;
}

#pragma GCC diagnostic ignored "-Wunused-parameter"

API ncclResult_t ncclAllReduce(const void *sendbuff, void *recvbuff, size_t count,
			       ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
			       cudaStream_t stream)
{
	PUSHES();
	return enqueue(comm, ncclFuncAllReduce);
}
ALIAS(ncclAllReduce)

API ncclResult_t ncclBroadcast(const void *sendbuff, void *recvbuff, size_t count,
			       ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream)
{
	PUSHES();
	return enqueue(comm, ncclFuncBroadcast);
}

/* The real library does this too, by a call of the other public function. */
API ncclResult_t ncclBcast(void *buff, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
			   cudaStream_t stream)
{
	PUSHES();
	return ncclBroadcast(buff, buff, count, type, root, comm, stream);
}

API ncclResult_t ncclAllGather(const void *sendbuff, void *recvbuff, size_t sendcount,
			       ncclDataType_t type, ncclComm_t comm, cudaStream_t stream)
{
	PUSHES();
	return enqueue(comm, ncclFuncAllGather);
}

API ncclResult_t ncclReduceScatter(const void *sendbuff, void *recvbuff, size_t recvcount,
				   ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
				   cudaStream_t stream)
{
	PUSHES();
	return enqueue(comm, ncclFuncReduceScatter);
}

API ncclResult_t ncclSend(const void *sendbuff, size_t count, ncclDataType_t type, int peer,
			  ncclComm_t comm, cudaStream_t stream)
{
	PUSHES();
	return enqueue(comm, ncclFuncSendRecv);
}

API ncclResult_t ncclRecv(void *recvbuff, size_t count, ncclDataType_t type, int peer,
			  ncclComm_t comm, cudaStream_t stream)
{
	PUSHES();
	return enqueue(comm, ncclFuncSendRecv);
}
