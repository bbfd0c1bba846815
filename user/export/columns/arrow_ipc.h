/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * arrow_ipc.h - makes a stream of Apache Arrow (IPC format, metadata version 5): a schema, batches
 * of rows with their dictionaries, an end. Knows no record.
 */
#ifndef CT_ARROW_IPC_H
#define CT_ARROW_IPC_H

#include "column_batch.h"

/* Memory for what is written; NULL: no memory. */
struct arrow_body;
struct arrow_body *arrow_body_open(void);
void arrow_body_close(struct arrow_body *); /* takes NULL */

/* Writes the schema, with the batch's columns; `key` and `value` are its metadata. */
void arrow_schema(struct text *, const struct batch *, const char *key, const char *value);
/* Writes the rows, and empties the batch. Returns 0 or -ENOMEM: there was no memory for all cells. */
int arrow_batch(struct text *, struct arrow_body *, struct batch *);
/* Writes the end of the stream. */
void arrow_end(struct text *);

#endif
