/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * c10.cc - stands in for libc10: what PyTorch's caching allocator reports of its blocks, and an
 * allocator that reports so.
 */
#include "c10_standin.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <map>

namespace c10
{
__attribute__((noinline)) void reportMemoryUsageToProfiler(void *ptr, int64_t alloc_size,
							   size_t total_allocated,
							   size_t total_reserved, Device device)
{
	asm volatile("" ::"r"(ptr), "r"(alloc_size), "r"(total_allocated), "r"(total_reserved),
		     "r"(device.index)
		     : "memory");
}
__attribute__((noinline)) void reportOutOfMemoryToProfiler(int64_t alloc_size,
							   size_t total_allocated,
							   size_t total_reserved, Device device)
{
	asm volatile("" ::"r"(alloc_size), "r"(total_allocated), "r"(total_reserved),
		     "r"(device.index)
		     : "memory");
}

static const size_t SEGMENT = 2 << 20, ROUND = 512;
static const Device here = { DeviceType::CUDA, 0 };
static std::map<char *, size_t> segments, blocks;
static size_t total_allocated, total_reserved;

size_t allocated()
{
	return total_allocated;
}
size_t reserved()
{
	return total_reserved;
}

/* The first place in a segment that is long enough. NULL: there is none. */
static char *find_place(size_t bytes)
{
	for (auto &[base, size] : segments) {
		char *at = base;

		for (auto b = blocks.lower_bound(base); b != blocks.end() && b->first < base + size;
		     ++b) {
			if (size_t(b->first - at) >= bytes)
				break;
			at = b->first + b->second;
		}
		if (size_t(base + size - at) >= bytes)
			return at;
	}
	return nullptr;
}

/* PyTorch finds the functions of the driver in the same way. */
static int driver(const char *name, unsigned long long a, size_t size, unsigned long long handle)
{
	static void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	void *f = lib ? dlsym(lib, name) : nullptr;

	if (!f)
		return 1;
	if (handle)
		return reinterpret_cast<int (*)(unsigned long long, size_t, size_t,
						unsigned long long, unsigned long long)>(f)(
			a, size, 0, handle, 0);
	return reinterpret_cast<int (*)(unsigned long long, size_t)>(f)(a, size);
}

static const unsigned long long GROWN = 0x7000000000ULL;
static const size_t MOST = size_t(1) << 40; /* memory of the device */
static bool expandable;
static size_t grown;

void expand_segments()
{
	expandable = true;
}

/* One mapping more at the end. */
static bool map_more()
{
	static void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	auto create = reinterpret_cast<int (*)(unsigned long long *, size_t, const void *,
					       unsigned long long)>(
		lib ? dlsym(lib, "cuMemCreate") : nullptr);
	const unsigned prop[8] = { 1, 0, 1, 0 };
	unsigned long long handle = 0x5000;

	if (!create || create(&handle, SEGMENT, prop, 0) ||
	    driver("cuMemMap", GROWN + grown, SEGMENT, handle))
		return false;
	grown += SEGMENT;
	total_reserved += SEGMENT;
	segments[reinterpret_cast<char *>(GROWN)] = grown;
	return true;
}

/* What was mapped for an allocation that fails all the same is given back. */
static bool grow(size_t bytes)
{
	size_t before = grown;

	while (grown - before < bytes && grown - before < 2 * SEGMENT)
		if (!map_more())
			return false;
	if (bytes < MOST)
		return true;
	driver("cuMemUnmap", GROWN + before, grown - before, 0);
	total_reserved -= grown - before;
	grown = before;
	segments[reinterpret_cast<char *>(GROWN)] = grown;
	return false;
}

void *take_block(size_t bytes)
{
	size_t rounded = (bytes + ROUND - 1) / ROUND * ROUND;
	char *at = find_place(rounded);

	if (!at && expandable && (!grow(rounded) || !(at = find_place(rounded)))) {
		reportOutOfMemoryToProfiler(int64_t(rounded), total_allocated, total_reserved, here);
		return nullptr;
	}
	if (!at) {
		size_t size = rounded > SEGMENT ? rounded : SEGMENT;
		void *segment = nullptr;

		if (cudaMalloc(&segment, size) != cudaSuccess) {
			reportOutOfMemoryToProfiler(int64_t(size), total_allocated, total_reserved,
						    here);
			return nullptr;
		}
		at = static_cast<char *>(segment);
		segments[at] = size;
		total_reserved += size;
	}
	blocks[at] = rounded;
	total_allocated += rounded;
	reportMemoryUsageToProfiler(at, int64_t(rounded), total_allocated, total_reserved, here);
	return at;
}

void give_block(void *ptr)
{
	auto b = blocks.find(static_cast<char *>(ptr));

	if (b == blocks.end())
		return;
	total_allocated -= b->second;
	reportMemoryUsageToProfiler(ptr, -int64_t(b->second), total_allocated, total_reserved,
				    here);
	blocks.erase(b);
}

void empty_cache()
{
	for (auto s = segments.begin(); s != segments.end();) {
		auto b = blocks.lower_bound(s->first);

		if (b != blocks.end() && b->first < s->first + s->second) {
			++s;
			continue;
		}
		cudaFree(s->first);
		total_reserved -= s->second;
		s = segments.erase(s);
	}
}
} // namespace c10
