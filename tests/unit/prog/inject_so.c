/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inject_so.c - what test_inject adds to a process: says over the socket that it is given where
 * it is, and closes it. Words of its argument make it misbehave.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

int cudatrace_agent_start(const char *how);
void nobody_has_this(void);

static int starts;
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static volatile int *volatile nowhere = (int *)16;

/* Leaves as few registers as it can as they were. */
static void spoil(void)
{
#if defined(__x86_64__)
	__asm__ volatile(
		"pcmpeqd %%xmm0, %%xmm0; movdqa %%xmm0, %%xmm7; movdqa %%xmm0, %%xmm15; std; cld" ::
			: "xmm0", "xmm7", "xmm15");
	if (__builtin_cpu_supports("avx512f"))
		__asm__ volatile(".irp "
				 "n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,"
				 "24,25,26,27,28,29,30,31\n"
				 "vpternlogd $0xff, %%zmm\\n, %%zmm\\n, %%zmm\\n\n.endr\n"
				 "kxnorw %%k1, %%k1, %%k1\nkxnorw %%k2, %%k2, %%k2\n" ::
					 : "memory");
#endif
}

int cudatrace_agent_start(const char *how)
{
	const char *at = strstr(how, "fd=");
	int fd = at ? atoi(at + 3) : -1, say[2] = { getpid(), ++starts };

	errno = 99; /* to be put back */
	spoil();
#ifdef BROKEN
	nobody_has_this();
#endif
	if (strstr(how, "crash"))
		*nowhere = 1;
	if (strstr(how, "slow"))
		nanosleep(&(struct timespec){ .tv_sec = strstr(how, "very") ? 2 : 0,
					      .tv_nsec = 600000000 },
			  NULL);
	if (strstr(how, "hang") && !pthread_mutex_lock(&held)) /* its own: for ever */
		pthread_mutex_lock(&held);
	if (strstr(how, "refuse")) {
		close(fd);
		return -7;
	}
	if (send(fd, say, sizeof(say), MSG_NOSIGNAL) != sizeof(say))
		return 1;
	close(fd);
	return 0;
}
