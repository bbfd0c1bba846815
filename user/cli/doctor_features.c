/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * doctor_features.c - what doctor says of each feature: a verdict for this machine and this user,
 * and, where it is no, why and what to do. It tries nothing that doctor has not tried, and looks
 * at no process.
 */
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "../source/host.h"
#include "../util/io/json.h"

/* The text begins with yes, no or only; after a no it says what to do. */
static void verdict(struct out *out, struct json *json, const char *feature, const char *text)
{
	out_fmt(out, "  %-14s %s\n", feature, text);
	if (!json)
		return;
	json_open_object(json, NULL);
	json_put_str(json, "feature", feature);
	json_put_bool(json, "works", strncmp(text, "no", 2) != 0);
	json_put_str(json, "says", text);
	json_end(json);
}

/* What works without probes. */
#define INSTEAD ", or use --source=hooks"

/* Why calls cannot be seen by probes; NULL: they can. What stands first has to be mended first. */
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

/* Code of ours in the program: whether it may be put there depends on the user. */
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
	const char *hooks = inside(), *names = "only with --source=hooks";
	static const char no_driver[] =
		"no: NVIDIA's driver is not loaded here: use a machine with "
		"a GPU, or load it";
	const char *no_probes = without_probes(f);
	char text[64];
	bool driver = host_driver(text, sizeof(text));

	out_str(out, "\nfeatures\n");
	if (json)
		json_open_array(json, "features");
	verdict(out, json, "calls", no_probes ? no_probes : "yes");
	verdict(out, json, "kernel names",
		no_probes ? names : "yes; 'cudatrace doctor -p PID' says which of a process");
	verdict(out, json, "stacks (-k)", no_probes ? names : "yes");
	verdict(out, json, "Python stacks",
		no_probes ? names : "yes, with -k, of CPython 3.10 to 3.14");
	verdict(out, json, "--source=hooks", hooks);
	verdict(out, json, "--gpu",
		driver ? "yes, where the program or CUDA's toolkit has a libcupti; else give "
			 "--cupti PATH"
		       : no_driver);
	verdict(out, json, "--counters",
		driver ? "yes, as far as the driver allows: 'cudatrace counters -d 1' tries it"
		       : no_driver);
	if (json)
		json_end(json);
}
