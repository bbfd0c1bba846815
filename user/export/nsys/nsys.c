/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nsys.c - a SQLite database with the tables of an Nsight Systems export, for the many scripts that
 * query such exports.
 *
 * All rows are prepared inserts in one transaction without a journal, into a new file beside the
 * requested one. The new file replaces the requested one when everything is written: a reader never
 * sees half a database, and an old file stays until then. Memory does not grow with the rows:
 * SQLite's page cache is bounded, and texts are in the database (nsys_strings.c). Times are
 * relative to the session's start; globalTid is pid << 24 | tid, where the pid is the process's
 * unique number (event.h); correlationId is the number of the call.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../util/msg.h"
#include "../../util/option/option.h"
#include "../../flow/about.h"
#include "nsys.h"

#define SCHEMA_VERSION "3.24.14"
/* stack ids that have a bit: 16 MiB; stacks with higher ids are inserted again, which SQLite
 * ignores */
#define STACK_BITS (1u << 27)
#define RESULT_UNKNOWN (-1) /* no error of CUDA's is negative */

/* ---- the file ---- */

static int open_db(struct nsys *n)
{
	static const char setup[] =
		"PRAGMA page_size=16384;PRAGMA journal_mode=OFF;PRAGMA synchronous=OFF;PRAGMA "
		"locking_mode=EXCLUSIVE;PRAGMA cache_size=-32768;BEGIN";
	const struct nsys_options *how = n->opts->own;
	int rc = nsys_file_open(&n->file, &n->d.db);

	if (!rc)
		rc = sqlite3_exec(n->d.db, setup, NULL, NULL, NULL);
	return rc ? nsys_fail(&n->d, rc) : nsys_schema(&n->d, how && how->all_tables);
}

/* ---- messages that are printed once ---- */

static void meta(struct nsys *n, enum nsys_table t, const char *name, const char *value)
{
	struct nsys_row r = nsys_begin(&n->d, t);

	nsys_text(&r, name, strlen(name));
	nsys_text(&r, value, strlen(value));
	nsys_end(&r);
}

static void date_text(char *buf, size_t size, time_t at, bool local)
{
	struct tm tm;

	if (!(local ? localtime_r(&at, &tm) : gmtime_r(&at, &tm)) ||
	    !strftime(buf, size, "%Y-%m-%d %H:%M:%S", &tm))
		*buf = '\0';
}

static void nsys_head(struct nsys *n, const struct sink_opts *o)
{
	uint64_t utc_ns = o->start_ns + o->realtime_offset_ns;
	struct nsys_row r;
	char text[64], local[64];

	meta(n, NSYS_EXPORT, "EXPORT_SCHEMA_VERSION", SCHEMA_VERSION);
	meta(n, NSYS_EXPORT, "EXPORT_SCHEMA_VERSION_MAJOR", "3");
	meta(n, NSYS_EXPORT, "EXPORT_SCHEMA_VERSION_MINOR", "24");
	meta(n, NSYS_EXPORT, "EXPORT_SCHEMA_VERSION_MICRO", "14");
	meta(n, NSYS_EXPORT, "EXPORT_PRODUCT_NAME", "cudatrace");
	meta(n, NSYS_EXPORT, "EXPORT_PRODUCT_VERSION", o->version ? o->version : "");
	meta(n, NSYS_CAPTURE, "CAPTURE_TOOL", "cudatrace");
	if (o->title)
		meta(n, NSYS_CAPTURE, "CAPTURE_TARGET", o->title);
	r = nsys_begin(&n->d, NSYS_START_TIME);
	nsys_i(&r, (int64_t)utc_ns);
	date_text(text, sizeof(text), (time_t)(utc_ns / 1000000000), false);
	date_text(local, sizeof(local), (time_t)(utc_ns / 1000000000), true);
	nsys_text(&r, text, strlen(text));
	nsys_text(&r, local, strlen(local));
	nsys_i(&r, (int64_t)o->start_ns);
	nsys_end(&r);
}

