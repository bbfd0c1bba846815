/* SPDX-License-Identifier: BSD-2-Clause */
/* api_row.h - the row of a function, by its symbol. */
#ifndef CT_API_ROW_H
#define CT_API_ROW_H

#include <stdio.h>
#include <stdlib.h>

#include "../../user/api/api.h"

/* A test that asks for a function that there is not ends. */
static inline int row(const char *symbol)
{
	bool per_thread;
	int found = api_lookup(symbol, 0, &per_thread);

	if (found < 0) {
		fprintf(stderr, "no row %s\n", symbol);
		abort();
	}
	return found;
}

#endif
