/* SPDX-License-Identifier: BSD-2-Clause */
/* test_known.c - names of programs that run already: on programs made by nvcc, on forged ones,
 * on damaged and hostile ones. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <lz4.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zstd.h>

#include "../../user/proc/elf_read.h"
#include "../../user/resolve/names/fatbin.h"
#include "../../user/resolve/names/known.h"
#include "../../user/resolve/names/known_driver.h"
#include "../../user/resolve/names/stub.h"
#include "unit.h"

#define PROGRAMS ".output/programs"

static char *text(const char *fmt, ...)
{
	static char buf[16][4096];
	static int at;
	va_list ap;

	at = (at + 1) % 16;
	va_start(ap, fmt);
	vsnprintf(buf[at], sizeof(buf[at]), fmt, ap);
	va_end(ap);
	return buf[at];
}

/* ---- text ---- */

typedef size_t (*stub_fn)(const char *, size_t, char *, size_t);

static void check_stub(stub_fn fn, const char *symbol, const char *want)
{
	/* for the sanitizer: not a byte beyond */
	char got[CT_NAME_MAX] = "", *exact = malloc(strlen(symbol));
	size_t n, small;

	memcpy(exact, symbol, strlen(symbol));
	n = fn(exact, strlen(symbol), got, sizeof(got));
	CHECK_TEXT(want, n ? got : "");
	CHECK(n == strlen(want));
	/* one byte too few for the result */
	small = strlen(want) ? fn(exact, strlen(symbol), got, strlen(want)) : 0;
	CHECK(!small);
	/* any beginning of it */
	for (size_t i = 0; i < strlen(symbol); i++)
		fn(exact + strlen(symbol) - i, i, got, sizeof(got));
	free(exact);
}

