/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_counters.c - a helper for hardware counters that talks nonsense. The input is a list of messages, each
 * with its length before it (two bytes).
 */
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../user/source/counters/counters_inbox.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What the rest of the program relies on. */
static int emit(void *ctx, const struct ct_hdr *rec)
{
	(void)ctx;
	if (record_check(rec, rec->size) ||
	    (rec->kind != CT_LOST && rec->kind != CT_DEVICE && rec->kind != CT_METRIC &&
	     rec->kind != CT_EVENT && rec->kind != CT_COUNTER))
		abort();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct counters_inbox *inbox = calloc(1, sizeof(*inbox));
	int fds[2];

	if (!inbox || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds))
		abort();
	while (size > 2) {
		size_t n = data[0] | (size_t)data[1] << 8;

		n = n < size - 2 ? n : size - 2;
		if (send(fds[1], data + 2, n, MSG_NOSIGNAL) == (ssize_t)n && n &&
		    (counters_inbox_next(inbox, fds[0]) != 1 ||
		     counters_inbox_records(inbox, emit, NULL) || inbox->at != inbox->len))
			abort();
		if (!n) /* an empty message is the end */
			break;
		data += 2 + n;
		size -= 2 + n;
	}
	close(fds[0]);
	close(fds[1]);
	free(inbox);
	return 0;
}
