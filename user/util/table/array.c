/* SPDX-License-Identifier: BSD-2-Clause */
/* array.c - see array.h. */
#include <stdlib.h>

#include "array.h"

/* `list` is the address of a pointer, whatever it points to: it is copied as bytes. */
static bool resize(void *list, size_t n, size_t size)
{
	void *items, *more;

	memcpy(&items, list, sizeof(items));
	more = n <= SIZE_MAX / size ? realloc(items, n * size) : NULL;
	if (more)
		memcpy(list, &more, sizeof(more));
	return more;
}

bool array_double(void *list, size_t n, size_t size)
{
	return resize(list, n < ARRAY_FIRST ? ARRAY_FIRST : n * 2, size);
}

bool array_widen(void *list, size_t *room, size_t want, size_t size)
{
	size_t n = want > *room * 2 ? want : *room * 2;

	n = n < ARRAY_FIRST ? ARRAY_FIRST : n;
	if (!resize(list, n, size))
		return false;
	*room = n;
	return true;
}
