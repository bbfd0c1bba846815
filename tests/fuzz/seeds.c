/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * seeds.c - writes what the fuzzers begin with: seeds trace RECORDING FOLDER; seeds agent FOLDER.
 *
 * Of a recording each block of records, its columns not compressed, once for each command of
 * fuzz_trace.c. Of an agent the messages that follow its greeting.
 */
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../cupti/agent/agent.h"
#include "../unit/patch_trace.h"

#define COMMANDS 13		  /* rows of runs[] in fuzz_trace.c */
#define NOWHERE "\x01no function" /* patch_body() is wanted for its columns alone */

static int store(const char *folder, const char *name, int number, const void *head, size_t nhead,
		 const void *body, size_t nbody)
{
	char path[PATH_MAX];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s-%d", folder, name, number);
	f = fopen(path, "w");
	if (!f || fwrite(head, 1, nhead, f) != nhead || fwrite(body, 1, nbody, f) != nbody ||
	    fclose(f))
		return 1;
	return 0;
}

static int trace(const char *path, const char *folder)
{
	static char file[1 << 20], body[8 << 20];
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	int fd = open(path, O_RDONLY), n = 0, found = 0;
	ssize_t len = fd < 0 ? -1 : read(fd, file, sizeof(file));

	for (ssize_t at = TRACE_MAGIC_LEN;
	     len > 0 && at + (ssize_t)sizeof(struct trace_block) <= len;) {
		struct trace_block b;
		size_t plain;

		memcpy(&b, file + at, sizeof(b));
		at += (ssize_t)sizeof(b);
		if (b.magic != TRACE_BLOCK_MAGIC || at + (ssize_t)b.len > len)
			break;
		plain = b.type == TRACE_DATA
				? patch_body(file + at, body, NOWHERE, NOWHERE, 0, &found)
				: 0;
		for (char command = 0; plain && command < COMMANDS; command++, n++)
			if (store(folder, name, n, &command, 1, body, plain))
				return 1;
		at += (ssize_t)b.len;
	}
	return !n;
}

/* A message as fuzz_agent.c takes it: its type, the length of what follows the head, and that. */
static size_t add(char *to, int type, const void *bytes, size_t len)
{
	to[0] = (char)type;
	to[1] = (char)len;
	to[2] = (char)(len >> 8);
	memcpy(to + 3, bytes, len);
	return len + 3;
}

static int agent(const char *folder)
{
	struct {
		struct agent_list l;
		struct agent_name e;
		char name[24];
	} names = { .l = { .n = 1, .flags = AGENT_LAST },
		    .e = { .cbid = 7, .domain = AGENT_RUNTIME, .len = 22 },
		    .name = "cudaLaunchKernel_v7000" };
	struct agent_started started = { .clock = AGENT_CLOCK_CALLBACK, .kinds = ~0u };
	struct ct_kernel kernel = {
		.w.h = { .size = sizeof(kernel), .kind = CT_KERNEL, .start_ns = 5, .end_ns = 9 }
	};
	struct ct_lost lost = { .h = { .size = sizeof(lost), .kind = CT_LOST },
				.cause = CT_LOSS_DEVICE,
				.count = 3 };
	struct agent_bye bye = { .records = 2 };
	char input[1024], records[sizeof(kernel) + sizeof(lost)];
	size_t n = 0;

	memcpy(records, &kernel, sizeof(kernel));
	memcpy(records + sizeof(kernel), &lost, sizeof(lost));
	n += add(input + n, AGENT_NAMES, (char *)&names + sizeof(struct meet_head),
		 sizeof(names) - sizeof(struct meet_head));
	n += add(input + n, AGENT_STARTED, (char *)&started + sizeof(struct meet_head),
		 sizeof(started) - sizeof(struct meet_head));
	n += add(input + n, AGENT_RECORDS, records, sizeof(records));
	n += add(input + n, AGENT_BYE, (char *)&bye + sizeof(struct meet_head),
		 sizeof(bye) - sizeof(struct meet_head));
	return store(folder, "agent", 0, input, n, "", 0);
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "trace"))
		return trace(argv[2], argv[3]);
	if (argc == 3 && !strcmp(argv[1], "agent"))
		return agent(argv[2]);
	fprintf(stderr, "usage: seeds trace RECORDING FOLDER | seeds agent FOLDER\n");
	return 2;
}
