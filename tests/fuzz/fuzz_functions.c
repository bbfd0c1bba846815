/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_functions.c - which functions a file has, and where. The first byte says what the rest is: 'R' the code of a function,
 * 'S' the schema of an operator, 'N' a symbol, 'C' the loader's cache; with another one it is a file.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../user/api/api.h"
#include "../../user/source/discover/elf.h"
#include "../../user/source/discover/library_paths.h"
#include "../../user/source/symbols/returns.h"
#include "../../user/source/symbols/tensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TEXT_MAX 4096

static int file_of(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	return fd;
}

static void try_file(const uint8_t *data, size_t size)
{
	int fd = file_of(data, size);
	struct elf_scan s;

	elf_symbol_offset(fd, "cudaSeed");
	if (!elf_scan(fd, NULL, &s)) {
		for (int i = 0; i < s.nprobes; i++) {
			const struct elf_probe *p = &s.probes[i];

			if (!p->offset || (i && p->offset <= s.probes[i - 1].offset) ||
			    p->func >= api_nfuncs || (p->ends && !api_funcs[p->func].named))
				abort();
		}
		if (s.ndefined < 0 || s.nunseen < 0 || (s.nprobes && !s.ndefined))
			abort();
		elf_scan_free(&s);
	}
	close(fd);
}

/* A breakpoint of ours may only be where an instruction begins: walked from the first one, each return is met. */
static void try_code(const uint8_t *code, size_t size)
{
	uint32_t at[RETURNS_MAX];
	int n = returns_find(code, size, at), met = 0;
	unsigned length = 1;

	if (n < 0 || n > RETURNS_MAX)
		abort();
	for (size_t i = 0; i < size && length && met < n; i += length) {
		length = returns_length(code + i, size - i);
		if (length > size - i || length > 15)
			abort();
		met += at[met] == i;
	}
#if !defined(__aarch64__)
	if (met != n)
		abort();
#endif
}

static void try_schema(const char *text, size_t size)
{
	if (tensors_schema(text, size) > TENSORS_SCHEMA_MAX)
		abort();
}

static void try_symbol(const char *symbol)
{
	static const struct tensors_layout layout = { .plan = CT_TENSORS_LAYOUT(7, 6, 8),
						      .undefined = 47 };
	uint32_t schema = tensors_schema("(Tensor self, Tensor mat2) -> Tensor", 37);
	char name[64];
	struct symbol_args args;
	bool twin;
	size_t n = symbol_name(symbol, name, sizeof(name));

	if (n >= sizeof(name) || (n && strlen(name) != n))
		abort();
	if (api_lookup(symbol, 0, &twin) >= api_nfuncs)
		abort();
	tensors_params(symbol);
	tensors_plan(&layout, symbol, schema, &args);
	if (!memchr(args.codes, '\0', sizeof(args.codes)))
		abort();
}

static void on_path(void *ctx, const char *path)
{
	*(size_t *)ctx += strlen(path);
}

static void try_cache(const uint8_t *data, size_t size)
{
	int fd = file_of(data, size);
	char path[32];
	size_t n = 0;

	snprintf(path, sizeof(path), "/dev/fd/%d", fd);
	library_paths_cache(path, on_path, &n);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = size ? malloc(size) : NULL; /* it ends where it ends */

	if (!text)
		return 0;
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	switch (data[0]) {
	case 'R': try_code(data + 1, size - 1); break;
	case 'S': try_schema(text, size - 1); break;
	case 'N':
		if (size < TEXT_MAX)
			try_symbol(text);
		break;
	case 'C': try_cache(data + 1, size - 1); break;
	default: try_file(data + 1, size - 1);
	}
	free(text);
	return 0;
}
