/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * blocks.cc - blocks of a caching allocator, by the stand-ins for libc10 and libtorch_cpu: blocks WHAT.
 *
 *   train     1 MiB of weights; three steps, each with 256 KiB inside an operator and 512 KiB outside;
 *             then, in a new segment, 3 MiB that are given back; the weights stay
 *   hole      three blocks in a segment, of which the one in the middle is given back; then more is
 *             asked for than the device has
 *   cache     two segments, of which the one without blocks is given back to CUDA
 *   grow      the same three blocks in a segment that grows, and more than the device has
 *   pieces    100 blocks of 1 MiB, of which each second one is given back; 60 blocks of 1.5 MiB find no
 *             room in these
 *   wait      10 blocks of 512 bytes; after a byte on stdin one more, and all are given back
 *   hostile   reports that cannot be true
 *   many N    N blocks of 512 bytes, which stay
 *   host      blocks of the CPU's allocator
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>
#include <vector>

#include "../../standin/c10_standin.h"
#include "../../standin/torch_standin.h"

#define KEEP __attribute__((noinline, noclone))

static void *inside;

KEEP static void *weights()
{
	void *p = c10::take_block(1 << 20);

	asm volatile("" ::: "memory");
	return p;
}

KEEP static void activations()
{
	inside = c10::take_block(256 << 10);
	asm volatile("" ::: "memory");
}

KEEP static void *buffer(size_t bytes)
{
	void *p = c10::take_block(bytes);

	asm volatile("" ::: "memory");
	return p;
}

static void train()
{
	weights();
	for (int i = 0; i < 3; i++) {
		void *outside;

		at::_ops::nest::call(at::Tensor(1), 2, activations);
		outside = buffer(512 << 10);
		c10::give_block(inside);
		c10::give_block(outside);
	}
	c10::give_block(buffer(3 << 20));
}

static void cache()
{
	weights();
	c10::give_block(buffer(3 << 20));
	c10::empty_cache();
}

static void hole()
{
	void *middle;

	buffer(512 << 10);
	middle = buffer(1 << 20);
	weights(); /* does not fit into the segment any more */
	buffer(512 << 10);
	c10::give_block(middle);
	buffer(size_t(1) << 50);
}

static void pieces()
{
	std::vector<void *> held;

	for (int i = 0; i < 100; i++)
		held.push_back(weights());
	for (size_t i = 0; i < held.size(); i += 2)
		c10::give_block(held[i]);
	for (int i = 0; i < 60; i++)
		buffer(3 << 19);
}

static void wait_for_byte()
{
	std::vector<void *> held;
	char c;

	for (int i = 0; i < 10; i++)
		held.push_back(c10::take_block(512));
	puts("ready");
	fflush(stdout);
	if (read(0, &c, 1) != 1)
		return;
	held.push_back(c10::take_block(512));
	for (void *p : held)
		c10::give_block(p);
	puts("done");
	fflush(stdout);
	if (read(0, &c, 1) != 1)
		return;
}

static void report(uint64_t ptr, int64_t size, size_t allocated, size_t reserved, int index = 0)
{
	c10::reportMemoryUsageToProfiler(reinterpret_cast<void *>(ptr), size, allocated, reserved,
					 { c10::DeviceType::CUDA, int8_t(index) });
}

static void hostile()
{
	report(0x1000, INT64_MIN, 0, 0);
	report(0x1000, INT64_MAX, SIZE_MAX, SIZE_MAX);
	report(0x2000, INT64_MAX, SIZE_MAX, 0);
	report(0x2000, -INT64_MAX, 1, 2);
	report(0x3000, -512, 0, 0); /* never given out */
	report(0x4000, 512, 512, 1024);
	report(0x4000, 1024, 1536, 2048); /* again, and never taken back */
	report(0x4000, -512, 1024, 2048); /* of another size */
	report(0, 0, 0, 0);
	report(UINT64_MAX, 512, 512, 512, -1);
	report(0x5000, 512, 512, 512, 127);
	c10::reportOutOfMemoryToProfiler(INT64_MIN, SIZE_MAX, SIZE_MAX,
					 { c10::DeviceType::CUDA, 0 });
}

static void host()
{
	const c10::Device cpu = { c10::DeviceType::CPU, -1 };

	for (int i = 0; i < 5; i++)
		c10::reportMemoryUsageToProfiler(&inside, 64, 64, 0, cpu);
	c10::reportOutOfMemoryToProfiler(64, 64, 0, cpu);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "train"))
		train();
	else if (!strcmp(what, "hole"))
		hole();
	else if (!strcmp(what, "grow")) {
		c10::expand_segments();
		hole();
	} else if (!strcmp(what, "pieces"))
		pieces();
	else if (!strcmp(what, "cache"))
		cache();
	else if (!strcmp(what, "wait"))
		wait_for_byte();
	else if (!strcmp(what, "hostile"))
		hostile();
	else if (!strcmp(what, "host"))
		host();
	else if (!strcmp(what, "many"))
		for (int i = argc > 2 ? atoi(argv[2]) : 1; i; i--)
			report(0x10000000ull + 512ull * unsigned(i), 512, 512, 512);
	else
		return 2;
	return 0;
}
