/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * device.c - enables and disables record kinds in CUPTI, and handles its buffers. CUPTI asks for
 * empty buffers and returns full ones on a thread of its own, or inside a flush; they come from a
 * pool. When CUPTI holds all of them, it gets an extra buffer, because some versions crash without
 * one. That buffer is thrown away when it comes back, and its records are counted.
 */
#include "agent_state.h"

#include <pthread.h>
#include <stdlib.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define POOL_MAX 512
#define DISCARD_BYTES 65536
#define EMPTY_MS 200	   /* how long device_empty() waits for records that are not complete */
#define QUIET_MS 100	   /* and until CUPTI has had no buffer for so long */
#define EMPTY_MOST_MS 2000 /* in all */
#define BEGIN_MS 1000	   /* how long it waits for a thread of the program that begins kernels */

static struct {
	uint8_t *memory;
	size_t size; /* its size when it was made: another attach may use another size */
	bool out;    /* with CUPTI */
} pool[POOL_MAX];
static uint8_t *discard;
/* how many times CUPTI holds it at once: if more than once, its content is not usable */
static _Atomic int discards;
static size_t buffer_bytes;
static uint32_t nbuffers;
/* Held over the pool's flags, and over one buffer's records; never over a call of CUPTI's that
 * may wait. */
static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER,
		       records_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool starved; /* CUPTI asked for a buffer when it had all */
static uint64_t reported_dropped, reported_lost, reported_time, reported_deep, reported_ns;

static void request(uint8_t **buffer, size_t *size, size_t *max_records)
{
	*buffer = discard;
	*size = DISCARD_BYTES;
	*max_records = 0;
	pthread_mutex_lock(&pool_lock);
	for (uint32_t i = 0; i < nbuffers; i++) {
		if (pool[i].out)
			continue;
		if (!pool[i].memory) {
			if (posix_memalign((void **)&pool[i].memory, 4096, buffer_bytes)) {
				pool[i].memory = NULL;
				break;
			}
			pool[i].size = buffer_bytes;
		}
		pool[i].out = true;
		*buffer = pool[i].memory;
		*size = pool[i].size;
		break;
	}
	pthread_mutex_unlock(&pool_lock);
	if (*buffer == discard) {
		atomic_fetch_add(&discards, 1);
		atomic_store(&starved, true);
	}
}

static void give_back(const uint8_t *buffer)
{
	pthread_mutex_lock(&pool_lock);
	for (uint32_t i = 0; i < POOL_MAX; i++)
		if (pool[i].memory == buffer)
			pool[i].out = false;
	pthread_mutex_unlock(&pool_lock);
}

static void complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	bool thrown_away = buffer == discard, live;
	size_t count = 0;
	void *record = NULL;

	if (!buffer)
		return;
	if (valid > size)
		valid = size;
	pthread_mutex_lock(&records_lock);
	live = atomic_load(&agent.state) != IDLE;
	if (valid && live)
		clock_settle();
	if (thrown_away) {
		if (atomic_fetch_sub(&discards, 1) > 1)
			count = valid / sizeof(struct cupti_memcpy); /* about */
		else
			while (valid && activity_next(buffer, valid, &record))
				count++;
		atomic_fetch_add(&agent.dropped, count);
	} else {
		while (valid && live && activity_next(buffer, valid, &record))
			records_convert(record);
	}
	pthread_mutex_unlock(&records_lock);
	if (!thrown_away)
		give_back(buffer);
	/* this sets CUPTI's count to zero, and must not be called under a lock that this function
	 * takes */
	if (live)
		atomic_fetch_add(&agent.dropped, activity_dropped(context, stream));
	agent_wake();
}

static void lost(enum ct_loss cause, uint64_t now, uint64_t count, uint64_t *reported)
{
	struct ct_lost *r;

	if (count <= *reported)
		return;
	r = agent_record(CT_LOST, sizeof(*r), reported_ns ? reported_ns : now, now, 0);
	if (!r)
		return;
	r->cause = cause;
	r->cpu = ~0u;
	r->count = count - *reported;
	queue_commit(r);
	*reported = count;
}

void device_tell_lost(void)
{
	uint64_t now = clock_now();

	lost(CT_LOSS_DEVICE, now, atomic_load(&agent.dropped), &reported_dropped);
	lost(CT_LOSS_AGENT, now, queue_lost(), &reported_lost);
	lost(CT_LOSS_DEPTH, now, atomic_load(&agent.too_deep), &reported_deep);
	lost(CT_LOSS_TIME, now, atomic_load(&agent.bad_time), &reported_time);
	reported_ns = now;
}

/* ---- the kinds that the user side requests, and CUPTI's names for them ---- */

