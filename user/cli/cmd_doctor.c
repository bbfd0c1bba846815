/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cmd_doctor.c - `cudatrace doctor [-p PID]`: what can be traced here, what cannot, and why.
 * Attaches nothing to any program. Exit status 1 when tracing is not possible.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "../proc/target.h"
#include "../render/table.h"
#include "../resolve/names/known.h"
#include "../source/probe/attach_kind.h"
#include "../source/discover/discover.h"
#include "../source/host.h"
#include "../source/hooks/hooks_suits.h"
#include "../source/inject/inject_check.h"
#include "../source/pids.h"
#include "../source/probe/priv.h"
#include "../util/io/json.h"
#include "../util/msg.h"
#include "../util/option/option.h"
#include "../util/strings.h"
#include "../../wire/control.h"

/* Files with a runtime whose functions were not found: more are not named. */
#define STRIPPED_FILES 64
#define STRIPPED_BYTES (64u << 10)

struct doctor {
	const struct request *o;
	struct out out;			   /* the text for people; with JSON it goes to /dev/null */
	struct json json;		   /* used with --format json; else its `out` is NULL */
	bool probes;			   /* the machine allows them */
	uint64_t pair_ns;		   /* what they cost a call; 0: not known */
	struct strings stripped;	   /* files with a runtime whose functions were not found */
	int nfiles, there[API_DOMAIN_END]; /* files; those of each library */
};

static bool in_json(const struct doctor *d)
{
	return d->json.out != NULL;
}

/* Prints facts that there is one set of: as lines for people, or as members of the JSON object that is open. */
static void facts(struct doctor *d, const struct table *t, const void *row)
{
	if (in_json(d))
		table_json_members(t, &d->json, row);
	else
		table_text_lines(t, &d->out, row);
}

/* ---- the machine ---- */

struct machine {
	const char *kernel;
	char release[256], missing[128];
	int ring, kind; /* the kind of probes that would be used; both members: or -errno */
	bool btf, loop, initial_pids;
	const char *asked;     /* the kind that the user wants; NULL: the best */
	char kind_missing[64]; /* privileges for a better kind */
};

/* Finds the kind of probes that would be used. The other kinds are not tried, because tracefs's locks stop the
 * whole machine. */
static void try_kinds(struct machine *m)
{
	bool refused, perf;

	m->kind = attach_kind_try(m->asked);
	refused = m->kind == -EPERM || m->kind == -EACCES;
	perf = m->kind == ATTACH_PERF ||
	       (m->asked && !strcmp(m->asked, attach_kind_name(ATTACH_PERF)));
	if (refused || (m->kind == ATTACH_PERF && !m->asked))
		priv_missing_for(perf && refused ? ATTACH_PERF : ATTACH_TRACEFS, m->kind_missing,
				 sizeof(m->kind_missing));
}

TABLE_SAY(show_btf, struct machine, m,
	  m->btf ? "yes"
		 : "no: /sys/kernel/btf/vmlinux is missing; a kernel with CONFIG_DEBUG_INFO_BTF=y "
		   "is needed")

TABLE_GET(machine_ring, struct machine, m, cell_bool(m->ring > 0))

TABLE_SAY(show_ring, struct machine, m,
	  m->ring > 0	      ? "yes"
	  : m->ring == -EPERM ? "not known: not permitted"
			      : "no: Linux 5.8 or newer is needed")

TABLE_SAY(show_loop, struct machine, m, m->loop ? NULL : "no: Linux 5.17 or newer is needed")

static const char *show_missing(const struct table_at *at, char buf[TABLE_CELL])
{
	const struct machine *m = at->row;

	if (!*m->missing)
		return "all that is needed";
	snprintf(buf, TABLE_CELL, "missing: %s; type: sudo cudatrace doctor", m->missing);
	return buf;
}

TABLE_GET(machine_kind, struct machine, m,
	  cell_string(m->kind > ATTACH_NONE ? attach_kind_name((enum attach_kind)m->kind) : NULL))

static void write_kind(struct out *o, const struct table_at *at)
{
	const struct machine *m = at->row;

	table_text_line(o, at);
	if (m->kind > ATTACH_NONE)
		out_str(o, attach_kind_name((enum attach_kind)m->kind));
	else
		out_fmt(o, "none possible%s%s (%s)", m->asked ? " of kind " : "",
			m->asked ? m->asked : "", strerror(m->kind < 0 ? -m->kind : ENOTSUP));
	if (*m->kind_missing)
		out_fmt(o, "; %sneeds %s too",
			m->kind < 0 ? "" : "tracefs, which detaches sooner, ", m->kind_missing);
}

