/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * known.c - see known.h. This file keeps what is known of each process, and asks the sources of
 * names in a fixed order.
 *
 * A name must be the name of the kernel that the handle meant when the call was made, but it is
 * looked up later. Three things could have happened since: the code was unloaded and its addresses
 * were used again, the process exec'd, or it ended and its number was used again. forgets() detects
 * the first: it counts the calls that unload code, at their entry. It is called before and after
 * the look-up. If it has not changed, and the records of all those calls have arrived, nothing was
 * unloaded in between. The struct target excludes the other two, because it refers to one address
 * space. When that is gone, nothing more is read.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../util/table/array.h"
#include "../../util/msg.h"
#include "../../util/now.h"
#include "../../event/registry.h"
#include "known.h"
#include "known_driver.h"
#include "known_files.h"
#include "stub.h"

#define MAX_PROCS 256
#define MAX_MODULES 1024 /* files with device code in one process */
#define REREAD_NS 50000000ULL
#define MISS_NS 1000000000ULL /* how long a handle that was not found is not looked up again */
#define MISSES 256
#define RANGE_GAP 4096	 /* variables closer together than this are read in one piece */
#define RANGE_MAX 262144 /* bytes of one read */
#define RANGES_MAX 4096	 /* reads for one file in one process */

/* A file mapped for execution. */
struct module {
	struct file *file;
	uint64_t dev, ino, bias;
	uint64_t *values; /* values of the variables that hold handles; NULL: not read yet */
};

struct miss {
	uint64_t handle, until_ns;
};

struct known_process {
	struct registered r;
	/* the target at the last look-up; a different one means a different process */
	const struct target *target;
	uint64_t maps_hash, maps_ns, values_ns, forgets;
	bool mapped;
	struct module *modules;
	int nmodules;
	struct driver *driver;
	bool looked; /* the modules have been opened */
	struct miss misses[MISSES];
};

struct known {
	uint64_t (*forgets)(void *ctx);
	void *forgets_ctx;
	struct driver_table *drivers;
	struct file_table *files;
	struct registry procs; /* of struct known_process */
	uint64_t unloads;
	char name[CT_NAME_MAX], other[CT_NAME_MAX];
};

static void forgotten(void *ctx, void *item, const struct ct_hdr *h);

static const struct registry_rules rules = { .size = sizeof(struct known_process),
					     .most = MAX_PROCS,
					     .stays_ns = UINT64_MAX,
					     .forgets = true,
					     .gone = forgotten };

struct known *known_open(uint64_t (*forgets)(void *ctx), void *ctx)
{
	struct known *k = calloc(1, sizeof(*k));

	if (!k)
		return NULL;
	k->forgets = forgets;
	k->forgets_ctx = ctx;
	registry_open(&k->procs, &rules, k);
	k->drivers = driver_table_open();
	k->files = file_table_open();
	if (!k->drivers || !k->files) {
		known_close(k);
		return NULL;
	}
	return k;
}

/* ---- processes ---- */

static void drop_modules(struct known_process *p)
{
	for (int i = 0; i < p->nmodules; i++) {
		p->modules[i].file->refs--;
		free(p->modules[i].values);
	}
	free(p->modules);
	p->modules = NULL;
	p->nmodules = 0;
	p->driver = NULL;
	p->mapped = p->looked = false;
}

static void forgotten(void *ctx, void *item, const struct ct_hdr *h)
{
	(void)ctx, (void)h;
	drop_modules(item);
}

void known_forget(struct known *k, uint32_t pid)
{
	struct known_process *p = registry_find(&k->procs, pid);

	if (p)
		registry_forget(&k->procs, p);
}

void known_unloads(struct known *k, uint64_t seen)
{
	k->unloads = seen;
}

void known_close(struct known *k)
{
	if (!k)
		return;
	registry_close(&k->procs);
	file_table_close(k->files);
	driver_table_close(k->drivers);
	free(k);
}

static struct known_process *proc_of(struct known *k, uint32_t pid, const struct target *t)
{
	struct known_process *p = registry_find(&k->procs, pid);

	if (p && p->target != t)
		registry_forget(&k->procs, p);
	p = registry_get(&k->procs, pid);
	if (p)
		p->target = t;
	return p;
}

static uint64_t mix(uint64_t h, uint64_t v)
{
	return (h ^ v) * 0x9e3779b97f4a7c15ULL + (h >> 29);
}

