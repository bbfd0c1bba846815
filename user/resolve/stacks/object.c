/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * object.c - see object.h. Each file has its own Dwfl, with one module at bias 0.
 *
 * Files are read, not mapped (ELF_C_READ): a file that shrinks under a mapping would end us by
 * SIGBUS. libdwfl itself maps separate debug files, so it gets only those that nobody except root
 * can shrink. The ELF header and the program headers are checked by elf_read.c first, and the
 * sections by this file, so that libelf gets no invalid values from them.
 */
#include <dwarf.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <zlib.h>

#include "../../proc/elf_read.h"
#include "../../util/allowance.h"
#include "../../util/io/bounded.h"
#include "../../util/msg.h"
#include "../../util/now.h"
#include "cfi.h"
#include "object.h"
#include "packed.h"
#include "symbols.h"

#define BUILD_ID_MAX 64	    /* bytes */
#define IDLE_MAX 256	    /* objects that are kept although no living process uses them */
#define IMAGE_MAX (1 << 20) /* bytes of a vdso */
/* bytes of debug sections; a file with more gets no source lines */
#define DWARF_MAX (2ULL << 30)
#define PAGE_MASK_BYTES 4095ULL
/* how long the main loop waits for one task, in ms: of files of processes that the user chose */
#define PATIENT_MS 10000
#define ALLOWANCE_NS 2000000000ULL /* and of other users' files, for each user at once */
#define ALLOWANCE_PART 20	   /* and of the time */
#define LENT_MAX 2 /* objects of one owner that workers keep; others are not begun */
/* Bytes of symbols and debug information of one owner's files: more than DWARF_MAX. */
#define EVERYBODY UINT64_MAX /* is no user */
#define ALL_PART 2	     /* of the machine's memory is for all files */
#define OWNER_MAX (3ULL << 30)
/* By how much one file may make our memory grow beyond the sizes of its sections. */
#define BUILT_MAX (1ULL << 30)
#define TASK_LEAST (1ULL << 20)
#define BUILT_LEAST (32ULL << 20) /* with less left, its debug information is not read any more */

/* Whose an object is. */
enum lease {
	LEASE_OURS,
	LEASE_LENT,   /* a worker's that took too long; it gives the object back when it is done */
	LEASE_ORPHAN, /* nobody wants it back: the worker frees it */
};

struct object {
	struct bounded_job job;
	void (*task)(struct object *, void *args);
	void *args;
	size_t args_room;
	_Atomic int lease;
	uint32_t owner;	  /* for whom it is read */
	int root;	  /* of the process, during a task; -1: none */
	const char *why;  /* what is to be reported when the task is over; NULL: nothing */
	bool large, slow; /* to be reported; was reported */
	/* while it is lent, only home, next, serial, refs, used, st and path may be used */
	struct objects *home;
	struct object *next;
	uint32_t serial, refs;
	uint64_t used; /* when the last reference was dropped, for the order of eviction */
	struct statx st;
	int fd; /* -1: it is an image */
	void *image;
	size_t image_len;
	char *path;
	struct elf_file elf; /* without its descriptor */
	bool checked, bad, complained, opened, no_dwarf;
	uint64_t tables_bytes, dwarf_bytes; /* that its sections take in memory */
	/* Of the main loop. payer: whose memory it counts as, with `bytes`. */
	bool admitted;
	uint32_t payer;
	uint64_t bytes;	   /* estimated */
	uint64_t grown;	   /* measured, in all tasks that ended */
	uint64_t reserved; /* what the task that a worker has may take */
	bool unaffordable; /* there was no room even without debug information */
	bool spent;	   /* it took more than it may: nothing is read of it any more */
	Dwfl *dwfl;
	Dwfl_Module *module;
	Dwarf *alt; /* what several debug files share (DWARF's supplementary file) */
	int alt_fd;
	struct cfi_rows *rows;
	struct symbol_index *symbols;
};

struct objects {
	struct object *first;
	uint32_t serial, nidle;
	uint64_t clock;
	int root; /* the target's */
	uint32_t owner;
	bool impatient, missed;
	struct allowance allowance;
};

