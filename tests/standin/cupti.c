/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cupti.c - a libcupti for the stand-in: sees the calls that are made to the stand-in's libcudart
 * and libcuda, calls back, and makes activity records of a device that does everything at once. Its
 * records are complete structs of CUPTI 13, so what the agent reads of them by prefix is where the
 * real one has it.
 *
 * STANDIN_CUPTI in the environment, words separated by commas:
 *   version:N     what cuptiGetVersion() says (18: 11.8, 23: 12.5, 130001, ...); functions of
 *                 later versions answer with an error
 *   held          somebody else has subscribed; from 13.0 on under the name "standin-profiler"
 *   shared        somebody else has, and lets others in; from 13.3 on it can be. Then the
 *                 functions that name no subscriber fail
 *   none          there is no driver: 999
 *   zero:N        every Nth kernel has no times
 *   backwards:N   every Nth kernel ends before it starts
 *   drop:N        each completed buffer reports N dropped records
 *   small         buffers are taken to be 4 KiB
 *   swap          two buffers are given back in the wrong order
 *   slow:US       giving a buffer back takes so long
 *   fatal:N       after N kernels it gives up (state callback), and records no more
 *   stuck         cuptiFinalize fails
 *   contexts      contexts have numbers of their own, from 41 on as they are seen, and handles;
 *                 without it there is one, number 1. contexts:2: calls
 *                 have none until the records of contexts were given back
 *   busy          the device always has unfinished work: buffers come back when they are full or
 *                 when it is forced
 *   device:US     copies, sets and kernels take so long, one after the other
 *   unended       the first kernel never ends: until it is forced, no buffer is given back
 *   fragile       the kind of kernels, enabled again by a thread that has not launched the last one, gives
 *                 none any more until CUPTI is ended, as the real one does now and then in a busy program
 *   lasts:US      a call of the driver lasts so long after its work was given to the device
 *   once          the kind of kernels, enabled again before CUPTI was ended, is refused
 *   deaf          callbacks are refused
 *   bufferless    functions for buffers are refused
 *   cut           a buffer cannot be read behind its first record
 *   late:MS       so long after its kind is disabled the record of a kernel comes that was in flight
 *   empty         asks for buffers until it gets none, as if the program were very busy
 *   nvtx          it has header-only NVTX 3, as the real one
 */
#include "standin.h"

#include <dlfcn.h>
#include <linux/kcmp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>

#include "../../target/cupti/cupti.h"
#include "../../target/common/prologue.h"
#include "../../user/api/api.h"
#include "../../wire/nvtx_wire.h"

#define EXPORT __attribute__((visibility("default")))
#define IDS 2048
#define OLD_STREAM 7 /* the default stream's number */

#define R(name) name,
#define D(name)
static const char *const runtime_names[] = {
#include "cupti_names.h"
};
#undef R
#undef D
#define R(name)
#define D(name) name,
static const char *const driver_names[] = {
#include "cupti_names.h"
};
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, give_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(cupti_callback) callback;
static void *callback_user;
static _Atomic int subscribed;
static uint8_t enabled[8][IDS];
static uint8_t api_records[3][IDS];
static uint8_t kinds[64];
static bool told[64];		   /* the records of what is there were made */
static bool ended_kernels, broken; /* the kind was disabled; see `fragile` */
static _Atomic int launcher;	   /* the thread of the last launch */
/* next to each other, as in the real one */
static struct {
	cupti_request request;
	cupti_complete complete;
} registered;
static size_t attributes[64];
static int thread_id_type;
static cupti_request_v2 request_v2;
static cupti_complete_v2 complete_v2;
static bool among; /* the subscriber is one of several */
static cupti_clock user_clock;
static struct standin_tools *tools;
static _Atomic uint32_t correlations;
static _Atomic uint64_t kernels;
static _Thread_local uint32_t outer; /* correlation of the outermost call of this thread */
static _Thread_local int depth;

/* With `contexts`: those that were seen, by number from FIRST_CONTEXT on, and this thread's
 * current one. */
#define CONTEXTS 16
#define FIRST_CONTEXT 41
static struct {
	void *handle;
	uint32_t device;
} contexts[CONTEXTS];
static uint32_t ncontexts;
static _Thread_local void *current;
static _Atomic bool gave;

/* Full buffers that wait for a kernel that does not end. */
static struct {
	uint8_t *buffer;
	size_t size, used;
} waiting[1024];
static unsigned int nwaiting;
static bool forced_once;

/* The buffer that is being filled, and one that waits to be given back second. */
static uint8_t *buffer, *held_back;
static size_t buffer_size, used, held_used, held_size;
static bool over;
/* The newest capture, and the newest instance of it. */
#define NODES 64
static struct {
	const void *function, *stream;
	uint32_t shape[6], shared;
	uint64_t id, copy; /* of the node, and of its copy in the instance */
} nodes[NODES];
static uint32_t nnodes, instance;
static bool capturing;
static uint64_t node_ids;
static uint64_t now_node; /* the graph's node whose kernel runs; 0: none */

static long knob(const char *name)
{
	const char *s = getenv("STANDIN_CUPTI");
	size_t len = strlen(name);

	for (; s && *s; s += strcspn(s, ","), s += *s == ',')
		if (!strncmp(s, name, len) && (s[len] == ':' || s[len] == ',' || !s[len]))
			return s[len] == ':' ? atol(s + len + 1) : 1;
	return 0;
}

