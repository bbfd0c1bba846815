/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sinks.h - the outputs by name, with flags for their properties: --format and `cudatrace export
 * --to` take their words from here. To add one: a file with its struct sink_ops, its name in
 * sink.h, a row in sinks.c. Knows no source and no command.
 */
#ifndef CT_SINKS_H
#define CT_SINKS_H

#include "sink.h"

/* writes rows as they come, for people or line by line; without it each call comes once */
#define SINKS_ROWS 0x01
/* adds up by stack: stacks are captured without being asked for, --weight applies, nested calls
 * are not wanted */
#define SINKS_FOLDS 0x02
#define SINKS_WHOLE 0x80  /* a whole file: nothing can be added to it (-A) */
#define SINKS_BINARY 0x04 /* not for a terminal */
/* opens sink_opts.path itself: the session opens no output, and -o FILE must be given */
#define SINKS_PATH 0x08
/* gets definitions too (names, frames, stacks and other records that are sent once) */
#define SINKS_DEFINITIONS 0x10
#define SINKS_EVERY_CALL 0x20 /* no query is throttled for it */
#define SINKS_EXPORT 0x40     /* a file for another program: `cudatrace export --to` */
/* the counters of the kernel side are enough: calls need not be sent */
#define SINKS_COUNTS 0x100
#define SINKS_SPLITS 0x400 /* with %p in the path it opens a file for each process itself */
/* shows what processes are: their arguments, their place in a job */
#define SINKS_INFO 0x1000
#define SINKS_COMMAND 0x200 /* belongs to a command of its own: not for --format */
/* a display: by what counters are separated can change while it runs */
#define SINKS_LIVE 0x8000
/* wants the calls that take memory and give it back, and those that choose a device */
#define SINKS_MEMORY 0x2000
/* shows what allocators inside programs say of their blocks, by call site: the layer and stacks are
 * recorded without being asked for */
#define SINKS_BLOCKS 0x200000
#define SINKS_DAEMON 0x800     /* runs without end: SIGHUP does not stop it */
#define SINKS_NESTED 0x4000    /* wants nested calls too */
#define SINKS_COUNTERS 0x10000 /* shows hardware counters */
/* text for people, unless an option of its command asks for another form: for programs */
#define SINKS_TEXT 0x20000
#define SINKS_NO_PLACES 0x40000 /* does not show which device a call works on */
#define SINKS_SPANS 0x80000	/* calls become spans: --otlp-min applies */
/* kernels always have their readable names: only names in stacks can be the ones that the
 * compiler made */
#define SINKS_READABLE 0x100000

struct sinks_row {
	const struct sink_ops *ops; /* ops->name is the word */
	/* suffix of a file that is named after its input: ".perfetto" */
	const char *suffix;
	unsigned int flags; /* SINKS_* */
};

/* NULL: no output has that name. */
const struct sinks_row *sinks_find(const char *name);
/* Writes the names of the outputs that have all of these flags: "json, csv or html". Returns
 * buf. */
const char *sinks_names(unsigned int flags, char *buf, size_t size);
/* The rows in order; NULL after the last. */
const struct sinks_row *sinks_at(unsigned int i);

#endif
