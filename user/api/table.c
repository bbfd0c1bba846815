/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * table.c - the rows of runtime.def and driver.def as data. Each argument macro says how a value is
 * passed, how wide it is, whether and when a pointer is followed, and what it points to.
 * scripts/check_api.py compares the result with CUDA's headers.
 *
 *   IN       a value; FUNC, STREAM, ENUM and the like say how it is shown
 *   OUT_     a pointer to a value that the call writes, read at return
 *   INOUT_   the same, but the call reads it too; shown as it is at return
 *   LIST_    a pointer to elements; the argument named as its count says how many
 *
 * An argument has the name that CUDA's header gives it. If headers spell a name in two ways (flags,
 * Flags), all rows use the same one, because readers of JSON such as DuckDB treat names that differ
 * only in case as one column. tests/unit/test_api.c lists the ones that clash.
 *
 * Modifiers may follow any of them: AS(label), HIDE, UNIT(n), ZERO_IS_ONE, BY(arg). What a call
 * teaches about kernels' names: NAMES(handle), SAME_AS(handle), OWNER, UNLOADS, IN_CONTEXT (enum
 * api_role). What it does to memory: ALLOCATES(kind, space), FREES(space), BACKS,
 * RETAINS(address), PITCH (enum api_memory_kind and _space). What it says about the current
 * device or context: CURRENT, PUSHED, PUSHED_ON(device), POPPED, CONTEXT_OF(device), DESTROYED.
 */
#include "layout.h"
#include "xlat.h"
#include "../../wire/control.h"

/* clang-format off */
#define ARG(n, t, w, ...) { .name = #n, .label = #n, .type = t, .width = w, ##__VA_ARGS__ }

/* values */
#define INT(n, ...)		ARG(n, FIELD_INT, 4, .is_signed = true, ##__VA_ARGS__)
#define UINT(n, ...)		ARG(n, FIELD_UINT, 4, ##__VA_ARGS__)
#define U8(n, ...)		ARG(n, FIELD_UINT, 1, ##__VA_ARGS__)
#define U16(n, ...)		ARG(n, FIELD_UINT, 2, ##__VA_ARGS__)
#define U64(n, ...)		ARG(n, FIELD_UINT, 8, ##__VA_ARGS__)
#define INT64(n, ...)		ARG(n, FIELD_INT, 8, .is_signed = true, ##__VA_ARGS__)
#define COUNT(n, ...)		ARG(n, FIELD_UINT, 8, ##__VA_ARGS__)
#define SIZE(n, ...)		ARG(n, FIELD_SIZE, 8, ##__VA_ARGS__)
#define SIZE32(n, ...)		ARG(n, FIELD_SIZE, 4, ##__VA_ARGS__)
#define PTR(n, ...)		ARG(n, FIELD_PTR, 8, ##__VA_ARGS__)
#define PTR32(n, ...)		ARG(n, FIELD_PTR, 4, ##__VA_ARGS__)
#define STREAM(n, ...)		ARG(n, FIELD_STREAM, 8, ##__VA_ARGS__)
#define FUNC(n, ...)		ARG(n, FIELD_FUNC, 8, ##__VA_ARGS__)
#define BOOL(n, ...)		ARG(n, FIELD_BOOL, 4, ##__VA_ARGS__)
#define ENUM(n, x, ...)		ARG(n, FIELD_ENUM, 4, .is_signed = true, .xlat = &xlat_##x, ##__VA_ARGS__)
#define ENUM16(n, x, ...)	ARG(n, FIELD_ENUM, 2, .xlat = &xlat_##x, ##__VA_ARGS__)
#define FLAGS(n, x, ...)	ARG(n, FIELD_FLAGS, 4, .xlat = &xlat_##x, ##__VA_ARGS__)
#define FLAGS64(n, x, ...)	ARG(n, FIELD_FLAGS, 8, .xlat = &xlat_##x, ##__VA_ARGS__)
#define FLOAT(n, ...)		ARG(n, FIELD_UNKNOWN, 4, .abi = API_ABI_FLOAT, ##__VA_ARGS__)
#define DOUBLE(n, ...)		ARG(n, FIELD_UNKNOWN, 8, .abi = API_ABI_FLOAT, ##__VA_ARGS__)
#define DIM3(n, ...)		ARG(n, FIELD_DIM3, 12, .abi = API_ABI_PAIR, ##__VA_ARGS__)
#define STR(n, ...)		ARG(n, FIELD_STR, 8, .deref = true, .max = 128, ##__VA_ARGS__)
#define NAME(n, ...)		ARG(n, FIELD_STR, 8, .deref = true, .max = 248, ##__VA_ARGS__)

