/* SPDX-License-Identifier: BSD-2-Clause */
/* top_options.h - the options that only `cudatrace top` has. */
#ifndef CT_TOP_OPTIONS_H
#define CT_TOP_OPTIONS_H

#include "../util/types.h"

enum top_form { TOP_TABLE, TOP_JSON };

struct top_options {
	bool batch;   /* blocks of text, no terminal */
	uint8_t sort; /* enum top_sort */
	uint8_t form; /* enum top_form, of the blocks */
};

#endif
