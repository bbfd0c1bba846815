/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_elf.c - the ELF reader on this very program, which defines functions by CUDA's names as a
 * program with static libcudart does; on thousands of damaged copies of it; and on CUDA's own
 * libraries where they are installed.
 *
 * Each libcudart below .output/wheels (tests/wheels.sh), or the folder that CT_WHEELS names, is
 * read; a part of its path says its version.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../../user/api/api.h"
#include "../../user/source/discover/elf.h"
#include "../../user/source/plan.h"
#include "unit.h"

/* A breakpoint of another tracer at the next one does not lie in what is compared. */
#define CODE __attribute__((noinline, used, aligned(16)))

int cudaMalloc(void **p, size_t n);
int cudaMemcpyAsync_ptsz(void *p);
int cudaEventRecord(void *p);
int cudaEventRecordWithFlags(void *p);
int cudaSetDevice = 1;					 /* an object, no function */
extern int cuInit(unsigned flags) __attribute__((weak)); /* imported, not defined */

CODE int cudaMalloc(void **p, size_t n)
{
	*p = NULL;
	return n != 0;
}
CODE int cudaMemcpyAsync_ptsz(void *p)
{
	return p != NULL;
}
CODE int cudaEventRecord(void *p)
{
	return p == NULL;
}
/* two names, one place */
int cudaEventRecordWithFlags(void *p) __attribute__((alias("cudaEventRecord")));
static CODE int cudaFree(void *p)
{
	return p != (void *)1;
}
static CODE int cudaGetDevice(int *p)
{
	return *p = 3;
}

/* Header-only NVTX 3: what it has of functions calls those of a tool, which are probed. */
int nvtxRangePushA(const char *message);
int nvtxEtiGetModuleFunctionTable_v3(int module);
CODE int nvtxRangePushA(const char *message)
{
	return *message;
}
CODE int nvtxEtiGetModuleFunctionTable_v3(int module)
{
	return module + 7;
}

static const struct elf_probe *find(const struct elf_scan *s, const char *name)
{
	for (int i = 0; i < s->nprobes; i++)
		if (!strcmp(api_funcs[s->probes[i].func].name, name))
			return &s->probes[i];
	return NULL;
}

/*
 * The file has at the probe's place what memory has at the function. The first instruction is left
 * out: another tracer of the machine may have a breakpoint there.
 */
static bool is_at(int fd, const struct elf_probe *p, const void *code)
{
	char text[12];

	return p && pread(fd, text, sizeof(text), p->offset) == sizeof(text) &&
	       !memcmp(text + 4, (const char *)code + 4, sizeof(text) - 4);
}

static void test_self(void)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	uint64_t capture[PLAN_WORDS] = { 0 };
	const struct elf_probe *p;
	struct elf_scan s;
	bool twin;

	CHECK(cuInit == NULL && cudaSetDevice == 1);
	CHECK(elf_scan(fd, NULL, &s) == 0);
	CHECK_EQ(ELF_STATIC, s.role);
	CHECK(s.has_symtab);
	CHECK(s.imports_cuda);
	CHECK(!s.has_device_code);
	CHECK(s.nprobes == 5 && s.ndefined == 5);
	CHECK(is_at(fd, find(&s, "cudaMalloc"), (void *)cudaMalloc));
	CHECK(is_at(fd, find(&s, "cudaFree"), (void *)cudaFree));
	CHECK(is_at(fd, find(&s, "cudaGetDevice"), (void *)cudaGetDevice));
	p = find(&s, "cudaMemcpyAsync");
	CHECK(is_at(fd, p, (void *)cudaMemcpyAsync_ptsz));
	CHECK(p->per_thread);
	CHECK(!p->query);
	p = find(&s, "cudaGetDevice");
	if (CHECK(p)) {
		CHECK(p->query);
		CHECK(!p->per_thread);
	}
	CHECK(!find(&s, "cudaSetDevice") && !find(&s, "cuInit"));
	CHECK(!find(&s, "nvtxRangePushA"));
	CHECK(!find(&s, "cudaEventRecord") != !find(&s, "cudaEventRecordWithFlags"));
	for (int i = 0; i < s.nprobes; i++) {
		CHECK(s.probes[i].offset && (!i || s.probes[i].offset > s.probes[i - 1].offset));
		CHECK(elf_can_probe(fd, s.probes[i].offset) == 1);
	}
	elf_scan_free(&s);

	plan_add(capture, api_lookup("cudaFree", 0, &twin));
	CHECK_EQ(0, elf_scan(fd, capture, &s));
	CHECK_EQ(1, s.nprobes);
	CHECK_EQ(5, s.ndefined);
	CHECK(find(&s, "cudaFree"));
	CHECK(s.nprobes == 1 && elf_symbol_offset(fd, "cudaFree") == s.probes[0].offset);
	elf_scan_free(&s);
	CHECK(elf_symbol_offset(fd, "cuInit") == 0 && elf_symbol_offset(fd, "cudaSetDevice") == 0);
	CHECK(elf_symbol_offset(fd, "") == 0);
	close(fd);
}