struct objects *objects_open(void)
{
	struct objects *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	elf_version(EV_CURRENT);
	if (!objects_all_max)
		objects_memory((uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE));
	o->root = -1;
	o->owner = BOUNDED_NOBODY;
	o->allowance.max_ns = ALLOWANCE_NS;
	o->allowance.part = ALLOWANCE_PART;
	return o;
}

void objects_memory(uint64_t bytes)
{
	objects_all_max = bytes / ALL_PART;
}

void objects_impatient(struct objects *home)
{
	home->impatient = true;
}

static void object_free(struct object *o)
{
	cfi_close(o->rows);
	symbols_close(o->symbols);
	if (o->dwfl)
		dwfl_end(o->dwfl);
	if (o->alt) {
		dwarf_end(o->alt);
		close(o->alt_fd);
	}
	if (o->checked && !o->bad)
		elf_file_close(&o->elf);
	if (o->fd >= 0)
		close(o->fd);
	if (o->root >= 0)
		close(o->root);
	free(o->image);
	free(o->path);
	free(o->args);
	free(o);
}

/* Frees it, or has the worker do so that has it. */
static void let_go(struct object *o)
{
	int lent = LEASE_LENT;

	if (!atomic_compare_exchange_strong(&o->lease, &lent, LEASE_ORPHAN))
		object_free(o);
}

void objects_close(struct objects *home)
{
	if (!home)
		return;
	while (home->first) {
		struct object *o = home->first;

		home->first = o->next;
		let_go(o);
	}
	free(home);
}

void objects_set_process(struct objects *home, int root, uint32_t owner)
{
	home->root = root;
	home->owner = owner;
}

bool objects_missed(struct objects *home)
{
	bool missed = home->missed;

	home->missed = false;
	return missed;
}

struct object *object_keep(struct object *o)
{
	if (!o->refs++ && o->home->nidle)
		o->home->nidle--;
	return o;
}

static void remove_idle(struct objects *home, struct object *o)
{
	struct object **p = &home->first;

	while (*p != o)
		p = &(*p)->next;
	*p = o->next;
	home->nidle--;
	let_go(o);
}

/* Frees the object that has been idle longest. */
static void evict(struct objects *home)
{
	struct object *oldest = NULL;

	/* what a worker has, or what it left when it crashed, stays in memory */
	for (struct object *o = home->first; o; o = o->next)
		if (!o->refs && !object_lent(o) && (!oldest || o->used < oldest->used))
			oldest = o;
	if (oldest)
		remove_idle(home, oldest);
}

void object_release(struct object *o)
{
	if (!o || --o->refs)
		return;
	o->used = ++o->home->clock;
	if (++o->home->nidle > IDLE_MAX)
		evict(o->home);
}

/* What this machine knows of the file, without asking a server. */
static int look(int fd, struct statx *st)
{
	return statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
		     STATX_TYPE | STATX_INO | STATX_SIZE | STATX_MTIME, st);
}

static bool same_file(const struct statx *a, const struct statx *b)
{
	return a->stx_dev_major == b->stx_dev_major && a->stx_dev_minor == b->stx_dev_minor &&
	       a->stx_ino == b->stx_ino && a->stx_size == b->stx_size &&
	       a->stx_mtime.tv_sec == b->stx_mtime.tv_sec &&
	       a->stx_mtime.tv_nsec == b->stx_mtime.tv_nsec;
}

static struct object *object_new(struct objects *home, const char *path)
{
	static const char deleted[] = " (deleted)";
	struct object *o = calloc(1, sizeof(*o));
	size_t len = strlen(path);

	if (!o)
		return NULL;
	if (len > sizeof(deleted) && !strcmp(path + len - (sizeof(deleted) - 1), deleted))
		len -= sizeof(deleted) - 1;
	o->path = strndup(path, len);
	if (!o->path) {
		free(o);
		return NULL;
	}
	o->fd = o->root = -1;
	o->home = home;
	o->serial = ++home->serial;
	o->refs = 1;
	o->next = home->first;
	home->first = o;
	return o;
}