/* What a return probe can do to a program: docs/ARCHITECTURE.md, limits. */
static const char session_returns[] =
	"a coroutine that continues in another thread inside a traced call ends its program "
	"(SIGILL): use --no-return for such a program";
static const char other_returns[] =
	"CUDA called by a coroutine, or in a signal's handler on an alternate stack, inside a "
	"traced call can end its program (SIGILL): use --no-return for such a program, or Linux "
	"6.13 or newer";

TABLE_SAY(show_returns, struct machine, m,
	  m->kind <= ATTACH_NONE      ? NULL
	  : m->kind == ATTACH_SESSION ? session_returns
				      : other_returns)

TABLE_SAY(show_pids, struct machine, m,
	  m->initial_pids ? "the initial one"
			  : "one of its own: only processes that are visible in it can be named")

#define OF(of) TABLE_AT(struct machine, of)
/* clang-format off */
static const struct table_column machine_columns[] = {
	{ .key = "kernel", .head = "kernel", .text = 1, OF(kernel) },
	{ .key = "btf", .head = "BTF", .text = 2, .show = show_btf, OF(btf) },
	{ .key = "ring_buffer", .head = "ring buffer", .text = 3, .show = show_ring, .get = machine_ring },
	{ .key = "bpf_loop", .head = "bpf_loop()", .text = 4, .show = show_loop, OF(loop) },
	{ .key = "missing_privileges", .head = "privileges", .text = 5, .show = show_missing, TABLE_CHARS_AT(struct machine, missing) },
	{ .key = "probes", .head = "probes", .text = 6, .write = write_kind, .get = machine_kind },
	{ .head = "return probes", .text = 7, .show = show_returns },
	{ .key = "initial_pid_namespace", .head = "pid namespace", .text = 8, .show = show_pids, OF(initial_pids) },
};
/* clang-format on */
#undef OF

static bool machine(struct doctor *d, struct doctor_facts *found)
{
	struct table t = TABLE_OF(machine_columns, 0, NULL);
	struct machine m = { .asked = d->o->probe_kind,
			     .ring = host_has_ringbuf(),
			     .btf = host_has_btf(),
			     .loop = host_has_bpf_loop(),
			     .initial_pids = host_initial_pid_ns() };

	m.kernel = host_kernel(m.release, sizeof(m.release));
	priv_missing(true, m.missing, sizeof(m.missing));
	try_kinds(&m);
	if (m.kind > ATTACH_NONE && d->o->npids)
		d->pair_ns = attach_kind_pair_ns((enum attach_kind)m.kind, false);
	t.label = 14;
	facts(d, &t, &m);
	*found = (struct doctor_facts){ .btf = m.btf,
					.ring = m.ring > 0 && m.loop,
					.privileged = !*m.missing,
					.probes = m.kind > ATTACH_NONE };
	return found->btf && found->ring && found->privileged && found->probes;
}

/* ---- files ---- */

/* A file of CUDA's, and how many of its functions can carry a probe. */
struct found {
	const struct probe_file *f;
	const struct elf_scan *scan;
	int can, entry_only;
};

static const char *show_route(const struct table_at *at, char buf[TABLE_CELL])
{
	const struct elf_scan *scan = ((const struct found *)at->row)->scan;
	const struct api_domain_row *domain = &api_domains[scan->domain];

	if (scan->role == ELF_NONE)
		return "no function of CUDA's";
	if (scan->role == ELF_STATIC)
		snprintf(buf, TABLE_CELL, "%s, by %s", domain->linked_title,
			 scan->has_stripped ? "what its functions tell profilers: it has no symbols"
					    : "the symbol table");
	else
		snprintf(buf, TABLE_CELL, "%s, by its exported symbols", domain->library);
	return buf;
}

TABLE_GET(found_library, struct found, f,
	  cell_string(f->scan->role == ELF_NONE ? NULL : api_domain_names[f->scan->domain]))
TABLE_GET(found_linked, struct found, f, cell_bool(f->scan->role == ELF_STATIC))

