/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nsys.h - inside the nsys-sqlite output: the tables of the database, its strings, and the binding
 * of a row's values.
 */
#ifndef CT_NSYS_H
#define CT_NSYS_H

#include <sqlite3.h>

#include "../../flow/sink.h"
#include "../../util/io/safe_open.h"
#include "../../util/table/hash_map.h"

/* ---- the tables (nsys_schema.c) ---- */

enum nsys_table {
	NSYS_STRINGS,
	NSYS_THREADS,
	NSYS_PROCESSES,
	NSYS_DETAILS,
	NSYS_START_TIME,
	NSYS_GPU,
	NSYS_DEVICE,
	NSYS_CONTEXT,
	NSYS_STREAM,
	NSYS_ENV,
	NSYS_CAPTURE,
	NSYS_EXPORT,
	NSYS_DIAGNOSTIC,
	NSYS_RUNTIME,
	NSYS_KERNEL,
	NSYS_MEMCPY,
	NSYS_MEMSET,
	NSYS_SYNC,
	NSYS_GRAPH,
	NSYS_OVERHEAD,
	NSYS_MEMORY,
	NSYS_CALLCHAINS,
	NSYS_NVTX,
	NSYS_CPU_FAULT,
	NSYS_GPU_FAULT,
	NSYS_CUDA_EVENT,
	NSYS_GRAPH_EVENTS,
	NSYS_GRAPH_NODES,
	NSYS_OSRT,
	NSYS_TABLES
};

struct nsys_db {
	sqlite3 *db;
	sqlite3_stmt *insert[NSYS_TABLES]; /* made at the first row */
	bool all_tables;		   /* all tables were made at the beginning */
	int error; /* -errno of the first failure; from then on nothing is written */
};

/* Makes the tables that exist even without rows (all_tables: every table), and the enums.
 * Returns 0 or -errno. */
int nsys_schema(struct nsys_db *, bool all_tables);
/* Reports the first failure of SQLite in a message. Returns the sticky -errno. */
int nsys_fail(struct nsys_db *, int rc);

/* A row: bind its columns in the order of the table, then call nsys_end(). Columns that are not
 * bound are NULL. */
struct nsys_row {
	struct nsys_db *d;
	sqlite3_stmt *stmt; /* NULL: an earlier failure */
	int at;
};
struct nsys_row nsys_begin(struct nsys_db *, enum nsys_table);
int nsys_end(struct nsys_row *); /* 1, or the sticky -errno */

static inline void nsys_i(struct nsys_row *r, int64_t v)
{
	sqlite3_bind_int64(r->stmt, ++r->at, v);
}
static inline void nsys_null(struct nsys_row *r)
{
	r->at++;
}
/* NULL unless `known`. */
static inline void nsys_opt(struct nsys_row *r, bool known, int64_t v)
{
	r->at++;
	if (known)
		sqlite3_bind_int64(r->stmt, r->at, v);
}
/* The text must live until nsys_end(). It is stored as valid UTF-8: invalid bytes become U+FFFD. */
void nsys_text(struct nsys_row *, const char *s, size_t n);

/* ---- the strings (nsys_strings.c): StringIds, where each text stands once ---- */

struct nsys_strings;
struct nsys_strings *nsys_strings_open(struct nsys_db *); /* NULL: no memory */
void nsys_strings_close(struct nsys_strings *);
/* The id of a text; a new one gets a row. */
int64_t nsys_string(struct nsys_strings *, const char *s, size_t n);

/* ---- names (nsys_names.c) ---- */

/* A function's name in the form of CUPTI's callback ids: cudaLaunchKernel_v7000. */
const char *nsys_api_name(int row, bool per_thread);
/* Finds the function's own name in a demangled name, without type, namespaces, template
 * arguments and parameters. Returns its length; *from is its beginning. */
size_t nsys_base_name(const char *full, const char **from);

/* ---- keys that were seen: numbers, each with a value ---- */

struct nsys_seen {
	uint64_t key;
	int64_t value;
};
/* Returns the place of the key's value. *is_new is true if the key was not there; its value is
 * then 0. NULL: no memory. */
static inline int64_t *nsys_seen(struct hash_map *k, uint64_t key, bool *is_new)
{
	struct nsys_seen *s;

	if (!k->size)
		hash_map_open_of(k, struct nsys_seen, key, SIZE_MAX);
	s = hash_map_get(k, &key, is_new);
	return s ? &s->value : NULL;
}

/* ---- the file (nsys_file.c) ---- */

struct nsys_file {
	struct safe_place at, made; /* the requested one; the new one, in the same folder */
	int fd;			    /* of the new one */
	const char *path;	    /* for messages; kept by pointer */
	bool done;		    /* the new one has taken the place */
};
/* These return 0, or -errno after a message. */
int nsys_file_make(struct nsys_file *, const char *path);
int nsys_file_done(struct nsys_file *); /* what is written is complete: puts it in place */
/* Returns SQLite's result. */
int nsys_file_open(const struct nsys_file *, sqlite3 **);
void nsys_file_close(struct nsys_file *);

/* ---- the output as a whole (nsys.c), and device work (nsys_device.c) ---- */

struct nsys_options {
	bool all_tables; /* make tables without rows too */
};

struct nsys {
	struct nsys_db d;
	const struct sink_opts *opts;
	struct nsys_strings *strings;
	int64_t start_ns; /* start of the session: all times count from it */
	struct nsys_file file;
	struct nsys_name {
		/* id of the function's name, and of the name of its per-thread twin; 0: not made
		 * yet */
		int64_t id[2];
	} names[CT_MAX_FUNCS];
	/* process_unique() + 1 -> rowid in PROCESSES; negative until the row is complete */
	struct hash_map processes;
	/* globalTid + 1 of the threads, other than leaders, that have a row in ThreadNames */
	struct hash_map threads;
	struct hash_map gpus; /* number + 1: those in TARGET_INFO_GPU */
	/* contexts of streams: process_unique() << 32 | context, + 1 -> their number, from 1 */
	struct hash_map contexts;
	/* number of the context << 32 | stream -> rowid in TARGET_INFO_CUDA_STREAM */
	struct hash_map streams;
	/* process_unique() << 32 | StringIds.id, + 1: NVTX domains that have a row */
	struct hash_map domains;
	uint8_t *stacks; /* bits: the stacks that are in CUDA_CALLCHAINS */
	int64_t unknown_kernel;
	uint64_t untimed; /* device records without a time */
};

static inline int64_t nsys_global(const struct process *p, uint32_t tid)
{
	return (int64_t)((uint64_t)process_unique(p) << 24 | (tid & 0xffffff));
}
static inline uint32_t nsys_tid(const struct event *ev)
{
	return ev->rec->tid ? process_tid(ev->proc, ev->rec->tid) : 0;
}
static inline int64_t nsys_time(const struct nsys *n, uint64_t ns)
{
	return (int64_t)(ns - (uint64_t)n->start_ns);
}

/* Writes the rows of device work and of other records about devices. Returns 1, 0 for a kind
 * that it does not know, or -errno. */
int nsys_device(struct nsys *, const struct event *);
/* Writes the event's call as an NVTX range, in a domain of this name; name_id: of `name`, in
 * StringIds. */
int nsys_range(struct nsys *, const struct event *, int64_t start, int64_t name_id,
	       const char *name, const char *domain);
/* Writes a row of DIAGNOSTIC_EVENT. severity: 1 information, 2 warning, 3 error; proc may be
 * NULL. */
int nsys_diagnostic(struct nsys *, int64_t at_ns, int severity, const char *text,
		    const struct process *proc);

#endif
