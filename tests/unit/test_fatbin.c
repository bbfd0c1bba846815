/* SPDX-License-Identifier: BSD-2-Clause */
/* test_fatbin.c - names of kernels in device code: fatbins, cubins and PTX, as nvcc packs them, made
 * here, damaged and hostile; and what the compiler makes of names. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <lz4.h>
#include <unistd.h>
#include <zstd.h>

#include "../../user/proc/elf_read.h"
#include "../../user/resolve/names/fatbin.h"
#include "../../user/resolve/names/stub.h"
#include "programs.h"

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

int main(void)
{
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
	return unit_end();
}