/* Its label is the product's name. A version that adds no function cannot be told from the one before it. */
static void write_version(struct out *o, const struct table_at *at)
{
	const struct elf_scan *scan = ((const struct found *)at->row)->scan;

	out_fmt(o, "%s%-*s ", at->table->indent, at->table->label,
		scan->version ? api_domains[scan->domain].product : "CUDA");
	if (scan->version)
		out_fmt(o, "%d.%d or later (from its %s)\n", scan->version / 1000,
			scan->version % 1000 / 10, scan->version_from);
	else
		out_str(o, "version not known: the newest form of each function is taken\n");
}

static const char *show_functions(const struct table_at *at, char buf[TABLE_CELL])
{
	const struct found *f = at->row;

	snprintf(buf, TABLE_CELL, "%d defined, %d selected, %d can carry a probe",
		 f->scan->ndefined, f->scan->nprobes, f->can);
	return buf;
}

static const char *show_entry_only(const struct table_at *at, char buf[TABLE_CELL])
{
	int n = ((const struct found *)at->row)->entry_only;

	snprintf(buf, TABLE_CELL, "%d that call the program back: no results and durations of them",
		 n);
	return n ? buf : NULL;
}

static void write_unseen(struct out *o, const struct table_at *at)
{
	const struct found *f = at->row;

	for (int i = 0; i < f->scan->nprobes; i++)
		if (elf_can_probe(f->f->fd, f->scan->probes[i].offset) != 1)
			out_fmt(o, "%s%-*s %s: its first instruction cannot carry a probe\n",
				at->table->indent, at->table->label, at->column->head,
				api_funcs[f->scan->probes[i].func].name);
}

#define SCAN(of) TABLE_THROUGH(struct found, scan, struct elf_scan, of)
/* clang-format off */
static const struct table_column found_columns[] = {
	{ .key = "path", TABLE_THROUGH(struct found, f, struct probe_file, path) },
	{ .key = "library", .head = "route", .text = 1, .show = show_route, .get = found_library },
	{ .key = "linked_into_program", .get = found_linked },
	{ .key = "version", .text = 2, .write = write_version, SCAN(version) },
	{ .key = "defined", .head = "functions", .text = 3, .show = show_functions, SCAN(ndefined) },
	{ .key = "selected", SCAN(nprobes) },
	{ .key = "can_be_probed", TABLE_AT(struct found, can) },
	{ .head = "entry only", .text = 4, .show = show_entry_only },
	{ .head = "not seen", .text = 5, .write = write_unseen },
};
/* clang-format on */
#undef SCAN

static int found(void *ctx, struct probe_file *f, pid_t pid)
{
	struct table t = TABLE_OF(found_columns, 0, NULL);
	const struct elf_scan *scan = &f->scan;
	struct found row = { .f = f, .scan = scan };
	struct doctor *d = ctx;

	(void)pid;
	d->nfiles++;
	d->there[scan->domain] += scan->role != ELF_NONE;
	for (int i = 0; i < scan->nprobes; i++) {
		row.can += elf_can_probe(f->fd, scan->probes[i].offset) == 1;
		row.entry_only += (api_funcs[scan->probes[i].func].flags & CT_S_CALLBACK) != 0;
	}
	out_str(&d->out, "  ");
	out_plain(&d->out, f->path, strlen(f->path));
	out_char(&d->out, '\n');
	t.indent = "    ";
	t.label = 10;
	if (in_json(d))
		table_json_row(&t, &d->json, NULL, &row);
	else
		table_text_lines(&t, &d->out, &row);
	return 0;
}

/* Remembers a file whose functions were not found. It is reported when all files are known. */
static void stripped(void *ctx, const char *path, const struct elf_scan *scan)
{
	struct doctor *d = ctx;

	if (elf_unnamed(scan, d->o->select.shown))
		strings_add(&d->stripped, path, strlen(path));
}

static void gap(struct doctor *d, const char *text)
{
	out_fmt(&d->out, "  not seen: %s\n", text);
}

/* Reports a runtime without symbols. what: the file. */
static void stripped_gap(struct doctor *d, const char *what, size_t len)
{
	out_str(&d->out, "  not seen: runtime calls of ");
	out_plain(&d->out, what, len);
	out_str(&d->out, ": a CUDA runtime is linked into it, its symbols are stripped, and\n"
			 "            functions of it were not found; the driver calls that they "
			 "make are seen\n");
}

