/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * calls.c - CUPTI's callbacks, on the program's threads: records are written into the queue, and
 * nothing waits.
 *
 * Correlations (where CUPTI has no selective API records, and with calls): a CT_CAUSE at a
 * call's exit. Calls: the record that the kernel side would make of the same call, from CUPTI's
 * copy of the arguments and the same capture spec: calls inside another are folded in the same
 * way. Pointers are the program's: what they point to is read by a system call, which fails
 * where a load would crash; only what CUDA itself has just written, in words, is loaded.
 */
#include "agent_state.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define NOT_READY 600 /* cudaErrorNotReady, CUDA_ERROR_NOT_READY */

struct frame {
	uint32_t cbid;
	uint8_t domain;
	bool hidden;
	uint8_t depth;
	uint32_t got, used; /* bytes of data[] */
	uint64_t start_ns;
	const void *params; /* CUPTI's copy of the arguments, in the stack frame of the function */
	uint64_t data[CT_DATA_MAX / 8];
};
struct frames {
	uint32_t n;
	int attached; /* entries of an earlier attach are not valid */
	struct frame at[CT_MAX_FRAMES];
};

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool have_key;
static __thread struct frames *frames;

/* A kernel's handle, and the name from CUPTI that was last reported for it. */
#define HANDLES 4096 /* a power of two */
static struct {
	_Atomic uint64_t handle;
	_Atomic uint64_t name; /* names_handle()'s, mixed with the attach */
} handles[HANDLES];

static void free_frames(void *p)
{
	free(p);
	frames = NULL;
}

static void make_key(void)
{
	have_key = !pthread_key_create(&key, free_frames);
}

static struct frames *my_frames(void)
{
	if (!frames) {
		pthread_once(&once, make_key);
		frames = have_key ? calloc(1, sizeof(*frames)) : NULL;
		if (!frames)
			return NULL;
		pthread_setspecific(key, frames);
	}
	if (frames->attached != agent.attached) {
		frames->n = 0;
		frames->attached = agent.attached;
	}
	return frames;
}

/* ---- a call's record ---- */

static bool read_memory(void *to, uint64_t from, size_t n)
{
	struct iovec here = { to, n }, there = { (void *)(uintptr_t)from, n };

	return from && process_vm_readv((pid_t)agent.pid, &here, 1, &there, 1, 0) == (ssize_t)n;
}

/* A string up to its NUL or n bytes: in pieces that end at a page's end, since the next page may
 * not be there. */
static size_t read_string(char *to, uint64_t from, size_t n, bool *whole)
{
	size_t len = 0;

	*whole = false;
	while (len < n) {
		size_t page = 4096 - ((from + len) & 4095), want = n - len < page ? n - len : page;
		const char *end;

		if (!read_memory(to + len, from + len, want))
			break;
		end = memchr(to + len, '\0', want);
		if (end) {
			*whole = true;
			return (size_t)(end - to) + 1;
		}
		len += want;
	}
	return len;
}

struct cursor {
	struct frame *f;
	const struct ct_spec *spec;
	uint16_t at[CT_MAX_READS]; /* of the reads made, offset in data */
};

static bool word_from(const struct cursor *c, uint8_t from, uint16_t off, uint64_t *out)
{
	const char *base = (const char *)c->f->data;

	*out = 0;
	if (from & CT_FROM_READ) {
		uint8_t i = from & (uint8_t)~CT_FROM_READ;

		if (i >= CT_MAX_READS || !(c->f->got >> i & 1) || off + 8u > c->spec->reads[i].len)
			return false;
		memcpy(out, base + c->at[i] + off, 8);
		return true;
	}
	if (from >= c->spec->nwords)
		return false;
	*out = c->f->data[from];
	return true;
}

