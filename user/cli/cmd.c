/* SPDX-License-Identifier: BSD-2-Clause */
/* cmd.c - what the commands share. */
#include <string.h>
#include <sys/stat.h>

#include "cmd.h"
#include "../util/msg.h"

bool cmd_overwrites(const char *in, const char *out)
{
	struct stat a, b;

	if (!out || stat(in, &a) || stat(out, &b) || a.st_dev != b.st_dev || a.st_ino != b.st_ino)
		return false;
	msg_error("%s would be both read and written: give another name for the output", in);
	return true;
}

int cmd_finish(struct out *out)
{
	return out_report(out, out_close(out), "") ? 1 : 0;
}
