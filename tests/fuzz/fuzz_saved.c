/* SPDX-License-Identifier: BSD-2-Clause */
/* fuzz_saved.c - a file of `stat --save`, read and compared with itself by every form of `compare`. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../user/compare/saved.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct saved s;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size || lseek(fd, 0, SEEK_SET))
		abort();
	if (!saved_open(&s, fd, "fuzz")) {
		double *v = calloc(s.nruns + 1, sizeof(*v));

		for (size_t i = 0; v && i < s.nrows; i++)
			for (int f = 0; f < SAVED_FIELD_END; f++)
				if (saved_values(&s, &s.rows[i], s.rows[i].section,
						 (enum saved_field)f, v) > s.nruns)
					abort();
		free(v);
	}
	saved_close(&s);
	close(fd);
	return 0;
}