static void read_one(struct cursor *c, unsigned int i, bool written_by_cuda)
{
	const struct ct_read *r = &c->spec->reads[i];
	char *to = (char *)c->f->data + c->f->used;
	size_t room = CT_DATA_MAX - c->f->used, len = r->len;
	uint64_t from, count, head;
	bool whole;

	if (len > CT_READ_MAX || room < 8 + ((len + 7) & ~(size_t)7) ||
	    !word_from(c, r->from, r->off, &from) || !from)
		return;
	if (r->kind == CT_READ_BYTES) {
		if (written_by_cuda && len <= 8 && !(r->from & CT_FROM_READ))
			memcpy(to, (const void *)(uintptr_t)from, len);
		else if (!read_memory(to, from, len))
			return;
		head = 0;
	} else if (r->kind == CT_READ_STR) {
		size_t n = read_string(to + 8, from, len, &whole);

		if (!n)
			return;
		head = n | (whole ? 0 : CT_STR_CUT);
		if (!whole)
			to[8 + n - 1] = '\0';
		len = n;
	} else {
		if (!word_from(c, r->count_from, r->count_off, &count))
			return;
		count = (uint32_t)count;
		head = count * r->elem;
		if (head > len)
			head = (len / (r->elem ? r->elem : 1) * r->elem) | CT_STR_CUT;
		len = (size_t)(head & ~CT_STR_CUT);
		if (len && !read_memory(to + 8, from, len))
			return;
	}
	c->at[i] = (uint16_t)c->f->used;
	if (r->kind != CT_READ_BYTES) {
		memcpy(to, &head, 8);
		to += 8;
		c->f->used += 8;
	}
	memset(to + len, 0, ((len + 7) & ~(size_t)7) - len);
	c->f->used += (uint32_t)((len + 7) & ~(size_t)7);
	c->f->got |= 1u << i;
}

static uint64_t word_of(const struct agent_word *w, const void *params)
{
	const char *at = (const char *)params + w->off;
	uint64_t v = 0;

	if (w->how == AGENT_WORD_ADDRESS)
		v = (uint64_t)(uintptr_t)at;
	else if (w->width && w->width <= 8)
		memcpy(&v, at, w->width);
	if (w->how == AGENT_WORD_SIGN && w->width && w->width < 8)
		v = (uint64_t)((int64_t)(v << (64 - 8 * w->width)) >> (64 - 8 * w->width));
	return v;
}

static void read_words(struct frame *f, const struct agent_call *call, const void *params)
{
	f->params = params;
	for (int i = 0; i < call->spec.nwords; i++)
		f->data[i] = word_of(&call->words[i], params);
	f->used = call->spec.nwords * 8u;
	f->got = 0;
}

static void send_call(const struct frame *f, const struct func *fn, unsigned int kind,
		      uint64_t end_ns, int64_t ret, unsigned int flags)
{
	struct ct_call *r =
		agent_record(kind, sizeof(*r) + f->used, f->start_ns, end_ns, agent_tid());

	if (!r)
		return;
	r->h.flags = (uint16_t)(flags | (fn->flags & AGENT_F_PER_THREAD ? CT_F_PER_THREAD : 0) |
				(f->hidden ? CT_F_HIDDEN : 0));
	r->func = fn->row;
	r->nwords = fn->call->spec.nwords;
	r->depth = f->depth;
	r->got = f->got;
	r->ret = ret;
	memcpy(r->words, f->data, f->used);
	queue_commit(r);
}

/* Sends the name of the call's kernel if CUPTI has it: once for each handle, and again if the name
 * has changed. */
static void tell_kernel(const struct frame *f, const struct agent_call *call, const char *symbol)
{
	uint64_t handle, name, mixed;
	struct ct_name *r;
	size_t len, at;

	if (!symbol || call->kernel >= call->spec.nwords)
		return;
	handle = f->data[call->kernel];
	if (!handle)
		return;
	name = names_handle(symbol);
	mixed = name ^ (uint64_t)agent.attached << 40;
	at = (handle * 0x9e3779b97f4a7c15ULL) >> 52 & (HANDLES - 1);
	if (atomic_load(&handles[at].handle) == handle && atomic_load(&handles[at].name) == mixed)
		return;
	len = strnlen(symbol, CT_NAME_MAX);
	r = agent_record(CT_NAME, sizeof(*r) + len, f->start_ns, f->start_ns, agent_tid());
	if (!r)
		return;
	r->handle = handle;
	r->len = (uint32_t)len;
	r->source = CT_NAME_DEVICE;
	r->cut = symbol[len] != '\0';
	memcpy(r->name, symbol, len);
	queue_commit(r);
	atomic_store(&handles[at].handle, handle);
	atomic_store(&handles[at].name, mixed);
}

