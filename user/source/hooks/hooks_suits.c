/* SPDX-License-Identifier: BSD-2-Clause */
/* hooks_suits.c - see hooks_suits.h. What lies in its functions is found out when the hooks come in. */
#include <errno.h>
#include <stdbool.h>

#include "../../util/msg.h"
#include "../host.h"
#include "../inject/inject_check.h"
#include "hooks_suits.h"

int hooks_suits(pid_t pid)
{
#if defined(__x86_64__)
	char text[8192];
	int err = inject_check(pid);

	if (err)
		return err == -ENOEXEC ? -ENOTSUP : err;
	if (host_status(pid, text, sizeof(text)) || !host_shadow_stack(text))
		return 0;
	msg_error("process %d uses shadow stacks (CET), beside which calls cannot be recorded "
		  "inside it",
		  (int)pid);
#else
	msg_error("process %d: hooks are for x86-64", (int)pid);
#endif
	return -ENOTSUP;
}