static int memory_file(const void *data, size_t len)
{
	int fd = memfd_create("elf", MFD_CLOEXEC);

	if (fd < 0 || (len && pwrite(fd, data, len, 0) != (ssize_t)len))
		abort();
	return fd;
}

static int scan_bytes(const void *data, size_t len)
{
	int fd = memory_file(data, len), err;
	struct elf_scan s;

	err = elf_scan(fd, NULL, &s);
	if (!err)
		elf_scan_free(&s);
	close(fd);
	return err;
}

static bool sane(int err)
{
	return !err || err == -ENOEXEC || err == -EBADMSG || err == -ENOMEM || err == -EIO;
}

static void test_foreign(void)
{
	Elf64_Ehdr h = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			 .e_type = ET_DYN,
			 .e_machine = EM_S390,
			 .e_ehsize = sizeof(h) };
	int fd;

	CHECK(scan_bytes("", 0) == -ENOEXEC);
	CHECK(scan_bytes("#!/bin/sh\n", 10) == -ENOEXEC);
	CHECK(scan_bytes(&h, sizeof(h)) == -ENOEXEC);
	h.e_ident[EI_CLASS] = ELFCLASS32;
	CHECK(scan_bytes(&h, sizeof(h)) == -ENOEXEC);
	fd = open("/", O_RDONLY | O_CLOEXEC);
	CHECK(elf_scan(fd, NULL, &(struct elf_scan){ 0 }) == -ENOEXEC);
	close(fd);
	fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	CHECK(elf_scan(fd, NULL, &(struct elf_scan){ 0 }) == -ENOEXEC);
	close(fd);
	CHECK(elf_scan(-1, NULL, &(struct elf_scan){ 0 }) == -EIO);
}

static char *load_self(size_t *len)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct stat st;
	char *p;

	if (fd < 0 || fstat(fd, &st))
		abort();
	p = malloc(st.st_size);
	if (!p || pread(fd, p, st.st_size, 0) != st.st_size)
		abort();
	close(fd);
	*len = st.st_size;
	return p;
}

/* A terabyte of nothing with a valid head: sections that claim all of it must be refused, not read. */
static void test_giant(void)
{
	size_t len;
	char *elf = load_self(&len);
	Elf64_Ehdr *h = (void *)elf;
	Elf64_Shdr *sh = (void *)(elf + h->e_shoff);
	struct timespec a, b;
	struct elf_scan s;
	int fd;

	for (int i = 0; i < h->e_shnum; i++)
		if (sh[i].sh_type == SHT_SYMTAB || sh[i].sh_type == SHT_DYNSYM ||
		    sh[i].sh_type == SHT_STRTAB)
			sh[i].sh_size = 1ULL << 39;
	fd = memory_file(elf, len);
	CHECK(ftruncate(fd, 1LL << 40) == 0);
	clock_gettime(CLOCK_MONOTONIC, &a);
	CHECK(elf_scan(fd, NULL, &s) == -EFBIG);
	clock_gettime(CLOCK_MONOTONIC, &b);
	CHECK((b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000 < 500);
	close(fd);
	free(elf);
}

/* The moment by which it has to be done has passed. */
static void test_in_time(void)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct elf_scan s;

	CHECK_EQ(-ETIME, elf_scan_until(fd, NULL, 1, &s));
	CHECK(!s.probes && !s.nprobes);
	CHECK_EQ(0, elf_scan_until(fd, NULL, UINT64_MAX, &s));
	CHECK(s.nprobes > 0);
	elf_scan_free(&s);
	close(fd);
}

/* What a process may map to make its tracer large: three million symbols, two of them CUDA's.
 * The file is a head, one segment, three sections, the names and the symbols. */