static bool same_path(const struct object *o, const char *path)
{
	size_t len = strlen(o->path);

	return !strncmp(o->path, path, len) && (!path[len] || !strcmp(path + len, " (deleted)"));
}

struct object *objects_file(struct objects *home, int fd, const char *path)
{
	struct object *o;
	struct statx st;

	if (look(fd, &st) || !S_ISREG(st.stx_mode)) {
		close(fd);
		return NULL;
	}
	for (o = home->first; o; o = o->next)
		if (o->fd >= 0 && same_file(&o->st, &st) && same_path(o, path)) {
			close(fd);
			return object_keep(o);
		}
	o = object_new(home, path);
	if (!o) {
		close(fd);
		return NULL;
	}
	o->fd = fd;
	o->st = st;
	return o;
}

bool object_changed(const struct object *o)
{
	struct statx st;

	return o->fd >= 0 && (look(o->fd, &st) || !same_file(&o->st, &st));
}

bool object_lent(const struct object *o)
{
	return atomic_load(&o->lease) != LEASE_OURS;
}

struct object *objects_image(struct objects *home, const void *bytes, size_t len, const char *path)
{
	struct object *o;

	if (!len || len > IMAGE_MAX)
		return NULL;
	for (o = home->first; o; o = o->next)
		if (o->image && o->image_len == len && !memcmp(o->image, bytes, len))
			return object_keep(o);
	o = object_new(home, path);
	if (!o)
		return NULL;
	o->image = malloc(len);
	if (!o->image) {
		o->bad = o->checked = true;
		object_release(o);
		return NULL;
	}
	memcpy(o->image, bytes, len);
	o->image_len = len;
	return o;
}

uint32_t object_serial(const struct object *o)
{
	return o->serial;
}

const char *object_path(const struct object *o)
{
	return o->path;
}

struct cfi_rows **object_rows(struct object *o)
{
	return &o->rows;
}

struct symbol_index **object_symbols(struct object *o)
{
	return &o->symbols;
}

void object_complain(struct object *o, const char *why)
{
	if (o->complained)
		return;
	o->complained = true;
	o->why = why;
}

void object_drop_dwarf(struct object *o)
{
	o->no_dwarf = true;
}

bool object_has_dwarf(struct object *o)
{
	return !o->no_dwarf;
}

/* ---- memory ---- */

uint64_t objects_owner_max = OWNER_MAX;
uint64_t objects_all_max;

static uint64_t object_bytes(const struct object *o)
{
	uint64_t taken = o->grown + o->reserved;

	return taken > o->bytes ? taken : o->bytes;
}

static uint64_t bytes_of(const struct objects *home, uint64_t owner)
{
	uint64_t bytes = 0;

	for (const struct object *o = home->first; o; o = o->next)
		if (o->admitted && (owner == EVERYBODY || o->payer == owner))
			bytes += object_bytes(o);
	return bytes;
}

/* Frees objects of the owner, or of everybody, that nobody uses, the longest idle first, until
 * there is room. */
static bool fits(struct objects *home, uint64_t owner, uint64_t max, uint64_t bytes)
{
	uint64_t used = bytes_of(home, owner);

	while (bytes > max || used > max - bytes) {
		struct object *oldest = NULL;

		for (struct object *o = home->first; o; o = o->next)
			if (!o->refs && !object_lent(o) && o->admitted &&
			    (owner == EVERYBODY || o->payer == owner) && object_bytes(o) &&
			    (!oldest || o->used < oldest->used))
				oldest = o;
		if (!oldest || bytes > max)
			return false;
		used -= object_bytes(oldest);
		remove_idle(home, oldest);
	}
	return true;
}

/* The user of cudatrace chose the processes of a patient one. */
static bool make_room(struct objects *home, uint64_t bytes)
{
	return (!home->impatient || fits(home, home->owner, objects_owner_max, bytes)) &&
	       fits(home, EVERYBODY, objects_all_max, bytes);
}