int nsys_diagnostic(struct nsys *n, int64_t at_ns, int severity, const char *text,
		    const struct process *proc)
{
	struct nsys_row r = nsys_begin(&n->d, NSYS_DIAGNOSTIC);

	nsys_i(&r, at_ns);
	nsys_i(&r, 0);
	nsys_i(&r, 0);
	nsys_i(&r, severity);
	nsys_text(&r, text, strlen(text));
	nsys_opt(&r, proc, proc ? nsys_global(proc, 0) : 0);
	return nsys_end(&r);
}

static int nsys_lost(struct nsys *n, const struct ct_lost *l)
{
	char text[256];

	snprintf(text, sizeof(text), "%llu records lost: %s", (unsigned long long)l->count,
		 loss_text((enum ct_loss)l->cause));
	return nsys_diagnostic(n, nsys_time(n, l->h.end_ns), 2, text, NULL);
}

/* Writes how often a function was called whose calls have no rows. A negative number corrects an
 * earlier estimate that was too high. */
static int nsys_muted(struct nsys *n, const struct event *ev)
{
	const struct ct_muted *m = (const struct ct_muted *)ev->rec;
	struct text name = { 0 };
	char text[512];
	int err;

	about_name(&name, n->opts, ev);
	snprintf(text, sizeof(text),
		 "%.*s: %llu calls were counted in windows and have no rows; beside them there "
		 "were %lld by estimate, %lld to %lld at 95 %%, since %llu ns before",
		 name.bad ? 1 : (int)name.len, name.bad ? "?" : name.s,
		 (unsigned long long)m->counted, (long long)m->unseen.calls,
		 (long long)((uint64_t)m->unseen.calls - (uint64_t)m->unseen.below),
		 (long long)((uint64_t)m->unseen.calls + (uint64_t)m->unseen.above),
		 (unsigned long long)about_duration_ns(&m->h));
	text_free(&name);
	err = nsys_diagnostic(n, nsys_time(n, m->h.end_ns), 2, text, ev->proc);
	return err ? err : 1;
}

/* ---- processes, stacks, calls ---- */

/* A process has one row in PROCESSES, and one in ThreadNames for its leader. */
static int rename_process(struct nsys *n, int64_t rowid, const struct process *p)
{
	char sql[256];
	int rc;

	snprintf(sql, sizeof(sql),
		 "UPDATE PROCESSES SET name=(SELECT value FROM StringIds WHERE id=%1$lld) WHERE "
		 "rowid=%2$lld;UPDATE ThreadNames SET nameId=%1$lld WHERE globalTid=%3$lld",
		 (long long)nsys_string(n->strings, p->comm, strnlen(p->comm, CT_COMM_LEN)),
		 (long long)rowid, (long long)nsys_global(p, p->shown_pid));
	rc = n->d.error ? 0 : sqlite3_exec(n->d.db, sql, NULL, NULL, NULL);
	return rc ? nsys_fail(&n->d, rc) : n->d.error;
}

/* Writes where the process ran, once that is known. In a recording of one host, the head of the
 * recording says it. */
static int place_process(struct nsys *n, int64_t rowid, const struct process *p)
{
	const struct process_info *i = p->info;
	const char *host = i && *i->host ? i->host : n->opts->host,
		   *boot = i && *i->boot ? i->boot : n->opts->boot;
	struct nsys_row r = { .d = &n->d };
	int rc;

	if (n->d.error)
		return n->d.error;
	rc = sqlite3_prepare_v2(n->d.db,
				"UPDATE PROCESSES SET host=?,bootId=?,rank=? WHERE rowid=?", -1,
				&r.stmt, NULL);
	if (rc)
		return nsys_fail(&n->d, rc);
	nsys_text(&r, host ? host : "", host ? strlen(host) : 0);
	nsys_text(&r, boot ? boot : "", boot ? strlen(boot) : 0);
	nsys_opt(&r, i && i->rank != CT_UNKNOWN, i ? i->rank : 0);
	nsys_i(&r, rowid);
	nsys_end(&r);
	sqlite3_finalize(r.stmt);
	return n->d.error;
}

