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
#include "../../user/api/layers/symbol.h"
#include "../../user/proc/elf_read.h"
#include "../../user/source/discover/elf.h"
#include "../../user/flow/plan.h"
#include "../../user/util/now.h"
#include "make_elf.h"
#include "random.h"
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
	Elf64_Ehdr h = { .e_ident = MAKE_ELF_IDENT,
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
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a); /* others may have the processors */
	CHECK(elf_scan(fd, NULL, &s) == -EFBIG);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
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
		.h = { .e_ident = MAKE_ELF_IDENT,
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

static uint64_t rng = RANDOM_SEED;
static uint64_t next(void)
{
	return random_next(&rng);
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

/* ---- files that are made here ---- */

enum { MADE_NAMES, MADE_SYMBOLS, MADE_STRINGS, MADE_CONSTANTS, MADE_DYNAMIC, MADE_DEVICE };

/* A shared object: its head, one segment that begins where the file does, sections, and what is in them. */
struct made {
	Elf64_Ehdr h;
	Elf64_Phdr ph;
	Elf64_Shdr sh[MADE_DEVICE + 2]; /* the first one is none */
	Elf64_Dyn dynamic[2];
	Elf64_Sym symbols[24];
	char names[80], strings[2048], constants[512];
	uint8_t code[1024];
	/* how much of them is used */
	size_t nsymbols, nstrings, ncode;
};

static void make_file(struct made *m)
{
	static const char names[] = "\0.symtab\0.rodata.str1.1\0.other";

	*m = (struct made){
		.h = { MAKE_ELF_HEAD(*m, ph, sh), .e_shstrndx = MADE_NAMES + 1 },
		.ph = { .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = sizeof(*m) },
		.nsymbols = 1,
		.nstrings = 1,
	};
#define SECTION(which, type, member, ...)                                              \
	m->sh[(which) + 1] = (Elf64_Shdr){ .sh_type = (type),                          \
					   .sh_offset = offsetof(struct made, member), \
					   .sh_size = sizeof(m->member),               \
					   __VA_ARGS__ }
	SECTION(MADE_NAMES, SHT_STRTAB, names);
	SECTION(MADE_SYMBOLS, SHT_SYMTAB, symbols, .sh_name = 1, .sh_link = MADE_STRINGS + 1,
		.sh_entsize = sizeof(Elf64_Sym));
	SECTION(MADE_STRINGS, SHT_STRTAB, strings);
	SECTION(MADE_CONSTANTS, SHT_PROGBITS, constants, .sh_name = 9);
	SECTION(MADE_DYNAMIC, SHT_DYNAMIC, dynamic, .sh_link = MADE_STRINGS + 1);
	SECTION(MADE_DEVICE, SHT_PROGBITS, constants, .sh_name = 24);
#undef SECTION
	memcpy(m->names, names, sizeof(names));
}

static uint32_t add_string(struct made *m, const char *text)
{
	size_t at = m->nstrings;

	if (at + strlen(text) >= sizeof(m->strings))
		abort();
	strcpy(m->strings + at, text);
	m->nstrings += strlen(text) + 1;
	return (uint32_t)at;
}

/* A function at the address `at`. */
static void add_alias(struct made *m, const char *name, uint64_t at, size_t size)
{
	if (m->nsymbols == ARRAY_LEN(m->symbols))
		abort();
	m->symbols[m->nsymbols++] = (Elf64_Sym){ .st_name = add_string(m, name),
						 .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
						 .st_shndx = 1,
						 .st_value = at,
						 .st_size = size };
}

/* A function with this code. Returns where it is. */
static uint64_t add_function(struct made *m, const char *name, const char *code, size_t size)
{
	size_t at = m->ncode;

	if (at + size > sizeof(m->code))
		abort();
	memcpy(m->code + at, code, size);
	m->ncode += (size + 15) / 16 * 16;
	add_alias(m, name, offsetof(struct made, code) + at, size);
	return offsetof(struct made, code) + at;
}

static void set_soname(struct made *m, const char *name)
{
	m->dynamic[0] = (Elf64_Dyn){ .d_tag = DT_SONAME, .d_un.d_val = add_string(m, name) };
}

static int scan_made(const struct made *m, const uint64_t *capture, struct elf_scan *s)
{
	int fd = memory_file(m, sizeof(*m)), err = elf_scan(fd, capture, s);

	close(fd);
	return err;
}

/* A file that differs in its head alone from one with a function. */
static void test_heads(void)
{
	static const struct {
		const char *what;
		Elf64_Half type, machine, nsections;
		int err;
	} rows[] = {
		{ "nothing", 0, 0, MADE_DEVICE + 2, 0 },
		{ "a relocatable file", ET_REL, 0, MADE_DEVICE + 2, -ENOEXEC },
		{ "a core dump", ET_CORE, 0, MADE_DEVICE + 2, -ENOEXEC },
		{ "another machine", 0, EM_S390, MADE_DEVICE + 2, -ENOEXEC },
		{ "no sections", 0, 0, 0, -EBADMSG },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct elf_scan s;
		struct made m;
		int err;

		CASE_ROW("%s", rows[i].what);
		make_file(&m);
		add_function(&m, "cudaFree", "\xc3", 1);
		m.h.e_type = rows[i].type ? rows[i].type : ET_DYN;
		if (rows[i].machine)
			m.h.e_machine = rows[i].machine;
		m.h.e_shnum = rows[i].nsections;
		err = scan_made(&m, NULL, &s);
		CHECK_EQ(rows[i].err, err);
		if (!err)
			elf_scan_free(&s);
	}
}

/* A program makes its file shorter while it is read. */
static void test_cut_meanwhile(void)
{
	struct elf_file f;
	struct made m;
	char buf[128];
	int fd;

	make_file(&m);
	fd = memory_file(&m, sizeof(m));
	CHECK_EQ(0, elf_file_open(&f, fd));
	CHECK_EQ(0, ftruncate(fd, 1000));
	CHECK_EQ(0, elf_read(&f, buf, 100, 900));
	CHECK_EQ(-EBADMSG, elf_read(&f, buf, 101, 900));
	CHECK_EQ(-EBADMSG, elf_read(&f, buf, 1, 1000));
	elf_file_close(&f);
	close(fd);
}

#define RETURNS "\x55\x5d\xc3" /* as compilers write it: push, pop, ret */

/* Two names of a place, and twins of the per-thread stream: each place has one probe, of the row that the table has first. */
static void test_aliases(void)
{
	bool twin;
	int first = api_lookup("cudaFree", 0, &twin), second = api_lookup("cudaMalloc", 0, &twin),
	    least = first < second ? first : second;
	uint64_t at, capture[PLAN_WORDS] = { 0 };
	struct elf_scan s;
	struct made m;

	make_file(&m);
	at = add_function(&m, "cudaFree", RETURNS, 3);
	add_alias(&m, "cudaMalloc", at, 3);
	add_alias(&m, "cudaMalloc", at, 3);
	add_alias(&m, "cudaMemcpyAsync_ptsz", at + 16, 3);
	add_alias(&m, "cudaMemcpyAsync", at + 16, 3);
	CHECK_EQ(0, scan_made(&m, NULL, &s));
	CHECK_EQ(2, s.ndefined);
	if (CHECK_EQ(1, s.nsilent)) {
		CHECK_EQ(first + second - least, s.silent[0].func);
		CHECK_EQ(least, s.silent[0].as);
	}
	if (CHECK_EQ(2, s.nprobes)) {
		CHECK_EQ(at, s.probes[0].offset);
		CHECK_EQ(least, s.probes[0].func);
		CHECK_EQ(3, s.probes[0].size);
		CHECK_EQ(at + 16, s.probes[1].offset);
		CHECK(!s.probes[1].per_thread);
	}
	elf_scan_free(&s);
	/* the other one is asked for */
	plan_add(capture, first + second - least);
	CHECK_EQ(0, scan_made(&m, capture, &s));
	CHECK_EQ(2, s.ndefined);
	if (CHECK_EQ(1, s.nprobes))
		CHECK_EQ(first + second - least, s.probes[0].func);
	if (CHECK_EQ(1, s.nsilent)) {
		CHECK_EQ(least, s.silent[0].func);
		CHECK_EQ(first + second - least, s.silent[0].as);
	}
	elf_scan_free(&s);
}

/* An indirect function has no probe, and is told if it is asked for; each once. */
static void test_indirect(void)
{
	uint64_t capture[PLAN_WORDS] = { 0 }, indirect[PLAN_WORDS] = { 0 },
		 shared[PLAN_WORDS] = { 0 };
	struct elf_scan s;
	struct made m;
	bool twin;
	int func = api_lookup("cudaMalloc", 0, &twin), other = api_lookup("cudaFree", 0, &twin);

	make_file(&m);
	add_function(&m, "cudaFree", RETURNS, 3);
	for (int i = 0; i < 2; i++) {
		add_function(&m, "cudaMalloc", RETURNS, 3);
		m.symbols[m.nsymbols - 1].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_GNU_IFUNC);
	}
	CHECK_EQ(0, scan_made(&m, NULL, &s));
	CHECK_EQ(1, s.nprobes);
	CHECK_EQ(1, s.ndefined);
	if (CHECK_EQ(1, s.nsilent)) {
		CHECK_EQ(func, s.silent[0].func);
		CHECK_EQ(ELF_INDIRECT, s.silent[0].as);
	}
	plan_add(capture, other);
	elf_silent(&s, capture, indirect, shared);
	CHECK(!plan_any(indirect));
	plan_add(capture, func);
	elf_silent(&s, capture, indirect, shared);
	CHECK(plan_has(indirect, func) && !plan_any(shared));
	elf_scan_free(&s);
	plan_remove(capture, func);
	CHECK_EQ(0, scan_made(&m, capture, &s));
	CHECK_EQ(0, s.nsilent);
	elf_scan_free(&s);
}

/* What is no function of this file has no probe: no code, a variable, one of another file, an address without code. */
static void test_no_code(void)
{
	struct elf_scan s;
	struct made m;

	make_file(&m);
	add_function(&m, "cudaFree", RETURNS, 3);
	add_alias(&m, "cudaMalloc", 0, 3);
	add_alias(&m, "cudaHostAlloc", sizeof(m), 3);
	add_alias(&m, "cudaFreeHost", UINT64_MAX, 3);
	add_alias(&m, "cudaLaunchKernel", m.symbols[1].st_value + 16, 3);
	m.symbols[m.nsymbols - 1].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_NOTYPE);
	add_alias(&m, "cudaGetDevice", m.symbols[1].st_value + 32, 3);
	m.symbols[m.nsymbols - 1].st_shndx = SHN_UNDEF;
	add_alias(&m, "cudaNotInTheTable", m.symbols[1].st_value + 48, 3);
	CHECK_EQ(0, scan_made(&m, NULL, &s));
	CHECK(s.imports_cuda);
	CHECK_EQ(1, s.ndefined);
	if (CHECK_EQ(1, s.nprobes))
		CHECK(find(&s, "cudaFree"));
	elf_scan_free(&s);
	/* a size that is none is not known */
	m.symbols[1].st_size = UINT32_MAX + 1ULL;
	CHECK_EQ(0, scan_made(&m, NULL, &s));
	if (CHECK_EQ(1, s.nprobes))
		CHECK_EQ(0, s.probes[0].size);
	elf_scan_free(&s);
	m.symbols[1].st_size = UINT32_MAX;
	CHECK_EQ(0, scan_made(&m, NULL, &s));
	if (CHECK_EQ(1, s.nprobes))
		CHECK_EQ(UINT32_MAX, s.probes[0].size);
	elf_scan_free(&s);
}