/* Called once for each file, when its headers are known, before libelf reads anything. Without room
 * for all of it, it is read without debug information; without room for that, not at all. */
static void admit(struct object *o)
{
	uint64_t all = o->tables_bytes + (o->no_dwarf ? 0 : o->dwarf_bytes);

	o->admitted = true;
	o->payer = o->home->owner;
	o->grown = 0; /* only by its headers */
	if (make_room(o->home, all)) {
		o->bytes = all;
		return;
	}
	o->no_dwarf = true;
	o->unaffordable = !make_room(o->home, o->tables_bytes);
	o->bytes = o->unaffordable ? 0 : o->tables_bytes;
	msg_warn("%s: the files of user %u have more symbols and debug information than "
		 "cudatrace keeps of one user, or of all: functions of this file are shown without "
		 "their %s",
		 o->path, o->payer, o->unaffordable ? "names" : "lines");
}

/* What others leave of this to an object; at least what was estimated. */
static uint64_t left_of(const struct object *o, uint64_t owner, uint64_t max)
{
	uint64_t others = bytes_of(o->home, owner) - object_bytes(o);

	return others < max && max - others > o->bytes ? max - others : o->bytes;
}

/* How much memory the file may take in all. */
static uint64_t most_of(const struct object *o)
{
	uint64_t most = o->bytes + BUILT_MAX, left;

	if (!o->admitted)
		return most;
	left = left_of(o, EVERYBODY, objects_all_max);
	most = left < most ? left : most;
	left = o->home->impatient ? left_of(o, o->payer, objects_owner_max) : most;
	return left < most ? left : most;
}

/* How much a task may take. */
static uint64_t may_grow(const struct object *o)
{
	uint64_t most = most_of(o);

	return most > o->grown + TASK_LEAST ? most - o->grown : TASK_LEAST;
}

/* A task is over, perhaps by a worker that nobody waited for. */
static void settle(struct object *o)
{
	uint64_t most;

	if (!o->reserved || object_lent(o))
		return;
	o->reserved = 0;
	o->grown = o->job.grew < 0 && o->grown < (uint64_t)-o->job.grew
			   ? 0
			   : o->grown + (uint64_t)o->job.grew;
	most = most_of(o);
	if (!o->admitted || o->grown <= o->bytes || o->unaffordable)
		return;
	o->spent = o->grown >= most;
	if (!o->spent && (o->no_dwarf || o->grown + BUILT_LEAST <= most))
		return;
	o->no_dwarf = true;
	msg_warn("%s: its symbols and debug information take more memory than cudatrace gives a "
		 "file: functions of this file are shown without their %s from now on",
		 o->path, o->spent ? "names" : "lines");
}

/* ---- tasks ---- */

void (*objects_begins)(void);
bool objects_in_place;

static void run(struct bounded_job *job)
{
	struct object *o = (struct object *)job;

	if (objects_begins)
		objects_begins();
	o->task(o, o->args);
}

