/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nccl_comms.c - a process with communicators of NCCL, for test_nccl.c. With -DLIBRARY it is compiled as its
 * libnccl: nothing but the debug information of the struct and, with -DLIST, the list. Without it, it is the program:
 *
 *     nccl_comms LIBRARY NUMBER [HOW]
 *
 * has NUMBER communicators in memory of no file. It prints a line when they are there, and then does what each line of its
 * input says. HOW: "list": the library's list has them. "gaps": the list has places without one, and wrong ones. "stray":
 * there are words as those by which a communicator is found, and no communicators. "constant": nothing can be written to them.
 */
#include "nccl_comms.h"

#ifdef LIBRARY
struct STRUCT *of_debug_information;
ncclFunc_t also;
#ifdef LIST
struct STRUCT **ncclComms;
int nNcclComms;
#endif
#else

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static struct ncclComm *make(int n)
{
	struct ncclComm *c = mmap(NULL, (size_t)(n + 1) * sizeof(*c), PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (c == MAP_FAILED)
		exit(3);
	for (int i = 0; i < n; i++) {
		c[i].startMagic = c[i].endMagic = COMM_MAGIC;
		c[i].commHash = 0x1000;
		c[i].rank = i;
		c[i].nRanks = n;
		c[i].seqNumber[ncclFuncAllReduce] = 40;
	}
	return c;
}

static void *find(void *library, const char *name)
{
	void *p = dlsym(library, name);

	if (!p)
		exit(4);
	return p;
}

static void enlist(void *library, struct ncclComm *c, int n, int gaps)
{
	struct ncclComm **list = calloc((size_t)n + 4, sizeof(*list));
	int at = 0;

	if (!list)
		exit(3);
	if (gaps) {
		list[at++] = NULL;
		list[at++] = (struct ncclComm *)((char *)c + 1);
		list[at++] = (struct ncclComm *)64;
		list[at++] = c;
	}
	for (int i = 0; i < n; i++)
		list[at++] = &c[i];
	*(struct ncclComm ***)find(library, "ncclComms") = list;
	*(int *)find(library, "nNcclComms") = at;
}

/* A word at the end of the memory, one at its beginning that would be behind it, and a beginning without an end. */
static void stray(void)
{
	uint64_t *words =
		mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (words == MAP_FAILED)
		exit(3);
	words[0] = words[1000] = words[(1 << 16) / 8 - 1] = COMM_MAGIC;
}

int main(int argc, char **argv)
{
	int n = argc > 2 ? atoi(argv[2]) : 0, err = 0;
	void *library = argc > 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
	const char *how = argc > 3 ? argv[3] : "";
	struct ncclComm *c = make(n);
	char line[64];

	if (!library)
		return 2;
	if (!strcmp(how, "list") || !strcmp(how, "gaps"))
		enlist(library, c, n, *how == 'g');
	if (!strcmp(how, "stray"))
		stray();
	if (!strcmp(how, "constant"))
		err = mprotect(c, (size_t)(n + 1) * sizeof(*c), PROT_READ);
	while (!err && puts("ready") >= 0 && !fflush(stdout) && fgets(line, sizeof(line), stdin)) {
		if (!strcmp(line, "begin\n"))
			c->seqNumber[ncclFuncAllReduce]++;
		else if (!strcmp(line, "another\n"))
			c->commHash++;
		else if (!strcmp(line, "destroy\n"))
			c->endMagic = 0;
	}
	return err;
}
#endif