/* The version of the runtime, by the name of the library and by what it has. */
static void test_version(void)
{
	static const struct {
		const char *soname, *function;
		int version;
		const char *from;
		enum elf_role role;
	} rows[] = {
		{ "", "cudaFree", 0, "", ELF_STATIC },
		{ "", "cudaGraphAddNode", 12020, "symbols", ELF_STATIC },
		{ "libcudart.so.12", "cudaGraphAddNode", 12020, "symbols", ELF_LIBRARY },
		{ "libcudart.so.12", "cudaFree", 12000, "soname", ELF_LIBRARY },
		/* the name is believed */
		{ "libcudart.so.11.0", "cudaGraphAddNode", 11000, "soname", ELF_LIBRARY },
		{ "libcudart.so.13", "cudaGraphAddNode", 13000, "soname", ELF_LIBRARY },
		/* names that say nothing */
		{ "libcudart.so.", "cudaGraphAddNode", 12020, "symbols", ELF_LIBRARY },
		{ "libcudart.so.100", "cudaGraphAddNode", 12020, "symbols", ELF_LIBRARY },
		{ "libcudart.so.-1", "cudaGraphAddNode", 12020, "symbols", ELF_LIBRARY },
		{ "libmine.so.12", "cudaFree", 0, "", ELF_STATIC },
		/* a library that programs have no copy of */
		{ "libmine.so.1", "cuMulticastCreate", 12010, "symbols", ELF_LIBRARY },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct elf_scan s;
		struct made m;

		CASE_ROW("%s %s", rows[i].soname, rows[i].function);
		make_file(&m);
		add_function(&m, rows[i].function, RETURNS, 3);
		if (rows[i].soname[0])
			set_soname(&m, rows[i].soname);
		CHECK_EQ(0, scan_made(&m, NULL, &s));
		CHECK_EQ(1, s.nprobes);
		CHECK_EQ(rows[i].version, s.version);
		CHECK_TEXT(rows[i].from, s.version_from);
		CHECK_EQ(rows[i].role, s.role);
		elf_scan_free(&s);
	}
}

