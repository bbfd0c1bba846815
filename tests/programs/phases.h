/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * phases.h - what the programs of this folder share. PROGRAM [--wait] ARGS...: with --wait it
 * first does once what it does, prints "ready PID ADDRESS", does it again when a line comes in,
 * prints "done", and ends at the next line or at the end of its input: so that a tracer can be
 * attached in between. Without --wait it does it once.
 */
#ifndef PHASES_H
#define PHASES_H

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static inline void phase_line(void)
{
	char c;

	while (read(0, &c, 1) == 1 && c != '\n')
		;
}

/* `work` is told whether it is the second time. */
static inline int phases(int *argc, char **argv, int (*work)(int argc, char **argv, int again))
{
	int wait = *argc > 1 && !strcmp(argv[1], "--wait"), err;

	argv += wait;
	*argc -= wait;
	err = work(*argc, argv, 0);
	if (!wait || err)
		return err;
	printf("ready %d %p\n", (int)getpid(), (void *)work);
	fflush(stdout);
	phase_line();
	err = work(*argc, argv, 1);
	puts("done");
	fflush(stdout);
	phase_line();
	return err;
}

#endif