/* Of this process and its workers. */
static uint64_t data_bytes(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	unsigned long long pages = 0;

	if (!f)
		return 0;
	if (fscanf(f, "%*u %*u %*u %*u %*u %llu", &pages) != 1)
		pages = 0;
	fclose(f);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void give_back(struct bounded_job *job)
{
	struct object *o = (struct object *)job;
	int lent = LEASE_LENT;

	if (o->root >= 0)
		close(o->root);
	o->root = -1;
	if (!atomic_compare_exchange_strong(&o->lease, &lent, LEASE_OURS))
		object_free(o);
}

/* Says what tasks have left to be said; workers say nothing. */
static void say(struct object *o)
{
	if (o->large)
		msg_note("%s has more than 2 GiB of debug information, or it is compressed in a "
			 "way that no linker uses: it is not read",
			 o->path);
	o->large = false;
	if (o->why)
		msg_warn("%s: %s: functions of this file may be shown without their names", o->path,
			 o->why);
	o->why = NULL;
}

static bool has_too_many(const struct objects *home)
{
	int n = 0;

	for (const struct object *o = home->first; o; o = o->next)
		n += object_lent(o) && o->owner == home->owner;
	return n >= LENT_MAX;
}

/* Has a worker do the task. Returns as bounded_run(). */
static int lend(struct object *o)
{
	struct objects *home = o->home;
	uint64_t *left = allowance_of(&home->allowance, home->owner), began = now_ns();
	uint64_t wait_ms = home->impatient ? *left / 1000000 : PATIENT_MS;
	int err;

	o->owner = home->owner;
	o->job = (struct bounded_job){ .run = run,
				       .drop = give_back,
				       .later = true,
				       .measure = data_bytes,
				       .grow_max = may_grow(o) };
	o->reserved = o->job.grow_max;
	/* debug files are searched in the process's root, which is its own */
	o->root = home->root >= 0 ? fcntl(home->root, F_DUPFD_CLOEXEC, 0) : -1;
	atomic_store(&o->lease, LEASE_LENT);
	err = bounded_run(&o->job, o->owner, (unsigned int)wait_ms);
	allowance_take(left, began);
	if (err == -ETIMEDOUT && o->job.crashed)
		msg_warn("%s: the reader of this file %s: stacks do not show its functions",
			 o->path,
			 o->job.no_memory ? "took more memory than cudatrace gives a file"
					  : "crashed");
	if (err == -ETIMEDOUT) {
		if (!o->slow && !o->job.crashed)
			msg_verb("%s takes long to be read: until that is done, stacks do not show "
				 "its functions",
				 o->path);
		o->slow = true;
		return err;
	}
	if (o->root >= 0)
		close(o->root);
	o->root = -1;
	atomic_store(&o->lease, LEASE_OURS);
	settle(o);
	return err;
}

static void check_it(struct object *o, void *args);
static bool is_good(struct object *o);

static bool room_for(struct object *o, size_t size)
{
	void *more = size > o->args_room ? realloc(o->args, size) : o->args;

	if (!more)
		return false;
	o->args = more;
	o->args_room = size > o->args_room ? size : o->args_room;
	return true;
}

bool object_do(struct object *o, void (*task)(struct object *, void *args), void *args, size_t size)
{
	int err = -ENOMEM;

	settle(o); /* it may have been given back */
	if (o->spent)
		return false;
	if (object_lent(o) || (o->fd >= 0 && has_too_many(o->home))) {
		o->home->missed = true;
		return false;
	}
	if (o->fd >= 0 && task != check_it && !o->checked && !is_good(o) && object_lent(o))
		return false;
	if (o->fd >= 0 && o->checked && !o->bad && !o->admitted)
		admit(o);
	say(o);
	o->task = task;
	/* an image is in our memory, and small */
	if (o->fd >= 0 && !objects_in_place && room_for(o, size)) {
		memcpy(o->args, args, size);
		err = lend(o);
	}
	if (!err)
		memcpy(args, o->args, size);
	else if (err == -ENOMEM)
		task(o, args);
	o->home->missed |= err && err != -ENOMEM;
	/* while it is lent nothing of it is ours */
	if (err != -ETIMEDOUT)
		say(o);
	return !err || err == -ENOMEM;
}

/* ---- headers ---- */

/* Checks the headers. False: the file must not be read further. */
static bool check(struct object *o)
{
	int err;

	if (o->checked)
		return !o->bad;
	o->checked = true;
	if (o->image) {
		/* elf_read.c reads from descriptors; the kernel's own image gets one for a
		 * moment */
		int fd = memfd_create("image", MFD_CLOEXEC);

		if (fd < 0 || write(fd, o->image, o->image_len) != (ssize_t)o->image_len)
			err = -EIO;
		else
			err = elf_file_open(&o->elf, fd);
		if (fd >= 0)
			close(fd);
		o->elf.fd = -1;
	} else {
		err = elf_file_open(&o->elf, o->fd);
	}
	if (err) {
		elf_file_close(&o->elf);
		o->bad = true;
		if (err == -EBADMSG)
			object_complain(o, "its ELF headers are damaged");
		return false;
	}
	if (packed_tables(&o->elf)) {
		elf_file_close(&o->elf);
		o->bad = true;
		object_complain(o, "its symbol tables are compressed");
		return false;
	}
	if (o->fd < 0)
		return true;
	o->tables_bytes = packed_tables_bytes(&o->elf);
	o->dwarf_bytes = packed_dwarf_bytes(&o->elf);
	if (o->dwarf_bytes >= DWARF_MAX) {
		o->large = true;
		o->no_dwarf = true;
	}
	return true;
}

static void check_it(struct object *o, void *args)
{
	(void)args;
	check(o);
}

static bool is_good(struct object *o)
{
	char none = 0;

	if (object_lent(o)) {
		o->home->missed = true;
		return false;
	}
	return (o->checked || object_do(o, check_it, &none, sizeof(none))) && !o->bad;
}

bool object_address(struct object *o, uint64_t file_offset, uint64_t *address)
{
	if (!is_good(o))
		return false;
	for (int i = 0; i < o->elf.nphdr; i++) {
		const Elf64_Phdr *p = &o->elf.phdr[i];
		uint64_t begin = p->p_offset & ~PAGE_MASK_BYTES;

		/* whole pages are mapped, so code before the segment's first byte may be
		 * requested */
		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) || file_offset < begin)
			continue;
		if (file_offset - begin >= p->p_filesz + (p->p_offset - begin))
			continue;
		*address = file_offset - p->p_offset + p->p_vaddr;
		return true;
	}
	return false;
}

