/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * layout.h - inside the api room: the layouts of CUDA's structs, as struct.def gives them.
 *
 * A layout lists the members that are decoded, with their offsets on 64-bit systems (they are
 * the same on x86-64 and aarch64). Reserved members and padding are left out.
 * scripts/check_api.py compares every offset and width with CUDA's headers. Unions are decoded
 * by a selector: a member with a `cases` mask is shown only when the selector's value is one of
 * them.
 */
#ifndef CT_LAYOUT_H
#define CT_LAYOUT_H

#include "api.h"

struct api_member {
	const char *name;
	/* the header's spelling, if `name` has the spelling of other structs; otherwise NULL */
	const char *spelled;
	uint16_t off;
	uint16_t width; /* bytes of one value; of a nested struct its size */
	/* enum field_type; FIELD_OPEN: a nested struct, or a list behind a pointer */
	uint8_t type;
	uint8_t n;    /* elements of an array member; 0: no array */
	uint8_t unit; /* as struct api_arg's */
	bool is_signed;
	bool list; /* a pointer to elements of `layout`, their number at count_off */
	uint16_t count_off;
	uint16_t max;	/* list: elements read at most */
	uint32_t cases; /* bit v: shown when the selector is v; 0: always */
	/* a nested union: offset in this struct of its own 32-bit selector; 0: this struct's */
	uint8_t selector;
	const struct xlat *xlat;
	const struct api_struct *layout;
};

enum { LAYOUT_SIZE_NONE, LAYOUT_SIZE_PRODUCT, LAYOUT_SIZE_TEXEL, LAYOUT_SIZE_ARRAY };

struct api_struct {
	const char *name; /* the type in CUDA's headers */
	uint16_t size;	  /* sizeof */
	/* bytes up to the end of the last decoded member: only these are read */
	uint16_t used;
	uint8_t nmembers;
	uint8_t size_rule; /* LAYOUT_SIZE_*: how its size in bytes is computed */
	bool nested;	   /* no type of its own: an unnamed struct inside another */
	/* offset of the 32-bit selector of `cases`; -1: the outer struct's selector, or an
	 * argument */
	int16_t selector;
	const struct api_member *members;
};

/* Declares every layout by its name: extern const struct api_struct layout_cudaPos, ... */
#define STRUCT(T, ...) extern const struct api_struct layout_##T;
#define STRUCT_BY(T, ...) extern const struct api_struct layout_##T;
#define NESTED(T, ...) extern const struct api_struct layout_##T;
#include "struct.def"
#undef STRUCT
#undef STRUCT_BY
#undef NESTED

/* all layouts, in the order of struct.def; NULL at the end */
extern const struct api_struct *const api_structs[];

#endif
