/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * elf_read.c - the parts of an ELF file, read with bounded copies.
 *
 * The file is untrusted and may change while it is read. It is therefore never mapped (reading a
 * mapping of a truncated file raises SIGBUS), and nothing is read from the file twice: each piece
 * is copied with pread(2), checked against the size of the file, and used from the copy. A large
 * symbol table is walked with little memory: the needed parts of its symbols are kept, then the
 * string table is read in pieces of 512 KiB, which stay in a core's cache. libtorch_cpu.so has 500 000 symbols and 80 MB of names,
 * so the first letters of a name are compared before anything else is done, eight at a time.
 *
 * Knows ELF and nothing of CUDA.
 */
#include "elf_read.h"
#include "../util/now.h"
#include "../util/table/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Limits that no sane file exceeds. A file above them is treated as corrupt, so that no file can
 * keep the tracer busy. */
#define MAX_PHDRS 1024
#define MAX_SHDRS (1 << 20)
#define STR_CHUNK (512ULL << 10)
#define SYM_CHUNK 4096
/* symbols that are handled at a time, so that memory is bounded whatever the table's size; sane
 * files have fewer */
#define BATCH (1 << 20)

#if defined(__aarch64__)
#define MACHINE EM_AARCH64
#else
#define MACHINE EM_X86_64
#endif

static int read_at(int fd, void *buf, uint64_t len, uint64_t off)
{
	char *p = buf;

	while (len) {
		ssize_t n = pread(fd, p, len, off);

		if (n < 0) {
			if (errno == EINTR)
				continue;
			return errno == EINVAL || errno == EOVERFLOW ? -EBADMSG : -EIO;
		}
		if (!n)
			return -EBADMSG;
		p += n;
		off += n;
		len -= n;
	}
	return 0;
}

static bool in_file(const struct elf_file *f, uint64_t off, uint64_t len)
{
	return off <= f->size && len <= f->size - off;
}

static int read_alloc(const struct elf_file *f, uint64_t off, uint64_t len, size_t extra, void *out)
{
	int err;
	char *p;

	if (!in_file(f, off, len))
		return -EBADMSG;
	p = malloc(len + extra + 1);
	if (!p)
		return -ENOMEM;
	err = read_at(f->fd, p, len, off);
	if (err) {
		free(p);
		return err;
	}
	memset(p + len, 0, extra + 1);
	*(void **)out = p;
	return 0;
}

int elf_read(const struct elf_file *f, void *buf, uint64_t len, uint64_t off)
{
	return in_file(f, off, len) ? read_at(f->fd, buf, len, off) : -EBADMSG;
}

static int read_ehdr(struct elf_file *f)
{
	const unsigned char *id = f->ehdr.e_ident;
	struct stat st;
	int err;

	if (fstat(f->fd, &st))
		return -EIO;
	if (!S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof(f->ehdr))
		return -ENOEXEC;
	f->size = st.st_size;
	err = read_at(f->fd, &f->ehdr, sizeof(f->ehdr), 0);
	if (err)
		return err;
	if (memcmp(id, ELFMAG, SELFMAG) || id[EI_CLASS] != ELFCLASS64 || id[EI_DATA] != ELFDATA2LSB)
		return -ENOEXEC;
	if (f->ehdr.e_type != ET_EXEC && f->ehdr.e_type != ET_DYN)
		return -ENOEXEC;
	return 0;
}

static int read_sections(struct elf_file *f)
{
	uint64_t n = f->ehdr.e_shnum;
	uint32_t strndx = f->ehdr.e_shstrndx;
	Elf64_Shdr first;
	int err;

	if (!f->ehdr.e_shoff)
		return 0;
	if (f->ehdr.e_shentsize != sizeof(Elf64_Shdr))
		return -EBADMSG;
	/* Section 0 holds the numbers that do not fit the header's 16 bits. */
	err = in_file(f, f->ehdr.e_shoff, sizeof(first))
		      ? read_at(f->fd, &first, sizeof(first), f->ehdr.e_shoff)
		      : -EBADMSG;
	if (err)
		return err;
	if (!n)
		n = first.sh_size;
	if (strndx == SHN_XINDEX)
		strndx = first.sh_link;
	if (!n || n > MAX_SHDRS)
		return -EBADMSG;
	err = read_alloc(f, f->ehdr.e_shoff, n * sizeof(Elf64_Shdr), 0, &f->shdr);
	if (err)
		return err;
	f->nshdr = n;
	if (strndx && strndx < n && f->shdr[strndx].sh_type == SHT_STRTAB &&
	    f->shdr[strndx].sh_size < (16 << 20)) {
		err = read_alloc(f, f->shdr[strndx].sh_offset, f->shdr[strndx].sh_size, 0,
				 &f->shstr);
		if (err)
			return err;
		f->shstr_len = f->shdr[strndx].sh_size;
	}
	return 0;
}

