/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * library_paths.c - where CUDA's libraries are installed.
 *
 * A program that starts later maps one of these files in all likelihood; with its functions
 * probed already, it is seen from its first call on. A library anywhere else is found when it is
 * mapped.
 */
#include "library_paths.h"

#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../api/domain.h"

static const char *const dirs[] = {
	"/usr/lib/*-linux-gnu",
	"/usr/lib64",
	"/usr/lib/wsl/lib",
	"/usr/local/cuda/lib64",
	"/usr/local/cuda-*/lib64",
	"/usr/local/cuda*/targets/*/lib",
	"/usr/local/cuda*/compat",
	"/opt/cuda/lib64",
	"/opt/conda/lib",
	"/opt/conda/envs/*/lib",
	"/opt/conda/lib/python3*/site-packages/nvidia/*/lib",
	"/usr/local/lib/python3*/*-packages/nvidia/*/lib",
	"/usr/lib/python3*/*-packages/nvidia/*/lib",
	"/opt/venv/lib/python3*/site-packages/nvidia/*/lib",
};

static const struct {
	const char *variable, *below;
} homes[] = {
	{ "CUDA_HOME", "/lib64" },
	{ "CUDA_PATH", "/lib64" },
	{ "CONDA_PREFIX", "/lib" },
	{ "CONDA_PREFIX", "/lib/python3*/site-packages/nvidia/*/lib" },
	{ "VIRTUAL_ENV", "/lib/python3*/site-packages/nvidia/*/lib" },
};

/* The layout of glibc's cache, elf/cache.c and dl-cache.h: a header, entries, strings. */
#define CACHE_MAGIC "glibc-ld.so.cache1.1"
#define OLD_MAGIC "ld.so-1.7.0"

struct cache_header {
	char magic[20];
	uint32_t nlibs, len_strings;
	uint8_t flags, pad[3];
	uint32_t extension, unused[3];
};
struct cache_entry {
	int32_t flags;
	uint32_t key, value; /* offsets of strings, from the header */
	uint32_t osversion;
	uint64_t hwcap;
};

/* A cache that an old loader can read too begins with the old format: 12 bytes for each of its
 * entries. */
static size_t skip_old(const char *buf, size_t len)
{
	uint32_t n;
	size_t end;

	if (len < 16 || memcmp(buf, OLD_MAGIC, sizeof(OLD_MAGIC) - 1))
		return 0;
	memcpy(&n, buf + 12, sizeof(n));
	end = 16 + (size_t)n * 12;
	return (end + 7) / 8 * 8;
}

static void cache_entries(const char *buf, size_t len, library_paths_fn fn, void *ctx)
{
	struct cache_header h;
	struct cache_entry e;

	if (len < sizeof(h) || memcmp(buf, CACHE_MAGIC, sizeof(h.magic)))
		return;
	memcpy(&h, buf, sizeof(h));
	for (size_t i = 0; i < h.nlibs && len - sizeof(h) >= (i + 1) * sizeof(e); i++) {
		memcpy(&e, buf + sizeof(h) + i * sizeof(e), sizeof(e));
		/* The buffer ends with a NUL of ours, so a string inside of it ends too. */
		if (e.key >= len || e.value >= len)
			continue;
		if (api_domain_of_file(buf + e.key) != API_DOMAIN_END)
			fn(ctx, buf + e.value);
	}
}

void library_paths_cache(const char *cache, library_paths_fn fn, void *ctx)
{
	int fd = open(cache, O_RDONLY | O_CLOEXEC);
	size_t len = 0, skip;
	char *buf = NULL;
	struct stat st;
	ssize_t n = 0;

	if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size > 0 &&
	    st.st_size < (64 << 20))
		buf = malloc(st.st_size + 1);
	while (buf && len < (size_t)st.st_size && (n = read(fd, buf + len, st.st_size - len)) > 0)
		len += n;
	if (fd >= 0)
		close(fd);
	if (!buf)
		return;
	buf[len] = 0;
	skip = skip_old(buf, len);
	if (skip < len)
		cache_entries(buf + skip, len - skip, fn, ctx);
	free(buf);
}

static void look_in(const char *dir, library_paths_fn fn, void *ctx)
{
	const int n = API_DOMAIN_END * API_DOMAIN_FILES;
	char pattern[4096];
	glob_t g;

	for (int i = 0; i < n; i++) {
		const char *name = api_domains[i / API_DOMAIN_FILES].files[i % API_DOMAIN_FILES];

		if (!name || (size_t)snprintf(pattern, sizeof(pattern), "%s/%s", dir, name) >=
				     sizeof(pattern))
			continue;
		if (!glob(pattern, GLOB_NOSORT, NULL, &g))
			for (size_t k = 0; k < g.gl_pathc; k++)
				fn(ctx, g.gl_pathv[k]);
		globfree(&g);
	}
}

void library_paths_list(library_paths_fn fn, void *ctx)
{
	char dir[2048];

	library_paths_cache("/etc/ld.so.cache", fn, ctx);
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
		look_in(dirs[i], fn, ctx);
	for (size_t i = 0; i < ARRAY_LEN(homes); i++) {
		const char *home = getenv(homes[i].variable);

		if (home && *home == '/' &&
		    (size_t)snprintf(dir, sizeof(dir), "%s%s", home, homes[i].below) < sizeof(dir))
			look_in(dir, fn, ctx);
	}
}
