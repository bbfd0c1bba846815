/* SPDX-License-Identifier: BSD-2-Clause */
/* hooks_funcs.c - see hooks_funcs.h. */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../api/api.h"
#include "../../util/msg.h"
#include "../../util/now.h"
#include "../../util/strings.h"
#include "../../util/table/array.h"
#include "../discover/elf.h"
#include "../discover/maps.h"
#include "../discover/scans.h"
#include "hooks_funcs.h"

#define FILES_MAX 4096	 /* that are remembered */
#define MAPPED_MAX 65536 /* mappings of one process */
/* files of one process with a runtime whose functions were not found: more are not stated */
#define STRIPPED_FILES 64
#define STRIPPED_BYTES (16u << 10)

struct file {
	uint64_t dev, ino, size, changed_ns;
	struct elf_scan scan;
	uint8_t (*bytes)[16]; /* what each function begins with */
};
struct hooks_files {
	const struct capture_plan *plan;
	struct file *files;
	size_t n, cap, with;
};

struct mapping {
	uint64_t start, dev, ino;
	uint32_t round;
};
struct hooks_mapped {
	struct mapping *maps;
	size_t n, cap;
	uint32_t round;
	uint64_t runtime_lo, runtime_hi;
	uint64_t mutes[PLAN_WORDS]; /* functions that HOOKS_MUTE is about */
	uint64_t indirect[PLAN_WORDS], shared[PLAN_WORDS];
	struct strings stripped;
};

struct hooks_files *hooks_files_open(const struct capture_plan *plan)
{
	struct hooks_files *f = calloc(1, sizeof(*f));

	if (f)
		f->plan = plan;
	return f;
}

static void forget_files(struct hooks_files *f)
{
	for (size_t i = 0; i < f->n; i++) {
		elf_scan_free(&f->files[i].scan);
		free(f->files[i].bytes);
	}
	f->n = 0;
}

void hooks_files_close(struct hooks_files *f)
{
	if (!f)
		return;
	forget_files(f);
	free(f->files);
	free(f);
}

unsigned int hooks_files_count(const struct hooks_files *f)
{
	return (unsigned int)f->with;
}

struct hooks_mapped *hooks_mapped_open(void)
{
	struct hooks_mapped *m = calloc(1, sizeof(*m));

	if (!m || !strings_init(&m->stripped, STRIPPED_BYTES, STRIPPED_FILES))
		return m;
	hooks_mapped_close(m);
	return NULL;
}

void hooks_mapped_close(struct hooks_mapped *m)
{
	if (!m)
		return;
	strings_free(&m->stripped);
	free(m->maps);
	free(m);
}

bool hooks_mapped_mutes(const struct hooks_mapped *m, int func)
{
	return plan_has(m->mutes, func);
}

const uint64_t *hooks_mapped_indirect(const struct hooks_mapped *m)
{
	return m->indirect;
}

const uint64_t *hooks_mapped_shared(const struct hooks_mapped *m)
{
	return m->shared;
}

const struct strings *hooks_mapped_stripped(const struct hooks_mapped *m)
{
	return &m->stripped;
}

/* ---- files ---- */

static void read_bytes(struct file *f, int fd)
{
	f->bytes = calloc((size_t)f->scan.nprobes + 1, sizeof(*f->bytes));
	for (int i = 0; f->bytes && i < f->scan.nprobes; i++)
		if (pread(fd, f->bytes[i], 16, (off_t)f->scan.probes[i].offset) != 16)
			memset(f->bytes[i], 0, 16);
}

static bool has(const struct file *f)
{
	return f->scan.nprobes || f->scan.nsilent || f->scan.unnamed;
}

/* What the file behind a mapping holds; NULL: nothing that is asked for, or it cannot be read. */
static const struct file *hooks_funcs_look(struct hooks_files *fs, const struct ct_vma *v)
{
	struct file f = { .dev = v->dev, .ino = v->ino };
	struct stat st;
	int fd, err;

	if (maps_stat(v, &st))
		return NULL;
	f.size = (uint64_t)st.st_size;
	f.changed_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000ULL + (uint64_t)st.st_mtim.tv_nsec;
	for (size_t i = 0; i < fs->n; i++)
		if (fs->files[i].dev == f.dev && fs->files[i].ino == f.ino &&
		    fs->files[i].size == f.size && fs->files[i].changed_ns == f.changed_ns)
			return has(&fs->files[i]) ? &fs->files[i] : NULL;
	if (fs->n >= FILES_MAX)
		forget_files(fs);
	if (!array_fit(fs->files, fs->cap, fs->n + 1))
		return NULL;
	fd = maps_open(v);
	if (fd < 0)
		return NULL;
	err = scans_by(fd, fs->plan->capture, now_ns() + SCANS_S * 1000000000ULL, &f.scan);
	if (err)
		memset(&f.scan, 0, sizeof(f.scan));
	if (err == -ETIME || err == -EFBIG)
		msg_warn("a file of process %u has no hooks, and its calls are not shown: it has "
			 "more symbols than can be searched in %d s",
			 v->pid, SCANS_S);
	if (f.scan.nprobes)
		read_bytes(&f, fd);
	close(fd);
	fs->with += f.scan.nprobes > 0;
	fs->files[fs->n++] = f;
	return has(&f) ? &fs->files[fs->n - 1] : NULL;
}