/* structs: behind a pointer, and by value in one register, in memory, or in memory and not
 * decoded */
#define STRUCT(n, T, ...)	ARG(n, FIELD_OPEN, 8, .deref = true, .layout = &layout_##T, ##__VA_ARGS__)
#define BYTES(n, w, ...)	ARG(n, FIELD_BYTES, w, .deref = true, ##__VA_ARGS__)
#define IN_U64(n, ...)		ARG(n, FIELD_UINT, 8, .deref = true, ##__VA_ARGS__)
#define VALUE(n, T, ...)	ARG(n, FIELD_OPEN, 8, .layout = &layout_##T, ##__VA_ARGS__)
#define MEM(n, T, w, ...)	ARG(n, FIELD_OPEN, w, .abi = API_ABI_MEMORY, .layout = &layout_##T, ##__VA_ARGS__)
#define MEM_BYTES(n, w, ...)	ARG(n, FIELD_BYTES, w, .abi = API_ABI_MEMORY, ##__VA_ARGS__)
#define MEM_UNSEEN(n, w, ...)	ARG(n, FIELD_UNKNOWN, w, .abi = API_ABI_MEMORY, ##__VA_ARGS__)

/* lists */
#define LIST(n, c, t, w, k, ...) ARG(n, t, w, .deref = true, .count = #c, .max = (k) * (w), ##__VA_ARGS__)
#define LIST_PTR(n, c, k, ...)	LIST(n, c, FIELD_PTR, 8, k, ##__VA_ARGS__)
#define LIST_SIZE(n, c, k, ...)	LIST(n, c, FIELD_SIZE, 8, k, ##__VA_ARGS__)
#define LIST_COUNT(n, c, k, ...) LIST(n, c, FIELD_UINT, 8, k, ##__VA_ARGS__)
#define LIST_INT(n, c, k, ...)	LIST(n, c, FIELD_INT, 4, k, .is_signed = true, ##__VA_ARGS__)
#define LIST_INT64(n, c, k, ...) LIST(n, c, FIELD_INT, 8, k, .is_signed = true, ##__VA_ARGS__)
#define LIST_UINT(n, c, k, ...)	LIST(n, c, FIELD_UINT, 4, k, ##__VA_ARGS__)
#define LIST_ENUM(n, x, c, k, ...) LIST(n, c, FIELD_ENUM, 4, k, .is_signed = true, .xlat = &xlat_##x, ##__VA_ARGS__)
#define LIST_STRUCT(n, T, w, c, k, ...) LIST(n, c, FIELD_OPEN, w, k, .layout = &layout_##T, ##__VA_ARGS__)