static void stripped_gaps(struct doctor *d)
{
	if (in_json(d))
		json_open_array(&d->json, "stripped_files");
	for (uint32_t i = 0; i < d->stripped.n; i++) {
		const char *path = strings_get(&d->stripped, i);

		stripped_gap(d, path, strlen(path));
		if (in_json(d))
			json_put_str(&d->json, NULL, path);
	}
	if (in_json(d))
		json_end(&d->json);
}

static const struct discover_ops discover_ops = { .found = found, .stripped = stripped };

/* Looks for CUDA's files: of one process, or of the whole machine (pid 0). */
static int files(struct doctor *d, pid_t pid)
{
	struct capture_plan *plan = calloc(1, sizeof(*plan));
	struct discover *discover = NULL;
	int err;

	if (!plan)
		return -ENOMEM;
	memcpy(plan->capture, d->o->select.shown, sizeof(plan->capture));
	memcpy(plan->shown, d->o->select.shown, sizeof(plan->shown));
	plan->pids = &pid;
	plan->npids = pid ? 1 : 0;
	d->nfiles = 0;
	strings_free(&d->stripped);
	if (strings_init(&d->stripped, STRIPPED_BYTES, STRIPPED_FILES)) {
		free(plan);
		return -ENOMEM;
	}
	memset(d->there, 0, sizeof(d->there));
	if (in_json(d))
		json_open_array(&d->json, "files");
	err = discover_open(&discover, plan, -1, &discover_ops, d);
	if (!err)
		err = discover_scan(discover);
	if (in_json(d))
		json_end(&d->json);
	if (in_json(d) || !pid)
		stripped_gaps(d);
	discover_close(discover);
	free(plan);
	return err < 0 ? err : 0;
}

/* ---- a process ---- */

/* A statically linked runtime without symbols leaves only its device code as a trace. */
static bool stripped_runtime(pid_t pid)
{
	uint64_t nothing[PLAN_WORDS] = { 0 };
	struct elf_scan scan = { 0 };
	int fd = host_open_exe(pid);
	bool is = false;

	if (fd < 0)
		return false;
	if (!elf_scan(fd, nothing, &scan)) {
		is = scan.has_device_code && !scan.ndefined && !scan.imports_cuda;
		elf_scan_free(&scan);
	}
	close(fd);
	return is;
}

/* Which launches of kernels in one file will be named when the program runs already, and why
 * others will not. */
static void name_file(struct doctor *d, const struct known_file *f, bool driver)
{
	out_str(&d->out, "  ");
	out_plain(&d->out, f->path, strlen(f->path));
	out_fmt(&d->out, "\n    %-10s ", "names");
	if (f->facts.nhandles)
		out_fmt(&d->out, "from its symbols: %u host stubs, %u variables with handles",
			f->facts.nstubs, f->facts.nhandles);
	else if (f->facts.nstubs)
		out_fmt(&d->out, "from its symbols: %u host stubs", f->facts.nstubs);
	else if (f->index_err && f->index_err != -ENOENT)
		out_fmt(&d->out, "its symbols cannot be read: %s", strerror(-f->index_err));
	else
		out_fmt(&d->out, "%s",
			f->facts.symtab ? "its symbol table has no host stubs"
					: "its symbol table is stripped");
	if (!f->facts.nstubs && f->kernels == 1)
		out_str(&d->out,
			"; its device code holds one kernel, which any host stub in it must be");
	else if (!f->facts.nstubs && f->kernels < 0)
		out_str(&d->out, "; its device code cannot be read either");
	if (!f->facts.nstubs && driver)
		out_str(&d->out, "; launches by handle are named from the driver's memory, by host "
				 "stub from the launch inside");
	else if (!f->facts.nstubs && f->kernels != 1)
		out_str(&d->out, "; its launches print as function=0x... unless the program starts "
				 "under cudatrace");
	out_char(&d->out, '\n');
}