/* Returns the number of calls around a new call; -1: it is folded into them. */
static int depth_of(const struct frames *fs, const struct func *fn)
{
	const struct frame *top = fs->n ? &fs->at[fs->n - 1] : NULL;
	const struct func *outer;
	int depth;

	if (!top)
		return 0;
	outer = &agent.funcs[top->domain][top->cbid];
	depth = top->depth + !(outer->call && outer->call->spec.flags & CT_S_INTERNAL);
	if (depth && !(agent.want.flags & AGENT_S_NESTED) && !(fn->call->spec.flags & CT_S_ALWAYS))
		return -1;
	return depth;
}

/* What is further away than this may be another stack, of which the order of addresses says nothing. */
#define SAME_STACK (1u << 20)

static bool is_near(const void *p, uintptr_t here)
{
	return (uintptr_t)p - here + SAME_STACK <= 2 * SAME_STACK;
}

/* Are the arguments not there any more? They are read by a system call: the place may have been on a stack of a
 * coroutine that is unmapped now. What cannot be read is taken for unchanged. */
static bool has_changed(const struct frame *f, const struct agent_call *call)
{
	char now[256];
	size_t n = 0;

	for (int i = 0; i < call->spec.nwords; i++) {
		size_t end = call->words[i].off + (size_t)call->words[i].width;

		n = end > n ? end : n;
	}
	if (!n || n > sizeof(now) || !read_memory(now, (uintptr_t)f->params, n))
		return false;
	for (int i = 0; i < call->spec.nwords; i++)
		if (call->words[i].how != AGENT_WORD_ADDRESS &&
		    word_of(&call->words[i], now) != f->data[i])
			return true;
	return false;
}

/* Was a call left without a return, by longjmp() or an exception, before the call that has these params? The stack
 * grows down: the frame of a function that is under way lies above ours, and above those of all that it calls, and has
 * the same arguments until the function returns. */
static bool is_left(const struct frame *f, const void *params)
{
	const struct agent_call *call = agent.funcs[f->domain][f->cbid].call;
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	if (!is_near(f->params, here) || !is_near(params, here))
		return false;
	if ((uintptr_t)f->params < here || params >= f->params)
		return true;
	return call && has_changed(f, call);
}

/* Ends the calls from the n-th on: they were left by a jump. */
static void end_left(struct frames *fs, uint32_t n, uint64_t now)
{
	for (uint32_t i = fs->n; i > n; i--) {
		const struct frame *f = &fs->at[i - 1];

		send_call(f, &agent.funcs[f->domain][f->cbid], CT_CALL, now, 0, CT_F_UNFINISHED);
	}
	fs->n = n;
}

/* Does another process make this call: a child of vfork(), or of clone() with CLONE_VM? It runs in this memory, with
 * this thread's storage, and only the kernel tells the two apart. Its calls are not this process's. */
static bool is_childs(void)
{
	uint64_t none = 0;

	if ((uint32_t)syscall(SYS_getpid) == agent.pid)
		return false;
	atomic_compare_exchange_strong(&agent.child_ns, &none, clock_now());
	return true;
}

static void call_enters(const struct func *fn, int domain, uint32_t cbid,
			const struct cupti_call *data)
{
	struct frames *fs = my_frames();
	struct cursor c;
	int depth;

	if (!fs || !data->params || is_childs())
		return;
	for (uint32_t i = 0; i < fs->n; i++)
		if (is_left(&fs->at[i], data->params))
			end_left(fs, i, clock_now());
	depth = depth_of(fs, fn);
	if (depth < 0)
		return;
	if (fs->n == CT_MAX_FRAMES) {
		atomic_fetch_add(&agent.too_deep, 1);
		return;
	}
	c.f = &fs->at[fs->n];
	c.spec = &fn->call->spec;
	c.f->cbid = cbid;
	c.f->domain = (uint8_t)domain;
	c.f->depth = (uint8_t)depth;
	c.f->hidden = !(c.spec->flags & CT_S_SHOWN) ||
		      (depth && !(agent.want.flags & AGENT_S_NESTED));
	read_words(c.f, fn->call, data->params);
	for (unsigned int i = 0; i < c.spec->nentry; i++)
		read_one(&c, i, false);
	tell_kernel(c.f, fn->call, data->symbol);
	c.f->start_ns = clock_now();
	fs->n++;
	if (agent.want.flags & AGENT_S_ENTER)
		send_call(c.f, fn, CT_ENTER, c.f->start_ns, 0, 0);
	if (c.spec->flags & CT_S_CALLBACK || c.spec->more & CT_S_ENTRY_ONLY) {
		fs->n--;
		send_call(c.f, fn, CT_CALL, c.f->start_ns, 0, CT_F_NO_RETURN);
	}
}

