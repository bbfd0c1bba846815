/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ranks.c - a job of ranks on one machine: ranks MODE RANKS [FIRST LAST ID]. Each rank is a process
 * with a communicator. All do three all-reduces and one broadcast; then, by MODE:
 *   absent    all but the last rank do a fourth all-reduce and wait for it, the last one sleeps
 *   same      all do it and wait for it
 *   differ    the last rank does a second broadcast instead, and waits for it
 *   count, type, root   all do one more, in which rank 0 asks for another count, type or root
 *   circle    each rank receives from the next one before it sends to the one before
 *   grouped   the same within a group, which ends
 *   unsent    the last rank receives from rank 0, which sends to rank 1 only
 *   sizes     rank 0 sends 8 elements to rank 1, which receives 4
 *   crossed   with two communicators, whose all-reduces the last rank does in the other order
 *   computes  as absent, but the last rank computes and never comes
 *   late      as absent, but the last rank comes once somebody writes to the pipe ID/late, and all do a hundred more
 *   aborts    as absent, but the last rank aborts once somebody writes to the pipe ID/late
 *   crashes   the same, by writing where nothing is mapped
 *   handles   as absent, but all ranks have a handler for SIGTERM, which does nothing
 *   exits     the same, but it ends the rank
 *   liar      as absent, but the last rank says that it is another rank of more, and has counts without sense
 *   after-MODE  the same once there is a file ID/go, and after six all-reduces
 * With RANKS_WAIT in the environment the ranks of modes that ask for something wait for their stream then.
 * `turn` does collectives until the end. FIRST to LAST of RANKS are made here, and ID names the job.
 * Prints "RANK PID" for each, then "ready"; the end of stdin ends all.
 */
#include <nccl.h>

#include <fcntl.h>
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

static void send_recv(ncclComm_t comm, int nranks, int rank)
{
	static float buf[16];

	ncclRecv(buf, 8, ncclFloat32, (rank + 1) % nranks, comm, 0);
	ncclSend(buf, 8, ncclFloat32, (rank + nranks - 1) % nranks, comm, 0);
}

/* What all ranks do in the modes that do not wait in a call. False: it is none of these. */
static bool ask(const char *mode, int nranks, int rank, ncclComm_t comm, ncclComm_t other)
{
	static float buf[512];
	bool last = rank == nranks - 1;

	if (!strcmp(mode, "count")) {
		ncclAllReduce(buf, buf, rank ? 256 : 512, ncclFloat32, ncclSum, comm, 0);
	} else if (!strcmp(mode, "type")) {
		ncclAllReduce(buf, buf, 256, rank ? ncclFloat32 : ncclBfloat16, ncclSum, comm, 0);
	} else if (!strcmp(mode, "root")) {
		ncclBroadcast(buf, buf, 256, ncclFloat32, rank ? 0 : 1, comm, 0);
	} else if (!strcmp(mode, "circle")) {
		send_recv(comm, nranks, rank);
	} else if (!strcmp(mode, "grouped")) {
		ncclGroupStart();
		send_recv(comm, nranks, rank);
		ncclGroupEnd();
	} else if (!strcmp(mode, "unsent")) {
		if (!rank)
			ncclSend(buf, 8, ncclFloat32, 1, comm, 0);
		if (last)
			ncclRecv(buf, 8, ncclFloat32, 0, comm, 0);
	} else if (!strcmp(mode, "sizes")) {
		if (!rank)
			ncclSend(buf, 8, ncclFloat32, 1, comm, 0);
		if (rank == 1)
			ncclRecv(buf, 4, ncclFloat32, 0, comm, 0);
	} else if (!strcmp(mode, "crossed")) {
		ncclAllReduce(buf, buf, 1, ncclFloat32, ncclSum, last ? other : comm,
			      (cudaStream_t)1);
		ncclAllReduce(buf, buf, 1, ncclFloat32, ncclSum, last ? comm : other,
			      (cudaStream_t)1);
	} else {
		return false;
	}
	return true;
}