/* A name that would begin behind the section of names is none, whatever lies there. */
static void test_soname_outside(void)
{
	struct elf_scan s;
	struct made m;

	make_file(&m);
	add_function(&m, "cudaFree", RETURNS, 3);
	m.dynamic[0] = (Elf64_Dyn){ .d_tag = DT_SONAME, .d_un.d_val = sizeof(m.strings) + 16 };
	strcpy(m.constants + 16, "libcudart.so.13");
	CHECK_EQ(0, scan_made(&m, NULL, &s));
	CHECK_EQ(0, s.version);
	CHECK_TEXT("", s.version_from);
	elf_scan_free(&s);
}

/* Where the functions' code differs, the number does; the code elsewhere does not count. */
static void test_code_number(void)
{
	struct elf_scan s;
	uint64_t number;
	struct made m;

	make_file(&m);
	add_function(&m, "cudaFree", RETURNS, 3);
	add_alias(&m, "cudaMalloc", m.symbols[1].st_value + 64, 3);
	CHECK_EQ(0, scan_made(&m, NULL, &s));
	number = s.code;
	elf_scan_free(&s);
	m.code[40]++;
	CHECK_EQ(0, scan_made(&m, NULL, &s));
	CHECK(s.code == number);
	elf_scan_free(&s);
	m.code[64 + 15]++;
	CHECK_EQ(0, scan_made(&m, NULL, &s));
	CHECK(s.code != number);
	elf_scan_free(&s);
}