static const struct {
	uint32_t want;
	int kind;
	bool dump; /* what is there already too */
	const char *name;
} kinds[] = {
	/* first what the others refer to */
	{ AGENT_ALWAYS, CUPTI_KIND_DEVICE, true, "devices" },
	{ AGENT_ALWAYS, CUPTI_KIND_CONTEXT, true, "contexts" },
	{ AGENT_ALWAYS, CUPTI_KIND_STREAM, true, "streams" },
	{ AGENT_OVERHEAD, CUPTI_KIND_OVERHEAD, false, "overhead" },
	{ AGENT_MEMCPY, CUPTI_KIND_MEMCPY, false, "copies" },
	{ AGENT_MEMCPY, CUPTI_KIND_MEMCPY2, false, "peer copies" },
	{ AGENT_MEMSET, CUPTI_KIND_MEMSET, false, "sets" },
	{ AGENT_SYNC, CUPTI_KIND_SYNC, false, "synchronisation" },
	{ AGENT_MEMORY, CUPTI_KIND_MEMORY2, false, "memory" },
	{ AGENT_UM, CUPTI_KIND_UM, false, "managed memory" },
	{ AGENT_NVTX, CUPTI_KIND_MARKER, false, "NVTX" },
	{ AGENT_KERNEL, CUPTI_KIND_KERNEL, false, "kernels" },
};
#define NKINDS (sizeof(kinds) / sizeof(kinds[0]))

static bool wanted(size_t i)
{
	return agent.want.kinds &&
	       (kinds[i].want == AGENT_ALWAYS || agent.want.kinds & kinds[i].want);
}

static void say_holder(const char *name)
{
	link_say(MEET_ERROR,
		 "process %u: another profiler%s%s holds CUPTI, which has one user at a time: "
		 "device work is not shown; end that profiler first",
		 agent.pid, name && *name ? " named " : "", name ? name : "");
}

/* Another profiler uses CUPTI. If it allows sharing, CUPTI is shared; else a message names it. */
static bool share(char *holder, size_t size)
{
	const struct cupti *c = &agent.cupti;
	bool can = activity_can_share();
	struct cupti_subscriber_params p = { can ? sizeof(p) : CUPTI_SUBSCRIBER_PARAMS_ALONE,
					     "cudatrace",
					     holder,
					     size,
					     can,
					     { 0 } };
	void *subscriber = NULL;

	if (!c->cuptiSubscribe_v2 || c->cuptiSubscribe_v2(&subscriber, calls_callback, NULL, &p))
		return false;
	if (!can) {
		refused(REFUSED_END, c->cuptiUnsubscribe(subscriber));
		return false;
	}
	agent.subscriber = subscriber;
	agent.shared = true;
	link_say(MEET_NOTE, "process %u: CUPTI is shared with another profiler%s%s", agent.pid,
		 *holder ? ", " : "", holder);
	return true;
}

/* This comes first: if another profiler uses CUPTI, nothing of CUPTI is changed. */
static int subscribe(void)
{
	const struct cupti *c = &agent.cupti;
	char holder[128] = "";
	int r;

	agent.shared = false;
	r = c->cuptiSubscribe(&agent.subscriber, calls_callback, NULL);
	if (!r)
		return 0;
	agent.subscriber = NULL;
	if (r == CUPTI_MULTIPLE_SUBSCRIBERS && share(holder, sizeof(holder)))
		return 0;
	holder[sizeof(holder) - 1] = '\0';
	if (!*holder)
		library_tool(holder, sizeof(holder));
	if (r == CUPTI_MULTIPLE_SUBSCRIBERS || r == CUPTI_MAX_LIMIT_REACHED) {
		say_holder(holder);
		return -EBUSY;
	}
	if (r == CUPTI_UNKNOWN || r == CUPTI_NOT_INITIALIZED)
		link_say(MEET_ERROR,
			 "process %u: CUPTI finds no CUDA driver (%s): device work is not shown; "
			 "is the NVIDIA driver installed, and does its version fit %s?",
			 agent.pid, library_error(r), c->path);
	else
		link_say(MEET_ERROR, "process %u: CUPTI refuses (%s): device work is not shown",
			 agent.pid, library_error(r));
	return -ENODEV;
}

/* Settings that the agent has changed, as they were before. */
static struct {
	int which;
	size_t value; /* 0: was not changed */
} attributes[] = { { CUPTI_ATTR_DEVICE_BUFFER_SIZE, 0 },
		   { CUPTI_ATTR_DEVICE_BUFFER_POOL_LIMIT, 0 } };
static int thread_ids; /* -1: not known */

