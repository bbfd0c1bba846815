/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_packed.c - how large what is packed in a file becomes: sections of files that are made here, and mini debug
 * information of every sort.
 */
#include "../../user/resolve/stacks/packed.h"
#include "make_elf.h"
#include "unit.h"

#include <lzma.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { SECTIONS = 4, MIB = 1 << 20 };

/* A file of a head and sections: none, two that a test fills in, their names. What they hold is behind it. */
struct made {
	Elf64_Ehdr h;
	Elf64_Phdr ph;
	Elf64_Shdr sh[SECTIONS];
	char names[64];
	Elf64_Chdr packed; /* the head of a compressed section */
};

#define FIRST 1
#define SECOND 17

static void make(struct made *m, const char *first, const char *second)
{
	*m = (struct made){
		.h = { MAKE_ELF_HEAD(*m, ph, sh), .e_shstrndx = SECTIONS - 1 },
		.sh = { [1] = { .sh_name = FIRST, .sh_type = SHT_PROGBITS },
			[2] = { .sh_name = SECOND, .sh_type = SHT_PROGBITS },
			[3] = { .sh_type = SHT_STRTAB,
				.sh_offset = offsetof(struct made, names),
				.sh_size = sizeof(m->names) } },
	};
	snprintf(m->names + FIRST, SECOND - FIRST, "%s", first);
	snprintf(m->names + SECOND, sizeof(m->names) - SECOND, "%s", second);
}

/* The file, with `more` behind it. It is closed by close_made(). */
static void open_made(struct elf_file *f, const struct made *m, const void *more, size_t len)
{
	int fd = memfd_create("made", MFD_CLOEXEC);

	if (fd < 0 || write(fd, m, sizeof(*m)) != sizeof(*m) ||
	    (len && write(fd, more, len) != (ssize_t)len))
		abort();
	CHECK_EQ(0, elf_file_open(f, fd));
}

static void close_made(struct elf_file *f)
{
	int fd = f->fd;

	elf_file_close(f);
	close(fd);
}

/* ---- debug sections ---- */