/* The offsets of the reads at entry, for reads at return that follow their pointers. */
static void offsets(struct cursor *c)
{
	uint32_t at = c->spec->nwords * 8u;

	for (unsigned int i = 0; i < c->spec->nentry; i++) {
		uint64_t head = c->spec->reads[i].len;

		if (!(c->f->got >> i & 1))
			continue;
		c->at[i] = (uint16_t)at;
		if (c->spec->reads[i].kind != CT_READ_BYTES) {
			memcpy(&head, (const char *)c->f->data + at, 8);
			head &= ~CT_STR_CUT;
			at += 8;
		}
		at += (uint32_t)((head + 7) & ~7ULL);
	}
}

static void send_cause(const struct func *fn, uint32_t correlation, uint64_t start_ns,
		       uint64_t end_ns)
{
	struct ct_cause *r = agent_record(CT_CAUSE, sizeof(*r), start_ns, end_ns, agent_tid());

	if (!r)
		return;
	r->correlation = correlation;
	r->func = fn->row;
	queue_commit(r);
}

static void call_leaves(const struct func *fn, int domain, uint32_t cbid,
			const struct cupti_call *data)
{
	uint64_t now = clock_now();
	struct frames *fs = my_frames();
	struct cursor c = { .spec = &fn->call->spec };
	uint32_t code = 0, at;
	bool failed;

	if (!fs)
		return;
	/* calls that began inside and did not end were left by a jump */
	for (at = fs->n; at > 0; at--)
		if (fs->at[at - 1].cbid == cbid && fs->at[at - 1].domain == domain)
			break;
	/* a child in this memory finds the calls of its parent */
	if (!at || (fs->at[at - 1].params != data->params && is_childs()))
		return;
	end_left(fs, at, now);
	fs->n = at - 1;
	c.f = &fs->at[at - 1];
	if (data->result)
		memcpy(&code, data->result, sizeof(code));
	failed = c.spec->flags & CT_S_ERROR && code;
	if (!failed && c.spec->nreads > c.spec->nentry) {
		offsets(&c);
		for (unsigned int i = c.spec->nentry; i < c.spec->nreads; i++)
			read_one(&c, i, true);
	}
	if (fn->flags & AGENT_F_CAUSE && !c.f->depth && agent.want.kinds)
		send_cause(fn, data->correlation, c.f->start_ns, now);
	if (now - c.f->start_ns >= agent.want.min_duration_ns || c.spec->flags & CT_S_ALWAYS)
		send_call(c.f, fn, CT_CALL, now, code, 0);
}

/* ---- only correlations ---- */

/* Also while the agent leaves: the work of a call that was under way then is on its way, and belongs to it. */
static void cause_only(const struct func *fn, const struct cupti_call *data)
{
	if (!data->data)
		return;
	if (data->site == CUPTI_SITE_ENTER)
		*data->data = clock_now();
	else if (*data->data)
		send_cause(fn, data->correlation, *data->data, clock_now());
}

/* ---- resources and states ---- */

/* Sends a record of a graph's node. id 0: that nodes are reported from now on. */
static void send_node(uint64_t id, uint64_t origin)
{
	uint64_t now = clock_now();
	struct ct_node *n = agent_record(CT_NODE, sizeof(*n), now, now, agent_tid());

	if (!n)
		return;
	n->w.func = CT_NO_FUNC;
	n->w.channel = 0xffff;
	n->w.device = n->w.context = n->w.stream = CT_UNKNOWN;
	n->w.graph_node = id;
	n->origin = origin;
	queue_commit(n);
}

/* A node of a graph was made: by a call that was captured, by a call that adds a node, or from
 * another node when a graph is instantiated or copied. */
