/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * struct.c - the layouts of struct.def as data. Each M_ macro is one decoded member: its name and
 * offset in the header's struct, then the values that its kind needs. Modifiers may follow:
 * CASES(mask), UNIT(n), ZERO_IS_ONE, VOIDS_SIZE.
 */
#include "layout.h"
#include "xlat.h"

#define MEMBER(m, o, t, w, ...)                                            \
	{                                                                  \
		.name = #m, .off = o, .type = t, .width = w, ##__VA_ARGS__ \
	}
#define M_INT(m, o, ...) MEMBER(m, o, FIELD_INT, 4, .is_signed = true, ##__VA_ARGS__)
#define M_UINT(m, o, ...) MEMBER(m, o, FIELD_UINT, 4, ##__VA_ARGS__)
#define M_I8(m, o, ...) MEMBER(m, o, FIELD_INT, 1, .is_signed = true, ##__VA_ARGS__)
#define M_U8(m, o, ...) MEMBER(m, o, FIELD_UINT, 1, ##__VA_ARGS__)
#define M_U16(m, o, ...) MEMBER(m, o, FIELD_UINT, 2, ##__VA_ARGS__)
#define M_I64(m, o, ...) MEMBER(m, o, FIELD_INT, 8, .is_signed = true, ##__VA_ARGS__)
#define M_U64(m, o, ...) MEMBER(m, o, FIELD_UINT, 8, ##__VA_ARGS__)
#define M_COUNT(m, o, ...) MEMBER(m, o, FIELD_UINT, 8, ##__VA_ARGS__)
#define M_SIZE(m, o, ...) MEMBER(m, o, FIELD_SIZE, 8, ##__VA_ARGS__)
#define M_SIZE32(m, o, ...) MEMBER(m, o, FIELD_SIZE, 4, ##__VA_ARGS__)
#define M_PTR(m, o, ...) MEMBER(m, o, FIELD_PTR, 8, ##__VA_ARGS__)
#define M_PTR32(m, o, ...) MEMBER(m, o, FIELD_PTR, 4, ##__VA_ARGS__)
#define M_STREAM(m, o, ...) MEMBER(m, o, FIELD_STREAM, 8, ##__VA_ARGS__)
#define M_FUNC(m, o, ...) MEMBER(m, o, FIELD_FUNC, 8, ##__VA_ARGS__)
#define M_FLOAT(m, o, ...) MEMBER(m, o, FIELD_FLOAT, 4, ##__VA_ARGS__)
#define M_ENUM(m, o, x, ...) \
	MEMBER(m, o, FIELD_ENUM, 4, .is_signed = true, .xlat = &xlat_##x, ##__VA_ARGS__)
#define M_ERROR(m, o, x, ...) \
	MEMBER(m, o, FIELD_ENUM, 4, .is_signed = true, .xlat = &xlat_##x, ##__VA_ARGS__)
#define M_FLAGS(m, o, x, ...) MEMBER(m, o, FIELD_FLAGS, 4, .xlat = &xlat_##x, ##__VA_ARGS__)
#define M_FLAGS8(m, o, x, ...) MEMBER(m, o, FIELD_FLAGS, 1, .xlat = &xlat_##x, ##__VA_ARGS__)
#define M_FLAGS64(m, o, x, ...) MEMBER(m, o, FIELD_FLAGS, 8, .xlat = &xlat_##x, ##__VA_ARGS__)
#define M_DIM3(m, o, ...) MEMBER(m, o, FIELD_DIM3, 12, ##__VA_ARGS__)
#define M_STR(m, o, w, ...) MEMBER(m, o, FIELD_STR, w, ##__VA_ARGS__)
#define M_BYTES(m, o, w, ...) MEMBER(m, o, FIELD_BYTES, w, ##__VA_ARGS__)
#define M_STRUCT(m, o, T, w, ...) MEMBER(m, o, FIELD_OPEN, w, .layout = &layout_##T, ##__VA_ARGS__)
#define M_LIST(m, o, T, count, most, ...)                                                    \
	MEMBER(m, o, FIELD_OPEN, 8, .list = true, .layout = &layout_##T, .count_off = count, \
	       .max = most, ##__VA_ARGS__)

#define ARRAY(k) .n = k
#define CASES(mask) .cases = mask
#define CASE(v) .cases = 1U << (v)
#define SELECTOR(o) .selector = o
#define SPELLED(m) .spelled = #m
#define UNIT(k) .unit = k
#define ZERO_IS_ONE .unit = API_UNIT_ZERO_IS_ONE
#define VOIDS_SIZE .unit = API_UNIT_VOID

#define ROWS(T, ...) static const struct api_member members_##T[] = { __VA_ARGS__ };
#define STRUCT(T, size, used, rule, ...) ROWS(T, __VA_ARGS__)
#define STRUCT_BY(T, size, used, rule, selector, ...) ROWS(T, __VA_ARGS__)
#define NESTED(T, size, used, ...) ROWS(T, __VA_ARGS__)
#include "struct.def"
#undef STRUCT
#undef STRUCT_BY
#undef NESTED

#define LAYOUT_OF(T, size, used, rule, selector, nested)                                  \
	const struct api_struct layout_##T = {                                            \
		#T,	size,	  used,	      ARRAY_LEN(members_##T), LAYOUT_SIZE_##rule, \
		nested, selector, members_##T                                             \
	};
#define STRUCT(T, size, used, rule, ...) LAYOUT_OF(T, size, used, rule, -1, false)
#define STRUCT_BY(T, size, used, rule, selector, ...) \
	LAYOUT_OF(T, size, used, rule, selector, false)
#define NESTED(T, size, used, ...) LAYOUT_OF(T, size, used, NONE, -1, true)
#include "struct.def"
#undef STRUCT
#undef STRUCT_BY
#undef NESTED

#define STRUCT(T, ...) &layout_##T,
#define STRUCT_BY(T, ...) &layout_##T,
#define NESTED(T, ...) &layout_##T,
const struct api_struct *const api_structs[] = {
#include "struct.def"
	NULL,
};