bool hooks_files_have(struct hooks_files *f, const struct ct_vma *v)
{
	const struct file *file = hooks_funcs_look(f, v);

	return file && file->scan.nprobes;
}

/* ---- messages ---- */

/*
 * What functions are sent in the order of: for the first ones there is always room in a process, and where
 * the jumps of several would land in one place, it is theirs.
 */
enum rank {
	RANK_FIRST,  /* of the runtime, and of the driver: HOOKS_F_FIRST */
	RANK_CALL,   /* of other libraries */
	RANK_LAYER,  /* of what is above: operators and the like, of which there are thousands */
	RANK_STATIC, /* of a runtime that is linked into a library */
	RANKS
};

struct out {
	struct hooks_files *files;
	struct hooks_mapped *mapped;
	hooks_send_fn send;
	void *ctx;
	size_t at; /* bytes of msg[] */
	uint32_t n, number;
	int total;
	uint16_t type;
	char msg[MEET_MSG_MAX];
	/* functions, of all mappings, that are not sent yet */
	struct {
		struct hooks_func *funcs;
		size_t n, cap;
	} found[RANKS];
};

static int flush(struct out *o, uint32_t flags)
{
	struct hooks_list l = { .h = { .size = (uint32_t)o->at, .type = o->type },
				.n = o->n,
				.flags = flags,
				.number = o->number };
	int err;

	if (o->mapped && flags & HOOKS_LAST) {
		uint64_t lo, bytes;

		hooks_mapped_runtime(o->mapped, &lo, &bytes);
		l.within = lo;
		l.within_bytes = bytes;
	}

	memcpy(o->msg, &l, sizeof(l));
	err = o->send(o->ctx, o->msg, o->at);
	o->at = sizeof(l);
	o->n = 0;
	return err;
}

static int hooks_funcs_add(struct out *o, const void *entry, size_t size)
{
	int err = o->at + size > sizeof(o->msg) ? flush(o, 0) : 0;

	if (err)
		return err;
	memcpy(o->msg + o->at, entry, size);
	o->at += size;
	o->n++;
	return 0;
}

static struct out *out_open(uint16_t type, hooks_send_fn send, void *ctx)
{
	struct out *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->type = type;
	o->send = send;
	o->ctx = ctx;
	o->at = sizeof(struct hooks_list);
	return o;
}

/* As set_specs() of bpf_load.c. */
static int spec_of(const struct capture_plan *plan, int row, struct ct_spec *spec)
{
	int err = api_spec(row, API_ARCH_HERE, plan_has(plan->shown, row), spec);

	if (spec->layer)
		return err;
	if (plan_has(plan->awaited, row))
		spec->flags |= CT_S_ALWAYS;
	if (plan->stack && !plan->threads && plan_has(plan->shown, row))
		spec->more |= CT_S_STACK;
	return err;
}

int hooks_funcs_specs(const struct capture_plan *plan, hooks_send_fn send, void *ctx)
{
	struct out *o = out_open(HOOKS_SPECS, send, ctx);
	int err = o ? 0 : -ENOMEM;

	for (int i = 0; i < api_nfuncs && i < CT_MAX_FUNCS && !err; i++) {
		struct hooks_spec s = { .row = (uint32_t)i };

		if (!plan_has(plan->capture, i))
			continue;
		err = spec_of(plan, i, &s.spec);
		if (!err)
			err = hooks_funcs_add(o, &s, sizeof(s));
	}
	if (!err)
		err = flush(o, HOOKS_LAST);
	free(o);
	return err;
}

/* ---- mappings ---- */