static void node(uint32_t cbid, const struct cupti_graph_data *d)
{
	const struct cupti *c = &agent.cupti;
	uint64_t id = 0, origin = 0;

	if (!d || d->type > CUPTI_NODE_MEMSET || c->cuptiGetGraphNodeId(d->node, &id) || !id)
		return;
	if (cbid == CUPTI_RES_NODE_CLONED && c->cuptiGetGraphNodeId(d->original, &origin))
		return;
	send_node(id, origin);
}

static void resource(uint32_t cbid, const struct cupti_resource *r)
{
	const struct cupti *c = &agent.cupti;
	uint64_t now = clock_now();
	uint32_t id = 0;

	if (cbid == CUPTI_RES_STREAM_CREATED && c->cuptiGetStreamIdEx && c->cuptiGetContextId) {
		uint32_t context = CT_UNKNOWN;
		struct ct_stream *s;

		if (c->cuptiGetStreamIdEx(r->context, r->stream, 0, &id) ||
		    c->cuptiGetContextId(r->context, &context))
			return;
		s = agent_record(CT_STREAM, sizeof(*s), now, now, agent_tid());
		if (!s)
			return;
		s->id = id;
		s->context = context;
		s->handle = (uint64_t)(uintptr_t)r->stream;
		queue_commit(s);
	} else if (cbid == CUPTI_RES_CONTEXT_CREATED && c->cuptiGetContextId) {
		if (!c->cuptiGetContextId(r->context, &id))
			contexts_handle(r->context, id);
	} else if (cbid == CUPTI_RES_NODE_CREATED || cbid == CUPTI_RES_NODE_CLONED) {
		node(cbid, r->descriptor);
	} else if (cbid == CUPTI_RES_CONTEXT_DESTROYS) {
		/* CUPTI delivers its records while the numbers in them are still valid */
		device_flush(false);
	}
}

static void state(uint32_t cbid, const struct cupti_state *s)
{
	if (cbid != CUPTI_STATE_FATAL || atomic_load(&agent.fatal))
		return;
	agent.fatal_code = s->result;
	strncpy(agent.fatal_text, s->message ? s->message : "no reason given",
		sizeof(agent.fatal_text) - 1);
	atomic_store(&agent.fatal, true);
	agent_wake();
}

/* The one thread that ends CUPTI, in the exit of a call. */
static void maybe_finalize(void)
{
	bool yes = true;
	int r;

	if (!atomic_compare_exchange_strong(&agent.finalize, &yes, false))
		return;
	r = agent.cupti.cuptiFinalize();
	if (r) {
		atomic_store(&agent.finalize_err, r);
	} else {
		agent.kernels_ended = false;
		atomic_store(&agent.finalized, true);
	}
}

static void maybe_begin_kernels(void)
{
	bool yes = true;

	/* first, so that who withdraws the request waits for this thread if it was too late */
	atomic_fetch_add(&agent.kernels_begin, 1);
	if (atomic_compare_exchange_strong(&agent.kernels_asked, &yes, false))
		refused(REFUSED_KERNELS, activity_enable(CUPTI_KIND_KERNEL, false));
	atomic_fetch_sub(&agent.kernels_begin, 1);
}

static void callback(int domain, uint32_t cbid, const void *data, int life)
{
	const struct cupti_call *call = data;
	const struct func *fn;

	if (domain == CUPTI_RESOURCE) {
		if (life == RUNNING)
			resource(cbid, data);
		return;
	}
	if (domain == CUPTI_STATE) {
		state(cbid, data);
		return;
	}
	if (domain != CUPTI_DRIVER && domain != CUPTI_RUNTIME)
		return;
	if (life == RUNNING && cbid < FUNCS_MAX) {
		fn = &agent.funcs[domain][cbid];
		/* one that is being destroyed has no number any more */
		if (agent.want.kinds && call->context && call->context_id &&
		    call->site == CUPTI_SITE_ENTER)
			contexts_handle(call->context, call->context_id);
		if (fn->flags & AGENT_F_UNLOADS)
			call->site == CUPTI_SITE_ENTER ? names_unloading() : names_unloaded();
		if (fn->flags & AGENT_F_CALL && call->site == CUPTI_SITE_ENTER)
			call_enters(fn, domain, cbid, call);
		else if (fn->flags & AGENT_F_CALL)
			call_leaves(fn, domain, cbid, call);
		else if (fn->flags & AGENT_F_CAUSE)
			cause_only(fn, call);
	}
	if (call->site != CUPTI_SITE_EXIT)
		return;
	if (life == STOPPING && cbid < FUNCS_MAX) {
		fn = &agent.funcs[domain][cbid];
		if (fn->flags & AGENT_F_CAUSE && !(fn->flags & AGENT_F_CALL))
			cause_only(fn, call);
	}
	if (atomic_load_explicit(&agent.finalize, memory_order_relaxed))
		maybe_finalize();
	else if (atomic_load_explicit(&agent.kernels_asked, memory_order_relaxed))
		maybe_begin_kernels();
}

