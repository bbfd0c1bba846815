/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_nccl.c - communicators of NCCL: where debug information says that they have their members
 * (that of this very program, and of a real libnccl where one is installed), what is read of them
 * from memory that is damaged or hostile, who is absent, and the files of `stuck --merge`.
 */
#include "../../user/nccl/nccl_cache.h"
#include "../../user/nccl/nccl_find.h"
#include "../../user/nccl/nccl_group.h"
#include "../../user/proc/target.h"
#include "../../user/util/now.h"
#include "../standin/nccl_funcs.h"
#include "unit.h"

#include <errno.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <glob.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECONDS 1000000000ULL

/* The struct of a libnccl, in the debug information of this program. */
struct ncclComm {
	uint64_t startMagic;
	char channels[3000];
	struct {
		int rank; /* must not be taken for the one below */
	} shared;
	uint64_t commHash;
	const volatile int32_t rank;
	int nRanks, cudaDev;
	unsigned int flag : 1;
	struct ncclComm *next;
	double bandwidth[2][3];
	char tail[900];
	uint64_t seqNumber[ncclFuncSendRecv];
	ncclFunc_t last;
	uint64_t endMagic;
};

static struct ncclComm comms[3]; /* of processes that are made up */

static void make_comm(struct ncclComm *c, int rank, int nranks, uint64_t reduces)
{
	memset(c, 0, sizeof(*c));
	c->startMagic = c->endMagic = NCCL_MAGIC;
	c->commHash = 0xabcdef;
	*(int32_t *)(uintptr_t)&c->rank = rank;
	c->nRanks = nranks;
	c->cudaDev = 7;
	c->seqNumber[ncclFuncAllReduce] = reduces;
	c->seqNumber[ncclFuncBroadcast] = 1;
}

/* ---- layouts ---- */

static void own_layout(struct nccl_layout *l)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	CHECK_EQ(0, nccl_layout_read(l, fd, now_ns() + 60 * SECONDS));
	close(fd);
}

static void test_layout(void)
{
	static const struct {
		enum nccl_member_of_comm which;
		uint64_t offset;
		uint32_t size, n;
	} want[] = {
		{ NCCL_START_MAGIC, 0, 8, 1 },
		{ NCCL_END_MAGIC, offsetof(struct ncclComm, endMagic), 8, 1 },
		{ NCCL_HASH, offsetof(struct ncclComm, commHash), 8, 1 },
		{ NCCL_RANK, offsetof(struct ncclComm, rank), 4, 1 },
		{ NCCL_NRANKS, offsetof(struct ncclComm, nRanks), 4, 1 },
		{ NCCL_DEVICE, offsetof(struct ncclComm, cudaDev), 4, 1 },
		{ NCCL_SEQ, offsetof(struct ncclComm, seqNumber), 8, 5 },
	};
	struct nccl_layout l;

	own_layout(&l);
	CHECK_EQ(sizeof(struct ncclComm), l.bytes);
	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		const struct dwarf_member *m = &l.members[want[i].which];

		CASE_ROW("%s", m->name);
		CHECK(m->known);
		CHECK_EQ(want[i].offset, m->offset);
		CHECK_EQ(want[i].size, m->size);
		CHECK_EQ(want[i].n, m->n);
	}
	CHECK_TEXT("Broadcast", l.kinds[0]);
	CHECK_TEXT("AllReduce", l.kinds[4]);
	CHECK_TEXT("", l.kinds[6]); /* ncclNumFuncs */
}

/* Members of other types than those that can be read are not there. */
/* ---- layouts that are kept ---- */

/* The only file in a folder. */
static void kept_path(const char *folder, char *path, size_t size)
{
	char pattern[256];
	glob_t found;

	snprintf(pattern, sizeof(pattern), "%s/nccl-*", folder);
	CHECK_EQ(0, glob(pattern, 0, NULL, &found));
	CHECK_EQ(1, found.gl_pathc);
	snprintf(path, size, "%s", found.gl_pathv[0]);
	globfree(&found);
}

/* Its last word is the sum of all bytes before. */
static void seal(uint8_t *bytes, size_t n)
{
	uint64_t h = 0xcbf29ce484222325ULL;

	for (size_t i = 0; i < n - 8; i++)
		h = (h ^ bytes[i]) * 0x100000001b3ULL;
	memcpy(bytes + n - 8, &h, 8);
}

static size_t slurp(const char *path, uint8_t *bytes, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, bytes, size);

	CHECK(fd >= 0 && n > 8);
	close(fd);
	return (size_t)n;
}

static void spill(const char *path, const uint8_t *bytes, size_t n)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	CHECK(fd >= 0 && write(fd, bytes, n) == (ssize_t)n);
	close(fd);
}