/* A file with device code says so by the name of one of its sections. */
static void test_device_code(void)
{
	static const struct {
		const char *section;
		bool device;
	} rows[] = { { ".nv_fatbin", true },	   { "__nv_relfatbin", true },
		     { ".nvFatBinSegment", true }, { ".nv_fatbin2", false },
		     { ".nvFatBinSegmen", false }, { "", false } };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct elf_scan s;
		struct made m;

		CASE_ROW("%s", rows[i].section);
		make_file(&m);
		strcpy(m.names + 24, rows[i].section);
		CHECK_EQ(0, scan_made(&m, NULL, &s));
		CHECK_EQ(rows[i].device, s.has_device_code);
		CHECK_EQ(ELF_NONE, s.role);
		elf_scan_free(&s);
	}
}

/* No file defines as many functions as this one says. */
static void test_too_many_functions(void)
{
	const size_t limit = 65536;
	struct made m;

	make_file(&m);
	add_function(&m, "cudaFree", RETURNS, 3);
	for (size_t n = limit; n <= limit + 1; n++) {
		Elf64_Sym *symbols = calloc(n + 1, sizeof(*symbols));
		struct elf_scan s;
		int fd;

		CASE_ROW("%zu functions", n);
		for (size_t i = 1; i <= n; i++)
			symbols[i] = m.symbols[1];
		m.sh[MADE_SYMBOLS + 1].sh_offset = sizeof(m);
		m.sh[MADE_SYMBOLS + 1].sh_size = (n + 1) * sizeof(*symbols);
		fd = memory_file(&m, sizeof(m));
		CHECK(pwrite(fd, symbols, (n + 1) * sizeof(*symbols), sizeof(m)) ==
		      (ssize_t)((n + 1) * sizeof(*symbols)));
		CHECK_EQ(n > limit ? -EBADMSG : 0, elf_scan(fd, NULL, &s));
		CHECK_EQ(n > limit ? 0 : 1, s.nprobes);
		elf_scan_free(&s);
		close(fd);
		free(symbols);
	}
}

