/* SPDX-License-Identifier: BSD-2-Clause */
/* host_words.c - the words of host states. */
#include "event.h"

const char *host_state(uint8_t state)
{
	static const char *const words[] = {
		[CT_HOST_BLOCKED] = "blocked",	   [CT_HOST_READY] = "ready",
		[CT_HOST_THROTTLED] = "throttled", [CT_HOST_SAMPLED] = "sampled",
		[CT_HOST_RUNNING] = "running",
	};

	return state < ARRAY_LEN(words) && words[state] ? words[state] : "unknown";
}

const char *host_reason(uint8_t reason)
{
	static const char *const words[CT_HOST_REASON_END] = {
		[CT_HOST_OTHER] = "system_call",
		[CT_HOST_FILE] = "file",
		[CT_HOST_PIPE] = "pipe",
		[CT_HOST_SOCKET] = "socket",
		[CT_HOST_POLL] = "poll",
		[CT_HOST_LOCK] = "lock",
		[CT_HOST_GIL] = "gil",
		[CT_HOST_SLEEP] = "sleep",
		[CT_HOST_FAULT] = "page_read",
		[CT_HOST_CHILD] = "child",
		[CT_HOST_SYNC] = "file_sync",
		[CT_HOST_DEVICE] = "device_file",
		[CT_HOST_USER] = "user_code",
		[CT_HOST_SYSCALL] = "kernel_code",
		[CT_HOST_FAULTING] = "page_faults",
		[CT_HOST_GC] = "garbage_collection",
	};

	return reason < CT_HOST_REASON_END ? words[reason] : "unknown";
}
