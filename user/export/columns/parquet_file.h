/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * parquet_file.h - writes one file of Apache Parquet: groups of rows, one page for each column, texts
 * by dictionary, all else plain, compressed by zstd. Knows no event.
 */
#ifndef CT_PARQUET_FILE_H
#define CT_PARQUET_FILE_H

#include "../../util/io/out.h"
#include "../../util/io/safe_open.h"
#include "column_batch.h"

struct parquet_file {
	struct out out;
	uint64_t at, rows;
	struct text groups; /* what the end of the file says about each group */
	uint32_t ngroups;
	struct text page, packed, head;
	void *zstd;
	bool open;
};

/* Makes the file. Returns 0 or -errno; parquet_file_close() is safe then. */
int parquet_file_open(struct parquet_file *, const struct safe_place *);
/* Writes the batch as a group of rows, and empties it. Returns 0 or -errno. */
int parquet_file_group(struct parquet_file *, struct batch *);
/* Writes the end of the file, with the batch's columns, and to the disk. Returns 0 or -errno. */
int parquet_file_end(struct parquet_file *, const struct batch *, const char *version);
void parquet_file_close(struct parquet_file *); /* safe when zeroed */

#endif