/* outputs */
#define OUT(n, t, w, ...)	ARG(n, t, w, .dir = API_OUT, ##__VA_ARGS__)
#define OUT_INT(n, ...)		OUT(n, FIELD_INT, 4, .is_signed = true, ##__VA_ARGS__)
#define OUT_UINT(n, ...)	OUT(n, FIELD_UINT, 4, ##__VA_ARGS__)
#define OUT_U64(n, ...)		OUT(n, FIELD_UINT, 8, ##__VA_ARGS__)
#define OUT_COUNT(n, ...)	OUT(n, FIELD_UINT, 8, ##__VA_ARGS__)
#define OUT_SIZE(n, ...)	OUT(n, FIELD_SIZE, 8, ##__VA_ARGS__)
#define OUT_SIZE32(n, ...)	OUT(n, FIELD_SIZE, 4, ##__VA_ARGS__)
#define OUT_PTR(n, ...)		OUT(n, FIELD_PTR, 8, ##__VA_ARGS__)
#define OUT_PTR32(n, ...)	OUT(n, FIELD_PTR, 4, ##__VA_ARGS__)
#define OUT_STREAM(n, ...)	OUT(n, FIELD_STREAM, 8, ##__VA_ARGS__)
#define OUT_FUNC(n, ...)	OUT(n, FIELD_FUNC, 8, ##__VA_ARGS__)
#define OUT_BOOL(n, ...)	OUT(n, FIELD_BOOL, 4, ##__VA_ARGS__)
#define OUT_ENUM(n, x, ...)	OUT(n, FIELD_ENUM, 4, .is_signed = true, .xlat = &xlat_##x, ##__VA_ARGS__)
#define OUT_FLAGS(n, x, ...)	OUT(n, FIELD_FLAGS, 4, .xlat = &xlat_##x, ##__VA_ARGS__)
#define OUT_FLAGS64(n, x, ...)	OUT(n, FIELD_FLAGS, 8, .xlat = &xlat_##x, ##__VA_ARGS__)
#define OUT_FLOAT(n, ...)	OUT(n, FIELD_FLOAT, 4, ##__VA_ARGS__)
#define OUT_DOUBLE(n, ...)	OUT(n, FIELD_FLOAT, 8, ##__VA_ARGS__)
#define OUT_DIM3(n, ...)	OUT(n, FIELD_DIM3, 12, ##__VA_ARGS__)
#define OUT_BYTES(n, w, ...)	OUT(n, FIELD_BYTES, w, ##__VA_ARGS__)
#define OUT_STRUCT(n, T, ...)	OUT(n, FIELD_OPEN, 8, .layout = &layout_##T, ##__VA_ARGS__)
/* a buffer that the call fills with a string; a pointer that it sets to one */
#define OUT_STR(n, ...)		OUT(n, FIELD_STR, 1, .max = 96, ##__VA_ARGS__)
#define OUT_NAME(n, ...)	OUT(n, FIELD_STR, 8, .max = 248, .deref = true, ##__VA_ARGS__)
#define OUT_LIST(n, c, t, w, k, ...) OUT(n, t, w, .count = #c, .max = (k) * (w), ##__VA_ARGS__)
#define OUT_LIST_PTR(n, c, k, ...) OUT_LIST(n, c, FIELD_PTR, 8, k, ##__VA_ARGS__)
#define OUT_LIST_FUNC(n, c, k, ...) OUT_LIST(n, c, FIELD_FUNC, 8, k, ##__VA_ARGS__)
#define OUT_LIST_INT(n, c, k, ...) OUT_LIST(n, c, FIELD_INT, 4, k, .is_signed = true, ##__VA_ARGS__)
#define OUT_LIST_UINT(n, c, k, ...) OUT_LIST(n, c, FIELD_UINT, 4, k, ##__VA_ARGS__)
#define OUT_LIST_STRUCT(n, T, w, c, k, ...) OUT_LIST(n, c, FIELD_OPEN, w, k, .layout = &layout_##T, ##__VA_ARGS__)
#define INOUT(n, t, w, ...)	ARG(n, t, w, .dir = API_INOUT, ##__VA_ARGS__)
#define INOUT_INT(n, ...)	INOUT(n, FIELD_INT, 4, .is_signed = true, ##__VA_ARGS__)
#define INOUT_UINT(n, ...)	INOUT(n, FIELD_UINT, 4, ##__VA_ARGS__)
#define INOUT_COUNT(n, ...)	INOUT(n, FIELD_UINT, 8, ##__VA_ARGS__)
#define INOUT_SIZE(n, ...)	INOUT(n, FIELD_SIZE, 8, ##__VA_ARGS__)
#define INOUT_PTR(n, ...)	INOUT(n, FIELD_PTR, 8, ##__VA_ARGS__)
#define INOUT_FLOAT(n, ...)	INOUT(n, FIELD_FLOAT, 4, ##__VA_ARGS__)
#define INOUT_DOUBLE(n, ...)	INOUT(n, FIELD_FLOAT, 8, ##__VA_ARGS__)
#define INOUT_ENUM(n, x, ...)	INOUT(n, FIELD_ENUM, 4, .is_signed = true, .xlat = &xlat_##x, ##__VA_ARGS__)
#define INOUT_STRUCT(n, T, ...)	INOUT(n, FIELD_OPEN, 8, .layout = &layout_##T, ##__VA_ARGS__)

