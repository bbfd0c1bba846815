/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_trace.c - a block of a recording, given to every command that reads one. The first byte
 * of the input chooses the command, the rest is the body of the block; sums are made right, so
 * that they do not keep the input out.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "../../user/cli/cmd.h"
#include "../../user/trace/format.h"
#include "../../user/util/msg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FILE_PLACE "FILE"
#define ARGS_MAX 12

static const char *const runs[][ARGS_MAX] = {
	{ "replay", "-o", "/dev/null", FILE_PLACE },
	{ "replay", "--format", "json", "--enter-exit", "--nested", "-o", "/dev/null", FILE_PLACE },
	{ "replay", "-c", "-o", "/dev/null", FILE_PLACE },
	{ "export", "--to", "chrome", "-o", "/dev/null", FILE_PLACE },
	{ "export", "--to", "perfetto", "-o", "/dev/null", FILE_PLACE },
	{ "export", "--to", "html", "-o", "/dev/null", FILE_PLACE },
	{ "export", "--to", "folded", "-o", "/dev/null", FILE_PLACE },
	{ "export", "--to", "speedscope", "-o", "/dev/null", FILE_PLACE },
	{ "export", "--to", "otlp-json", "-o", "/dev/null", FILE_PLACE },
	{ "stat", "--format", "json", "-o", "/dev/null", FILE_PLACE },
	{ "stat", "-o", "/dev/null", FILE_PLACE },
	{ "mem", "-o", "/dev/null", FILE_PLACE },
	{ "advise", "-o", "/dev/null", FILE_PLACE },
	{ "export", "--to", "csv", "-o", "/dev/null", FILE_PLACE },
	{ "export", "--to", "arrow", "-o", "/dev/null", FILE_PLACE },
};

static void put(int fd, const void *bytes, size_t len)
{
	if (write(fd, bytes, len) != (ssize_t)len)
		abort();
}

static void put_block(int fd, uint8_t type, uint64_t seq, const void *body, size_t len)
{
	struct trace_block b = { .magic = TRACE_BLOCK_MAGIC,
				 .type = type,
				 .flags = TRACE_F_DEFINITIONS,
				 .len = (uint32_t)len,
				 .body_crc = (uint32_t)crc32(0, body, (uInt)len),
				 .seq = seq,
				 .last_ns = UINT64_MAX };

	b.head_crc = (uint32_t)crc32(0, (const void *)&b, offsetof(struct trace_block, head_crc));
	put(fd, &b, sizeof(b));
	put(fd, body, len);
}

/* The recording, as a file that has a name but lies in memory. */
static int recording(const uint8_t *body, size_t len)
{
	static const char head[] =
		"format 1\nversion 0.1.0\nmonotonic_ns 1000\nrealtime_ns 2000000000\nhost fuzz\n",
			  end[] = "reason finished\n";
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0)
		abort();
	put(fd, TRACE_MAGIC, TRACE_MAGIC_LEN);
	put_block(fd, TRACE_HEAD, 0, head, sizeof(head) - 1);
	put_block(fd, TRACE_DATA, 1, body, len);
	put_block(fd, TRACE_END, 2, end, sizeof(end) - 1);
	return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct command_row *command;
	const char *const *run;
	char path[32], *argv[ARGS_MAX + 1] = { NULL };
	struct opts opts;
	int fd, argc = 0;

	if (size < 2 || size > TRACE_BODY_MAX)
		return -1;
	run = runs[data[0] % ARRAY_LEN(runs)];
	command = command_named(run[0]);
	if (!command)
		abort();
	fd = recording(data + 1, size - 1);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	for (; argc < ARGS_MAX && run[argc]; argc++)
		argv[argc] = strcmp(run[argc], FILE_PLACE) ? (char *)run[argc] : path;
	if (opts_parse(&opts, command->bit, argc, argv))
		abort(); /* a command line of ours is wrong */
	command->command->run(&opts.ask);
	opts_free(&opts);
	close(fd);
	return 0;
}
