/* SPDX-License-Identifier: BSD-2-Clause */
/* rules.h - inside advise: the states and functions of the rules, which rules.c makes rows of. */
#ifndef CT_RULES_H
#define CT_RULES_H

#include "rule.h"
#include "../util/table/keyed.h"

/* A copy to the host of no more than that is a value that is read, not data that is moved. */
#define READBACK_BYTES 256

enum rule_id {
	RULE_PAGEABLE,
	RULE_SYNC_COPY,
	RULE_SYNC_SET,
	RULE_SYNC_EACH,
	RULE_READBACK,
	RULE_ALLOC_LOOP,
	RULE_LAUNCH_BOUND,
	RULE_GAPS,
	RULE_LOW_USE,
	RULE_LATE_LOAD,
	RULE_QUEUE_FULL,
	RULE_DEFAULT_STREAM,
	RULE_FAILED,
	RULE_CREATE_LOOP,
	RULE_LEAK,
	RULE_SMALL_COPIES,
	RULE_POLLING,
	RULE_ROUNDTRIP,
	RULE_OCCUPANCY
};

#define RULE(name, ...)           \
	struct name {             \
		__VA_ARGS__       \
	};                        \
	RULE_EVENT(name##_event); \
	RULE_END(name##_end);     \
	void name##_free(void *)

/* rules_copy.c */
RULE(pageable, struct hits hits; uint64_t device_ns, last_call_ns;);
RULE(sync_copy, struct hits hits; uint64_t untold[4096];);
RULE_EVENT(sync_set_event);
RULE_END(sync_set_end);
RULE(small_copies, struct hits hits; uint64_t runs;);
struct trip {
	uint64_t host, bytes, ns;
};
RULE(roundtrip, struct hits hits; struct trip trips[64]; uint32_t next;);
void hits_state_free(void *); /* of a state that is nothing but hits */

/* rules_wait.c */
enum wait_what { WAIT_NONE, WAIT_EACH, WAIT_READBACK };
RULE(sync_each, struct hits hits; uint64_t waits;);
RULE(readback, struct hits hits;);
RULE(polling, struct hits hits, idle;);

/* rules_loop.c */
struct loop_turns {
	uint64_t turns, serial;
	bool destroyed;
	struct hits hits;
};
RULE(alloc_loop, struct loop_turns loop;);
RULE(create_loop, struct loop_turns events, streams;);
RULE(failed, struct hits hits; uint64_t went_on, checks;);
RULE(late_load, struct hits hits; uint64_t n, ns, at_ns, took_ns;);

/* rules_leak.c */
struct leak_live {
	uint64_t address, bytes;
	uint32_t at_ms; /* after the process's first call */
	uint32_t site;	/* its index */
};
struct leak_site {
	struct site site;
	uint64_t allocated, live, live_bytes;
	uint8_t quarters;
};
RULE(leak, struct keyed live; unsigned int may; uint64_t no_room; /* may: live ones that fit */
     struct leak_site sites[SITES_MAX]; uint32_t nsites;);

/* rules_launch.c */
RULE(launch_bound, struct hits hits; uint64_t kernels, small, small_ns, launch_ns;);
RULE(queue_full, struct hits hits, calls; uint64_t overheads; uint64_t known[64];);
struct shape_use {
	struct book_shape shape;
	uint64_t handle, n, ns, blocks, at_ns, took_ns;
	uint32_t device, stack;
	uint16_t func;
	char *name;
};
RULE(occupancy, struct shape_use *shapes; uint32_t nshapes; uint16_t slots[1024]; uint64_t ns;);

/* rules_device.c */
struct stream_use {
	uint32_t context, null_stream;
	bool told;	    /* which its null stream is */
	bool kept, refused; /* there is room for its spans */
	struct spans null, others;
	uint64_t nnull, nothers;
};
struct stream_flags {
	uint32_t id, flags;
};
RULE(default_stream, struct stream_use contexts[8]; unsigned int ncontexts;
     struct stream_flags streams[1024];);
RULE_END(gaps_end);
RULE_END(low_use_end);

#endif