static void test_many_symbols(void)
{
	static const char strings[] = "\0x\0cudaFree\0cudaMalloc";
	enum { N = 3000000, CHUNK = 10000, MIB = 1024 };
	struct {
		Elf64_Ehdr h;
		Elf64_Phdr ph;
		Elf64_Shdr sh[3];
		char names[64];
	} f = {
		.h = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		       .e_type = ET_DYN,
		       .e_phoff = sizeof(f.h),
		       .e_phentsize = sizeof(f.ph),
		       .e_phnum = 1,
		       .e_shoff = sizeof(f.h) + sizeof(f.ph),
		       .e_shentsize = sizeof(f.sh[0]),
		       .e_shnum = 3 },
		.ph = { .p_type = PT_LOAD, .p_flags = PF_X, .p_filesz = 4096 },
		.sh = { [1] = { .sh_type = SHT_SYMTAB,
				.sh_link = 2,
				.sh_entsize = sizeof(Elf64_Sym),
				.sh_offset = sizeof(f),
				.sh_size = N * sizeof(Elf64_Sym) },
			[2] = { .sh_type = SHT_STRTAB,
				.sh_offset = sizeof(f) - 64,
				.sh_size = 64 } },
	};
	static Elf64_Sym syms[CHUNK];
	struct rusage before, after;
	struct elf_scan s;
	int fd;

#if defined(__aarch64__)
	f.h.e_machine = EM_AARCH64;
#else
	f.h.e_machine = EM_X86_64;
#endif
	memcpy(f.names, strings, sizeof(strings));
	fd = memory_file(&f, sizeof(f));
	for (int at = 0; at < N; at += CHUNK) {
		for (int i = 0; i < CHUNK; i++)
			syms[i] = (Elf64_Sym){ .st_name = 1,
					       .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
					       .st_shndx = 1,
					       .st_value = 64 };
		if (at == 2500000)
			syms[7] = (Elf64_Sym){ .st_name = 3,
					       .st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC),
					       .st_shndx = 1,
					       .st_value = 128 };
		if (at == N - CHUNK)
			syms[CHUNK - 1] =
				(Elf64_Sym){ .st_name = 12,
					     .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
					     .st_shndx = 1,
					     .st_value = 256 };
		if (pwrite(fd, syms, sizeof(syms), (off_t)sizeof(f) + at * (off_t)sizeof(*syms)) !=
		    sizeof(syms))
			abort();
	}
	getrusage(RUSAGE_SELF, &before);
	CHECK(elf_scan(fd, NULL, &s) == 0);
	getrusage(RUSAGE_SELF, &after);
	CHECK_EQ(2, s.nprobes);
	CHECK(find(&s, "cudaFree"));
	CHECK(find(&s, "cudaMalloc"));
	if (CHECK_EQ(2, s.nprobes)) {
		CHECK_EQ(128, s.probes[0].offset);
		CHECK_EQ(256, s.probes[1].offset);
	}
#if !defined(__SANITIZE_ADDRESS__)
	CHECK(after.ru_maxrss - before.ru_maxrss < 60 * MIB);
#endif
	elf_scan_free(&s);
	close(fd);
}

static void test_truncated(const char *elf, size_t len)
{
	int fd = memory_file(elf, len), bad = 0;
	struct elf_scan s;

	for (size_t cut = len; cut > 0; cut = cut > 400 ? cut - cut / 300 - 1 : cut - 1) {
		int err;

		if (ftruncate(fd, cut))
			abort();
		err = elf_scan(fd, NULL, &s);
		bad += !sane(err);
		elf_symbol_offset(fd, "cudaMalloc");
		elf_scan_free(&s);
	}
	CHECK(!bad);
	close(fd);
}

static uint64_t rng = 88172645463325252ULL;
static uint64_t next(void)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	return rng ^= rng << 17;
}