/* ---- PyTorch's functions ---- */

#define ENTER "_pytorch_record_function_enter"
#define EXIT "_pytorch_record_function_exit"

/* The beginnings of ranges are of no use without their ends; those of other libraries do not count. */
static void test_ranges_without_ends(void)
{
	struct elf_scan s;
	struct made m;

	make_file(&m);
	add_function(&m, ENTER, RETURNS, 3);
	add_function(&m, "cudaFree", RETURNS, 3);
	CHECK_EQ(0, scan_made(&m, NULL, &s));
	CHECK_EQ(1, s.nprobes);
	CHECK(find(&s, "cudaFree"));
	elf_scan_free(&s);
	add_function(&m, EXIT, RETURNS, 3);
	CHECK_EQ(0, scan_made(&m, NULL, &s));
	CHECK_EQ(3, s.nprobes);
	CHECK(find(&s, ENTER) && find(&s, EXIT));
	elf_scan_free(&s);
	/* a file that has nothing else has nothing */
	make_file(&m);
	add_function(&m, ENTER, RETURNS, 3);
	CHECK_EQ(0, scan_made(&m, NULL, &s));
	CHECK_EQ(0, s.nprobes);
	CHECK_EQ(0, s.ndefined);
	CHECK_EQ(ELF_NONE, s.role);
	elf_scan_free(&s);
}

#if defined(__x86_64__)
static void check_probe(const struct elf_scan *s, int i, uint64_t offset, uint32_t size, bool ends,
			const char *name)
{
	if (!CHECK(i < s->nprobes))
		return;
	CHECK_EQ(offset, s->probes[i].offset);
	CHECK_EQ(size, s->probes[i].size);
	CHECK_EQ(ends, s->probes[i].ends);
	CHECK_TEXT(name, symbol_text(s->probes[i].symbol));
	CHECK_EQ(0, s->probes[i].tensors); /* the file does not say how tensors are kept */
}

/* Each operator has a probe where it begins and one where it returns, or none: where the returns are not known, or cannot be probed. */
static void test_operators(void)
{
	static const char schemas[] =
		"\0mm(Tensor self, Tensor mat2) -> Tensor\0"
		"add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor";
	uint64_t capture[PLAN_WORDS] = { 0 }, mm, add, node;
	struct elf_scan s;
	struct made m;
	bool twin;

	make_file(&m);
	memcpy(m.constants, schemas, sizeof(schemas));
	mm = add_function(&m, "_ZN2at4_ops2mm4callERKNS_6TensorES4_", "\x55\x5d\xc3", 3);
	add = add_function(&m, "_ZN2at4_ops10add_Tensor4callERKNS_6TensorES4_RKN3c106ScalarE",
			   "\x85\xff\x74\x02\xf3\xc3\x90\xc3", 8);
	node = add_function(&m, "_ZN5torch8autograd9generated11MmBackward05applyEv", RETURNS, 3);
	/* no return, an instruction that is not known, a size that is not known, or that leaves the file */
	add_function(&m, "_ZN2at4_ops4none4callEv", "\x90\x90\x90", 3);
	add_function(&m, "_ZN2at4_ops3odd4callEv", "\x06\xc3", 2);
	add_alias(&m, "_ZN2at4_ops4size4callEv", mm, 0);
	add_alias(&m, "_ZN2at4_ops4long4callEv", mm, sizeof(m));
	/* a return inside of an instruction is none; what follows is cut by the size */
	add_function(&m, "_ZN2at4_ops3cut4callEv", "\xb8\xc3\xc3\xc3\xc3", 4);
	/* the kernel refuses a probe on its first instruction */
	add_function(&m, "_ZN2at4_ops6prefix4callEv", "\x2e\x90\xc3", 3);
	/* others of the library */
	add_function(&m, "_ZN2at4_ops2mm10redispatchEv", RETURNS, 3);
	CHECK_EQ(0, scan_made(&m, NULL, &s));
	CHECK_EQ(ELF_LIBRARY, s.role);
	CHECK_EQ(6, s.nunseen);
	CHECK_EQ(3, s.ndefined);
	CHECK_EQ(7, s.nprobes);
	check_probe(&s, 0, mm, 3, false, "aten::mm");
	check_probe(&s, 1, mm + 2, 0, true, "aten::mm");
	check_probe(&s, 2, add, 8, false, "aten::add.Tensor");
	check_probe(&s, 3, add + 4, 0, true, "aten::add.Tensor");
	check_probe(&s, 4, add + 7, 0, true, "aten::add.Tensor");
	check_probe(&s, 5, node, 3, false, "MmBackward0");
	check_probe(&s, 6, node + 2, 0, true, "MmBackward0");
	elf_scan_free(&s);
	/* only the nodes are asked for: the others are not read */
	plan_add(capture,
		 api_lookup("_ZN5torch8autograd9generated11MmBackward05applyEv", 0, &twin));
	CHECK_EQ(0, scan_made(&m, capture, &s));
	CHECK_EQ(0, s.nunseen);
	CHECK_EQ(2, s.nprobes);
	check_probe(&s, 0, node, 3, false, "MmBackward0");
	elf_scan_free(&s);
}

