/* SPDX-License-Identifier: BSD-2-Clause */
/* mem_page.h - memory over time by call site as one page that needs no network: mem_page.html,
 * with the data in place of a mark in it. */
#ifndef CT_MEM_PAGE_H
#define CT_MEM_PAGE_H

#include "curve.h"
#include "mem_print.h"

/* separate series for devices, and as many for the host; the rest is one series */
#define MEM_PAGE_SERIES 60

/* The number of a series of the curve: a call site, on devices or on the host. */
static inline uint32_t mem_page_series(uint32_t site, enum account_where where)
{
	return site * CURVE_WHERES + (uint32_t)where;
}
/* Writes the page; finishes the curve. Returns 0 or -errno. */
int mem_page_write(struct out *, const struct ledger *, struct curve *, const struct mem_about *);

#endif