static void test_kept_layout(void)
{
	char folder[] = "/tmp/test_nccl.XXXXXX", path[512], other[600];
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct nccl_key key, wrong;
	struct nccl_layout l, got;
	uint8_t bytes[4096], bad[4096];
	size_t n, taken = 0;

	CHECK(mkdtemp(folder));
	own_layout(&l);
	CHECK(nccl_key_of(fd, &key));
	CHECK(!nccl_key_of(-1, &wrong));
	close(fd);
	CHECK(!nccl_cache_load(folder, &key, &got));
	CHECK_EQ(0, nccl_cache_store(folder, &key, &l));
	CHECK(nccl_cache_load(folder, &key, &got));
	CHECK(!memcmp(&l, &got, sizeof(l)));
	kept_path(folder, path, sizeof(path));
	n = slurp(path, bytes, sizeof(bytes));

	/* another library: by its id, its size, its owner; nor if it has the name of this one */
	for (int i = 0; i < 3; i++) {
		wrong = key;
		if (i == 0)
			wrong.id[0] ^= 1;
		else if (i == 1)
			wrong.size++;
		else
			wrong.owner++;
		CHECK(!nccl_cache_load(folder, &wrong, &got));
		CHECK_EQ(0, nccl_cache_store(folder, &wrong, &l));
		CHECK_EQ(0, unlink(path));
		kept_path(folder, other, sizeof(other));
		CHECK_EQ(0, rename(other, path));
		CHECK(!nccl_cache_load(folder, &key, &got));
		spill(path, bytes, n);
		CHECK(nccl_cache_load(folder, &key, &got));
	}

	/* files that others may write to, or have made */
	CHECK_EQ(0, chmod(path, 0664));
	CHECK(!nccl_cache_load(folder, &key, &got));
	CHECK_EQ(0, chmod(path, 0646));
	CHECK(!nccl_cache_load(folder, &key, &got));
	CHECK_EQ(0, chmod(path, 0644));
	if (!geteuid()) {
		CHECK_EQ(0, chown(path, 65534, 0));
		CHECK(!nccl_cache_load(folder, &key, &got));
		CHECK_EQ(0, chown(path, 0, 0));
		CHECK_EQ(0, chown(folder, 65534, 0));
		CHECK(!nccl_cache_load(folder, &key, &got));
		CHECK_EQ(-EPERM, nccl_cache_store(folder, &key, &l));
		CHECK_EQ(0, chown(folder, 0, 0));
	}
	CHECK_EQ(0, chmod(folder, 0775));
	CHECK(!nccl_cache_load(folder, &key, &got));
	CHECK_EQ(-EPERM, nccl_cache_store(folder, &key, &l));
	CHECK_EQ(0, chmod(folder, 0755));
	CHECK(nccl_cache_load(folder, &key, &got));

	/* links, and what is no file */
	snprintf(other, sizeof(other), "%s.other", path);
	CHECK_EQ(0, link(path, other));
	CHECK(!nccl_cache_load(folder, &key, &got));
	CHECK_EQ(0, unlink(path));
	CHECK_EQ(0, symlink(other, path));
	CHECK(!nccl_cache_load(folder, &key, &got));
	CHECK_EQ(0, unlink(path));
	CHECK_EQ(0, mkfifo(path, 0644));
	CHECK(!nccl_cache_load(folder, &key, &got));
	/* what is written takes the place of all of these, and leaves what a link led to */
	CHECK_EQ(0, unlink(path));
	CHECK_EQ(0, symlink(other, path));
	CHECK_EQ(0, nccl_cache_store(folder, &key, &l));
	CHECK(nccl_cache_load(folder, &key, &got));
	CHECK_EQ(n, slurp(other, bad, sizeof(bad)));
	CHECK_EQ(0, unlink(other));

	/* cut off, too long, damaged */
	for (size_t len = 0; len < n; len += len < 16 ? 1 : 97) {
		spill(path, bytes, len);
		CHECK(!nccl_cache_load(folder, &key, &got));
	}
	memcpy(bad, bytes, n);
	bad[n] = 0;
	spill(path, bad, n + 1);
	CHECK(!nccl_cache_load(folder, &key, &got));
	for (size_t i = 0; i < n; i++) {
		memcpy(bad, bytes, n);
		bad[i] ^= 0x40;
		spill(path, bad, n);
		CHECK(!nccl_cache_load(folder, &key, &got));
		/* with the sum that belongs to it: what is believed is a layout that may be */
		seal(bad, n);
		spill(path, bad, n);
		if (!nccl_cache_load(folder, &key, &got))
			continue;
		taken++;
		CHECK(nccl_layout_check(&got));
		for (int m = 0; m < NCCL_MEMBER_END; m++)
			CHECK(!got.members[m].known ||
			      dwarf_member_fits(&got.members[m], got.bytes));
	}
	CHECK(taken && taken < n);
	CHECK_EQ(0, unlink(path));
	CHECK_EQ(0, rmdir(folder));
}

static void test_layout_types(void)
{
	struct dwarf_member m[] = { { .name = "flag" },	    { .name = "bandwidth" },
				    { .name = "shared" },   { .name = "nothing" },
				    { .name = "channels" }, { .name = "next" },
				    { .name = "last" } };
	struct dwarf_wanted want = { .structure = "ncclComm", .members = m, .nmembers = 7 };
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	CHECK_EQ(0, dwarf_layout(fd, &want, now_ns() + 60 * SECONDS));
	for (int i = 0; i < 4; i++) {
		CASE_ROW("%s", m[i].name);
		CHECK(!m[i].known);
		CHECK_EQ(0, m[i].size);
	}
	CASE_ROW("the others");
	CHECK_EQ(3000, m[4].n);
	CHECK_EQ(8, m[5].size);
	CHECK_EQ(offsetof(struct ncclComm, last), m[6].offset);
	want.structure = "thereIsNoSuchStruct";
	CHECK_EQ(-ENOENT, dwarf_layout(fd, &want, now_ns() + 60 * SECONDS));
	CHECK_EQ(-ETIME, dwarf_layout(fd, &want, 0));
	close(fd);
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	CHECK(dwarf_layout(fd, &want, now_ns() + 60 * SECONDS) < 0);
	close(fd);
	CHECK_EQ(-ENOEXEC, dwarf_layout(-1, &want, now_ns() + 60 * SECONDS));
}

/* A struct of 8 bytes, and an enumeration whose last name has the end that is given; nothing follows it in the
 * section. Abbreviation 5 is a struct whose name is in .debug_str. And what else the file has. */
static int made_file(const char *end, const char *more)
{
	static const char text[] =
		".section .debug_abbrev\n"
		".byte 1,0x11,1,0,0, 2,0x13,0,3,8,0xb,0xb,0,0, 3,4,1,0,0, "
		"4,0x28,0,0x1c,0xb,3,8,0,0, 5,0x13,0,3,0xe,0xb,0xb,0,0, 0\n"
		".section .debug_info\n"
		".long 2f-1f\n1: .short 4\n.long 0\n.byte 8, 1, 2\n.asciz \"s\"\n.byte 8, 3, 4, 1\n"
		".ascii \"ONE\"\n%s\n2:\n%s\n";
	char source[] = "/tmp/ct-nccl-XXXXXX", command[128];
	int fd = mkstemp(source);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");

	if (!CHECK(f && fprintf(f, text, end, more) > 0 && !fclose(f)))
		return -1;
	snprintf(command, sizeof(command), "as -o %s.o %s", source, source);
	CHECK(!system(command));
	unlink(source);
	snprintf(command, sizeof(command), "%s.o", source);
	fd = open(command, O_RDONLY | O_CLOEXEC);
	unlink(command);
	return fd;
}

/* A name without an end is none: what lies behind the section is not read. Nor is another file that the
 * debug information names. */
