/* SPDX-License-Identifier: BSD-2-Clause */
/* peak.c - see peak.h. */
#include <stdlib.h>
#include <string.h>

#include "../../util/table/array.h"
#include "../registry.h"
#include "peak.h"

#define DEVICES_MAX 64 /* of a process */
#define STAYS_NS 5000000000ULL

struct device {
	uint32_t id, major, minor, multiprocessors, clock_khz;
};

struct devices {
	struct registered r;
	struct device *list;
	size_t n;
};

struct peaks {
	struct registry processes; /* of struct devices */
};

static void forgotten(void *ctx, void *item, const struct ct_hdr *h)
{
	struct devices *d = item;

	(void)ctx, (void)h;
	free(d->list);
	d->list = NULL;
	d->n = 0;
}

static const struct registry_rules rules = { .size = sizeof(struct devices),
					     .most = REGISTRY_MOST,
					     .stays_ns = STAYS_NS,
					     .forgets = true,
					     .exec = forgotten,
					     .gone = forgotten };

struct peaks *peaks_open(void)
{
	struct peaks *p = calloc(1, sizeof(*p));

	if (p)
		registry_open(&p->processes, &rules, p);
	return p;
}

void peaks_close(struct peaks *p)
{
	if (!p)
		return;
	registry_close(&p->processes);
	free(p);
}

static struct device *device_of(const struct devices *of, uint32_t id)
{
	for (size_t i = 0; of && i < of->n; i++)
		if (of->list[i].id == id)
			return &of->list[i];
	return NULL;
}

void peaks_record(struct peaks *p, const struct ct_hdr *h)
{
	const struct ct_device *r = (const struct ct_device *)h;
	struct devices *of;
	struct device *d;

	if (h->kind != CT_DEVICE) {
		registry_record(&p->processes, h);
		return;
	}
	of = registry_get(&p->processes, h->pid);
	d = device_of(of, r->id);
	if (of && !d && of->n < DEVICES_MAX)
		d = array_add(of->list, of->n);
	if (!d)
		return;
	*d = (struct device){ .id = r->id,
			      .major = r->major,
			      .minor = r->minor,
			      .multiprocessors = r->multiprocessors,
			      .clock_khz = r->clock_khz };
}

double peaks_of(const struct peaks *p, uint32_t pid, uint32_t device, enum peak_type type)
{
	static const struct {
		uint32_t major, minor;
		uint32_t flop[PEAK_END];
	} rows[] = {
#define PEAK(major, minor, ...) { major, minor, { 0, __VA_ARGS__ } },
#include "peaks.def"
#undef PEAK
	};
	const struct device *d = device_of(registry_find(&p->processes, pid), device);

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