/* ---- NVTX in it ---- */

static struct nvtx_layout markers = {
	.head = { .version = 3 }
}; /* mapped from the file, as the real one */

static int get_markers(uint32_t module, uint64_t **slots, uint32_t *n)
{
	*slots = &markers.tables[module == 5 ? NVTX_TABLE_CORE_2 : NVTX_TABLE_CORE];
	*n = NVTX_IDS;
	return module == 1 || module == 5;
}
static void set_marker_version(uint32_t v)
{
	(void)v;
}

__attribute__((constructor)) static void make_markers(void)
{
	uint64_t at = (uint64_t)(uintptr_t)markers.slots;

	if (!knob("nvtx"))
		return;
	for (unsigned int i = 1; i < NVTX_IDS; i++) {
		markers.tables[NVTX_TABLE_CORE + i] = at + (NVTX_SLOT_CORE + i - 1) * 8;
		markers.tables[NVTX_TABLE_CORE_2 + i] = at + (NVTX_SLOT_CORE_2 + i - 1) * 8;
	}
	markers.head =
		(struct nvtx_globals){ .state = NVTX_COMPLETE,
				       .callbacks_size = 16,
				       .get_table = (uint64_t)(uintptr_t)get_markers,
				       .version_size = 24,
				       .version = 3,
				       .set_version = (uint64_t)(uintptr_t)set_marker_version };
}

/* Whoever has subscribed may be gone by the next moment. */
static void call_back(int domain, uint32_t id, const void *data)
{
	cupti_callback fn = callback;

	if (fn && enabled[domain][id])
		fn(callback_user, domain, id, data);
}

static uint32_t version(void)
{
	return knob("version") ? (uint32_t)knob("version") : 130001;
}

