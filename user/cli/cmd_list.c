/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cmd_list.c - `cudatrace list [GLOB...]`: every function known, from the table of functions.
 *
 *   runtime  memory   cudaMalloc(out devPtr, size)
 */
#include <string.h>

#include "cmd.h"
#include "../render/table.h"
#include "../util/msg.h"

/* By -e and --domain, or what is traced without them. */
static bool is_selected(const struct request *o, int func)
{
	return o->select.shown[func / 64] >> (func % 64) & 1;
}

static bool cmd_list_wanted(const struct request *o, int func)
{
	if (!is_selected(o, func))
		return false;
	for (int i = 0; i < o->nargs; i++)
		if (select_glob(o->args[i], &api_funcs[func]))
			return true;
	return !o->nargs;
}

/* 1180 (a tenth of CUDA's own form) as 11.8 */
static void print_version(struct out *out, const char *word, uint16_t version)
{
	out_fmt(out, " %s %d.%d", word, version / 100,
		version % 100 / 10 ? version % 100 / 10 : version % 10);
}

static void write_function(struct out *out, const struct table_at *at)
{
	const struct api_func *f = at->row;

	out_fmt(out, "%s(", f->name);
	for (int i = 0; i < f->nargs; i++)
		out_fmt(out, "%s%s%s", i ? ", " : "",
			f->args[i].dir == API_OUT     ? "out "
			: f->args[i].dir == API_INOUT ? "inout "
						      : "",
			f->args[i].name);
	out_char(out, ')');
	if (f->since)
		print_version(out, "since", f->since);
	if (f->until)
		print_version(out, "until", f->until);
}

TABLE_GET(function_domain, struct api_func, f, cell_string(api_domain_name(f->domain)))
TABLE_GET(function_class, struct api_func, f, cell_string(api_class_name(f->class)))

/* clang-format off */
static const struct table_column columns[] = {
	{ .text = 1, .width = -8, .get = function_domain },
	{ .text = 2, .width = -9, .get = function_class },
	{ .text = 3, .width = -1, .write = write_function },
};
/* clang-format on */

static int cmd_list(const struct request *o)
{
	struct table t = TABLE_OF(columns, 0, NULL);
	struct out out;
	int n = 0, all = 0;

	if (out_open(&out, NULL, false)) {
		msg_error("cannot write to standard output");
		return 1;
	}
	t.edge = true;
	for (int i = 0; i < api_nfuncs; i++) {
		all += is_selected(o, i);
		if (!cmd_list_wanted(o, i))
			continue;
		table_text_row(&t, &out, &api_funcs[i]);
		n++;
	}
	if (cmd_finish(&out))
		return 1;
	if (n)
		return 0;
	msg_error("no function matches; without a GLOB 'cudatrace list' prints all %d", all);
	return 1;
}

/* clang-format off */
const struct command command_list = {
	.run = cmd_list,
	.words = true,
	.usage = "Usage: cudatrace list [OPTIONS] [GLOB...]\n",
	.about = "\nPrints the functions that cudatrace knows: domain, class, name, arguments. With GLOBs: those that match one of them.\n",
	.after = "\nExamples:\n"
		 "  cudatrace list 'cuMem*'\n"
		 "  cudatrace list -e launch --domain driver\n",
};
/* clang-format on */
