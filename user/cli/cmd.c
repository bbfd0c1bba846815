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

static char refusal[512];

static void take_refusal(const char *text)
{
	static const char prefix[] = "cudatrace: error: ";
	size_t n;

	text += strncmp(text, prefix, sizeof(prefix) - 1) ? 0 : sizeof(prefix) - 1;
	n = strcspn(text, "\n");
	if (n >= sizeof(refusal))
		n = sizeof(refusal) - 1;
	memcpy(refusal, text, n);
	refusal[n] = '\0';
}

const char *cmd_refusal(int (*check)(pid_t), pid_t pid, int *err)
{
	void (*taker)(const char *) = msg_taker;

	*refusal = '\0';
	msg_taker = take_refusal;
	*err = check(pid);
	msg_taker = taker;
	return !*err ? NULL : *refusal ? refusal : strerror(-*err);
}
