/* SPDX-License-Identifier: BSD-2-Clause */
/* nccl_cache.c - see nccl_cache.h. */
#include "nccl_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "../proc/elf_read.h"
#include "../util/own_folder.h"

#define FOLDER "/run/cudatrace"
#define MAGIC "ncclComm 1\n"  /* another number for another struct kept */
#define NOTES_MAX (64u << 10) /* bytes of notes that are searched for a build id */
#define PATH_BYTES 512

/* A file. Whole numbers of this machine's order: it stays on it. */
struct kept {
	char magic[16];
	struct nccl_key key;
	uint64_t bytes, list, nlist;
	struct {
		uint64_t offset;
		uint32_t size, n, known, zero;
	} members[NCCL_MEMBER_END];
	char kinds[NCCL_KINDS][NCCL_KIND_BYTES];
	uint64_t check; /* of all before */
};

static uint64_t check_of(const struct kept *k)
{
	uint64_t h = 0xcbf29ce484222325ULL;

	for (const uint8_t *p = (const uint8_t *)k; p < (const uint8_t *)&k->check; p++)
		h = (h ^ *p) * 0x100000001b3ULL;
	return h;
}

/* ---- keys ---- */

static bool find_id(const uint8_t *notes, size_t len, struct nccl_key *key)
{
	Elf64_Nhdr n;

	for (size_t at = 0; len - at >= sizeof(n);) {
		size_t name = at + sizeof(n), desc, next;

		memcpy(&n, notes + at, sizeof(n));
		if (n.n_namesz > len || n.n_descsz > len)
			return false;
		desc = name + ((n.n_namesz + 3) & ~3u);
		next = desc + ((n.n_descsz + 3) & ~3u);
		if (desc > len || n.n_descsz > len - desc)
			return false;
		if (n.n_type == NT_GNU_BUILD_ID && n.n_namesz == 4 &&
		    !memcmp(notes + name, "GNU", 4)) {
			if (n.n_descsz < 8 || n.n_descsz > sizeof(key->id))
				return false;
			key->len = n.n_descsz;
			memcpy(key->id, notes + desc, n.n_descsz);
			return true;
		}
		if (next > len)
			return false;
		at = next;
	}
	return false;
}

bool nccl_key_of(int fd, struct nccl_key *key)
{
	struct elf_file f;
	struct statfs fs;
	struct stat st;
	bool found = false;

	memset(key, 0, sizeof(*key));
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || fstatfs(fd, &fs) ||
	    fs.f_type == FUSE_SUPER_MAGIC)
		return false;
	key->owner = st.st_uid;
	key->size = (uint64_t)st.st_size;
	if (!elf_file_open(&f, fd))
		for (int i = 0; i < f.nphdr && !found; i++) {
			const Elf64_Phdr *p = &f.phdr[i];
			uint8_t *notes = p->p_type == PT_NOTE && p->p_filesz <= NOTES_MAX
						 ? malloc(p->p_filesz + 1)
						 : NULL;

			found = notes && !elf_read(&f, notes, p->p_filesz, p->p_offset) &&
				find_id(notes, p->p_filesz, key);
			free(notes);
		}
	elf_file_close(&f);
	return found;
}

/* ---- files ---- */

const char *nccl_cache_folder(void)
{
	return geteuid() ? NULL : FOLDER;
}

static bool path_of(char path[PATH_BYTES], const char *folder, const struct nccl_key *key,
		    const char *end)
{
	char hex[2 * NCCL_ID_BYTES + 1];

	for (uint32_t i = 0; i < key->len; i++)
		snprintf(hex + 2 * i, 3, "%02x", key->id[i]);
	return snprintf(path, PATH_BYTES, "%s/nccl-%s-%llx-%u%s", folder, hex,
			(unsigned long long)key->size, key->owner, end) < PATH_BYTES;
}

static bool is_ours(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
	       !(st.st_mode & 022) && st.st_nlink == 1 && st.st_size == sizeof(struct kept);
}

static bool fill(struct nccl_layout *l, const struct kept *k)
{
	memset(l, 0, sizeof(*l));
	l->bytes = k->bytes;
	l->list = k->list;
	l->nlist = k->nlist;
	for (int i = 0; i < NCCL_MEMBER_END; i++) {
		l->members[i].known = k->members[i].known == 1;
		l->members[i].offset = k->members[i].offset;
		l->members[i].size = k->members[i].size;
		l->members[i].n = k->members[i].n;
	}
	memcpy(l->kinds, k->kinds, sizeof(l->kinds));
	return nccl_layout_check(l);
}

bool nccl_cache_load(const char *folder, const struct nccl_key *key, struct nccl_layout *l)
{
	char path[PATH_BYTES];
	struct kept k;
	bool good;
	int fd;

	if (own_folder(folder) || !path_of(path, folder, key, ""))
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return false;
	good = is_ours(fd) && pread(fd, &k, sizeof(k), 0) == sizeof(k) &&
	       !strncmp(k.magic, MAGIC, sizeof(k.magic)) && k.check == check_of(&k) &&
	       !memcmp(&k.key, key, sizeof(*key)) && fill(l, &k);
	close(fd);
	return good;
}

int nccl_cache_store(const char *folder, const struct nccl_key *key, const struct nccl_layout *l)
{
	char path[PATH_BYTES], made[PATH_BYTES], end[32];
	struct kept k;
	int fd, err = own_folder(folder);

	if (err)
		return err;
	snprintf(end, sizeof(end), ".%d", (int)getpid());
	if (!path_of(path, folder, key, "") || !path_of(made, folder, key, end))
		return -ENAMETOOLONG;
	memset(&k, 0, sizeof(k));
	strcpy(k.magic, MAGIC);
	k.key = *key;
	k.bytes = l->bytes;
	k.list = l->list;
	k.nlist = l->nlist;
	for (int i = 0; i < NCCL_MEMBER_END; i++) {
		k.members[i].known = l->members[i].known;
		k.members[i].offset = l->members[i].offset;
		k.members[i].size = l->members[i].size;
		k.members[i].n = l->members[i].n;
	}
	memcpy(k.kinds, l->kinds, sizeof(k.kinds));
	k.check = check_of(&k);
	unlink(made);
	fd = open(made, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0)
		return -errno;
	err = fchmod(fd, 0644) ? -errno : write(fd, &k, sizeof(k)) != (ssize_t)sizeof(k) ? -EIO : 0;
	close(fd);
	if (!err && rename(made, path))
		err = -errno;
	if (err)
		unlink(made);
	return err;
}
