/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * convolutions.c - convolutions and products by cuDNN: convolutions MODE.
 *   all    one of each kind, by plans and by the older functions, and some of which not all is known
 *   wait   makes a plan; then runs it for each byte of stdin, and makes another one before that for "n"; "q" ends
 */
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void *made[64];
static int nmade;

static void *descriptor(void)
{
	cudnnBackendCreateDescriptor(CUDNN_BACKEND_ANY_DESCRIPTOR, &made[nmade]);
	return made[nmade++];
}

/* Only the plan stays, as in PyTorch. */
static void drop_others(void *plan)
{
	for (int i = 0; i < nmade; i++)
		if (made[i] != plan)
			cudnnBackendDestroyDescriptor(made[i]);
	nmade = 0;
}

static void set(void *of, int name, void *const *elements, int n)
{
	cudnnBackendSetAttribute(of, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, n, elements);
}

static void *tensor(int type, int rank, const int64_t *sizes)
{
	void *t = descriptor();

	cudnnBackendSetAttribute(t, 901, CUDNN_TYPE_DATA_TYPE, 1, &type);
	cudnnBackendSetAttribute(t, 902, CUDNN_TYPE_INT64, rank, sizes);
	cudnnBackendSetAttribute(t, 903, CUDNN_TYPE_INT64, rank, sizes);
	return t;
}

/* An operation whose tensors are these attributes. */
static void *operation(const int names[3], int type, int rank, const int64_t *const sizes[3])
{
	void *op = descriptor();

	for (int i = 0; i < 3; i++) {
		void *t = tensor(type, rank, sizes[i]);

		set(op, names[i], &t, 1);
	}
	return op;
}

static void *pointwise(void)
{
	static const int64_t sizes[] = { 4, 8 };
	void *op = descriptor(), *t = tensor(CUDNN_DATA_FLOAT, 2, sizes);

	set(op, 750, &t, 1);
	return op;
}

/* The plan for some operations: by the results of a heuristic, or by an engine. */
static void *plan_of(void *const *ops, int n, int heuristic)
{
	void *graph = descriptor(), *config = descriptor(), *more = descriptor(),
	     *plan = descriptor();
	void *results[2] = { more, config };
	int64_t count;

	set(graph, 801, ops, n);
	if (heuristic) {
		void *heur = descriptor();

		set(heur, 201, &graph, 1);
		cudnnBackendGetAttribute(heur, 202, CUDNN_TYPE_BACKEND_DESCRIPTOR, 2, &count,
					 results);
	} else {
		void *engine = descriptor();

		set(engine, 1300, &graph, 1);
		set(config, 300, &engine, 1);
	}
	set(plan, 401, &config, 1);
	drop_others(plan);
	return plan;
}

static void run(void *plan)
{
	void *pack = descriptor();
	static void *const pointers[3];

	cudnnBackendSetAttribute(pack, 1001, 6, 3, pointers);
	cudnnBackendExecute(&nmade, plan, pack);
	drop_others(NULL);
}

static void run_and_drop(void *plan)
{
	run(plan);
	cudnnBackendDestroyDescriptor(plan);
}

static const int forward[] = { 704, 703, 705 }, data[] = { 710, 709, 711 },
		 filter[] = { 716, 715, 717 }, matmul[] = { 1520, 1521, 1522 };
static const int64_t x[] = { 4, 8, 9, 9 }, w[] = { 16, 8, 3, 3 }, y[] = { 4, 16, 7, 7 };
static const int64_t half_w[] = { 16, 4, 3, 3 };
static const int64_t x3[] = { 2, 4, 5, 6, 7 }, w3[] = { 8, 4, 2, 2, 2 }, y3[] = { 2, 8, 4, 5, 6 };
static const int64_t q[] = { 2, 12, 64, 32 }, k[] = { 2, 12, 32, 128 }, s[] = { 2, 12, 64, 128 },
		     v[] = { 2, 1, 128, 32 };
