/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * descriptors.c - see descriptors.h.
 *
 * x is what is convolved with the filter w, and y is the result. All are [N, channels, ...], w is [channels of y, channels of
 * x of a group, ...]. The three operations take as many FLOP: forward x and w to y, and backward y and w to x, and x and y to w.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../util/table/owned.h"
#include "descriptors.h"
#include "gemms.h"

#define DESCRIPTORS_MAX 65536
#define SHARE 8 /* one process has this part of them */
#define RANK_MAX 8
#define SIZE_OF_TENSOR_MAX (1ULL << 40)
#define ELEMENTS_MAX 48
#define FIELDS_MAX 64

/* of cuDNN's attributes */
enum { TYPE_OF_DATA = 1, TYPE_INT64 = 3, TYPE_DESCRIPTOR = 15 };
enum {
	HEURISTIC_GRAPH = 201,
	HEURISTIC_RESULTS = 202,
	CONFIG_ENGINE = 300,
	PLAN_CONFIG = 401,
	GRAPH_OPERATIONS = 801,
	TENSOR_TYPE = 901,
	TENSOR_DIMENSIONS = 902,
	ENGINE_GRAPH = 1300,
};

enum operation { NONE, FORWARD, DATA_GRADIENT, FILTER_GRADIENT, MATMUL };
static const char *const operation_names[] = {
	[FORWARD] = "forward",
	[DATA_GRADIENT] = "data gradient",
	[FILTER_GRADIENT] = "filter gradient",
	[MATMUL] = "matmul",
};
enum { X, W, Y, TENSORS }; /* of a matmul A, B and the result */

/* The attributes of an operation that are its tensors. */
static const struct {
	uint32_t attribute;
	enum operation operation;
	int tensor;
} operands[] = {
	{ 703, FORWARD, W },	     { 704, FORWARD, X },	  { 705, FORWARD, Y },
	{ 709, DATA_GRADIENT, W },   { 710, DATA_GRADIENT, X },	  { 711, DATA_GRADIENT, Y },
	{ 715, FILTER_GRADIENT, W }, { 716, FILTER_GRADIENT, X }, { 717, FILTER_GRADIENT, Y },
	{ 1520, MATMUL, X },	     { 1521, MATMUL, W },	  { 1522, MATMUL, Y },
};

struct tensor {
	uint32_t rank; /* 0: not known */
	uint32_t type; /* cudaDataType; CT_UNKNOWN */
	uint64_t size[RANK_MAX];
};

/* What a descriptor says: of a tensor the first one alone. */
struct descriptor {
	uint32_t pid, pad;
	uint64_t handle;
	bool known;   /* an operation, or what was made of some */
	bool unclear; /* of one of its operations not all is known */
	uint8_t operation;
	uint32_t products;
	struct tensor tensors[TENSORS];
	struct ct_gemm sum; /* of an operation or more */
};

struct descriptors {
	struct owned table; /* of struct descriptor */
	uint64_t dropped;
};

struct descriptors *descriptors_open(void)
{
	struct descriptors *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	owned_open_of(&d->table, struct descriptor, handle, DESCRIPTORS_MAX, SHARE);
	return d;
}

void descriptors_close(struct descriptors *d)
{
	if (!d)
		return;
	owned_close(&d->table);
	free(d);
}

bool descriptors_has(const struct api_func *f)
{
	return f->layer == API_LAYER_DESCRIBE || f->layer == API_LAYER_DERIVE ||
	       f->layer == API_LAYER_FORGET;
}

uint64_t descriptors_dropped(const struct descriptors *d)
{
	return d->dropped;
}

/* ---- the table ---- */

static struct descriptor *descriptors_find(struct descriptors *d, uint32_t pid, uint64_t handle)
{
	struct descriptor key = { .pid = pid, .handle = handle };

	return owned_find(&d->table, &key);
}

/* It is described anew: the program may have made another one at its address. */
static void clear(struct descriptor *r)
{
	struct descriptor key = { .pid = r->pid, .handle = r->handle };

	*r = key;
	for (int i = 0; i < TENSORS; i++)
		r->tensors[i].type = CT_UNKNOWN;
}