static void test_stub_names(void)
{
	static const struct {
		stub_fn fn;
		const char *symbol, *want;
	} rows[] = {
		{ stub_of_handle, "_ZZ32__device_stub__Z6vecAddPKfS0_PfiPKfS0_PfiE8__handle",
		  "_Z6vecAddPKfS0_Pfi" },
		{ stub_of_handle, "_ZZL23__device_stub__Z4statPiPiE8__handle", "_Z4statPi" },
		{ stub_of_handle, "_ZZL23__device_stub__Z4statPiPiE8__handle.lto_priv.0",
		  "_Z4statPi" },
		{ stub_of_handle, "_ZZ29__device_stub__ZN1q1sEPNS_1SEPN1q1SEE8__handle",
		  "_ZN1q1sEPNS_1SE" },
		{ stub_of_handle, "_ZZL23__device_stub__Z4statPiPiE3__f", "" },
		{ stub_of_handle, "_ZGVZL23__device_stub__Z4statPiPiE5__tmp", "" },
		{ stub_of_handle, "_ZZL23__device_stub__Z4statPiPiE8__handles", "" },
		/* a length is believed */
		{ stub_of_handle, "_ZZL24__device_stub__Z4statPiPiE8__handle", "_Z4statPiP" },
		{ stub_of_handle, "_ZZL99__device_stub__Z4statPiPiE8__handle", "" },
		{ stub_of_handle, "_ZZL99999999999999999999999__device_stub__Z4statPiE8__handle",
		  "" },
		{ stub_of_handle, "_ZZL015__device_stub__Z4statPiPiE8__handle", "" },
		{ stub_of_handle, "_ZZ15__device_stub__PiE8__handle", "" },
		{ stub_of_handle, "_ZZ", "" },
		{ stub_of_handle, "E8__handle", "" },
		{ stub_of_any, "_Z32__device_stub__Z6vecAddPKfS0_PfiPKfS0_Pfi",
		  "_Z6vecAddPKfS0_Pfi" },
		{ stub_of_any, "_ZL23__device_stub__Z4statPiPi", "_Z4statPi" },
		{ stub_of_any, "_ZL23__device_stub__Z4statPiPi.cold", "_Z4statPi" },
		{ stub_of_any, "_ZZL23__device_stub__Z4statPiPiE3__f", "_Z4statPi" },
		{ stub_of_any, "_ZGVZL23__device_stub__Z4statPiPiE5__tmp", "_Z4statPi" },
		{ stub_of_any, "_Z27__wrapper__device_stub_tmplIiLi3EEvRPT_", "" },
		{ stub_of_any, "_Z21__device_stub__vecAddPKf", "" },
		{ stub_of_any, "_Z20__device_stub__ZebraPi", "" }, /* clang's, of a kernel Zebra */
		{ stub_of_clang, "_Z21__device_stub__vecAddPKfS0_Pfi", "_Z6vecAddPKfS0_Pfi" },
		{ stub_of_clang, "_ZN2ns21__device_stub__vecAddEPi", "_ZN2ns6vecAddEPi" },
		{ stub_of_clang, "_Z19__device_stub__tmplIiEvPT_", "_Z4tmplIiEvPT_" },
		{ stub_of_clang, "__device_stub__plain", "plain" },
		{ stub_of_clang, "_Z20__device_stub__ZebraPi", "_Z5ZebraPi" },
		{ stub_of_clang, "_Z25__device_stub__abcdefghijPi", "_Z10abcdefghijPi" },
		{ stub_of_clang, "_Z32__device_stub__Z6vecAddPKfS0_PfiPKfS0_Pfi", "" },
		{ stub_of_clang, "_Z6vecAddPKf", "" },
		{ stub_of_clang, "__device_stub__", "" },
		{ stub_of_clang, "_X21__device_stub__vecAddPKf", "" },
		/* no length begins within another one */
		{ stub_of_clang, "_Z121__device_stub__vecAddPKfS0_Pfi", "" },
		{ stub_plain, "_ZL4statPi", "_Z4statPi" },
		{ stub_plain, "_ZN2nsL4statEPi", "_ZN2ns4statEPi" },
		{ stub_plain, "_ZN1qL3lamI1xEEvT_Pi", "_ZN1q3lamI1xEEvT_Pi" },
		{ stub_plain, "_Z4statPi", "_Z4statPi" },
		{ stub_plain, "plain", "plain" },
		{ stub_plain, "_ZN2LL1LEPi", "_ZN2LL1LEPi" },
		{ stub_plain, "_ZL", "_ZL" },
		{ stub_plain, "_ZN2ns1s", "_ZN2ns1s" },
		{ stub_plain, "_ZN2ns1sL", "_ZN2ns1sL" },
		{ stub_extern_c, "_Z5plainPi", "plain" },
		{ stub_extern_c, "_ZN2ns5plainEPi", "plain" },
		{ stub_extern_c, "_Z5plainIiEvPi", "" },
		{ stub_extern_c, "_Z5plain", "" },
		{ stub_extern_c, "plain", "" },
		{ stub_extern_c, "_ZS_", "" },
		{ stub_extern_c, "_ZN5plainPi", "" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		check_stub(rows[i].fn, rows[i].symbol, rows[i].want);
	CHECK(stub_compare("_Z1kPi", "_Z1kPi") == STUB_SAME);
	CHECK(stub_compare("_Z1kPi", "_Z1kPf") == STUB_OTHER);
	CHECK(stub_compare("_Z1kPi", "k") == STUB_SPELLING);
	CHECK(stub_compare("_Z1kPi", "kk") == STUB_OTHER);
	CHECK(stub_compare("_Z4statPi", "__nv_static_25__b397ebd8_4_a_cu_ee3dab7b__Z4statPi") ==
	      STUB_SPELLING);
	CHECK(stub_compare("_ZN1q3lamIZ4mainEUnvdl0_PFivE4main1_EEvT_Pi",
			   "_ZN1q3lamIZ4mainEUliE_EEvT_Pi") == STUB_SPELLING);
	CHECK(stub_compare("_ZN1q3lamIZ4mainEUnvdl0_PFivE4main1_EEvT_Pi",
			   "_ZN1q3lemIZ4mainEUliE_EEvT_Pi") == STUB_OTHER);
}

static void test_is_name(void)
{
	char *big = malloc(CT_NAME_MAX + 1);

	memset(big, 'a', CT_NAME_MAX + 1);
	CHECK(stub_is_name("_Z1kPi", 6));
	CHECK(stub_is_name("triton_poi_fused_add_0", 22));
	CHECK(stub_is_name("a$b.c", 5));
	CHECK(stub_is_name(big, CT_NAME_MAX - 1) && !stub_is_name(big, CT_NAME_MAX));
	CHECK(!stub_is_name("", 0));
	CHECK(!stub_is_name("1k", 2));
	CHECK(!stub_is_name("a b", 3));
	CHECK(!stub_is_name("a\033[2J", 5));
	CHECK(!stub_is_name("k\xff", 2));
	CHECK(!stub_is_name("k\n", 2));
	CHECK(!stub_is_name("k\0k", 3));
	CHECK(!stub_is_name("\"", 1));
	free(big);
}

/* ---- device code ---- */

/* The names found, each once, in the order of their coming. */
struct names {
	char *name[64];
	int n;
};

static int collect(void *ctx, const char *name)
{
	struct names *s = ctx;

	for (int i = 0; i < s->n; i++)
		if (!strcmp(s->name[i], name))
			return 0;
	if (s->n < 64)
		s->name[s->n++] = strdup(name);
	return 0;
}

static bool has(const struct names *s, const char *name)
{
	for (int i = 0; i < s->n; i++)
		if (!strcmp(s->name[i], name))
			return true;
	return false;
}

static void names_free(struct names *s)
{
	while (s->n)
		free(s->name[--s->n]);
}

/* A section of a file; NULL: the file or the section is not there. */
static uint8_t *section(const char *path, const char *name, size_t *len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint8_t *data = NULL;
	struct elf_file f;

	if (fd < 0)
		return NULL;
	if (!elf_file_open(&f, fd))
		for (uint32_t i = 0; i < f.nshdr && !data; i++)
			if (!strcmp(elf_section_name(&f, i), name)) {
				*len = f.shdr[i].sh_size;
				data = malloc(*len);
				CHECK(!elf_read(&f, data, *len, f.shdr[i].sh_offset));
			}
	elf_file_close(&f);
	close(fd);
	return data;
}

static int kernels_in(const void *data, size_t len, fatbin_fn fn, void *ctx)
{
	uint64_t budget = 1 << 20;

	return fatbin_kernels(data, len, &budget, fn, ctx);
}

/* The same kernels come out of every way of packing. */
static void test_fatbin_modes(void)
{
	static const char *const modes[] = { "default", "size", "speed", "balance", "none" };
	struct names names = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		char *path = text(PROGRAMS "/fatbin-%s", modes[i]);
		size_t len;
		uint8_t *data = section(path, ".nv_fatbin", &len);

		if (!data) {
			printf("skipped: no %s (make programs, with nvcc)\n", path);
			return;
		}
		CHECK(!kernels_in(data, len, collect, &names));
		CHECK(names.n == 14 - 1); /* two files have a kernel of the same name */
		CHECK(has(&names, "unmangled"));
		CHECK(has(&names, "_Z8internalPi"));
		CHECK(has(&names, "_Z10plain_argsPKfS0_Pfi"));
		CHECK(has(&names, "_Z9templatedIfLi4EEvPT_") &&
		      has(&names, "_ZN5space6nestedEPNS_5shapeE"));
		names_free(&names);
		free(data);
	}
}

/* A container with one entry around a payload. Returns its length. */
static size_t pack(uint8_t *out, uint16_t kind, uint64_t flags, const void *payload, size_t len)
{
	uint64_t body = 64 + len;

	memset(out, 0, 16 + 64);
	memcpy(out, (uint8_t[]){ 0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0 }, 8);
	memcpy(out + 8, &body, 8);
	memcpy(out + 16, &kind, 2);
	memcpy(out + 20, (uint32_t[]){ 64 }, 4);
	memcpy(out + 24, (uint64_t[]){ len }, 8);
	memcpy(out + 16 + 40, &flags, 8);
	memcpy(out + 80, payload, len);
	return 80 + len;
}

static void check_ptx(const char *ptx, int rc, const char *want)
{
	struct names names = { 0 };
	char got[256] = "", *exact = malloc(strlen(ptx));

	memcpy(exact, ptx, strlen(ptx));
	CHECK(fatbin_ptx(exact, strlen(ptx), collect, &names) == rc);
	for (int i = 0; i < names.n; i++)
		snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s ", names.name[i]);
	if (!rc)
		CHECK_TEXT(want, got);
	names_free(&names);
	free(exact);
}

static void test_ptx(void)
{
	check_ptx(".version 8.0\n.target sm_80\n.visible .entry a(\n.param .u64 x)\n{ ret; "
		  "}\n.entry b() {}",
		  0, "a b ");
	check_ptx(".version 8.0 // .entry no\n/* .entry no */ .file 1 \"/x/.entry no\"\n.weak "
		  ".entry /* c */ yes{}",
		  0, "yes ");
	check_ptx(".version 8.0\n.func f() {}", 0, "");
	check_ptx(".version 8.0\n.entry", -EBADMSG, "");
	check_ptx(".version 8.0\n.entry 1k() {}", -EBADMSG, "");
	check_ptx(".version 8.0\n.entry \x1b[2J() {}", -EBADMSG, "");
	check_ptx("no ptx at all", -EBADMSG, "");
	check_ptx("/* open", -EBADMSG, "");
	check_ptx("\"open\\", -EBADMSG, "");
}

/* Device code that is no ELF file, of the other byte order, of another machine, of another width, and whose table of sections is not one.
 * One that is what it should be has no table of symbols. */
static void test_cubin_headers(void)
{
	static const struct {
		const char *label;
		unsigned char magic, order, class;
		Elf64_Half machine, entry;
		Elf64_Off table;
		int rc;
	} rows[] = {
		{ "right", ELFMAG0, ELFDATA2LSB, ELFCLASS64, EM_CUDA, 64, 64, -ENOTSUP },
		{ "no table", ELFMAG0, ELFDATA2LSB, ELFCLASS64, EM_CUDA, 64, 0, -ENOTSUP },
		{ "magic", 0x7e, ELFDATA2LSB, ELFCLASS64, EM_CUDA, 64, 64, -EBADMSG },
		{ "order", ELFMAG0, ELFDATA2MSB, ELFCLASS64, EM_CUDA, 64, 64, -EBADMSG },
		{ "machine", ELFMAG0, ELFDATA2LSB, ELFCLASS64, EM_X86_64, 64, 64, -EBADMSG },
		/* its table would be read at another place */
		{ "width", ELFMAG0, ELFDATA2LSB, ELFCLASS32, EM_CUDA, 40, 64, -ENOTSUP },
		{ "small entries", ELFMAG0, ELFDATA2LSB, ELFCLASS64, EM_CUDA, 40, 64, -EBADMSG },
		{ "cut", ELFMAG0, ELFDATA2LSB, ELFCLASS64, EM_CUDA, 64, 65, -EBADMSG },
		{ "far", ELFMAG0, ELFDATA2LSB, ELFCLASS64, EM_CUDA, 64, 1ULL << 63, -EBADMSG },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct {
			Elf64_Ehdr e;
			Elf64_Shdr table[1];
		} file = { .e = { .e_ident = { rows[i].magic, ELFMAG1, ELFMAG2, ELFMAG3,
					       rows[i].class, rows[i].order },
				  .e_machine = rows[i].machine,
				  .e_shoff = rows[i].table,
				  .e_shentsize = rows[i].entry,
				  .e_shnum = 1 } };
		uint8_t buf[512];
		struct names names = { 0 };

		CASE_ROW("%s", rows[i].label);
		CHECK_EQ(rows[i].rc,
			 kernels_in(buf, pack(buf, 2, 0x11, &file, sizeof(file)), collect, &names));
		names_free(&names);
	}
}

static void test_containers(void)
{
	static const char ptx[] = ".version 8.0\n.entry k() {}";
	uint8_t buf[1024];
	struct names names = { 0 };
	size_t len = pack(buf, 1, 0x11, ptx, sizeof(ptx));

	CHECK(!kernels_in(buf, len, collect, &names));
	CHECK_EQ(1, names.n);
	CHECK(has(&names, "k"));
	CHECK(kernels_in(buf, len - 1, collect, &names) == -EBADMSG);
	CHECK(!kernels_in(buf, 0, collect, &names));
	pack(buf, 8, 0x11, ptx, sizeof(ptx)); /* some other kind */
	CHECK(kernels_in(buf, len, collect, &names) == -ENOTSUP);
	pack(buf, 1, 0x2011, ptx, sizeof(ptx)); /* no LZ4, whatever it says */
	CHECK(kernels_in(buf, len, collect, &names) == -EBADMSG);
	pack(buf, 1, 0xa011, ptx, sizeof(ptx)); /* both */
	CHECK(kernels_in(buf, len, collect, &names) == -EBADMSG);
	pack(buf, 1, 0x8011, ptx, sizeof(ptx));
	memcpy(buf + 16 + 56, (uint64_t[]){ UINT64_MAX }, 8); /* would become that large */
	CHECK(kernels_in(buf, len, collect, &names) == -EBADMSG);
	memcpy(buf + 16 + 56, (uint64_t[]){ (1 << 20) + 1 }, 8); /* more than is allowed in all */
	CHECK(kernels_in(buf, len, collect, &names) == -E2BIG);
	pack(buf, 2, 0x11, ptx, sizeof(ptx)); /* no cubin */
	CHECK(kernels_in(buf, len, collect, &names) == -EBADMSG);
	pack(buf, 1, 0x11, ptx, sizeof(ptx));
	memcpy(buf + 20, (uint32_t[]){ 0xffffffff }, 4); /* the entry's header */
	CHECK(kernels_in(buf, len, collect, &names) == -EBADMSG);
	memcpy(buf + 20, (uint32_t[]){ 0 }, 4);
	CHECK(kernels_in(buf, len, collect, &names) == -EBADMSG);
	pack(buf, 1, 0x11, ptx, sizeof(ptx));
	memcpy(buf + 24, (uint64_t[]){ UINT64_MAX - 63 }, 8); /* header and payload add up to 0 */
	CHECK(kernels_in(buf, len, collect, &names) == -EBADMSG);
	names_free(&names);
}

/* ---- cubins that are made here ---- */

enum { SECTIONS = 3, SYMBOLS = 6 };

/* A cubin as ptxas writes it: a head, sections (nothing, symbols, their names), the symbols, the names. */
struct cubin {
	Elf64_Ehdr head;
	Elf64_Shdr sections[SECTIONS];
	Elf64_Sym symbols[SYMBOLS];
	char names[32];
};

#define ENTRY_POINT 0x10 /* in st_other, of a kernel */

/* Two kernels, and what is none: a device function, a variable, a kernel of another file. */
static void make_cubin(struct cubin *c)
{
	static const char names[] = "\0_Z1kPi\0helper\0table\0extern\0two";
	const unsigned char function = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);

	*c = (struct cubin){
		.head = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
				       ELFDATA2LSB },
			  .e_machine = EM_CUDA,
			  .e_shoff = offsetof(struct cubin, sections),
			  .e_shentsize = sizeof(Elf64_Shdr),
			  .e_shnum = SECTIONS },
		.sections = { [1] = { .sh_type = SHT_SYMTAB,
				      .sh_link = 2,
				      .sh_entsize = sizeof(Elf64_Sym),
				      .sh_offset = offsetof(struct cubin, symbols),
				      .sh_size = sizeof(c->symbols) },
			      [2] = { .sh_type = SHT_STRTAB,
				      .sh_offset = offsetof(struct cubin, names),
				      .sh_size = sizeof(c->names) } },
		.symbols = { [1] = { 1, function, ENTRY_POINT, 7, 0, 0 },
			     [2] = { 8, function, 0, 7, 0, 0 },
			     [3] = { 15, ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT), ENTRY_POINT, 7, 0,
				     0 },
			     [4] = { 21, function, ENTRY_POINT, SHN_UNDEF, 0, 0 },
			     [5] = { 28, function, ENTRY_POINT, 7, 0, 0 } },
	};
	memcpy(c->names, names, sizeof(names));
}

