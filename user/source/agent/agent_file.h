/* SPDX-License-Identifier: BSD-2-Clause */
/* agent_file.h - the agent, which is part of the binary, as a file that a program can load.
 * Knows no socket. */
#ifndef CT_AGENT_FILE_H
#define CT_AGENT_FILE_H

#include "../../util/types.h"

/* Its bytes, n of them. */
const void *agent_file_bytes(size_t *n);

/*
 * A file with it that stays: programs that a traced one starts load it too, after cudatrace is
 * gone. In a folder that is ours and nobody else's to write, from which code may be loaded,
 * named after its content: written once for all traces. dir: the folder, where the socket goes
 * too. Returns 0, or -errno after one message.
 */
int agent_file_path(char *path, size_t size, char *dir, size_t dir_size);

/* The same for another object that is part of the binary; `name` begins the file's. */
struct agent_image {
	const char *name, *bytes;
	size_t n;
};
int agent_image_path(const struct agent_image *, char *path, size_t size, char *dir,
		     size_t dir_size);

#endif
