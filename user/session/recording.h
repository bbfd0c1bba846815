/* SPDX-License-Identifier: BSD-2-Clause */
/* recording.h - turns the options about the file of `cudatrace record` into what the recording sink
 * needs. */
#ifndef CT_RECORDING_H
#define CT_RECORDING_H

#include "../request/request.h"
#include "../stages/dump_on.h"

struct recording {
	struct sink_file file;
	char *path, *head;
	struct dump_on dump;
};

/* Returns 0, or -errno after one message. recording_close() is safe in any case. */
int recording_open(struct recording *, const struct request *, const struct sink_opts *);
void recording_close(struct recording *);

#endif
