/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_device.c - what is packed in files: device code as nvcc packs it; PTX, for an input that begins with 'P'; mini debug
 * information, for one that begins with 'X'.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../user/resolve/names/fatbin.h"
#include "../../user/resolve/names/stub.h"
#include "../../user/resolve/stacks/packed.h"
#include "../unit/make_elf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BUDGET (4 << 20) /* bytes that may be decompressed */

static int on_name(void *ctx, const char *name)
{
	size_t *n = ctx;

	if (!stub_is_name(name, strlen(name)))
		abort();
	return ++*n < 10000 ? 0 : -1;
}

static void try_symbols(const uint8_t *data, size_t size)
{
	struct {
		Elf64_Ehdr h;
		Elf64_Phdr ph;
		Elf64_Shdr sh[3];
		char names[32];
	} m = {
		.h = { MAKE_ELF_HEAD(m, ph, sh), .e_shstrndx = 2 },
		.sh = { [1] = { .sh_name = 1,
				.sh_type = SHT_PROGBITS,
				.sh_offset = sizeof(m),
				.sh_size = size },
			[2] = { .sh_type = SHT_STRTAB,
				.sh_offset = sizeof(m) - sizeof(m.names),
				.sh_size = sizeof(m.names) } },
		.names = "\0.gnu_debugdata",
	};
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct elf_file f;

	if (fd < 0 || write(fd, &m, sizeof(m)) != sizeof(m) ||
	    write(fd, data, size) != (ssize_t)size || elf_file_open(&f, fd) ||
	    !packed_is_symbols(&f, 1))
		abort();
	packed_symbols_are_sane(&f);
	elf_file_close(&f);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t budget = BUDGET;
	size_t n = 0;

	if (size && data[0] == 'P') {
		fatbin_ptx((const char *)data + 1, size - 1, on_name, &n);
	} else if (size && data[0] == 'X') {
		try_symbols(data + 1, size - 1);
	} else {
		fatbin_kernels(data, size, &budget, on_name, &n);
		if (budget > BUDGET)
			abort();
	}
	return 0;
}
