/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cmd_list.c - `cudatrace list [GLOB...]`: every function known, from the table of functions.
 *
 *   runtime  memory   cudaMalloc(out devPtr, size)
 */
#include <string.h>

#include "cmd.h"
#include "../util/msg.h"

/* By -e and --domain, or what is traced without them. */
static bool is_selected(const struct request *o, int func)
{
	return o->select.shown[func / 64] >> (func % 64) & 1;
}

static bool wanted(const struct request *o, int func)
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

static void print_function(struct out *out, const struct api_func *f)
{
	out_fmt(out, "%-8s %-9s %s(", api_domain_name(f->domain), api_class_name(f->class),
		f->name);
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
	out_char(out, '\n');
}

static int cmd_list(const struct request *o)
{
	struct out out;
	int n = 0, all = 0;

	if (out_open(&out, NULL, false)) {
		msg_error("cannot write to standard output");
		return 1;
	}
	for (int i = 0; i < api_nfuncs; i++) {
		all += is_selected(o, i);
		if (!wanted(o, i))
			continue;
		print_function(&out, &api_funcs[i]);
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
