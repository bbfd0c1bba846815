/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_stripped.c - NVIDIA's static runtime in files without symbols: programs and libraries that are linked here with
 * the toolkit's libcudart_static.a and stripped, compared with their twins that have symbols; and damaged ones.
 *
 * With files as arguments it prints the functions that it finds in each: tests/stripped.sh compares these for other
 * versions of CUDA. `test_stripped --runtime FILE...` finds them as if the file had no symbols, in files for
 * aarch64 and x86-64.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../user/api/api.h"
#include "../../user/proc/elf_starts.h"
#include "../../user/source/discover/elf.h"
#include "../../user/flow/plan.h"
#include "../../user/source/symbols/stripped.h"
#include "../../user/source/symbols/stripped_isa.h"
#include "unit.h"

#define ARCHIVE "/usr/local/cuda/lib64/libcudart_static.a"

static char dir[] = "/tmp/test_stripped.XXXXXX";

static int scan_path(const char *path, struct elf_scan *s)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), err;

	if (fd < 0)
		return -errno;
	err = elf_scan(fd, NULL, s);
	close(fd);
	return err;
}

static const char *in_dir(const char *name)
{
	static char path[4][128];
	static int n;
	char *to = path[n++ % 4];

	snprintf(to, sizeof(path[0]), "%s/%s", dir, name);
	return to;
}

static bool run(const char *format, ...) __attribute__((format(printf, 1, 2)));
static bool run(const char *format, ...)
{
	char command[2048], all[2200];
	va_list args;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	snprintf(all, sizeof(all), "cd %s && { %s; } 2> err", dir, command);
	return system(all) == 0;
}

static const struct elf_probe *find(const struct elf_scan *s, const char *name)
{
	for (int i = 0; i < s->nprobes; i++)
		if (!strcmp(api_funcs[s->probes[i].func].name, name) && !s->probes[i].per_thread)
			return &s->probes[i];
	return NULL;
}

/* Functions that were not found. */
static int unnamed(const struct elf_scan *s)
{
	int n = 0;

	for (int i = 0; i < api_nfuncs; i++)
		n += s->unnamed && plan_has(s->unnamed, i);
	return n;
}

/* A function of three bytes, which no profiler reports and no program calls, is not searched
 * for. */
static bool is_left_out(const struct elf_probe *p)
{
	return !strcmp(api_funcs[p->func].name, "__cudaGetProcAddress");
}

/* Each function of the twin with symbols is found, at its place, and nothing else. */
static void check_twin(const char *with, const char *without)
{
	struct elf_scan a, b;
	int i = 0, k = 0;

	if (!CHECK(!scan_path(in_dir(with), &a)) || !CHECK(!scan_path(in_dir(without), &b)))
		return;
	CHECK(!a.has_stripped);
	CHECK(b.has_stripped && b.nstripped > 400);
	CHECK_EQ(0, unnamed(&b));
	CHECK_EQ(ELF_STATIC, b.role);
	CHECK_EQ(API_RUNTIME, b.domain);
	CHECK_EQ(a.version, b.version);
	CHECK(a.nprobes > 390);
	for (; i < a.nprobes; i++) {
		const struct elf_probe *p = &a.probes[i];

		if (is_left_out(p))
			continue;
		if (!CHECK(k < b.nprobes) || !CHECK_EQ(p->offset, b.probes[k].offset) ||
		    !CHECK_EQ(p->func, b.probes[k].func) ||
		    !CHECK_EQ(p->per_thread, b.probes[k].per_thread) ||
		    !CHECK_EQ(p->size, b.probes[k].size)) {
			printf("  %s\n", api_funcs[p->func].name);
			break;
		}
		k++;
	}
	CHECK_EQ(b.nprobes, k);
	elf_scan_free(&a);
	elf_scan_free(&b);
}

