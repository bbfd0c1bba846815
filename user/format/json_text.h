/* SPDX-License-Identifier: BSD-2-Clause */
/* json_text.h - the members that a JSON line has of a kernel and of a stack, as docs/schema.json
 * describes them. */
#ifndef CT_JSON_TEXT_H
#define CT_JSON_TEXT_H

#include "sink.h"
#include "../util/text.h"

/* ,"kernel":"...","kernel_mangled":"...","kernel_source":"registered" */
void json_kernel(struct text *, const struct kernel_name *);
/* ,"stack":[{...}],"stack_flags":["cut"] */
void json_stack(struct text *, const struct sink_opts *, const struct stack *);

#endif
