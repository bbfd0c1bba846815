/* SPDX-License-Identifier: BSD-2-Clause */
/* shapes.c - see shapes.h. */
#include <stdio.h>
#include <string.h>

#include "../../api/layers/symbol.h"
#include "shapes.h"

#define WORD 128 /* bytes of an argument's word: five sizes and a type */
#define LIST_WORD (CT_TENSOR_EACH * WORD + 32)

static const struct {
	const char *name, *cxx;
} types[SHAPE_TYPES] = {
#define TYPE(number, name, cxx) [number] = { name, cxx },
#include "shape_types.def"
#undef TYPE
};

/* The words of a call, from which tensors are taken one by one. */
struct words {
	const __u64 *at;
	size_t left;
	bool bad; /* there were not as many as there should have been */
};

static uint64_t next_word(struct words *w)
{
	if (!w->left) {
		w->bad = true;
		return CT_TENSOR_UNKNOWN;
	}
	w->left--;
	return *w->at++;
}

static void tensor_word(struct words *w, uint64_t head, uint8_t undefined, char word[WORD])
{
	uint64_t rank = head & 0xff;
	uint8_t type = (uint8_t)(head >> 8);
	int n;

	if (rank == CT_TENSOR_NONE || (rank <= CT_TENSOR_RANK_MAX && type == undefined))
		snprintf(word, WORD, "none");
	else
		snprintf(word, WORD, "?");
	if (rank > CT_TENSOR_RANK_MAX)
		return;
	if (type == undefined) {
		while (rank--)
			next_word(w);
		return;
	}
	n = snprintf(word, WORD, "%s[",
		     type < SHAPE_TYPES && types[type].name ? types[type].name : "?");
	for (uint64_t i = 0; i < rank; i++)
		n += snprintf(word + n, WORD - (size_t)n, "%s%llu", i ? ", " : "",
			      (unsigned long long)next_word(w));
	snprintf(word + n, WORD - (size_t)n, "]");
}

/* "tensors[2] (float32[4], float32[3])"; "..." if it has more than were read. */
static void list_word(struct words *w, uint64_t head, uint8_t undefined, char word[LIST_WORD])
{
	uint32_t number = (uint32_t)(head >> 32), each = head >> 8 & 0xff;
	size_t n = (size_t)snprintf(word, LIST_WORD, "tensors[%u]", number);
	char one[WORD];

	each = each < CT_TENSOR_EACH ? each : CT_TENSOR_EACH;
	for (uint32_t i = 0; i < each; i++) {
		tensor_word(w, next_word(w), undefined, one);
		n += (size_t)snprintf(word + n, LIST_WORD - n, "%s%s", i ? ", " : " (", one);
	}
	if (each)
		snprintf(word + n, LIST_WORD - n, "%s", number > each ? ", ...)" : ")");
}

static void argument_word(struct words *w, uint8_t undefined, char word[LIST_WORD])
{
	uint64_t head = next_word(w);

	if ((head & 0xff) == CT_TENSOR_LIST)
		list_word(w, head, undefined, word);
	else
		tensor_word(w, head, undefined, word);
}

static void other_word(char code, char word[WORD])
{
	const char *what = code == 's'	 ? "scalar"
			   : code == 'a' ? "scalars"
			   : code == 'l' ? "tensors"
			   : code == '?' ? "?"
					 : "-";

	snprintf(word, WORD, "%s", what);
}

void shapes_of(const struct ct_call *c, char *text, size_t size)
{
	const struct symbol_args *args = symbol_args(c->nwords ? c->words[0] : 0);
	size_t bytes = c->h.size - sizeof(*c), fixed = c->nwords * 8u + 8, n = 0;
	struct words w = { &c->words[c->nwords], bytes > fixed ? (bytes - fixed) / 8 : 0, false };
	char word[LIST_WORD];

	*text = '\0';
	if (!args->plan || !w.left)
		return;
	for (const char *code = args->codes; *code; code++) {
		size_t len;

		if (*code == 'T' || *code == 'O' || *code == 'L')
			argument_word(&w, args->undefined, word);
		else
			other_word(*code, word);
		len = strlen(word);
		/* of a list that does not fit, the number alone */
		if (n + len + sizeof(", , ...") > size && strstr(word, " (")) {
			*strstr(word, " (") = '\0';
			len = strlen(word);
		}
		if (n + len + sizeof(", , ...") > size) {
			snprintf(text + n, size - n, "%s...", n ? ", " : "");
			break;
		}
		n += (size_t)snprintf(text + n, size - n, "%s%s", n ? ", " : "", word);
	}
	if (w.bad)
		*text = '\0';
}

/* ---- the text, read again ---- */

static bool is_word(const char *at, size_t len, const char *word)
{
	return strlen(word) == len && !memcmp(at, word, len);
}

static const char *type_named(const char *at, size_t len)
{
	static const struct {
		const char *word, *type;
	} words[] = { { "scalar", "Scalar" },
		      { "scalars", "ScalarList" },
		      { "tensors", "TensorList" } };

	for (size_t i = 0; i < SHAPE_TYPES; i++)
		if (types[i].name && is_word(at, len, types[i].name))
			return types[i].cxx;
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (is_word(at, len, words[i].word))
			return words[i].type;
	return "";
}

/* The numbers between brackets; *at: behind the first one. */
static bool sizes_next(const char **at, const char *end, struct shape *s)
{
	const char *p = *at;

	for (s->rank = 0; p < end && *p != ']'; s->rank++) {
		uint64_t v = 0;
		const char *digits = p;

		for (; p < end && *p >= '0' && *p <= '9' && p - digits < 19; p++)
			v = v * 10 + (uint64_t)(*p - '0');
		if (p == digits || s->rank == CT_TENSOR_RANK_MAX)
			return false;
		s->sizes[s->rank] = v;
		while (p < end && (*p == ',' || *p == ' '))
			p++;
	}
	*at = p + 1;
	return p < end;
}

/* The words of a list, in parentheses. */
static void list_next(const char **at, const char *end, struct shape *s)
{
	const char *close;

	if (end - *at <= 2 || memcmp(*at, " (", 2) != 0)
		return;
	close = memchr(*at, ')', (size_t)(end - *at));
	if (!close) {
		*at = end;
		return;
	}
	if (close[-1] != '.') { /* "...": there are more */
		s->list = *at + 2;
		s->list_end = close;
	}
	*at = close + 1;
}

bool shapes_next(const char **at, const char *end, struct shape *s)
{
	const char *begin = *at;
	size_t len;

	*s = (struct shape){ .rank = -1, .type = "" };
	for (; *at < end && **at != ',' && **at != '['; ++*at)
		;
	len = (size_t)(*at - begin);
	if (!len || is_word(begin, len, "..."))
		return false;
	s->type = type_named(begin, len);
	if (*at < end && **at == '[') {
		++*at;
		if (!sizes_next(at, end, s))
			return false;
		if (is_word(begin, len, "tensors")) {
			s->rank = -1;
			list_next(at, end, s);
		}
	}
	while (*at < end && (**at == ',' || **at == ' '))
		++*at;
	return true;
}