static void test_dwarf_bytes(void)
{
	static const struct {
		const char *what, *first;
		uint32_t type;
		uint64_t flags, size, plain,
			want; /* of the first section; the second one is of 1000 bytes */
	} rows[] = {
		{ "plain", ".debug_info", SHT_PROGBITS, 0, 500, 0, 1500 },
		{ "of another name", ".data", SHT_PROGBITS, 0, 500, 0, 1000 },
		{ "of almost the name", ".debug", SHT_PROGBITS, 0, 500, 0, 1000 },
		{ "not in the file", ".debug_info", SHT_NOBITS, 0, 500, 0, 1000 },
		{ "of the old format", ".zdebug_info", SHT_PROGBITS, 0, 500, 0, UINT64_MAX },
		{ "of the old format, not in the file", ".zdebug_info", SHT_NOBITS, 0, 500, 0,
		  1000 },
		{ "compressed", ".debug_info", SHT_PROGBITS, SHF_COMPRESSED, 500, 1400, 2400 },
		/* up to 1 MiB, and 64 times its size, is taken */
		{ "that becomes large", ".debug_info", SHT_PROGBITS, SHF_COMPRESSED, 100,
		  MIB + 6400 + 63, MIB + 6400 + 63 + 1000 },
		{ "that becomes too large", ".debug_info", SHT_PROGBITS, SHF_COMPRESSED, 100,
		  MIB + 6400 + 64, UINT64_MAX },
		{ "that becomes as large as can be", ".debug_info", SHT_PROGBITS, SHF_COMPRESSED,
		  100, UINT64_MAX, UINT64_MAX },
		{ "that adds up to more than can be", ".debug_info", SHT_PROGBITS, 0,
		  UINT64_MAX - 999, 0, UINT64_MAX },
		{ "that adds up to what can be", ".debug_info", SHT_PROGBITS, 0, UINT64_MAX - 1001,
		  0, UINT64_MAX - 1 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct elf_file f;
		struct made m;

		CASE_ROW("a section %s", rows[i].what);
		make(&m, rows[i].first, ".debug_line");
		m.sh[1].sh_type = rows[i].type;
		m.sh[1].sh_flags = rows[i].flags;
		m.sh[1].sh_size = rows[i].size;
		m.sh[1].sh_offset = offsetof(struct made, packed);
		m.sh[2].sh_size = 1000;
		m.packed.ch_size = rows[i].plain;
		open_made(&f, &m, NULL, 0);
		CHECK_EQ(rows[i].want, packed_dwarf_bytes(&f));
		CHECK(!packed_tables(&f));
		close_made(&f);
		/* what has no room for its own size takes nothing, as it cannot be read */
		if (!(rows[i].flags & SHF_COMPRESSED))
			continue;
		m.sh[1].sh_offset = sizeof(m) - sizeof(m.packed) + 1;
		open_made(&f, &m, NULL, 0);
		CHECK_EQ(1000, packed_dwarf_bytes(&f));
		close_made(&f);
	}
}

/* ---- symbols ---- */

static void test_tables(void)
{
	static const uint32_t tables[] = { SHT_SYMTAB, SHT_DYNSYM, SHT_STRTAB, SHT_SYMTAB_SHNDX },
			      others[] = { SHT_PROGBITS, SHT_NOTE };
	struct elf_file f;
	struct made m;

	for (size_t i = 0; i < ARRAY_LEN(tables) + ARRAY_LEN(others); i++) {
		bool table = i < ARRAY_LEN(tables);

		CASE_ROW("%zu", i);
		make(&m, "first", "second");
		m.sh[2].sh_type = table ? tables[i] : others[i - ARRAY_LEN(tables)];
		open_made(&f, &m, NULL, 0);
		CHECK(!packed_tables(&f));
		close_made(&f);
		m.sh[2].sh_flags = SHF_COMPRESSED;
		open_made(&f, &m, NULL, 0);
		CHECK_EQ(table, packed_tables(&f));
		close_made(&f);
	}
}

static void test_tables_bytes(void)
{
	static const struct {
		const char *what, *name;
		uint32_t type;
		uint64_t size, want; /* without the names of the sections, 64 bytes */
	} rows[] = {
		{ "symbols", "", SHT_SYMTAB, 240, 240 + 10 * 32 },
		{ "dynamic symbols", "", SHT_DYNSYM, 263, 263 + 10 * 32 },
		{ "names", "", SHT_STRTAB, 240, 240 },
		{ "frames", ".eh_frame", SHT_PROGBITS, 240, 240 },
		{ "something else", ".eh_framf", SHT_PROGBITS, 240, 0 },
		{ "mini debug information", ".gnu_debugdata", SHT_PROGBITS, 1, 64 * MIB },
		/* not more than the file has */
		{ "more names than the file", "", SHT_STRTAB, UINT64_MAX, 4096 },
		{ "more symbols than the file", "", SHT_SYMTAB, UINT64_MAX, 4096 + 4096 / 24 * 32 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct elf_file f;
		struct made m;

		CASE_ROW("%s", rows[i].what);
		make(&m, "first", rows[i].name);
		m.sh[2].sh_type = rows[i].type;
		m.sh[2].sh_size = rows[i].size;
		open_made(&f, &m, NULL, 0);
		CHECK(!ftruncate(f.fd, 4096));
		f.size = 4096;
		CHECK_EQ(64 + rows[i].want, packed_tables_bytes(&f));
		close_made(&f);
	}
}

/* ---- mini debug information ---- */

/* Packs what a file has. Returns the length. */
static size_t pack(void *out, size_t room, const void *plain, size_t len)
{
	size_t n = 0;

	if (lzma_easy_buffer_encode(0, LZMA_CHECK_CRC32, NULL, plain, len, out, &n, room) !=
	    LZMA_OK)
		abort();
	return n;
}

/* Whether a file with these bytes as its mini debug information is accepted. how: 's': the bytes
 * as they are; 'n', 'b', 't': see below. */
static bool is_sane(const void *bytes, size_t len, char how)
{
	struct elf_file f;
	struct made m;
	bool sane;

	make(&m, ".gnu_debugdata", "second");
	m.sh[1].sh_offset = sizeof(m);
	m.sh[1].sh_size = len;
	if (how == 'n')
		m.sh[1].sh_type = SHT_NOBITS;
	else if (how == 'b')
		m.sh[1].sh_offset++; /* behind the end */
	else if (how == 't') {	     /* twice, the other one is empty */
		strcpy(m.names + SECOND, ".gnu_debugdata");
		CHECK(!m.sh[2].sh_size);
	}
	open_made(&f, &m, bytes, len);
	CHECK(packed_is_symbols(&f, 1));
	CHECK_EQ(how == 't', packed_is_symbols(&f, 2));
	CHECK(!packed_is_symbols(&f, 3) && !packed_is_symbols(&f, SECTIONS));
	sane = packed_symbols_are_sane(&f);
	close_made(&f);
	return sane;
}

static void test_mini(void)
{
	static uint8_t packed[4096], plain[4096];
	struct made inner;
	struct elf_file f;
	size_t len;

	make(&inner, ".symtab", "second");
	open_made(&f, &inner, NULL, 0);
	CHECK(packed_symbols_are_sane(&f)); /* there is none */
	close_made(&f);
	len = pack(packed, sizeof(packed), &inner, sizeof(inner));
	CHECK(is_sane(packed, len, 's'));
	CHECK(!is_sane(packed, len, 'n'));
	CHECK(!is_sane(packed, len, 'b'));
	CHECK(!is_sane(packed, len, 't'));
	for (size_t cut = 0; cut < len; cut++) {
		CASE_ROW("cut at %zu", cut);
		CHECK(!is_sane(packed, cut, 's'));
	}
	CASE_ROW("damaged");
	for (size_t i = 0; i < len; i++) {
		packed[i] ^= 0x10;
		is_sane(packed, i + 1, 's'); /* padding may differ; there is no crash */
		packed[i] ^= 0x10;
	}
	/* no xz, and no ELF file in it */
	CHECK(!is_sane(&inner, sizeof(inner), 's'));
	len = pack(packed, sizeof(packed), plain, sizeof(plain));
	CHECK(!is_sane(packed, len, 's'));
	/* its symbols are compressed once more */
	inner.sh[1].sh_type = SHT_SYMTAB;
	inner.sh[1].sh_flags = SHF_COMPRESSED;
	len = pack(packed, sizeof(packed), &inner, sizeof(inner));
	CHECK(!is_sane(packed, len, 's'));
}

static volatile sig_atomic_t too_much;

static void on_too_much(int sig)
{
	(void)sig;
	too_much = 1;
}

/* Whether no more than 65 MiB are unpacked from these bytes. */
static bool is_bounded(const void *bytes, size_t len)
{
	struct rlimit was, limit;

	getrlimit(RLIMIT_FSIZE, &was);
	limit = (struct rlimit){ .rlim_cur = 65 * MIB, .rlim_max = was.rlim_max };
	signal(SIGXFSZ, on_too_much);
	CHECK(!setrlimit(RLIMIT_FSIZE, &limit));
	CHECK(!is_sane(bytes, len, 's'));
	CHECK(!setrlimit(RLIMIT_FSIZE, &was));
	signal(SIGXFSZ, SIG_DFL);
	return !too_much;
}

/* What becomes large: 64 MiB are the most, and 16 MiB of packed bytes. */
static void test_mini_large(void)
{
	const size_t plain = 64 * MIB, room = 16 * MIB;
	uint8_t *bytes = calloc(1, plain + 2 * MIB), *packed = calloc(1, room + 4);
	struct made inner;
	size_t len;

	make(&inner, ".symtab", "second");
	memcpy(bytes, &inner, sizeof(inner));
	len = pack(packed, room, bytes, plain);
	CHECK(is_sane(packed, len, 's'));
	/* what follows the packed bytes is not read */
	CHECK(is_sane(packed, room, 's'));
	CHECK(!is_sane(packed, room + 1, 's'));
	len = pack(packed, room, bytes, plain + 1);
	CHECK(!is_sane(packed, len, 's'));
	len = pack(packed, room, bytes, plain + 2 * MIB);
	CHECK(is_bounded(packed, len));
	free(bytes);
	free(packed);
}

/* A head of the older format that asks for more memory than is given to it, and one that asks for no more. */
static void test_mini_memory(void)
{
	static const struct {
		uint32_t dictionary;
		bool sane;
	} rows[] = { { 64 * MIB, true }, { 128 * MIB, false }, { UINT32_MAX, false } };
	static uint8_t packed[4096];
	lzma_stream z = LZMA_STREAM_INIT;
	lzma_options_lzma options;
	struct made inner;

	make(&inner, ".symtab", "second");
	CHECK(!lzma_lzma_preset(&options, 0) && lzma_alone_encoder(&z, &options) == LZMA_OK);
	z.next_in = (void *)&inner;
	z.avail_in = sizeof(inner);
	z.next_out = packed;
	z.avail_out = sizeof(packed);
	CHECK_EQ(LZMA_STREAM_END, lzma_code(&z, LZMA_FINISH));
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CASE_ROW("%u bytes", rows[i].dictionary);
		memcpy(packed + 1, &rows[i].dictionary, 4);
		CHECK_EQ(rows[i].sane, is_sane(packed, (size_t)z.total_out, 's'));
	}
	lzma_end(&z);
}

int main(void)
{
	RUN(test_dwarf_bytes);
	RUN(test_tables);
	RUN(test_tables_bytes);
	RUN(test_mini);
	RUN(test_mini_large);
	RUN(test_mini_memory);
	return unit_end();
}