/* "a b ", the names in the order of their coming, or "" and an error. The bytes end where they end, for the sanitizer. */
static int names_in(const void *data, size_t len, uint64_t *budget, char got[256])
{
	struct names names = { 0 };
	uint8_t *exact = malloc(len + 1);
	int err;

	memcpy(exact + 1, data, len);
	err = fatbin_kernels(exact + 1, len, budget, collect, &names);
	got[0] = '\0';
	for (int i = 0; i < names.n; i++)
		snprintf(got + strlen(got), 256 - strlen(got), "%s ", names.name[i]);
	names_free(&names);
	free(exact);
	return err;
}

static void check_cubin(const struct cubin *c, size_t len, int want, const char *names)
{
	uint8_t buf[80 + sizeof(*c)];
	uint64_t budget = 0;
	char got[256];

	CHECK_EQ(want, names_in(buf, pack(buf, 2, 0x11, c, len), &budget, got));
	CHECK_TEXT(names, got);
}

static void test_cubin(void)
{
	struct cubin c;

	make_cubin(&c);
	check_cubin(&c, sizeof(c), 0, "_Z1kPi two ");
	/* the symbols of another table are not read */
	c.head.e_shnum = 1;
	check_cubin(&c, sizeof(c), -ENOTSUP, "");
	make_cubin(&c);
	c.head.e_shoff = 0;
	check_cubin(&c, sizeof(c), -ENOTSUP, "");
	make_cubin(&c);
	c.head.e_ident[EI_CLASS] = ELFCLASS32;
	check_cubin(&c, sizeof(c), -ENOTSUP, "");
	make_cubin(&c);
	check_cubin(&c, sizeof(c.head) - 1, -EBADMSG, "");
	check_cubin(&c, sizeof(c) - 1, -EBADMSG, "");
	check_cubin(&c, offsetof(struct cubin, symbols) - 1, -EBADMSG, "");
}

/* One field of a cubin at a time has a value that it must not have. */
static void test_cubin_hostile(void)
{
	static struct cubin c;
	const struct {
		const char *what;
		void *field;
		size_t bytes;
		uint64_t value;
		const char *names; /* those that come before it */
	} rows[] = {
#define ROW(what, field, value, names) { what, &c.field, sizeof(c.field), value, names }
		ROW("sections far away", head.e_shoff, UINT64_MAX - 64, ""),
		ROW("sections behind the end", head.e_shoff, sizeof(c) - SECTIONS * 64 + 1, ""),
		ROW("too many sections", head.e_shnum, 65535, ""),
		ROW("sections of another size", head.e_shentsize, 63, ""),
		ROW("no such names", sections[1].sh_link, SECTIONS, ""),
		ROW("names that are none", sections[2].sh_type, SHT_PROGBITS, ""),
		ROW("symbols of another size", sections[1].sh_entsize, 16, ""),
		ROW("symbols behind the end", sections[1].sh_offset,
		    sizeof(c) - sizeof(c.symbols) + 1, ""),
		ROW("symbols that wrap around", sections[1].sh_offset, UINT64_MAX, ""),
		ROW("too many symbols", sections[1].sh_size, UINT64_MAX, ""),
		ROW("names behind the end", sections[2].sh_offset, sizeof(c) - sizeof(c.names) + 1,
		    ""),
		ROW("too many names", sections[2].sh_size, UINT64_MAX, ""),
		ROW("a name behind the names", symbols[5].st_name, sizeof(c.names), "_Z1kPi "),
		ROW("a name far away", symbols[5].st_name, UINT32_MAX, "_Z1kPi "),
		ROW("no name", symbols[5].st_name, 0, "_Z1kPi "),
		ROW("a name without an end", sections[2].sh_size, 31, "_Z1kPi "),
		ROW("a name that is none", names[28], '\033', "_Z1kPi "),
#undef ROW
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CASE_ROW("%s", rows[i].what);
		make_cubin(&c);
		memcpy(rows[i].field, &rows[i].value, rows[i].bytes);
		check_cubin(&c, sizeof(c), -EBADMSG, rows[i].names);
	}
}