/* Hashes only the executable mappings: a growing heap does not change the hash. */
static uint64_t hash_maps(const struct target_map *maps, int n)
{
	uint64_t h = 1;

	for (int i = 0; i < n; i++)
		if (maps[i].exec && maps[i].ino)
			h = mix(mix(mix(mix(mix(h, maps[i].start), maps[i].end), maps[i].offset),
				    maps[i].dev),
				maps[i].ino);
	return h;
}

static void add_module(struct known *k, struct known_process *p, struct target *t,
		       const struct target_map *m)
{
	struct file *f;
	uint64_t bias;

	if (p->nmodules == MAX_MODULES)
		return;
	f = file_table_find(k->files, t, m);
	if (!f || !f->elf || !known_elf_bias(f->elf, m, &bias))
		return;
	for (int i = 0; i < p->nmodules; i++)
		if (p->modules[i].file == f && p->modules[i].bias == bias)
			return; /* code in two segments, or a mapping that was split */
	if (!array_room(p->modules, p->nmodules))
		return;
	p->modules[p->nmodules++] =
		(struct module){ .file = f, .dev = m->dev, .ino = m->ino, .bias = bias };
	f->refs++;
}

/* Updates what is known of the mappings. Returns 0, or -errno if the process is gone. */
static int refresh(struct known *k, struct known_process *p, struct target *t, uint64_t now)
{
	const struct target_map *maps;
	int err = target_refresh(t), n;
	uint64_t h;

	if (err < 0)
		return err;
	n = target_maps(t, &maps);
	if (n < 0)
		return n;
	p->maps_ns = now;
	h = hash_maps(maps, n);
	if (p->mapped && h == p->maps_hash)
		return 0;
	drop_modules(p);
	p->maps_hash = h;
	p->mapped = true;
	p->values_ns = 0;
	for (int i = 0; i < n && !p->driver; i++)
		if (maps[i].exec && driver_is(&maps[i]))
			p->driver = driver_of(k->drivers, t, &maps[i]);
	return 0;
}

/* Opens the mapped files, once for each set of mappings and only when they are needed, because this
 * takes longer than some processes live. */
static void look_at_modules(struct known *k, struct known_process *p, struct target *t)
{
	const struct target_map *maps;
	int n = p->looked ? 0 : target_maps(t, &maps);

	p->looked = true;
	for (int i = 0; i < n; i++)
		if (maps[i].exec && maps[i].ino)
			add_module(k, p, t, &maps[i]);
}

static bool missed(const struct known_process *p, uint64_t handle, uint64_t now)
{
	const struct miss *m = &p->misses[mix(1, handle) >> 56];

	return m->handle == handle && now < m->until_ns;
}

static void miss(struct known_process *p, uint64_t handle, uint64_t now)
{
	p->misses[mix(1, handle) >> 56] = (struct miss){ handle, now + MISS_NS };
}

/* ---- host stubs ---- */

/* Returns the file's only kernel, if it must be the kernel of any host stub in the file. A program
 * with fixed addresses may pass its own entry for a function of another file. So in such a program
 * it must be the only kernel of all files. */
static const char *only_kernel(struct known *k, const struct known_process *p,
			       const struct module *own, uint32_t *len)
{
	int n;

	n = known_elf_kernels(own->file->elf, k->name, sizeof(k->name));
	if (n < 0 || n > 1)
		return NULL;
	for (int i = 0; i < p->nmodules && known_elf_is_fixed(own->file->elf); i++) {
		int more;

		if (p->modules[i].file == own->file)
			continue;
		more = known_elf_kernels(p->modules[i].file->elf, k->other, sizeof(k->other));
		if (more < 0 || n + more > 1)
			return NULL;
		if (more)
			memcpy(k->name, k->other, sizeof(k->name));
		n += more;
	}
	*len = (uint32_t)strlen(k->name);
	return n == 1 && *len ? k->name : NULL;
}

static const char *find_stub(struct known *k, struct known_process *p, struct target *t,
			     const struct target_map *m, uint64_t handle, bool gone,
			     enum ct_name_source *source, uint32_t *len)
{
	struct module *own = NULL;
	uint64_t bias = 0;
	char byte;
	size_t n;