static int open_of(struct elf_file *f, int fd, uint16_t machine)
{
	int err;

	memset(f, 0, sizeof(*f));
	f->fd = fd;
	err = read_ehdr(f);
	if (err)
		return err;
	if (machine && f->ehdr.e_machine != machine)
		return -ENOEXEC;
	if (f->ehdr.e_phentsize != sizeof(Elf64_Phdr) || !f->ehdr.e_phnum ||
	    f->ehdr.e_phnum > MAX_PHDRS)
		return -EBADMSG;
	err = read_alloc(f, f->ehdr.e_phoff, f->ehdr.e_phnum * sizeof(Elf64_Phdr), 0, &f->phdr);
	if (err)
		return err;
	f->nphdr = f->ehdr.e_phnum;
	return read_sections(f);
}

int elf_file_open(struct elf_file *f, int fd)
{
	return open_of(f, fd, MACHINE);
}

int elf_file_open_any(struct elf_file *f, int fd)
{
	return open_of(f, fd, 0);
}

void elf_file_close(struct elf_file *f)
{
	free(f->phdr);
	free(f->shdr);
	free(f->shstr);
	memset(f, 0, sizeof(*f));
}

const char *elf_section_name(const struct elf_file *f, uint32_t index)
{
	if (!f->shstr || index >= f->nshdr || f->shdr[index].sh_name >= f->shstr_len)
		return "";
	return f->shstr + f->shdr[index].sh_name;
}

bool elf_has_section(const struct elf_file *f, uint32_t sh_type)
{
	for (uint32_t i = 0; i < f->nshdr; i++)
		if (f->shdr[i].sh_type == sh_type)
			return true;
	return false;
}

static uint64_t offset_in(const struct elf_file *f, uint64_t vaddr, uint32_t flags)
{
	for (int i = 0; i < f->nphdr; i++) {
		const Elf64_Phdr *p = &f->phdr[i];
		uint64_t in;

		if (p->p_type != PT_LOAD || (p->p_flags & flags) != flags || vaddr < p->p_vaddr)
			continue;
		in = vaddr - p->p_vaddr;
		if (in < p->p_filesz && p->p_offset < f->size && in < f->size - p->p_offset)
			return p->p_offset + in;
	}
	return 0;
}

uint64_t elf_code_offset(const struct elf_file *f, uint64_t vaddr)
{
	return offset_in(f, vaddr, PF_X);
}

uint64_t elf_offset(const struct elf_file *f, uint64_t vaddr)
{
	return offset_in(f, vaddr, 0);
}

/* ---- symbols ---- */

static int in_time(const struct elf_file *f)
{
	return f->until_ns && now_ns() > f->until_ns ? -ETIME : 0;
}

/* What is kept of a symbol until its name is read. */
struct want {
	uint64_t value, size;
	uint32_t name;
	uint8_t type;
	bool defined;
};

/* Reads `left` symbols at `off`, and keeps those of the wanted types. Everything else is dropped at
 * once. */
static int collect(const struct elf_file *f, uint64_t off, uint64_t left, uint64_t strsz,
		   uint32_t types, struct want **out, size_t *nout)
{
	Elf64_Sym *syms = malloc(SYM_CHUNK * sizeof(*syms));
	struct want *w = NULL;
	size_t n = 0, cap = 0;
	int err = syms ? 0 : -ENOMEM;

	while (!err && left) {
		size_t now = left < SYM_CHUNK ? left : SYM_CHUNK;

		if (!array_fit(w, cap, n + now)) {
			err = -ENOMEM;
			break;
		}
		err = in_time(f);
		if (!err)
			err = read_at(f->fd, syms, now * sizeof(*syms), off);
		for (size_t i = 0; !err && i < now; i++) {
			uint8_t type = ELF64_ST_TYPE(syms[i].st_info);

			if (!(types >> type & 1) || !syms[i].st_name || syms[i].st_name >= strsz)
				continue;
			/* An absolute or common symbol is no code; a defined NOTYPE one is a label. */
			if (syms[i].st_shndx == SHN_ABS || syms[i].st_shndx == SHN_COMMON)
				continue;
			w[n++] = (struct want){ .value = syms[i].st_value,
						.size = syms[i].st_size,
						.name = syms[i].st_name,
						.type = type,
						.defined = syms[i].st_shndx != SHN_UNDEF };
		}
		left -= now;
		off += now * sizeof(*syms);
	}
	free(syms);
	if (err) {
		free(w);
		return err;
	}
	*out = w;
	*nout = n;
	return 0;
}

