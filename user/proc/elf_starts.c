/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * elf_starts.c - see elf_starts.h. The table's form is that of the Linux Standard Base: a version, three
 * encodings, the address of .eh_frame, the number of functions, and for each its address and that of its
 * entry, both relative to the table. Linkers write no other encodings than these.
 */
#include "elf_starts.h"
#include "../util/table/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define VERSION 1
#define PC_RELATIVE_4 0x1b    /* DW_EH_PE_pcrel | DW_EH_PE_sdata4 */
#define COUNT_4 0x03	      /* DW_EH_PE_udata4 */
#define TABLE_RELATIVE_4 0x3b /* DW_EH_PE_datarel | DW_EH_PE_sdata4 */
#define HEAD 12		      /* bytes before the table */

static int elf_starts_by_address(const void *a, const void *b)
{
	const struct elf_start *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

static int read_table(const struct elf_file *f, const Elf64_Phdr *p, struct elf_starts *s)
{
	uint8_t head[HEAD];
	int32_t *pairs;
	uint32_t n;
	int err = elf_read(f, head, sizeof(head), p->p_offset);

	if (err)
		return err;
	memcpy(&n, head + 8, 4);
	if (head[0] != VERSION || head[1] != PC_RELATIVE_4 || head[2] != COUNT_4 ||
	    head[3] != TABLE_RELATIVE_4 || n > ELF_STARTS_MAX)
		return -ENOENT;
	if (p->p_filesz < HEAD || n > (p->p_filesz - HEAD) / 8)
		return -EBADMSG;
	pairs = malloc(n * 8ULL + 1);
	s->list = malloc((n + 1ULL) * sizeof(*s->list));
	err = pairs && s->list ? elf_read(f, pairs, n * 8ULL, p->p_offset + HEAD) : -ENOMEM;
	for (uint32_t i = 0; i < n && !err; i++)
		s->list[s->n++] =
			(struct elf_start){ p->p_vaddr + (uint64_t)(int64_t)pairs[2ULL * i],
					    p->p_vaddr + (uint64_t)(int64_t)pairs[2ULL * i + 1] };
	free(pairs);
	if (!err)
		qsort(s->list, s->n, sizeof(*s->list), elf_starts_by_address);
	return err;
}

int elf_starts_read(const struct elf_file *f, struct elf_starts *s)
{
	memset(s, 0, sizeof(*s));
	for (int i = 0; i < f->nphdr; i++)
		if (f->phdr[i].p_type == PT_GNU_EH_FRAME)
			return read_table(f, &f->phdr[i], s);
	return -ENOENT;
}

void elf_starts_free(struct elf_starts *s)
{
	free(s->list);
	memset(s, 0, sizeof(*s));
}

const struct elf_start *elf_start_of(const struct elf_starts *s, uint64_t address)
{
	size_t n = array_before(s->list, s->n, x, x->address <= address);

	return n ? &s->list[n - 1] : NULL;
}

/* An entry: its length, the distance to its common part, the function relative to this word, its bytes. */
uint64_t elf_start_bytes(const struct elf_file *f, const struct elf_start *s)
{
	uint64_t at = elf_offset(f, s->entry);
	uint32_t entry[4];

	if (!at || elf_read(f, entry, sizeof(entry), at) || entry[0] == UINT32_MAX ||
	    s->entry + 8 + (uint64_t)(int64_t)(int32_t)entry[2] != s->address)
		return 0;
	return entry[3];
}