struct code {
	uint64_t address, len;
	bool good;
	uint8_t bytes[OBJECT_READ_MAX];
};

static void read_code(struct object *o, void *args)
{
	struct code *c = args;
	uint64_t offset = check(o) ? elf_code_offset(&o->elf, c->address) : 0;

	c->good = false;
	if (!offset)
		return;
	if (!o->image) {
		c->good = pread(o->fd, c->bytes, c->len, (off_t)offset) == (ssize_t)c->len;
	} else if (offset <= o->image_len && c->len <= o->image_len - offset) {
		memcpy(c->bytes, (char *)o->image + offset, c->len);
		c->good = true;
	}
}

bool object_read(struct object *o, uint64_t address, void *buf, size_t len)
{
	struct code c = { .address = address, .len = len };

	if (len > sizeof(c.bytes) || !object_do(o, read_code, &c, sizeof(c)) || !c.good)
		return false;
	memcpy(buf, c.bytes, len);
	return true;
}

/* ---- libdwfl ---- */

/* Removes the name of the mini debug information's section, so that libdwfl does not find it. */
static void hide_symbols(const struct elf_file *f, Elf *elf)
{
	for (uint32_t i = 0; i < f->nshdr; i++) {
		Elf_Scn *scn = packed_is_symbols(f, i) ? elf_getscn(elf, i) : NULL;
		GElf_Shdr shdr;

		if (!scn || !gelf_getshdr(scn, &shdr))
			continue;
		shdr.sh_name = 0;
		gelf_update_shdr(scn, &shdr);
	}
}

static int find_elf(Dwfl_Module *mod, void **userdata, const char *name, Dwarf_Addr base,
		    char **file, Elf **elf)
{
	struct object *o = *userdata;

	(void)mod;
	(void)name;
	(void)base;
	*file = NULL;
	if (o->image) {
		*elf = elf_memory(o->image, o->image_len);
		return -1;
	}
	*elf = elf_begin(o->fd, ELF_C_READ, NULL);
	if (!*elf)
		return -1;
	if (!packed_symbols_are_sane(&o->elf)) {
		object_complain(
			o, "its mini debug information is damaged, or unpacks to more than 64 MiB");
		hide_symbols(&o->elf, *elf);
	}
	/* libdwfl closes the descriptor that it gets, so it gets a copy of ours */
	return fcntl(o->fd, F_DUPFD_CLOEXEC, 0);
}

/* Opens a file below a root directory, and follows only links that stay below it. -1: there is no
 * file that may be used. */
