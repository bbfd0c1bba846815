/* SPDX-License-Identifier: BSD-2-Clause */
/* torch_standin.h - what the stand-in for libtorch_cpu has; its programs and itself include it. */
#ifndef CT_TORCH_STANDIN_H
#define CT_TORCH_STANDIN_H

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace at
{
/* as PyTorch's, it is returned in memory, and has a destructor */
struct Tensor {
	long value = 0;
	Tensor(long v) : value(v)
	{
	}
	Tensor(const Tensor &t) : value(t.value)
	{
	}
	Tensor &operator=(const Tensor &) = default;
	~Tensor()
	{
		value = 0;
	}
};
namespace _ops
{
struct mm {
	static Tensor call(const Tensor &self);
};
struct addmm {
	static Tensor call(const Tensor &self);
};
struct add__Tensor {
	static Tensor call(const Tensor &self);
};
struct empty_memory_format {
	static Tensor call(const Tensor &self);
};
struct log_softmax_int {
	static Tensor call(const Tensor &self);
};
/* throws if the value is negative */
struct orphan_op {
	static Tensor call(const Tensor &self);
};
struct nest {
	static Tensor call(const Tensor &self, int depth, void (*innermost)());
};
} // namespace _ops
} // namespace at

namespace torch::autograd
{
namespace generated
{
struct AddmmBackward0 {
	std::vector<at::Tensor> apply(std::vector<at::Tensor> &&grads);
};
} // namespace generated
struct AccumulateGrad {
	std::vector<at::Tensor> apply(std::vector<at::Tensor> &&grads);
};
namespace profiler
{
struct Handle {
	unsigned long record;
	Handle(unsigned long r) : record(r)
	{
	}
	Handle(const Handle &h) : record(h.record)
	{
	}
	~Handle()
	{
	}
};
Handle record_function_enter_new(const std::string &name, const std::optional<std::string> &args);
void leave(const Handle &); /* calls record_function_exit_new, which has no name outside */
} // namespace profiler
} // namespace torch::autograd

namespace torch
{
void run_compiled(const char *region); /* launches a kernel as torch.compile's code does */
}

#endif
