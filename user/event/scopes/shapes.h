/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shapes.h - the shapes and types of an operator's arguments, as text:
 *
 *   float32[4, 3], float32[3, 5], none, tensors[2] (float32[4], float32[3]), scalar, ?
 *
 * One word for each argument, in their order: a tensor's type and sizes; "none": an optional tensor
 * that was not given; "tensors" with their number, and the first four; "scalar" and "scalars"; "-": something else; "?": a
 * tensor of which nothing is known.
 */
#ifndef CT_SHAPES_H
#define CT_SHAPES_H

#include "../event.h"

#define SHAPE_TYPES 32 /* numbers of types that have names (shape_types.def) */

/* Writes the text of the begin of an operator's call; "": its arguments were not read, or they do not
 * make sense. What does not fit is left out, and the text ends with "...". */
void shapes_of(const struct ct_call *, char *text, size_t size);

/* A word of such a text, which may be of a recording, and is untrusted. */
struct shape {
	int rank; /* -1: it is no tensor, or nothing is known of it */
	uint64_t sizes[CT_TENSOR_RANK_MAX];
	const char *type; /* as torch.profiler names it: "float", "Scalar", "" */
	const char *
		list; /* of several, whose words can be taken one by one: they end at list_end. NULL: not all are known */
	const char *list_end;
};
/* Takes the next word from a text that ends at `end`. False: there is none, or it is no such text. */
bool shapes_next(const char **at, const char *end, struct shape *);

#endif