static void test_layout_hostile(void)
{
	static const struct {
		const char *what, *structure, *end, *more, *name;
		int err;
	} rows[] = {
		{ "whole", "s", ".byte 0,0,0", "", "ONE", 0 },
		{ "no end", "s", "", "", "", 0 },
		{ "another file", "s", ".byte 0,0,0",
		  ".section .gnu_debugaltlink\n.asciz \"/etc/passwd\"\n.quad 1,2", "", -ENODATA },
		{ "texts", "s", ".byte 0,0,0", ".section .debug_str\n.asciz \"ab\"", "ONE", 0 },
		{ "texts without an end", "s", ".byte 0,0,0", ".section .debug_str\n.ascii \"ab\"",
		  "", -ENODATA },
		{ "texts of lines without an end", "s", ".byte 0,0,0",
		  ".section .debug_line_str\n.ascii \"ab\"", "", -ENODATA },
		{ "a name among the texts", "b", ".byte 0,0,5\n.long 1\n.byte 8,0",
		  ".section .debug_str\n.asciz \"ab\"", "ONE", 0 },
		{ "a name behind the texts", "b", ".byte 0,0,5\n.long 3\n.byte 8,0",
		  ".section .debug_str\n.asciz \"ab\"", "", -ENOENT },
		{ "a name without texts", "b", ".byte 0,0,5\n.long 1\n.byte 8,0", "", "", -ENOENT },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char names[2][DWARF_NAME_BYTES] = { "", "" };
		struct dwarf_wanted want = { .structure = rows[i].structure,
					     .enumerator = "ONE",
					     .names = names,
					     .nnames = 2 };
		int fd = made_file(rows[i].end, rows[i].more);

		CASE_ROW("%s", rows[i].what);
		CHECK_EQ(rows[i].err, dwarf_layout(fd, &want, now_ns() + 60 * SECONDS));
		CHECK_TEXT(rows[i].name, names[1]);
		close(fd);
	}
}

/* Offsets of NCCL 2.28.9 for CUDA 13, as a debugger shows them in that file. */
static void test_real_layout(void)
{
	static const uint8_t id[] = { 0x9f, 0xcf, 0x74, 0xd9, 0x3a, 0x8c, 0x36, 0x05, 0xbf, 0x77,
				      0x18, 0xf5, 0x94, 0xd0, 0xa2, 0x43, 0x66, 0xe3, 0x85, 0x36 };
	uint8_t head[4096];
	struct nccl_layout l;
	glob_t g;
	int fd;

	if (glob("/usr/local/cuda*/lib*/libnccl.so.2", 0, NULL, &g)) {
		printf("skipped: no libnccl.so.2 in a CUDA toolkit\n");
		return;
	}
	fd = open(g.gl_pathv[0], O_RDONLY | O_CLOEXEC);
	globfree(&g);
	if (fd < 0 || pread(fd, head, sizeof(head), 0) != sizeof(head) ||
	    !memmem(head, sizeof(head), id, sizeof(id))) {
		printf("skipped: libnccl.so.2 is of another release\n");
		close(fd);
		return;
	}
	CHECK_EQ(0, nccl_layout_read(&l, fd, now_ns() + 60 * SECONDS));
	close(fd);
	CHECK_EQ(0, l.members[NCCL_START_MAGIC].offset);
	CHECK_EQ(0x1044c8, l.members[NCCL_HASH].offset);
	CHECK_EQ(0x1044d0, l.members[NCCL_RANK].offset);
	CHECK_EQ(0x1044d4, l.members[NCCL_NRANKS].offset);
	CHECK_EQ(0x106a10, l.members[NCCL_SEQ].offset);
	CHECK_EQ(5, l.members[NCCL_SEQ].n);
	CHECK_EQ(1082968, l.bytes);
	CHECK_TEXT("ReduceScatter", l.kinds[3]);
	CHECK_EQ(0xb72dc48, l.list);
	CHECK_EQ(0xb72dc44, l.nlist);
}

/* ---- memory ---- */

static int read_own(void *ctx, uint64_t addr, void *buf, size_t len)
{
	const struct {
		const char *begin, *end;
	} *range = ctx;
	const char *at = (const char *)(uintptr_t)addr;

	if (at < range->begin || at > range->end || len > (size_t)(range->end - at))
		return -EFAULT;
	memcpy(buf, at, len);
	return 0;
}

struct range {
	const char *begin, *end;
};

static void test_comm(void)
{
	struct range all = { (char *)comms, (char *)(comms + 3) };
	struct nccl_layout l;
	struct nccl_comm c;

	own_layout(&l);
	make_comm(&comms[0], 2, 4, 1042);
	CHECK_EQ(0, nccl_comm_read(&l, (uintptr_t)comms, read_own, &all, &c));
	CHECK_EQ(0xabcdef, c.hash);
	CHECK_EQ(2, c.rank);
	CHECK_EQ(4, c.nranks);
	CHECK_EQ(7, c.device);
	CHECK_EQ(5, c.ncounts);
	CHECK_TEXT("AllReduce", c.counts[4].kind);
	CHECK_EQ(1042, c.counts[4].n);
}

/* A wrong number is never shown: where a word is not what it must be, nothing or "not known" is. */
static void test_hostile_comm(void)
{
	struct range all = { (char *)comms, (char *)(comms + 1) }, cut = all;
	struct nccl_layout l, other;
	struct nccl_comm c;

	own_layout(&l);
	make_comm(&comms[0], 2, 4, 1042);
	comms[0].startMagic++;
	CHECK_EQ(-EINVAL, nccl_comm_read(&l, (uintptr_t)comms, read_own, &all, &c));
	make_comm(&comms[0], 2, 4, 1042);
	comms[0].endMagic = 0;
	CHECK_EQ(-EINVAL, nccl_comm_read(&l, (uintptr_t)comms, read_own, &all, &c));
	make_comm(&comms[0], 4, 4, 1042); /* no rank of four */
	CHECK_EQ(0, nccl_comm_read(&l, (uintptr_t)comms, read_own, &all, &c));
	CHECK_EQ(-1, c.rank);
	CHECK_EQ(-1, c.nranks);
	make_comm(&comms[0], -1, 4, 1042);
	CHECK_EQ(0, nccl_comm_read(&l, (uintptr_t)comms, read_own, &all, &c));
	CHECK_EQ(-1, c.rank);
	make_comm(&comms[0], 2, INT32_MAX, 1042);
	CHECK_EQ(0, nccl_comm_read(&l, (uintptr_t)comms, read_own, &all, &c));
	CHECK_EQ(-1, c.rank);
	make_comm(&comms[0], 2, 4, 1042);
	comms[0].cudaDev = -5;
	CHECK_EQ(0, nccl_comm_read(&l, (uintptr_t)comms, read_own, &all, &c));
	CHECK_EQ(2, c.rank);
	CHECK_EQ(-1, c.device);
	make_comm(&comms[0], 2, 4, 1042);
	CHECK_EQ(-EINVAL, nccl_comm_read(&l, (uintptr_t)comms + 4, read_own, &all, &c));
	CHECK_EQ(-EFAULT, nccl_comm_read(&l, UINT64_MAX - 7, read_own, &all, &c));
	cut.end -= 16;
	CHECK_EQ(-EFAULT, nccl_comm_read(&l, (uintptr_t)comms, read_own, &cut, &c));
	/* another release's layout: its end is elsewhere */
	other = l;
	other.members[NCCL_END_MAGIC].offset -= 8;
	CHECK_EQ(-EINVAL, nccl_comm_read(&other, (uintptr_t)comms, read_own, &all, &c));
	comms[0].commHash = 0;
	CHECK_EQ(-EINVAL, nccl_comm_read(&l, (uintptr_t)comms, read_own, &all, &c));
}

