/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * traits.h - what calls of a function do, for the code that adds calls up or judges them. All of it
 * follows from the function's row: its class, its flags, the marks of its arguments. No other code
 * distinguishes functions by their names.
 */
#ifndef CT_TRAITS_H
#define CT_TRAITS_H

#include "api.h"

#define TR_COPY 0x1   /* copies, and the device has a record of it */
#define TR_SET 0x2    /* sets memory */
#define TR_LAUNCH 0x4 /* launch of a kernel */
#define TR_GRAPH 0x8  /* launch of a graph */
#define TR_ASYNC 0x10 /* copies, sets, takes or frees in the order of a stream */
#define TR_SYNC 0x20  /* waits for the device */
/* allocation of device memory or pinned host memory, not ordered by a stream */
#define TR_ALLOC 0x40
#define TR_FREE 0x80
#define TR_EVENT_CREATE 0x100
#define TR_EVENT_DESTROY 0x200
#define TR_STREAM_CREATE 0x400
#define TR_STREAM_DESTROY 0x800
#define TR_POLL 0x1000	   /* asks whether something is done */
#define TR_LOAD 0x2000	   /* load of device code */
#define TR_ERROR 0x4000	   /* asks for the last error */
#define TR_MEMORY 0x8000   /* changes device memory, as api_memory() reports it */
#define TR_LINEAR 0x10000  /* a copy whose first words are destination and source */
#define TR_CHECKED 0x20000 /* of a class whose failures are reported */
#define TR_PINS 0x40000	   /* makes the program's own host memory pinned */
#define TR_RECORD 0x80000  /* record of an event */
/* TR_SYNC: what it waits for */
#define TR_WAIT_STREAM 0x100000
#define TR_WAIT_EVENT 0x200000
#define TR_WAIT_DEVICE 0x400000
/* Takes or gives back memory, ordered by a stream or not. Only what holds memory itself counts:
 * not addresses, not the memory of other processes, and not the program's own memory that is
 * made pinned. */
#define TR_TAKES 0x800000
#define TR_GIVES 0x1000000
#define TR_MOVE 0x2000000   /* of class copy, including prefetches */
#define TR_REPORT 0x4000000 /* no call of CUDA: an allocator inside the program reports a block */
#define TR_GRAPH_CREATE 0x8000000 /* of graphs, and of what is launched of them */
#define TR_GRAPH_DESTROY 0x10000000
#define TR_UNLOAD 0x20000000 /* of device code */
#define TR_WORK (TR_COPY | TR_SET | TR_LAUNCH | TR_GRAPH)

/* Any of TR_*; func must be a row. The caller must be the only thread that uses the api room. */
uint32_t api_traits(unsigned int func);

/* The functions by which a program says which part of it is to be profiled. */
#define API_PROFILER_START "cudaProfilerStart"
#define API_PROFILER_STOP "cudaProfilerStop"

#endif
