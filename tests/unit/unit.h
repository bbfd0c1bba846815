/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unit.h - the little that the unit tests share: named checks and a last line "N passed, N
 * failed". Tests run from the root of the repository.
 */
#ifndef CT_UNIT_H
#define CT_UNIT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int unit_passed, unit_failed;

static inline void unit_check(int good, const char *file, int line, const char *what)
{
	if (good) {
		unit_passed++;
		return;
	}
	unit_failed++;
	printf("%s:%d: FAILED: %s\n", file, line, what);
}

static inline void unit_text(const char *want, const char *got, const char *file, int line)
{
	int good = !strcmp(want, got);

	unit_check(good, file, line, "text differs");
	if (!good)
		printf("  want: %s\n  got:  %s\n", want, got);
}

#define CHECK(cond) unit_check(!!(cond), __FILE__, __LINE__, #cond)
#define CHECK_TEXT(want, got) unit_text(want, got, __FILE__, __LINE__)

static inline int unit_end(void)
{
	printf("%d passed, %d failed\n", unit_passed, unit_failed);
	return unit_failed ? 1 : 0;
}

/* A whole file, NUL-terminated; NULL if it cannot be read. The caller frees. */
static inline char *unit_read(const char *path)
{
	FILE *f = fopen(path, "re");
	char *text = NULL;
	size_t len = 0, n;

	if (!f)
		return NULL;
	do {
		char *more = realloc(text, len + 65537);

		if (!more)
			abort();
		text = more;
		n = fread(text + len, 1, 65536, f);
		len += n;
	} while (n);
	text[len] = '\0';
	fclose(f);
	return text;
}

/* Compares with a file of tests/golden; with UPDATE_GOLDEN in the environment writes it instead. */
static inline void unit_golden(const char *name, const char *got)
{
	char path[256];
	char *want;

	snprintf(path, sizeof(path), "tests/golden/%s", name);
	if (getenv("UPDATE_GOLDEN")) {
		FILE *f = fopen(path, "we");

		if (!f || fputs(got, f) < 0 || fclose(f))
			abort();
	}
	want = unit_read(path);
	if (want && !strcmp(want, got)) {
		unit_passed++;
	} else {
		char cmd[512];
		FILE *f;

		unit_failed++;
		printf("FAILED: differs from %s:\n", path);
		fflush(stdout);
		snprintf(cmd, sizeof(cmd), "diff -u %s - >&2", path);
		f = popen(cmd, "we");
		if (f) {
			fputs(got, f);
			pclose(f);
		}
	}
	free(want);
}

#endif