/* of layers: what describes a range, and in it the address of a text; a text of wchar_t, of which
 * so much is read */
#define ATTRIB(n, ...)		ARG(n, FIELD_BYTES, 48, .deref = true, ##__VA_ARGS__)
#define TEXT_IN(n, a, at, ...)	ARG(n, FIELD_STR, 8, .deref = true, .max = 128, .of = #a, .text_at = (at) + 1, ##__VA_ARGS__)
#define WSTR(n, ...)		ARG(n, FIELD_BYTES, 128, .deref = true, ##__VA_ARGS__)

/* modifiers */
#define AS(l) .label = #l
#define HIDE .label = ""
#define UNIT(k) .unit = k
#define ZERO_IS_ONE .unit = API_UNIT_ZERO_IS_ONE
#define BY(a) .by = #a
#define MOST(bytes) .max = bytes
#define NAMES(a) .role = API_ROLE_NAMES, .of = #a
#define SAME_AS(a) .role = API_ROLE_SAME_AS, .of = #a
#define OWNER .role = API_ROLE_OWNER
#define UNLOADS .role = API_ROLE_UNLOADS
#define ALLOCATES(k, s) .role = API_ROLE_ALLOCATES, .memory = API_MEM_##k, .space = API_SPACE_##s
#define FREES(s) .role = API_ROLE_FREES, .memory = API_MEM_END, .space = API_SPACE_##s
#define BACKS .role = API_ROLE_BACKS
#define RETAINS(a) .role = API_ROLE_RETAINS, .of = #a, .space = API_SPACE_HANDLE
#define PITCH .role = API_ROLE_PITCH
#define IN_CONTEXT .in_context = true
#define CURRENT .role = API_ROLE_CURRENT
#define PUSHED .role = API_ROLE_PUSHED
#define PUSHED_ON(a) .role = API_ROLE_PUSHED, .of = #a
#define POPPED .role = API_ROLE_POPPED
#define CONTEXT_OF(a) .role = API_ROLE_CONTEXT_OF, .of = #a
#define DESTROYED .role = API_ROLE_DESTROYED

/* rows: plain, with flags, for some versions only (since, until: CUDA version / 10) */
#define NARGS(...) (sizeof((struct api_arg[]){ __VA_ARGS__ }) / sizeof(struct api_arg))
#define ROW(s, c, r, f, from, to, ...) \
	{ #s, DOMAIN_HERE, API_##c, API_RET_##r, NARGS(__VA_ARGS__), f, from, to, \
	  (const struct api_arg[]){ __VA_ARGS__ } },