/* A cubin with more symbols than any has, all of which have nothing. */
static void test_cubin_large(void)
{
	const size_t limit = 256 << 10;

	for (size_t n = limit; n <= limit + 1; n++) {
		size_t len = sizeof(struct cubin) + n * sizeof(Elf64_Sym);
		uint8_t *payload = calloc(1, len), *buf = malloc(80 + len);
		uint64_t budget = 0;
		char got[256];
		struct cubin c;

		CASE_ROW("%zu symbols", n);
		make_cubin(&c);
		c.sections[1].sh_offset = sizeof(c);
		c.sections[1].sh_size = n * sizeof(Elf64_Sym);
		memcpy(payload, &c, sizeof(c));
		CHECK_EQ(n > limit ? -E2BIG : 0,
			 names_in(buf, pack(buf, 2, 0x11, payload, len), &budget, got));
		CHECK_TEXT("", got);
		free(payload);
		free(buf);
	}
}

/* ---- compressed entries ---- */

#define LZ4 0x2011
#define ZSTD 0x8011
static const char small_ptx[] = ".version 8.0\n.target sm_80\n.visible .entry packed_kernel() {}";

/* A container with one compressed entry, padded to 8 bytes as nvcc does it. Returns its length. */
static size_t pack_compressed(uint8_t *out, size_t room, uint16_t kind, uint64_t flags,
			      const void *plain, size_t len)
{
	uint8_t *packed = calloc(1, room);
	size_t n = flags == LZ4 ? (size_t)LZ4_compress_default(plain, (char *)packed, (int)len,
							       (int)room)
				: ZSTD_compress(packed, room, plain, len, 3),
	       size = pack(out, kind, flags, packed, (n + 7) / 8 * 8);

	memcpy(out + 16 + 16, (uint32_t[]){ (uint32_t)n }, 4);
	memcpy(out + 16 + 56, (uint64_t[]){ len }, 8);
	free(packed);
	return size;
}

static void check_compressed(const uint8_t *buf, size_t len, uint64_t budget, int want,
			     const char *names, uint64_t left)
{
	char got[256];

	CHECK_EQ(want, names_in(buf, len, &budget, got));
	CHECK_TEXT(names, got);
	CHECK_EQ(left, budget);
}

static void test_compressed(uint64_t flags)
{
	uint8_t buf[2048];
	struct cubin c;
	size_t len, one;

	make_cubin(&c);
	len = pack_compressed(buf, 1024, 2, flags, &c, sizeof(c));
	check_compressed(buf, len, sizeof(c), 0, "_Z1kPi two ", 0);
	check_compressed(buf, len, sizeof(c) - 1, -E2BIG, "", sizeof(c) - 1);
	/* PTX behind it, with zeros between the two */
	one = len + 24;
	memset(buf + len, 0, 24);
	len = one + pack_compressed(buf + one, 1024, 1, flags, small_ptx, sizeof(small_ptx));
	check_compressed(buf, len, 1 << 20, 0, "_Z1kPi two packed_kernel ",
			 (1 << 20) - sizeof(c) - sizeof(small_ptx));
	/* what may be decompressed is counted over all entries */
	check_compressed(buf, len, sizeof(c) + sizeof(small_ptx) - 1, -E2BIG, "_Z1kPi two ",
			 sizeof(small_ptx) - 1);
	/* cut anywhere: an error, unless it ends at the end of the first, or in the zeros */
	for (size_t cut = 1; cut < len; cut++) {
		char got[256];
		uint64_t budget = 1 << 20;
		bool whole = cut >= one - 24 && cut <= one;

		CASE_ROW("cut at %zu", cut);
		CHECK_EQ(whole ? 0 : -EBADMSG, names_in(buf, cut, &budget, got));
		CHECK_TEXT(cut < one - 24 ? "" : "_Z1kPi two ", got);
	}
}

/* What an entry says of itself differs from what it holds. */
static void test_compressed_hostile(uint64_t flags)
{
	const uint64_t whole = sizeof(small_ptx), max = 256u << 20;
	const struct {
		const char *what;
		uint64_t plain; /* the announced size */
		int32_t more;	/* bytes more than it has */
		int want;
		uint64_t used; /* of the budget */
	} rows[] = {
		{ "right", whole, 0, 0, whole },
		{ "becomes nothing", 0, 0, -EBADMSG, 0 },
		{ "becomes larger than announced", whole - 1, 0, -EBADMSG, whole - 1 },
		{ "becomes smaller than announced", whole + 1, 0, -EBADMSG, whole + 1 },
		{ "too large", max + 1, 0, -EBADMSG, 0 },
		{ "the largest, over the budget", max, 0, -E2BIG, 0 },
		{ "too large by far", UINT64_MAX, 0, -EBADMSG, 0 },
		{ "cut", whole, -1, -EBADMSG, whole },
		{ "more than the entry has", whole, 64, -EBADMSG, 0 },
		{ "more than any has", whole, INT32_MAX, -EBADMSG, 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint8_t buf[1024];
		size_t len = pack_compressed(buf, 512, 1, flags, small_ptx, whole);
		uint32_t n;

		CASE_ROW("%s", rows[i].what);
		memcpy(&n, buf + 16 + 16, 4);
		n += (uint32_t)rows[i].more;
		memcpy(buf + 16 + 16, &n, 4);
		memcpy(buf + 16 + 56, &rows[i].plain, 8);
		check_compressed(buf, len, 1 << 20, rows[i].want,
				 rows[i].want ? "" : "packed_kernel ", (1 << 20) - rows[i].used);
		/* it says both kinds of compression */
		memcpy(buf + 16 + 40, (uint64_t[]){ 0x11 | LZ4 | ZSTD }, 8);
		check_compressed(buf, len, 1 << 20, -EBADMSG, "", 1 << 20);
	}
}

/* Zeros that become large are decompressed up to the announced size at most. */
static void test_compressed_bomb(void)
{
	const size_t plain = 8 << 20;
	void *zeros = calloc(1, plain);
	uint8_t *buf = malloc(1 << 17);
	uint64_t flags[] = { LZ4, ZSTD };

	for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
		size_t len = pack_compressed(buf, 1 << 16, 1, flags[i], zeros, plain);

		CASE_ROW("%s", i ? "zstd" : "LZ4");
		memcpy(buf + 16 + 56, (uint64_t[]){ 4096 }, 8);
		check_compressed(buf, len, 8192, -EBADMSG, "", 4096);
	}
	free(zeros);
	free(buf);
}

/* One field of a container at a time has a value that it must not have. */
static void test_container_fields(void)
{
	static const struct {
		const char *what;
		size_t at, bytes;
		uint64_t value;
		int want;
	} rows[] = {
		{ "another format", 4, 2, 2, -ENOTSUP },
		{ "no header", 6, 2, 0, -EBADMSG },
		{ "a header that is too small", 6, 2, 15, -EBADMSG },
		{ "a header that leaves less than there is", 6, 2, 24, -EBADMSG },
		{ "a header behind the end", 6, 2, 65535, -EBADMSG },
		{ "entries behind the end", 8, 8, UINT64_MAX - 15, -EBADMSG },
		{ "no entries, and what follows is none", 8, 8, 0, -EBADMSG },
		{ "half an entry", 8, 8, 63, -EBADMSG },
		{ "an entry's header that is too small", 20, 4, 63, -EBADMSG },
		{ "an entry of no kind", 16, 2, 0, -ENOTSUP },
		{ "an entry of a later kind", 16, 2, 3, -ENOTSUP },
		{ "an entry that leaves half of one", 24, 8, 1, -EBADMSG },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint8_t buf[512];
		size_t len = pack(buf, 1, 0x11, small_ptx, sizeof(small_ptx));
		uint64_t budget = 0;
		char got[256];

		CASE_ROW("%s", rows[i].what);
		memcpy(buf + rows[i].at, &rows[i].value, rows[i].bytes);
		CHECK_EQ(rows[i].want, names_in(buf, len, &budget, got));
		CHECK_TEXT("", got);
	}
}

