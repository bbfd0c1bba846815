/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unit.h - what the unit tests share: named cases, checks that show what they found, and a last
 * line "N passed, N failed". Tests run from the root of the repository.
 *
 *	static void test_sizes(void)
 *	{
 *		CHECK_EQ(4096, size_of(page));            // shows both numbers when they differ
 *		CHECK_TEXT("4.0 KiB", text_of(page));     // shows both texts
 *		if (CHECK(page->next))                    // a check has a value: is it true?
 *			CHECK_EQ(1, page->next->number);
 *	}
 *
 *	int main(void)
 *	{
 *		RUN(test_sizes);
 *		return unit_end();
 *	}
 *
 * `make unit T=trace CASE=sizes` runs the cases of test_trace whose names contain "sizes".
 * For the same check of many values, write a table and loop over it; say with CASE_ROW which
 * row is at hand.
 */
#ifndef CT_UNIT_H
#define CT_UNIT_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int unit_passed, unit_failed, unit_cases;
static const char *unit_case = "";
static char unit_row[64]; /* " (row ...)" of a table, or "" */

static inline bool unit_check(bool good, const char *file, int line, const char *what)
{
	if (good) {
		unit_passed++;
		return true;
	}
	unit_failed++;
	printf("%s:%d: FAILED: %s%s%s%s\n", file, line, unit_case, unit_row,
	       *unit_case || *unit_row ? ": " : "", what);
	return false;
}

static inline void unit_row_end(char row[64])
{
	size_t n = strlen(row);

	memcpy(row + (n > 62 ? 62 : n), ")", 2);
}

/* Small numbers in decimal, large ones in hexadecimal too. */
static inline void unit_number(const char *before, long long value)
{
	printf("  %s %lld", before, value);
	if (value > 65535 || value < -65536)
		printf(" (0x%llx)", value);
	putchar('\n');
}

static inline bool unit_eq(long long want, long long got, const char *file, int line,
			   const char *what)
{
	bool good = unit_check(want == got, file, line, what);

	if (!good) {
		unit_number("want:", want);
		unit_number("got: ", got);
	}
	return good;
}

static inline bool unit_text(const char *want, const char *got, const char *file, int line)
{
	bool good = unit_check(want && got ? !strcmp(want, got) : want == got, file, line,
			       "text differs");

	if (!good)
		printf("  want: %s\n  got:  %s\n", want ? want : "(null)", got ? got : "(null)");
	return good;
}

#define CHECK(cond) unit_check(!!(cond), __FILE__, __LINE__, #cond)
/* Two integers, enums or booleans; no floating-point numbers, which would be cut. */
#define CHECK_EQ(want, got) \
	unit_eq((long long)(want), UNIT_INTEGER(got), __FILE__, __LINE__, #got " == " #want)
#define UNIT_INTEGER(x) \
	((long long)(x) + 0 * sizeof(char[_Generic((x), float : -1, double : -1, default : 1)]))
#define CHECK_TEXT(want, got) unit_text(want, got, __FILE__, __LINE__)
/* One case, by its function; what follows is what the function is given. */
#define RUN(test, ...)                                  \
	do {                                            \
		if (unit_begins(#test, #__VA_ARGS__)) { \
			test(__VA_ARGS__);              \
			unit_ends();                    \
		}                                       \
	} while (0)
/* Which row of a table the checks that follow are of; until the case ends. */
#define CASE_ROW(...) \
	(snprintf(unit_row, sizeof(unit_row), " (" __VA_ARGS__), unit_row_end(unit_row))

/* Whether the case is to run. All run unless CASE in the environment selects some. */
static inline bool unit_begins(const char *name, const char *arguments)
{
	const char *only = getenv("CASE");

	if (only && !strstr(name, only))
		return false;
	unit_cases++;
	unit_case = name;
	unit_row[0] = '\0';
	if (*arguments)
		CASE_ROW("%s", arguments);
	return true;
}

static inline void unit_ends(void)
{
	unit_case = "";
	unit_row[0] = '\0';
}

static inline int unit_end(void)
{
	const char *only = getenv("CASE");

	if (only && *only && !unit_cases)
		printf("no case has '%s' in its name\n", only);
	printf("%d passed, %d failed\n", unit_passed, unit_failed);
	return unit_failed || (only && *only && !unit_cases) ? 1 : 0;
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
		printf("FAILED: %s%s: differs from %s:\n", unit_case, unit_row, path);
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
