/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * descriptors.h - what calls of cuDNN compute. A program describes tensors, operations, graphs of
 * them and plans one after the other, each by the ones before; what a descriptor says about products
 * goes along. So a call with a plan is known by what was said when the plan was made.
 *
 * What the program passes is untrusted. A number that cannot be true is not known: it is never shown.
 */
#ifndef CT_DESCRIPTORS_H
#define CT_DESCRIPTORS_H

#include "../../event.h"

/* True if calls of this function say what a descriptor is. */
bool descriptors_has(const struct api_func *);

struct descriptors;
struct descriptors *descriptors_open(void); /* NULL: no memory */
void descriptors_close(struct descriptors *);
/* Learns from a call of such a function. */
void descriptors_learn(struct descriptors *, const struct ct_call *);
/* The process has ended, or runs another program. */
void descriptors_forget(struct descriptors *, uint32_t pid);
/* Records were lost: a descriptor may have been described anew. Nothing is known any more. */
void descriptors_lost(struct descriptors *);
/* Fills in what a call for the products of descriptors computes, and what of, as text: "forward, x[4, 8, 9, 9],
 * w[16, 8, 3, 3], y[4, 16, 7, 7]". What is not known stays as it is; text: "". */
void descriptors_begin(struct descriptors *, const struct ct_call *, struct ct_gemm *out,
		       char *text, size_t size);
/* Descriptors for which there was no room. */
uint64_t descriptors_dropped(const struct descriptors *);

#endif
