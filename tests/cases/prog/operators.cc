/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * operators.cc - PyTorch's operators, by the stand-in for libtorch_cpu: operators WHAT [N].
 *
 *   train N   N steps: forward, backward in a thread of autograd's, and an optimizer's step
 *   plain N   the same without the optimizer's range
 *   steps N   the same within ranges ProfilerStep#1 and on
 *   tokens N  N times what a small language model calls for a token, eagerly: 814 operators, 618 launches of 24 kernels in
 *             many shapes, 4500 calls
 *   throws    an operator throws through another one; then one that does not; then a copy
 *   shapes    operators with tensors of all sorts: such that are none, and that cannot be known
 *   deep N    N operators in each other, with a copy inside the innermost
 *   compiled  a graph that torch.compile made, and an operator
 *   cost N    N operators with five tensors, and how many nanoseconds each took
 *   wait      inside an operator: for each byte on stdin a step; q ends it
 */
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <unistd.h>

#include <cuda_runtime_api.h>

#include "../../standin/torch_standin.h"

namespace profiler = torch::autograd::profiler;

static char buffer[256];
static void *memory;

static void copy()
{
	cudaMemcpy(memory, buffer, sizeof(buffer), cudaMemcpyHostToDevice);
}

static void backward()
{
	torch::autograd::generated::AddmmBackward0 addmm;
	torch::autograd::AccumulateGrad accumulate;

	addmm.apply({ at::Tensor(1) });
	accumulate.apply({ at::Tensor(1) });
}

static void step(bool optimizer)
{
	at::Tensor t(1);

	copy();
	t = at::_ops::addmm::call(t);
	t = at::_ops::log_softmax_int::call(t);
	std::thread(backward).join();
	if (optimizer) {
		profiler::Handle h =
			profiler::record_function_enter_new("Optimizer.step#SGD.step", {});

		at::_ops::add__Tensor::call(t);
		profiler::leave(h);
	}
	cudaDeviceSynchronize();
}

static void profiled(int n)
{
	for (int i = 1; i <= n; i++) {
		profiler::Handle h = profiler::record_function_enter_new(
			("ProfilerStep#" + std::to_string(i)).c_str(), {});

		step(true);
		profiler::leave(h);
	}
}

/* The shapes of this token's launches: the same in each token. */
static unsigned int nth;

static void launch_next()
{
	static const char kernels[24] = {};
	unsigned int n = nth++;

	cudaLaunchKernel(&kernels[n * 7 % 24], { 1 + n * n % 61, 1 + n % 3, 1 },
			 { 32 * (1 + n % 8), 1, 1 }, nullptr, n % 5 * 512, nullptr);
}

static void queries(int n)
{
	int device;

	for (int i = 0; i < n; i++)
		if (i % 3 == 2)
			cudaGetLastError();
		else
			cudaGetDevice(&device);
}

static void token()
{
	at::Tensor t(1);

	nth = 0;
	for (int i = 0; i < 98; i++) {
		queries(6);
		t = at::_ops::addmm::call(t); /* with two more, one of which launches */
		for (int k = 0; k < 5 + (i < 30); k++) {
			queries(6);
			if (k % 2)
				t = at::_ops::log_softmax_int::call(t);
			else
				at::_ops::nest::call(t, 1, launch_next);
		}
	}
	queries(171);
	copy();
	copy();
	cudaDeviceSynchronize();
}

static void throws()
{
	at::Tensor t(1);

	try {
		at::_ops::nest::call(t, 2, [] { at::_ops::orphan_op::call(-1); });
	} catch (const std::runtime_error &e) {
		printf("caught: %s\n", e.what());
	}
	at::_ops::orphan_op::call(t);
	copy();
}

static c10::TensorImpl made(uint16_t type, std::initializer_list<int64_t> sizes)
{
	c10::TensorImpl t;

	t.type = type;
	t.rank = sizes.size();
	for (const int64_t &n : sizes) {
		if (&n - sizes.begin() < 5)
			t.sizes[&n - sizes.begin()] = n;
		t.numel *= n;
	}
	return t;
}

