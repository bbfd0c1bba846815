/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * array.h - arrays that grow while items are added. An array to which single items are added needs
 * no variable for its capacity: there is room for FIRST items, and for twice as many whenever the
 * number of items reaches a power of two. Knows no domain.
 */
#ifndef CT_ARRAY_H
#define CT_ARRAY_H

#include <string.h>

#include "../types.h"

#define ARRAY_FIRST 8 /* a power of two */

bool array_double(void *list, size_t n, size_t size);
bool array_widen(void *list, size_t *room, size_t want, size_t size);

/* Whether there may be no room after n items. */
#define array_full(n) (!((n) & ((n)-1)) && (!(n) || (n) >= ARRAY_FIRST))

/* Makes room for one item after the n that `list` has. Returns false if there is no memory; the
 * list is then as it was. All items must have been added through this or array_add(). */
#define array_room(list, n) (!array_full(n) || array_double(&(list), (size_t)(n), sizeof(*(list))))

/* Adds a zeroed item after the n that `list` has, and returns it; NULL if there is no memory. */
#define array_add(list, n) (array_room(list, n) ? memset(&(list)[(n)++], 0, sizeof(*(list))) : NULL)

/* Of n sorted items, those for which a condition holds come first: computes how many these are.
 * In the condition `item` points to an item. The last of them is at one less, if there is any. */
#define array_before(list, n, item, condition)                                       \
	({                                                                           \
		size_t array_low = 0, array_high = (size_t)(n);                      \
		while (array_low < array_high) {                                     \
			size_t array_mid = array_low + (array_high - array_low) / 2; \
			const __typeof__(*(list)) *(item) = &(list)[array_mid];      \
			if (condition)                                               \
				array_low = array_mid + 1;                           \
			else                                                         \
				array_high = array_mid;                              \
		}                                                                    \
		array_low;                                                           \
	})

/* Makes room for `want` items; `room`, a size_t, is for how many there is room. Returns false if
 * there is no memory; everything is then as it was. */
#define array_fit(list, room, want) \
	((size_t)(want) <= (room) || array_widen(&(list), &(room), (want), sizeof(*(list))))

#endif