/* Damages what the reader looks at: the headers, the section table, symbols and their names. */
static void test_flipped(const char *elf, size_t len)
{
	const Elf64_Ehdr *h = (const void *)elf;
	const Elf64_Shdr *sh = (const void *)(elf + h->e_shoff);
	int fd = memory_file(elf, len), bad = 0, fine = 0;
	struct elf_scan s;

	for (int round = 0; round < 6000; round++) {
		uint64_t at[4], val = next();
		int n = 1 + next() % 4;

		for (int i = 0; i < n; i++) {
			const Elf64_Shdr *one = &sh[next() % h->e_shnum];
			uint8_t byte = 0xff;

			switch (next() % 4) {
			case 0: at[i] = next() % sizeof(*h); break;
			case 1:
				at[i] = h->e_phoff + next() % (h->e_phnum * sizeof(Elf64_Phdr));
				break;
			case 2:
				at[i] = h->e_shoff + next() % (h->e_shnum * sizeof(Elf64_Shdr));
				break;
			default:
				at[i] = one->sh_type == SHT_NOBITS || !one->sh_size
						? 1
						: one->sh_offset + next() % one->sh_size;
			}
			if (round % 3 == 1)
				byte = val >> i * 8;
			else if (round % 3 == 2)
				byte = elf[at[i]] ^ 1 << (val >> i * 8) % 8;
			if (pwrite(fd, &byte, 1, at[i]) != 1)
				abort();
		}
		int err = elf_scan(fd, NULL, &s);

		bad += !sane(err);
		fine += !err;
		for (int i = 0; !err && i < s.nprobes; i++)
			bad += !s.probes[i].offset || s.probes[i].offset >= len ||
			       s.probes[i].func >= api_nfuncs;
		elf_scan_free(&s);
		for (int i = 0; i < n; i++)
			if (pwrite(fd, elf + at[i], 1, at[i]) != 1)
				abort();
	}
	CHECK(!bad && fine);
	close(fd);
}

static void test_can_probe(void)
{
#if defined(__x86_64__)
	static const struct {
		unsigned char code[4];
		int can;
	} rows[] = {
		{ { 0x55, 0x48, 0x89, 0xe5 }, 1 }, /* push %rbp */
		{ { 0xf3, 0x0f, 0x1e, 0xfa }, 1 }, /* endbr64 */
		{ { 0x41, 0x57, 0x90, 0x90 }, 1 }, /* push %r15 */
		{ { 0xc3, 0x90, 0x90, 0x90 }, 1 }, /* ret */
		{ { 0xf0, 0x48, 0x0f, 0xb1 }, 0 }, /* lock cmpxchg */
		{ { 0xcc, 0x90, 0x90, 0x90 }, 0 }, /* int3 */
		{ { 0xcd, 0x80, 0x90, 0x90 }, 0 }, /* int $0x80 */
		{ { 0x2e, 0x48, 0x89, 0xe5 }, 0 }, /* cs */
		{ { 0x66, 0x2e, 0x0f, 0x1f }, 0 }, /* data16 cs nopw */
		{ { 0xf4, 0x90, 0x90, 0x90 }, 0 }, /* hlt */
		{ { 0xe4, 0x10, 0x90, 0x90 }, 0 }, /* in */
	};
	unsigned char file[64 * 12] = { 0 };
	int fd;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		memcpy(file + 64 * (i + 1), rows[i].code, 4);
	fd = memory_file(file, sizeof(file));
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		CHECK(elf_can_probe(fd, 64 * (i + 1)) == rows[i].can);
	CHECK_EQ(0, elf_can_probe(fd, 0));
	CHECK_EQ(0, elf_can_probe(fd, 1 << 20));
	CHECK_EQ(-EBADF, elf_can_probe(-1, 64));
	close(fd);
#endif
}

/* ---- CUDA's own files, where there are any ---- */

static int scan_path(const char *path, struct elf_scan *s)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), err = fd < 0 ? -errno : elf_scan(fd, NULL, s);

	if (!err)
		for (int i = 0; i < s->nprobes; i++)
			CHECK(elf_can_probe(fd, s->probes[i].offset) == 1);
	if (fd >= 0)
		close(fd);
	return err;
}

static void test_toolkit(void)
{
	struct elf_scan s;

	if (!scan_path("/usr/local/cuda/lib64/libcudart.so.13", &s)) {
		CHECK_EQ(ELF_LIBRARY, s.role);
		CHECK_EQ(API_RUNTIME, s.domain);
		CHECK(s.version >= 13000);
		CHECK(s.nprobes > 390);
		CHECK(find(&s, "cudaMalloc") && find(&s, "cudaLaunchKernel"));
		elf_scan_free(&s);
	} else {
		printf("skipped: no libcudart.so.13\n");
	}
	if (!scan_path("/usr/local/cuda/lib64/stubs/libcuda.so", &s)) {
		CHECK_EQ(ELF_LIBRARY, s.role);
		CHECK_EQ(API_DRIVER, s.domain);
		CHECK(s.version >= 13000);
		CHECK(s.nprobes > 400);
		CHECK(find(&s, "cuLaunchKernel"));
		elf_scan_free(&s);
	} else {
		printf("skipped: no driver stub\n");
	}
}

