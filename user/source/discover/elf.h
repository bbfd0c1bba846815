/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * elf.h - reads an ELF file for the functions of the table. The file is untrusted: every offset
 * and length is checked; a corrupt file gives an error, never a crash.
 */
#ifndef CT_ELF_H
#define CT_ELF_H

#include "../../util/types.h"

enum elf_role {
	ELF_NONE = 0, /* defines nothing of the table */
	ELF_LIBRARY,  /* the library `domain`, or what stands in for it */
	/* an executable or shared object that holds functions of it itself: static libcudart */
	ELF_STATIC,
};

struct elf_probe {
	uint64_t offset;  /* in the file: what a uprobe wants; never 0 */
	uint32_t size;	  /* bytes of code from there on, as the symbol has it; 0: not known */
	uint16_t func;	  /* row of the table */
	uint16_t symbol;  /* of a row for many functions: the number of this one's name */
	uint32_t tensors; /* and what is read of its arguments: CT_TENSORS_*() */
	bool ends;	  /* of such a row: on an instruction that returns */
	bool per_thread;  /* the _ptsz/_ptds twin */
	bool query;	  /* class QUERY: the group that can be muted */
};

/* A function of which no call is shown under its own name. */
struct elf_silent {
	uint16_t func; /* row of the table */
	/* the row that has its code, and whose probe it is; ELF_INDIRECT: none, it is an IFUNC */
	uint16_t as;
};
#define ELF_INDIRECT UINT16_MAX

struct elf_scan {
	enum elf_role role;
	uint8_t domain; /* the first that it has functions of (api/domains.def) */
	/* its version (CUDA 13.0: 13000), at least this: 12.6 defines what 12.5 does; 0: not known */
	int version;
	const char *version_from; /* "soname", "symbols", "" */
	/* sorted by offset, one per offset (aliases: the first row in the table wins) */
	struct elf_probe *probes;
	int nprobes;
	/* symbols of the table that the file defines, before the plan's choice */
	int ndefined;
	uint64_t code; /* of what the probed functions begin with: another code, another number */
	/* the IFUNCs within the plan's choice, and the functions, of its choice or not, that have their code in common
	 * with one that has a probe; each once */
	struct elf_silent *silent;
	size_t nsilent;
	int nunseen; /* of rows for many: functions without a probe, as their returns are not known */
	bool has_device_code; /* .nv_fatbin, __nv_relfatbin or .nvFatBinSegment */
	bool has_symtab;      /* false: stripped; only dynamic symbols could be searched */
	/* it holds a runtime without symbols; if its functions were found all the same, they are among the probes */
	bool has_stripped;
	int nstripped;	   /* functions of it that were found, before the plan's choice */
	uint64_t *unnamed; /* that were not, PLAN_WORDS words, without internal ones; NULL: none */
	bool imports_cuda; /* undefined symbols of the table: calls a shared library's */
};

/*
 * Scans the file behind fd (read with pread; the descriptor stays open, its position is not
 * used). `capture` is the plan's bitmap: probes outside of it are left out; NULL: all. Takes
 * FUNC symbols, LOCAL and HIDDEN too, with a defined section and a value inside a PF_X PT_LOAD
 * segment; never undefined ones; IFUNCs have no probes. Gives up when it is until_ns (0: never).
 * Returns 0, or -ENOEXEC (not ELF, or another machine's), -EBADMSG (corrupt), -EFBIG (more symbols
 * than any sane file has), -ETIME, -EIO, -ENOMEM. The caller frees with elf_scan_free().
 */
int elf_scan_until(int fd, const uint64_t *capture, uint64_t until_ns, struct elf_scan *out);
static inline int elf_scan(int fd, const uint64_t *capture, struct elf_scan *out)
{
	return elf_scan_until(fd, capture, 0, out);
}
void elf_scan_free(struct elf_scan *);
/* Adds those in `silent` that concern the functions in `shown` to one of two sets; all are of PLAN_WORDS words. */
void elf_silent(const struct elf_scan *, const uint64_t *shown, uint64_t *indirect,
		uint64_t *shared);
/* Were functions in `shown` not found, because the runtime in the file has no symbols? */
bool elf_unnamed(const struct elf_scan *, const uint64_t *shown);

/* File offset of a symbol (for ld.so's _dl_debug_state): 0 when the file does not define it or
 * on error. */
uint64_t elf_symbol_offset(int fd, const char *symbol);

/* True when the bytes at the offset can carry a uprobe: x86-64: not lock, int3, or another
 * prefix that the kernel refuses. Reads the page, which also warms the page cache. Returns 1, 0,
 * or -errno. */
int elf_can_probe(int fd, uint64_t offset);

#endif
