/* SPDX-License-Identifier: BSD-2-Clause */
/* table_compact.c - see table_compact.h. Knows no record. */
#include <stdio.h>
#include <string.h>

#include "../../util/utf8.h"
#include "table_compact.h"
#include "table_values.h"

#define YELLOW "\033[33m"
#define PLAIN "\033[0m"

/* No value makes a column wider than this. */
static const int most[COMPACT_COLUMNS] = {
	[COMPACT_TIME] = 27,   [COMPACT_PROCESS] = 20, [COMPACT_PID] = 10,   [COMPACT_TID] = 10,
	[COMPACT_THREAD] = 15, [COMPACT_TOOK] = 8,     [COMPACT_EVENT] = 32,
};

/* Returns how wide the column is with a value of so many characters, and remembers it. */
static int table_compact_learn(struct compact *c, enum compact_column column, int chars)
{
	int *width = &c->widths[column];

	if (chars > *width)
		*width = chars < most[column] ? chars : most[column];
	return *width;
}

static char *spaces(char *p, int n)
{
	for (; n > 0; n--)
		*p++ = ' ';
	return p;
}

char *compact_cell(struct compact *c, char *p, enum compact_column column, const char *s, size_t n,
		   bool right)
{
	int width = table_compact_learn(c, column, (int)n);

	if (right)
		p = spaces(p, width - (int)n);
	p = put_mem(p, s, n);
	if (!right)
		p = spaces(p, width - (int)n);
	return put_char(p, ' ');
}

char *compact_name(struct compact *c, char *p, enum compact_column column, const char *s, size_t n)
{
	int chars = 0;

	for (; n && *s && chars < most[column]; chars++) {
		uint32_t code;
		int len = utf8_next(s, n, &code);

		if (len && utf8_is_safe(code)) {
			p = put_mem(p, s, (size_t)len);
		} else {
			*p++ = '?';
			len = len ? len : 1;
		}
		s += len;
		n -= (size_t)len;
	}
	return put_char(spaces(p, table_compact_learn(c, column, chars) - chars), ' ');
}

/* ---- the name of a process ---- */

struct word {
	const char *s;
	size_t n;
};

/* The next argument of a command line, whose arguments NUL bytes separate. */
static bool table_compact_next(struct word *w, const char **at, const char *end)
{
	if (*at >= end)
		return false;
	w->s = *at;
	w->n = strnlen(*at, (size_t)(end - *at));
	*at += w->n + 1;
	return true;
}

static bool is(const struct word *w, const char *text)
{
	return w->n == strlen(text) && !memcmp(w->s, text, w->n);
}

static struct word without_folder(struct word w)
{
	for (size_t i = w.n; i > 0; i--)
		if (w.s[i - 1] == '/')
			return (struct word){ w.s + i, w.n - i };
	return w;
}

/* The script or module of Python's command line; false: it has none. */
static bool script(struct word *found, const char *at, const char *end)
{
	while (table_compact_next(found, &at, end)) {
		if (is(found, "-m"))
			return table_compact_next(found, &at, end);
		if (is(found, "-W") || is(found, "-X"))
			table_compact_next(found, &at, end);
		else if (is(found, "-c") || is(found, "-"))
			return false;
		else if (found->n && *found->s != '-')
			return true;
	}
	return false;
}

const char *compact_process(const struct process *proc, size_t *n)
{
	const struct process_info *info = proc->info;
	const char *at = info ? info->cmdline : NULL, *end = at ? at + info->cmdline_len : NULL;
	struct word program, name;

	*n = strnlen(proc->comm, CT_COMM_LEN);
	if (!at || !table_compact_next(&program, &at, end))
		return proc->comm;
	name = without_folder(program);
	if (name.n >= 6 && !memcmp(name.s, "python", 6) && script(&program, at, end))
		name = without_folder(program);
	if (!name.n)
		return proc->comm;
	*n = name.n;
	return name.s;
}

/* ---- values ---- */

char *compact_took(struct compact *c, char *p, uint64_t ns, bool slow, bool color)
{
	char text[32], *end = table_duration(text, ns);
	int width = table_compact_learn(c, COMPACT_TOOK, (int)(end - text));

	p = spaces(p, width - (int)(end - text));
	if (slow && color)
		p = put_lit(p, YELLOW);
	p = put_mem(p, text, (size_t)(end - text));
	p = put_char(p, slow ? '!' : ' ');
	if (slow && color)
		p = put_lit(p, PLAIN);
	return put_char(p, ' ');
}

/* 3B, 4KiB, 1.5GiB */
static char *put_size(char *p, uint64_t bytes)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double v = (double)bytes;
	size_t unit = 0;
	char text[32];

	/* what would be rounded to 1024 is one of the next unit */
	while ((unit ? v >= 1023.95 : v >= 1024) && unit + 1 < ARRAY_LEN(units)) {
		v /= 1024;
		unit++;
	}
	snprintf(text, sizeof(text), "%.1f", v);
	text[strcspn(text, ".") + (strstr(text, ".0") ? 0 : 2)] = '\0';
	return put_str(put_str(p, text), units[unit]);
}

bool compact_value(struct row *w, const struct field *f)
{
	const char *name;

	if (f->absent)
		return false;
	if (f->type == FIELD_SIZE) {
		w->p = put_size(w->p, f->u);
		return true;
	}
	name = f->type == FIELD_ENUM && f->xlat ? xlat_name(f->xlat, f->i) : NULL;
	if (name)
		w->p = put_str(w->p, xlat_short(f->xlat, name));
	return name;
}

/* ---- the terminal's width ---- */

/* How many bytes at s are the sequence of a color; 0: none is there. */
static size_t color_at(const char *s, size_t n)
{
	size_t i = 2;

	if (n < 3 || s[0] != '\033' || s[1] != '[')
		return 0;
	while (i < n && s[i] != 'm')
		i++;
	return i < n ? i + 1 : 0;
}

/* One line without its end. */
static void cut_line(struct row *w, const char *s, size_t n, int columns)
{
	size_t at = 0, keep = 0; /* keep: what stands before the last column */
	bool colored = false, at_keep = false;
	int chars = 0;

	while (at < n) {
		size_t len = color_at(s + at, n - at);
		uint32_t code;

		if (len) {
			colored = len > 4; /* the shorter one ends it */
			at += len;
			continue;
		}
		if (chars == columns - 1) {
			keep = at;
			at_keep = colored;
		}
		if (chars == columns) {
			row_mem(w, s, keep);
			row_mem(w, ">", 1);
			if (at_keep)
				row_mem(w, PLAIN, strlen(PLAIN));
			return;
		}
		len = (size_t)utf8_next(s + at, n - at, &code);
		at += len ? len : 1;
		chars++;
	}
	row_mem(w, s, n);
}

void compact_cut(struct row *w, const struct text *lines, int columns)
{
	size_t at = 0;

	while (at < lines->len) {
		const char *end = memchr(lines->s + at, '\n', lines->len - at);
		size_t n = end ? (size_t)(end - lines->s) - at : lines->len - at;

		cut_line(w, lines->s + at, n, columns);
		row_mem(w, "\n", 1);
		at += n + 1;
	}
}
