/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * world.h - what records have said so far: processes, threads, names of kernels, stacks, metrics, GPUs,
 * scopes, captured calls. A stage asks here what belongs to an event; which table learns from a kind
 * of record, and which is asked about one, is one row of world.c for each kind. It knows no stage
 * and no sink.
 */
#ifndef CT_WORLD_H
#define CT_WORLD_H

#include "../event.h"

struct world;
struct world *world_open(void); /* NULL: no memory */
void world_close(struct world *);

/* The processes, which the stages before the last one ask too. */
struct process_table *world_processes(struct world *);
/* Learns processes and names of threads from a record as it arrives: the stages that hold records back
 * must know them at once. Returns 0 or -ENOMEM. */
int world_arrived(struct world *, const struct ct_hdr *);

/* Says whose record it is, and learns what the record defines: its place among the others counts,
 * so each record is handed in once, in the order in which it is shown. Returns 0 or -ENOMEM. */
int world_record(struct world *, struct event *);
/* Adds what is known of the event: its kernel, stack, scopes, cause; no stacks if `stacks` is false. */
void world_describe(struct world *, struct event *, bool stacks);

#endif
