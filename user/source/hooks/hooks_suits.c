/* SPDX-License-Identifier: BSD-2-Clause */
/* hooks_suits.c - see hooks_suits.h. What lies in its functions is found out when the hooks come in. */
#include <errno.h>
#include <stdbool.h>
#include <unistd.h>

#include "../../util/msg.h"
#include "../host.h"
#include "../inject/inject_check.h"
#include "hooks_suits.h"

int hooks_suits(pid_t pid)
{
	char text[8192];
	int err = inject_check(pid);
	long page = sysconf(_SC_PAGESIZE);

	if (err)
		return err == -ENOEXEC ? -ENOTSUP : err;
	if (page != 4096) {
		msg_error("process %d: hooks are for pages of 4 KiB, and this kernel's have %ld",
			  (int)pid, page / 1024);
		return -ENOTSUP;
	}
	if (host_status(pid, text, sizeof(text)) || !host_shadow_stack(text))
		return 0;
	msg_error("process %d uses shadow stacks (CET), beside which calls cannot be recorded "
		  "inside it",
		  (int)pid);
	return -ENOTSUP;
}
