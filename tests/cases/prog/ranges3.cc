// SPDX-License-Identifier: BSD-2-Clause
// ranges3.cc - ranges of C++'s NVTX 3: scoped ranges of a domain, with a registered text, a category and a colour.
#include <cuda_runtime_api.h>
#include <nvtx3/nvtx3.hpp>

struct library {
	static constexpr char const *name{ "library" };
};
struct text {
	static constexpr char const *message{ "registered" };
};
struct loader {
	static constexpr char const *name{ "loader" };
	static constexpr uint32_t id{ 3 };
};

int main()
{
	void *memory;
	nvtx3::scoped_range whole{ "whole" };

	if (cudaMalloc(&memory, 64))
		return 1;
	{
		nvtx3::scoped_range_in<library> r{ nvtx3::registered_string_in<library>::get<text>(),
						   nvtx3::named_category_in<library>::get<loader>(),
						   nvtx3::rgb{ 0, 255, 0 }, nvtx3::payload{ 42 } };
		cudaFree(memory);
	}
	nvtx3::mark_in<library>("reached");
	nvtx3::unique_range started{ "started" };
	return 0;
}