static struct {
	uint64_t before;
	uint64_t *list;
	int32_t n;
	uint64_t items[4];
} listed;

static void test_list(void)
{
	static const struct {
		int32_t n;
		int want;
	} rows[] = { { 3, 3 }, { 0, 0 }, { -1, 0 }, { 5, 4 }, { 65537, 0 }, { INT32_MIN, 0 } };
	struct range all = { (char *)&listed, (char *)(&listed + 1) };
	struct nccl_layout l = { .list = offsetof(typeof(listed), list),
				 .nlist = offsetof(typeof(listed), n) };
	uint64_t list[4];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CASE_ROW("%d", rows[i].n);
		listed.list = listed.items;
		listed.n = rows[i].n;
		CHECK_EQ(rows[i].want,
			 nccl_list_read(&l, (uintptr_t)&listed, read_own, &all, list, 4));
	}
	CASE_ROW("a list elsewhere");
	listed.n = 3;
	listed.list = (uint64_t *)64;
	CHECK_EQ(-EFAULT, nccl_list_read(&l, (uintptr_t)&listed, read_own, &all, list, 4));
	listed.list = NULL;
	CHECK_EQ(0, nccl_list_read(&l, (uintptr_t)&listed, read_own, &all, list, 4));
	l.list = 0;
	CHECK_EQ(0, nccl_list_read(&l, 0, read_own, &all, list, 4));
}

/* A communicator of this process, which has the stand-in's libnccl. */
static void test_find_at(void)
{
	void *library = dlopen(".output/standin/libnccl.so.2", RTLD_NOW);
	int (*init)(void **, int, const void *) =
		library ? (int (*)(void **, int, const void *))dlsym(library, "ncclCommInitAll")
			: NULL;
	int (*destroy)(void *) = library ? (int (*)(void *))dlsym(library, "ncclCommDestroy")
					 : NULL;
	struct nccl_finder *f = nccl_finder_open();
	void *made[3] = { NULL };
	struct nccl_comm c = { 0 };
	struct target *t;
	uint64_t hash;
	int err;

	if (!init || !destroy) {
		printf("skipped: no .output/standin/libnccl.so.2: run make standin\n");
		nccl_finder_close(f);
		return;
	}
	CHECK_EQ(0, init(made, 3, NULL));
	CHECK_EQ(0, target_open(&t, getpid(), 0));
	/* who does not wait gets the layout later */
	do {
		err = nccl_find_at(f, t, (uintptr_t)made[2], 0, &c);
	} while (err == -EAGAIN);
	CHECK_EQ(0, err);
	CHECK_EQ(2, c.rank);
	CHECK_EQ(3, c.nranks);
	hash = c.hash;
	CHECK_EQ(0, nccl_find_at(f, t, (uintptr_t)made[0], 1000, &c));
	CHECK_EQ(0, c.rank);
	CHECK(hash && c.hash == hash);
	CHECK(nccl_find_at(f, t, (uintptr_t)made, 1000, &c) < 0);
	CHECK(nccl_find_at(f, t, (uintptr_t)made[0] + 8, 1000, &c) < 0);
	CHECK(nccl_find_at(f, t, 0, 1000, &c) < 0);
	CHECK(nccl_find_at(f, t, UINT64_MAX - 7, 1000, &c) < 0);
	destroy(made[1]);
	CHECK_EQ(-EINVAL, nccl_find_at(f, t, (uintptr_t)made[1], 1000, &c));
	nccl_finder_close(f);
	/* closed while the layout is being read */
	f = nccl_finder_open();
	nccl_find_at(f, t, (uintptr_t)made[2], 0, &c);
	nccl_finder_close(f);
	target_close(t);
}

/* The search of a process's memory: of our own. */
static void test_search(void)
{
	size_t len = 8u << 20;
	uint64_t word = 0x1122334455667788ULL ^ (uint64_t)getpid(), found[3], at;
	char *mem = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t begin = (uintptr_t)mem, end = begin + len;
	struct target *t;
	int n, steps = 0;

	CHECK_EQ(0, target_open(&t, getpid(), 0));
	memcpy(mem + 8, &word, 8);
	memcpy(mem + (3u << 20), &word, 8);
	memcpy(mem + (5u << 20) + 4, &word, 8); /* not where a word lies */
	memcpy(mem + len - 8, &word, 8);
	for (at = begin, n = 0; at < end && steps++ < 1000;) {
		int more = target_find_word(t, &at, end, word, found, 1);

		if (!CHECK(more >= 0 && more <= 1))
			break;
		if (more && n < 3)
			CHECK_EQ(begin + (n == 0 ? 8 : n == 1 ? 3u << 20 : len - 8), found[0]);
		n += more;
	}
	CHECK_EQ(3, n);
	at = begin + 16;
	CHECK_EQ(1, target_find_word(t, &at, begin + (3u << 20) + 8, word, found, 3));
	at = begin + 16;
	CHECK_EQ(0, target_find_word(t, &at, begin + (3u << 20), word, found, 3));
	CHECK_EQ(begin + (3u << 20), at);
	/* what was not touched stays so */
	munmap(mem, len);
	at = begin;
	CHECK_EQ(0, target_find_word(t, &at, end, word, found, 3));
	target_close(t);
}

/* ---- the communicators of other processes ---- */

static char found_dir[] = "/tmp/test_nccl.XXXXXX";

/* A program with communicators (prog/nccl_comms.c), and what it is told and answers. */
struct holder {
	pid_t pid;
	FILE *in, *out;
};

static bool answers(struct holder *h)
{
	char line[16] = "";

	return CHECK(fgets(line, sizeof(line), h->out)) && !strcmp(line, "ready\n");
}

static bool tell(struct holder *h, const char *what)
{
	return CHECK(fputs(what, h->in) >= 0 && !fflush(h->in)) && answers(h);
}

