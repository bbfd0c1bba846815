/* SPDX-License-Identifier: BSD-2-Clause */
/* replay.c - runs a fuzz target on each file of folders, without a fuzzer: scripts/coverage.py counts what inputs reach. */
#include <dirent.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int run_file(const char *folder, const char *name)
{
	static uint8_t data[1 << 20];
	char path[PATH_MAX];
	size_t size;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "r");
	if (!f)
		return 0;
	size = fread(data, 1, sizeof(data), f);
	fclose(f);
	LLVMFuzzerTestOneInput(data, size);
	return 1;
}

int main(int argc, char **argv)
{
	int n = 0;

	for (int i = 1; i < argc; i++) {
		DIR *folder = opendir(argv[i]);
		struct dirent *e;

		while (folder && (e = readdir(folder)))
			if (e->d_name[0] != '.')
				n += run_file(argv[i], e->d_name);
		if (folder)
			closedir(folder);
	}
	printf("%d inputs\n", n);
	return 0;
}
