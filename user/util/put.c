/* SPDX-License-Identifier: BSD-2-Clause */
/* put.c - see put.h: the parts that are too long to be inline. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "put.h"

const char put_digits[201] = "000102030405060708091011121314151617181920212223242526272829303132333"
			     "435363738394041424344454647484950515253545556575859606162636465666768"
			     "69707172737475767778798081828384858687888990919293949596979899";

char *put_double(char *p, double v, bool single)
{
	int n = 0;

	if (fabs(v) < 9007199254740992.0 && v == floor(v)) /* 2^53: integers are exact below */
		return put_i64(p, (int64_t)v);
	for (int digits = single ? 6 : 15; digits <= 17; digits++) {
		n = snprintf(p, PUT_DOUBLE_MAX, "%.*g", digits, v);
		if (single ? strtof(p, NULL) == (float)v : strtod(p, NULL) == v)
			break;
	}
	return p + n;
}