/* Sorts the symbols by the order in which their names are read: order[first[c]] to order[first[c +
 * 1]] are those of piece c. */
static int by_chunk(const struct want *w, size_t n, uint32_t nchunks, uint32_t **order,
		    uint32_t **first)
{
	uint32_t *o = malloc(n * sizeof(*o)), *at = calloc(nchunks + 2, sizeof(*at));

	if (!o || !at) {
		free(o);
		free(at);
		return -ENOMEM;
	}
	/* at[c + 2] counts the symbols of piece c; the running sum at[c + 1] is where c begins, and
	 * after all have been placed it is where c ends */
	for (size_t i = 0; i < n; i++)
		at[w[i].name / STR_CHUNK + 2]++;
	for (uint32_t c = 2; c < nchunks + 2; c++)
		at[c] += at[c - 1];
	for (size_t i = 0; i < n; i++)
		o[at[w[i].name / STR_CHUNK + 1]++] = (uint32_t)i;
	*order = o;
	*first = at;
	return 0;
}

#define BEGINS 64 /* that are compared by words; further ones letter by letter */

/* Which symbols are wanted, and the function that takes them. */
struct query {
	uint32_t types;		   /* 1 << STT_ */
	const char *const *begins; /* NULL: all */
	elf_sym_fn fn;
	void *ctx;
	/* the first eight letters of begins[] */
	struct {
		uint64_t letters, mask;
		size_t len;
	} words[BEGINS];
	size_t nwords;
};

static void query_words(struct query *q)
{
	for (; q->begins && q->begins[q->nwords] && q->nwords < BEGINS; q->nwords++) {
		size_t len = strlen(q->begins[q->nwords]), n = len < 8 ? len : 8;

		q->words[q->nwords].len = len;
		q->words[q->nwords].mask = q->words[q->nwords].letters = 0;
		memcpy(&q->words[q->nwords].letters, q->begins[q->nwords], n);
		memset(&q->words[q->nwords].mask, 0xff, n);
	}
}

/* name: eight bytes at least can be read there, and what is behind its end does not matter. */
static bool elf_read_wanted(const struct query *q, const char *name)
{
	uint64_t letters;

	if (!q->begins)
		return true;
	memcpy(&letters, name, sizeof(letters));
	for (size_t i = 0; i < q->nwords; i++)
		if (!((letters ^ q->words[i].letters) & q->words[i].mask) &&
		    (q->words[i].len <= 8 ||
		     !strncmp(name + 8, q->begins[i] + 8, q->words[i].len - 8)))
			return true;
	for (size_t i = BEGINS; q->nwords == BEGINS && q->begins[i]; i++)
		if (!strncmp(name, q->begins[i], strlen(q->begins[i])))
			return true;
	return false;
}

/* Reads the names in pieces. A piece overlaps the next by the length of the longest name, and zero
 * bytes follow the last piece. */
static int elf_read_names(const struct elf_file *f, const Elf64_Shdr *strs, const struct want *w,
			  size_t n, const struct query *q)
{
	uint32_t nchunks = (uint32_t)((strs->sh_size + STR_CHUNK - 1) / STR_CHUNK), *order, *first;
	int err = by_chunk(w, n, nchunks, &order, &first);
	uint64_t room = strs->sh_size < STR_CHUNK ? strs->sh_size : STR_CHUNK + ELF_NAME_MAX;
	char *chunk;

	if (err)
		return err;
	chunk = malloc(room + ELF_NAME_MAX + 1);
	if (!chunk)
		err = -ENOMEM;
	for (uint32_t c = 0; !err && c < nchunks; c++) {
		uint64_t at = c * STR_CHUNK, len = strs->sh_size - at;

		if (first[c] == first[c + 1])
			continue;
		len = len < room ? len : room;
		err = elf_read(f, chunk, len, strs->sh_offset + at);
		if (err)
			break;
		memset(chunk + len, 0, ELF_NAME_MAX + 1);
		for (uint32_t i = first[c]; !err && i < first[c + 1]; i++) {
			const struct want *s = &w[order[i]];
			struct elf_sym sym = { .name = chunk + (s->name - at),
					       .name_at = strs->sh_offset + s->name,
					       .value = s->value,
					       .size = s->size,
					       .type = s->type,
					       .defined = s->defined };

			if (elf_read_wanted(q, sym.name))
				err = q->fn(q->ctx, &sym);
			if (!err && !(i % SYM_CHUNK))
				err = in_time(f);
		}
	}
	free(chunk);
	free(order);
	free(first);
	return err;
}

