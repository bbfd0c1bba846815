/* SPDX-License-Identifier: BSD-2-Clause */
/* nccl_comm.c - see nccl_comm.h. */
#include "nccl_comm.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "../proc/elf_read.h"

#define LIST_MAX 65536 /* a list of more communicators is none */

static const char *const member_names[NCCL_MEMBER_END] = {
	[NCCL_START_MAGIC] = "startMagic",
	[NCCL_END_MAGIC] = "endMagic",
	[NCCL_HASH] = "commHash",
	[NCCL_RANK] = "rank",
	[NCCL_NRANKS] = "nRanks",
	[NCCL_DEVICE] = ("cuda"
			 "Dev"), /* no function */
	[NCCL_SEQ] = "seqNumber",
};

/* ---- the layout ---- */

static bool nccl_comm_fits(const struct dwarf_member *m, uint32_t size)
{
	return m->known && m->size == size && m->n == 1;
}

/* Are the members there that everything else depends on? */
static bool is_usable(const struct nccl_layout *l)
{
	return nccl_comm_fits(&l->members[NCCL_START_MAGIC], 8) &&
	       nccl_comm_fits(&l->members[NCCL_END_MAGIC], 8) &&
	       l->members[NCCL_START_MAGIC].offset < l->members[NCCL_END_MAGIC].offset &&
	       nccl_comm_fits(&l->members[NCCL_HASH], 8);
}

/* A member that is not what it should be counts as one that is not there. */
static void drop_unusable(struct nccl_layout *l)
{
	for (int i = NCCL_RANK; i <= NCCL_DEVICE; i++)
		if (!nccl_comm_fits(&l->members[i], 4))
			l->members[i].known = false;
	if (l->members[NCCL_SEQ].size != 8)
		l->members[NCCL_SEQ].known = false;
}

bool nccl_is_kind(const char *name)
{
	size_t n = 0;

	while (isalnum((unsigned char)name[n]))
		n++;
	return n && n < NCCL_KIND_BYTES && !name[n];
}

/* "ncclFuncAllReduce" is shown as "AllReduce". */
static void name_kinds(struct nccl_layout *l, char (*names)[DWARF_NAME_BYTES])
{
	static const char begin[] = "ncclFunc";

	for (int i = 0; i < NCCL_KINDS; i++) {
		const char *name = names[i] + sizeof(begin) - 1;

		if (!strncmp(names[i], begin, sizeof(begin) - 1) && nccl_is_kind(name))
			strcpy(l->kinds[i], name);
	}
}

static int on_variable(void *ctx, const struct elf_sym *s)
{
	struct nccl_layout *l = ctx;

	/* one that is not defined has the value 0, as if it were not there */
	if (!strcmp(s->name, "ncclComms") || !strcmp(s->name, "_ZL9ncclComms"))
		l->list = s->value;
	else if (!strcmp(s->name, "nNcclComms") || !strcmp(s->name, "_ZL10nNcclComms"))
		l->nlist = s->value;
	return 0;
}

static int find_list(struct nccl_layout *l, int fd, uint64_t until_ns)
{
	static const char *const begins[] = { "ncclComms", "nNcclComms", "_ZL9ncclComms",
					      "_ZL10nNcclComms", NULL };
	struct elf_file f;
	int err = elf_file_open(&f, fd);

	f.until_ns = until_ns;
	if (!err && elf_variables(&f, SHT_SYMTAB, begins, on_variable, l))
		l->list = 0;
	elf_file_close(&f);
	if (!l->list || !l->nlist)
		l->list = l->nlist = 0;
	return err;
}

bool nccl_layout_check(struct nccl_layout *l)
{
	for (int i = 0; i < NCCL_MEMBER_END; i++) {
		struct dwarf_member *m = &l->members[i];

		m->name = member_names[i];
		if (!m->known)
			*m = (struct dwarf_member){ .name = m->name };
		else if (!dwarf_member_fits(m, l->bytes))
			return false;
	}
	if (!is_usable(l) || !l->list != !l->nlist)
		return false;
	drop_unusable(l);
	for (int i = 0; i < NCCL_KINDS; i++)
		if (!memchr(l->kinds[i], '\0', sizeof(l->kinds[i])) ||
		    (l->kinds[i][0] && !nccl_is_kind(l->kinds[i])))
			return false;
	return true;
}