/* A payload that is not compressed may not be larger than one that is. Nothing of it is in memory but its beginning. */
static void test_payload_large(void)
{
	const size_t max = 256u << 20;
	uint8_t *map = mmap(NULL, max + 4096, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct names names = { 0 };

	if (!CHECK(map != MAP_FAILED))
		return;
	for (size_t len = max; len <= max + 1; len++) {
		CASE_ROW("%zu bytes", len);
		pack(map, 1, 0x11, small_ptx, sizeof(small_ptx));
		memcpy(map + 8, (uint64_t[]){ 64 + len }, 8);
		memcpy(map + 24, (uint64_t[]){ len }, 8);
		CHECK_EQ(len > max ? -EBADMSG : 0, kernels_in(map, 80 + len, collect, &names));
		CHECK_EQ(len > max ? 0 : 1, names.n);
		names_free(&names);
	}
	munmap(map, max + 4096);
}

/* What takes the names can end the walk, and its answer is passed on. */
static int stop_at(void *ctx, const char *name)
{
	int *seen = ctx;

	(void)name;
	return ++*seen == 1 ? -ECANCELED : 0;
}

static void test_kernels_stopped(void)
{
	struct cubin c;
	uint8_t buf[1024];
	int seen = 0;

	make_cubin(&c);
	CHECK_EQ(-ECANCELED, kernels_in(buf, pack(buf, 2, 0x11, &c, sizeof(c)), stop_at, &seen));
	CHECK_EQ(1, seen);
	seen = 0;
	CHECK_EQ(-ECANCELED, fatbin_ptx(".version 8.0\n.entry a() .entry b()", 35, stop_at, &seen));
	CHECK_EQ(1, seen);
}

static uint64_t seed = 0x2545f4914f6cdd1dULL;

static uint64_t any(uint64_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % n;
}

static int ignore(void *ctx, const char *name)
{
	(void)ctx;
	CHECK(stub_is_name(name, strlen(name)));
	return 0;
}

/* Thousands of flipped bits, and every kind of truncation: no crash, and no name that is none. */
static void test_fatbin_damaged(void)
{
	size_t len;
	uint8_t *good = section(PROGRAMS "/fatbin-speed", ".nv_fatbin", &len), *bad;

	if (!good)
		return;
	for (int i = 0; i < 3000; i++) {
		size_t n = i % 3 ? len : any(len);

		bad = malloc(n ? n : 1);
		memcpy(bad, good, n);
		for (int flips = (int)any(8); n && flips >= 0; flips--)
			bad[i % 2 ? any(n) : any(n < 2048 ? n : 2048)] ^= (uint8_t)(1 << any(8));
		kernels_in(bad, n, ignore, NULL);
		free(bad);
	}
	free(good);
}

/* ---- forged programs ---- */

static char dir[] = "/tmp/test_known.XXXXXX";

/* What nvcc and the driver would make, with names of our own: variables that hold handles, and
 * blocks with a pointer to a name 8 bytes behind their beginning. Prints "HANDLE WHAT" lines,
 * then waits for its input to end. */
static const char forged[] =
	"#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include "
	"<sys/mman.h>\n#include <unistd.h>\n"
	"__asm__(\".pushsection .nv_fatbin,\\\"a\\\",@progbits\\n.quad 0\\n.popsection\\n\");\n"
	"struct desc { long other; const char *name; long more[4]; };\n"
	"#define VAR(id, symbol) static void *id __asm__(symbol) __attribute__((used))\n"
	"VAR(v_a, \"_ZZ20__device_stub__Z1aPiPiE8__handle\");\n"
	"VAR(v_b1, \"_ZZL20__device_stub__Z1bPiPiE8__handle\");\n" /* two kernels, one handle */
	"VAR(v_b2, \"_ZZL20__device_stub__Z1cPiPiE8__handle\");\n"
	"VAR(v_d, \"_ZZL20__device_stub__Z1dPiPiE8__handle\");\n"	 /* extern "C" d */
	"VAR(v_e, \"_ZZL20__device_stub__Z1ePiPiE8__handle\");\n"	 /* e, or extern "C" e */
	"VAR(v_bad, \"_ZZL25__device_stub__Z1QQQQQQPiPiE8__handle\");\n" /* hostile */
	"#define FN(id, symbol) void id(void) __asm__(symbol); __attribute__((used, noinline)) "
	"void id(void)\\\n"
	"{ __asm__ volatile(\"\" :: \"i\"(__LINE__)); }\n"
	"FN(f_a, \"_Z1aPi\") FN(f_d, \"d\") FN(f_e1, \"_ZL1ePi\") FN(f_e2, \"e\") FN(f_static, "
	"\"_ZL4statPi\")\n"
	"FN(f_stub, \"_ZL23__device_stub__Z4statPiPi\") FN(f_clang, \"_Z17__device_stub__clPi\")\n"
	"FN(f_bad, \"_Z1QQQQQQ\")\n"
	"FN(f_alias, \"_Z3onePi\")\n__asm__(\".globl _Z3twoPi\\n.set _Z3twoPi, _Z3onePi\\n.type "
	"_Z3twoPi, @function\\n\");\n"
	"FN(f_same, \"_ZL4samePi\")\n__asm__(\".globl _Z4samePi\\n.set _Z4samePi, "
	"_ZL4samePi\\n.type _Z4samePi, @function\\n\");\n"
	"static void *desc(const char *name) { struct desc *d = calloc(1, sizeof(*d)); d->name = "
	"name ? strdup(name) : 0; return d; }\n"
	"int main(int argc, char **argv) {\n"
	"	static struct desc in_file = { 0, \"_Z6staticPi\", { 0 } };\n"
	"	char *big = malloc(20000), c;\n"
	"	memset(big, 'x', 19999); big[19999] = 0;\n"
	"	v_a = desc(argc > 1 ? argv[1] : \"_Z1aPi\"); v_b1 = v_b2 = desc(\"_Z1bPi\"); v_d = "
	"desc(\"d\"); v_e = desc(\"e\");\n"
	"	v_bad = desc(\"bad\");\n"
	"	printf(\"%p a\\n%p b\\n%p d\\n%p e\\n%p bad\\n\", v_a, v_b1, v_d, v_e, v_bad);\n"
	"	printf(\"%p fa\\n%p fd\\n%p fstatic\\n%p fclang\\n%p falias\\n%p fsame\\n\", (void "
	"*)f_a, (void *)f_d, (void *)f_static,\n"
	"		(void *)f_clang, (void *)f_alias, (void *)f_same);\n"
	"	printf(\"%p driver\\n%p hostile\\n%p digit\\n%p big\\n%p none\\n\", "
	"desc(\"_Z6driverPi\"), desc(\"a\\033[2Jb\"),\n"
	"		desc(\"1abc\"), desc(big), desc(NULL));\n"
	"	printf(\"%p infile\\n%p odd\\n%p main\\n\", (void *)&in_file, (char "
	"*)desc(\"_Z3oddPi\") + 4, (void *)((char *)main + 1));\n"
	"	printf(\"%p other\\n\", desc(\"_Z5otherPi\"));\n"
	"	struct desc *nowhere = desc(NULL); nowhere->name = (char *)16; printf(\"%p "
	"nowhere\\n\", (void *)nowhere);\n"
	"	struct desc *ro = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | "
	"MAP_ANONYMOUS, -1, 0);\n"
	"	ro->name = strdup(\"_Z8readonlyPi\"); mprotect(ro, 4096, PROT_READ); printf(\"%p "
	"readonly\\n\", (void *)ro);\n"
	"	printf(\"%p fbad\\n\", (void *)f_bad);\n"
	"	puts(\"end\"); fflush(stdout);\n"
	"	while (read(0, &c, 1) > 0)\n"
	"		if (c == 'x') { strcpy((char *)((struct desc *)v_a)->name, \"_Z1zPi\"); "
	"v_a = 0; puts(\"ok\"); fflush(stdout); }\n"
	"	return 0;\n}\n";

struct child {
	pid_t pid;
	int in, out;
	char text[65536];
};

/* Starts a program with its input and output in our hands and the stand-in's libraries, and
 * reads what it says until a line that begins with `until`. */
static bool start(struct child *c, const char *until, const char *env, char *const argv[])
{
	int in[2], out[2];
	size_t have = 0;

	if (pipe(in) || pipe(out))
		return false;
	fflush(stdout);
	c->pid = fork();
	if (!c->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(in[0], 0);
		dup2(out[1], 1);
		for (int fd = 3; fd < 64; fd++)
			close(fd);
		if (env)
			putenv((char *)env);
		execv(argv[0], argv);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	c->in = in[1];
	c->out = out[0];
	for (;;) {
		ssize_t n = read(c->out, c->text + have, sizeof(c->text) - 1 - have);

		if (n <= 0)
			return false;
		have += (size_t)n;
		c->text[have] = '\0';
		for (const char *line = c->text; line;
		     line = strchr(line, '\n'), line += line != NULL)
			if (!strncmp(line, until, strlen(until)))
				return true;
	}
}

static void end(struct child *c)
{
	close(c->in);
	close(c->out);
	kill(c->pid, SIGKILL);
	waitpid(c->pid, NULL, 0);
}

/* The handle before a word in what the child said. */
static uint64_t handle_of(const struct child *c, const char *word)
{
	const char *at;
	char key[32];

	snprintf(key, sizeof(key), " %s\n", word);
	at = strstr(c->text, key);
	while (at && at > c->text && at[-1] != '\n')
		at--;
	return at ? strtoull(at, NULL, 16) : 0;
}

static uint64_t forgets;
static uint64_t forgets_change; /* is counted after so many looks */

static uint64_t count_forgets(void *ctx)
{
	(void)ctx;
	if (forgets_change && !--forgets_change)
		forgets++;
	return forgets;
}

static struct known *open_known(bool memory)
{
	forgets = 0;
	forgets_change = 0;
	return known_open(memory ? count_forgets : NULL, NULL);
}

static void check_find(struct known *k, struct target *t, uint64_t handle, bool driver,
		       const char *want, enum ct_name_source want_source, int line)
{
	enum ct_name_source source = 99;
	uint32_t len = 99;
	const char *got = known_find(k, t, (uint32_t)target_pid(t), handle, driver, &source, &len);

	unit_check(handle != 0, __FILE__, line, "a handle");
	unit_text(want ? want : "(none)", got ? got : "(none)", __FILE__, line);
	unit_check(source == (want ? want_source : CT_NAME_NONE), __FILE__, line, "source");
	unit_check(len == (got ? strlen(got) : 0), __FILE__, line, "length");
}
#define FIND(k, t, handle, driver, want, source) \
	check_find(k, t, handle, driver, want, source, __LINE__)

static bool build(void)
{
	FILE *f = fopen(text("%s/forged.c", dir), "we");
	char *cmd = text("cd %s && cc -O1 -w -o forged forged.c && sed -i "
			 "'s/Z1QQQQQQ/Z1\\x1b[2J~~/g' forged && "
			 "cp forged libcuda.so.580.1 && strip -o forged-stripped forged",
			 dir);

	if (!f)
		return false;
	fputs(forged, f);
	fclose(f);
	return !system(cmd);
}

static void test_forged(void)
{
	struct child c;
	struct target *t = NULL;
	struct known *k = open_known(true);
	char *argv[] = { text("%s/forged", dir), NULL };

	if (!start(&c, "end", NULL, argv) || target_open(&t, c.pid, 0)) {
		CHECK(!"the forged program runs");
		return;
	}
	FIND(k, t, handle_of(&c, "a"), false, "_Z1aPi", CT_NAME_SYMBOL);
	FIND(k, t, handle_of(&c, "b"), false, NULL, 0);
	FIND(k, t, handle_of(&c, "d"), false, "d", CT_NAME_SYMBOL);
	FIND(k, t, handle_of(&c, "e"), false, NULL, 0);
	FIND(k, t, handle_of(&c, "bad"), false, NULL, 0);
	FIND(k, t, handle_of(&c, "fa"), false, "_Z1aPi", CT_NAME_SYMBOL);
	FIND(k, t, handle_of(&c, "fd"), false, "d", CT_NAME_SYMBOL);
	FIND(k, t, handle_of(&c, "fstatic"), false, "_Z4statPi", CT_NAME_SYMBOL);
	FIND(k, t, handle_of(&c, "fclang"), false, "_Z2clPi", CT_NAME_SYMBOL);
	FIND(k, t, handle_of(&c, "falias"), false, NULL, 0);
	CHECK(handle_of(&c, "fbad"));
	FIND(k, t, handle_of(&c, "fbad"), false, NULL, 0);
	/* static or not: two spellings, no stub tells which */
	FIND(k, t, handle_of(&c, "fsame"), false, NULL, 0);
	FIND(k, t, handle_of(&c, "main"), false, NULL, 0);
	/* a driver's call never passes the address of a host stub */
	FIND(k, t, handle_of(&c, "fa"), true, NULL, 0);
	/* no driver: its memory is not read */
	FIND(k, t, handle_of(&c, "driver"), true, NULL, 0);
	FIND(k, t, 8, true, NULL, 0);
	FIND(k, t, UINT64_MAX - 7, true, NULL, 0);
	known_close(k);

	/* nothing that is being unloaded is believed, and it is asked for again afterwards */
	k = open_known(true);
	forgets = 5;
	FIND(k, t, handle_of(&c, "a"), false, NULL, 0);
	known_unloads(k, 5);
	forgets_change = 2; /* in the middle of it */
	FIND(k, t, handle_of(&c, "a"), false, NULL, 0);
	FIND(k, t, handle_of(&c, "fa"), false, NULL, 0);
	known_unloads(k, 6);
	FIND(k, t, handle_of(&c, "a"), false, "_Z1aPi", CT_NAME_SYMBOL);
	/* the variable has another value after the unloading: the old one names nothing */
	CHECK(write(c.in, "x", 1) == 1 && read(c.out, c.text + 60000, 10) > 0);
	/* read before, and nothing was unloaded since */
	FIND(k, t, handle_of(&c, "a"), false, "_Z1aPi", CT_NAME_SYMBOL);
	forgets = 7;
	known_unloads(k, 7);
	FIND(k, t, handle_of(&c, "a"), false, NULL, 0);
	known_close(k);

	/* without a count of unloading calls only the files are looked at */
	k = open_known(false);
	FIND(k, t, handle_of(&c, "fa"), false, "_Z1aPi", CT_NAME_SYMBOL);
	FIND(k, t, handle_of(&c, "d"), false, NULL, 0);
	known_close(k);
	target_close(t);
	end(&c);
}

/* The same program under a name that makes it "a driver" too. */
static void test_driver_memory(void)
{
	struct child c;
	struct target *t = NULL;
	struct known *k = open_known(true);
	char *argv[] = { text("%s/libcuda.so.580.1", dir), NULL };

	if (!start(&c, "end", NULL, argv) || target_open(&t, c.pid, 0)) {
		CHECK(!"the forged driver runs");
		return;
	}
	FIND(k, t, handle_of(&c, "driver"), true, "_Z6driverPi", CT_NAME_DRIVER);
	FIND(k, t, handle_of(&c, "a"), false, "_Z1aPi", CT_NAME_SYMBOL);
	FIND(k, t, handle_of(&c, "d"), false, "d", CT_NAME_SYMBOL);
	/* what the symbols leave open */
	FIND(k, t, handle_of(&c, "e"), false, "e", CT_NAME_DRIVER);
	FIND(k, t, handle_of(&c, "hostile"), true, NULL, 0);
	FIND(k, t, handle_of(&c, "digit"), true, NULL, 0);
	FIND(k, t, handle_of(&c, "big"), true, NULL, 0);
	FIND(k, t, handle_of(&c, "none"), true, NULL, 0);
	FIND(k, t, handle_of(&c, "nowhere"), true, NULL, 0);
	FIND(k, t, 16, true, NULL, 0);
	FIND(k, t, handle_of(&c, "infile"), true, NULL, 0);
	FIND(k, t, handle_of(&c, "odd"), true, NULL, 0);
	FIND(k, t, handle_of(&c, "readonly"), true, NULL, 0);
	/* a handle that names another kernel than memory says: never again */
	known_teach(k, t, (uint32_t)c.pid, handle_of(&c, "other"), "_Z5wrongPi", 10);
	FIND(k, t, handle_of(&c, "other"), true, NULL, 0);
	known_close(k);
	target_close(t);
	end(&c);
}

/* A driver that is believed contradicts a symbol: neither is believed then, and the driver never
 * again. */
static void test_contradiction(void)
{
	struct child c;
	struct target *t = NULL;
	struct known *k = open_known(true);
	char *argv[] = { text("%s/libcuda.so.580.1", dir), "_Z1yPi", NULL };

	if (!start(&c, "end", NULL, argv) || target_open(&t, c.pid, 0)) {
		CHECK(!"the forged driver runs");
		return;
	}
	FIND(k, t, handle_of(&c, "driver"), true, "_Z6driverPi", CT_NAME_DRIVER);
	FIND(k, t, handle_of(&c, "a"), false, NULL, 0);
	known_forget(k, (uint32_t)c.pid);
	FIND(k, t, handle_of(&c, "driver"), true, NULL, 0);
	FIND(k, t, handle_of(&c, "a"), false, "_Z1aPi", CT_NAME_SYMBOL);
	known_close(k);
	target_close(t);
	end(&c);
}

/* A driver of a release on which nothing was measured is believed after a pair. */
static void test_calibration(void)
{
	struct child c;
	struct target *t = NULL;
	struct known *k = open_known(true);
	char *argv[] = { text("%s/libcuda.so.1", dir), "_Z1yPi", NULL };

	if (system(text("cp %s/forged-stripped %s/libcuda.so.1", dir, dir)) ||
	    !start(&c, "end", NULL, argv) || target_open(&t, c.pid, 0)) {
		CHECK(!"the forged driver runs");
		return;
	}
	FIND(k, t, handle_of(&c, "driver"), true, NULL, 0);
	/* nothing like a name there: says nothing */
	known_teach(k, t, (uint32_t)c.pid, handle_of(&c, "hostile"), "_Z1xPi", 6);
	/* cut: says nothing */
	known_teach(k, t, (uint32_t)c.pid, handle_of(&c, "other"), "_Z5oth", 6);
	FIND(k, t, handle_of(&c, "other"), true, NULL, 0);
	known_teach(k, t, (uint32_t)c.pid, handle_of(&c, "other"), "_Z5otherPi", 10);
	known_forget(k, (uint32_t)c.pid);
	FIND(k, t, handle_of(&c, "driver"), true, "_Z6driverPi", CT_NAME_DRIVER);
	known_close(k);
	target_close(t);
	end(&c);
	/* a symbol's variable is a pair as well: this one does not agree, so memory is not
	 * believed, then or later */
	k = open_known(true);
	if (system(text("cp %s/forged %s/libcuda.so.1", dir, dir)) ||
	    !start(&c, "end", NULL, argv) || target_open(&t, c.pid, 0)) {
		CHECK(!"the forged driver runs");
		return;
	}
	FIND(k, t, handle_of(&c, "a"), false, "_Z1aPi", CT_NAME_SYMBOL);
	FIND(k, t, handle_of(&c, "other"), true, NULL, 0);
	known_teach(k, t, (uint32_t)c.pid, handle_of(&c, "other"), "_Z5otherPi", 10);
	known_forget(k, (uint32_t)c.pid);
	FIND(k, t, handle_of(&c, "driver"), true, NULL, 0);
	known_close(k);
	target_close(t);
	end(&c);
}

/* A process that ends after its mappings were read again, and before its variables are: what they held before still counts. */
static void test_ended_between(void)
{
	struct known *k = open_known(true);
	struct timespec longer_than_values_are_kept = { 0, 60000000 };
	char *argv[] = { text("%s/libcuda.so.580.1", dir), NULL };
	struct target *t = NULL;
	struct child c;

	if (!start(&c, "end", NULL, argv) || target_open(&t, c.pid, 0)) {
		CHECK(!"a child");
		return;
	}
	FIND(k, t, handle_of(&c, "a"), false, "_Z1aPi", CT_NAME_SYMBOL);
	nanosleep(&longer_than_values_are_kept, NULL);
	known_teach(k, t, (uint32_t)c.pid, handle_of(&c, "a"), "_Z1aPi", 6);
	end(&c);
	FIND(k, t, handle_of(&c, "d"), false, "d", CT_NAME_SYMBOL);
	target_close(t);
	known_close(k);
}

/* Processes that end, or become another program, at any moment. */
static void test_vanishing(void)
{
	struct known *k = open_known(true);
	char *argv[] = { text("%s/libcuda.so.580.1", dir), NULL };
	enum ct_name_source source;
	uint32_t len;

	for (int i = 0; i < 40; i++) {
		struct target *t = NULL;
		struct child c;
		uint64_t a, fa;
		pid_t killer;

		argv[0] = text("%s/libcuda.so.580.1", dir);
		if (!start(&c, "end", NULL, argv) || target_open(&t, c.pid, 0)) {
			CHECK(!"a child");
			return;
		}
		a = handle_of(&c, "a");
		fa = handle_of(&c, "fa");
		if (i % 2)
			known_find(k, t, (uint32_t)c.pid, a, false, &source, &len);
		fflush(stdout);
		killer = fork();
		if (!killer) {
			struct timespec ts = { 0, 50000 * i };

			nanosleep(&ts, NULL);
			kill(c.pid, SIGKILL);
			_exit(0);
		}
		for (int j = 0; j < 200; j++) {
			const char *name = known_find(k, t, (uint32_t)c.pid, j % 2 ? a : fa, false,
						      &source, &len);

			CHECK(!name || !strcmp(name, "_Z1aPi"));
		}
		waitpid(killer, NULL, 0);
		end(&c);
		/* what was read once is still true of its last calls; what was not is lost */
		if (i % 2)
			FIND(k, t, handle_of(&c, "d"), false, "d", CT_NAME_SYMBOL);
		FIND(k, t, handle_of(&c, "driver"), true, NULL, 0);
		forgets++;
		known_unloads(k, forgets);
		FIND(k, t, a, false, NULL, 0);
		target_close(t);
	}
	known_close(k);
}

/* ---- damaged files ---- */

static int memory_file(const void *data, size_t len)
{
	int fd = memfd_create("elf", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, len) != (ssize_t)len)
		abort();
	return fd;
}

static void look(int fd)
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
		look(memory_file(bad, n));
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

	memcpy(f->ehdr.e_ident, "\177ELF\2\1\1", 7);
	f->ehdr.e_type = ET_DYN;
#if defined(__aarch64__)
	f->ehdr.e_machine = EM_AARCH64;
#else
	f->ehdr.e_machine = EM_X86_64;
#endif
	f->ehdr.e_phoff = offsetof(__typeof__(*f), phdr);
	f->ehdr.e_phentsize = sizeof(Elf64_Phdr);
	f->ehdr.e_phnum = 1;
	f->ehdr.e_shoff = offsetof(__typeof__(*f), shdr);
	f->ehdr.e_shentsize = sizeof(Elf64_Shdr);
	f->ehdr.e_shnum = 4;
	f->ehdr.e_shstrndx = 2;
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

/* ---- programs made by nvcc ---- */

struct launched {
	uint64_t handle;
	char *name;
};

/* What the stand-in's driver launched: "PID HANDLE NAME" lines. */
static int read_log(const char *path, struct launched *out, int max)
{
	char *log = unit_read(path), *save = NULL;
	int n = 0;

	for (char *line = log ? strtok_r(log, "\n", &save) : NULL; line && n < max;
	     line = strtok_r(NULL, "\n", &save)) {
		char *name;

		strtoul(line, &line, 10);
		out[n].handle = strtoull(line, &name, 16);
		out[n++].name = strdup(name + 1);
	}
	free(log);
	return n;
}

/* The host has another name for a kernel over an extended lambda, and for a static one of
 * separately compiled code. */
static bool differs(const char *name)
{
	return strstr(name, "Ul") || strstr(name, "__nv_static_");
}

static void check_program(const char *program, bool legacy, bool measured,
			  enum ct_name_source source)
{
	char *argv[] = { text(PROGRAMS "/%s", program), "--wait", "--print", NULL },
	     *log = text("%s/%s.log", dir, program);
	struct known *k = open_known(true);
	struct launched made[64];
	struct target *t = NULL;
	struct child c;
	/* the first handle that a symbol and the memory agree on tells that the memory can be read */
	bool readable = measured || (!legacy && source == CT_NAME_SYMBOL);
	int n, named = 0;
	char *at;

	if (access(argv[0], X_OK)) {
		printf("skipped: no %s (make programs, with nvcc)\n", argv[0]);
		known_close(k);
		return;
	}
	unlink(log);
	setenv("STANDIN_LAUNCHES", log, 1);
	if (!start(&c, "ready", measured ? "LD_LIBRARY_PATH=" PROGRAMS "/580" : NULL, argv) ||
	    target_open(&t, c.pid, 0)) {
		CHECK(!"the program runs");
		return;
	}
	n = read_log(log, made, 64);
	CHECK(n == 14);
	at = c.text;
	for (int i = 0; i < n; i++) {
		uint64_t handle = made[i].handle;
		enum ct_name_source got_source;
		const char *got;
		uint32_t len;

		if (legacy) { /* the program says what it passed, of all but the last three */
			at = strstr(at, "launched ");
			if (!at)
				break;
			handle = strtoull(at += 9, NULL, 16);
		}
		got = known_find(k, t, (uint32_t)c.pid, handle, false, &got_source, &len);
		named += got != NULL;
		if (!source || !got) {
			CHECK(!source && !got);
			continue;
		}
		/* where the host spells a name in another way, the driver's memory is asked */
		CHECK(got_source == (readable && differs(made[i].name) ? CT_NAME_DRIVER : source));
		CHECK_TEXT(made[i].name, got);
	}
	CHECK(named == (!source ? 0 : legacy ? 11 : 14));
	known_close(k);
	target_close(t);
	end(&c);
	for (int i = 0; i < n; i++)
		free(made[i].name);
}

static void check_one(const char *program, const char *env, const char *want,
		      enum ct_name_source source)
{
	char *argv[] = { text(PROGRAMS "/%s", program), "--wait", NULL };
	struct known *k = open_known(true);
	struct target *t = NULL;
	struct child c;
	const struct target_map *maps;
	int n;
	bool found = false;

	if (access(argv[0], X_OK)) {
		printf("skipped: no %s (make programs, with nvcc)\n", argv[0]);
		known_close(k);
		return;
	}
	if (!start(&c, "ready", env, argv) || target_open(&t, c.pid, 0)) {
		CHECK(!"the program runs");
		return;
	}
	/* any address of its code may be the host function; a stripped file cannot tell which */
	n = target_maps(t, &maps);
	for (int i = 0; i < n && !found; i++)
		if (maps[i].exec && strstr(maps[i].path, program)) {
			found = true;
			FIND(k, t, maps[i].start + 64, false, want, source);
		}
	CHECK(found);
	known_close(k);
	target_close(t);
	end(&c);
}

static void test_programs(void)
{
	check_program("kernels", false, false, CT_NAME_SYMBOL);
	check_program("kernels-static", false, false, CT_NAME_SYMBOL);
	check_program("kernels-rdc", false, false, CT_NAME_SYMBOL);
	check_program("kernels-legacy", true, false, CT_NAME_SYMBOL);
	check_program("kernels-legacy-static", true, false, CT_NAME_SYMBOL);
	check_program("kernels-stripped", false, false, CT_NAME_NONE);
	check_program("kernels-static-stripped", false, false, CT_NAME_NONE);
	check_program("kernels-legacy-stripped", true, false, CT_NAME_NONE);
	/* on a driver whose descriptions can be read */
	check_program("kernels", false, true, CT_NAME_SYMBOL);
	check_program("kernels-rdc", false, true, CT_NAME_SYMBOL);
	check_program("kernels-stripped", false, true, CT_NAME_DRIVER);
	check_program("kernels-static-stripped", false, true, CT_NAME_DRIVER);
	check_program("kernels-legacy-stripped", true, true, CT_NAME_NONE);
	check_one("one-legacy-stripped", NULL, "_Z4onlyPi", CT_NAME_FATBIN);
	check_one("one-legacy-nosections", NULL, "_Z4onlyPi", CT_NAME_FATBIN);
	check_one("kernels-legacy-stripped", NULL, NULL, 0);
	/* another file's kernel is no matter, unless the program has an entry of its own for the
	 * other's functions */
	check_one("one-legacy-stripped", "LD_PRELOAD=" PROGRAMS "/libalpha-legacy.so", "_Z4onlyPi",
		  CT_NAME_FATBIN);
	check_one("one-fixed-legacy-stripped", NULL, "_Z4onlyPi", CT_NAME_FATBIN);
	check_one("one-fixed-legacy-stripped", "LD_PRELOAD=" PROGRAMS "/libalpha-legacy.so", NULL,
		  0);
	unsetenv("STANDIN_LAUNCHES");
}

static void test_survey(void)
{
	char *argv[] = { text(PROGRAMS "/kernels"), "--wait", NULL };
	struct known_survey s = { 0 };
	struct target *t = NULL;
	struct child c;

	if (access(argv[0], X_OK))
		return;
	if (!start(&c, "ready", NULL, argv) || target_open(&t, c.pid, 0)) {
		CHECK(!"the program runs");
		return;
	}
	CHECK(!known_survey(t, &s));
	if (CHECK_EQ(1, s.nfiles))
		CHECK(strstr(s.files[0].path, "programs/kernels"));
	CHECK(s.nfiles);
	CHECK_EQ(14, s.files[0].facts.nhandles);
	CHECK_EQ(13, s.files[0].facts.nstubs);
	CHECK(s.files[0].facts.symtab);
	CHECK(s.nfiles);
	CHECK_EQ(2, s.files[0].kernels);
	CHECK(!s.files[0].index_err);
	if (CHECK(s.driver)) {
		CHECK(strstr(s.driver, "libcuda.so.1"));
		CHECK(!s.measured);
	}
	known_survey_free(&s);
	target_close(t);
	end(&c);
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	RUN(test_stub_names);
	RUN(test_is_name);
	RUN(test_ptx);
	RUN(test_cubin_headers);
	RUN(test_cubin);
	RUN(test_cubin_hostile);
	RUN(test_cubin_large);
	RUN(test_containers);
	RUN(test_container_fields);
	RUN(test_compressed, LZ4);
	RUN(test_compressed, ZSTD);
	RUN(test_compressed_hostile, LZ4);
	RUN(test_compressed_hostile, ZSTD);
	RUN(test_compressed_bomb);
	RUN(test_payload_large);
	RUN(test_kernels_stopped);
	RUN(test_fatbin_modes);
	RUN(test_fatbin_damaged);
	RUN(test_hostile_elf);
	if (mkdtemp(dir) && build()) {
		RUN(test_forged);
		RUN(test_driver_memory);
		RUN(test_contradiction);
		RUN(test_calibration);
		RUN(test_ended_between);
		RUN(test_vanishing);
		RUN(test_damaged, text("%s/forged", dir), 1500);
	} else {
		CHECK(!"the forged program can be built");
	}
	RUN(test_damaged, PROGRAMS "/kernels", 600);
	RUN(test_damaged, PROGRAMS "/one-legacy-nosections", 300);
	RUN(test_programs);
	RUN(test_survey);
	CHECK(!system(text("rm -rf %s", dir)));
	return unit_end();
}
