/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * code_text.c - the mem and maps of /proc/thread-self, and membarrier().
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "code_text.h"

#define PAGE 4096ULL
#define PAGES 256 /* how many pages of each kind are kept */
#define WAYS 4	  /* in how many places a page may be kept */

/* Copies of pages, each in its place, and the range of bytes of each that must be written. */
struct pages {
	__u64 address[PAGES]; /* 0: none */
	__u16 lo[PAGES], hi[PAGES];
	__u8 (*bytes)[PAGE]; /* NULL: not needed yet, or there is no memory for them */
};

static int mem = -1;
static struct text_fds kept = { -1, -1 };
static struct pages looked; /* of the program's code */
static struct pages making; /* of our code, while it is being made */
static int unmade;	    /* 0, or the error of a write; it is never reset */

/* Returns the place in which the page is kept, or could be kept: a free place or, if there is none,
 * one whose page must go. The hash uses the upper bits, because many addresses where jumps land
 * differ only in these. */
static unsigned int code_text_place_of(const struct pages *p, __u64 address)
{
	unsigned int first = (unsigned int)(address / PAGE * 0x9e3779b97f4a7c15ULL >> 32) % PAGES &
			     ~(WAYS - 1U);
	unsigned int place = first + address / PAGE % WAYS;

	for (unsigned int i = first; i < first + WAYS; i++) {
		if (p->address[i] == address)
			return i;
		if (!p->address[i])
			place = i;
	}
	return place;
}

static void pages_free(struct pages *p)
{
	if (p->bytes)
		memset(p->address, 0, sizeof(p->address));
	free(p->bytes);
	p->bytes = NULL;
}

int text_open(void)
{
	/* not /proc/self: that is the main thread, which has no memory when it has ended before the others */
	mem = kept.mem >= 0 ? kept.mem : open("/proc/thread-self/mem", O_RDWR | O_CLOEXEC);
	return mem < 0 ? -errno : 0;
}

void text_keep(void)
{
	char any;

	text_let_go();
	kept.mem = open("/proc/thread-self/mem", O_RDWR | O_CLOEXEC);
	/* if possible those of the main thread: the calling thread may end before they are used last */
	kept.maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	if (kept.maps >= 0 && pread(kept.maps, &any, 1, 0) == 1)
		return;
	if (kept.maps >= 0)
		close(kept.maps);
	kept.maps = open("/proc/thread-self/maps", O_RDONLY | O_CLOEXEC);
}

void text_keep_these(struct text_fds fds)
{
	kept = fds;
}

struct text_fds text_kept(void)
{
	return kept;
}

void text_let_go(void)
{
	if (kept.mem >= 0)
		close(kept.mem);
	if (kept.maps >= 0)
		close(kept.maps);
	text_forget();
}

void text_forget(void)
{
	kept = (struct text_fds){ -1, -1 };
}

void text_close(void)
{
	text_made();
	pages_free(&looked);
	pages_free(&making);
	if (mem >= 0 && mem != kept.mem)
		close(mem);
	mem = -1;
}

/* By the calling thread's number: that of the process is the main thread's, which may have ended. Not in a
 * sandbox, where this system call may end the program. */
static ssize_t read_without_proc(__u64 address, void *bytes, size_t n)
{
	struct iovec here = { bytes, n }, there = { (void *)(uintptr_t)address, n };

	if (prctl(PR_GET_SECCOMP)) {
		errno = EPERM;
		return -1;
	}
	return syscall(SYS_process_vm_readv, syscall(SYS_gettid), &here, 1, &there, 1, 0);
}

int text_read(__u64 address, void *bytes, size_t n)
{
	ssize_t got = mem >= 0 ? pread(mem, bytes, n, (off_t)address)
			       : read_without_proc(address, bytes, n);

	return got == (ssize_t)n ? 0 : got < 0 ? -errno : -EIO;
}

static int code_text_put(__u64 address, const void *bytes, size_t n)
{
	ssize_t put = pwrite(mem, bytes, n, (off_t)address);

	return put == (ssize_t)n ? 0 : put < 0 ? -errno : -EIO;
}

/* Writes the changed bytes of the page in a place, and empties the place. Code that was there
 * before, and may be executed now, is written unchanged. */
static void page_write(struct pages *p, unsigned int i)
{
	unsigned int lo = p->lo[i], hi = p->hi[i];
	int err = hi > lo ? code_text_put(p->address[i] + lo, p->bytes[i] + lo, hi - lo) : 0;

	if (err)
		unmade = err;
	p->address[i] = p->lo[i] = p->hi[i] = 0;
}

/* Returns the place in which the page at this address is kept from now on, or PAGES if it cannot be
 * kept. */
static unsigned int page_get(struct pages *p, __u64 address)
{
	unsigned int i = code_text_place_of(p, address);

	if (!p->bytes)
		p->bytes = malloc(PAGES * PAGE);
	if (!p->bytes)
		return PAGES;
	if (p->address[i] == address)
		return i;
	page_write(p, i);
	if (text_read(address, p->bytes[i], PAGE))
		return PAGES;
	p->address[i] = address;
	p->lo[i] = PAGE;
	return i;
}

static size_t part_of_page(__u64 at, size_t rest)
{
	return rest < PAGE - at % PAGE ? rest : PAGE - at % PAGE;
}

int text_look(__u64 address, void *bytes, size_t n)
{
	for (size_t done = 0, part; done < n; done += part) {
		__u64 at = address + done;
		unsigned int i = page_get(&looked, at - at % PAGE);

		part = part_of_page(at, n - done);
		if (i == PAGES)
			return text_read(address, bytes, n);
		memcpy((__u8 *)bytes + done, looked.bytes[i] + at % PAGE, part);
	}
	return 0;
}

