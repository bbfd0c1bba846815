/* SPDX-License-Identifier: BSD-2-Clause */
/* test_known_files.c - names of kernels from the files of programs that run already: damaged and hostile ones. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "../../user/proc/elf_read.h"
#include "../../user/resolve/names/known.h"
#include "../../user/resolve/names/stub.h"
#include "make_elf.h"
#include "make_forged.h"

static int memory_file(const void *data, size_t len)
{
	int fd = memfd_create("elf", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, len) != (ssize_t)len)
		abort();
	return fd;
}

static void read_names(int fd)
{
	struct known_elf_facts facts;
	static char name[CT_NAME_MAX];
	struct known_elf *e;
	bool sure;

	if (known_elf_open(&e, fd))
		return;
	known_elf_index(e);
	known_elf_facts(e, &facts);
	for (uint32_t i = 0; i < known_elf_handles(e) && i < 64; i++) {
		size_t n = known_elf_handle(e, i, name, sizeof(name), &sure);

		CHECK(!n || stub_is_name(name, n));
		n = known_elf_stub(e, known_elf_handle_addr(e, i), name, sizeof(name));
		CHECK(!n || stub_is_name(name, n));
	}
	known_elf_kernels(e, name, sizeof(name));
	known_elf_close(e);
}

static void test_damaged(const char *path, int rounds)
{
	size_t len = 0, n;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
	char *good = malloc((size_t)size + 1), *bad = malloc((size_t)size + 1);
	uint64_t shoff;

	while (fd >= 0 && len < (size_t)size) {
		ssize_t got = pread(fd, good + len, (size_t)size - len, (off_t)len);

		if (got <= 0)
			break;
		len += (size_t)got;
	}
	if (fd >= 0)
		close(fd);
	for (int i = 0; len && i < rounds; i++) {
		memcpy(bad, good, len);
		memcpy(&shoff, good + offsetof(Elf64_Ehdr, e_shoff), 8);
		n = i % 4 ? len : any(len);
		for (int flips = (int)any(6); n && flips >= 0; flips--) {
			/* anywhere, in the headers, and in the section headers */
			size_t at = i % 3 == 0	 ? any(n)
				    : i % 3 == 1 ? any(n < 1024 ? n : 1024)
						 : shoff + any(len - shoff);

			if (at < n)
				bad[at] ^= (char)(1 << any(8));
		}
		read_names(memory_file(bad, n));
	}
	free(good);
	free(bad);
}

/* Segments that wrap around, variables at addresses that do not exist, tens of thousands of
 * symbols at one address. */
static void test_hostile_elf(void)
{
	enum { NSYM = 20000 };
	struct {
		Elf64_Ehdr ehdr;
		Elf64_Phdr phdr;
		Elf64_Shdr shdr[4];
		Elf64_Sym sym[NSYM];
		char str[256];
	} *f = calloc(1, sizeof(*f));
	static const char str[] =
		"\0.nv_fatbin\0_ZZ20__device_stub__Z1aPiPiE8__handle\0_Z1aPi\0_Z1bPi\0"
		"_ZZ20__device_stub__Z1a i i E8__handle";
	struct target_map map = { .start = 0x1000, .end = 0x2000, .exec = true };
	struct known_elf *e;
	char name[CT_NAME_MAX];
	uint64_t bias;
	bool sure;

	f->ehdr = (Elf64_Ehdr){ MAKE_ELF_HEAD(*f, phdr, shdr), .e_shstrndx = 2 };
	f->phdr = (Elf64_Phdr){ .p_type = PT_LOAD,
				.p_flags = PF_X,
				.p_offset = UINT64_MAX - 10,
				.p_filesz = UINT64_MAX,
				.p_vaddr = UINT64_MAX };
	f->shdr[1] = (Elf64_Shdr){ .sh_type = SHT_SYMTAB,
				   .sh_link = 2,
				   .sh_entsize = sizeof(Elf64_Sym),
				   .sh_offset = offsetof(__typeof__(*f), sym),
				   .sh_size = sizeof(f->sym) };
	f->shdr[2] = (Elf64_Shdr){ .sh_type = SHT_STRTAB,
				   .sh_offset = offsetof(__typeof__(*f), str),
				   .sh_size = sizeof(f->str) };
	f->shdr[3] = (Elf64_Shdr){
		.sh_name = 1, .sh_type = SHT_PROGBITS, .sh_offset = UINT64_MAX - 8, .sh_size = 100
	};
	memcpy(f->str, str, sizeof(str));
	for (int i = 0; i < NSYM; i++)
		f->sym[i] = (Elf64_Sym){ .st_name = 12,
					 .st_info = ELF64_ST_INFO(STB_LOCAL, STT_OBJECT),
					 .st_shndx = 3,
					 .st_value = UINT64_MAX - 7 - 8 * (uint64_t)(i % 3) };
	f->sym[0] = (Elf64_Sym){ .st_name = 50,
				 .st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC),
				 .st_shndx = 3,
				 .st_value = 64 };
	f->sym[1] = (Elf64_Sym){ .st_name = 57,
				 .st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC),
				 .st_shndx = 3,
				 .st_value = 64 };
	/* a kernel's name with blanks in it is none */
	f->sym[2].st_name = 64;
	f->sym[2].st_value = 8;
	CHECK(!known_elf_open(&e, memory_file(f, sizeof(*f))));
	CHECK(known_elf_has_device_code(e));
	CHECK(!known_elf_index(e));
	CHECK_EQ(NSYM - 2, known_elf_handles(e));
	known_elf_bias(e, &map, &bias);
	CHECK_EQ(8, known_elf_handle_addr(e, 0));
	CHECK_EQ(0, known_elf_handle(e, 0, name, sizeof(name), &sure));
	CHECK_EQ(6, known_elf_handle(e, 1, name, sizeof(name), &sure));
	CHECK_TEXT("_Z1aPi", name);
	CHECK(sure);
	/* two functions there, but only one of them is a kernel's */
	CHECK(known_elf_stub(e, 64, name, sizeof(name)) == 6 && !strcmp(name, "_Z1aPi"));
	CHECK(known_elf_kernels(e, name, sizeof(name)) == -EBADMSG);
	known_elf_close(e);

	/* only a mapping of code tells where the file is */
	f->phdr.p_offset = f->phdr.p_vaddr = 0;
	f->phdr.p_filesz = 4096;
	CHECK(!known_elf_open(&e, memory_file(f, sizeof(*f))));
	CHECK(known_elf_bias(e, &map, &bias));
	CHECK_EQ(0x1000, bias);
	map.exec = false;
	CHECK(!known_elf_bias(e, &map, &bias));
	known_elf_close(e);

	/* a file that no loader maps */
	f->ehdr.e_phnum = 0;
	CHECK_EQ(-EBADMSG, known_elf_open(&e, memory_file(f, sizeof(*f))));
	f->ehdr.e_phnum = 1025;
	CHECK_EQ(-EBADMSG, known_elf_open(&e, memory_file(f, sizeof(*f))));
	free(f);
}

int main(void)
{
	RUN(test_hostile_elf);
	if (forged_build())
		RUN(test_damaged, text("%s/forged", forged_dir), 1500);
	else
		CHECK(!"the forged program can be built");
	RUN(test_damaged, PROGRAMS "/kernels", 600);
	RUN(test_damaged, PROGRAMS "/one-legacy-nosections", 300);
	forged_remove();
	return unit_end();
}
