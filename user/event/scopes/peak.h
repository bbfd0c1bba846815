/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * peak.h - how fast the devices of a trace can multiply matrices at most, by the type that a kernel
 * computes in: multiprocessors * the highest clock * what one computes in a clock.
 */
#ifndef CT_PEAK_H
#define CT_PEAK_H

#include "../gpus.h"
#include "lineage.h"

/* What a kernel computes in. */
enum peak_type {
	PEAK_UNKNOWN,
	PEAK_FLOAT64,
	PEAK_FLOAT32, /* by no tensor core */
	PEAK_TF32,
	PEAK_FLOAT16,
	PEAK_BFLOAT16,
	PEAK_FLOAT8,
	PEAK_INT8,
	PEAK_END
};

/* What the kernel of a product computes in. Of float32 its name tells: cuBLAS may use tensor cores. kernel:
 * NULL if its name is not known. */
enum peak_type peak_type(const struct ct_gemm *, const char *kernel);

/* Only prepares a product, or adds up its parts, by its name: it is not as fast as the product. */
bool peak_beside(const char *kernel);
/* Does a kernel of the product (struct event) compute it, and are its FLOP known? */
static inline bool peak_computes(const struct event *ev)
{
	return ev->product && ev->product->flop &&
	       !(ev->kernel && peak_beside(ev->kernel->mangled));
}

/* What a device computes in a second at most, in FLOP; 0: not known, as of NULL. */
double peak_of(const struct device_facts *, enum peak_type);

#endif