/* NULL: there is no room. Valid until the next call. */
static struct descriptor *get(struct descriptors *d, uint32_t pid, uint64_t handle)
{
	struct descriptor key = { .pid = pid, .handle = handle }, *r;
	bool made;

	r = owned_get(&d->table, &key, &made);
	d->dropped += !r;
	if (made)
		clear(r);
	return r;
}

static void forget(struct descriptors *d, uint32_t pid, uint64_t handle)
{
	struct descriptor *r = descriptors_find(d, pid, handle);

	if (r)
		owned_remove(&d->table, r);
}

void descriptors_lost(struct descriptors *d)
{
	owned_clear(&d->table);
}

void descriptors_forget(struct descriptors *d, uint32_t pid)
{
	owned_forget(&d->table, pid);
}

/* ---- what a call says ---- */

struct said {
	uint64_t descriptor, name, type;
	uint64_t data_type;
	uint64_t elements[ELEMENTS_MAX];
	uint32_t n;
	bool cut, known; /* known: the elements were read */
	bool dimensions; /* the elements are a tensor's sizes */
	uint64_t x, w, y, plan;
	uint8_t operation;
};

static void hear_number(struct said *said, const struct field *arg)
{
	static const struct {
		const char *name;
		size_t at;
	} words[] = {
		{ "descriptor", offsetof(struct said, descriptor) },
		{ "tensorDesc", offsetof(struct said, descriptor) },
		{ "filterDesc", offsetof(struct said, descriptor) },
		{ "attributeName", offsetof(struct said, name) },
		{ "attributeType", offsetof(struct said, type) },
		{ "datatype", offsetof(struct said, data_type) },
		{ "executionPlan", offsetof(struct said, plan) },
		{ "xDesc", offsetof(struct said, x) },
		{ "dxDesc", offsetof(struct said, x) },
		{ "wDesc", offsetof(struct said, w) },
		{ "dwDesc", offsetof(struct said, w) },
		{ "yDesc", offsetof(struct said, y) },
		{ "dyDesc", offsetof(struct said, y) },
	};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (!strcmp(arg->name, words[i].name))
			memcpy((char *)said + words[i].at, &arg->u, sizeof(arg->u));
	if (!strcmp(arg->name, "dxDesc"))
		said->operation = DATA_GRADIENT;
	else if (!strcmp(arg->name, "dwDesc"))
		said->operation = FILTER_GRADIENT;
	/* the sizes of a tensor with four dimensions are numbers, in this order */
	if (arg->name[0] && !arg->name[1] && strchr("Nkchw", arg->name[0]) &&
	    arg->type == FIELD_INT && said->n < ELEMENTS_MAX) {
		said->elements[said->n++] = arg->u;
		said->known = said->dimensions = true;
	}
}

static void hear(const struct ct_call *call, struct said *said)
{
	struct field args[FIELDS_MAX];
	int n = api_decode(call, API_ARCH_HERE, args, FIELDS_MAX);
	bool list = false;

	memset(said, 0, sizeof(*said));
	said->operation = FORWARD;
	for (int i = 0; i < n; i++) {
		const struct field *arg = &args[i];

		if (arg->type == FIELD_OPEN && !arg->absent) {
			list = said->known = true;
			said->cut = arg->cut;
			said->dimensions = strcmp(arg->name, "arrayOfElements") != 0;
		} else if (arg->type == FIELD_CLOSE) {
			list = false;
		} else if (list) {
			if (said->n < ELEMENTS_MAX)
				said->elements[said->n++] = arg->u;
		} else if (arg->name && !arg->absent) {
			hear_number(said, arg);
		}
	}
}

/* cudaDataType of a cudnnDataType_t. */
static uint32_t type_of(uint64_t type)
{
	static const uint8_t types[] = {
		[0] = 0 + 1,   [1] = 1 + 1,   [2] = 2 + 1,   [3] = 3 + 1,   [4] = 10 + 1,
		[6] = 8 + 1,   [9] = 14 + 1,  [10] = 24 + 1, [12] = 28 + 1, [13] = 29 + 1,
		[15] = 30 + 1, [16] = 33 + 1, [17] = 16 + 1, [18] = 18 + 1, [19] = 12 + 1,
		[20] = 4 + 1,  [21] = 5 + 1
	};

	type &= UINT32_MAX;
	return type < ARRAY_LEN(types) && types[type] ? types[type] - 1u : CT_UNKNOWN;
}

