/* SPDX-License-Identifier: BSD-2-Clause */
/* recording.h - what the options say about the file of `cudatrace record`, as the recording sink
 * wants it. */
#ifndef CT_RECORDING_H
#define CT_RECORDING_H

#include "opts.h"

struct recording {
	struct sink_file file;
	char *path, *head;
	uint64_t *dump_rows;
};

/* Is the list what --dump-on may have? 0, or -EINVAL after one message. */
int recording_check(const char *list);
/* Returns 0, or -errno after one message. recording_close() is safe in any case. */
int recording_open(struct recording *, const struct opts *, const struct sink_opts *);
void recording_close(struct recording *);

#endif
