/* SPDX-License-Identifier: BSD-2-Clause */
/* dump_on.c - see dump_on.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../event/select.h"
#include "../flow/plan.h"
#include "../util/msg.h"
#include "dump_on.h"

static int dump_on_add_word(struct dump_on *d, const char *word)
{
	int n = 0;

	/* a signal makes it write in any case, whatever the list says */
	if (!strcmp(word, "signal"))
		return 0;
	if (!strcmp(word, "failed")) {
		d->failed = true;
		return 0;
	}
	if (!strcmp(word, "end")) {
		d->end = true;
		return 0;
	}
	if (!d->rows)
		d->rows = calloc(PLAN_WORDS, sizeof(*d->rows));
	if (!d->rows)
		return -ENOMEM;
	for (int i = 0; i < api_nfuncs; i++) {
		if (!select_glob(word, &api_funcs[i]))
			continue;
		plan_add(d->rows, i);
		n++;
	}
	if (n)
		return 0;
	msg_error("--dump-on: '%s' is not failed, end or signal, and no function matches it; see "
		  "'cudatrace list'",
		  word);
	return -EINVAL;
}

int dump_on_parse(struct dump_on *d, const char *list)
{
	char *copy = strdup(list), *state = NULL;
	int err = copy ? 0 : -ENOMEM;

	*d = (struct dump_on){ 0 };
	for (char *word = copy ? strtok_r(copy, ",", &state) : NULL; word && !err;
	     word = strtok_r(NULL, ",", &state))
		err = dump_on_add_word(d, word);
	free(copy);
	if (err == -ENOMEM)
		msg_error("--dump-on: no memory");
	return err;
}

void dump_on_free(struct dump_on *d)
{
	free(d->rows);
	*d = (struct dump_on){ 0 };
}

int dump_on_check(const char *list)
{
	struct dump_on d;
	int err = dump_on_parse(&d, list);

	dump_on_free(&d);
	if (err || list[strspn(list, ",")])
		return err;
	msg_error(
		"--dump-on: '%s' is an empty list; give failed, end, signal or functions as GLOBs",
		list);
	return -EINVAL;
}