/* Names of the kernels of a program that was not started by cudatrace. */
static void cmd_doctor_names(struct doctor *d, pid_t pid)
{
	struct known_survey s = { 0 };
	struct target *t;
	int err = target_open(&t, pid, 0);

	if (!err)
		err = known_survey(t, &s);
	if (err) {
		out_fmt(&d->out, "  its device code cannot be examined: %s\n", strerror(-err));
	} else if (s.nfiles || s.driver) {
		out_str(&d->out, "names of kernels, when traced from now on\n");
		for (int i = 0; i < s.nfiles; i++)
			name_file(d, &s.files[i], s.measured);
		if (s.driver)
			out_fmt(&d->out, "  %-12s %s\n", "driver",
				s.measured ? "the names of handles are read from its memory: "
					     "CUDA's libraries, Triton and JAX included"
					   : "version not recognised. Kernel names appear once one "
					     "launch has been verified.");
	}
	known_survey_free(&s);
	target_close(t);
}

/* Reports the libraries that should be there too. */
static void missing(struct doctor *d)
{
	bool any = false;

	for (int i = 0; i < API_DOMAIN_END; i++)
		any |= d->there[i] && api_domains[i].folds;
	for (int i = 0; i < API_DOMAIN_END; i++)
		if (any && !d->there[i] && api_domains[i].missing)
			gap(d, api_domains[i].missing);
}

/* ---- which source suits a process ---- */

#define MUCH_PERCENT 5 /* of its time */

struct suits {
	bool sandboxed, probes;
	uint64_t pair_ns;
	const char *why_not; /* hooks do not suit it; NULL: they do */
};

TABLE_SAY(show_probes, struct suits, s,
	  !s->probes	 ? "no: this machine or your privileges do not allow them (above)"
	  : s->sandboxed ? "with --no-return, since it is sandboxed"
			 : "yes, by default: nothing is put into the program")

TABLE_GET(suits_hooks, struct suits, s, cell_bool(!s->why_not))

static void write_hooks(struct out *o, const struct table_at *at)
{
	const struct suits *s = at->row;

	table_text_line(o, at);
	if (s->why_not) {
		out_str(o, "no: ");
		out_plain(o, s->why_not, strlen(s->why_not));
	} else if (s->sandboxed) {
		out_str(o, "perhaps, by --source=hooks: what its sandbox forbids is examined when "
			   "they come in");
	} else if (s->probes && s->pair_ns) {
		out_fmt(o,
			"yes, by --source=hooks: better where it makes more than %llu calls in a "
			"second of its CPU time, of which\n"
			"               probes take %d %% then (%llu ns a call here); code is put "
			"into it",
			(unsigned long long)(10000000ULL * MUCH_PERCENT / s->pair_ns), MUCH_PERCENT,
			(unsigned long long)s->pair_ns);
	} else {
		out_str(o, "yes, by --source=hooks: where it makes so many calls that probes slow "
			   "it down; code is put into it");
	}
}

/* clang-format off */
static const struct table_column suits_columns[] = {
	{ .key = "sandboxed", TABLE_AT(struct suits, sandboxed) },
	{ .key = "probes_suit", .head = "probes", .text = 1, .show = show_probes, TABLE_AT(struct suits, probes) },
	{ .key = "hooks_suit", .head = "hooks", .text = 2, .write = write_hooks, .get = suits_hooks },
	{ .key = "no_hooks", TABLE_AT(struct suits, why_not) },
};
/* clang-format on */

static void sources(struct doctor *d, pid_t pid, const struct host_task *task)
{
	struct table t = TABLE_OF(suits_columns, 0, NULL);
	struct suits s = { .sandboxed = task->seccomp, .probes = d->probes, .pair_ns = d->pair_ns };
	int err;

	s.why_not = cmd_refusal(hooks_suits, pid, &err);
	out_str(&d->out, "which source suits it\n");
	t.indent = "  ";
	t.label = 12;
	facts(d, &t, &s);
}