/* What the process was told of this one, or NULL. */
static struct mapping *find_mapping(const struct hooks_mapped *m, const struct ct_vma *v)
{
	for (size_t i = 0; i < m->n; i++)
		if (m->maps[i].start == v->start && m->maps[i].dev == v->dev &&
		    m->maps[i].ino == v->ino)
			return &m->maps[i];
	return NULL;
}

/* Was the process told of this one? It is remembered. */
static bool is_known(struct hooks_mapped *m, const struct ct_vma *v)
{
	struct mapping *had = find_mapping(m, v);

	if (had) {
		had->round = m->round;
		return true;
	}
	if (m->n >= MAPPED_MAX || !array_fit(m->maps, m->cap, m->n + 1))
		return true;
	m->maps[m->n++] = (struct mapping){ v->start, v->dev, v->ino, m->round };
	return false;
}

/* What is not mapped any more may be mapped again. */
static void forget_gone(struct hooks_mapped *m)
{
	size_t kept = 0;

	for (size_t i = 0; i < m->n; i++)
		if (m->maps[i].round == m->round)
			m->maps[kept++] = m->maps[i];
		else if (m->maps[i].start == m->runtime_lo)
			m->runtime_lo = m->runtime_hi = 0;
	m->n = kept;
}

/* Are all functions of the runtime hooked? Then a query that it makes is certainly part of one of these
 * calls. */
static bool is_whole(const struct capture_plan *plan)
{
	for (int i = 0; i < api_nfuncs; i++) {
		const struct api_domain_row *d = &api_domains[api_funcs[i].domain];

		if (d->folds && !d->below && api_funcs[i].class != API_INTERNAL &&
		    !plan_has(plan->capture, i))
			return false;
	}
	return true;
}

static bool folds(const struct capture_plan *plan, int row)
{
	const struct api_domain_row *d = &api_domains[api_funcs[row].domain];

	return d->folds && (d->below || api_funcs[row].class == API_QUERY) &&
	       !(api_funcs[row].flags & (CT_S_ALWAYS | CT_S_NESTED | CT_S_CALLBACK)) &&
	       !plan_has(plan->awaited, row) && !plan->nested && !plan->no_return && is_whole(plan);
}

/* HOOKS_F_* of the row's functions. */
static uint32_t flags_of(const struct capture_plan *plan, int row)
{
	struct ct_spec spec;
	int how;

	if (spec_of(plan, row, &spec))
		return 0;
	how = CT_LAYER_HOW(spec.layer);
	if (how)
		return how == CT_LAYER_PUSH || how == CT_LAYER_POP || how == CT_LAYER_NOTE
			       ? HOOKS_F_ENTRY_ONLY
			       : 0;
	return (folds(plan, row) ? HOOKS_F_FOLDS : 0u) |
	       (plan->no_return || spec.flags & CT_S_CALLBACK || spec.more & CT_S_ENTRY_ONLY
			? HOOKS_F_ENTRY_ONLY
			: 0u) |
	       (spec.more & CT_S_STACK && plan->stack != PLAN_STACK_PYTHON ? HOOKS_F_REGS : 0u);
}

void hooks_mapped_runtime(const struct hooks_mapped *m, uint64_t *lo, uint64_t *bytes)
{
	*lo = m->runtime_lo;
	*bytes = m->runtime_hi - m->runtime_lo;
}

static bool is_library(const struct api_domain_row *d, const struct ct_vma *v)
{
	char path[4096];
	const char *name;

	maps_name(v, path, sizeof(path));
	name = strrchr(path, '/');
	for (int i = 0; i < API_DOMAIN_FILES && d->files[i]; i++)
		if (!fnmatch(d->files[i], name ? name + 1 : path, 0))
			return true;
	return false;
}

/*
 * May calls of this row's function in this mapping be only counted? What such a call makes inside must be
 * known from the address that it comes from: that is so in the first library that is the runtime and
 * nothing else. In others, and where it is linked statically, each call is recorded.
 */
static bool may_mute(struct hooks_mapped *m, const struct capture_plan *plan,
		     const struct ct_vma *v, int row)
{
	const struct api_domain_row *d = &api_domains[api_funcs[row].domain];

	if (!d->folds || d->below || plan->nested || plan->no_return)
		return true;
	if (!is_whole(plan))
		return false;
	if (!m->runtime_hi && is_library(d, v)) {
		m->runtime_lo = v->start;
		m->runtime_hi = v->end;
	}
	return v->start == m->runtime_lo;
}

static uint32_t mutes(struct hooks_mapped *m, int func)
{
	plan_add(m->mutes, func);
	return HOOKS_F_MUTES;
}