/* What a program has of CUDA's names itself: a text, a table of them, a number. */
static const char program[] = "int cudaGetDeviceCount(int *);\n"
			      "int cudaMalloc(void **, unsigned long);\n"
			      "int printf(const char *, ...);\n"
			      "int puts(const char *);\n"
			      "const char *const texts[] = { \"cudaMalloc\", \"cudaFree\" };\n"
			      "int go(int n)\n"
			      "{\n"
			      "	int d, e = 0;\n"
			      "	void *p;\n"
			      "	for (int i = 0; i < n; i++)\n"
			      "		e = cudaGetDeviceCount(&d) + cudaMalloc(&p, 777 + i);\n"
			      "	printf(\"cudaMemcpy\");\n"
			      "	puts(texts[n & 1]);\n"
			      "	return e;\n"
			      "}\n"
			      "int main(void) { return go(3) != 70; }\n";

/* A function that says that it is cudaMalloc as cudaMalloc does. */
static const char impostor[] =
	"__asm__(\".pushsection .rodata\\n1: .string \\\"cudaMalloc\\\"\\n.popsection\\n\"\n"
	"	\".text\\n.globl impostor\\n.type impostor, @function\\n\"\n"
	"	\"impostor: .cfi_startproc\\nlea 1b(%rip), %rax\\nmov $20, %edi\\nmov $20, "
	"%edi\\n\"\n"
	"	\"ret\\n.cfi_endproc\\n.size impostor, . - impostor\\n\");\n";

static bool write_text(const char *name, const char *text)
{
	FILE *f = fopen(in_dir(name), "we");

	return f && fputs(text, f) >= 0 && !fclose(f);
}

#define LIBS ARCHIVE " -pthread -ldl -lrt"

static bool build(void)
{
	return write_text("a.c", program) && write_text("b.c", impostor) &&
	       run("cc -O1 -c -fPIC a.c b.c && cc -o pie a.o " LIBS
		   " && cc -O1 -no-pie -o fixed a.c " LIBS
		   " && cc -shared -o library.so a.o -Wl,--exclude-libs,ALL " LIBS
		   " && cc -Wl,--gc-sections -Wl,-z,pack-relative-relocs -o packed a.o " LIBS
		   " && cc -o false a.o b.o " LIBS
		   " && for f in pie fixed library.so packed false; do strip -o $f.stripped $f || "
		   "exit 1; done");
}

static void test_twins(void)
{
	check_twin("pie", "pie.stripped");
	check_twin("fixed", "fixed.stripped");
	check_twin("library.so", "library.so.stripped");
	check_twin("packed", "packed.stripped");
}

/* gold and lld lay files out in another way. */
static void test_other_linkers(void)
{
	static const char *const linkers[] = { "gold", "lld" };

	for (int i = 0; i < 2; i++) {
		char name[32], stripped[48];

		if (!run("command -v ld.%s > /dev/null", linkers[i])) {
			printf("skipped: no ld.%s\n", linkers[i]);
			continue;
		}
		snprintf(name, sizeof(name), "by-%s.so", linkers[i]);
		snprintf(stripped, sizeof(stripped), "%s.stripped", name);
		CHECK(run("cc -fuse-ld=%s -shared -o %s a.o -Wl,--exclude-libs,ALL " LIBS
			  " && strip -o %s %s",
			  linkers[i], name, stripped, name));
		check_twin(name, stripped);
	}
}

/* Only some of its functions are asked for. */
static void test_choice(void)
{
	uint64_t capture[PLAN_WORDS] = { 0 };
	int fd = open(in_dir("pie.stripped"), O_RDONLY | O_CLOEXEC);
	struct elf_scan s;

	for (int i = 0; i < api_nfuncs; i++)
		if (!strcmp(api_funcs[i].name, "cudaMalloc"))
			plan_add(capture, i);
	if (CHECK(!elf_scan(fd, capture, &s))) {
		CHECK_EQ(1, s.nprobes);
		CHECK(find(&s, "cudaMalloc"));
		CHECK(s.ndefined > 390);
		elf_scan_free(&s);
	}
	close(fd);
}

/* Two functions say the same: neither is believed, and the others are as they were. */
static void test_two_claims(void)
{
	struct elf_scan a, b;

	if (!CHECK(!scan_path(in_dir("pie.stripped"), &a)) ||
	    !CHECK(!scan_path(in_dir("false.stripped"), &b)))
		return;
	CHECK(find(&a, "cudaMalloc"));
	CHECK(!find(&b, "cudaMalloc"));
	CHECK(find(&b, "cudaMallocAsync"));
	CHECK(find(&b, "__cudaRegisterFunction"));
	CHECK_EQ(a.nprobes - 1, b.nprobes);
	CHECK_EQ(1, unnamed(&b));
	elf_scan_free(&a);
	elf_scan_free(&b);
}

