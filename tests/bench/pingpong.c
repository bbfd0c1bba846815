/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pingpong.c - two processes that hand a byte to each other on one CPU, until they are killed: switches of the scheduler, and wakings.
 *
 *     pingpong
 */
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(void)
{
	int there[2], back[2];
	cpu_set_t one;
	char c = 'x';

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	if (sched_setaffinity(0, sizeof(one), &one) || pipe(there) || pipe(back))
		return 1;
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (read(there[0], &c, 1) == 1 && write(back[1], &c, 1) == 1)
			;
		_exit(0);
	}
	while (write(there[1], &c, 1) == 1 && read(back[0], &c, 1) == 1)
		;
	return 0;
}