static void set_sizes(struct tensor *t, const struct said *said)
{
	t->rank = 0;
	if (said->cut || said->n > RANK_MAX)
		return;
	for (uint32_t i = 0; i < said->n; i++) {
		if (!said->elements[i] || said->elements[i] > SIZE_OF_TENSOR_MAX)
			return;
		t->size[i] = said->elements[i];
	}
	t->rank = said->n;
}

/* ---- operations ---- */

/* The product of sizes from one on. False: no matrix has as many. */
static bool multiply(const struct tensor *t, uint32_t from, uint32_t to, uint64_t *out)
{
	for (uint32_t i = from; i < to; i++)
		if (__builtin_mul_overflow(*out, t->size[i], out))
			return false;
	return true;
}

/* Of a convolution as products of matrices: as many as it has groups. */
static bool convolution(struct descriptor *r, struct ct_gemm *out)
{
	const struct tensor *x = &r->tensors[X], *w = &r->tensors[W], *y = &r->tensors[Y];
	uint64_t places, filter = 1, groups;

	if (x->rank < 3 || w->rank != x->rank || y->rank != x->rank || x->size[0] != y->size[0] ||
	    y->size[1] != w->size[0] || x->size[1] % w->size[1])
		return false;
	groups = x->size[1] / w->size[1];
	places = y->size[0];
	if (w->size[0] % groups || !multiply(y, 2, y->rank, &places) ||
	    !multiply(w, 1, w->rank, &filter))
		return false;
	out->m = r->operation == FILTER_GRADIENT ? w->size[0] / groups : places;
	out->n = r->operation == FORWARD ? w->size[0] / groups : filter;
	out->k = r->operation == FORWARD	 ? filter
		 : r->operation == DATA_GRADIENT ? w->size[0] / groups
						 : places;
	out->batch = groups;
	out->a_type = r->operation == FORWARD ? x->type : y->type;
	out->b_type = r->operation == FILTER_GRADIENT ? x->type : w->type;
	out->d_type = r->tensors[r->operation == FORWARD	 ? Y
				 : r->operation == DATA_GRADIENT ? X
								 : W]
			      .type;
	out->flags |= CT_GEMM_CONVOLUTION;
	return true;
}

/* The last two sizes are the matrices', those before how many there are: of A and B they may be 1. */
static bool matmul(struct descriptor *r, struct ct_gemm *out)
{
	const struct tensor *a = &r->tensors[X], *b = &r->tensors[W], *d = &r->tensors[Y];
	uint32_t n = d->rank;
	uint64_t batch = 1;

	if (n < 2 || a->rank != n || b->rank != n || a->size[n - 2] != d->size[n - 2] ||
	    b->size[n - 1] != d->size[n - 1] || a->size[n - 1] != b->size[n - 2])
		return false;
	for (uint32_t i = 0; i + 2 < n; i++)
		if (d->size[i] % a->size[i] || d->size[i] % b->size[i])
			return false;
	out->m = d->size[n - 2];
	out->n = d->size[n - 1];
	out->k = a->size[n - 1];
	out->a_type = a->type;
	out->b_type = b->type;
	out->d_type = d->type;
	if (!multiply(d, 0, n - 2, &batch))
		return false;
	out->batch = batch;
	return true;
}

static struct ct_gemm nothing(void)
{
	return (struct ct_gemm){ .a_type = CT_UNKNOWN,
				 .b_type = CT_UNKNOWN,
				 .d_type = CT_UNKNOWN,
				 .compute = CT_UNKNOWN,
				 .trans_a = CT_UNKNOWN,
				 .trans_b = CT_UNKNOWN };
}

/* Computes what an operation is, each time that one of its tensors is said. */
static void compute(struct descriptor *r)
{
	struct ct_gemm g = nothing();

	r->known = true;
	r->products = 1;
	r->unclear = !(r->operation == MATMUL ? matmul(r, &g) : convolution(r, &g)) ||
		     !gemm_add_flop(&g, g.m, g.n, g.k, g.batch);
	if (r->unclear)
		g = nothing();
	else
		g.flags |= CT_GEMM_SHAPE;
	r->sum = g;
}