/* Writes the row of a process at its first record, and its new name at CT_EXEC. */
static int nsys_process(struct nsys *n, const struct process *p, bool changed)
{
	bool is_new;
	int64_t *rowid = nsys_seen(&n->processes, (uint64_t)process_unique(p) + 1, &is_new);
	struct nsys_row r;
	int64_t name;

	if (!rowid)
		return nsys_fail(&n->d, SQLITE_NOMEM);
	if (!is_new && *rowid < 0 && p->info) {
		*rowid = -*rowid;
		if (place_process(n, *rowid, p))
			return n->d.error;
	}
	if (!is_new)
		return changed ? rename_process(n, *rowid < 0 ? -*rowid : *rowid, p) : 0;
	r = nsys_begin(&n->d, NSYS_PROCESSES);
	nsys_i(&r, nsys_global(p, 0));
	nsys_i(&r, process_unique(p));
	nsys_text(&r, p->comm, strnlen(p->comm, CT_COMM_LEN));
	nsys_i(&r, p->shown_pid);
	r.at += 3; /* host, bootId, rank */
	nsys_i(&r, process_host_pid(p->pid));
	nsys_end(&r);
	*rowid = sqlite3_last_insert_rowid(n->d.db);
	if (place_process(n, *rowid, p))
		return n->d.error;
	/* name of the leader, which is the name of the process */
	name = nsys_string(n->strings, p->comm, strnlen(p->comm, CT_COMM_LEN));
	r = nsys_begin(&n->d, NSYS_THREADS);
	nsys_i(&r, name);
	nsys_null(&r);
	nsys_i(&r, nsys_global(p, p->shown_pid));
	nsys_end(&r);
	if (!p->info)
		*rowid = -*rowid;
	return n->d.error;
}

/* Writes the row of a thread that is not its process's leader. A new name changes the same row. */
static int nsys_thread(struct nsys *n, const struct process *p, const struct ct_thread_name *t)
{
	bool is_new;
	int64_t name = nsys_string(n->strings, t->comm, strnlen(t->comm, CT_COMM_LEN)),
		id = nsys_global(p, process_tid(p, t->h.tid));
	struct nsys_row r;
	char sql[128];
	int rc;

	if (!nsys_seen(&n->threads, (uint64_t)id + 1, &is_new))
		return nsys_fail(&n->d, SQLITE_NOMEM);
	if (!is_new) {
		snprintf(sql, sizeof(sql),
			 "UPDATE ThreadNames SET nameId=%lld WHERE globalTid=%lld", (long long)name,
			 (long long)id);
		rc = n->d.error ? 0 : sqlite3_exec(n->d.db, sql, NULL, NULL, NULL);
		return rc ? nsys_fail(&n->d, rc) : n->d.error;
	}
	r = nsys_begin(&n->d, NSYS_THREADS);
	nsys_i(&r, name);
	nsys_null(&r);
	nsys_i(&r, id);
	nsys_end(&r);
	return n->d.error;
}

static int64_t text_id(struct nsys *n, const char *s)
{
	return s ? nsys_string(n->strings, s, strlen(s)) : 0;
}

static void nsys_frame(struct nsys *n, const struct stack *s, uint32_t i)
{
	const struct stack_frame *f = s->frames[i];
	char address[32];
	int64_t symbol, module = text_id(n, f->object ? f->object : f->file);
	struct nsys_row r;

	if (f->function) {
		symbol = text_id(n, f->function);
	} else {
		snprintf(address, sizeof(address), "0x%llx", (unsigned long long)f->address);
		symbol = text_id(n, address);
	}
	r = nsys_begin(&n->d, NSYS_CALLCHAINS);
	nsys_i(&r, s->id);
	nsys_i(&r, symbol);
	nsys_opt(&r, module, module);
	nsys_i(&r, !f->function);
	nsys_i(&r, (int64_t)f->address);
	nsys_i(&r, i);
	nsys_end(&r);
}