static uint64_t stamp(void)
{
	struct timespec ts;

	if (user_clock)
		return user_clock();
	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

/* ---- buffers ---- */

static void give(uint8_t *b, size_t size, size_t n)
{
	if (knob("slow")) {
		struct timespec ts = { 0, knob("slow") * 1000 };

		nanosleep(&ts, NULL);
	}
	if (among)
		complete_v2(b, size, n, NULL);
	else
		registered.complete(NULL, 0, b, size, n);
	gave = true;
}

/* Whether the full buffer waits; under the lock. */
static bool waits(void)
{
	if (!knob("unended") || forced_once || !buffer)
		return false;
	if (nwaiting == sizeof(waiting) / sizeof(waiting[0]))
		abort();
	waiting[nwaiting].buffer = buffer;
	waiting[nwaiting].size = buffer_size;
	waiting[nwaiting++].used = used;
	buffer = NULL;
	used = 0;
	return true;
}

/* Takes the full buffers; given back without the lock, as the callback calls us. */
static void give_all(bool last)
{
	uint8_t *first, *second;
	size_t n1, s1, n2, s2;

	pthread_mutex_lock(&give_lock);
	pthread_mutex_lock(&lock);
	if (waits()) {
		pthread_mutex_unlock(&lock);
		pthread_mutex_unlock(&give_lock);
		return;
	}
	first = buffer;
	n1 = used;
	s1 = buffer_size;
	buffer = NULL;
	used = 0;
	if (knob("swap") && !last && !held_back && first) {
		held_back = first;
		held_used = n1;
		held_size = s1;
		first = NULL;
	}
	second = first || last ? held_back : NULL;
	n2 = held_used;
	s2 = held_size;
	if (second)
		held_back = NULL;
	pthread_mutex_unlock(&lock);
	if (first)
		give(first, s1, n1);
	if (second)
		give(second, s2, n2);
	pthread_mutex_unlock(&give_lock);
}

static void put(const void *record, size_t size)
{
	for (;;) {
		pthread_mutex_lock(&lock);
		if (over || !(among ? (void *)request_v2 : (void *)registered.request))
			break;
		if (!buffer) {
			size_t records = 0;

			if (among)
				request_v2(&buffer, &buffer_size, &records, NULL);
			else
				registered.request(&buffer, &buffer_size, &records);
			if (!buffer)
				abort(); /* as the real one does below 12.9 */
			if (knob("small") && buffer_size > 4096)
				buffer_size = 4096;
			used = 0;
		}
		if (used + size <= buffer_size) {
			memcpy(buffer + used, record, size);
			used += size;
			break;
		}
		pthread_mutex_unlock(&lock);
		give_all(false);
	}
	pthread_mutex_unlock(&lock);
}

static size_t size_of(uint32_t kind)
{
	switch (kind) {
	case CUPTI_KIND_KERNEL: return 216;
	case CUPTI_KIND_MEMCPY: return 96;
	case CUPTI_KIND_MEMSET: return 88;
	case CUPTI_KIND_RUNTIME:
	case CUPTI_KIND_DRIVER: return 40;
	case CUPTI_KIND_DEVICE: return 184;
	case CUPTI_KIND_CONTEXT: return 32;
	case CUPTI_KIND_STREAM: return 24;
	case CUPTI_KIND_SYNC: return 56;
	case CUPTI_KIND_GRAPH: return 56;
	case CUPTI_KIND_MARKER:
	case CUPTI_KIND_OVERHEAD: return 56;
	}
	abort();
}

/* Adds a record of its kind: the prefix given, the rest zero. */
static void add(const void *prefix, size_t n)
{
	uint8_t whole[256] = { 0 };
	uint32_t kind;

	memcpy(&kind, prefix, sizeof(kind));
	memcpy(whole, prefix, n);
	if (kinds[kind] || kind == CUPTI_KIND_RUNTIME || kind == CUPTI_KIND_DRIVER)
		put(whole, size_of(kind));
}

/* ---- the device ---- */

static uint32_t stream_id(const void *stream)
{
	uint64_t id;

	if ((uintptr_t)stream <= 2)
		return OLD_STREAM;
	memcpy(&id, (const char *)stream + offsetof(struct handle, id), sizeof(id));
	return 10 + (uint32_t)id;
}

/* The number of a context; 0: none was seen. */
static uint32_t context_id(const void *handle)
{
	if (!knob("contexts"))
		return 1;
	for (uint32_t i = ncontexts; i-- > 0;)
		if (contexts[i].handle == handle)
			return FIRST_CONTEXT + i;
	return 0;
}

static uint32_t device_of(uint32_t context)
{
	return context >= FIRST_CONTEXT ? contexts[context - FIRST_CONTEXT].device : 0;
}

static uint32_t here(void)
{
	return context_id(current);
}

static void put_context(uint32_t id)
{
	struct cupti_context c = { .kind = CUPTI_KIND_CONTEXT,
				   .id = id,
				   .device = device_of(id),
				   .api = 1,
				   .null_stream = OLD_STREAM };

	add(&c, sizeof(c));
}

static void made_context(void *handle, uint32_t device, bool now)
{
	struct cupti_resource res = { .context = handle };

	if (!handle || !knob("contexts") || context_id(handle) || ncontexts == CONTEXTS)
		return;
	contexts[ncontexts].handle = handle;
	contexts[ncontexts++].device = device;
	put_context(context_id(handle));
	if (now)
		call_back(CUPTI_RESOURCE, CUPTI_RES_CONTEXT_CREATED, &res);
}

static void times(uint64_t *start, uint64_t *end, uint64_t n)
{
	static _Atomic uint64_t free_ns; /* device:US: one thing after the other, each as long */
	uint64_t took = knob("device") ? (uint64_t)knob("device") * 1000 : 5000, was;

	*start = stamp();
	while (knob("device")) {
		was = free_ns;
		*start = was > *start ? was : *start;
		if (atomic_compare_exchange_weak(&free_ns, &was, *start + took))
			break;
		*start = stamp();
	}
	*end = *start + took;
	if (knob("zero") && n % (uint64_t)knob("zero") == 0)
		*start = *end = 0;
	if (knob("backwards") && n % (uint64_t)knob("backwards") == 0)
		*end = *start - 1;
}

static void kernel(const void *f, const uint32_t *dims, uint32_t shared, const void *stream)
{
	const struct handle *h = f;
	struct cupti_kernel k = {
		.kind = CUPTI_KIND_KERNEL,
		.registers = 16,
		.device = device_of(here()),
		.context = here(),
		.stream = stream_id(stream),
		.grid = { (int)dims[0], (int)dims[1], (int)dims[2] },
		.block = { (int)dims[3], (int)dims[4], (int)dims[5] },
		.dynamic_shared = (int)shared,
		.correlation = outer,
		/* the program may have launched what it never registered */
		.name = h && h->kind == H_KERNEL ? h->name : NULL,
		.channel = 8,
		.shared_executed = 1024,
	};
	uint64_t n = atomic_fetch_add(&kernels, 1) + 1, start, end;

	atomic_store(&launcher, (int)syscall(SYS_gettid));
	if (broken)
		return;
	k.graph_node = now_node;
	k.graph = now_node ? instance : 0;

	times(&start, &end, n);
	k.start = start;
	k.end = end;
	k.grid_id = (int64_t)n;
	add(&k, sizeof(k));
	if (knob("fatal") && n == (uint64_t)knob("fatal")) {
		struct cupti_state s = { CUPTI_UNKNOWN, "the stand-in was told to give up" };

		over = true;
		call_back(CUPTI_STATE, CUPTI_STATE_FATAL, &s);
	}
}

static void copy(uint64_t bytes, uint8_t kind, const void *stream, bool async)
{
	struct cupti_memcpy m = {
		.kind = CUPTI_KIND_MEMCPY,
		.copy_kind = kind,
		.src = kind == 1 ? 1 : 3,
		.dst = kind == 2 ? 1 : 3,
		.flags = async,
		.bytes = bytes,
		.device = device_of(here()),
		.context = here(),
		.stream = stream_id(stream),
		.correlation = outer,
		.channel = 9,
	};
	uint64_t start, end;

	times(&start, &end, 1);
	m.start = start;
	m.end = end;
	add(&m, sizeof(m));
}

static void set(uint64_t bytes, uint32_t value, const void *stream, bool async)
{
	struct cupti_memset m = {
		.kind = CUPTI_KIND_MEMSET,
		.value = value,
		.bytes = bytes,
		.device = device_of(here()),
		.context = here(),
		.stream = stream_id(stream),
		.correlation = outer,
		.flags = async,
		.memory = 3,
	};
	uint64_t start, end;

	times(&start, &end, 1);
	m.start = start;
	m.end = end;
	add(&m, sizeof(m));
}

/* ---- graphs ---- */

static void add_node(uint32_t cbid, uint64_t id, uint64_t original)
{
	struct cupti_graph_data d = { .node = (void *)id, .original = (void *)original };
	struct cupti_resource res = { .descriptor = &d };

	call_back(CUPTI_RESOURCE, cbid, &res);
}

static void captured(const void *function, const uint32_t *shape, uint32_t shared,
		     const void *stream)
{
	uint32_t i = nnodes;

	if (i == NODES)
		return;
	nnodes++;
	nodes[i].function = function;
	nodes[i].stream = stream;
	nodes[i].shared = shared;
	memcpy(nodes[i].shape, shape, sizeof(nodes[i].shape));
	nodes[i].id = ++node_ids;
	add_node(CUPTI_RES_NODE_CREATED, nodes[i].id, 0);
}

static void instantiated(void)
{
	instance++;
	for (uint32_t i = 0; i < nnodes; i++) {
		nodes[i].copy = ++node_ids;
		/* as the real one says both */
		add_node(CUPTI_RES_NODE_CREATED, nodes[i].copy, 0);
		add_node(CUPTI_RES_NODE_CLONED, nodes[i].copy, nodes[i].id);
	}
}

static void replayed(void)
{
	static const uint32_t one[] = { 1, 1, 1, 1, 1, 1 };

	now_node = 1000;
	if (!nnodes) /* it was captured before anybody watched */
		kernel(NULL, one, 0, NULL);
	for (uint32_t i = 0; i < nnodes; i++) {
		now_node = nodes[i].copy;
		kernel(nodes[i].function, nodes[i].shape, nodes[i].shared, nodes[i].stream);
	}
	now_node = 0;
}

static void graph(const void *exec, const void *stream)
{
	struct cupti_graph g = {
		.kind = CUPTI_KIND_GRAPH,
		.correlation = outer,
		.graph = 1,
		.context = 1,
		.stream = stream_id(stream),
	};
	uint64_t start, end;

	(void)exec;
	times(&start, &end, 1);
	g.start = start;
	g.end = end;
	add(&g, sizeof(g));
}

static void synchronised(uint32_t type, const void *stream, uint64_t start, uint64_t end)
{
	struct cupti_sync s = { .kind = CUPTI_KIND_SYNC,
				.type = type,
				.start = start,
				.end = end,
				.correlation = outer,
				.context = 1,
				.stream = stream ? stream_id(stream) : ~0u,
				.event = ~0u };

	add(&s, sizeof(s));
}

#define IS(x) (!strcmp(name, #x) || !strcmp(name, #x "_ptsz") || !strcmp(name, #x "_ptds"))

/* What a successful driver call made the device do. */
static void device_work(const char *name, const uint64_t *r, const uint64_t *s, uint64_t began)
{
	void (*launch)(const void *, const uint32_t *, uint32_t, const void *) =
		capturing ? captured : kernel;

	if (IS(cuLaunchKernel)) {
		launch((void *)r[0],
		       (uint32_t[]){ (uint32_t)r[1], (uint32_t)r[2], (uint32_t)r[3], (uint32_t)r[4],
				     (uint32_t)r[5], (uint32_t)s[0] },
		       (uint32_t)s[1], (void *)s[2]);
	} else if (IS(cuLaunchKernelEx)) {
		const CUlaunchConfig *c = (void *)r[0];

		launch((void *)r[1],
		       (uint32_t[]){ c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX,
				     c->blockDimY, c->blockDimZ },
		       c->sharedMemBytes, c->hStream);
	} else if (IS(cuMemcpyHtoD_v2)) {
		copy(r[2], 1, NULL, false);
	} else if (IS(cuMemcpyDtoH_v2)) {
		copy(r[2], 2, NULL, false);
	} else if (IS(cuMemcpyDtoD_v2)) {
		copy(r[2], 8, NULL, false);
	} else if (IS(cuMemcpy)) {
		copy(r[2], 8, NULL, false);
	} else if (IS(cuMemcpyHtoDAsync_v2)) {
		copy(r[2], 1, (void *)r[3], true);
	} else if (IS(cuMemcpyDtoHAsync_v2)) {
		copy(r[2], 2, (void *)r[3], true);
	} else if (IS(cuMemcpyDtoDAsync_v2) || IS(cuMemcpyAsync)) {
		copy(r[2], 8, (void *)r[3], true);
	} else if (IS(cuMemsetD8_v2)) {
		set(r[2], (uint32_t)r[1], NULL, false);
	} else if (IS(cuMemsetD32_v2)) {
		set(r[2] * 4, (uint32_t)r[1], NULL, false);
	} else if (IS(cuMemsetD8Async)) {
		set(r[2], (uint32_t)r[1], (void *)r[3], true);
	} else if (IS(cuGraphLaunch)) {
		if (!kinds[CUPTI_KIND_GRAPH])
			replayed();
		graph((void *)r[0], (void *)r[1]);
	} else if (IS(cuGraphInstantiateWithFlags)) {
		instantiated();
	} else if (IS(cuCtxSynchronize)) {
		synchronised(4, NULL, began, stamp());
	} else if (IS(cuStreamSynchronize)) {
		synchronised(3, (void *)r[0], began, stamp());
	} else if (IS(cuDevicePrimaryCtxRetain)) {
		made_context(*(void **)r[0], (uint32_t)r[1], true);
	} else if (IS(cuCtxCreate_v2)) {
		current = *(void **)r[0];
		made_context(current, (uint32_t)r[2], true);
	} else if (IS(cuCtxSetCurrent)) {
		current = (void *)r[0];
		/* it was made before anybody watched */
		if (current)
			made_context(current, (uint32_t)((const struct handle *)current)->value,
				     false);
	} else if (IS(cuStreamCreate) || IS(cuStreamCreateWithPriority)) {
		struct cupti_stream c = { .kind = CUPTI_KIND_STREAM, .context = 1, .flag = 1 };
		struct cupti_resource res = { .context = (void *)1 };

		memcpy(&res.stream, (void *)r[0], sizeof(res.stream));
		c.id = stream_id(res.stream);
		add(&c, sizeof(c));
		call_back(CUPTI_RESOURCE, CUPTI_RES_STREAM_CREATED, &res);
	}
}

/* ---- calls ---- */

static uint32_t find(const char *const *names, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(names[i], name))
			return (uint32_t)i + 1;
	return 0;
}