/* One more operation of a graph. */
static void add_operation(struct descriptor *graph, const struct descriptor *op)
{
	bool first = !graph->products;

	graph->unclear |= op->unclear;
	if (!op->products)
		return;
	graph->products += op->products;
	if (first) {
		graph->operation = op->operation;
		graph->sum = op->sum;
		memcpy(graph->tensors, op->tensors, sizeof(op->tensors));
		return;
	}
	if (__builtin_add_overflow(graph->sum.flop, op->sum.flop, &graph->sum.flop))
		graph->unclear = true;
	/* several products have no one shape */
	graph->sum.flags &= ~(uint32_t)CT_GEMM_SHAPE;
	graph->sum.m = graph->sum.n = graph->sum.k = graph->sum.batch = 0;
}

/* A graph of operations. One that was not described, or is no product, adds nothing. */
static void set_graph(struct descriptors *d, uint32_t pid, const struct said *said)
{
	struct descriptor graph = { .known = true, .sum = nothing() };
	const struct descriptor *op;
	struct descriptor *r;

	graph.unclear = said->cut;
	for (uint32_t i = 0; i < said->n; i++) {
		op = descriptors_find(d, pid, said->elements[i]);
		if (op)
			add_operation(&graph, op);
	}
	r = get(d, pid, said->descriptor);
	if (!r)
		return;
	graph.pid = r->pid;
	graph.handle = r->handle;
	*r = graph;
}

/* What is made of one descriptor says what that one says. */
static void take_over(struct descriptors *d, uint32_t pid, uint64_t to, uint64_t from)
{
	const struct descriptor *of = descriptors_find(d, pid, from);
	struct descriptor copy, *r;

	if (!of || !of->known) {
		forget(d, pid, to);
		return;
	}
	copy = *of;
	r = get(d, pid, to);
	if (!r)
		return;
	copy.handle = to;
	*r = copy;
}

static void set_operand(struct descriptors *d, uint32_t pid, const struct said *said,
			enum operation operation, int which)
{
	const struct descriptor *of = descriptors_find(d, pid, said->elements[0]);
	struct tensor t = of && !of->known ? of->tensors[0] : (struct tensor){ 0 };
	struct descriptor *r = get(d, pid, said->descriptor);

	if (!r)
		return;
	if (!r->known || r->operation != operation)
		clear(r);
	r->operation = (uint8_t)operation;
	r->tensors[which] = t;
	compute(r);
}

/* ---- attributes ---- */

static struct descriptor *tensor_get(struct descriptors *d, uint32_t pid, const struct said *said)
{
	struct descriptor *r = get(d, pid, said->descriptor);

	if (r && r->known)
		clear(r);
	return r;
}

/* Is it an attribute of what is followed here? Else there is another thing at the address now. */
static bool is_ours(uint64_t name)
{
	static const uint16_t ranges[][2] = { { 200, 299 },   { 300, 399 },  { 400, 499 },
					      { 700, 717 },   { 800, 899 },  { 900, 999 },
					      { 1300, 1399 }, { 1520, 1527 } };

	for (size_t i = 0; i < ARRAY_LEN(ranges); i++)
		if (name >= ranges[i][0] && name <= ranges[i][1])
			return true;
	return false;
}

static void attribute(struct descriptors *d, uint32_t pid, const struct said *said)
{
	struct descriptor *r;

	if (!is_ours(said->name)) {
		forget(d, pid, said->descriptor);
		return;
	}
	switch (said->name) {
	case TENSOR_TYPE:
		r = said->type == TYPE_OF_DATA ? tensor_get(d, pid, said) : NULL;
		if (r)
			r->tensors[0].type = type_of(said->elements[0]);
		return;
	case TENSOR_DIMENSIONS:
		r = said->type == TYPE_INT64 ? tensor_get(d, pid, said) : NULL;
		if (r)
			set_sizes(&r->tensors[0], said);
		return;
	}
	if (said->type != TYPE_DESCRIPTOR)
		return;
	switch (said->name) {
	case HEURISTIC_GRAPH:
	case ENGINE_GRAPH:
	case CONFIG_ENGINE:
	case PLAN_CONFIG: take_over(d, pid, said->descriptor, said->elements[0]); return;
	case GRAPH_OPERATIONS: set_graph(d, pid, said); return;
	}
	for (size_t i = 0; i < ARRAY_LEN(operands); i++)
		if (operands[i].attribute == said->name)
			set_operand(d, pid, said, operands[i].operation, operands[i].tensor);
}

