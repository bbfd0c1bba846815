/* SPDX-License-Identifier: BSD-2-Clause */
/* forbidden.c - see forbidden.h. */
#include "../common/compat.h"

#include "forbidden.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../wire/filters.h"
#include "../common/sys.h"
#include "../hooks/capture.h"
#include "own.h"

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#define PAGE 4096

/* A page whose content is another's to bring (userfaultfd), and nobody does: who reads it sleeps in the kernel until
 * the process ends. That is not so for the kernel itself (UFFD_USER_MODE_ONLY), as in mlockall(2) and in a core
 * dump: it gets an error. */
static const volatile char *page;

static int register_page(int fd, void *at)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .range = { (__u64)(uintptr_t)at, PAGE },
					 .mode = UFFDIO_REGISTER_MODE_MISSING };

	return ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &range);
}

/* A sandbox that is there already may end the program for this: it is only made where there is none. The descriptor
 * stays open as long as the thread's table. */
void forbidden_prepare(bool own_table)
{
	void *at = (void *)page;
	int fd = -1;

	if (!own_table || !capture_is_watched() || own_is_restricted())
		return;
	if (!at)
		at = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at != MAP_FAILED)
		fd = (int)sys_call(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY, 0,
				   0, 0, 0, 0);
	if (fd >= 0 && !register_page(fd, at)) {
		page = at;
		return;
	}
	if (fd >= 0)
		close(fd);
	if (at != MAP_FAILED)
		munmap(at, PAGE);
	page = NULL;
}

void forbidden_pause(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#else
	__asm__ volatile("yield");
#endif
}

/* Where there is no such page, the thread cannot sleep: it would have to make a system call. */
static __attribute__((noreturn)) void sleep_for_ever(void)
{
	for (;;) {
		if (page)
			(void)*page;
		forbidden_pause();
	}
}

enum forbidden forbidden_now(void)
{
	__u64 filters = capture_filters();

	if (!(filters & FILTER_OF_ALL))
		return FORBIDDEN_NOT;
	return filters & FILTER_NO_EXIT ? FORBIDDEN_SLEEPS : FORBIDDEN_ENDS;
}

void forbidden_end(enum forbidden how)
{
	if (how == FORBIDDEN_ENDS)
		sys_call(SYS_exit, 0, 0, 0, 0, 0, 0);
	sleep_for_ever();
}