/* The arguments as CUDA's headers lay them out in the struct of parameters. */
static void lay_out(const char *name, const uint64_t *r, const uint64_t *s, char *params)
{
	struct api_param p[CT_MAX_WORDS];
	bool per_thread;
	int kernel_word, row = api_lookup(name, 13000, &per_thread);

	if (row < 0 || api_params(row, API_ARCH_HERE, p, &kernel_word))
		return;
	for (int i = 0; i < CT_MAX_WORDS; i++) {
		uint64_t v = i < 6 ? r[i] : s[i - 6 < 12 ? i - 6 : 11];

		if (p[i].width && p[i].how != API_PARAM_ADDRESS)
			memcpy(params + p[i].off, &v, p[i].width);
	}
}

static const char *symbol_of(bool driver, const char *name, const uint64_t *r)
{
	const struct handle *h = NULL;

	if (driver && IS(cuLaunchKernel))
		h = (void *)r[0];
	else if (driver && IS(cuLaunchKernelEx))
		h = (void *)r[1];
	else if (!driver && (IS(cudaLaunchKernel) || IS(cudaLaunchCooperativeKernel)))
		h = tools->function && r[0] ? tools->function((void *)r[0]) : NULL;
	else if (!driver && IS(cudaLaunchKernelExC))
		h = tools->function && r[1] ? tools->function((void *)r[1]) : NULL;
	return h && h->kind == H_KERNEL ? h->name : NULL;
}

