/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * agent_file.h - the objects that come into programs and are part of the binary (the agent, the hooks,
 * the one for NVTX 3): as a file that a program can load, and into a process that runs. Knows no
 * message.
 */
#ifndef CT_AGENT_FILE_H
#define CT_AGENT_FILE_H

#include "../../flow/plan.h"

/*
 * A file with it that stays: programs that a traced one starts load it too, after cudatrace is
 * gone. In a folder that is ours and nobody else's to write, from which code may be loaded,
 * named after its content: written once for all traces. dir: the folder, where the socket goes
 * too. Returns 0, or -errno after one message.
 */
int agent_file_path(char *path, size_t size, char *dir, size_t dir_size);

/* The same for any of the objects. */
struct agent_image {
	const char *name; /* the file's name begins with it */
	const char *bytes;
	size_t n;
	/* for agent_image_inject(): its name in messages; the function that is called in it, and
	 * whether that waits until the program has started CUDA */
	const char *title, *start;
	bool after_cuda;
};
int agent_image_path(const struct agent_image *, char *path, size_t size, char *dir,
		     size_t dir_size);
/* The agent's. */
void agent_image_agent(struct agent_image *);
/* Puts the object into a process that runs and calls its function with `how`, in which "fd=N" becomes
 * the number of the process's end of a socket. Returns our end, or -errno after one message. */
int agent_image_inject(const struct agent_image *, pid_t, const char *how,
		       const struct capture_plan *);

#endif
