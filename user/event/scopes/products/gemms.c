/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gemms.c - see gemms.h.
 *
 * cublasLtMatmul takes its shapes in words whose layout cuBLAS does not document:
 *
 *   cublasLtMatrixLayout_t   0 type (u32)   4 order (u32)   8 rows   16 columns   24 leading dimension   32 batch (u32)
 *   cublasLtMatmulDesc_t     8 how it computes (u32)   20 operation on A (u32)   24 on B (u32)
 *
 * So has cuBLASLt what cublasLtMatrixLayoutInit() and cublasLtMatmulDescInit() make in versions 12.1, 12.9 and 13.1. A shape is
 * believed only if the three layouts agree: A is m * k or k * m, B is k * n or n * k, and D is m * n.
 */
#include <stdio.h>
#include <string.h>

#include "gemms.h"

#define DIMENSION_MAX (1ULL << 40)
#define BATCH_MAX (1ULL << 31)
#define GROUPS_MAX 32 /* whose shapes are read */

bool gemms_has(const struct api_func *f)
{
	return f->layer == API_LAYER_GEMM || f->layer == API_LAYER_DESCRIBED;
}

const struct ct_gemm *scope_gemm(const struct ct_scope *s)
{
	if (s->kind != CT_SCOPE_GEMM)
		return NULL;
	return (const struct ct_gemm *)((const char *)s + s->h.size - sizeof(struct ct_gemm));
}

/* cudaDataType */
static const char *const types[] = {
	[0] = "float32",
	[1] = "float64",
	[2] = "float16",
	[3] = "int8",
	[4] = "complex64",
	[5] = "complex128",
	[6] = "complex32",
	[7] = "complex int8",
	[8] = "uint8",
	[10] = "int32",
	[12] = "uint32",
	[14] = "bfloat16",
	[15] = "complex bfloat16",
	[16] = "int4",
	[18] = "uint4",
	[20] = "int16",
	[22] = "uint16",
	[24] = "int64",
	[26] = "uint64",
	[28] = "float8e4m3",
	[29] = "float8e5m2",
	[30] = "float8ue8m0",
	[31] = "float6e2m3",
	[32] = "float6e3m2",
	[33] = "float4e2m1",
};

const char *gemm_type(uint32_t type)
{
	return type < ARRAY_LEN(types) ? types[type] : NULL;
}

static bool is_complex(uint32_t type)
{
	return type >= 4 && type <= 7 ? true : type == 15;
}

/* ---- what a call says ---- */

struct said {
	uint64_t m, n, k, batch;
	/* of groups */
	uint64_t sizes[4][GROUPS_MAX]; /* m, n, k and how many products */
	uint32_t nsizes[4];
	uint64_t groups;
	bool grouped, cut;
	const uint8_t *desc, *a, *b, *d; /* words of cuBLASLt; NULL: not read */
};

static void hear_desc(const struct field *arg, struct said *said)
{
	const uint8_t *p = (const uint8_t *)arg->str;

	if (!strcmp(arg->name, "computeDesc") && arg->str_len >= 32)
		said->desc = p;
	else if (!strcmp(arg->name, "Adesc") && arg->str_len >= 40)
		said->a = p;
	else if (!strcmp(arg->name, "Bdesc") && arg->str_len >= 40)
		said->b = p;
	else if (!strcmp(arg->name, "Ddesc") && arg->str_len >= 40)
		said->d = p;
}

static void hear_number(const struct field *arg, struct said *said, struct ct_gemm *out)
{
	const struct {
		const char *name;
		uint64_t *at;
	} sizes[] = { { "m", &said->m },
		      { "n", &said->n },
		      { "k", &said->k },
		      { "batchCount", &said->batch },
		      { "group_count", &said->groups } };
	const struct {
		const char *name;
		uint32_t *at;
	} words[] = { { "Atype", &out->a_type },   { "Btype", &out->b_type },
		      { "Ctype", &out->d_type },   { "computeType", &out->compute },
		      { "transa", &out->trans_a }, { "transb", &out->trans_b } };

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
		if (!strcmp(arg->name, sizes[i].name))
			*sizes[i].at = arg->u;
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (!strcmp(arg->name, words[i].name))
			*words[i].at = (uint32_t)arg->u;
}

/* Which of a group's lists begins; -1: another one. */
static int list_of(const struct field *arg)
{
	static const char *const names[] = { "m_array", "n_array", "k_array", "group_size" };

	for (int i = 0; i < (int)ARRAY_LEN(names); i++)
		if (arg->name && !strcmp(arg->name, names[i]))
			return i;
	return -1;
}