static uint64_t watch(bool driver, const char *name, void *code, uint64_t *regs, uint64_t *stack,
		      uint64_t (*invoke)(void *code, uint64_t *regs, uint64_t *stack))
{
	int domain = driver ? CUPTI_DRIVER : CUPTI_RUNTIME;
	uint32_t id = driver ? find(driver_names, COUNT(driver_names), name)
			     : find(runtime_names, COUNT(runtime_names), name);
	uint64_t r[6], data = 0, ret, began, params[64] = { 0 };
	uint32_t result, mine;
	struct cupti_call call = { .site = CUPTI_SITE_ENTER,
				   .function = name,
				   .params = params,
				   .result = &result,
				   .data = &data,
				   .context = knob("contexts") ? current : (void *)1,
				   .context_id = here() };

	if (knob("contexts") == 2 && !gave)
		call.context = NULL;
	memcpy(r, regs, sizeof(r));
	if (!depth++)
		outer = atomic_fetch_add(&correlations, 1) + 1;
	mine = call.correlation = outer;
	lay_out(name, regs, stack, (char *)params);
	if (callback && enabled[domain][id])
		call.symbol = symbol_of(driver, name, regs);
	call_back(domain, id, &call);
	began = stamp();
	ret = invoke(code, regs, stack);
	if (driver && !(uint32_t)ret)
		device_work(name, r, stack, began);
	if (driver && knob("lasts"))
		usleep((useconds_t)knob("lasts"));
	if (IS(cudaStreamBeginCapture))
		nnodes = 0;
	if (IS(cudaStreamBeginCapture) || IS(cudaStreamEndCapture))
		capturing = IS(cudaStreamBeginCapture);
	if (kinds[driver ? CUPTI_KIND_DRIVER : CUPTI_KIND_RUNTIME] || api_records[domain][id]) {
		struct cupti_api a = { .kind = driver ? CUPTI_KIND_DRIVER : CUPTI_KIND_RUNTIME,
				       .cbid = id,
				       .start = began,
				       .end = stamp(),
				       .pid = (uint32_t)getpid(),
				       .tid = (uint32_t)syscall(SYS_gettid),
				       .correlation = mine,
				       .result = (uint32_t)ret };

		add(&a, sizeof(a));
	}
	result = (uint32_t)ret;
	call.site = CUPTI_SITE_EXIT;
	call_back(domain, id, &call);
	depth--;
	return ret;
}

/* ---- CUPTI's functions ---- */

#define API(name, ...)                \
	EXPORT int name(__VA_ARGS__); \
	int name(__VA_ARGS__)

static void *since(uint32_t first)
{
	return version() >= first ? &lock : NULL;
}

API(cuptiGetVersion, uint32_t *out)
{
	*out = version();
	return 0;
}

API(cuptiGetGraphNodeId, void *node, uint64_t *id)
{
	*id = (uint64_t)(uintptr_t)node;
	return 0;
}

