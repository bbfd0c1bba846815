/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * built.c - what this program was built from and with. The same objects are linked in two ways, so
 * which of them this is has to be found out at run time. The Makefile defines CT_COMMIT only for this file, so that a commit does not cause everything to be compiled again.
 */
#include "built.h"

#include <bpf/libbpf.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>

#if defined(__x86_64__)
#define ARCH "x86_64"
#define SOURCES "bpf cupti hooks"
#else
#define ARCH "aarch64"
#define SOURCES "bpf cupti"
#endif

/* The first object is the program itself. One that needs a dynamic loader names it. */
static int has_loader(struct dl_phdr_info *info, size_t size, void *ctx)
{
	bool *found = ctx;

	(void)size;
	for (unsigned int i = 0; i < info->dlpi_phnum; i++)
		*found |= info->dlpi_phdr[i].p_type == PT_INTERP;
	return 1;
}

size_t built_text(char *buf, size_t size)
{
	bool dynamic = false;
	int n;

	dl_iterate_phdr(has_loader, &dynamic);
	n = snprintf(buf, size,
		     "cudatrace " CT_VERSION "\n"
		     "%s%s%sbuilt for " ARCH ", %s, libbpf %u.%u\nsources: " SOURCES "\n",
		     *CT_COMMIT ? "commit " : "", CT_COMMIT, *CT_COMMIT ? "\n" : "",
		     dynamic ? "dynamic" : "static", libbpf_major_version(),
		     libbpf_minor_version());
	return n < 0 ? 0 : (size_t)n;
}
