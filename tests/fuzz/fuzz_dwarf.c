/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_dwarf.c - debug information and call frame information: an ELF file is made whose headers are
 * right, and whose sections are the input: for each a byte that says which, its length in 16 bits, and its
 * bytes. So the input gets to what is in the sections; fuzz_elf.c is for the rest of the file.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../user/proc/dwarf_layout.h"
#include "../../user/resolve/stacks/cfi.h"
#include "../../user/resolve/stacks/symbols.h"
#include "../../user/util/now.h"
#include "../unit/make_elf.h"
#include "dwarf_sections.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define N (int)(sizeof(dwarf_sections) / sizeof(dwarf_sections[0]))
#define LOOKS 16 /* addresses that are asked for */
#define NAMES 8

struct image {
	Elf64_Ehdr e;
	Elf64_Phdr p;
	Elf64_Shdr s[N + 2];
	char names[256];
	uint8_t bytes[1 << 17];
};

static void sections_of(struct image *im, const uint8_t *data, size_t size)
{
	size_t at = 0;

	while (size > 3) {
		size_t n = data[1] | (size_t)data[2] << 8;
		Elf64_Shdr *s = &im->s[1 + data[0] % N];

		n = n < size - 3 ? n : size - 3;
		n = n < sizeof(im->bytes) - at ? n : sizeof(im->bytes) - at;
		memcpy(im->bytes + at, data + 3, n);
		s->sh_offset = offsetof(struct image, bytes) + at;
		s->sh_size = n;
		at += n;
		data += 3 + n;
		size -= 3 + n;
	}
}

/* Each section's link and type; those that are loaded have their addresses, by DWARF_BASE. */
static void make(struct image *im, const uint8_t *data, size_t size)
{
	size_t names = 1;

	memset(im, 0, sizeof(*im));
	im->e = (Elf64_Ehdr){ .e_ident = MAKE_ELF_IDENT };
	im->e.e_type = ET_DYN;
	im->e.e_machine = EM_X86_64;
	im->e.e_version = EV_CURRENT;
	im->e.e_phoff = offsetof(struct image, p);
	im->e.e_shoff = offsetof(struct image, s);
	im->e.e_ehsize = sizeof(im->e);
	im->e.e_phentsize = sizeof(im->p);
	im->e.e_phnum = 1;
	im->e.e_shentsize = sizeof(im->s[0]);
	im->e.e_shnum = N + 2;
	im->e.e_shstrndx = N + 1;
	im->p = (Elf64_Phdr){ .p_type = PT_LOAD,
			      .p_flags = PF_R | PF_X,
			      .p_filesz = sizeof(*im),
			      .p_memsz = sizeof(*im),
			      .p_align = 4096 };
	sections_of(im, data, size);
	for (int i = 0; i < N; i++) {
		Elf64_Shdr *s = &im->s[1 + i];

		s->sh_name = (Elf64_Word)names;
		strcpy(im->names + names, dwarf_sections[i].name);
		names += strlen(dwarf_sections[i].name) + 1;
		s->sh_type = s->sh_size ? dwarf_sections[i].type : SHT_NULL;
		s->sh_flags = dwarf_sections[i].loaded ? SHF_ALLOC : 0;
		s->sh_addr = dwarf_sections[i].loaded ? s->sh_offset : 0;
		s->sh_addralign = 1;
	}
	im->s[N + 1] = (Elf64_Shdr){ .sh_name = (Elf64_Word)names,
				     .sh_type = SHT_STRTAB,
				     .sh_offset = offsetof(struct image, names),
				     .sh_size = sizeof(im->names),
				     .sh_addralign = 1 };
	strcpy(im->names + names, ".shstrtab");
}

static void layouts(int fd)
{
	static char names[NAMES][DWARF_NAME_BYTES];
	struct dwarf_member members[] = { { .name = "rank" },
					  { .name = "counts" },
					  { .name = "kind" } };
	struct dwarf_wanted want = { .structure = "seed",
				     .members = members,
				     .nmembers = 3,
				     .enumerator = "SEED_ONE",
				     .names = names,
				     .nnames = NAMES };

	if (!dwarf_layout(fd, &want, now_ns() + 1000000000))
		for (int i = 0; i < 3; i++)
			if (members[i].known &&
			    (members[i].offset > want.bytes ||
			     (uint64_t)members[i].size * members[i].n > want.bytes))
				abort();
	for (int i = 0; i < NAMES; i++)
		if (strnlen(names[i], DWARF_NAME_BYTES) == DWARF_NAME_BYTES)
			abort();
}

static void frames(int fd)
{
	struct objects *objects = objects_open();
	struct object *o = objects ? objects_file(objects, fd, "/fuzz") : NULL;

	for (int i = 0; o && i < LOOKS; i++) {
		uint64_t address = (uint64_t)i * 0x41, begin;
		struct symbols_place places[SYMBOLS_MAX];
		const struct cfi_row *row = cfi_find(o, address);

		if (row && row->nops && !row->ops)
			abort();
		cfi_begin(o, address, &begin);
		symbols_find(o, address, i & 1, places, SYMBOLS_MAX);
	}
	object_release(o);
	objects_close(objects);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct image im;
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	make(&im, data, size);
	if (fd < 0 || write(fd, &im, sizeof(im)) != (ssize_t)sizeof(im))
		abort();
	objects_in_place = true;
	layouts(fd);
	frames(fd);
	return 0;
}
