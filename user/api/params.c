/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * params.c - finds the words of a call's record in the parameters that CUPTI's callbacks get: a
 * struct with the function's arguments as members in the order of the header
 * (generated_cuda_runtime_api_meta.h), laid out as C lays it out. Follows the same plan as the
 * capture spec, so the records of both sources are alike. tests/params.py compares the offsets with
 * the real headers.
 */
#include <errno.h>
#include <string.h>

#include "abi.h"

/* The size and alignment of an argument that is passed in memory. */
static void size_of(const struct api_arg *a, unsigned int *size, unsigned int *align)
{
	if (a->abi == API_ABI_WORD && (a->dir != API_IN || a->deref)) {
		*size = *align = 8; /* a pointer */
		return;
	}
	*size = a->width;
	if (a->abi == API_ABI_PAIR)
		*align = 4; /* dim3 */
	else if (a->abi == API_ABI_MEMORY)
		/* handles for other processes are arrays of bytes; all others begin with a size
		 * or a pointer */
		*align = a->type == FIELD_BYTES ? 1 : 8;
	else if (a->layout)
		*align = 4; /* cudaMemLocation: two enums in a word */
	else
		*align = a->width;
}

static void word(struct api_param *w, unsigned int off, unsigned int width, enum api_param_how how)
{
	w->off = (uint16_t)off;
	w->width = (uint8_t)width;
	w->how = (uint8_t)how;
}

static void params_place(const struct api_arg *a, unsigned int first, unsigned int off,
			 enum api_arch arch, struct api_param *words)
{
	bool sign = a->abi == API_ABI_WORD && a->is_signed && a->dir == API_IN && !a->deref;
	unsigned int n = 1;

	if (a->abi == API_ABI_MEMORY && arch == API_AARCH64) {
		word(&words[first], off, 8, API_PARAM_ADDRESS);
		return;
	}
	if (a->abi == API_ABI_PAIR || a->abi == API_ABI_MEMORY)
		n = (a->width + 7u) / 8;
	for (unsigned int i = 0; i < n && first + i < CT_MAX_WORDS; i++) {
		unsigned int width = a->abi == API_ABI_WORD && (a->dir != API_IN || a->deref)
					     ? 8
					     : a->width - i * 8;

		word(&words[first + i], off + i * 8, width > 8 ? 8 : width,
		     sign ? API_PARAM_SIGN : API_PARAM_ZERO);
	}
}

int api_params(int func, enum api_arch arch, struct api_param *words, int *kernel)
{
	const struct api_func *f;
	const struct abi_plan *p;
	unsigned int off = 0;

	if (func < 0 || func >= api_nfuncs)
		return -EINVAL;
	f = &api_funcs[func];
	p = abi_plan(func, arch);
	if (p->err)
		return p->err;
	memset(words, 0, CT_MAX_WORDS * sizeof(*words));
	for (int i = 0; i < f->nargs; i++) {
		unsigned int size, align;

		size_of(&f->args[i], &size, &align);
		off = (off + align - 1) / align * align;
		if (p->args[i].word != ABI_NONE)
			params_place(&f->args[i], p->args[i].word, off, arch, words);
		off += size;
	}
	*kernel = -1;
	for (int i = 0; i < p->nspots && *kernel < 0; i++)
		if (p->spots[i].word != ABI_NONE && !p->spots[i].off)
			*kernel = p->spots[i].word;
	return 0;
}
