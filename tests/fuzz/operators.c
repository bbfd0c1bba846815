/* SPDX-License-Identifier: BSD-2-Clause */
/* operators.c - a small library with what fuzz_functions.c looks for: functions with the names of CUDA's and PyTorch's, and the
 * schemas of two operators. */
#define FUNCTION(id, symbol)           \
	long id(long) __asm__(symbol); \
	long id(long n)                \
	{                              \
		return n ? n * 3 : -1; \
	}

FUNCTION(device, "cudaGetDevice")
FUNCTION(node, "cudaGraphAddNode")
FUNCTION(driver, "cuLaunchKernel")
FUNCTION(mm, "_ZN2at4_ops2mm4callERKNS_6TensorES4_")
FUNCTION(add, "_ZN2at4_ops10add_Tensor4callERKNS_6TensorES4_RKN3c106ScalarE")
FUNCTION(backward, "_ZN5torch8autograd9generated11MmBackward05applyEv")
FUNCTION(enter, "_pytorch_record_function_enter")
FUNCTION(leave, "_pytorch_record_function_exit")

const char schemas[512] = "\0mm(Tensor self, Tensor mat2) -> Tensor\0"
			  "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor";