static bool hold(struct holder *h, const char *library, const char *number, const char *how)
{
	char program[64], path[1024];
	int in[2], out[2];

	snprintf(program, sizeof(program), "%s/program", found_dir);
	snprintf(path, sizeof(path), "%s/%s/libnccl.so.2", found_dir, library);
	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
		abort();
	h->pid = fork();
	if (!h->pid) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		execl(program, "nccl_program_of_the_test", path, number, how, (char *)NULL);
		_exit(9);
	}
	close(in[0]);
	close(out[1]);
	h->in = fdopen(in[1], "w");
	h->out = fdopen(out[0], "r");
	return answers(h);
}

static void let_go(struct holder *h)
{
	fclose(h->in);
	fclose(h->out);
	CHECK_EQ(h->pid, waitpid(h->pid, NULL, 0));
}

/* The program, and a libnccl in each of these folders. */
static bool build_holders(void)
{
	static const struct {
		const char *folder, *how;
	} rows[] = {
		{ "list", "-g -DLIST" },
		{ "search", "-g" },
		{ "other", "-g -DSTRUCT=other" },
		{ "plain", "-s" },
	};
	char command[512];

	if (!mkdtemp(found_dir))
		abort();
	snprintf(command, sizeof(command), "cc -o %s/program tests/unit/prog/nccl_comms.c -ldl",
		 found_dir);
	for (size_t i = 0; i <= ARRAY_LEN(rows); i++) {
		if (system(command)) {
			printf("skipped: there is no compiler\n");
			return false;
		}
		if (i < ARRAY_LEN(rows))
			snprintf(command, sizeof(command),
				 "mkdir %s/%s && cc -shared -fPIC -DLIBRARY %s -o "
				 "%s/%s/libnccl.so.2 tests/unit/prog/nccl_comms.c",
				 found_dir, rows[i].folder, rows[i].how, found_dir, rows[i].folder);
	}
	return true;
}

/* How many communicators a process has, and how they were found. */
static void test_found(void)
{
	static const struct {
		const char *library, *number, *how;
		int n;
		bool searched, cut;
		const char *why;
	} rows[] = {
		{ "list", "3", "list", 3, false, false, NULL },
		{ "list", "3", "gaps", 3, false, false, NULL },
		{ "list", "1024", "list", 1024, false, false, NULL },
		{ "list", "1025", "list", 1024, false, true, NULL },
		/* what is not in the list is searched for only if the list has nothing */
		{ "list", "3", "", 3, true, false, NULL },
		{ "search", "3", "", 3, true, false, NULL },
		{ "search", "200", "", 200, true, false, NULL },
		{ "search", "0", "", 0, true, false, NULL },
		{ "search", "2", "stray", 2, true, false, NULL },
		{ "search", "3", "constant", 0, true, false, NULL },
		{ "search", "1024", "", 1024, true, false, NULL },
		{ "search", "1025", "", 1024, true, true, NULL },
		{ "plain", "3", "", 0, false, false,
		  "the library has no debug information, which says where they have their rank" },
		{ "other", "3", "", 0, false, false,
		  "the library's debug information does not describe them" },
	};
	struct nccl_finder *f = nccl_finder_open();

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct nccl_process p;
		struct holder h;
		char path[128];
		bool seen[1024] = { false };

		CASE_ROW("%s %s %s", rows[i].library, rows[i].number, rows[i].how);
		if (!CHECK(hold(&h, rows[i].library, rows[i].number, rows[i].how)))
			continue;
		CHECK_EQ(1, nccl_find(f, h.pid, &p));
		let_go(&h);
		CHECK_EQ(h.pid, p.pid);
		CHECK_TEXT("program", p.comm);
		snprintf(path, sizeof(path), "%s/%s/libnccl.so.2", found_dir, rows[i].library);
		CHECK_TEXT(path, p.library);
		CHECK_TEXT(rows[i].why, p.why);
		CHECK_EQ(rows[i].searched, p.searched);
		CHECK_EQ(rows[i].cut, p.cut);
		CHECK_EQ(rows[i].n, p.ncomms);
		/* each once, with what it has */
		for (int k = 0; k < p.ncomms; k++) {
			const struct nccl_comm *c = &p.comms[k];

			if (!CHECK(c->rank >= 0 && c->rank < 1024 && !seen[c->rank]))
				break;
			seen[c->rank] = true;
			CHECK(c->hash == 0x1000 && c->nranks == atoi(rows[i].number) &&
			      c->device == -1 && c->ncounts == 5 && c->counts[4].n == 40);
		}
		nccl_process_free(&p);
		CHECK(!p.comms && !p.ncomms);
	}
	nccl_finder_close(f);
	nccl_finder_close(NULL);
}

/* A communicator that was found is read again: it has gone on, is another one, is no more, its process is gone. */
static void test_found_again(void)
{
	struct nccl_finder *f = nccl_finder_open();
	struct nccl_process p;
	struct nccl_comm now;
	struct holder h;

	if (!CHECK(hold(&h, "list", "1", "list")))
		return;
	CHECK_EQ(1, nccl_find(f, h.pid, &p));
	if (!CHECK_EQ(1, p.ncomms))
		return;
	CHECK_EQ(0, nccl_find_again(&p, &p.comms[0], &now));
	CHECK_EQ(40, now.counts[4].n);
	tell(&h, "begin\n");
	CHECK_EQ(0, nccl_find_again(&p, &p.comms[0], &now));
	CHECK_EQ(41, now.counts[4].n);
	tell(&h, "another\n");
	CHECK_EQ(-ESRCH, nccl_find_again(&p, &p.comms[0], &now));
	tell(&h, "destroy\n");
	CHECK_EQ(-EINVAL, nccl_find_again(&p, &p.comms[0], &now));
	let_go(&h);
	CHECK_EQ(-ESRCH, nccl_find_again(&p, &p.comms[0], &now));
	nccl_process_free(&p);
	CHECK_EQ(0, nccl_find(f, h.pid, &p));
	CHECK_EQ(0, nccl_find(f, getpid(), &p)); /* has no libnccl */
	nccl_finder_close(f);
}

/* This process has a file mapped as a library, from an offset of the file. */
static const char *why_of(struct nccl_finder *f, const char *path, off_t offset, int want)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *map = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, offset);
	struct nccl_process p;

	close(fd);
	if (!CHECK(map != MAP_FAILED))
		return "";
	CHECK_EQ(want, nccl_find(f, getpid(), &p));
	CHECK_EQ(0, p.ncomms);
	CHECK(want != 1 || strlen(path) < sizeof(p.library) ||
	      !strcmp(p.library, path + strlen(path) - sizeof(p.library) + 1));
	munmap(map, 4096);
	return p.why;
}

