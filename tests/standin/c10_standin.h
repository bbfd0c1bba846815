/* SPDX-License-Identifier: BSD-2-Clause */
/* c10_standin.h - what the stand-in for libc10 has; its programs and itself include it. */
#ifndef CT_C10_STANDIN_H
#define CT_C10_STANDIN_H

#include <cstddef>
#include <cstdint>

namespace c10
{
enum class DeviceType : int8_t { CPU = 0, CUDA = 1 };
struct Device {
	DeviceType type;
	int8_t index;
};
/* PyTorch's own have the same names; they do nothing unless a profiler is on. */
void reportMemoryUsageToProfiler(void *ptr, int64_t alloc_size, size_t total_allocated,
				 size_t total_reserved, Device device);
void reportOutOfMemoryToProfiler(int64_t alloc_size, size_t total_allocated, size_t total_reserved,
				 Device device);

/* A small caching allocator: blocks of multiples of 512 bytes, first fit, within segments of 2 MiB or
 * of the block's own size that cudaMalloc gives. Not for threads. */
void *take_block(size_t bytes); /* NULL: out of memory, which is reported */
/* From now on there is one segment, which grows by mappings of 2 MiB, as PyTorch's expandable segments do. */
void expand_segments();
void give_block(void *ptr);
void empty_cache(); /* gives segments without blocks back, and reports nothing */
size_t allocated(), reserved();
} // namespace c10

#endif