static int table(const struct elf_file *f, const Elf64_Shdr *sh, const struct query *q)
{
	uint64_t left = sh->sh_size / sizeof(Elf64_Sym), off = sh->sh_offset;
	const Elf64_Shdr *strs;
	int err = 0;

	if (!sh->sh_link || sh->sh_link >= f->nshdr || f->shdr[sh->sh_link].sh_type != SHT_STRTAB)
		return -EBADMSG;
	strs = &f->shdr[sh->sh_link];
	if (sh->sh_entsize != sizeof(Elf64_Sym) || !in_file(f, sh->sh_offset, sh->sh_size) ||
	    !in_file(f, strs->sh_offset, strs->sh_size))
		return -EBADMSG;
	if (strs->sh_size > ELF_STRINGS_MAX || left > ELF_SYMBOLS_MAX)
		return -EFBIG;
	while (!err && left) {
		uint64_t now = left < BATCH ? left : BATCH;
		struct want *w = NULL;
		size_t n = 0;

		err = collect(f, off, now, strs->sh_size, q->types, &w, &n);
		if (!err && n)
			err = elf_read_names(f, strs, w, n, q);
		free(w);
		off += now * sizeof(Elf64_Sym);
		left -= now;
	}
	return err;
}

/* Finds the first table of a type. The gABI allows one table of each type, so a file that claims a
 * thousand does not cause a thousand reads. */
static int first_table(const struct elf_file *f, uint32_t sh_type, struct query *q)
{
	query_words(q);
	for (uint32_t i = 0; i < f->nshdr; i++)
		if (f->shdr[i].sh_type == sh_type)
			return table(f, &f->shdr[i], q);
	return 0;
}

int elf_symbols(const struct elf_file *f, uint32_t sh_type, const char *const *begins,
		elf_sym_fn fn, void *ctx)
{
	struct query q = { .types = 1 << STT_FUNC | 1 << STT_GNU_IFUNC | 1 << STT_NOTYPE,
			   .begins = begins,
			   .fn = fn,
			   .ctx = ctx };

	return first_table(f, sh_type, &q);
}

int elf_variables(const struct elf_file *f, uint32_t sh_type, const char *const *begins,
		  elf_sym_fn fn, void *ctx)
{
	struct query q = {
		.types = 1 << STT_OBJECT | 1 << STT_NOTYPE, .begins = begins, .fn = fn, .ctx = ctx
	};

	return first_table(f, sh_type, &q);
}

int elf_symbols_of(const struct elf_file *f, uint32_t sh_type, uint32_t types, elf_sym_fn fn,
		   void *ctx)
{
	struct query q = { .types = types, .fn = fn, .ctx = ctx };

	return first_table(f, sh_type, &q);
}

void elf_soname(const struct elf_file *f, char *buf, size_t len)
{
	const Elf64_Shdr *dyn = NULL, *strs;
	uint64_t name = 0, n;
	Elf64_Dyn *d = NULL;

	buf[0] = 0;
	for (uint32_t i = 0; i < f->nshdr && !dyn; i++)
		if (f->shdr[i].sh_type == SHT_DYNAMIC)
			dyn = &f->shdr[i];
	if (!dyn || !dyn->sh_link || dyn->sh_link >= f->nshdr || dyn->sh_size > (1 << 20) ||
	    read_alloc(f, dyn->sh_offset, dyn->sh_size, 0, &d))
		return;
	n = dyn->sh_size / sizeof(*d);
	for (uint64_t i = 0; i < n && d[i].d_tag != DT_NULL; i++)
		if (d[i].d_tag == DT_SONAME)
			name = d[i].d_un.d_val;
	free(d);
	strs = &f->shdr[dyn->sh_link];
	if (!name || name >= strs->sh_size || !in_file(f, strs->sh_offset, strs->sh_size))
		return;
	n = strs->sh_size - name < len - 1 ? strs->sh_size - name : len - 1;
	if (read_at(f->fd, buf, n, strs->sh_offset + name))
		n = 0;
	buf[n] = 0;
}
