/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_nccl.c - what is told of communicators by others: an input that begins with 'M' is the memory
 * of a process, its layout first; another is a file for `stuck --merge`.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../user/nccl/nccl_job.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct memory {
	const uint8_t *data;
	size_t size;
};

static int read_memory(void *ctx, uint64_t addr, void *buf, size_t len)
{
	const struct memory *m = ctx;

	if (addr > m->size || len > m->size - addr)
		return -EFAULT;
	memcpy(buf, m->data + addr, len);
	return 0;
}

/* Members as debug information may describe them: two bytes of offset for each, and the number of
 * the counts. */
static void try_memory(const uint8_t *data, size_t size)
{
	struct nccl_layout l = { .bytes = 65536, .list = 8, .nlist = 16 };
	struct memory m = { data, size };
	struct nccl_comm c;
	uint64_t list[8];
	int n;

	if (size < 2 * NCCL_MEMBER_END + 1)
		return;
	for (int i = 0; i < NCCL_MEMBER_END; i++) {
		uint32_t bytes = i >= NCCL_RANK && i <= NCCL_DEVICE ? 4 : 8;

		l.members[i] = (struct dwarf_member){ .known = true, .size = bytes, .n = 1 };
		l.members[i].offset = data[2 * i] | (uint64_t)data[2 * i + 1] << 8;
	}
	l.members[NCCL_SEQ].n = data[2 * NCCL_MEMBER_END];
	for (int i = 0; i < NCCL_KINDS; i++)
		strcpy(l.kinds[i], i % 3 ? "AllReduce" : "");
	n = nccl_list_read(&l, 0, read_memory, &m, list, 8);
	if (n > 8)
		abort();
	for (int i = 0; i <= n; i++) {
		uint64_t addr = i < n ? list[i] : 0;

		if (nccl_comm_read(&l, addr, read_memory, &m, &c))
			continue;
		if (c.rank >= c.nranks && c.rank != -1)
			abort();
		if (c.rank < -1 || c.ncounts > NCCL_KINDS)
			abort();
	}
}

static void try_file(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC), null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	struct nccl_job j = { .merged = true };
	struct out out;

	if (fd < 0 || null < 0 || write(fd, data, size) != (ssize_t)size ||
	    lseek(fd, 0, SEEK_SET) || out_open_fd(&out, null, "out"))
		abort();
	nccl_job_read(&j, fd, "fuzz");
	nccl_job_sort(&j);
	nccl_job_absent(&j);
	nccl_job_print(&j, &out);
	nccl_job_json(&j, &out);
	nccl_job_free(&j);
	out_close(&out);
	close(null);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size && data[0] == 'M')
		try_memory(data + 1, size - 1);
	else
		try_file(data, size);
	return 0;
}
