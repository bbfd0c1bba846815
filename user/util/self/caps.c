/* SPDX-License-Identifier: BSD-2-Clause */
/* caps.c - see caps.h. The bare system calls: two words need no library. Knows no reason for any
 * capability. */
#include <errno.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "caps.h"

struct sets {
	struct __user_cap_data_struct half[2];
};

static int caps_get(struct sets *s)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };

	return syscall(SYS_capget, &head, s->half) ? -errno : 0;
}

static int set(const struct sets *s)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };

	return syscall(SYS_capset, &head, s->half) ? -errno : 0;
}

uint64_t caps_effective(void)
{
	struct sets s = { 0 };

	return caps_get(&s) ? 0 : (uint64_t)s.half[1].effective << 32 | s.half[0].effective;
}

int caps_set(int cap, bool effective)
{
	uint32_t bit = 1u << cap % 32;
	struct sets s = { 0 };
	int err = caps_get(&s);

	if (err)
		return err;
	if (effective)
		s.half[cap / 32].effective |= bit;
	else
		s.half[cap / 32].effective &= ~bit;
	return set(&s);
}

int caps_keep(uint64_t keep)
{
	struct sets s = { 0 };
	int err = caps_get(&s);

	for (int i = 0; i < 2 && !err; i++) {
		uint32_t word = (uint32_t)(keep >> 32 * i);

		s.half[i].effective &= word;
		s.half[i].permitted &= word;
		s.half[i].inheritable &= word;
	}
	/* the kernel removes from the ambient set what the other sets do not have */
	return err ? err : set(&s);
}

int caps_no_new(void)
{
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -errno : 0;
}
