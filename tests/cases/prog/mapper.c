/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mapper.c - a program that fills its memory with libraries: `mapper LIBRARY COUNT MIB [DIR]`
 * makes COUNT files with the content of LIBRARY and MIB MiB of zeros behind it, in memory
 * (memfd), or in DIR, where their names are taken away again. It maps each of them, says
 * "mapped", and ends when its input does.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static char content[1 << 20];

static int make(const char *dir, int i)
{
	char name[4096];
	int fd;

	if (!dir)
		return memfd_create("libmany.so", MFD_CLOEXEC);
	snprintf(name, sizeof(name), "%s/libmany.%d.so", dir, i);
	fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	if (fd >= 0)
		unlink(name);
	return fd;
}

int main(int argc, char **argv)
{
	int count = argc > 3 ? atoi(argv[2]) : 0, from;
	off_t mib = argc > 3 ? atol(argv[3]) : 0;
	ssize_t len;
	char c;

	from = argc > 3 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
	len = read(from, content, sizeof(content));
	if (len <= 0) {
		fprintf(stderr, "usage: mapper LIBRARY COUNT MIB [DIR]\n");
		return 2;
	}
	for (int i = 0; i < count; i++) {
		int fd = make(argc > 4 ? argv[4] : NULL, i);

		if (fd < 0 || write(fd, content, (size_t)len) != len ||
		    posix_fallocate(fd, 0, len + (mib << 20)) ||
		    mmap(NULL, (size_t)len, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) ==
			    MAP_FAILED) {
			perror("mapper");
			return 1;
		}
		close(fd);
	}
	printf("mapped\n");
	fflush(stdout);
	while (read(0, &c, 1) > 0)
		;
	return 0;
}
