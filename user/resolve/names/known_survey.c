/* SPDX-License-Identifier: BSD-2-Clause */
/* known_survey.c - finds out what `cudatrace doctor -p` reports about the names of a process's
 * kernels: see known.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "known.h"
#include "known_driver.h"
#include "../../util/table/array.h"

#define MAX_FILES 1024

static int survey_file(struct known_survey *s, struct target *t, const struct target_map *m)
{
	struct known_file *more;
	struct known_elf *e;
	int fd = target_open_map(t, m);

	if (fd < 0 || known_elf_open(&e, fd))
		return 0;
	if (!known_elf_has_device_code(e)) {
		known_elf_close(e);
		return 0;
	}
	if (!array_room(s->files, s->nfiles)) {
		known_elf_close(e);
		return -ENOMEM;
	}
	more = &s->files[s->nfiles];
	*more = (struct known_file){ .path = strdup(m->path), .index_err = known_elf_index(e) };
	known_elf_facts(e, &more->facts);
	more->kernels = known_elf_kernels(e, NULL, 0);
	known_elf_close(e);
	if (!more->path)
		return -ENOMEM;
	s->nfiles++;
	return 0;
}

int known_survey(struct target *t, struct known_survey *s)
{
	struct driver_table *drivers = driver_table_open();
	const struct target_map *maps;
	int n = target_maps(t, &maps), err = drivers ? 0 : -ENOMEM;

	memset(s, 0, sizeof(*s));
	for (int i = 0; !err && i < n; i++) {
		bool seen = !maps[i].exec || !maps[i].ino;

		for (int j = 0; j < i && !seen; j++)
			seen = maps[j].exec && maps[j].dev == maps[i].dev &&
			       maps[j].ino == maps[i].ino;
		if (seen || s->nfiles == MAX_FILES)
			continue;
		if (!s->driver && driver_is(&maps[i])) {
			s->driver = strdup(maps[i].path);
			s->measured = driver_is_trusted(driver_of(drivers, t, &maps[i]));
		}
		err = survey_file(s, t, &maps[i]);
	}
	driver_table_close(drivers);
	return n < 0 ? n : err;
}

void known_survey_free(struct known_survey *s)
{
	for (int i = 0; i < s->nfiles; i++)
		free(s->files[i].path);
	free(s->files);
	free(s->driver);
	memset(s, 0, sizeof(*s));
}