static void attribute(unsigned int i, size_t value)
{
	const struct cupti *c = &agent.cupti;
	size_t size = sizeof(value), was = 0;

	attributes[i].value = 0;
	if (!value)
		return;
	if (c->cuptiActivityGetAttribute &&
	    !c->cuptiActivityGetAttribute(attributes[i].which, &size, &was))
		attributes[i].value = was;
	size = sizeof(value);
	refused(REFUSED_SETTINGS, c->cuptiActivitySetAttribute(attributes[i].which, &size, &value));
}

/* CUPTI's own clock, which it cannot be told to use again. */
static uint64_t cuptis_clock(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

void device_restore(void)
{
	const struct cupti *c = &agent.cupti;

	if (!agent.want.kinds || agent.shared)
		return;
	for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++) {
		size_t size = sizeof(attributes[i].value);

		if (attributes[i].value)
			refused(REFUSED_END,
				c->cuptiActivitySetAttribute(attributes[i].which, &size,
							     &attributes[i].value));
	}
	if (thread_ids >= 0)
		refused(REFUSED_END, c->cuptiSetThreadIdType(thread_ids));
	if (agent.clock == AGENT_CLOCK_CALLBACK)
		refused(REFUSED_END, c->cuptiActivityRegisterTimestampCallback(cuptis_clock));
}

void device_reset(void)
{
	static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

	pool_lock = records_lock = fresh;
}

/* Buffers that CUPTI does not hold are returned to the program's heap. If CUPTI is never ended,
 * some buffers are kept for the next attach. */
void device_rest(void)
{
	/* if CUPTI was not ended, a buffer may come back at any time */
	pthread_mutex_lock(&records_lock);
	records_reset();
	pthread_mutex_unlock(&records_lock);
	pthread_mutex_lock(&pool_lock);
	for (uint32_t i = 0; i < POOL_MAX; i++) {
		if (pool[i].out)
			continue;
		free(pool[i].memory);
		pool[i].memory = NULL;
	}
	pthread_mutex_unlock(&pool_lock);
}

static int buffers(void)
{
	buffer_bytes = agent.want.buffer_bytes;
	nbuffers = agent.want.buffers < POOL_MAX ? agent.want.buffers : POOL_MAX;
	if (!discard && posix_memalign((void **)&discard, 4096, DISCARD_BYTES))
		discard = NULL;
	device_rest();
	atomic_store(&discards, 0);
	return discard && buffer_bytes >= 4096 && nbuffers ? 0 : -ENOMEM;
}

static uint32_t choose_clock(void)
{
	/* it is refused when shared */
	if (!agent.cupti.cuptiActivityRegisterTimestampCallback || agent.shared)
		return AGENT_CLOCK_OFFSET;
	if (agent.want.clock != AGENT_CLOCK_AUTO)
		return agent.want.clock;
	return agent.faults & FAULT_CLOCK ? AGENT_CLOCK_OFFSET : AGENT_CLOCK_CALLBACK;
}

/*
 * Kernels that are recorded again, after their records were ended and without an end of CUPTI, are begun by
 * the program, as it leaves a call: where another thread begins them while the program launches a kernel, CUPTI
 * often records none any more, for nobody (seen with CUPTI 13.0 on an H200: in 3 of 38 tries; in none of 36 where
 * no launch was under way, and in none of 163 after cuptiFinalize).
 */
static void enable_kinds(void)
{
	for (size_t i = 0; i < NKINDS; i++) {
		bool dump = kinds[i].dump && agent.cupti.cuptiActivityEnableAndDump && !agent.early;
		int kind = kinds[i].kind, r;

		if (!wanted(i))
			continue;
		if (kind == CUPTI_KIND_KERNEL && agent.kernels_ended) {
			agent.kinds |= AGENT_KERNEL;
			atomic_store(&agent.kernels_asked, true);
			continue;
		}
		r = activity_enable(kind, dump);
		if (r && dump)
			r = activity_enable(kind, false);
		if (!r)
			agent.kinds |= agent.want.kinds & kinds[i].want;
		else
			link_say(kinds[i].want == AGENT_ALWAYS ? MEET_VERB : MEET_WARN,
				 "process %u: CUPTI gives no records of %s (%s)", agent.pid,
				 kinds[i].name, library_error(r));
	}
	if (agent.want.flags & AGENT_S_GRAPHS && agent.want.kinds & AGENT_KERNEL &&
	    activity_enable(CUPTI_KIND_GRAPH, false))
		link_say(
			MEET_WARN,
			"process %u: CUPTI gives no records of whole graphs: their nodes are shown",
			agent.pid);
}

static int busy(void)
{
	link_say(MEET_ERROR,
		 "process %u: the program itself uses CUPTI, or has used it: CUPTI is left to it, "
		 "so that its own profile is complete, and device work is not shown",
		 agent.pid);
	return -EBUSY;
}