/* The older functions describe a tensor at once. */
static void old_tensor(struct descriptors *d, uint32_t pid, const struct said *said)
{
	struct descriptor *r = get(d, pid, said->descriptor);

	if (!r)
		return;
	clear(r);
	r->tensors[0].type = type_of(said->data_type);
	set_sizes(&r->tensors[0], said);
}

void descriptors_learn(struct descriptors *d, const struct ct_call *call)
{
	uint8_t layer = api_funcs[call->func].layer;
	struct said said;

	hear(call, &said);
	if (layer == API_LAYER_FORGET) {
		forget(d, call->h.pid, said.descriptor);
	} else if (layer == API_LAYER_DERIVE) {
		if (said.name == HEURISTIC_RESULTS && said.type == TYPE_DESCRIPTOR)
			for (uint32_t i = 0; i < said.n; i++)
				take_over(d, call->h.pid, said.elements[i], said.descriptor);
	} else if (!said.known || !said.n) { /* what it says could not be read */
		forget(d, call->h.pid, said.descriptor);
	} else if (said.dimensions) {
		old_tensor(d, call->h.pid, &said);
	} else {
		attribute(d, call->h.pid, &said);
	}
}

/* ---- calls ---- */

static size_t add_tensor(char *text, size_t size, size_t n, const char *name,
			 const struct tensor *t)
{
	for (uint32_t i = 0; i < t->rank && n < size; i++)
		n += (size_t)snprintf(text + n, size - n, "%s%s%llu", i ? "" : name, i ? ", " : "[",
				      (unsigned long long)t->size[i]);
	if (n < size)
		n += (size_t)snprintf(text + n, size - n, "]");
	return n;
}

/* "forward, x[...], w[...], y[...]"; "": it does not fit. */
static void describe(const struct descriptor *r, char *text, size_t size)
{
	const char *const names[] = { ", x", ", w", ", y" };
	size_t n;

	if (!r->products)
		n = (size_t)snprintf(text, size, "no product");
	else if (r->products > 1)
		n = (size_t)snprintf(text, size, "%u products", r->products);
	else
		n = (size_t)snprintf(text, size, "%s", operation_names[r->operation]);
	for (int i = 0; i < TENSORS && r->products == 1 && r->operation != MATMUL; i++)
		n = add_tensor(text, size, n, names[i], &r->tensors[i]);
	if (n >= size)
		*text = '\0';
}

/* One convolution by the older functions. */
static void old_call(struct descriptors *d, uint32_t pid, const struct said *said,
		     struct descriptor *out)
{
	const uint64_t handles[] = { said->x, said->w, said->y };

	*out = (struct descriptor){ .pid = pid };
	clear(out);
	out->operation = said->operation;
	for (int i = 0; i < TENSORS; i++) {
		const struct descriptor *of = descriptors_find(d, pid, handles[i]);

		if (of && !of->known)
			out->tensors[i] = of->tensors[0];
	}
	compute(out);
}

void descriptors_begin(struct descriptors *d, const struct ct_call *call, struct ct_gemm *out,
		       char *text, size_t size)
{
	const struct descriptor *plan;
	struct descriptor r;
	struct said said;

	*text = '\0';
	*out = nothing();
	out->flags = CT_GEMM_NETWORK;
	hear(call, &said);
	if (said.plan) {
		plan = descriptors_find(d, call->h.pid, said.plan);
		if (!plan || !plan->known)
			return;
		r = *plan;
	} else {
		old_call(d, call->h.pid, &said, &r);
	}
	if (r.unclear)
		return;
	*out = r.sum;
	out->flags |= CT_GEMM_NETWORK;
	describe(&r, text, size);
}
