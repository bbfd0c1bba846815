/* SPDX-License-Identifier: BSD-2-Clause */
/* json_text.h - the members of a JSON line that describe a kernel and a stack, as
 * docs/schema.json defines them. */
#ifndef CT_JSON_TEXT_H
#define CT_JSON_TEXT_H

#include "sink.h"
#include "../util/io/json.h"
#include "../util/text.h"

/* ,"kernel":"...","kernel_mangled":"...","kernel_source":"registered" */
void json_kernel(struct text *, const struct kernel_name *);
/* ,"unprobed":{"processes":3,"ended":0,"max_ns":12,"at_least":false}; "" when there are none.
 * Returns its length. */
#define JSON_UNPROBED_MAX 160
size_t json_unprobed(char *, size_t size, const struct unprobed_sum *);
/* The same member, by a writer. */
void json_unprobed_member(struct json *, const struct unprobed_sum *);
/* ,"stack":[{...}],"stack_flags":["cut"] */
void json_stack(struct text *, const struct sink_opts *, const struct stack *);

#endif