/* What one file has may not hold a worker up: 60 000 operators of 250 kB. */
static void test_slow_operators(void)
{
	const size_t n = 60000, size = 250000;
	Elf64_Sym *symbols = calloc(n + 1, sizeof(*symbols));
	uint8_t *code = malloc(size);
	struct elf_scan s;
	struct made m;
	int fd;

	memset(code, 0x90, size);
	code[size - 1] = 0xc3;
	make_file(&m);
	add_alias(&m, "_ZN2at4_ops2mm4callEv", sizeof(m), size);
	for (size_t i = 1; i <= n; i++)
		symbols[i] = m.symbols[1];
	m.ph.p_filesz = sizeof(m) + size;
	m.sh[MADE_SYMBOLS + 1].sh_offset = sizeof(m) + size;
	m.sh[MADE_SYMBOLS + 1].sh_size = (n + 1) * sizeof(*symbols);
	fd = memory_file(&m, sizeof(m));
	CHECK(pwrite(fd, code, size, sizeof(m)) == (ssize_t)size);
	CHECK(pwrite(fd, symbols, (n + 1) * sizeof(*symbols), (off_t)(sizeof(m) + size)) > 0);
	CHECK_EQ(-ETIME, elf_scan_until(fd, NULL, now_ns() + 200000000, &s));
	CHECK_EQ(0, s.nprobes);
	elf_scan_free(&s);
	close(fd);
	free(symbols);
	free(code);
}
#endif

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
		"cudaMalloc(&p, 1); }' > a.c && cc a.c -o static -L/usr/local/cuda/lib64 "
		"-lcudart_static -ldl -lrt -lpthread 2>err && cc a.c -o shared "
		"-L/usr/local/cuda/lib64 -lcudart 2>err && strip -o stripped static";
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
	/* test_stripped.c has more of it */
	CHECK(s.has_stripped);
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
	RUN(test_heads);
	RUN(test_cut_meanwhile);
	RUN(test_aliases);
	RUN(test_indirect);
	RUN(test_no_code);
	RUN(test_version);
	RUN(test_soname_outside);
	RUN(test_code_number);
	RUN(test_device_code);
	RUN(test_too_many_functions);
	RUN(test_ranges_without_ends);
#if defined(__x86_64__)
	RUN(test_operators);
	RUN(test_slow_operators);
#endif
	RUN(test_toolkit);
	RUN(test_linked);
	nftw(wheels ? wheels : ".output/wheels", on_wheel, 16, FTW_PHYS);
	if (!nwheels)
		printf("skipped: no older libcudart (tests/wheels.sh fetches them)\n");
	free(elf);
	return unit_end();
}
