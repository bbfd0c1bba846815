/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * params_dump.c - reads callbacks as "DOMAIN NAME WHICH" (2 the runtime, 1 the driver) and
 * prints for each with a row "DOMAIN NAME ROW" followed by "OFFSET:BYTES" for each argument, "-"
 * for one that cannot be seen: what params.py compares.
 */
#include <stdio.h>

#include "../../user/api/abi.h"
#include "../../user/source/agent/agent_funcs.h"

static void dump(int row, const struct api_param *words)
{
	const struct abi_plan *p = abi_plan(row, API_ARCH_HERE);

	for (int i = 0; i < api_funcs[row].nargs; i++) {
		int w = p->args[i].word;
		const struct api_arg *a = &api_funcs[row].args[i];

		if (w == ABI_NONE)
			printf(" -");
		else
			printf(" %u:%u", words[w].off,
			       a->abi == API_ABI_WORD ? words[w].width : a->width);
	}
}

int main(void)
{
	struct api_param words[CT_MAX_WORDS];
	int domain, which, kernel;
	char name[256];

	while (scanf("%d %255s %d", &domain, name, &which) == 3) {
		bool twin;
		int row = agent_funcs_row((enum agent_domain)domain, name, 13000,
					  (enum agent_funcs_which)which, &twin);

		if (row < 0 || api_params(row, API_ARCH_HERE, words, &kernel)) {
			printf("%d %s -\n", domain, name);
			continue;
		}
		printf("%d %s %s", domain, name, api_funcs[row].name);
		dump(row, words);
		putchar('\n');
	}
	return 0;
}
