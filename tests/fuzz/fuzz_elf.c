/* SPDX-License-Identifier: BSD-2-Clause */
/* fuzz_elf.c - a file that a program has mapped: headers, symbols, unwinding, lines, kernels in
 * its device code. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../user/proc/elf_read.h"
#include "../../user/resolve/stacks/cfi.h"
#include "../../user/resolve/names/known_elf.h"
#include "../../user/resolve/stacks/symbols.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define LOOKS 24 /* addresses that are asked for */

static int file_of(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	return fd;
}

static int count(void *ctx, const struct elf_sym *sym)
{
	*(size_t *)ctx += strlen(sym->name) + sym->defined;
	return 0;
}

static void headers(int fd)
{
	static const char *const cuda[] = { "cu", "__cuda", NULL }, *const any[] = { "", NULL };
	struct elf_file f;
	char name[64];
	size_t n = 0;

	if (!elf_file_open(&f, fd)) {
		elf_symbols(&f, SHT_DYNSYM, cuda, count, &n);
		elf_symbols(&f, SHT_SYMTAB, any, count, &n);
		elf_variables(&f, SHT_SYMTAB, any, count, &n);
		elf_soname(&f, name, sizeof(name));
		for (uint32_t i = 0; i < f.nshdr && i < LOOKS; i++)
			n += strlen(elf_section_name(&f, i));
	}
	elf_file_close(&f);
}

static void kernels(int fd)
{
	struct known_elf *e;
	char name[512];
	bool sure;

	if (known_elf_open(&e, fd))
		return;
	if (!known_elf_index(e)) {
		for (uint32_t i = 0; i < known_elf_handles(e) && i < LOOKS; i++) {
			known_elf_stub(e, known_elf_handle_addr(e, i), name, sizeof(name));
			known_elf_handle(e, i, name, sizeof(name), &sure);
		}
	}
	known_elf_kernels(e, name, sizeof(name));
	known_elf_close(e);
}

static void frames(int fd)
{
	struct objects *objects = objects_open();
	struct object *o = objects ? objects_file(objects, fd, "/fuzz") : NULL;

	objects_in_place = true;
	for (int i = 0; o && i < LOOKS; i++) {
		struct symbols_place places[SYMBOLS_MAX];
		uint64_t address;
		int n;

		if (!object_address(o, 0x1000 + 97 * (uint64_t)i, &address))
			continue;
		cfi_find(o, address);
		n = symbols_find(o, address, i & 1, places, SYMBOLS_MAX);
		for (int k = 0; k < n; k++)
			if (places[k].function && strlen(places[k].function) > 1 << 20)
				abort();
	}
	object_release(o);
	objects_close(objects);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = file_of(data, size);

	headers(fd);
	kernels(dup(fd));
	frames(fd);
	return 0;
}
