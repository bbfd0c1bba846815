/* SPDX-License-Identifier: BSD-2-Clause */
/* otlp_attrs.h - inside the OTLP outputs: the names and attributes of the spans of calls and of
 * device work. */
#ifndef CT_OTLP_ATTRS_H
#define CT_OTLP_ATTRS_H

#include "otlp.h"

/* Adds the attributes of a call, with its result. */
void otlp_call_attrs(struct otlp_enc *, const struct event *);
/* Of a range or a mark: CT_SCOPE_END. */
void otlp_scope_attrs(struct otlp_enc *, const struct event *);
/* For a call of which only its device work, `work`, was kept. */
void otlp_cause_attrs(struct otlp_enc *, const struct event *work);
/* For calls that have no spans (CT_MUTED). Returns the span's name, in buf. */
const char *otlp_muted_attrs(struct otlp_enc *, const struct event *, char *buf, size_t size);
/* For device work: CT_KERNEL, CT_COPY, CT_SET, CT_GRAPH. Returns the span's name, in buf or
 * owned by the event. */
const char *otlp_work_attrs(struct otlp_enc *, const struct event *, char *buf, size_t size);

#endif
