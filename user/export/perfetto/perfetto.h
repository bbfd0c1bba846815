/* SPDX-License-Identifier: BSD-2-Clause */
/* perfetto.h - inside the perfetto sink: its state, and its tracks. */
#ifndef CT_PERFETTO_H
#define CT_PERFETTO_H

#include "../../event/memory/inuse.h"
#include "../slice/slice.h"
#include "perfetto_write.h"
#include "../slice/work_text.h"

struct perfetto_options {
	bool stack_args; /* stacks as arguments and not as callstacks */
};

struct perfetto {
	struct perfetto_writer w;
	struct timeline *timeline;
	struct inuse *inuse;
	struct work_metrics *metrics;
	const struct sink_opts *opts;
	struct perfetto_options how;
	const struct process *proc;   /* of the event that is made */
	const char *thread;	      /* likewise; NULL: not known */
	const struct gpu_table *gpus; /* NULL: not known */
	uint64_t no_time, late;
	char body[PERFETTO_EVENT_MAX];
};

static inline enum slice_track perfetto_track_kind(const struct timeline_key *key)
{
	return (enum slice_track)(key->kind & ~TIMELINE_EARLY);
}

/* proc NULL: of the machine. a, b: the thread, or the device and the stream. */
struct timeline_key perfetto_track_key(enum slice_track, const struct process *proc, uint32_t a,
				       uint32_t b);
/* Returns the track, after it was described to the reader of the trace. NULL: no memory. */
struct timeline_track *perfetto_track(struct perfetto *, enum slice_track,
				      const struct process *proc, uint32_t a, uint32_t b);
/* Writes the description of a track that has none yet, or a new one that says more. Returns 0 or
 * -ENOMEM. */
int perfetto_track_tell(struct perfetto *, struct timeline_track *, const char *description);
/* Returns the uuid of one of its lanes. */
uint64_t perfetto_track_lane(struct perfetto *, struct timeline_track *, struct timeline_lane *,
			     int lane);

#endif
