/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nvtx.c - libnvToolsExt as it is without a tool: its functions do nothing, and return 0 or
 * NVTX_NO_PUSH_POP_TRACKING. With STANDIN_NVTX_TOOL in the environment they return handles and ids as
 * with a tool.
 */
#include <stdint.h>
#include <stdlib.h>
#include <wchar.h>

#include "../../target/common/prologue.h"

#define NVTX __attribute__((visibility("default"), noinline))
#define NO_TRACKING (-2)

struct domain;
struct text;
struct attributes;

static uint64_t next_handle(void)
{
	static uint64_t last;

	return getenv("STANDIN_NVTX_TOOL") ? __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED) : 0;
}

#define PUSH(name, ...)             \
	NVTX int name(__VA_ARGS__)  \
	{                           \
		PUSHES();           \
		return NO_TRACKING; \
	}
#define GET(type, name, ...)                                  \
	NVTX type name(__VA_ARGS__)                           \
	{                                                     \
		uint64_t n = next_handle();                   \
		PUSHES();                                     \
		return (type)(uintptr_t)(n ? 0x1000 + n : 0); \
	}
#define DO(name, ...)               \
	NVTX void name(__VA_ARGS__) \
	{                           \
		PUSHES();           \
	}
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

PUSH(nvtxRangePushA, const char *message)
PUSH(nvtxRangePushW, const wchar_t *message)
PUSH(nvtxRangePushEx, const struct attributes *eventAttrib)
PUSH(nvtxDomainRangePushEx, struct domain *domain, const struct attributes *eventAttrib)
PUSH(nvtxRangePop, void)
PUSH(nvtxDomainRangePop, struct domain *domain)
DO(nvtxMarkA, const char *message)
DO(nvtxMarkW, const wchar_t *message)
DO(nvtxMarkEx, const struct attributes *eventAttrib)
DO(nvtxDomainMarkEx, struct domain *domain, const struct attributes *eventAttrib)
DO(nvtxRangeEnd, uint64_t id)
DO(nvtxDomainRangeEnd, struct domain *domain, uint64_t id)
DO(nvtxNameCategoryA, uint32_t category, const char *name)
DO(nvtxNameCategoryW, uint32_t category, const wchar_t *name)
DO(nvtxDomainNameCategoryA, struct domain *domain, uint32_t category, const char *name)
DO(nvtxDomainNameCategoryW, struct domain *domain, uint32_t category, const wchar_t *name)

GET(uint64_t, nvtxRangeStartA, const char *message)
GET(uint64_t, nvtxRangeStartW, const wchar_t *message)
GET(uint64_t, nvtxRangeStartEx, const struct attributes *eventAttrib)
GET(uint64_t, nvtxDomainRangeStartEx, struct domain *domain, const struct attributes *eventAttrib)
GET(struct domain *, nvtxDomainCreateA, const char *name)
GET(struct domain *, nvtxDomainCreateW, const wchar_t *name)
GET(struct text *, nvtxDomainRegisterStringA, struct domain *domain, const char *string)
GET(struct text *, nvtxDomainRegisterStringW, struct domain *domain, const wchar_t *string)
