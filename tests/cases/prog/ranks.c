/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ranks.c - a job of ranks on one machine: ranks MODE RANKS [FIRST LAST ID]. Each rank is a process
 * with a communicator. All do three all-reduces and one broadcast; then, by MODE:
 *   absent    all but the last rank do a fourth all-reduce and wait for it, the last one sleeps
 *   same      all do it and wait for it
 *   differ    the last rank does a second broadcast instead, and waits for it
 * `turn` does collectives until the end. FIRST to LAST of RANKS are made here, and ID names the job.
 * Prints "RANK PID" for each, then "ready"; the end of stdin ends all.
 */
#include <nccl.h>

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void all_reduce(ncclComm_t comm)
{
	static float buf[256];

	ncclAllReduce(buf, buf, 256, ncclFloat32, ncclSum, comm, 0);
}

static void broadcast(ncclComm_t comm)
{
	static float buf[256];

	ncclBroadcast(buf, buf, 256, ncclFloat32, 0, comm, 0);
}

static void ready(int fd, int rank)
{
	dprintf(fd, "%d %d\n", rank, (int)getpid());
}

static void run(const char *mode, int nranks, int rank, const char *name, int fd)
{
	bool last = rank == nranks - 1;
	ncclComm_t comm;
	ncclUniqueId id;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	ncclGetUniqueId(&id);
	snprintf(id.internal, sizeof(id.internal), "%s", name);
	cudaFree(0);
	if (ncclCommInitRank(&comm, nranks, id, rank))
		_exit(1);
	for (int i = 0; i < 3; i++)
		all_reduce(comm);
	broadcast(comm);
	if (!strcmp(mode, "turn")) {
		ready(fd, rank);
		for (;;) {
			all_reduce(comm);
			usleep(1000);
		}
	}
	if (last && !strcmp(mode, "differ"))
		broadcast(comm);
	else if (!last || strcmp(mode, "absent"))
		all_reduce(comm);
	ready(fd, rank);
	if (last && !strcmp(mode, "absent"))
		for (;;)
			pause();
	cudaStreamSynchronize(0);
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	int nranks = argc > 2 ? atoi(argv[2]) : 0, first = argc > 3 ? atoi(argv[3]) : 0,
	    last = argc > 4 ? atoi(argv[4]) : nranks - 1, fds[2];
	char c, line[64];
	pid_t pids[64];
	FILE *in;
	int n = 0;

	if (nranks < 1 || last - first >= 64 || pipe(fds))
		return 2;
	for (int rank = first; rank <= last; rank++) {
		pids[n] = fork();
		if (!pids[n])
			run(argv[1], nranks, rank, argc > 5 ? argv[5] : "job", fds[1]);
		n++;
	}
	in = fdopen(fds[0], "r");
	for (int i = 0; i < n && fgets(line, sizeof(line), in); i++)
		fputs(line, stdout);
	puts("ready");
	fflush(stdout);
	while (read(0, &c, 1) > 0)
		;
	for (int i = 0; i < n; i++)
		kill(pids[i], SIGKILL);
	while (wait(NULL) > 0)
		;
	return 0;
}