/* Waits for a file of the job. */
static void await_go(const char *name)
{
	char go[256];

	snprintf(go, sizeof(go), "%s/go", name);
	while (access(go, F_OK))
		usleep(10000);
}

/* Sleeps until somebody opens the job's pipe for writing. */
static void await_writer(const char *name)
{
	char late[256];

	snprintf(late, sizeof(late), "%s/late", name);
	close(open(late, O_RDONLY));
}

/* Overwrites what tests/standin/nccl.c keeps between the magic words. */
static void lie(ncclComm_t comm)
{
	char *at = (char *)comm + 8 + (1 << 20) + 8;
	const int lies[3] = { -7, 2000000000, 1 << 30 };

	memcpy(at, lies, sizeof(lies));
	memset(at + sizeof(lies) + 1000, 0xff, 32);
}

static void nothing(int sig)
{
	(void)sig;
}

static void exits(int sig)
{
	(void)sig;
	_exit(0);
}

static void __attribute__((noinline)) end_by_abort(void)
{
	abort();
}

static void __attribute__((noinline)) end_by_fault(void)
{
	volatile unsigned long at = 8;

	*(volatile int *)at = 1;
}

/* Does the last rank not come to the fourth all-reduce? */
static bool is_absent(const char *mode)
{
	return !strcmp(mode, "absent") || !strcmp(mode, "computes") || !strcmp(mode, "late") ||
	       !strcmp(mode, "aborts") || !strcmp(mode, "crashes") || !strcmp(mode, "handles") ||
	       !strcmp(mode, "exits") || !strcmp(mode, "liar");
}

static void run(const char *mode, int nranks, int rank, const char *name, int fd)
{
	bool last = rank == nranks - 1;
	ncclComm_t comm, other = NULL;
	ncclUniqueId id;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!strcmp(mode, "handles"))
		signal(SIGTERM, nothing);
	if (!strcmp(mode, "exits"))
		signal(SIGTERM, exits);
	ncclGetUniqueId(&id);
	snprintf(id.internal, sizeof(id.internal), "%s", name);
	cudaFree(0);
	if (ncclCommInitRank(&comm, nranks, id, rank))
		_exit(1);
	for (int i = 0; i < 3; i++)
		all_reduce(comm);
	broadcast(comm);
	if (!strcmp(mode, "crossed")) {
		snprintf(id.internal, sizeof(id.internal), "%.100s, the other", name);
		if (ncclCommInitRank(&other, nranks, id, rank))
			_exit(1);
	}
	if (!strncmp(mode, "after-", 6)) {
		ready(fd, rank);
		await_go(name);
		for (int i = 0; i < 6; i++) {
			all_reduce(comm);
			usleep(20000); /* the library's own count can be read */
		}
		ask(mode + 6, nranks, rank, comm, other);
		for (;;)
			pause();
	}
	if (ask(mode, nranks, rank, comm, other)) {
		ready(fd, rank);
		if (getenv("RANKS_WAIT"))
			cudaStreamSynchronize(0);
		for (;;)
			pause();
	}
	if (!strcmp(mode, "turn")) {
		ready(fd, rank);
		for (;;) {
			all_reduce(comm);
			usleep(1000);
		}
	}
	if (last && !strcmp(mode, "differ"))
		broadcast(comm);
	else if (!last || !is_absent(mode))
		all_reduce(comm);
	if (last && !strcmp(mode, "liar"))
		lie(comm);
	ready(fd, rank);
	if (last && !strcmp(mode, "late")) {
		await_writer(name);
		all_reduce(comm);
	} else if (last && !strcmp(mode, "aborts")) {
		await_writer(name);
		end_by_abort();
	} else if (last && !strcmp(mode, "crashes")) {
		await_writer(name);
		end_by_fault();
	} else if (last && !strcmp(mode, "computes")) {
		for (volatile unsigned long n = 0;; n++)
			;
	} else if (last && is_absent(mode)) {
		for (;;)
			pause();
	}
	cudaStreamSynchronize(0);
	for (int i = 0; i < 100 && !strcmp(mode, "late"); i++)
		all_reduce(comm);
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