/* Files of which only the name is that of a library. */
static void test_found_files(void)
{
	static const char none[] = "the library has no debug information, which says where they "
				   "have their rank",
			  bad[] = "the library could not be read";
	struct nccl_finder *f = nccl_finder_open();
	char plain[128], path[1024], command[2400];
	size_t len;

	snprintf(plain, sizeof(plain), "%s/plain/libnccl.so.2", found_dir);
	CHECK_TEXT(none, why_of(f, plain, 0, 1));
	CHECK_TEXT(NULL, why_of(f, plain, 4096, 0)); /* not from its beginning */
	snprintf(path, sizeof(path), "%s/notlibnccl.so.2", found_dir);
	snprintf(command, sizeof(command), "cp %s %s", plain, path);
	CHECK(!system(command));
	CHECK_TEXT(NULL, why_of(f, path, 0, 0));
	/* the same file with something else in it */
	snprintf(path, sizeof(path), "%s/libnccl.so", found_dir);
	snprintf(command, sizeof(command), "head -c 5000 /dev/zero >%s", path);
	CHECK(!system(command));
	CHECK_TEXT(bad, why_of(f, path, 0, 1));
	snprintf(command, sizeof(command), "cat %s >%s", plain, path);
	CHECK(!system(command));
	CHECK_TEXT(none, why_of(f, path, 0, 1));
	/* a path that is longer than its place */
	len = (size_t)snprintf(path, sizeof(path), "%s/", found_dir);
	memset(path + len, 'd', 240);
	snprintf(path + len + 240, sizeof(path) - len - 240, "/libnccl.so.2");
	snprintf(command, sizeof(command), "mkdir %.*s && cp %s %s", (int)len + 240, path, plain,
		 path);
	CHECK(!system(command));
	CHECK_TEXT(none, why_of(f, path, 0, 1));
	/* four are known; of 16 the layout is kept, and those that are known stay so */
	for (int i = 4; i <= 16; i++) {
		CASE_ROW("library %d", i);
		snprintf(path, sizeof(path), "%s/libnccl.so.%d", found_dir, i);
		snprintf(command, sizeof(command), "cp %s %s", plain, path);
		CHECK(!system(command));
		CHECK_TEXT(i < 16 ? none : bad, why_of(f, path, 0, 1));
	}
	CHECK_TEXT(none, why_of(f, plain, 0, 1));
	nccl_finder_close(f);
}

