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
/* What was not seen: the members `unprobed`, numbers of some reasons, and `not_seen`, an array with an object
 * for each row. Nothing if there are no rows. */
void json_put_holes(struct json *, const struct holes *);
/* ,"stack":[{...}],"stack_flags":["cut"] */
void json_stack(struct text *, const struct sink_opts *, const struct stack *);

#endif