/* ---- changed files ---- */

struct copy {
	uint8_t *data;
	size_t len;
};

static struct copy copy_of(const char *name)
{
	struct copy c = { NULL, 0 };
	FILE *f = fopen(in_dir(name), "re");
	struct stat st;

	if (f && !fstat(fileno(f), &st)) {
		c.data = malloc((size_t)st.st_size);
		c.len = fread(c.data, 1, (size_t)st.st_size, f);
	}
	if (f)
		fclose(f);
	return c;
}

static int scan_copy(const struct copy *c, struct elf_scan *s)
{
	int fd = memfd_create("copy", MFD_CLOEXEC), err;

	if (write(fd, c->data, c->len) != (ssize_t)c->len)
		abort();
	err = elf_scan(fd, NULL, s);
	close(fd);
	return err;
}

/* The function at this offset of the file reports another number: it is no function that is known. */
static void test_other_number(void)
{
	static const uint8_t insn[] = { 0xbf, 20, 0, 0, 0 };
	struct copy c = copy_of("pie.stripped");
	const struct elf_probe *p;
	struct elf_scan s;
	int changed = 0;

	if (!CHECK(!scan_copy(&c, &s)) || !CHECK(p = find(&s, "cudaMalloc")))
		return;
	for (uint8_t *at = c.data + p->offset;
	     (at = memmem(at, (size_t)(c.data + p->offset + p->size - at), insn, sizeof(insn)));
	     at += 5, changed++)
		at[1] = 22;
	CHECK_EQ(2, changed);
	elf_scan_free(&s);
	CHECK(!scan_copy(&c, &s));
	CHECK(!find(&s, "cudaMalloc"));
	CHECK(find(&s, "cudaFree"));
	elf_scan_free(&s);
	free(c.data);
}

/* One byte of a function that tells no name: it is not known any more, and its neighbours are. */
static void test_other_code(void)
{
	struct copy c = copy_of("pie.stripped");
	const struct elf_probe *p;
	struct elf_scan s;

	if (!CHECK(!scan_copy(&c, &s)) || !CHECK(p = find(&s, "__cudaRegisterFunction")))
		return;
	c.data[p->offset + 5] ^= 1;
	elf_scan_free(&s);
	CHECK(!scan_copy(&c, &s));
	CHECK(!find(&s, "__cudaRegisterFunction"));
	CHECK(find(&s, "__cudaRegisterHostVar"));
	CHECK(find(&s, "__cudaRegisterVar"));
	CHECK(find(&s, "__cudaRegisterManagedVar"));
	elf_scan_free(&s);
	free(c.data);
}

/* Without the table for unwinding nothing is found, and it is said that there is a runtime. */
static void test_no_table(void)
{
	struct copy c = copy_of("pie.stripped");
	Elf64_Ehdr *e = (Elf64_Ehdr *)c.data;
	Elf64_Phdr *p = (Elf64_Phdr *)(c.data + e->e_phoff);
	struct elf_scan s;

	for (int i = 0; i < e->e_phnum; i++)
		if (p[i].p_type == PT_GNU_EH_FRAME)
			p[i].p_type = PT_NULL;
	CHECK(!scan_copy(&c, &s));
	CHECK(s.has_stripped);
	CHECK_EQ(0, s.nstripped);
	CHECK_EQ(0, s.nprobes);
	CHECK_EQ(ELF_NONE, s.role);
	CHECK(unnamed(&s) > 350);
	elf_scan_free(&s);
	free(c.data);
}