static void hear(const struct ct_call *call, struct said *said, struct ct_gemm *out)
{
	struct field args[GEMM_FIELDS];
	int n = api_decode(call, API_ARCH_HERE, args, GEMM_FIELDS), list = -1;

	memset(said, 0, sizeof(*said));
	said->batch = 1;
	for (int i = 0; i < n; i++) {
		const struct field *arg = &args[i];

		if (arg->type == FIELD_OPEN && list_of(arg) >= 0) {
			list = list_of(arg);
			said->grouped = true;
			said->cut |= arg->cut;
		} else if (arg->type == FIELD_CLOSE) {
			list = -1;
		} else if (list >= 0) {
			if (said->nsizes[list] < GROUPS_MAX)
				said->sizes[list][said->nsizes[list]++] = arg->u;
		} else if (!arg->name || arg->out || arg->absent) {
			said->grouped |= arg->name && list_of(arg) >= 0;
		} else if (arg->type == FIELD_BYTES) {
			hear_desc(arg, said);
		} else {
			hear_number(arg, said, out);
		}
	}
}

/* ---- products ---- */

bool gemm_add_flop(struct ct_gemm *out, uint64_t m, uint64_t n, uint64_t k, uint64_t batch)
{
	uint64_t flop = is_complex(out->a_type) ? 8 : 2;

	if (m > DIMENSION_MAX || n > DIMENSION_MAX || k > DIMENSION_MAX || batch > BATCH_MAX)
		return false;
	return !__builtin_mul_overflow(flop, m, &flop) && !__builtin_mul_overflow(flop, n, &flop) &&
	       !__builtin_mul_overflow(flop, k, &flop) &&
	       !__builtin_mul_overflow(flop, batch, &flop) &&
	       !__builtin_add_overflow(out->flop, flop, &out->flop);
}

static void one_shape(const struct said *said, struct ct_gemm *out)
{
	if (!gemm_add_flop(out, said->m, said->n, said->k, said->batch)) {
		out->flop = 0;
		return;
	}
	out->m = said->m;
	out->n = said->n;
	out->k = said->k;
	out->batch = said->batch;
	out->flags |= CT_GEMM_SHAPE;
}

/* Of groups that all have one shape the call has that shape. */
static void many_shapes(const struct said *said, struct ct_gemm *out)
{
	const uint64_t(*s)[GROUPS_MAX] = said->sizes;
	uint32_t n = said->nsizes[0];
	bool same = n, known = !said->cut && n == said->groups;

	out->groups = said->groups <= INT32_MAX ? (uint32_t)said->groups : 0;
	for (int i = 1; i < 4; i++)
		known &= said->nsizes[i] == n;
	for (uint32_t i = 0; i < n && known; i++) {
		known = gemm_add_flop(out, s[0][i], s[1][i], s[2][i], s[3][i]);
		out->batch += s[3][i];
		same &= s[0][i] == s[0][0] && s[1][i] == s[1][0] && s[2][i] == s[2][0];
	}
	if (!known) {
		out->flop = out->batch = 0;
		return;
	}
	if (!same)
		return;
	out->m = s[0][0];
	out->n = s[1][0];
	out->k = s[2][0];
	out->flags |= CT_GEMM_SHAPE;
}

struct matrix {
	uint32_t type, order;
	uint64_t rows, cols, ld;
	uint32_t batch;
};

static bool read_layout(const uint8_t *p, struct matrix *m)
{
	if (!p)
		return false;
	memcpy(&m->type, p, 4);
	memcpy(&m->order, p + 4, 4);
	memcpy(&m->rows, p + 8, 8);
	memcpy(&m->cols, p + 16, 8);
	memcpy(&m->ld, p + 24, 8);
	memcpy(&m->batch, p + 32, 4);
	return gemm_type(m->type) && m->order < 64 && m->rows && m->rows <= DIMENSION_MAX &&
	       m->cols && m->cols <= DIMENSION_MAX && m->ld && m->batch && m->batch <= INT32_MAX;
}

/* Is an operation (1, 2: transposed) what makes a matrix of `rows` rows one of `wanted`? */
static bool gemms_fits(const struct matrix *m, uint32_t trans, uint64_t rows, uint64_t cols)
{
	return trans ? m->cols == rows && m->rows == cols : m->rows == rows && m->cols == cols;
}