static int cmd_doctor_process(struct doctor *d, pid_t pid)
{
	struct host_task task;
	int err = pids_check(pid, false), exe;

	if (err || host_task(pid, &task))
		return -ESRCH;
	exe = host_open_exe(pid);
	if (exe >= 0)
		close(exe);
	if (exe == -EACCES || exe == -EPERM) {
		out_flush(&d->out);
		inject_check_refused(pid);
		return exe;
	}
	out_fmt(&d->out, "\nprocess %d (", (int)pid);
	out_plain(&d->out, task.comm, strlen(task.comm));
	out_str(&d->out, ")\n");
	out_flush(&d->out);
	if (in_json(d)) {
		json_open_object(&d->json, NULL);
		json_put_i64(&d->json, "pid", pid);
		json_put_str(&d->json, "comm", task.comm);
	}
	err = files(d, pid);
	if (err && in_json(d))
		json_end(&d->json);
	if (err) {
		out_fmt(&d->out, "  its mapped files cannot be listed: %s\n", strerror(-err));
		return err;
	}
	if (!d->nfiles && !d->stripped.n)
		out_str(&d->out, "  it has not loaded CUDA: 'cudatrace -p' waits until it does\n");
	cmd_doctor_names(d, pid);
	if (!in_json(d))
		stripped_gaps(d);
	if (!d->stripped.n && stripped_runtime(pid))
		stripped_gap(d, "the executable", strlen("the executable"));
	missing(d);
	if (task.seccomp)
		out_str(&d->out,
			"  sandboxed (seccomp): from Linux 6.11 on a return probe is a system "
			"call, which the sandbox may\n"
			"            answer by killing the process: trace it with --no-return\n");
	sources(d, pid, &task);
	if (in_json(d))
		json_end(&d->json);
	return 0;
}

/* Returns 0 or -errno after one message. */
static int cmd_doctor_processes(struct doctor *d)
{
	int err = 0;

	if (in_json(d))
		json_open_array(&d->json, "processes");
	for (int i = 0; i < d->o->npids && !err; i++)
		err = cmd_doctor_process(d, d->o->pids[i]);
	if (in_json(d))
		json_end(&d->json);
	return err;
}

struct doctor_options {
	enum { DOCTOR_TABLE, DOCTOR_JSON } form;
};

#define OPTION_STRUCT struct doctor_options
/* clang-format off */
static const struct option_row rows[] = {
	{ 0, "format", "NAME", ENUM(form, "table", "json"), 0, "table", "table, or json: one object" },
};
/* clang-format on */
static const struct option_set options = OPTION_SET(rows);

/* Opens the outputs. With JSON, which is one object, the text for people is discarded. */
static int open_outputs(struct doctor *d, struct out *json)
{
	const struct doctor_options *how = request_own(d->o, &options);
	bool wanted = how->form == DOCTOR_JSON;

	if (out_open(&d->out, wanted ? "/dev/null" : NULL, false) ||
	    (wanted && out_open(json, NULL, false))) {
		msg_error("cannot write to standard output");
		return -EIO;
	}
	if (wanted) {
		d->json = json_to(json);
		json_open_object(&d->json, NULL);
		json_put_u64(&d->json, "version", 1);
	}
	return 0;
}

static int close_outputs(struct doctor *d, struct out *json)
{
	int status = cmd_finish(&d->out);

	if (!in_json(d))
		return status;
	json_end(&d->json);
	out_char(json, '\n');
	return cmd_finish(json);
}

static int cmd_doctor(const struct request *o)
{
	struct doctor d = { .o = o };
	struct doctor_facts facts;
	struct out json;
	bool good;
	int err;

	if (open_outputs(&d, &json))
		return 1;
	good = machine(&d, &facts);
	d.probes = good;
	doctor_features(&d.out, in_json(&d) ? &d.json : NULL, &facts);
	err = cmd_doctor_processes(&d);
	if (!o->npids) {
		out_str(&d.out, "\nlibraries of all processes, and installed ones\n");
		out_flush(&d.out);
		err = files(&d, 0);
		if (!err && !d.nfiles)
			out_str(&d.out, "  none: they are probed as soon as a program loads one\n");
	}
	out_str(&d.out,
		"\na return probe replaces the return address: a C++ exception, or a thread's "
		"cancellation, that unwinds through\n"
		"a traced call ends the program; trace programs that do so with --no-return\n");
	strings_free(&d.stripped);
	if (close_outputs(&d, &json) || err)
		return 1;
	return good ? 0 : 1;
}

/* clang-format off */
const struct command command_doctor = {
	.run = cmd_doctor,
	.options = &options,
	.usage = "Usage: cudatrace doctor [OPTIONS]\n",
	.about = "\nSays for each feature whether this kernel and these privileges allow it. With -p it also says which CUDA libraries a\n"
		 "process has, which functions can be traced and how, what cannot be seen and why, and whether probes or hooks\n"
		 "(--source) suit the process.\n",
};
/* clang-format on */
