/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * text.c - /proc/self/mem, /proc/self/maps and membarrier().
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "state.h"
#include "text.h"

static int mem = -1;

int text_open(void)
{
	mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	return mem < 0 ? -errno : 0;
}

void text_close(void)
{
	if (mem >= 0)
		close(mem);
	mem = -1;
}

int text_read(__u64 address, void *bytes, size_t n)
{
	ssize_t got = pread(mem, bytes, n, (off_t)address);

	return got == (ssize_t)n ? 0 : got < 0 ? -errno : -EIO;
}

int text_write(__u64 address, const void *bytes, size_t n)
{
	ssize_t put = pwrite(mem, bytes, n, (off_t)address);

	return put == (ssize_t)n ? 0 : put < 0 ? -errno : -EIO;
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
	/* Of the register commands that are there; a forked child has lost its registration. */
	if (process != getpid()) {
		syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0);
		process = getpid();
	}
	if (!syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0) ||
	    !syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
		return;
	/* No such call: every core has been interrupted by its clock after a while, which serializes. */
	nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
}

/* ---- mappings ---- */

static __u64 number(char **at, unsigned int base)
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

	m->lo = number(&at, 16);
	if (*at++ != '-')
		return false;
	m->hi = number(&at, 16);
	if (*at++ != ' ' || strlen(at) < 5)
		return false;
	m->read = at[0] == 'r';
	m->write = at[1] == 'w';
	m->exec = at[2] == 'x';
	m->is_private = at[3] == 'p';
	at += 5;
	m->offset = number(&at, 16);
	if (*at++ != ' ')
		return false;
	major = number(&at, 16);
	if (*at++ != ':')
		return false;
	m->dev = (__u32)(major << 20 | number(&at, 16));
	if (*at++ != ' ')
		return false;
	m->ino = number(&at, 10);
	while (*at == ' ')
		at++;
	m->is_stack = !strcmp(at, "[stack]");
	m->is_probes = !strcmp(at, "[uprobes]");
	return true;
}

static char *read_all(const char *path)
{
	size_t size = 1 << 16, n = 0;
	char *text = malloc(size), *more;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	while (text && fd >= 0) {
		ssize_t got = read(fd, text + n, size - n - 1);

		if (got < 0)
			break;
		n += (size_t)got;
		if (!got) {
			text[n] = 0;
			close(fd);
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
	if (fd >= 0)
		close(fd);
	free(text);
	return NULL;
}

int text_maps_read(struct text_maps *maps)
{
	char *text = read_all("/proc/self/maps"), *line, *rest = text;
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