/* The shapes in words of cuBLASLt. */
static void layouts(struct said *said, struct ct_gemm *out)
{
	struct matrix a, b, d;
	uint32_t ta = CT_UNKNOWN, tb = CT_UNKNOWN, compute = CT_UNKNOWN;

	if (!read_layout(said->a, &a) || !read_layout(said->b, &b) || !read_layout(said->d, &d))
		return;
	said->m = d.rows;
	said->n = d.cols;
	said->batch = d.batch;
	if (said->desc) {
		memcpy(&compute, said->desc + 8, 4);
		memcpy(&ta, said->desc + 20, 4);
		memcpy(&tb, said->desc + 24, 4);
	}
	/* where the operations are not what they seem, only the shapes tell k */
	said->k = a.rows == d.rows ? a.cols : a.rows;
	if (!(gemms_fits(&a, 0, d.rows, said->k) || gemms_fits(&a, 1, d.rows, said->k)) ||
	    !(gemms_fits(&b, 0, said->k, d.cols) || gemms_fits(&b, 1, said->k, d.cols)))
		return;
	out->a_type = a.type;
	out->b_type = b.type;
	out->d_type = d.type;
	one_shape(said, out);
	if (ta > 2 || tb > 2 || !gemms_fits(&a, ta, d.rows, said->k) ||
	    !gemms_fits(&b, tb, said->k, d.cols))
		return;
	out->trans_a = ta;
	out->trans_b = tb;
	if (compute >= 64 && compute <= 85)
		out->compute = compute;
}

void gemms_begin(const struct ct_call *call, struct ct_gemm *out)
{
	const struct api_func *f = &api_funcs[call->func];
	struct said said;

	*out = (struct ct_gemm){ .a_type = CT_UNKNOWN,
				 .b_type = CT_UNKNOWN,
				 .d_type = CT_UNKNOWN,
				 .compute = CT_UNKNOWN,
				 .trans_a = CT_UNKNOWN,
				 .trans_b = CT_UNKNOWN };
	if (f->element)
		out->a_type = out->b_type = out->d_type = f->element - 1u;
	hear(call, &said, out);
	if (said.grouped)
		many_shapes(&said, out);
	else if (said.desc || said.a || said.b || said.d)
		layouts(&said, out);
	else if (!strcmp(f->args[0].name, "handle"))
		one_shape(&said, out);
}

/* ---- texts ---- */

static const char *type_or(uint32_t type)
{
	const char *word = gemm_type(type);

	return word ? word : "?";
}

/* The letters of cuBLAS: N not transposed, T transposed, C transposed and conjugated. */
static char letter(uint32_t trans)
{
	return trans <= 2 ? "NTC"[trans] : '?';
}

void gemm_text(const struct ct_gemm *g, char *text, size_t size)
{
	char shape[96] = "?", batch[48] = "", types_of[96];

	if (g->flags & CT_GEMM_SHAPE)
		snprintf(shape, sizeof(shape), "%llu x %llu x %llu", (unsigned long long)g->m,
			 (unsigned long long)g->n, (unsigned long long)g->k);
	else if (g->flop)
		snprintf(shape, sizeof(shape), "several shapes");
	if (g->groups && !g->batch)
		snprintf(batch, sizeof(batch), ", %u groups", g->groups);
	else if (g->groups)
		snprintf(batch, sizeof(batch), ", %u groups of %llu", g->groups,
			 (unsigned long long)g->batch);
	else if (g->batch > 1)
		snprintf(batch, sizeof(batch), ", batch %llu", (unsigned long long)g->batch);
	if (g->a_type == g->b_type && g->b_type == g->d_type)
		snprintf(types_of, sizeof(types_of), "%s", type_or(g->a_type));
	else if (g->a_type == g->b_type)
		snprintf(types_of, sizeof(types_of), "%s -> %s", type_or(g->a_type),
			 type_or(g->d_type));
	else
		snprintf(types_of, sizeof(types_of), "%s, %s -> %s", type_or(g->a_type),
			 type_or(g->b_type), type_or(g->d_type));
	if (g->trans_a == CT_UNKNOWN && g->trans_b == CT_UNKNOWN)
		snprintf(text, size, "%s%s, %s", shape, batch, types_of);
	else
		snprintf(text, size, "%s%s, %s, %c%c", shape, batch, types_of, letter(g->trans_a),
			 letter(g->trans_b));
}