static int nsys_stack(struct nsys *n, const struct stack *s)
{
	if (s->id < STACK_BITS) {
		if (!n->stacks)
			/* pages that are never written take no memory */
			n->stacks = calloc(1, STACK_BITS / 8);
		if (!n->stacks)
			return nsys_fail(&n->d, SQLITE_NOMEM);
		if (n->stacks[s->id / 8] >> s->id % 8 & 1)
			return 0;
		n->stacks[s->id / 8] |= (uint8_t)(1u << s->id % 8);
	}
	for (uint32_t i = 0; i < s->nframes; i++)
		nsys_frame(n, s, i);
	return n->d.error;
}

static int64_t name_id(struct nsys *n, const struct ct_call *c)
{
	bool twin = c->h.flags & CT_F_PER_THREAD;
	int64_t *id = &n->names[c->func].id[twin];

	if (!*id)
		*id = text_id(n, nsys_api_name(c->func, twin));
	return *id;
}

static int64_t result_of(const struct ct_call *c)
{
	uint8_t ret = api_funcs[c->func].ret;

	if (c->h.flags & (CT_F_UNFINISHED | CT_F_NO_RETURN))
		return RESULT_UNKNOWN;
	return ret == API_RET_STATUS || ret == API_RET_INT ? (int32_t)c->ret : 0;
}

static int nsys_call(struct nsys *n, const struct event *ev)
{
	const struct ct_call *c = (const struct ct_call *)ev->rec;
	int64_t name = name_id(n, c), start = nsys_time(n, c->h.start_ns);
	const struct api_domain_row *domain = &api_domains[api_funcs[c->func].domain];
	struct nsys_row r;

	if (c->h.flags & CT_F_PENDING)
		return 0;
	if (c->h.flags & CT_F_BEFORE)
		start = 0;
	if (nsys_process(n, ev->proc, false) || (ev->stack && nsys_stack(n, ev->stack)))
		return n->d.error;
	if (!domain->cupti)
		return nsys_range(n, ev, start, name, api_funcs[c->func].name, domain->name);
	r = nsys_begin(&n->d, NSYS_RUNTIME);
	nsys_i(&r, start);
	nsys_i(&r, nsys_time(n, c->h.end_ns));
	nsys_i(&r, domain->nsys_class);
	nsys_i(&r, nsys_global(ev->proc, nsys_tid(ev)));
	nsys_opt(&r, ev->number, ev->number);
	nsys_i(&r, name);
	nsys_i(&r, result_of(c));
	nsys_opt(&r, ev->stack, ev->stack ? ev->stack->id : 0);
	return nsys_end(&r);
}

/* ---- the sink ---- */

static int nsys_event(struct sink *s, const struct event *ev)
{
	struct nsys *n = s->priv;
	uint16_t kind = ev->rec->kind;
	int rows;

	if (kind == CT_CALL)
		return nsys_call(n, ev);
	if (kind == CT_LOST)
		rows = nsys_lost(n, (const struct ct_lost *)ev->rec);
	else if (kind == CT_MUTED)
		rows = nsys_muted(n, ev);
	else if (kind == CT_PROCESS || kind == CT_EXEC ||
		 (kind == CT_THREAD_NAME && ev->rec->tid == ev->rec->pid))
		rows = nsys_process(n, ev->proc, true);
	else if (kind == CT_THREAD_NAME)
		rows = nsys_thread(n, ev->proc, (const struct ct_thread_name *)ev->rec);
	else
		rows = nsys_device(n, ev);
	if (rows == 1 && ev->rec->pid && ev->rec->pid != ~0u && nsys_process(n, ev->proc, false))
		return n->d.error;
	/* only what happened counts as a row, not a description of a device or a process */
	return rows < 0 ? rows : rows && kind_is(kind, KIND_TIMED);
}