void calls_callback(void *user, int domain, uint32_t cbid, const void *data)
{
	int life = atomic_load_explicit(&agent.state, memory_order_acquire), saved = errno;

	(void)user;
	if (life == IDLE || !data || !agent.pid)
		return;
	callback(domain, cbid, data, life);
	/* the program must not see that a read of its memory failed */
	errno = saved;
}

/* Returns whether CUPTI's own records report the calls. In a program that was already running they
 * do not come (seen with CUPTI 13.0). */
static bool has_records(void)
{
	return agent.early && !(agent.faults & FAULT_API) &&
	       agent.cupti.cuptiActivityEnableRuntimeApi &&
	       agent.cupti.cuptiActivityEnableDriverApi && !(agent.want.flags & AGENT_S_CALLS);
}

/* Returns whether records of nodes will come whose calls have to be found. */
static bool follows_nodes(void)
{
	return agent.want.kinds & AGENT_KERNEL && !(agent.want.flags & AGENT_S_GRAPHS) &&
	       agent.cupti.cuptiGetGraphNodeId;
}

static void enable_callback(int domain, uint32_t id)
{
	refused(REFUSED_CALLBACKS,
		agent.cupti.cuptiEnableCallback(1, agent.subscriber, domain, id));
}

/* Asks CUPTI for the ids that the user side named, and no others. */
int calls_enable(void)
{
	bool calls = agent.want.flags & AGENT_S_CALLS, records = has_records();

	for (int d = AGENT_DRIVER; d <= AGENT_RUNTIME; d++) {
		for (uint32_t id = 0; id < FUNCS_MAX; id++) {
			const struct func *f = &agent.funcs[d][id];
			bool cause = f->flags & AGENT_F_CAUSE && agent.want.kinds;

			if (cause && records)
				refused(REFUSED_CALLBACKS, activity_api(d, id, true));
			if ((calls && f->flags & AGENT_F_CALL) || (cause && !records) ||
			    f->flags & AGENT_F_UNLOADS)
				enable_callback(d, id);
		}
	}
	if (agent.want.kinds) {
		enable_callback(CUPTI_RESOURCE, CUPTI_RES_CONTEXT_CREATED);
		enable_callback(CUPTI_RESOURCE, CUPTI_RES_STREAM_CREATED);
		enable_callback(CUPTI_RESOURCE, CUPTI_RES_CONTEXT_DESTROYS);
	}
	if (follows_nodes()) {
		enable_callback(CUPTI_RESOURCE, CUPTI_RES_NODE_CREATED);
		enable_callback(CUPTI_RESOURCE, CUPTI_RES_NODE_CLONED);
		send_node(0, 0);
	}
	refused(REFUSED_CALLBACKS, agent.cupti.cuptiEnableDomain(1, agent.subscriber, CUPTI_STATE));
	return 0;
}

void calls_disable(void)
{
	for (int d = AGENT_DRIVER; d <= AGENT_RUNTIME && has_records() && agent.want.kinds; d++)
		for (uint32_t id = 0; id < FUNCS_MAX; id++)
			if (agent.funcs[d][id].flags & AGENT_F_CAUSE)
				refused(REFUSED_END, activity_api(d, id, false));
}

void calls_forget(void)
{
	for (size_t i = 0; i < HANDLES; i++)
		atomic_store(&handles[i].handle, 0);
}
