/* SPDX-License-Identifier: BSD-2-Clause */
/* chrome.h - inside the chrome sink: its state, the events of a file, and their contents. */
#ifndef CT_CHROME_H
#define CT_CHROME_H

#include "../../event/gpus.h"
#include "../../util/table/hash_map.h"
#include "chrome_device.h"
#include "../../event/memory/inuse.h"
#include "../../flow/row.h"
#include "../../flow/sink.h"
#include "../slice/slice.h"
#include "../slice/work_text.h"
#include "../../sums/steps.h"

#define CHROME_FILES_MAX 128 /* each takes some 600 KiB when it is compressed */
#define CHROME_REFUSED_MAX (1u << 20)
/* first tid of device work that does not have the stream's number as its tid */
#define CHROME_OTHER_TID 1000000
#define CHROME_TIDS_MAX 65536
/* more than the GPUs of a few hosts: pids from here on stay as they are */
#define CHROME_SMALL_PIDS 64
#define CHROME_PIDS_MOVED (1u << 24)
#define CHROME_NO_GPU (CHROME_OTHER_TID - 1) /* pid of device work whose device is not known */

/* A process's pid in the files. Device work has the number of its GPU as pid, so that a small
 * pid, like pid 1 of a container, would look like a GPU. Such pids are moved to numbers that no
 * process of Linux has. */
static inline uint32_t chrome_pid_of(uint32_t unique)
{
	return unique < CHROME_SMALL_PIDS ? unique + CHROME_PIDS_MOVED : unique;
}
static inline uint32_t chrome_pid(const struct process *p)
{
	return chrome_pid_of(process_unique(p));
}

struct chrome_tid {
	uint32_t pid, tid;
};

/* For CHROME_BEGUN calls with consecutive correlation ids: which of them have an arrow that
 * begins at them. */
#define CHROME_BEGUN 32768
#define CHROME_BEGUN_PAGES 4096 /* 16 MiB in a file */
struct chrome_begun {
	uint64_t key; /* correlation / CHROME_BEGUN */
	uint64_t bits[CHROME_BEGUN / 64];
};

/* A file of the format, for all processes or for one of them. */
struct chrome_file {
	struct out own, *out; /* out: where the file is written; `own` if the sink made the file */
	uint32_t pid;	      /* 0: all processes */
	uint64_t start;	      /* start of the process */
	/* number of processes so far: their numbers keep correlation ids distinct */
	uint32_t processes;
	struct hash_map tids;	/* of struct chrome_tid: the tids in use on devices */
	struct hash_map arrows; /* of struct chrome_begun */
	uint32_t next_tid;
	struct hash_map leaders;    /* of struct chrome_tid: the main threads of its processes */
	uint64_t first_ns, last_ns; /* of all slices; last_ns 0: there is none */
	bool steps; /* the program itself annotates its steps, as PyTorch's profiler does */
	bool found; /* steps that were found have been written */
	bool begun; /* an event was written */
};

struct chrome {
	const struct sink_opts *opts;
	struct timeline *timeline;
	struct inuse *inuse;
	struct steps *steps;
	struct work_metrics *metrics;
	struct chrome_devices *devices;
	struct row row;
	struct text body; /* of the current event */
	struct chrome_file *files;
	uint32_t nfiles;
	bool split;		    /* a file for each process */
	const struct process *proc; /* of the current event */
	const char *thread;	    /* of the current event; NULL: not known */
	uint64_t no_time, ranges;
	struct hash_map refused; /* of struct chrome_none: processes whose file could not be made */
	bool full;		 /* there are as many files as there can be, which was said */
	int error;		 /* -ENOMEM */
};

/* A process that has no file. */
struct chrome_none {
	uint64_t start;
	uint64_t pid;
};

/* ---- chrome_file.c: files and their contents ---- */

/* Adds a file, for a process or (NULL) for all. Returns 0 or -errno. */
int chrome_file_add(struct chrome *, const struct process *);
/* The file of a process; NULL: there can be no more files. */
struct chrome_file *chrome_file_of(struct chrome *, uint32_t pid, uint64_t start);
void chrome_file_end(struct chrome *, struct chrome_file *, const char *reason);
/* Begins an event in c->row, up to its time: {"ph":"X","pid":1,"tid":2,"ts":3.000 */
void chrome_event_begin(struct chrome *, struct chrome_file *, char phase, uint32_t pid,
			uint32_t tid, uint64_t ns);
void chrome_event_end(struct chrome *);
/* body: the other members. */
void chrome_slice(struct chrome *, struct chrome_file *, uint32_t pid, uint32_t tid,
		  uint64_t start_ns, uint64_t end_ns, const char *body, size_t len);
/* Writes the name of a process or thread. */
void chrome_meta(struct chrome *, struct chrome_file *, uint32_t pid, uint32_t tid,
		 const char *what, const char *key, const char *text);

/* Writes the steps that were found in the processes of a file, if the programs name none. */
void chrome_file_steps(struct chrome *, struct chrome_file *);

/* ---- chrome_body.c: the contents of events ---- */

/* Writes category, name and args of an event: "\"cat\":...,\"name\":...,\"args\":{...}". correlation 0: none. */
void chrome_body(struct chrome *, const struct event *, const struct slice *, uint64_t correlation);
/* The number of a step that was found. */
void chrome_step_body(struct row *, const struct steps_of *, const struct step *);
/* Nanoseconds as microseconds with three decimals; they may be negative. */
char *chrome_us(char *p, int64_t ns);

#endif