static const int64_t *const sizes[] = { x, w, y }, *const grouped[] = { x, half_w, y },
			    *const in3[] = { x3, w3, y3 }, *const wrong[] = { x, w, x },
			    *const scores[] = { q, k, s }, *const values[] = { s, v, q };

static void by_plans(void)
{
	void *ops[3], *plan;

	ops[0] = operation(forward, CUDNN_DATA_HALF, 4, sizes);
	run_and_drop(plan_of(ops, 1, 1));
	ops[0] = operation(forward, CUDNN_DATA_BFLOAT16, 4, grouped);
	run_and_drop(plan_of(ops, 1, 0));
	ops[0] = operation(data, CUDNN_DATA_FLOAT, 4, sizes);
	run_and_drop(plan_of(ops, 1, 1));
	ops[0] = operation(filter, CUDNN_DATA_FLOAT, 4, sizes);
	run_and_drop(plan_of(ops, 1, 0));
	/* with what is done to each element, in one plan */
	ops[0] = operation(forward, CUDNN_DATA_FLOAT, 5, in3);
	ops[1] = pointwise();
	run_and_drop(plan_of(ops, 2, 1));
	/* attention */
	ops[0] = operation(matmul, CUDNN_DATA_HALF, 4, scores);
	ops[1] = pointwise();
	ops[2] = operation(matmul, CUDNN_DATA_HALF, 4, values);
	run_and_drop(plan_of(ops, 3, 1));
	ops[0] = operation(matmul, CUDNN_DATA_HALF, 4, scores);
	run_and_drop(plan_of(ops, 1, 1));
	ops[0] = pointwise();
	run_and_drop(plan_of(ops, 1, 1));
	/* tensors that do not fit each other */
	ops[0] = operation(forward, CUDNN_DATA_FLOAT, 4, wrong);
	run_and_drop(plan_of(ops, 1, 1));
	/* where a plan was that is no more, is one that nobody described */
	ops[0] = operation(forward, CUDNN_DATA_HALF, 4, sizes);
	plan = plan_of(ops, 1, 1);
	cudnnBackendDestroyDescriptor(plan);
	run(plan);
	cudnnBackendExecute(&nmade, NULL, NULL);
}

static void by_older_functions(void)
{
	static const int in[] = { 4, 8, 9, 9 }, by[] = { 16, 8, 3, 3 };
	void *xd, *wd, *yd;

	cudnnCreateTensorDescriptor(&xd);
	cudnnCreateTensorDescriptor(&wd);
	cudnnCreateTensorDescriptor(&yd);
	cudnnSetTensorNdDescriptor(xd, CUDNN_DATA_HALF, 4, in, in);
	cudnnSetFilterNdDescriptor(wd, CUDNN_DATA_HALF, 0, 4, by);
	cudnnSetTensor4dDescriptor(yd, 0, CUDNN_DATA_HALF, 4, 16, 7, 7);
	cudnnConvolutionForward(&xd, in, xd, in, wd, in, &xd, 1, NULL, 0, in, yd, &nmade);
	cudnnConvolutionBackwardData(&xd, in, wd, in, yd, in, &xd, 1, NULL, 0, in, xd, &nmade);
	cudnnConvolutionBackwardFilter(&xd, in, xd, in, yd, in, &xd, 1, NULL, 0, in, wd, &nmade);
	cudnnDestroyTensorDescriptor(yd);
	cudnnConvolutionForward(&xd, in, xd, in, wd, in, &xd, 1, NULL, 0, in, yd, &nmade);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "all";
	void *op, *plan;
	char c;

	if (!strcmp(mode, "all")) {
		by_plans();
		by_older_functions();
		return 0;
	}
	op = operation(forward, CUDNN_DATA_HALF, 4, sizes);
	plan = plan_of(&op, 1, 1);
	puts("ready");
	fflush(stdout);
	while (read(0, &c, 1) == 1 && c != 'q') {
		if (c == 'n') {
			op = operation(forward, CUDNN_DATA_HALF, 4, sizes);
			plan = plan_of(&op, 1, 1);
		}
		run(plan);
	}
	return 0;
}
