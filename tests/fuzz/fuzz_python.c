/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_python.c - the memory of a process that looks like Python's: this process is the target. The
 * input's first bytes are the layout (struct ct_python, from its first offset on), the rest lies at MEMORY,
 * where _PyRuntime is: 4 bytes of an input make a pointer into it. A frame's code object is read, kept, and
 * asked for names and lines.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../user/event/event.h"
#include "../../user/proc/python.h"
#include "../../user/resolve/stacks/python_stack.h"
#include "../../wire/control.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MEMORY ((uint8_t *)0x10000000)
#define MEMORY_BYTES 65536u
#define FRAMES 32
#define LAYOUT_AT offsetof(struct ct_python, runtime_interpreters_head)
#define LAYOUT_BYTES (sizeof(struct ct_python) - LAYOUT_AT)

static void lines(struct target *t, const struct ct_python *p, const struct ct_py_frame *f)
{
	static uint8_t record[PYTHON_CODE_BYTES] __attribute__((aligned(8)));
	struct python *known = python_open();
	struct ct_py_frame frame = *f;
	struct python_place place;
	int n = python_read_code(t, p, f->code, record, sizeof(record));

	if (!known)
		abort();
	if (n > (int)sizeof(record) || (n > 0 && record_check((void *)record, (size_t)n)))
		abort(); /* the rest of the program would refuse it */
	if (n > 0 && !python_code(known, (void *)record)) {
		frame.check = ((struct ct_py_code *)record)->check;
		for (uint32_t at = 0; at < 64; at += 2) {
			frame.instr = at ? at : f->instr;
			if (python_frame(known, (uint32_t)getpid(), &frame, &place) &&
			    strlen(place.function) + strlen(place.file) > 3 * PYTHON_CODE_BYTES)
				abort();
		}
	}
	python_close(known);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct ct_py_frame frames[FRAMES];
	static struct target *self;
	struct ct_python p = { .runtime = (uintptr_t)MEMORY, .version = 0x030b00f0 };
	bool cut;
	int n;

	if (!self) {
		if (target_open(&self, getpid(), 0) ||
		    mmap(MEMORY, MEMORY_BYTES, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != MEMORY)
			abort();
	}
	if (size < LAYOUT_BYTES + 1 || size - LAYOUT_BYTES - 1 > MEMORY_BYTES - 8)
		return 0;
	p.version = data[0] & 1 ? 0x030b00f0 : data[0] & 2 ? 0x030c00f0 : 0x030d00f0;
	memcpy((char *)&p + LAYOUT_AT, data + 1, LAYOUT_BYTES);
	memset(MEMORY, 0, MEMORY_BYTES);
	memcpy(MEMORY, data + 1 + LAYOUT_BYTES, size - LAYOUT_BYTES - 1);
	/* in each run another process: the thread is the one that the first id says */
	memset(frames, 0, sizeof(frames));
	for (size_t at = 0; at + 8 <= MEMORY_BYTES; at += 8)
		if (!memcmp(MEMORY + at, "THREADID", 8))
			*(uint64_t *)(MEMORY + at) = (uint64_t)getpid();
	n = python_walk(self, &p, getpid(), frames, FRAMES, &cut);
	if (n > FRAMES)
		abort();
	for (int i = 0; i < n && i < 4; i++)
		if (!(frames[i].flags & CT_PY_SHIM))
			lines(self, &p, &frames[i]);
	return 0;
}