static int open_debug(int root, const char *path, const struct statx *not_this)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC,
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	int at = (int)syscall(SYS_openat2, root, path, &how, sizeof(how)), fd;
	char name[32];
	struct elf_file f;
	struct statfs fs;
	struct stat st;
	bool good;

	if (at < 0)
		return -1;
	/* Checked before it is opened: a link may lead to a device, and to open one may have
	 * effects; a watchdog restarts the machine. */
	snprintf(name, sizeof(name), "/proc/self/fd/%d", at);
	fd = !fstat(at, &st) && S_ISREG(st.st_mode) ? open(name, O_RDONLY | O_CLOEXEC) : -1;
	close(at);
	if (fd < 0)
		return -1;
	/* who serves a FUSE file says whose it is, and may shorten it while it is mapped */
	good = !fstat(fd, &st) && S_ISREG(st.st_mode) && !fstatfs(fd, &fs) &&
	       fs.f_type != FUSE_SUPER_MAGIC &&
	       (st.st_dev != makedev(not_this->stx_dev_major, not_this->stx_dev_minor) ||
		st.st_ino != not_this->stx_ino) &&
	       (!st.st_uid || st.st_uid == geteuid()) && !(st.st_mode & (S_IWGRP | S_IWOTH));
	if (good) {
		good = !elf_file_open(&f, fd) && packed_dwarf_bytes(&f) < DWARF_MAX &&
		       !packed_tables(&f);
		elf_file_close(&f);
	}
	if (good)
		return fd;
	close(fd);
	return -1;
}

/* The path of a debug file by its build id; false: such an id has none. */
static bool path_of_id(char *path, size_t size, const unsigned char *id, int n)
{
	char hex[2 * BUILD_ID_MAX + 1];

	if (n <= 1 || n > BUILD_ID_MAX)
		return false;
	for (int i = 0; i < n; i++)
		snprintf(hex + 2 * i, 3, "%02x", id[i]);
	snprintf(path, size, "usr/lib/debug/.build-id/%.2s/%s.debug", hex, hex + 2);
	return true;
}

/* Searches by build id, then by .gnu_debuglink: beside the file, in .debug, and below
 * /usr/lib/debug. */
static int find_below(struct object *o, int root, Dwfl_Module *mod, const char *link, bool *by_id)
{
	const unsigned char *id;
	const char *slash = strrchr(o->path, '/');
	char path[4200];
	GElf_Addr at;
	int n = dwfl_module_build_id(mod, &id, &at), fd, dir = slash ? (int)(slash - o->path) : 0;

	*by_id = true;
	if (path_of_id(path, sizeof(path), id, n)) {
		fd = open_debug(root, path, &o->st);
		if (fd >= 0)
			return fd;
	}
	*by_id = false;
	if (!link || !*link || strchr(link, '/') || dir > 2048 || strlen(link) > 1024)
		return -1;
	for (int i = 0; i < 3; i++) {
		static const char *const form[] = { "%s%.*s/%s", "%s%.*s/.debug/%s", "%s%.*s/%s" };

		snprintf(path, sizeof(path), form[i], i == 2 ? "usr/lib/debug" : ".", dir, o->path,
			 link);
		fd = open_debug(root, path, &o->st);
		if (fd >= 0)
			return fd;
	}
	return -1;
}

static bool crc_matches(int fd, uint32_t want)
{
	unsigned char buf[65536];
	uLong crc = crc32(0, NULL, 0);
	off_t at = 0;
	ssize_t n;

	while ((n = pread(fd, buf, sizeof(buf), at)) > 0) {
		crc = crc32(crc, buf, (uInt)n);
		at += n;
	}
	return !n && crc == want;
}