/* Takes CUPTI, unless the program uses it. Then nothing of CUPTI is changed. */
static int claim(void)
{
	bool used = activity_registered() < 0;
	int err;

	if (((used || owner_was_used()) && !activity_can_share()) || !owner_claim())
		return busy();
	err = subscribe();
	if (!err && used && !agent.shared) {
		refused(REFUSED_END, agent.cupti.cuptiUnsubscribe(agent.subscriber));
		agent.subscriber = NULL;
		err = busy();
	}
	return err;
}

static int enable(void)
{
	const struct cupti *c = &agent.cupti;
	int err;

	/* otherwise a graph that was made before ends the program at its next launch (seen with
	 * CUPTI 13.0 on an H200) */
	if ((!agent.early || agent.shared) && agent.want.flags & AGENT_S_GRAPHS) {
		agent.want.flags &= ~AGENT_S_GRAPHS;
		link_say(MEET_WARN,
			 "process %u: graphs are shown by their nodes: whole graphs can be traced "
			 "in a program that is %s",
			 agent.pid, agent.shared ? "not another profiler's too" : "started alone");
	}
	agent.kinds = 0;
	if (agent.want.kinds) {
		err = buffers();
		if (err)
			return err;
		if (!agent.shared) {
			attribute(0, agent.want.device_buffer_bytes);
			attribute(1, agent.want.device_buffers);
		}
		thread_ids = -1;
		if (!agent.shared && c->cuptiGetThreadIdType &&
		    c->cuptiGetThreadIdType(&thread_ids))
			thread_ids = -1;
		refused(REFUSED_TIDS, activity_system_tids());
		agent.clock = choose_clock();
		if (agent.clock == AGENT_CLOCK_CALLBACK &&
		    c->cuptiActivityRegisterTimestampCallback(clock_now))
			agent.clock = AGENT_CLOCK_OFFSET;
		clock_reset();
		clock_measure();
		err = activity_callbacks(request, complete);
		if (err) {
			link_say(MEET_ERROR,
				 "process %u: CUPTI takes no buffers for its records (%s): device "
				 "work is not shown",
				 agent.pid, library_error(err));
			return -ENODEV;
		}
	}
	/* the calls before the work that they cause */
	err = calls_enable();
	if (!err && agent.want.kinds)
		enable_kinds();
	return err;
}

int device_enable(void)
{
	int err = claim();

	if (err)
		return err;
	names_begin();
	reported_dropped = reported_lost = reported_time = reported_deep = reported_ns = 0;
	return enable();
}

/* Nobody begins kernels from here on: a thread that did so after they have been disabled would leave them enabled
 * for good, in the program's own profile. */
static void forbid_kernels(void)
{
	atomic_store(&agent.kernels_asked, false);
	for (int ms = 0; ms < BEGIN_MS && atomic_load(&agent.kernels_begin); ms++)
		usleep(1000);
}

void device_disable(bool all)
{
	forbid_kernels();
	/* if this can deadlock, cuptiFinalize does it instead, unless that cannot be called
	 * either */
	if (!all && agent.faults & FAULT_DISABLE && !(agent.faults & FAULT_FINALIZE))
		return;
	for (size_t i = NKINDS; i-- > 0;)
		if (wanted(i))
			refused(REFUSED_END, activity_disable(kinds[i].kind));
	agent.kernels_ended |= agent.want.kinds & AGENT_KERNEL;
	if (agent.want.flags & AGENT_S_GRAPHS && agent.want.kinds & AGENT_KERNEL)
		refused(REFUSED_END, activity_disable(CUPTI_KIND_GRAPH));
}

void device_flush(bool all)
{
	/* this affects all subscribers: unfinished records in another one's buffers must stay
	 * there */
	if (agent.want.kinds && owner_holds())
		refused(REFUSED_FLUSH, agent.cupti.cuptiActivityFlushAll(all && !agent.shared));
}

bool device_starved(void)
{
	return atomic_exchange(&starved, false);
}

static bool any_out(void)
{
	bool out = false;

	pthread_mutex_lock(&pool_lock);
	for (uint32_t i = 0; i < POOL_MAX; i++)
		out |= pool[i].out;
	pthread_mutex_unlock(&pool_lock);
	return out || atomic_load(&discards) > 0;
}

/* What was in flight when its kind was disabled has a record later, for which CUPTI asks for a buffer. If the
 * program began while CUPTI has one of ours, the records of its profile would come into that. */
void device_empty(void)
{
	uint64_t begin = clock_now(), now = begin, quiet = begin;

	device_flush(false);
	for (; now - begin < EMPTY_MOST_MS * 1000000ULL && now - quiet < QUIET_MS * 1000000ULL;
	     now = clock_now()) {
		if (any_out()) {
			device_flush(now - begin > EMPTY_MS * 1000000ULL);
			quiet = now;
		}
		usleep(1000);
	}
}
