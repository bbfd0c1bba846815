/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * doctor_features.c - what doctor says of each feature: a verdict for this machine and this user,
 * and, where it is no, why and what to do. It tries nothing that doctor has not tried, and looks
 * at no process.
 */
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "../render/table.h"
#include "../source/host.h"

/* The text begins with yes, no or only; after a no it says what to do. */
struct verdict {
	const char *feature, *says;
};

TABLE_GET(verdict_works, struct verdict, v, cell_bool(strncmp(v->says, "no", 2) != 0))

/* clang-format off */
static const struct table_column columns[] = {
	{ .key = "feature", .text = 1, .width = -14, TABLE_AT(struct verdict, feature) },
	{ .key = "works", .get = verdict_works },
	{ .key = "says", .text = 2, .width = -1, TABLE_AT(struct verdict, says) },
};
/* clang-format on */

/* What works without probes. */
#define INSTEAD ", or use --source=hooks"

/* Returns why probes cannot see calls; NULL: they can. The order is that in which obstacles must be removed. */
static const char *without_probes(const struct doctor_facts *f)
{
	if (!f->btf)
		return "no: this kernel says nothing of its types: use one with "
		       "CONFIG_DEBUG_INFO_BTF=y" INSTEAD;
	if (!f->privileged)
		return "no: privileges are missing (above): run it as root" INSTEAD;
	if (!f->ring)
		return "no: the kernel is too old: use Linux 6.1 or newer" INSTEAD;
	if (!f->probes)
		return "no: this kernel lets no probe be set (above): use one with "
		       "CONFIG_UPROBE_EVENTS=y" INSTEAD;
	return NULL;
}

#if defined(__x86_64__)
#define SEEN
#else
#define SEEN "; they see calls through the dynamic loader alone"
#endif

/* Returns whether our code may be put into programs, which depends on the user. */
static const char *inside(void)
{
	int scope = host_ptrace_scope();

	if (scope == 3)
		return "yes, without root, of programs that cudatrace starts; not with -p: "
		       "kernel.yama.ptrace_scope is 3 until the next boot" SEEN;
	if (scope > 0 && geteuid())
		return "yes, without root, of programs that cudatrace starts; with -p as root, or "
		       "after sysctl kernel.yama.ptrace_scope=0" SEEN;
	return "yes, without root: of programs that cudatrace starts, and of your own with -p" SEEN;
}

void doctor_features(struct out *out, struct json *json, const struct doctor_facts *f)
{
	const char *names = "only with --source=hooks";
	static const char no_driver[] =
		"no: NVIDIA's driver is not loaded here: use a machine with a GPU, or load it";
	const char *no_probes = without_probes(f);
	char text[64];
	bool driver = host_driver(text, sizeof(text));
	const struct verdict verdicts[] = {
		{ "calls", no_probes ? no_probes : "yes" },
		{ "kernel names",
		  no_probes ? names : "yes; 'cudatrace doctor -p PID' says which of a process" },
		{ "stacks (-k)", no_probes ? names : "yes" },
		{ "Python stacks", no_probes ? names : "yes, with -k, of CPython 3.10 to 3.14" },
		{ "--source=hooks", inside() },
		{ "--gpu", driver ? "yes, where the program or CUDA's toolkit has a libcupti; else "
				    "give --cupti PATH"
				  : no_driver },
		{ "--counters",
		  driver ? "yes, as far as the driver allows: 'cudatrace counters -d 1' tries it"
			 : no_driver },
	};
	struct table t = TABLE_OF(columns, 0, NULL);

	t.indent = "  ";
	t.edge = true;
	out_str(out, "\nfeatures\n");
	if (json)
		json_open_array(json, "features");
	for (size_t i = 0; i < ARRAY_LEN(verdicts); i++)
		if (json)
			table_json_row(&t, json, NULL, &verdicts[i]);
		else
			table_text_row(&t, out, &verdicts[i]);
	if (json)
		json_end(json);
}