static int find_debuginfo(Dwfl_Module *mod, void **userdata, const char *name, Dwarf_Addr base,
			  const char *file, const char *link, GElf_Word crc, char **debug_file)
{
	struct object *o = *userdata;
	const char *urls = getenv("DEBUGINFOD_URLS");
	int ours = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), fd = -1;

	*debug_file = NULL;
	for (int i = 0; i < 2 && fd < 0; i++) {
		int root = i ? ours : o->root;
		bool by_id;

		fd = root >= 0 ? find_below(o, root, mod, link, &by_id) : -1;
		if (fd >= 0 && !by_id && !crc_matches(fd, crc)) {
			close(fd);
			fd = -1;
		}
	}
	if (ours >= 0)
		close(ours);
	/* libdw loads libdebuginfod with dlopen(), which a static program (one without an
	 * interpreter) cannot do safely */
	if (fd < 0 && urls && *urls && !o->image && getauxval(AT_BASE))
		fd = dwfl_standard_find_debuginfo(mod, userdata, name, base, file, NULL, 0,
						  debug_file);
	return fd;
}

static bool has_build_id(Dwarf *dwarf, const void *want, ssize_t n)
{
	const void *id;

	return dwelf_elf_gnu_build_id(dwarf_getelf(dwarf), &id) == n &&
	       !memcmp(id, want, (size_t)n);
}

/* libdw would open any path that the file names, whatever is there. */
bool object_find_alt(struct object *o, Dwarf *dwarf)
{
	const char *name;
	const void *id;
	ssize_t n = dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &id);
	int ours = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), fd = -1;
	const int roots[] = { o->root, ours };
	char path[128];

	for (int i = 0; n > 0 && i < 4 && fd < 0; i++) {
		bool by_id = i < 2 && path_of_id(path, sizeof(path), id, (int)n);

		if (roots[i % 2] >= 0 && (by_id || (i >= 2 && *name == '/')))
			fd = open_debug(roots[i % 2], by_id ? path : name, &o->st);
	}
	if (ours >= 0)
		close(ours);
	if (fd < 0)
		return !n;
	o->alt = dwarf_begin(fd, DWARF_C_READ);
	if (o->alt && has_build_id(o->alt, id, n)) {
		o->alt_fd = fd;
		dwarf_setalt(dwarf, o->alt);
		return true;
	}
	dwarf_end(o->alt);
	o->alt = NULL;
	close(fd);
	return false;
}

static const Dwfl_Callbacks callbacks = {
	.find_elf = find_elf,
	.find_debuginfo = find_debuginfo,
	.section_address = dwfl_offline_section_address,
};

/* libdwfl puts the first segment at the module's beginning. If the module is reported at that
 * address, no address changes. */
static Dwfl_Module *report(struct object *o)
{
	uint64_t begin = UINT64_MAX, end = 0;
	Dwfl_Module *mod;
	void **userdata;

	for (int i = 0; i < o->elf.nphdr; i++) {
		const Elf64_Phdr *p = &o->elf.phdr[i];
		uint64_t align = p->p_align > 1 && !(p->p_align & (p->p_align - 1)) ? p->p_align
										    : 1;

		if (p->p_type != PT_LOAD)
			continue;
		if (p->p_vaddr + p->p_memsz < p->p_vaddr)
			return NULL;
		if (begin == UINT64_MAX)
			begin = p->p_vaddr & -align;
		if (p->p_vaddr + p->p_memsz > end)
			end = p->p_vaddr + p->p_memsz;
	}
	if (begin >= end)
		return NULL;
	o->dwfl = dwfl_begin(&callbacks);
	if (!o->dwfl)
		return NULL;
	dwfl_report_begin(o->dwfl);
	mod = dwfl_report_module(o->dwfl, o->path, begin, end);
	if (dwfl_report_end(o->dwfl, NULL, NULL) || !mod)
		return NULL;
	dwfl_module_info(mod, &userdata, NULL, NULL, NULL, NULL, NULL, NULL);
	*userdata = o;
	return mod;
}

struct Dwfl_Module *object_module(struct object *o)
{
	GElf_Addr bias;

	if (o->opened)
		return o->module;
	o->opened = true;
	if (!check(o) || o->unaffordable)
		return NULL;
	o->module = report(o);
	if (o->module && (!dwfl_module_getelf(o->module, &bias) || bias))
		o->module = NULL;
	if (!o->module)
		object_complain(o, "libelf cannot read it");
	return o->module;
}
