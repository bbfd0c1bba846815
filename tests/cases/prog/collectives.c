/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * collectives.c - calls of NCCL: collectives MODE [N].
 *   all      one of each, as rank 2 of 4
 *   many     N all-reduces, and between them a copy
 *   wait     all-reduces, one for each byte of stdin, with a communicator from before, and "done N"
 *            behind each; "q" ends
 *   failing  an all-reduce that fails, and one that does not
 */
#include <nccl.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* the address of ncclAllReduce */
ncclResult_t pncclAllReduce(const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t,
			    cudaStream_t);

static float buf[256];

static ncclComm_t create(void)
{
	ncclComm_t comm = NULL;
	ncclUniqueId id;

	ncclGetUniqueId(&id);
	if (ncclCommInitRank(&comm, 4, id, 2))
		exit(1);
	return comm;
}

static void all(void)
{
	ncclComm_t comm = create(), part, two[2];
	int n;

	ncclAllReduce(buf, buf, 1 << 24, ncclFloat32, ncclSum, comm, 0);
	ncclBroadcast(buf, buf, 100, ncclInt8, 3, comm, 0);
	ncclBcast(buf, 100, ncclInt8, 1, comm, 0);
	ncclAllGather(buf, buf, 1024, ncclBfloat16, comm, 0);
	ncclReduceScatter(buf, buf, 512, ncclFloat32, ncclMax, comm, 0);
	ncclGroupStart();
	ncclSend(buf, 7, ncclInt8, 1, comm, 0);
	ncclRecv(buf, 7, ncclInt8, 3, comm, 0);
	ncclGroupEnd();
	pncclAllReduce(buf, buf, 1, (ncclDataType_t)99, (ncclRedOp_t)77, comm, 0);
	ncclCommSplit(comm, 0, 0, &part, NULL);
	ncclAllReduce(buf, buf, 1, ncclFloat32, ncclSum, part, 0);
	ncclCommCount(part, &n);
	ncclCommUserRank(part, &n);
	ncclAllReduce(buf, buf, 1, ncclFloat32, ncclSum, part, 0);
	ncclCommShrink(comm, (int[]){ 0, 3 }, 2, &part, NULL, 0);
	ncclAllReduce(buf, buf, 1, ncclFloat32, ncclSum, part, 0);
	ncclCommInitAll(two, 2, NULL);
	ncclAllReduce(buf, buf, 1, ncclFloat32, ncclSum, two[1], 0);
	ncclCommDestroy(comm);
}

static void many(int n)
{
	ncclComm_t comm = create();

	for (int i = 0; i < n; i++) {
		cudaMemcpy(buf, buf, sizeof(buf), cudaMemcpyHostToHost);
		ncclGroupStart();
		ncclAllReduce(buf, buf, 256, ncclFloat32, ncclSum, comm, 0);
		ncclGroupEnd();
		ncclAllReduce(buf, buf, 256, ncclFloat32, ncclSum, comm, 0);
	}
}

static void attended(void)
{
	ncclComm_t comm = create();
	int n, calls = 0;
	char c;

	cudaFree(0);
	puts("ready");
	fflush(stdout);
	while (read(0, &c, 1) == 1 && c != 'q') {
		ncclAllReduce(buf, buf, 256, ncclFloat32, ncclSum, comm, 0);
		ncclCommUserRank(comm, &n);
		printf("done %d\n", ++calls);
		fflush(stdout);
	}
}

static void failing(void)
{
	ncclComm_t comm = create();

	ncclAllReduce(buf, buf, 1, ncclFloat32, ncclSum, NULL, 0);
	ncclAllReduce(buf, buf, 2, ncclFloat32, ncclSum, comm, 0);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	if (!strcmp(mode, "all"))
		all();
	else if (!strcmp(mode, "many"))
		many(argc > 2 ? atoi(argv[2]) : 1);
	else if (!strcmp(mode, "wait"))
		attended();
	else if (!strcmp(mode, "failing"))
		failing();
	else
		return 2;
	return 0;
}
