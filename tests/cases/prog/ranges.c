/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ranges.c - calls of CUDA inside NVTX's ranges, by libnvToolsExt: ranges WHAT [N].
 *
 *   nested N  N times: range "step", in it "forward" with a copy and "backward" with two, and a mark
 *   rich      domains, registered texts, categories, colours, payloads, start and end, wide texts
 *   deep N    N ranges in each other, and a copy inside the innermost
 *   pops      two ends without begins, and a range
 *   absent    ranges whose names lie in pages that nobody has touched
 *   open      a range that does not end
 *   xla       ranges as XLA names those of a module and of its operations
 *   wait      a range; in it, for each byte on stdin, what nested 1 does; q ends it
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include <cuda_runtime_api.h>

struct domain;
struct text;
struct attributes {
	uint16_t version, size;
	uint32_t category;
	int32_t color_type;
	uint32_t color;
	int32_t payload_type, reserved;
	union {
		uint64_t u64;
		int64_t i64;
		double d;
		uint32_t u32;
		int32_t i32;
		float f;
	} payload;
	int32_t message_type;
	const void *message;
};

int nvtxRangePushA(const char *message);
int nvtxRangePushW(const wchar_t *message);
int nvtxRangePushEx(const struct attributes *eventAttrib);
int nvtxDomainRangePushEx(struct domain *domain, const struct attributes *eventAttrib);
int nvtxRangePop(void);
int nvtxDomainRangePop(struct domain *domain);
void nvtxMarkA(const char *message);
void nvtxMarkEx(const struct attributes *eventAttrib);
uint64_t nvtxRangeStartA(const char *message);
uint64_t nvtxDomainRangeStartEx(struct domain *domain, const struct attributes *eventAttrib);
void nvtxRangeEnd(uint64_t id);
void nvtxDomainRangeEnd(struct domain *domain, uint64_t id);
void nvtxNameCategoryA(uint32_t category, const char *name);
void nvtxDomainNameCategoryA(struct domain *domain, uint32_t category, const char *name);
struct domain *nvtxDomainCreateA(const char *name);
struct text *nvtxDomainRegisterStringA(struct domain *domain, const char *string);

static char buffer[256];
static void *memory;

static void copy(void)
{
	cudaMemcpy(memory, buffer, sizeof(buffer), cudaMemcpyHostToDevice);
}

static struct attributes attributes(const char *message)
{
	return (struct attributes){ .version = 3,
				    .size = sizeof(struct attributes),
				    .message_type = message ? 1 : 0,
				    .message = message };
}

static void nested(int n)
{
	for (int i = 0; i < n; i++) {
		nvtxRangePushA("step");
		nvtxRangePushA("forward");
		copy();
		nvtxRangePop();
		nvtxRangePushA("backward");
		copy();
		copy();
		nvtxMarkA("half");
		nvtxRangePop();
		nvtxRangePop();
	}
}

static void rich(void)
{
	struct domain *d = nvtxDomainCreateA("mine");
	struct text *t = nvtxDomainRegisterStringA(d, "registered");
	struct attributes a = attributes("payload");
	uint64_t id, other;

	nvtxNameCategoryA(7, "loader");
	nvtxDomainNameCategoryA(d, 7, "optimizer");
	a.category = 7;
	a.color_type = 1;
	a.color = 0xff00ff00;
	a.payload_type = 1;
	a.payload.u64 = 12345;
	nvtxRangePushEx(&a);
	a = attributes(NULL);
	a.category = 7;
	a.message_type = 3;
	a.message = t;
	nvtxDomainRangePushEx(d, &a);
	nvtxRangePushW(L"wide \u00e9");
	/* the domain's range ends inside one of the default domain */
	nvtxDomainRangePop(d);
	copy();
	nvtxRangePop();
	nvtxRangePop();
	id = nvtxRangeStartA("first");
	a = attributes("second");
	a.payload_type = 3;
	a.payload.d = 2.5;
	other = nvtxDomainRangeStartEx(d, &a);
	nvtxRangeEnd(id);
	nvtxDomainRangeEnd(d, other);
	a = attributes("marked");
	a.payload_type = 5;
	a.payload.i32 = -3;
	nvtxMarkEx(&a);
}

static void deep(int n)
{
	char name[32];

	for (int i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "level %d", i + 1);
		nvtxRangePushA(name);
	}
	copy();
	for (int i = 0; i < n; i++)
		nvtxRangePop();
}

/* Names on pages of their own. */
__asm__(".section .rodata.names, \"a\"\n.balign 65536\n.globl names\nnames:\n"
	".irp n, 0, 1, 2, 3\n.asciz \"untouched \\n\"\n.balign 65536\n.endr\n.previous\n");
extern const char names[4][65536];

static void absent(void)
{
	struct attributes a = attributes(names[1]);

	nvtxRangePushA(names[0]);
	nvtxRangePushEx(&a);
	nvtxMarkA(names[2]);
	nvtxRangePop();
	nvtxRangePop();
	nvtxRangeEnd(nvtxRangeStartA(names[3]));
}

static void xla(void)
{
	static const char *const texts[] = {
		"XlaModule:#prefix=jit(step)/jit(main),hlo_module=jit_step,program_id=7#",
		"Thunk:#name=transformer/layer_0/attention/query/"
		"dot_general[dimension_numbers=(((2,), (0,)), ((), ())) "
		"precision=None]/a/name/that/is/long,hlo_op=gemm_fusion.2,unique_hlo_op_id=12#",
		"Thunk:#hlo_op=loop_add_fusion#",
	};
	struct domain *tsl = nvtxDomainCreateA("TSL");
	struct attributes a = attributes(NULL);

	a.message_type = 3; /* a registered text */
	for (int i = 0; i < 3; i++) {
		a.message = nvtxDomainRegisterStringA(tsl, texts[i]);
		nvtxDomainRangePushEx(tsl, &a);
		if (i)
			copy();
		if (i)
			nvtxDomainRangePop(tsl);
	}
	nvtxDomainRangePop(tsl);
	copy();
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int n = argc > 2 ? atoi(argv[2]) : 1;
	char byte;

	if (cudaMalloc(&memory, sizeof(buffer)))
		return 1;
	if (!strcmp(what, "nested")) {
		nested(n);
	} else if (!strcmp(what, "rich")) {
		rich();
	} else if (!strcmp(what, "deep")) {
		deep(n);
	} else if (!strcmp(what, "pops")) {
		nvtxRangePop();
		nvtxRangePop();
		nested(1);
	} else if (!strcmp(what, "absent")) {
		absent();
	} else if (!strcmp(what, "open")) {
		nvtxRangePushA("never");
		copy();
	} else if (!strcmp(what, "xla")) {
		xla();
	} else if (!strcmp(what, "wait")) {
		nvtxRangePushA("outer");
		printf("ready\n");
		fflush(stdout);
		while (read(STDIN_FILENO, &byte, 1) > 0 && byte != 'q')
			nested(1);
		nvtxRangePop();
	} else {
		return 2;
	}
	cudaFree(memory);
	return 0;
}
