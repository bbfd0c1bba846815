/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * demangle.c - see demangle.h.
 *
 * libiberty does the demangling. A mangled name of 100 bytes can stand for gigabytes, since it
 * may refer to its own parts again and again: the text is taken piece by piece, and left with
 * longjmp when it gets too long (the demangler holds nothing but its stack). It refuses names
 * above 1 KiB unless told to have no limit, and templates of today are longer: those get a
 * thread with a large stack, as the parser's recursion is as deep as the name is long.
 */
#include <libiberty/demangle.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "demangle.h"
#include "thread.h"

#define PLAIN_MAX 1000	       /* bytes of a name that libiberty takes with its own limits */
#define TEXT_MAX (1 << 16)     /* bytes of a demangled name */
#define STACK_BYTES (64 << 20) /* touched only as far as it is needed */
#define OPTIONS (DMGL_PARAMS | DMGL_ANSI)

struct text {
	const char *mangled;
	int options;
	char *buf;
	size_t len, cap;
	bool good;
	jmp_buf too_long;
};

static void append(const char *s, size_t n, void *ctx)
{
	struct text *t = ctx;

	if (t->len + n >= t->cap) {
		size_t cap = t->len + n < TEXT_MAX / 8 ? (t->len + n) * 2 : TEXT_MAX;
		char *buf = t->len + n < TEXT_MAX ? realloc(t->buf, cap) : NULL;

		if (!buf)
			longjmp(t->too_long, 1);
		t->buf = buf;
		t->cap = cap;
	}
	memcpy(t->buf + t->len, s, n);
	t->len += n;
	t->buf[t->len] = '\0';
}

static void *demangle(void *arg)
{
	struct text *t = arg;

	if (!setjmp(t->too_long))
		t->good = cplus_demangle_v3_callback(t->mangled, t->options, append, t) && t->len;
	return NULL;
}

static void demangle_on_large_stack(struct text *t)
{
	pthread_t thread;

	if (!thread_start(&thread, "ct-demangle", STACK_BYTES, demangle, t))
		pthread_join(thread, NULL);
}

/*
 * In the type of a conversion operator (cv) libiberty tries template arguments behind a template
 * parameter (T_I) in two ways, and so on inside of them: 2^n attempts. No program has more than
 * a few.
 */
static bool takes_for_ever(const char *s)
{
	int n = 0;

	if (!strstr(s, "cv"))
		return false;
	while ((s = strchr(s, 'T'))) {
		s++;
		s += strspn(s, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ");
		n += s[0] == '_' && s[1] == 'I';
	}
	return n > 12;
}

char *demangle_full(const char *mangled)
{
	struct text t = { .mangled = mangled, .options = OPTIONS };

	if (strncmp(mangled, "_Z", 2) || takes_for_ever(mangled))
		return NULL;
	if (strlen(mangled) <= PLAIN_MAX) {
		demangle(&t);
	} else {
		t.options |= DMGL_NO_RECURSE_LIMIT;
		demangle_on_large_stack(&t);
	}
	if (t.good)
		return t.buf;
	free(t.buf);
	return NULL;
}

/* ---- the short form ---- */

static bool is_ident(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '$' || c & 0x80;
}

/* At an operator's name, with the symbols that would be taken for brackets: its length; 0: there
 * is none at s. */
static size_t operator_at(const char *full, const char *s)
{
	static const char *const symbols[] = { "()", "[]", "<=>", "<<=", ">>=", "->*", "<<",
					       ">>", "<=", ">=",  "->",	 "<",	">" };
	size_t word = sizeof("operator") - 1;

	if (strncmp(s, "operator", word) || is_ident(s[word]) || (s > full && is_ident(s[-1])))
		return 0;
	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++)
		if (!strncmp(s + word, symbols[i], strlen(symbols[i])))
			return word + strlen(symbols[i]);
	return word;
}

/*
 * The end of the bracket at s: behind its closing one, or the end of the text. `full` is where
 * the text begins. Angles inside of other brackets may be comparisons: they close with what is
 * around them.
 */
static const char *bracket_end(const char *full, const char *s)
{
	static const char closing[] = ")}]";
	char open[256];
	int depth = 0;

	while (*s) {
		size_t op = operator_at(full, s);
		const char *close;

		if (op) {
			s += op;
			continue;
		}
		if (strchr("(<{[", *s)) {
			if (depth == sizeof(open))
				return s + strlen(s);
			open[depth++] = *s;
		} else if (*s == '>') {
			depth -= depth && open[depth - 1] == '<' && s[-1] != '-';
		} else if ((close = strchr(closing, *s))) {
			char wanted = "({["[close - closing];
			int d = depth;

			while (d && open[d - 1] != wanted)
				d--;
			depth = d ? d - 1 : depth;
		}
		s++;
		if (!depth)
			break;
	}
	return s;
}

/* Behind a parameter list: " const", " volatile", "&" and "&&", in which no name begins. */
static const char *skip_qualifiers(const char *s)
{
	static const char *const words[] = { " const", " volatile", " &&", " &", "&&", "&" };
	bool any;

	do {
		any = false;
		for (size_t i = 0; i < sizeof(words) / sizeof(words[0]) && !any; i++) {
			size_t n = strlen(words[i]);

			any = !strncmp(s, words[i], n) && !is_ident(s[n]);
			if (any)
				s += n;
		}
	} while (any);
	return s;
}

/* Where the function's own name begins, with its namespaces: behind the return type, if there is
 * one. */
static const char *name_start(const char *full)
{
	const char *s = full, *start = full, *name = full;
	bool in_operator = false;

	while (*s) {
		size_t op = operator_at(full, s);

		if (op) {
			s += op;
			in_operator = true; /* "operator unsigned long", "operator new" */
		} else if (*s == '(') {
			s = bracket_end(full, s);
			if (!strncmp(s, "::", 2))
				in_operator = false;
			/* the parameters: what begins after them was no return type's */
			else
				name = start;
			s = skip_qualifiers(s);
		} else if (strchr("<{[", *s)) {
			s = bracket_end(full, s);
		} else {
			if (*s == ' ' && !in_operator && s[1] != '(' && s[1] != '[')
				start = s + 1;
			s++;
		}
	}
	return name;
}

static size_t columns(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += (*s & 0xc0) != 0x80;
	return n;
}

/* Appends a copy of s to `out`, the brackets of kind `open` shortened. Returns the new end. */
static char *shorten(char *out, const char *s, char open)
{
	const char *full = s;

	while (*s) {
		size_t op = operator_at(full, s);
		const char *end;

		if (op) {
			out = mempcpy(out, s, op);
			s += op;
			continue;
		}
		if (*s != open || !strncmp(s, "(anonymous namespace)", 21)) {
			size_t n = *s == open ? 21 : 1;

			out = mempcpy(out, s, n);
			s += n;
			continue;
		}
		end = bracket_end(full, s);
		if (end - s > 5) {
			out = mempcpy(out, open == '<' ? "<...>" : "(...)", 5);
		} else {
			out = mempcpy(out, s, (size_t)(end - s));
		}
		s = end;
	}
	*out = '\0';
	return out;
}

char *demangle_brief(const char *full)
{
	const char *name = name_start(full);
	char *brief = strdup(name), *other;

	if (!brief)
		return NULL;
	if (columns(brief) > DEMANGLE_WIDTH) {
		shorten(brief, name, '<');
		if (columns(brief) > DEMANGLE_WIDTH) {
			other = strdup(brief);
			if (other)
				shorten(brief, other, '(');
			free(other);
		}
	}
	if (!strcmp(brief, full)) {
		free(brief);
		return NULL;
	}
	return brief;
}
