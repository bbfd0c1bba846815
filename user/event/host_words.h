/* SPDX-License-Identifier: BSD-2-Clause */
/* host_words.h - the words of host states (CT_HOST_SEGMENT). */
#ifndef CT_HOST_WORDS_H
#define CT_HOST_WORDS_H

#include "../util/types.h"

const char *host_state(uint8_t state);	 /* "blocked"; "unknown" */
const char *host_reason(uint8_t reason); /* "file"; "unknown" */

#endif
