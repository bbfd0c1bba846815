/* SPDX-License-Identifier: BSD-2-Clause */
/* cmd.c - what the commands share. */
#include <string.h>

#include "cmd.h"
#include "util/msg.h"

int cmd_finish(struct out *out)
{
	int err = out_close(out);

	if (!err)
		return 0;
	msg_error("writing to %s failed: %s", out->name, strerror(-err));
	return 1;
}
