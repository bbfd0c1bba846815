/* SPDX-License-Identifier: BSD-2-Clause */
/* peak.c - see peak.h. */
#include <string.h>

#include "peak.h"

double peak_of(const struct device_facts *d, enum peak_type type)
{
	static const struct {
		uint32_t major, minor;
		uint32_t flop[PEAK_END];
	} rows[] = {
#define PEAK(major, minor, ...) { major, minor, { 0, __VA_ARGS__ } },
#include "peaks.def"
#undef PEAK
	};

	for (size_t i = 0; d && i < ARRAY_LEN(rows); i++)
		if (rows[i].major == d->major && rows[i].minor == d->minor)
			return (double)rows[i].flop[type] * d->multiprocessors * d->clock_khz * 1e3;
	return 0;
}

/* cudaDataType and cublasComputeType_t */
enum { F32 = 0, F64 = 1, F16 = 2, I8 = 3, BF16 = 14, E4M3 = 28, E5M2 = 29 };

/* cuBLAS decides by the types, by how it is to compute, and by a mode of its handle. What it decided is in
 * the name of the kernel. */
static enum peak_type of_float32(const char *kernel)
{
	if (!kernel)
		return PEAK_UNKNOWN;
	if (strcasestr(kernel, "tf32") || strstr(kernel, "s1688gemm"))
		return PEAK_TF32;
	if (strstr(kernel, "f32f32_f32f32_f32") || strstr(kernel, "_sgemm_") ||
	    strstr(kernel, "simt_sgemm"))
		return PEAK_FLOAT32;
	return PEAK_UNKNOWN;
}

bool peak_beside(const char *kernel)
{
	return strcasestr(kernel, "reduce") || strstr(kernel, "scal_kernel") ||
	       strcasestr(kernel, "ToNhwc") || strcasestr(kernel, "ToNchw");
}

enum peak_type peak_type(const struct ct_gemm *g, const char *kernel)
{
	if (!g || g->a_type != g->b_type)
		return g && (g->a_type == E4M3 || g->a_type == E5M2) &&
				       (g->b_type == E4M3 || g->b_type == E5M2)
			       ? PEAK_FLOAT8
			       : PEAK_UNKNOWN;
	switch (g->a_type) {
	case F32: return of_float32(kernel);
	case F64: return PEAK_FLOAT64;
	case F16: return PEAK_FLOAT16;
	case BF16: return PEAK_BFLOAT16;
	case I8: return PEAK_INT8;
	case E4M3:
	case E5M2: return PEAK_FLOAT8;
	default: return PEAK_UNKNOWN;
	}
}