API(cuptiGetResultString, int result, const char **text)
{
	*text = result == CUPTI_MULTIPLE_SUBSCRIBERS
			? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"
		: result == CUPTI_UNKNOWN ? "CUPTI_ERROR_UNKNOWN"
					  : "CUPTI_ERROR";
	return 0;
}

/* In a forked child no thread is there that could hold them. */
static void in_child(void)
{
	static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

	lock = give_lock = fresh;
}

/* Sees calls from now on. Returns whether there is a driver. */
static bool see_calls(void)
{
	static bool watched;
	void *driver = dlopen("libcuda.so.1", RTLD_LAZY);

	tools = driver ? (struct standin_tools *)dlsym(driver, "standin_tools") : NULL;
	if (!tools)
		return false;
	if (!watched)
		pthread_atfork(NULL, NULL, in_child);
	watched = true;
	__atomic_store_n(&tools->call, watch, __ATOMIC_RELEASE);
	return true;
}

static int subscribe(void **subscriber, cupti_callback fn, void *user, bool several)
{
	if (knob("none"))
		return CUPTI_UNKNOWN;
	if (knob("held") || (knob("shared") && !several) || atomic_exchange(&subscribed, 1))
		return CUPTI_MULTIPLE_SUBSCRIBERS;
	if (!see_calls()) {
		atomic_store(&subscribed, 0);
		return CUPTI_UNKNOWN;
	}
	among = several;
	callback_user = user;
	callback = fn;
	over = false;
	*subscriber = &subscribed;
	return 0;
}

API(cuptiSubscribe, void **subscriber, cupti_callback fn, void *user)
{
	return subscribe(subscriber, fn, user, false);
}

API(cuptiSubscribe_v2, void **subscriber, cupti_callback fn, void *user,
    struct cupti_subscriber_params *p)
{
	bool asks = p->size > CUPTI_SUBSCRIBER_PARAMS_ALONE && since(130200) && p->allow_several;
	int r = subscribe(subscriber, fn, user, asks && knob("shared"));

	if ((knob("shared") || (r && knob("held"))) && since(130000) && p->old_name)
		snprintf(p->old_name, p->old_size, "standin-profiler");
	return r;
}

API(cuptiUnsubscribe, void *subscriber)
{
	static const uint8_t none[sizeof(api_records)];

	(void)subscriber;
	if (memcmp(api_records, none, sizeof(none)))
		abort(); /* it would go on to make records of calls, for nobody */
	memset(enabled, 0, sizeof(enabled));
	callback = NULL;
	atomic_store(&subscribed, 0);
	return 0;
}

API(cuptiEnableCallback, uint32_t enable, void *subscriber, int domain, uint32_t cbid)
{
	if (subscriber != &subscribed || domain > 6 || cbid >= IDS)
		return CUPTI_INVALID_PARAMETER;
	if (knob("deaf"))
		return CUPTI_NOT_INITIALIZED;
	enabled[domain][cbid] = (uint8_t)enable;
	return 0;
}

API(cuptiEnableDomain, uint32_t enable, void *subscriber, int domain)
{
	if (subscriber != &subscribed || domain > 6)
		return CUPTI_INVALID_PARAMETER;
	memset(enabled[domain], (int)enable, sizeof(enabled[domain]));
	return 0;
}

API(cuptiGetCallbackName, int domain, uint32_t cbid, const char **name)
{
	static char versioned[COUNT(runtime_names)][96];
	const char *const *names = domain == CUPTI_DRIVER ? driver_names : runtime_names;
	size_t n = domain == CUPTI_DRIVER ? COUNT(driver_names) : COUNT(runtime_names);

	if (!cbid || cbid > n)
		return CUPTI_INVALID_PARAMETER;
	*name = names[cbid - 1];
	if (domain == CUPTI_RUNTIME) {
		snprintf(versioned[cbid - 1], sizeof(versioned[0]), "%s_v13000", *name);
		*name = versioned[cbid - 1];
	}
	return 0;
}

API(cuptiActivityRegisterCallbacks, cupti_request r, cupti_complete c)
{
	PUSHES();
	if (among || knob("bufferless"))
		return CUPTI_UNKNOWN;
	if (!r || !c)
		return CUPTI_INVALID_PARAMETER; /* so nobody can take them back */
	registered.request = r;
	registered.complete = c;
	return 0;
}

static int enable(int kind, bool dump)
{
	if (kind < 0 || kind >= 64)
		return CUPTI_INVALID_PARAMETER;
	if (!see_calls()) /* also if nobody has subscribed */
		return CUPTI_UNKNOWN;
	if (kind == CUPTI_KIND_KERNEL && knob("once") && ended_kernels)
		return CUPTI_NOT_INITIALIZED;
	kinds[kind] = 1;
	if (kind == CUPTI_KIND_KERNEL && knob("fragile") && ended_kernels &&
	    atomic_load(&launcher) != (int)syscall(SYS_gettid))
		broken = true;
	/* when it is enabled in cuInit() they come as soon as there are any, which is at once here */
	if (!dump && told[kind])
		return 0;
	told[kind] = true;
	if (kind == CUPTI_KIND_DEVICE) {
		struct cupti_device d = { .kind = CUPTI_KIND_DEVICE,
					  .bandwidth = 1000000,
					  .memory = STANDIN_TOTAL_BYTES,
					  .warp = 32,
					  .clock = 1000000,
					  .multiprocessors = 4,
					  .max_warps = 64,
					  .max_blocks = 32,
					  .major = 9,
					  .uuid = { 1, 2, 3, 4 },
					  .name = "Stand-in GPU" };

		for (d.id = 0; d.id < STANDIN_DEVICES; d.id++) {
			d.uuid[15] = (uint8_t)d.id;
			add(&d, sizeof(d));
		}
	}
	if (kind == CUPTI_KIND_CONTEXT && !knob("contexts"))
		put_context(1);
	for (uint32_t i = 0; kind == CUPTI_KIND_CONTEXT && i < ncontexts; i++)
		put_context(FIRST_CONTEXT + i);
	if (kind == CUPTI_KIND_STREAM) {
		struct cupti_stream s = {
			.kind = CUPTI_KIND_STREAM, .context = 1, .id = OLD_STREAM, .flag = 3
		};

		add(&s, sizeof(s));
	}
	return 0;
}