	/* the mappings belong to the program that runs now, the memory to the one that was
	 * opened */
	if (!gone && target_read(t, handle, &byte, 1))
		return NULL;
	for (int i = 0; i < p->nmodules && !own; i++)
		if (p->modules[i].dev == m->dev && p->modules[i].ino == m->ino &&
		    known_elf_bias(p->modules[i].file->elf, m, &bias) && bias == p->modules[i].bias)
			own = &p->modules[i];
	if (!own)
		return NULL;
	n = known_elf_stub(own->file->elf, handle - bias, k->name, sizeof(k->name));
	if (n) {
		*source = CT_NAME_SYMBOL;
		*len = (uint32_t)n;
		return k->name;
	}
	/* a file with symbols for its functions has one for this function; if the symbols were
	 * ambiguous, the device code cannot decide */
	if (!known_elf_index(own->file->elf) && known_elf_handles(own->file->elf))
		return NULL;
	*source = CT_NAME_FATBIN;
	return only_kernel(k, p, own, len);
}

/* ---- handles ---- */

/* Reads the values of one file's variables with few large reads, because the variables are close
 * together in .bss. If the process has ended meanwhile, the former values stay if they may be kept. */
static int read_values(struct module *mod, struct target *t, uint8_t *buf, bool keep)
{
	struct known_elf *e = mod->file->elf;
	uint32_t n = known_elf_handles(e), ranges = 0;
	uint64_t *values;

	if (!n)
		return 0;
	values = calloc(n, sizeof(*values));
	if (!values)
		return -ENOMEM;
	for (uint32_t i = 0, j; i < n && ranges < RANGES_MAX; i = j, ranges++) {
		uint64_t first = known_elf_handle_addr(e, i), last = first;
		int err;

		for (j = i + 1; j < n; j++) {
			uint64_t next = known_elf_handle_addr(e, j);

			if (next - last > RANGE_GAP || next - first > RANGE_MAX - 8)
				break;
			last = next;
		}
		err = target_read(t, mod->bias + first, buf, last - first + 8);
		if (err == -ESRCH) {
			free(keep ? values : mod->values);
			mod->values = keep ? mod->values : values;
			return err;
		}
		for (uint32_t v = i; !err && v < j; v++)
			memcpy(&values[v], buf + (known_elf_handle_addr(e, v) - first), 8);
	}
	free(mod->values);
	mod->values = values;
	return 0;
}

static int read_all_values(struct known_process *p, struct target *t, uint64_t now)
{
	bool keep = p->values_ns != 0; /* else they may be of code that was unloaded */
	uint8_t *buf = malloc(RANGE_MAX);
	int err = buf ? 0 : -ENOMEM;

	for (int i = 0; !err && i < p->nmodules; i++)
		if (known_elf_has_device_code(p->modules[i].file->elf) &&
		    !known_elf_index(p->modules[i].file->elf))
			err = read_values(&p->modules[i], t, buf, keep);
	free(buf);
	p->values_ns = now;
	return err;
}

/* Finds the kernel of the variables that hold this handle, and stores it in k->name. Returns the
 * name's length; 0: there is none, or the variables do not agree. */
static size_t name_of_value(struct known *k, const struct known_process *p, uint64_t handle,
			    bool *sure)
{
	size_t len = 0;

	for (int i = 0; i < p->nmodules; i++) {
		const struct module *m = &p->modules[i];
		uint32_t n = m->values ? known_elf_handles(m->file->elf) : 0;

		for (uint32_t v = 0; v < n; v++) {
			bool s;

			if (m->values[v] != handle)
				continue;
			if (!len) {
				len = known_elf_handle(m->file->elf, v, k->name, sizeof(k->name),
						       sure);
				if (!len)
					return 0;
			} else if (known_elf_handle(m->file->elf, v, k->other, sizeof(k->other),
						    &s) != len ||
				   memcmp(k->other, k->name, len)) {
				return 0;
			}
		}
	}
	return len;
}

/* Whether the records of all calls that began to unload code have arrived. *count is kept for the
 * second check. */
static bool settled(const struct known *k, uint64_t *count)
{
	*count = k->forgets ? k->forgets(k->forgets_ctx) : 0;
	return !k->forgets || *count == k->unloads;
}

/* Finds the name of a handle that is not an address of code: from the variables and from the
 * driver's memory, and checks whether the two agree. */
static const char *find_handle(struct known *k, struct known_process *p, struct target *t,
			       uint64_t handle, uint64_t now, bool gone, bool *fresh,
			       enum ct_name_source *source, uint32_t *len)
{
	uint64_t before = p->forgets, read_ns = p->values_ns, after;
	bool sure = false, trusted = driver_is_trusted(p->driver);
	ssize_t said = 0;
	size_t n;

