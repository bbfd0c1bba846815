/* SPDX-License-Identifier: BSD-2-Clause */
/* mem_options.h - what `cudatrace mem` can be asked for: mem_sink.c has the rows. */
#ifndef CT_MEM_OPTIONS_H
#define CT_MEM_OPTIONS_H

#include "../util/types.h"

/* The exit status of --leak-check. */
#define MEM_STATUS_LEAKS 4
#define MEM_STATUS_NOT_KNOWN 5

struct mem_options {
	uint8_t by;   /* enum ledger_by, the only table; LEDGER_BY_ALL: the usual ones */
	uint32_t top; /* rows of a table */
	bool json;
	bool leak_check;   /* leaks change the exit status */
	uint64_t watch_ns; /* interval at which growth is shown; 0: off */
	const char *html;  /* path of the picture; NULL: none */
	const char *viz;   /* path of the snapshot for PyTorch's viewer; NULL: none */
};

#endif