#define INVALID_DEVICE 2 /* CUPTI_ERROR_INVALID_DEVICE */
/* The driver reaches its device by descriptors that the program has: a thread with a descriptor table of its
 * own finds none. Where the kernel does not say, it is taken to be well. */
static bool reaches_device(void)
{
	return syscall(SYS_kcmp, getpid(), syscall(SYS_gettid), KCMP_FILES, 0, 0) <= 0;
}

API(cuptiActivityEnable, int kind)
{
	if (!reaches_device())
		return INVALID_DEVICE;
	return among ? CUPTI_UNKNOWN : enable(kind, false);
}

API(cuptiActivityEnableAndDump, int kind)
{
	return among ? CUPTI_UNKNOWN : enable(kind, true);
}

static void *late(void *unused)
{
	uint8_t record[256] = { 0 };
	const uint32_t kind = CUPTI_KIND_KERNEL;

	memcpy(record, &kind, sizeof(kind));
	usleep((useconds_t)knob("late") * 1000);
	put(record, size_of(kind));
	return unused;
}

static int disable(int kind)
{
	static bool came;
	pthread_t thread;

	if (kind < 0 || kind >= 64)
		return CUPTI_INVALID_PARAMETER;
	if (kind == CUPTI_KIND_KERNEL && kinds[kind] && knob("late") && !came &&
	    !pthread_create(&thread, NULL, late, NULL))
		came = !pthread_detach(thread);
	ended_kernels |= kind == CUPTI_KIND_KERNEL && kinds[kind];
	kinds[kind] = 0;
	return 0;
}

API(cuptiActivityDisable, int kind)
{
	PUSHES();
	return among ? CUPTI_UNKNOWN : disable(kind);
}

API(cuptiActivityFlushAll, uint32_t forced)
{
	if (forced && among)
		abort(); /* the other one's records would come without their ends */
	if (knob("unended") && !forced_once) {
		if (!forced)
			return 0;
		forced_once = true;
		for (unsigned int i = 0; i < nwaiting; i++)
			give(waiting[i].buffer, waiting[i].size, waiting[i].used);
		nwaiting = 0;
	}
	if ((buffer || held_back) && (forced || !knob("busy")))
		give_all(true);
	return 0;
}

static int next(uint8_t *b, size_t valid, void **record)
{
	uint8_t *at = b;
	uint32_t kind;

	if (*record) {
		memcpy(&kind, *record, sizeof(kind));
		at = (uint8_t *)*record + size_of(kind);
	}
	if (at >= b + valid)
		return CUPTI_MAX_LIMIT_REACHED;
	if (*record && knob("cut"))
		return CUPTI_UNKNOWN;
	*record = at;
	return 0;
}

API(cuptiActivityGetNextRecord, uint8_t *b, size_t valid, void **record)
{
	return among ? CUPTI_UNKNOWN : next(b, valid, record);
}

API(cuptiActivityGetNumDroppedRecords, void *context, uint32_t stream, size_t *dropped)
{
	(void)context, (void)stream;
	*dropped = (size_t)knob("drop");
	return 0;
}

API(cuptiActivitySetAttribute, int attribute, size_t *size, void *value)
{
	PUSHES();
	if (among)
		return CUPTI_UNKNOWN;
	memcpy(&attributes[attribute % 64], value, *size < sizeof(size_t) ? *size : sizeof(size_t));
	return 0;
}

API(cuptiActivityGetAttribute, int attribute, size_t *size, void *value)
{
	if (among)
		return CUPTI_UNKNOWN;
	memcpy(value, &attributes[attribute % 64], *size < sizeof(size_t) ? *size : sizeof(size_t));
	return 0;
}

API(cuptiGetTimestamp, uint64_t *out)
{
	*out = stamp();
	return 0;
}

API(cuptiSetThreadIdType, int type)
{
	PUSHES();
	if (type < 0 || type > CUPTI_THREAD_ID_SYSTEM || among)
		return CUPTI_INVALID_PARAMETER;
	thread_id_type = type;
	return 0;
}

API(cuptiGetThreadIdType, int *type)
{
	*type = thread_id_type;
	return 0;
}

API(cuptiActivityRegisterTimestampCallback, cupti_clock fn)
{
	PUSHES();
	if (among)
		return CUPTI_UNKNOWN;
	if (!fn)
		return CUPTI_INVALID_PARAMETER;
	user_clock = fn;
	return 0;
}

