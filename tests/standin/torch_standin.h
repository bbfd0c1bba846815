/* SPDX-License-Identifier: BSD-2-Clause */
/* torch_standin.h - what the stand-in for libtorch_cpu has; its programs and itself include it. */
#ifndef CT_TORCH_STANDIN_H
#define CT_TORCH_STANDIN_H

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace c10
{
/* Where PyTorch's own has the shape and the type it is not the same place, but in the same order. */
struct TensorImpl {
	virtual ~TensorImpl() = default;
	virtual int64_t dim_custom() const
	{
		return -1;
	}
	uint64_t others[9] = {};
	uint64_t rank = 0;
	int64_t sizes[5] = {}, strides[5] = {};
	int64_t storage_offset = 0, numel = 1;
	uint16_t type = 6;
	uint8_t device[3] = {};
	uint8_t contiguous : 3, policy : 2;
	TensorImpl() : contiguous(7), policy(0)
	{
	}
};
template <typename T> struct ArrayRef {
	const T *data;
	size_t length;
};
/* a list in one of several forms; form 0: an array */
template <typename T> struct IListRef {
	const T *array;
	size_t length;
	int form;
};
} // namespace c10

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
struct shapes_all {
	static Tensor call(const Tensor &self, const std::optional<Tensor> &weight,
			   c10::ArrayRef<Tensor> list, double eps, bool flag, const Tensor &last);
};
struct shapes_cat {
	static Tensor call(const c10::IListRef<Tensor> &tensors, long dim);
};
struct shapes__all {
	static Tensor &call(Tensor &self, const Tensor &other);
};
struct is_it {
	static bool call(const Tensor &self);
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