static void test_linked(void)
{
	static const char *const make =
		"cd %s && echo 'int cudaMalloc(void **, long); int main(void) { void *p; return "
		"cudaMalloc(&p, 1); }' > a.c && "
		"cc a.c -o static -L/usr/local/cuda/lib64 -lcudart_static -ldl -lrt -lpthread "
		"2>err && "
		"cc a.c -o shared -L/usr/local/cuda/lib64 -lcudart 2>err && strip -o stripped "
		"static";
	char dir[] = "/tmp/test_elf.XXXXXX", cmd[1024], path[64];
	struct elf_scan s;

	if (access("/usr/local/cuda/lib64/libcudart_static.a", R_OK) || !mkdtemp(dir)) {
		printf("skipped: no libcudart_static.a\n");
		return;
	}
	snprintf(cmd, sizeof(cmd), make, dir);
	CHECK(system(cmd) == 0);
	snprintf(path, sizeof(path), "%s/static", dir);
	CHECK(!scan_path(path, &s));
	CHECK_EQ(ELF_STATIC, s.role);
	CHECK(s.nprobes > 390);
	CHECK(s.version >= 13000);
	CHECK(find(&s, "cudaMalloc"));
	elf_scan_free(&s);
	snprintf(path, sizeof(path), "%s/stripped", dir);
	CHECK(!scan_path(path, &s));
	CHECK_EQ(ELF_NONE, s.role);
	CHECK_EQ(0, s.nprobes);
	CHECK(!s.has_symtab);
	elf_scan_free(&s);
	snprintf(path, sizeof(path), "%s/shared", dir);
	CHECK(!scan_path(path, &s));
	CHECK_EQ(ELF_NONE, s.role);
	CHECK_EQ(0, s.nprobes);
	CHECK(s.imports_cuda);
	elf_scan_free(&s);
	snprintf(cmd, sizeof(cmd), "rm -r %s", dir);
	CHECK(system(cmd) == 0);
}

/* The version is in the path: wheels/12.1.105/, nvidia_cuda_runtime_cu12-12.4.127-py3-none/. */
static int version_in(const char *path)
{
	static const int known[] = { 11080, 12000, 12010, 12020, 12030, 12040, 12050, 12080, 13000 };
	int major, minor, patch;

	for (const char *p = path; *p; p++)
		if ((*p == '/' || *p == '-') &&
		    sscanf(p + 1, "%d.%d.%d", &major, &minor, &patch) == 3)
			for (size_t i = 0; i < ARRAY_LEN(known); i++)
				if (known[i] == major * 1000 + minor * 10)
					return known[i];
	return 0;
}

static int nwheels;

static int on_wheel(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	struct elf_scan s;
	int version = version_in(path);

	(void)st;
	if (type != FTW_F || strncmp(path + ftw->base, "libcudart.so", 12))
		return 0;
	nwheels++;
	CHECK(!scan_path(path, &s));
	CHECK_EQ(ELF_LIBRARY, s.role);
	CHECK_EQ(API_RUNTIME, s.domain);
	CHECK(s.nprobes > 350);
	CHECK(!version || s.version == version);
	elf_scan_free(&s);
	return 0;
}

int main(void)
{
	size_t len;
	char *elf = load_self(&len);
	const char *wheels = getenv("CT_WHEELS");

	CHECK(cudaMemcpyAsync_ptsz(elf));
	CHECK(!cudaEventRecordWithFlags(elf));
	CHECK(cudaFree(elf));
	RUN(test_self);
	RUN(test_many_symbols);
	RUN(test_foreign);
	RUN(test_giant);
	RUN(test_in_time);
	RUN(test_truncated, elf, len);
	RUN(test_flipped, elf, len);
	RUN(test_can_probe);
	RUN(test_toolkit);
	RUN(test_linked);
	nftw(wheels ? wheels : ".output/wheels", on_wheel, 16, FTW_PHYS);
	if (!nwheels)
		printf("skipped: no older libcudart (tests/wheels.sh fetches them)\n");
	free(elf);
	return unit_end();
}