API(cuptiActivityEnableRuntimeApi, uint32_t cbid, uint8_t on)
{
	if (!since(23) || among)
		return CUPTI_UNKNOWN;
	api_records[CUPTI_RUNTIME][cbid % IDS] = on;
	return 0;
}

API(cuptiActivityEnableDriverApi, uint32_t cbid, uint8_t on)
{
	if (!since(23) || among)
		return CUPTI_UNKNOWN;
	api_records[CUPTI_DRIVER][cbid % IDS] = on;
	return 0;
}

/* ---- for one of several subscribers: 13.3 ---- */

static bool is_one(const void *subscriber)
{
	return among && since(130300) && subscriber == &subscribed;
}

API(cuptiActivityRegisterCallbacks_v2, void *subscriber, cupti_request_v2 r, cupti_complete_v2 c)
{
	if (!is_one(subscriber))
		return CUPTI_INVALID_PARAMETER;
	request_v2 = r;
	complete_v2 = c;
	return 0;
}

API(cuptiActivityEnable_v2, void *subscriber, int kind, void *config)
{
	return is_one(subscriber) && !config ? enable(kind, false) : CUPTI_INVALID_PARAMETER;
}

API(cuptiActivityEnableAndDump_v2, void *subscriber, int kind, void *config)
{
	return is_one(subscriber) && !config ? enable(kind, true) : CUPTI_INVALID_PARAMETER;
}

API(cuptiActivityDisable_v2, void *subscriber, int kind, void *config)
{
	return is_one(subscriber) && !config ? disable(kind) : CUPTI_INVALID_PARAMETER;
}

API(cuptiActivitySetAttribute_v2, void *subscriber, int attribute, size_t *size, void *value)
{
	int type = 0;

	if (!is_one(subscriber) || attribute != CUPTI_ATTR_THREAD_ID_TYPE || *size != sizeof(type))
		return CUPTI_INVALID_PARAMETER;
	memcpy(&type, value, sizeof(type));
	return type == CUPTI_THREAD_ID_SYSTEM ? 0 : CUPTI_INVALID_PARAMETER;
}

API(cuptiActivityGetNextRecord_v2, void *subscriber, uint8_t *b, size_t valid, void **record)
{
	return is_one(subscriber) ? next(b, valid, record) : CUPTI_INVALID_PARAMETER;
}

API(cuptiActivityGetNumDroppedRecords_v2, void *subscriber, void *context, uint32_t stream,
    size_t *dropped)
{
	(void)context, (void)stream;
	*dropped = (size_t)knob("drop");
	return is_one(subscriber) ? 0 : CUPTI_INVALID_PARAMETER;
}

API(cuptiActivityEnableRuntimeApi_v2, void *subscriber, uint32_t cbid, uint8_t on)
{
	if (!is_one(subscriber))
		return CUPTI_INVALID_PARAMETER;
	api_records[CUPTI_RUNTIME][cbid % IDS] = on;
	return 0;
}

API(cuptiActivityEnableDriverApi_v2, void *subscriber, uint32_t cbid, uint8_t on)
{
	if (!is_one(subscriber))
		return CUPTI_INVALID_PARAMETER;
	api_records[CUPTI_DRIVER][cbid % IDS] = on;
	return 0;
}

API(cuptiGetTimestamp_v2, void *subscriber, uint64_t *out)
{
	*out = stamp();
	return is_one(subscriber) ? 0 : CUPTI_INVALID_PARAMETER;
}

API(cuptiGetContextId, void *context, uint32_t *id)
{
	*id = context_id(context);
	return *id ? 0 : CUPTI_INVALID_PARAMETER;
}

API(cuptiGetStreamIdEx, void *context, void *stream, uint8_t per_thread, uint32_t *id)
{
	(void)context, (void)per_thread;
	*id = stream_id(stream);
	return 0;
}

/* The stand-in's NVTX: what is given is called with a function that takes a range's text, twice:
 * its begin, its end (NULL). */
static void nvtx_range(const char *text)
{
	static uint32_t id;
	struct cupti_marker m = { .kind = CUPTI_KIND_MARKER,
				  .flags = text ? CUPTI_MARK_START : CUPTI_MARK_END,
				  .time = stamp(),
				  .object_kind = CUPTI_OBJECT_THREAD,
				  .object = { (uint32_t)getpid(), (uint32_t)syscall(SYS_gettid) },
				  .name = text,
				  .domain = text ? "standin" : NULL };

	m.id = text ? ++id : id;
	add(&m, sizeof(m));
}

API(InitializeInjectionNvtx2, void *give_function)
{
	((void (*)(void (*)(const char *)))give_function)(nvtx_range);
	return 1;
}

API(cuptiFinalize, void)
{
	if (!since(23) || knob("shared"))
		abort(); /* it would crash, or take CUPTI from the other subscriber */
	if (knob("stuck"))
		return CUPTI_UNKNOWN;
	give_all(true);
	__atomic_store_n(&tools->call, NULL, __ATOMIC_RELEASE);
	memset(enabled, 0, sizeof(enabled));
	memset(api_records, 0, sizeof(api_records));
	memset(kinds, 0, sizeof(kinds));
	memset(told, 0, sizeof(told));
	ended_kernels = broken = false;
	callback = NULL;
	user_clock = NULL;
	thread_id_type = 0;
	memset(attributes, 0, sizeof(attributes));
	memset(&registered, 0, sizeof(registered));
	atomic_store(&subscribed, 0);
	return 0;
}