static void note_stripped(struct hooks_mapped *m, const struct ct_vma *v)
{
	char path[4096];

	maps_name(v, path, sizeof(path));
	strings_add(&m->stripped, path, strlen(path));
}

/* Is it the file of the program itself? */
static bool is_program(const struct ct_vma *v)
{
	struct stat program, file;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%u/exe", v->pid);
	return !stat(path, &program) && !maps_stat(v, &file) && program.st_dev == file.st_dev &&
	       program.st_ino == file.st_ino;
}

/* own: the file is the program's own. */
static enum rank rank_of(const struct elf_scan *scan, bool own, int row)
{
	const struct api_func *f = &api_funcs[row];

	if (api_domains[f->domain].folds)
		return scan->role == ELF_STATIC && !own ? RANK_STATIC : RANK_FIRST;
	return f->layer && !api_layer_reports(f) ? RANK_LAYER : RANK_CALL;
}

static int keep(struct out *o, enum rank rank, const struct hooks_func *f)
{
	if (!array_fit(o->found[rank].funcs, o->found[rank].cap, o->found[rank].n + 1))
		return -ENOMEM;
	o->found[rank].funcs[o->found[rank].n++] = *f;
	o->total++;
	return 0;
}

static int send_found(struct out *o)
{
	int err = 0;

	for (int rank = 0; rank < RANKS; rank++)
		for (size_t i = 0; i < o->found[rank].n && !err; i++)
			err = hooks_funcs_add(o, &o->found[rank].funcs[i],
					      sizeof(struct hooks_func));
	return err;
}

static int one_mapping(void *ctx, const struct ct_vma *v)
{
	uint64_t from = v->pgoff * (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t to = from + (v->end - v->start);
	struct out *o = ctx;
	const struct file *f;
	bool own;
	int err = 0;

	if (is_known(o->mapped, v))
		return 0;
	f = hooks_funcs_look(o->files, v);
	if (f)
		elf_silent(&f->scan, o->files->plan->shown, o->mapped->indirect, o->mapped->shared);
	if (f && elf_unnamed(&f->scan, o->files->plan->shown))
		note_stripped(o->mapped, v);
	own = f && f->scan.role == ELF_STATIC && is_program(v);
	for (int i = 0; f && i < f->scan.nprobes && !err; i++) {
		const struct elf_probe *p = &f->scan.probes[i];
		enum rank rank = rank_of(&f->scan, own, p->func);
		struct hooks_func out = { .address = v->start + (p->offset - from),
					  .cookie = (uint32_t)(CT_COOKIE(p->func, p->per_thread) |
							       CT_COOKIE_OF(p->symbol, false)),
					  .size = p->size };

		if (p->offset < from || p->offset >= to || p->ends)
			continue;
		out.flags = flags_of(o->files->plan, p->func) |
			    (rank == RANK_FIRST ? HOOKS_F_FIRST : 0u);
		if (may_mute(o->mapped, o->files->plan, v, p->func))
			out.flags |= mutes(o->mapped, p->func);
		if (o->files->plan->shapes)
			out.tensors = p->tensors;
		if (f->bytes) {
			out.nfile = 16;
			memcpy(out.file, f->bytes[i], 16);
		}
		err = keep(o, rank, &out);
	}
	return err;
}

struct looking {
	struct hooks_files *files;
	const struct hooks_mapped *mapped;
};

static int look_at_file(void *ctx, const struct ct_vma *v)
{
	const struct looking *l = ctx;

	if (!find_mapping(l->mapped, v))
		hooks_funcs_look(l->files, v);
	return 0;
}

void hooks_funcs_ahead(struct hooks_files *files, const struct hooks_mapped *mapped, pid_t pid)
{
	struct looking l = { files, mapped };

	maps_read(-1, pid, look_at_file, &l);
}

int hooks_funcs_send(struct hooks_files *files, struct hooks_mapped *mapped, pid_t pid,
		     uint32_t number, hooks_send_fn send, void *ctx)
{
	struct out *o = out_open(HOOKS_FUNCS, send, ctx);
	int err;

	if (!o)
		return -ENOMEM;
	o->files = files;
	o->mapped = mapped;
	o->number = number;
	mapped->round++;
	err = maps_read(-1, pid, one_mapping, o);
	forget_gone(mapped);
	if (err >= 0)
		err = send_found(o);
	if (!err)
		err = flush(o, HOOKS_LAST);
	if (!err)
		err = o->total;
	for (int rank = 0; rank < RANKS; rank++)
		free(o->found[rank].funcs);
	free(o);
	return err;
}