/* Bytes that are changed at random: it ends, and what it finds lies in the file. */
static void test_damaged(void)
{
	struct copy good = copy_of("pie.stripped"), c = { malloc(good.len), good.len };
	Elf64_Ehdr *e = (Elf64_Ehdr *)good.data;
	uint64_t table = 0, bytes = 0;
	Elf64_Phdr *p = (Elf64_Phdr *)(good.data + e->e_phoff);

	for (int i = 0; i < e->e_phnum; i++)
		if (p[i].p_type == PT_GNU_EH_FRAME) {
			table = p[i].p_offset;
			bytes = p[i].p_filesz;
		}
	srand(7);
	for (int round = 0; round < 60; round++) {
		struct elf_scan s;
		int err;

		memcpy(c.data, good.data, good.len);
		/* the table of functions, its entries behind it, or anything */
		for (int i = 0; i < 40; i++) {
			uint64_t from = round % 3 == 0 ? table : 0;
			uint64_t span = round % 3 == 0	 ? 12
					: round % 3 == 1 ? good.len
							 : table + bytes;

			c.data[from + (uint64_t)rand() % span] = (uint8_t)rand();
		}
		memcpy(c.data, good.data, round % 3 ? 64 : 0); /* the header is test_elf's */
		err = scan_copy(&c, &s);
		if (err)
			continue;
		for (int i = 0; i < s.nprobes; i++)
			CHECK(s.probes[i].offset < good.len);
		elf_scan_free(&s);
	}
	free(c.data);
	free(good.data);
}

/* What one instruction after the other refers to. */
struct seen {
	uint64_t at[8], to[8];
	int n;
};

static int note(void *ctx, uint64_t at, uint64_t to)
{
	struct seen *s = ctx;

	if (s->n < 8) {
		s->at[s->n] = at;
		s->to[s->n] = to;
	}
	s->n++;
	return 0;
}

static void test_x86(void)
{
	static const uint8_t code[] = {
		0x90, 0x48, 0x8d, 0x3d, 0x10, 0,    0,	  0, /* lea 0x10(%rip), %rdi */
		0x4c, 0x8b, 0x05, 0xf0, 0xff, 0xff, 0xff,    /* mov -0x10(%rip), %r8 */
		0xf3, 0x0f, 0x7e, 0x0d, 0,    1,    0,	  0, /* movq 0x100(%rip), %xmm1 */
		0x8b, 0x05, 0x10, 0,	0,    0,	     /* mov 0x10(%rip), %eax: 4 bytes */
		0xbf, 20,   0,	  0,	0,    0xbe, 20,	  0, 0, 0, /* mov $20 to %edi and %esi */
		0xe8, 0xfb, 0xff, 0xff, 0xff, 0xe9, 0,	  0, 0, 0, /* call and jmp */
	};
	const struct stripped_isa *isa = stripped_isa(EM_X86_64);
	struct seen s = { .n = 0 };
	uint64_t registers[ISA_REGISTERS] = { 0 }, to = 0;

	CHECK(!isa->refers(registers, code, sizeof(code), sizeof(code), 0x1000, note, &s));
	CHECK_EQ(3, s.n);
	CHECK_EQ(0x1018, s.to[0]);
	CHECK_EQ(0xfff, s.to[1]);
	CHECK_EQ(0x1117, s.to[2]);
	CHECK_EQ(1, isa->count(code, sizeof(code), 20));
	CHECK_EQ(0, isa->count(code, sizeof(code), 21));
	CHECK_EQ(ISA_CALL, isa->branch(code, sizeof(code) - 9, 0x1000, &to));
	CHECK_EQ(0x1000 + sizeof(code) - 10, to);
	CHECK_EQ(ISA_JUMP, isa->branch(code, sizeof(code) - 4, 0x1000, &to));
	CHECK_EQ(0x1000 + sizeof(code), to);
	CHECK_EQ(ISA_NONE, isa->branch(code, 0, 0x1000, &to));
}