int nccl_layout_read(struct nccl_layout *l, int fd, uint64_t until_ns)
{
	char names[NCCL_KINDS][DWARF_NAME_BYTES];
	struct dwarf_wanted want = {
		.structure = "ncclComm",
		.members = l->members,
		.nmembers = NCCL_MEMBER_END,
		.enumerator = "ncclFuncAllReduce",
		.names = names,
		.nnames = NCCL_KINDS,
	};
	int err;

	memset(l, 0, sizeof(*l));
	for (int i = 0; i < NCCL_MEMBER_END; i++)
		l->members[i].name = member_names[i];
	err = find_list(l, fd, until_ns);
	if (!err)
		err = dwarf_layout(fd, &want, until_ns);
	if (err)
		return err;
	l->bytes = want.bytes;
	if (!is_usable(l))
		return -ENOENT;
	drop_unusable(l);
	name_kinds(l, names);
	return 0;
}

/* ---- communicators ---- */

struct from {
	const struct nccl_layout *l;
	uint64_t addr;
	nccl_read_fn read;
	void *ctx;
};

static int read_member(const struct from *f, enum nccl_member_of_comm which, void *buf, size_t len)
{
	uint64_t at = f->addr + f->l->members[which].offset;

	return at < f->addr ? -EINVAL : f->read(f->ctx, at, buf, len);
}

static int read_magic(const struct from *f, enum nccl_member_of_comm which)
{
	uint64_t word;
	int err = read_member(f, which, &word, sizeof(word));

	return err ? err : word == NCCL_MAGIC ? 0 : -EINVAL;
}

/* A number that must not be negative; -1: it is not known. */
static int read_number(const struct from *f, enum nccl_member_of_comm which)
{
	int32_t v;

	if (!f->l->members[which].known || read_member(f, which, &v, sizeof(v)) || v < 0)
		return -1;
	return v;
}

static void read_counts(const struct from *f, struct nccl_comm *out)
{
	const struct dwarf_member *m = &f->l->members[NCCL_SEQ];
	uint64_t n[NCCL_KINDS];
	uint32_t len = m->n < NCCL_KINDS ? m->n : NCCL_KINDS;

	if (!m->known || read_member(f, NCCL_SEQ, n, len * sizeof(n[0])))
		return;
	for (uint32_t i = 0; i < len; i++) {
		struct nccl_count *c = &out->counts[out->ncounts];

		if (!f->l->kinds[i][0])
			continue;
		memcpy(c->kind, f->l->kinds[i], sizeof(c->kind));
		c->n = n[i];
		out->ncounts++;
	}
}

int nccl_comm_read(const struct nccl_layout *l, uint64_t addr, nccl_read_fn read, void *ctx,
		   struct nccl_comm *out)
{
	struct from f = { l, addr, read, ctx };
	int err = addr % 8 ? -EINVAL : read_magic(&f, NCCL_START_MAGIC);

	if (!err)
		err = read_magic(&f, NCCL_END_MAGIC);
	if (err)
		return err;
	*out = (struct nccl_comm){ .addr = addr };
	err = read_member(&f, NCCL_HASH, &out->hash, sizeof(out->hash));
	if (err)
		return err;
	if (!out->hash)
		return -EINVAL; /* it is being made */
	out->rank = read_number(&f, NCCL_RANK);
	out->nranks = read_number(&f, NCCL_NRANKS);
	out->device = read_number(&f, NCCL_DEVICE);
	if (out->rank < 0 || out->nranks > NCCL_RANKS_MAX || out->rank >= out->nranks)
		out->rank = out->nranks = -1;
	read_counts(&f, out);
	return 0;
}

int nccl_list_read(const struct nccl_layout *l, uint64_t bias, nccl_read_fn read, void *ctx,
		   uint64_t *list, int max)
{
	uint64_t array;
	int32_t n;
	int err;

	if (!l->list)
		return 0;
	err = read(ctx, bias + l->nlist, &n, sizeof(n));
	if (!err)
		err = read(ctx, bias + l->list, &array, sizeof(array));
	if (err)
		return err;
	if (!array || array % 8 || n <= 0 || n > LIST_MAX)
		return 0;
	if (n > max)
		n = max;
	err = read(ctx, array, list, (size_t)n * sizeof(list[0]));
	return err ? err : n;
}
