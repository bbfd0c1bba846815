/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * torch.cc - stands in for libtorch_cpu: operators, nodes of autograd's graph and record_function(),
 * with the names that compilers give PyTorch's own, and the schemas among its constants.
 */
#include "torch_standin.h"

#include <cuda_runtime_api.h>

#include "../../target/common/prologue.h"

/* As PyTorch registers them. That of log_softmax.int is the end of another one, as linkers merge
 * such texts; mm has no overload; of orphan_op there is none. */
__attribute__((used)) static const char *const schemas[] = {
	"addmm(Tensor self, Tensor mat1, Tensor mat2) -> Tensor",
	"mm(Tensor self, Tensor mat2) -> Tensor",
	"add_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
	"empty.memory_format(SymInt[] size) -> Tensor",
	"shapes.all(Tensor self, Tensor? weight, Tensor[] list, float eps, *, bool flag, Tensor last) -> Tensor",
	"shapes.cat(Tensor[] tensors, int dim) -> Tensor",
	"shapes_.all(Tensor(a!) self, Tensor other) -> Tensor(a!)",
	"_this_is_it(Tensor self) -> bool",
	"other_is_it(Tensor self, bool flag) -> Tensor",
	"_sparse_log_softmax.int(Tensor self, int dim) -> Tensor",
};

static void launch()
{
	cudaLaunchKernel(reinterpret_cast<const void *>(launch), { 1, 1, 1 }, { 32, 1, 1 }, nullptr,
			 0, nullptr);
}

/* What tells where a TensorImpl keeps its shape. */
static const c10::TensorImpl *impl(const at::Tensor *t)
{
	return reinterpret_cast<const c10::TensorImpl *>(t->value);
}
extern "C" {
int aoti_torch_get_dim(const at::Tensor *t, int64_t *out)
{
	*out = impl(t)->policy >= 2 ? impl(t)->dim_custom() : (int64_t)impl(t)->rank;
	return 0;
}
int aoti_torch_get_numel(const at::Tensor *t, int64_t *out)
{
	*out = impl(t)->policy >= 2 ? impl(t)->dim_custom() : impl(t)->numel;
	return 0;
}
int aoti_torch_get_dtype(const at::Tensor *t, int32_t *out)
{
	uint16_t type = impl(t)->type;

	if (type > 47)
		throw std::runtime_error("no type");
	*out = type;
	return 0;
}
}

namespace at::_ops
{
Tensor mm::call(const Tensor &self)
{
	PUSHES();
	launch();
	return self;
}
Tensor addmm::call(const Tensor &self)
{
	PUSHES();
	Tensor t = mm::call(empty_memory_format::call(self));
	return t;
}
Tensor add__Tensor::call(const Tensor &self)
{
	PUSHES();
	launch();
	return self;
}
Tensor empty_memory_format::call(const Tensor &self)
{
	PUSHES();
	return self;
}
Tensor log_softmax_int::call(const Tensor &self)
{
	PUSHES();
	launch();
	return self;
}
Tensor orphan_op::call(const Tensor &self)
{
	PUSHES();
	if (self.value < 0)
		throw std::runtime_error("the shapes do not fit");
	return self;
}
Tensor shapes_all::call(const Tensor &self, const std::optional<Tensor> &, c10::ArrayRef<Tensor>,
			double, bool, const Tensor &)
{
	PUSHES();
	return self;
}
Tensor shapes_cat::call(const c10::IListRef<Tensor> &tensors, long)
{
	PUSHES();
	return Tensor((long)tensors.length);
}
Tensor &shapes__all::call(Tensor &self, const Tensor &)
{
	PUSHES();
	return self;
}
bool is_it::call(const Tensor &)
{
	PUSHES();
	return true;
}
Tensor nest::call(const Tensor &self, int depth, void (*innermost)())
{
	PUSHES();
	static Tensor (*volatile again)(const Tensor &, int, void (*)()) = nest::call;
	Tensor t = self;

	if (depth > 1)
		t = again(self, depth - 1, innermost);
	else if (innermost)
		innermost();
	return t;
}
} // namespace at::_ops

namespace torch::autograd
{
std::vector<at::Tensor> generated::AddmmBackward0::apply(std::vector<at::Tensor> &&grads)
{
	PUSHES();
	grads[0] = at::_ops::mm::call(grads[0]);
	return grads;
}
std::vector<at::Tensor> AccumulateGrad::apply(std::vector<at::Tensor> &&grads)
{
	PUSHES();
	grads[0] = at::_ops::add__Tensor::call(grads[0]);
	return grads;
}
} // namespace torch::autograd

namespace torch::autograd::profiler
{
Handle record_function_enter_new(const std::string &name, const std::optional<std::string> &)
{
	PUSHES();
	return Handle(name.size());
}
__attribute__((noinline)) static void record_function_exit_new(const Handle &h)
{
	PUSHES();
	asm volatile("" ::"r"(&h) : "memory");
}
void leave(const Handle &h)
{
	PUSHES();
	record_function_exit_new(h);
	asm volatile("");
}
} // namespace torch::autograd::profiler

/* What torch.compile's own code calls. As in libtorch_python, no other file sees these functions. */
extern "C" {
__attribute__((noinline, visibility("hidden"))) void *_pytorch_record_function_enter(const char *name)
{
	PUSHES();
	asm volatile("" ::"r"(name) : "memory");
	return const_cast<char *>(name);
}
__attribute__((noinline, visibility("hidden"))) void _pytorch_record_function_exit(void *state)
{
	PUSHES();
	asm volatile("" ::"r"(state) : "memory");
}
}

void torch::run_compiled(const char *region)
{
	void *state = _pytorch_record_function_enter(region);

	launch();
	_pytorch_record_function_exit(state);
}
