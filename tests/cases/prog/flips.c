// SPDX-License-Identifier: BSD-2-Clause
/*
 * flips.c - links that come and go in the folder where it runs, as fast as it can: flips file TO: a
 * link `file` to TO; flips dir TO: a folder `dir` and, in its place, a link to TO. Writes `ready` when
 * it begins. What others put in its way it leaves there.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Fails where somebody else has put a file; a later turn succeeds. */
static int tries(int result)
{
	return result;
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 1;
	tries(mkdir("dir", 0777));
	close(open("ready", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	for (;;) {
		if (!strcmp(argv[1], "file")) {
			tries(symlink(argv[2], "other"));
			tries(rename("other", "file"));
			tries(rename("file", "other"));
		} else {
			tries(symlink(argv[2], "link"));
			tries(renameat2(AT_FDCWD, "link", AT_FDCWD, "dir", RENAME_EXCHANGE));
		}
	}
}