static void discard(struct nsys *n)
{
	nsys_strings_close(n->strings);
	for (int t = 0; t < NSYS_TABLES; t++)
		sqlite3_finalize(n->d.insert[t]);
	sqlite3_close(n->d.db);
	nsys_file_close(&n->file);
	hash_map_close(&n->processes);
	hash_map_close(&n->gpus);
	hash_map_close(&n->contexts);
	hash_map_close(&n->streams);
	hash_map_close(&n->threads);
	hash_map_close(&n->domains);
	free(n->stacks);
	free(n);
}

static int nsys_open(struct sink *s, const struct sink_opts *opts)
{
	struct nsys *n;
	int err;

	s->opts = opts;
	if (!opts->path || !strcmp(opts->path, "-")) {
		msg_error("nsys-sqlite is a database and cannot be written to standard output: "
			  "give -o FILE");
		return -EINVAL;
	}
	n = calloc(1, sizeof(*n));
	if (!n)
		return -ENOMEM;
	n->opts = opts;
	n->start_ns = (int64_t)opts->start_ns;
	err = nsys_file_make(&n->file, opts->path);
	if (!err) {
		n->strings = nsys_strings_open(&n->d);
		err = n->strings ? open_db(n) : -ENOMEM;
	}
	if (!err)
		nsys_head(n, opts);
	err = err ? err : n->d.error;
	if (err) {
		discard(n);
		return err == -ENOMEM ? err : -EINVAL; /* the other errors were reported */
	}
	s->priv = n;
	return 0;
}

static void last_rows(struct nsys *n, const struct sink_end *end)
{
	struct nsys_row r = nsys_begin(&n->d, NSYS_DETAILS);
	char text[128];

	nsys_i(&r, 0);
	nsys_i(&r, (int64_t)end->uptime_ns);
	nsys_i(&r, 0);
	nsys_i(&r, (int64_t)end->uptime_ns);
	nsys_end(&r);
	if (!n->untimed)
		return;
	snprintf(text, sizeof(text), "%llu device record%s without a valid time %s left out",
		 (unsigned long long)n->untimed, n->untimed == 1 ? "" : "s",
		 n->untimed == 1 ? "is" : "are");
	nsys_diagnostic(n, (int64_t)end->uptime_ns, 2, text, NULL);
	msg_warn("nsys-sqlite: %s", text);
}

static int nsys_close(struct sink *s, const struct sink_end *end)
{
	struct nsys *n = s->priv;
	int err, rc;

	if (!n)
		return 0;
	if (!n->d.error)
		last_rows(n, end);
	for (int t = 0; t < NSYS_TABLES; t++) {
		sqlite3_finalize(n->d.insert[t]);
		n->d.insert[t] = NULL;
	}
	if (!n->d.error) {
		rc = sqlite3_exec(n->d.db, "COMMIT", NULL, NULL, NULL);
		if (rc)
			nsys_fail(&n->d, rc);
	}
	nsys_strings_close(n->strings);
	n->strings = NULL;
	err = n->d.error;
	if (sqlite3_close(n->d.db) && !err)
		err = -EIO;
	n->d.db = NULL;
	if (!err)
		err = nsys_file_done(&n->file);
	discard(n);
	s->priv = NULL;
	return err;
}

#define OPTION_STRUCT struct nsys_options
/* clang-format off */
static const struct option_row rows[] = {
	{ 0, "all-tables", NULL, FLAG(all_tables), 0, NULL,
	  "nsys-sqlite: write tables without rows too, for queries that fail without them",
	  RULES(NEEDS("format:nsys-sqlite", "--all-tables is about the database of nsys-sqlite: give that format, or leave it out")) },
};
/* clang-format on */
static const struct option_set options = OPTION_SET(rows);

const struct sink_ops sink_nsys = {
	.name = "nsys-sqlite",
	.options = &options,
	.open = nsys_open,
	.event = nsys_event,
	.close = nsys_close,
};