static void shapes()
{
	c10::TensorImpl matrix = made(6, { 4, 3 }), number = made(4, {}), none = made(47, { 0 }),
			deep = made(6, { 1, 1, 1, 1, 1, 2 }), other = made(15, { 2, 0, 5, 1, 1000000 }),
			custom = made(6, { 2, 2 }), wrong = made(6, { 2, 3 }),
			odd = made(40, { 7 });
	auto tensor = [](const c10::TensorImpl &t) {
		return at::Tensor(reinterpret_cast<long>(&t));
	};
	at::Tensor m = tensor(matrix), list[2] = { m, m },
		   many[5] = { m, tensor(number), tensor(wrong), tensor(none), m };

	custom.policy = 2;
	wrong.numel = 5;
	at::_ops::shapes_all::call(m, std::nullopt, { list, 2 }, 1.0, true, m);
	at::_ops::shapes_all::call(tensor(number), tensor(other), { list, 0 }, 1.0, true, m);
	at::_ops::shapes__all::call(m, tensor(none));
	at::_ops::shapes__all::call(m, tensor(deep));
	at::_ops::shapes__all::call(m, tensor(custom));
	at::_ops::shapes__all::call(m, tensor(wrong));
	at::_ops::shapes__all::call(m, tensor(odd));
	at::_ops::shapes__all::call(m, at::Tensor(8));
	at::_ops::shapes_cat::call({ many, 5, 0 }, 0);
	at::_ops::shapes_cat::call({ list, 2, 1 }, 0); /* it is in another form */
	at::_ops::shapes_cat::call({ reinterpret_cast<const at::Tensor *>(8), 2, 0 }, 0);
	at::_ops::is_it::call(m);
	at::_ops::orphan_op::call(m); /* its schema is not known */
}

static void cost(int n)
{
	c10::TensorImpl matrix = made(6, { 4, 3 });
	at::Tensor m(reinterpret_cast<long>(&matrix)), list[2] = { m, m };
	const std::optional<at::Tensor> weight(m);
	auto begin = std::chrono::steady_clock::now();

	for (int i = 0; i < n; i++)
		at::_ops::shapes_all::call(m, weight, { list, 2 }, 1.0, true, m);
	std::chrono::nanoseconds took = std::chrono::steady_clock::now() - begin;
	printf("%.1f\n", (double)took.count() / n);
}

static void steps_by_bytes()
{
	for (char c; read(0, &c, 1) == 1 && c != 'q';) {
		step(true);
		puts("stepped");
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int n = argc > 2 ? atoi(argv[2]) : 1;

	cudaMalloc(&memory, sizeof(buffer));
	if (!strcmp(what, "train") || !strcmp(what, "plain")) {
		for (int i = 0; i < n; i++)
			step(!strcmp(what, "train"));
	} else if (!strcmp(what, "tokens")) {
		for (int i = 0; i < n; i++)
			token();
	} else if (!strcmp(what, "steps")) {
		profiled(n);
	} else if (!strcmp(what, "compiled")) {
		torch::run_compiled("Torch-Compiled Region: 0/0");
		torch::run_compiled("Torch-Compiled Region: 1/0");
		at::_ops::mm::call(at::Tensor(1));
	} else if (!strcmp(what, "throws")) {
		throws();
	} else if (!strcmp(what, "shapes")) {
		shapes();
	} else if (!strcmp(what, "deep")) {
		at::_ops::nest::call(1, n, copy);
	} else if (!strcmp(what, "cost")) {
		cost(n);
	} else if (!strcmp(what, "wait")) {
		puts("ready");
		fflush(stdout);
		at::_ops::nest::call(1, 1, steps_by_bytes);
	} else {
		return 2;
	}
	cudaFree(memory);
	return 0;
}