#define API(s, c, r, ...)		  ROW(s, c, r, 0, 0, 0, ##__VA_ARGS__)
#define API_F(s, c, r, f, ...)		  ROW(s, c, r, f, 0, 0, ##__VA_ARGS__)
#define API_V(s, c, r, from, to, ...)	  ROW(s, c, r, 0, from, to, ##__VA_ARGS__)
#define LAYER(s, c, r, what, f, ...) \
	{ #s, DOMAIN_HERE, API_##c, API_RET_##r, NARGS(__VA_ARGS__), f, 0, 0, \
	  (const struct api_arg[]){ __VA_ARGS__ }, API_LAYER_##what },
#define GEMM(s, e, ...) \
	{ #s, DOMAIN_HERE, API_GEMM, API_RET_STATUS, NARGS(__VA_ARGS__), 0, 0, 0, \
	  (const struct api_arg[]){ __VA_ARGS__ }, API_LAYER_GEMM, NULL, e },
#define LAYER_0(s, c, r, what, f) { #s, DOMAIN_HERE, API_##c, API_RET_##r, 0, f, 0, 0, NULL, API_LAYER_##what },
#define LAYER_CXX(s, r, c, what, f, ...) \
	{ s, DOMAIN_HERE, API_##c, API_RET_##r, NARGS(__VA_ARGS__), f, 0, 0, \
	  (const struct api_arg[]){ __VA_ARGS__ }, API_LAYER_##what, NULL },
#define LAYER_CXX_0(s, r, c, what, f) { s, DOMAIN_HERE, API_##c, API_RET_##r, 0, f, 0, 0, NULL, API_LAYER_##what, NULL },
#define LAYER_MANY(s, prefix, what) \
	{ s, DOMAIN_HERE, API_OPERATOR, API_RET_VOID, 1, ENTRY_ONLY, 0, 0, \
	  (const struct api_arg[]){ U64(symbol) }, API_LAYER_##what, prefix },
#define API_FV(s, c, r, f, from, to, ...) ROW(s, c, r, f, from, to, ##__VA_ARGS__)
/* clang-format on */

#define CALLBACK CT_S_CALLBACK
#define INTERN CT_S_INTERNAL
#define NOT_READY CT_S_NOT_READY
#define SRET API_SRET
#define ENTRY_ONLY API_ENTRY_ONLY
#define ENDS_CONTEXT API_ENDS_CONTEXT
#define FREES_ALL API_FREES_ALL
#define GRAPH_LAUNCH API_GRAPH_LAUNCH
#define NO_RECORD API_NO_RECORD
#define BEGINS_CAPTURE API_BEGINS_CAPTURE
#define ENDS_CAPTURE API_ENDS_CAPTURE
#define REPORTS_ERROR API_REPORTS_ERROR
#define ASYNC API_ASYNC
#define LINEAR API_LINEAR
#define LAUNCHES API_LAUNCHES
#define CREATES API_CREATES
#define DESTROYS API_DESTROYS
#define POLLS API_POLLS
#define RECORDS API_RECORDS
#define LOADS API_LOADS
#define WAITS_STREAM API_WAITS_STREAM
#define WAITS_EVENT API_WAITS_EVENT
#define WAITS_DEVICE API_WAITS_DEVICE
#define WAY(way) ((uint32_t)(API_WAY_UNKNOWN - API_WAY_##way) << API_WAY_SHIFT)
#define HTOD WAY(HTOD)
#define DTOH WAY(DTOH)
#define DTOD WAY(DTOD)
#define PTOP WAY(PTOP)
#define BY_ADDRESS WAY(BY_ADDRESS)

/* A modifier may set a member a second time on purpose: AS() replaces the label that ARG set. */
#ifdef __clang__
#pragma clang diagnostic ignored "-Winitializer-overrides"
#else
#pragma GCC diagnostic ignored "-Woverride-init"
#endif

const struct api_func api_funcs[] = {
#define ROWS
#define DOMAIN(id, ...)
#include "domains.def"
#undef DOMAIN
#undef ROWS
};

const int api_nfuncs = ARRAY_LEN(api_funcs);

_Static_assert(API_WAY_END <= (API_WAY_MASK >> API_WAY_SHIFT) + 1,
	       "a direction does not fit into a row's flags");
_Static_assert(ARRAY_LEN(api_funcs) <= CT_MAX_FUNCS, "more rows than the wire allows");
