/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * html_pack.h - binary data for a page's script: columns of numbers and texts, deflated (zlib's
 * format, which a browser's DecompressionStream("deflate") reads), as base64 in a <script>
 * element that is not run. Knows no record.
 */
#ifndef CT_HTML_PACK_H
#define CT_HTML_PACK_H

#include "../../util/io/out.h"
#include "../../util/text.h"

/* Appends a number, 7 bits in each byte, the lowest first; the highest bit says that more bytes
 * follow. */
void pack_u64(struct text *, uint64_t);
/* The same for a number that may be negative, in the order 0, -1, 1, -2, ... */
void pack_i64(struct text *, int64_t);
void pack_f64(struct text *, double); /* 8 bytes, little end first */

/* Writes <script type="text/plain" class="CLASS" data-first="FIRST">BASE64</script>. Returns 0,
 * -ENOMEM, -E2BIG or the output's. */
int pack_write(struct out *, const char *class, uint64_t first, const void *data, size_t len);

#endif