int text_write(__u64 address, const void *bytes, size_t n)
{
	for (__u64 at = address - address % PAGE; making.bytes && at < address + n; at += PAGE)
		if (making.address[code_text_place_of(&making, at)] == at)
			page_write(&making, code_text_place_of(&making, at));
	return code_text_put(address, bytes, n);
}

void text_make(__u64 address, const void *bytes, size_t n)
{
	for (size_t done = 0, part; done < n; done += part) {
		const __u8 *from = (const __u8 *)bytes + done;
		__u64 at = address + done;
		unsigned int i = page_get(&making, at - at % PAGE), lo = at % PAGE;
		int err;

		part = part_of_page(at, n - done);
		if (i == PAGES) {
			err = code_text_put(at, from, part);
			unmade = err ? err : unmade;
			continue;
		}
		memcpy(making.bytes[i] + lo, from, part);
		if (lo < making.lo[i])
			making.lo[i] = (__u16)lo;
		if (lo + part > making.hi[i])
			making.hi[i] = (__u16)(lo + part);
	}
}

int text_made(void)
{
	for (unsigned int i = 0; making.bytes && i < PAGES; i++)
		page_write(&making, i);
	return unmade;
}

int text_swap(__u64 address, __u8 was, __u8 to, __u8 *found)
{
	int err = text_read(address, found, 1);

	if (err)
		return err;
	return *found == was ? text_write(address, &to, 1) : 1;
}

void text_sync(void)
{
	static int process;
	/* The command needs a registration, which a forked child has lost. */
	if (process != getpid()) {
		syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0);
		process = getpid();
	}
	if (!syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0) ||
	    !syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
		return;
	/* There is no such system call. After this time every core was interrupted by its clock,
	 * which serializes it. */
	nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
}

/* ---- mappings ---- */

static __u64 code_text_number(char **at, unsigned int base)
{
	__u64 n = 0;

	for (;; ++*at) {
		unsigned int c = (unsigned char)**at, d = 99;

		if (c >= '0' && c <= '9')
			d = c - '0';
		else if (c >= 'a' && c <= 'f')
			d = c - 'a' + 10;
		if (d >= base)
			return n;
		n = n * base + d;
	}
}

/* 7f0000000000-7f0000001000 r-xp 00001000 08:01 123    /a/file */
static bool parse(char *line, struct text_map *m)
{
	char *at = line;
	__u64 major;

	m->lo = code_text_number(&at, 16);
	if (*at++ != '-')
		return false;
	m->hi = code_text_number(&at, 16);
	if (*at++ != ' ' || strlen(at) < 5)
		return false;
	m->read = at[0] == 'r';
	m->write = at[1] == 'w';
	m->exec = at[2] == 'x';
	m->is_private = at[3] == 'p';
	at += 5;
	m->offset = code_text_number(&at, 16);
	if (*at++ != ' ')
		return false;
	major = code_text_number(&at, 16);
	if (*at++ != ':')
		return false;
	m->dev = (__u32)(major << 20 | code_text_number(&at, 16));
	if (*at++ != ' ')
		return false;
	m->ino = code_text_number(&at, 10);
	while (*at == ' ')
		at++;
	m->is_stack = !strcmp(at, "[stack]");
	m->is_probes = !strcmp(at, "[uprobes]");
	return true;
}

/* Returns all of the file, whose end is a zero, or NULL. */
static char *read_all(int fd)
{
	size_t size = 1 << 16, n = 0;
	char *text = malloc(size), *more;

	while (text) {
		ssize_t got = pread(fd, text + n, size - n - 1, (off_t)n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			break;
		n += (size_t)got;
		if (!got) {
			text[n] = 0;
			return text;
		}
		if (size - n < 4096) {
			size *= 2;
			more = realloc(text, size);
			if (!more)
				break;
			text = more;
		}
	}
	free(text);
	return NULL;
}

static char *read_maps(void)
{
	char *text = kept.maps >= 0 ? read_all(kept.maps) : NULL;
	int fd;

	/* it is empty if the thread that opened it has ended */
	if (text && *text)
		return text;
	free(text);
	fd = open("/proc/thread-self/maps", O_RDONLY | O_CLOEXEC);
	text = fd >= 0 ? read_all(fd) : NULL;
	if (fd >= 0)
		close(fd);
	return text;
}

int text_maps_read(struct text_maps *maps)
{
	char *text = read_maps(), *line, *rest = text;
	unsigned int lines = 0;

	*maps = (struct text_maps){ 0 };
	if (!text)
		return -EIO;
	for (char *at = text; *at; at++)
		lines += *at == '\n';
	maps->maps = calloc(lines + 1, sizeof(*maps->maps));
	if (!maps->maps) {
		free(text);
		return -ENOMEM;
	}
	while ((line = strsep(&rest, "\n")) && maps->n < lines)
		if (parse(line, &maps->maps[maps->n]))
			maps->n++;
	free(text);
	return 0;
}

void text_maps_free(struct text_maps *maps)
{
	free(maps->maps);
	*maps = (struct text_maps){ 0 };
}

const struct text_map *text_maps_find(const struct text_maps *maps, __u64 address)
{
	unsigned int lo = 0, hi = maps->n;

	while (lo < hi) {
		unsigned int mid = (lo + hi) / 2;

		if (address < maps->maps[mid].lo)
			hi = mid;
		else if (address >= maps->maps[mid].hi)
			lo = mid + 1;
		else
			return &maps->maps[mid];
	}
	return NULL;
}