	if (!k->forgets)
		return NULL;
	/* The driver's memory is read first, because indexing the symbols of large files takes
	 * longer than some processes live. */
	if (!gone && p->driver && !driver_is_refuted(p->driver))
		said = driver_read_name(t, handle, k->other, sizeof(k->other));
	said = said < 0 ? 0 : said;
	*fresh = said && trusted && settled(k, &after) && after == before;
	look_at_modules(k, p, t);
	if (!gone && (!read_ns || now - read_ns > REREAD_NS) &&
	    read_all_values(p, t, now) == -ESRCH && !*fresh && !read_ns)
		return NULL;
	/* The process may have unloaded its code, or ended, while its files were read: then the
	 * files cannot decide. */
	if (*fresh && (!settled(k, &after) || after != before))
		n = 0;
	else
		n = name_of_value(k, p, handle, &sure);
	if (!n && !trusted)
		said = 0;
	if (n && said) {
		enum stub_match match = stub_compare(k->name, k->other);

		if (sure && match != STUB_SPELLING)
			driver_pair(p->driver, match == STUB_SAME);
		if (match == STUB_OTHER && trusted)
			return NULL; /* it is not known which of the two has changed */
		said = match == STUB_SPELLING && trusted ? said : 0;
	}
	if (!n && !said)
		return NULL;
	*source = said ? CT_NAME_DRIVER : CT_NAME_SYMBOL;
	*len = said ? (uint32_t)said : (uint32_t)n;
	return said ? k->other : k->name;
}

/* ---- the whole ---- */

const char *known_find(struct known *k, struct target *t, uint32_t pid, uint64_t handle,
		       bool driver, enum ct_name_source *source, uint32_t *len)
{
	const char *name = NULL;
	const struct target_map *m;
	uint64_t now = now_ns(), before, after;
	struct known_process *p = handle && t ? proc_of(k, pid, t) : NULL;
	bool gone = false, fresh = false;

	*source = CT_NAME_NONE;
	*len = 0;
	if (!p || missed(p, handle, now) || !settled(k, &before))
		return NULL;
	if (!p->mapped || !k->forgets || p->forgets != before || now - p->maps_ns > REREAD_NS) {
		/* after a process has ended, what was read before still names the kernels of its
		 * last calls */
		gone = refresh(k, p, t, now) < 0;
		if (gone && (!p->mapped || !k->forgets || p->forgets != before)) {
			miss(p, handle, now);
			return NULL;
		}
		if (p->forgets != before)
			p->values_ns = 0;
		p->forgets = before;
	}
	m = target_map_at(t, handle);
	if (!m || !m->ino || !m->exec)
		name = find_handle(k, p, t, handle, now, gone, &fresh, source, len);
	else if (!driver) {
		look_at_modules(k, p, t);
		name = find_stub(k, p, t, m, handle, gone, source, len);
	}
	if (!(name && fresh && *source == CT_NAME_DRIVER) &&
	    (!settled(k, &after) || after != before))
		name = NULL;
	else if (!name && (p->values_ns == now || (m && m->exec)))
		miss(p, handle, now);
	if (!name) {
		*source = CT_NAME_NONE;
		*len = 0;
	}
	return name;
}

void known_teach(struct known *k, struct target *t, uint32_t pid, uint64_t handle, const char *name,
		 uint32_t len)
{
	struct known_process *p = handle && t && len && len < CT_NAME_MAX - 1 ? proc_of(k, pid, t)
									      : NULL;
	uint64_t now = now_ns(), before, after;
	enum stub_match match;
	ssize_t said;

	if (!p || !k->forgets || !settled(k, &before))
		return;
	if ((!p->mapped || now - p->maps_ns > REREAD_NS) && refresh(k, p, t, now) < 0)
		return;
	if (!driver_wants_pair(p->driver))
		return;
	said = driver_read_name(t, handle, k->other, sizeof(k->other));
	if (said <= 0 || !settled(k, &after) || after != before)
		/* the memory has nothing that looks like a name, so no name will be taken from
		 * there */
		return;
	memcpy(k->name, name, len);
	k->name[len] = '\0';
	/* a name that was cut cannot be compared */
	if ((size_t)said > len && !memcmp(k->other, k->name, len))
		return;
	match = stub_compare(k->name, k->other);
	if (match == STUB_OTHER)
		msg_verb("the driver's memory names a kernel %.200s, not %.200s: no name is read "
			 "from there",
			 k->other, k->name);
	if (match != STUB_SPELLING)
		driver_pair(p->driver, match == STUB_SAME);
}