static void test_aarch64(void)
{
	static const uint32_t code[] = {
		0xb000000a, /* adrp x10, the next page */
		0x9122014c, /* add x12, x10, #0x880 */
		0xd103818d, /* sub x13, x12, #0xe0 */
		0xf940096e, /* ldr x14, [x11, #16]: x11 is not known */
		0xf940098e, /* ldr x14, [x12, #16] */
		0x10000040, /* adr x0, 8 bytes on */
		0xd2802276, /* mov x22, #275 */
		0x52802276, /* mov w22, #275 */
		0x97ffffff, /* bl, the instruction before */
		0x14000002, /* b, over the next one */
	};
	const struct stripped_isa *isa = stripped_isa(EM_AARCH64);
	const uint8_t *bytes = (const uint8_t *)code;
	struct seen s = { .n = 0 };
	uint64_t registers[ISA_REGISTERS] = { 0 }, to = 0;

	CHECK(!isa->refers(registers, bytes, sizeof(code), sizeof(code), 0x5004, note, &s));
	CHECK_EQ(5, s.n);
	CHECK_EQ(0x6000, s.to[0]);
	CHECK_EQ(0x6880, s.to[1]);
	CHECK_EQ(0x67a0, s.to[2]);
	CHECK_EQ(0x6890, s.to[3]);
	CHECK_EQ(0x5004 + 20 + 8, s.to[4]);
	/* what a register has is kept for the next piece, and what was loaded is not known */
	CHECK_EQ(0x6880, registers[12]);
	CHECK_EQ(0, registers[14]);
	CHECK_EQ(2, isa->count(bytes, sizeof(code), 275));
	CHECK_EQ(0, isa->count(bytes, sizeof(code), 274));
	CHECK_EQ(ISA_CALL, isa->branch(bytes, 32, 0x5004, &to));
	CHECK_EQ(0x5004 + 28, to);
	CHECK_EQ(ISA_JUMP, isa->branch(bytes, 36, 0x5004, &to));
	CHECK_EQ(0x5004 + 44, to);
	CHECK_EQ(ISA_NONE, isa->branch(bytes, 0, 0x5004, &to));
	CHECK(!stripped_isa(EM_RISCV));
}

static void test_imports(void)
{
	uint32_t seen = 0;

	CHECK(!stripped_imported(&seen, "dlopen") && !stripped_imported(&seen, "dlvsymbol"));
	for (int i = 0; i < STRIPPED_IMPORTS; i++) {
		CHECK(!stripped_likely(seen));
		CHECK(stripped_imported(&seen, stripped_imports[i]));
	}
	CHECK(stripped_likely(seen));
}

/* ---- for people and scripts ---- */

static void list(const char *path, bool runtime)
{
	struct elf_file f;
	struct stripped found;
	struct elf_starts starts;
	int fd = open(path, O_RDONLY | O_CLOEXEC),
	    err = fd < 0 ? -errno : elf_file_open_any(&f, fd);
	struct elf_scan s;

	if (!err && runtime) {
		err = stripped_find(&f, &found);
		for (size_t i = 0; i < found.n; i++)
			printf("%s %llx %llu\n", found.funcs[i].name,
			       (unsigned long long)found.funcs[i].address,
			       (unsigned long long)found.funcs[i].bytes);
		stripped_free(&found);
	} else if (!err && !(err = elf_scan(fd, NULL, &s))) {
		err = elf_starts_read(&f, &starts);
		printf("%s: %zu functions, %s, %d found\n", path, starts.n,
		       s.has_stripped ? "a stripped runtime" : "no stripped runtime", s.nstripped);
		elf_starts_free(&starts);
		elf_scan_free(&s);
		err = 0;
	}
	if (err && err != -ENOEXEC)
		printf("%s: %s\n", path, strerror(-err));
	if (fd >= 0) {
		elf_file_close(&f);
		close(fd);
	}
}

int main(int argc, char **argv)
{
	bool runtime = argc > 1 && !strcmp(argv[1], "--runtime");

	for (int i = 1 + runtime; i < argc; i++)
		list(argv[i], runtime);
	if (argc > 1)
		return 0;
	RUN(test_imports);
	RUN(test_x86);
	RUN(test_aarch64);
	if (access(ARCHIVE, R_OK) || !mkdtemp(dir)) {
		printf("skipped: no " ARCHIVE "\n");
		return unit_end();
	}
	if (CHECK(build())) {
		RUN(test_twins);
		RUN(test_other_linkers);
		RUN(test_choice);
		RUN(test_two_claims);
		RUN(test_other_number);
		RUN(test_other_code);
		RUN(test_no_table);
		RUN(test_damaged);
	}
	CHECK(run("rm -r %s", dir));
	return unit_end();
}
