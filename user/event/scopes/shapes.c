/* SPDX-License-Identifier: BSD-2-Clause */
/* shapes.c - see shapes.h. */
#include <stdio.h>
#include <string.h>

#include "../../api/layers/symbol.h"
#include "shapes.h"

#define WORD 128 /* bytes of an argument's word: five sizes and a type */

static const char *const types[SHAPE_TYPES] = {
#define TYPE(number, name, cxx) [number] = name,
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

static void tensor_word(struct words *w, uint8_t undefined, char word[WORD])
{
	uint64_t head = next_word(w), rank = head & 0xff;
	uint8_t type = (uint8_t)(head >> 8);
	int n;

	if (rank == CT_TENSOR_NONE || (rank <= CT_TENSOR_RANK_MAX && type == undefined))
		snprintf(word, WORD, "none");
	else if (rank == CT_TENSOR_LIST)
		snprintf(word, WORD, "tensors[%u]", (uint32_t)(head >> 32));
	else
		snprintf(word, WORD, "?");
	if (rank > CT_TENSOR_RANK_MAX)
		return;
	if (type == undefined) {
		while (rank--)
			next_word(w);
		return;
	}
	n = snprintf(word, WORD, "%s[", type < SHAPE_TYPES && types[type] ? types[type] : "?");
	for (uint64_t i = 0; i < rank; i++)
		n += snprintf(word + n, WORD - (size_t)n, "%s%llu", i ? ", " : "",
			      (unsigned long long)next_word(w));
	snprintf(word + n, WORD - (size_t)n, "]");
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
	char word[WORD];

	*text = '\0';
	if (!args->plan || !w.left)
		return;
	for (const char *code = args->codes; *code; code++) {
		size_t len;

		if (*code == 'T' || *code == 'O' || *code == 'L')
			tensor_word(&w, args->undefined, word);
		else
			other_word(*code, word);
		len = strlen(word);
		if (n + len + sizeof(", , ...") > size) {
			snprintf(text + n, size - n, "%s...", n ? ", " : "");
			break;
		}
		n += (size_t)snprintf(text + n, size - n, "%s%s", n ? ", " : "", word);
	}
	if (w.bad)
		*text = '\0';
}