/* A library that is mapped after the process was opened is found; one that says nothing is said to. */
static void test_find_at_later(void)
{
	struct nccl_finder *f = nccl_finder_open();
	const struct target_map *maps;
	struct nccl_comm c;
	struct target *t;
	char path[128];
	void *map;
	int fd;

	CHECK_EQ(0, target_open(&t, getpid(), 0));
	CHECK(target_maps(t, &maps) > 0);
	CHECK_EQ(-ENOENT, nccl_find_at(f, t, 4096, 60000, &c));
	snprintf(path, sizeof(path), "%s/plain/libnccl.so.2", found_dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	map = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	CHECK(map != MAP_FAILED);
	CHECK_EQ(-ENODATA, nccl_find_at(f, t, 4096, 60000, &c));
	munmap(map, 4096);
	target_close(t);
	nccl_finder_close(f);
}

/* ---- who is absent ---- */

static struct nccl_member *add(struct nccl_job *j, int rank, int nranks, uint64_t reduces,
			       uint64_t broadcasts)
{
	struct nccl_member *m = nccl_job_add(j);

	m->hash = 0x8f31;
	m->rank = rank;
	m->nranks = nranks;
	m->pid = 100 + (uint32_t)rank;
	m->still_ns = SECONDS;
	strcpy(m->comm, "python3");
	m->ncounts = 2;
	m->counts[0] = (struct nccl_count){ "Broadcast", broadcasts };
	m->counts[1] = (struct nccl_count){ "AllReduce", reduces };
	return m;
}

static char *printed(const struct nccl_job *j, bool json)
{
	int fd = memfd_create("out", MFD_CLOEXEC);
	char path[32];
	struct out o;

	CHECK_EQ(0, out_open_fd(&o, fd, "out"));
	if (json)
		nccl_job_json(j, &o);
	else
		nccl_job_print(j, &o);
	out_close(&o);
	snprintf(path, sizeof(path), "/dev/fd/%d", fd);
	lseek(fd, 0, SEEK_SET);
	{
		char *text = unit_read(path);

		close(fd);
		return text;
	}
}

static void check_printed(const struct nccl_job *j, const char *want)
{
	char *text = printed(j, false);

	CHECK_TEXT(want, text);
	free(text);
}

static void test_absent(void)
{
	struct nccl_job j = { 0 };

	add(&j, 3, 4, 1041, 1);
	add(&j, 1, 4, 1043, 1);
	add(&j, 0, 4, 1043, 1);
	add(&j, 2, 4, 1043, 1);
	nccl_job_sort(&j);
	CHECK_EQ(1, nccl_job_absent(&j));
	check_printed(&j,
		      "communicator 0x8f31 of 4 ranks: rank 3 has not arrived\n"
		      "  AllReduce #1042: rank 3 has not begun it (the last was #1041), ranks 0-2 "
		      "have\n"
		      "  rank 0: python3, PID 100\n"
		      "  rank 1: python3, PID 101\n"
		      "  rank 2: python3, PID 102\n"
		      "  rank 3, absent: python3, PID 103\n");
	/* one that goes on: they are not compared */
	j.members[1].still_ns = 0;
	CHECK_EQ(0, nccl_job_absent(&j));
	check_printed(&j, "");
	/* nor when they do not agree how many they are */
	j.members[1].still_ns = SECONDS;
	j.members[1].nranks = 5;
	CHECK_EQ(0, nccl_job_absent(&j));
	/* nor when one does not know its rank */
	j.members[1].nranks = 4;
	j.members[1].rank = -1;
	CHECK_EQ(0, nccl_job_absent(&j));
	check_printed(&j, "");
	j.members[1].nranks = -1;
	nccl_job_sort(&j);
	CHECK_EQ(0, nccl_job_absent(&j));
	check_printed(&j, "");
	nccl_job_free(&j);
}

/* Threads that do the same are one line: the first, and the numbers of the others. */
static void test_same_threads(void)
{
	static const struct {
		const char *name, *state, *wait, *frame;
	} rows[] = {
		{ "main", "sleeps", "pause", "load (a.py:1)" },
		{ "pool", "sleeps", "futex", "wait (b.py:2)" },
		{ "pool", "sleeps", "futex", "wait (b.py:3)" },
		{ "pool", "runs", "", "wait (b.py:2)" },
		{ "pool", "sleeps", "futex", NULL },
	};
	const int repeats[] = { 1, 20, 2, 1, 1 };
	struct nccl_job j = { 0 };
	struct nccl_member *m;

	add(&j, 0, 2, 5, 1);
	m = add(&j, 1, 2, 4, 1);
	m->threads = calloc(64, sizeof(*m->threads));
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (int k = 0; k < repeats[i]; k++) {
			struct nccl_thread *t = &m->threads[m->nthreads++];

			t->tid = 1000 + (uint32_t)m->nthreads;
			strcpy(t->name, rows[i].name);
			strcpy(t->state, rows[i].state);
			strcpy(t->wait, rows[i].wait);
			if (!rows[i].frame)
				continue;
			t->frames = calloc(1, sizeof(char *));
			t->frames[0] = strdup(rows[i].frame);
			t->nframes = 1;
		}
	nccl_job_sort(&j);
	check_printed(
		&j,
		"communicator 0x8f31 of 2 ranks: rank 1 has not arrived\n"
		"  AllReduce #5: rank 1 has not begun it (the last was #4), rank 0 has\n"
		"  rank 0: python3, PID 100\n"
		"  rank 1, absent: python3, PID 101\n"
		"    thread 1001 (main) sleeps in pause\n"
		"        load (a.py:1) [python]\n"
		"    thread 1002 (pool) sleeps in futex, and 19 others: 1003 1004 1005 1006 1007 "
		"1008 1009 1010 1011 1012 1013 1014 1015 1016 1017 1018 ...\n"
		"        wait (b.py:2) [python]\n"
		"    thread 1022 (pool) sleeps in futex, and 1 other: 1023\n"
		"        wait (b.py:3) [python]\n"
		"    thread 1024 (pool) runs\n"
		"        wait (b.py:2) [python]\n"
		"    thread 1025 (pool) sleeps in futex\n");
	nccl_job_free(&j);
}

/* If two reports are about one process, the later one counts; members of other hosts, starts and
 * communicators are others. */
static void test_order(void)
{
	struct nccl_job j = { 0 };
	struct nccl_member *m;
	int hosts = 0;

	for (uint64_t i = 0; i < 8; i++) {
		m = add(&j, 1, 4, i, 0);
		m->ts_ns = i % 2 ? 5 : 9;
		strcpy(m->host, i / 2 % 2 ? "b" : "a");
		strcpy(m->boot, i / 4 ? "later" : "first");
	}
	add(&j, 0, 4, 100, 0)->hash = 0x9000;
	add(&j, 1, 4, 101, 0)->pid = 7;
	add(&j, 0, 4, 102, 0);
	nccl_job_sort(&j);
	CHECK_EQ(7, j.n);
	CHECK_EQ(0, j.members[0].rank);
	CHECK_EQ(0x9000, j.members[6].hash);
	for (size_t i = 1; i < 6; i++) {
		hosts += !strcmp(j.members[i].host, "b");
		CHECK(j.members[i].pid == 7 || j.members[i].ts_ns == 9);
	}
	CHECK_EQ(2, hosts);
	nccl_job_free(&j);
}

/* On the same host the number of the process decides. A rank whose process does not say how many
 * calls it has begun is not compared. */
static void test_order_of_processes(void)
{
	struct nccl_job j = { 0 };
	struct nccl_member *m;

	add(&j, 0, 3, 9, 0)->pid = 30;
	add(&j, 0, 3, 9, 0)->pid = 20;
	add(&j, 0, 3, 9, 0)->pid = 25;
	add(&j, 1, 3, 9, 0);
	m = add(&j, 2, 3, 0, 0);
	m->ncounts = 1; /* broadcasts alone */
	nccl_job_sort(&j);
	if (CHECK_EQ(5, j.n)) {
		CHECK_EQ(20, j.members[0].pid);
		CHECK_EQ(25, j.members[1].pid);
		CHECK_EQ(30, j.members[2].pid);
	}
	CHECK_EQ(0, nccl_job_absent(&j));
	j.members[3].counts[1].n = 8;
	CHECK_EQ(1, nccl_job_absent(&j));
	j.members[4].counts[0].n = 1; /* and it alone has begun a broadcast */
	CHECK_EQ(4, nccl_job_absent(&j));
	nccl_job_free(&j);
}

/* No more members are taken than there is room for; nothing is absent of none. */
static void test_members_max(void)
{
	struct nccl_job j = { .merged = true };

	nccl_job_sort(&j);
	CHECK_EQ(0, nccl_job_absent(&j));
	for (int i = 0; i < NCCL_MEMBERS_MAX; i++)
		if (!nccl_job_add(&j))
			break;
	CHECK_EQ(NCCL_MEMBERS_MAX, j.n);
	CHECK(!nccl_job_add(&j));
	CHECK_EQ(NCCL_MEMBERS_MAX, j.n);
	nccl_job_free(&j);
	CHECK(!j.members && !j.n);
}

/* Ranks at several places, some of which have begun none, and one that was not seen. */
static void test_absent_several(void)
{
	struct nccl_job j = { .merged = true };

	add(&j, 0, 6, 9, 1);
	add(&j, 1, 6, 8, 1);
	add(&j, 2, 6, 0, 1);
	add(&j, 3, 6, 8, 1);
	add(&j, 5, 6, 9, 1);
	nccl_job_sort(&j);
	CHECK_EQ(4, nccl_job_absent(&j));
	check_printed(
		&j,
		"communicator 0x8f31 of 6 ranks: ranks 1-3 have not arrived\n"
		"  AllReduce #1: rank 2 has not begun it, nor any before, ranks 0-1,3,5 have\n"
		"  AllReduce #9: ranks 1,3 have not begun it (the last was #8), ranks 0,5 have\n"
		"  rank 4 has not been seen: in none of the files\n"
		"  rank 0: python3, PID 100\n"
		"  rank 1, absent: python3, PID 101\n"
		"  rank 2, absent: python3, PID 102\n"
		"  rank 3, absent: python3, PID 103\n"
		"  rank 5: python3, PID 105\n");
	nccl_job_free(&j);
}

/* ---- files ---- */

static int read_text(struct nccl_job *j, const char *text)
{
	int fd = memfd_create("in", MFD_CLOEXEC), err;

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		abort();
	lseek(fd, 0, SEEK_SET);
	err = nccl_job_read(j, fd, "in");
	close(fd);
	return err;
}

/* What is printed is read again as it was. */
static void test_round_trip(void)
{
	struct nccl_job j = { 0 }, again = { 0 };
	struct nccl_member *m = add(&j, 1, 2, UINT64_MAX, 0);
	char *first, *second;

	m->hash = UINT64_MAX;
	m->device = 3;
	strcpy(m->comm, "a\"\\\x01z");
	strcpy(m->host, "node-1");
	m->threads = calloc(1, sizeof(*m->threads));
	m->nthreads = 1;
	m->threads->tid = UINT32_MAX;
	strcpy(m->threads->name, "main");
	strcpy(m->threads->state, "sleeps");
	strcpy(m->threads->inside, "cudaStreamSynchronize");
	m->threads->frames = calloc(2, sizeof(char *));
	m->threads->frames[0] = strdup("f (\xc3\xa9.py:1)");
	m->threads->frames[1] = strdup("g");
	m->threads->nframes = 2;
	first = printed(&j, true);
	CHECK_EQ(0, read_text(&again, first));
	second = printed(&again, true);
	CHECK_TEXT(first, second);
	free(first);
	free(second);
	nccl_job_free(&j);
	nccl_job_free(&again);
}

#define LINE(rest) "{\"type\":\"communicator\"," rest "}\n"

static void test_hostile_files(void)
{
	static const struct {
		const char *text;
		int want;
		size_t n;
	} rows[] = {
		{ "", -ENOENT, 0 },
		{ "\n", -EBADMSG, 0 },
		{ "{\"type\":\"process\"}\n", 0, 0 },
		{ LINE("\"pid\":1"), -EBADMSG, 0 },
		{ LINE("\"hash\":\"0x0\",\"pid\":1"), -EBADMSG, 0 },
		{ LINE("\"hash\":\"8f31\",\"pid\":1"), -EBADMSG, 0 },
		{ LINE("\"hash\":\"0x8f31z\",\"pid\":1"), -EBADMSG, 0 },
		{ LINE("\"hash\":7,\"pid\":1"), -EBADMSG, 0 },
		{ LINE("\"hash\":\"0x8f31\",\"pid\":-1"), -EBADMSG, 0 },
		{ LINE("\"hash\":\"0x8f31\",\"pid\":4294967296"), -EBADMSG, 0 },
		{ LINE("\"hash\":\"0x8f31\",\"pid\":1"), 0, 1 },
		/* what is no number is not taken for one */
		{ LINE("\"hash\":\"0x8f31\",\"pid\":\"1\""), -EBADMSG, 0 },
		{ LINE("\"hash\":\"0x8f31\",\"pid\":1.5"), -EBADMSG, 0 },
		{ LINE("\"hash\":\"0x8f31\",\"pid\":1,\"rank\":true,\"ranks\":4"), 0, 1 },
		{ LINE("\"hash\":\"0x8f31\",\"pid\":1,\"rank\":7,\"ranks\":4"), 0, 1 },
		{ LINE("\"hash\":\"0x8f31\",\"pid\":1,\"rank\":7,\"ranks\":99999999"), 0, 1 },
		{ LINE("\"hash\":\"0x8f31\",\"pid\":1,\"begun\":[1],\"threads\":{}"), 0, 1 },
		{ LINE("\"hash\":\"0x8f31\",\"pid\":1,\"threads\":[1,{\"tid\":\"2\"},{\"tid\":2,"
		       "\"python\":[3,null]}]"),
		  0, 1 },
		{ LINE("\"hash\":\"0x8f31\",\"pid\":1,\"x\":[[[[[[[[[[]]]]]]]]]]"), -EBADMSG, 0 },
		{ LINE("\"hash\":\"0x8f31\",\"pid\":1,\"begun\":{\"a\\\"b\":1,\"\":2}"), 0, 1 },
		{ LINE("\"pid\":1,\"unknown\":\"no reason\""), 0, 0 },
		{ "{\"type\":\"communicator\",\"hash\":\"0x1\",", -EBADMSG, 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct nccl_job j = { .merged = true };

		CASE_ROW("%zu", i);
		CHECK_EQ(rows[i].want, read_text(&j, rows[i].text));
		CHECK_EQ(rows[i].n, j.n);
		for (size_t k = 0; k < j.n; k++) {
			CHECK_EQ(-1, j.members[k].rank);
			CHECK_EQ(0, j.members[k].ncounts);
		}
		nccl_job_sort(&j);
		CHECK_EQ(0, nccl_job_absent(&j));
		nccl_job_free(&j);
	}
}

/* A line that is too long, or of too many parts, is not taken apart. */
static void test_large_lines(void)
{
	size_t len = 3u << 20;
	char *text = malloc(len + 1);
	struct nccl_job j = { 0 };

	memset(text, ' ', len);
	memcpy(text, "{\"type\":\"communicator\",\"x\":\"", 28);
	text[len] = '\0';
	CHECK_EQ(-EBADMSG, read_text(&j, text));
	strcpy(text, "{\"type\":\"communicator\",\"hash\":\"0x1\",\"pid\":1,\"x\":[{}");
	for (int i = 0; i < 20000; i++)
		strcat(text + 40 + i * 3, ",{}");
	strcat(text + 60000, "]}\n");
	CHECK_EQ(-EBADMSG, read_text(&j, text));
	CHECK_EQ(0, j.n);
	free(text);
}

int main(void)
{
	char command[64];

	/* before this process has a libnccl */
	if (build_holders()) {
		RUN(test_found);
		RUN(test_found_again);
		RUN(test_found_files);
		RUN(test_find_at_later);
	}
	snprintf(command, sizeof(command), "rm -r %s", found_dir);
	CHECK(!system(command));
	RUN(test_layout);
	RUN(test_kept_layout);
	RUN(test_layout_types);
	RUN(test_layout_hostile);
	RUN(test_real_layout);
	RUN(test_comm);
	RUN(test_hostile_comm);
	RUN(test_list);
	RUN(test_search);
	RUN(test_find_at);
	RUN(test_absent);
	RUN(test_same_threads);
	RUN(test_absent_several);
	RUN(test_order);
	RUN(test_order_of_processes);
	RUN(test_members_max);
	RUN(test_round_trip);
	RUN(test_hostile_files);
	RUN(test_large_lines);
	return unit_end();
}
