/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * record.c - checks a record before anything looks at it: sizes, the words and the pieces of memory that it announces.
 *
 * What a call record holds depends on its function's capture spec, so the specs are compiled here once each, at the
 * first record of a function. Knows the wire and the specs; knows no source.
 */
#include <errno.h>
#include <string.h>

#include "event.h"

struct layout {
	bool known, bad;
	uint8_t nwords, nreads;
	struct {
		uint8_t kind;
		uint16_t len, elem;
	} reads[CT_MAX_READS];
};

static struct layout layouts[CT_MAX_FUNCS];

static const struct layout *layout_of(unsigned int func)
{
	struct layout *l = &layouts[func];
	struct ct_spec spec;

	if (l->known)
		return l;
	memset(&spec, 0, sizeof(spec));
	l->bad = api_spec((int)func, API_ARCH_HERE, true, &spec) != 0 || spec.nreads > CT_MAX_READS;
	l->known = true;
	l->nwords = spec.nwords;
	l->nreads = l->bad ? 0 : spec.nreads;
	for (int i = 0; i < l->nreads; i++) {
		l->reads[i].kind = spec.reads[i].kind;
		l->reads[i].len = spec.reads[i].len;
		l->reads[i].elem = spec.reads[i].elem;
	}
	return l;
}

/* Bytes that read i takes at `at`, of which `left` remain; 0: malformed. */
static size_t read_bytes(const struct layout *l, int i, const char *at, size_t left)
{
	uint64_t head;
	size_t n;

	if (l->reads[i].kind == CT_READ_BYTES) {
		n = l->reads[i].len;
	} else {
		if (left < sizeof(head))
			return 0;
		memcpy(&head, at, sizeof(head));
		head &= ~CT_STR_CUT;
		if (head > l->reads[i].len)
			return 0;
		n = (size_t)head + sizeof(head);
	}
	n = (n + 7) & ~(size_t)7;
	return n <= left ? n : 0;
}

static int check_call(const struct ct_call *c)
{
	const struct layout *l;
	const char *at;
	size_t left;

	size_t stack_id = c->h.flags & CT_F_STACK ? 8 : 0; /* the last word */

	if (c->h.size < sizeof(*c) + stack_id || c->h.size > sizeof(*c) + CT_DATA_MAX + stack_id ||
	    c->func >= api_nfuncs || c->func >= CT_MAX_FUNCS)
		return -EBADMSG;
	l = layout_of(c->func);
	if (l->bad || c->nwords > CT_MAX_WORDS || c->got >> l->nreads)
		return -EBADMSG;
	/* Of a call that began before the trace nothing is known but that it is under way. */
	if (c->nwords < l->nwords && !(c->h.flags & CT_F_BEFORE && !c->nwords && !c->got))
		return -EBADMSG;
	left = c->h.size - sizeof(*c) - stack_id;
	if (left < c->nwords * 8u)
		return -EBADMSG;
	if (!c->got)
		return 0;
	at = (const char *)&c->words[c->nwords];
	left -= c->nwords * 8u;
	for (int i = 0; i < l->nreads; i++) {
		size_t n;

		if (!(c->got >> i & 1))
			continue;
		n = read_bytes(l, i, at, left);
		if (!n)
			return -EBADMSG;
		at += n;
		left -= n;
	}
	return 0;
}

/* A record of a fixed part and `bytes` that it announces. */
static int check_tail(const struct ct_hdr *h, size_t fixed, size_t bytes)
{
	return fixed + bytes <= h->size ? 0 : -EBADMSG;
}

static int check_more(const struct ct_more *m)
{
	if (m->func >= api_nfuncs || m->read >= CT_MAX_READS || m->len > CT_MORE_PIECE || m->offset > CT_NAME_MAX)
		return -EBADMSG;
	return check_tail(&m->h, sizeof(*m), m->len);
}

static int check_absent(const struct ct_absent *a)
{
	return a->func >= api_nfuncs || a->read >= CT_MAX_READS ? -EBADMSG : 0;
}

static int check_name(const struct ct_name *n)
{
	return n->len > CT_NAME_MAX ? -EBADMSG : check_tail(&n->h, sizeof(*n), n->len);
}

static int check_user_stack(const struct ct_user_stack *s)
{
	if (s->len > CT_STACK_MAX || s->nsaved > CT_MAX_FRAMES)
		return -EBADMSG;
	switch (s->how) {
	case CT_STACK_COPY:
		break;
	case CT_STACK_ADDRESSES:
		if (s->len % 8 || s->len / 8 > CT_ADDRESSES_MAX)
			return -EBADMSG;
		break;
	case CT_STACK_LIVE:
		if (s->len)
			return -EBADMSG;
		break;
	default:
		return -EBADMSG;
	}
	return check_tail(&s->h, sizeof(*s), s->len);
}

static int check_py_stack(const struct ct_py_stack *s)
{
	if (s->n > CT_PY_PIECE || s->first + s->n > CT_PY_MAX)
		return -EBADMSG;
	return check_tail(&s->h, sizeof(*s), s->n * sizeof(s->frames[0]));
}

static bool py_kind(uint8_t kind)
{
	return kind == 0 || kind == 1 || kind == 2 || kind == 4;
}

static size_t round_up8(size_t n)
{
	return (n + 7) & ~(size_t)7;
}

static int check_py_code(const struct ct_py_code *c)
{
	if (c->name_len > CT_PY_NAME || c->file_len > CT_PY_FILE || c->table_len > CT_PY_TABLE ||
	    !py_kind(c->name_kind) || !py_kind(c->file_kind))
		return -EBADMSG;
	return check_tail(&c->h, sizeof(*c),
			  round_up8(c->name_len) + round_up8(c->file_len) + round_up8(c->table_len));
}

static int check_frame(const struct ct_frame *f)
{
	return check_tail(&f->h, sizeof(*f), (size_t)f->function_len + f->file_len + f->object_len);
}

static int check_stack(const struct ct_stack *s)
{
	return check_tail(&s->h, sizeof(*s), s->nframes * sizeof(s->frames[0]));
}

static int check_info(const struct ct_process_info *p)
{
	if (p->h.size < sizeof(*p))
		return -EBADMSG;
	return check_tail(&p->h, sizeof(*p), (size_t)p->exe_len + p->cmdline_len + p->container_len + p->pod_len + p->host_len + p->boot_len);
}

static int check_foreign(const struct ct_foreign *f)
{
	if (f->h.size < sizeof(*f) || f->nwords > CT_MAX_WORDS || (f->kind != CT_CALL && f->kind != CT_ENTER))
		return -EBADMSG;
	return check_tail(&f->h, sizeof(*f), f->nwords * 8u + f->name_len + f->domain_len);
}

/* Its numbers may be any: whoever adds them up stays within a word. */
static int check_muted(const struct ct_muted *m)
{
	if (m->h.size < sizeof(*m))
		return -EBADMSG;
	return check_tail(&m->h, sizeof(*m), (size_t)m->domain_len + m->name_len);
}

/* The records of names and stacks. The fixed part is there before anything of it is looked at. */
static int check_definition(const struct ct_hdr *h)
{
	static const size_t fixed[CT_KIND_END] = {
		[CT_MORE] = sizeof(struct ct_more),	  [CT_NAME] = sizeof(struct ct_name),
		[CT_USER_STACK] = sizeof(struct ct_user_stack), [CT_PY_STACK] = sizeof(struct ct_py_stack),
		[CT_PY_CODE] = sizeof(struct ct_py_code), [CT_FRAME] = sizeof(struct ct_frame),
		[CT_STACK] = sizeof(struct ct_stack),	  [CT_ABSENT] = sizeof(struct ct_absent),
	};

	if (h->size < fixed[h->kind])
		return -EBADMSG;
	switch (h->kind) {
	case CT_MORE:
		return check_more((const struct ct_more *)h);
	case CT_ABSENT:
		return check_absent((const struct ct_absent *)h);
	case CT_NAME:
		return check_name((const struct ct_name *)h);
	case CT_USER_STACK:
		return check_user_stack((const struct ct_user_stack *)h);
	case CT_PY_STACK:
		return check_py_stack((const struct ct_py_stack *)h);
	case CT_PY_CODE:
		return check_py_code((const struct ct_py_code *)h);
	case CT_FRAME:
		return check_frame((const struct ct_frame *)h);
	default:
		return check_stack((const struct ct_stack *)h);
	}
}

static int check_unprobed(const struct ct_hdr *h)
{
	const struct ct_unprobed *u = (const struct ct_unprobed *)h;

	return h->size < sizeof(*u) || h->end_ns < h->start_ns || u->ended > u->processes || u->comm[CT_COMM_LEN - 1] ? -EBADMSG : 0;
}

/* Device work and what belongs to it: a fixed part, and for some a tail that it announces. */
static const uint16_t device_fixed[CT_KIND_END] = {
	[CT_KERNEL] = sizeof(struct ct_kernel),	    [CT_COPY] = sizeof(struct ct_copy),
	[CT_SET] = sizeof(struct ct_set),	    [CT_SYNC] = sizeof(struct ct_sync),
	[CT_GRAPH] = sizeof(struct ct_work),	    [CT_OVERHEAD] = sizeof(struct ct_overhead),
	[CT_MEMORY] = sizeof(struct ct_memory),	    [CT_MANAGED] = sizeof(struct ct_managed),
	[CT_MARKER] = sizeof(struct ct_marker),	    [CT_COUNTER] = sizeof(struct ct_counter),
	[CT_EVENT] = sizeof(struct ct_event),	    [CT_CLOCK] = sizeof(struct ct_clock),
	[CT_DEVICE] = sizeof(struct ct_device),	    [CT_CONTEXT] = sizeof(struct ct_context),
	[CT_STREAM] = sizeof(struct ct_stream),	    [CT_CAUSE] = sizeof(struct ct_cause),
	[CT_METRIC] = sizeof(struct ct_metric),	    [CT_TALLY] = sizeof(struct ct_tally),
	[CT_TAIL] = sizeof(struct ct_tail),
};

static int check_device(const struct ct_hdr *h)
{
	size_t fixed = device_fixed[h->kind];

	if (h->size < fixed)
		return -EBADMSG;
	switch (h->kind) {
	case CT_GRAPH:
	case CT_KERNEL:
	case CT_COPY:
	case CT_SET:
	case CT_SYNC:
	case CT_MEMORY:
	case CT_MANAGED:
		if (h->end_ns < h->start_ns)
			return -EBADMSG;
		return ((const struct ct_work *)h)->func < api_nfuncs || ((const struct ct_work *)h)->func == CT_NO_FUNC ?
			       0 :
			       -EBADMSG;
	case CT_CAUSE:
		return ((const struct ct_cause *)h)->func < api_nfuncs || ((const struct ct_cause *)h)->func == CT_NO_FUNC ?
			       0 :
			       -EBADMSG;
	case CT_MARKER:
		return check_tail(h, fixed,
				  (size_t)((const struct ct_marker *)h)->text_len + ((const struct ct_marker *)h)->domain_len);
	case CT_METRIC:
		return check_tail(h, fixed,
				  (size_t)((const struct ct_metric *)h)->name_len + ((const struct ct_metric *)h)->unit_len);
	case CT_COUNTER:
		return check_tail(h, fixed, (size_t)((const struct ct_counter *)h)->n * sizeof(struct ct_value));
	case CT_TALLY:
		if (((const struct ct_tally *)h)->func >= api_nfuncs || ((const struct ct_tally *)h)->nbuckets > CT_HIST_BUCKETS)
			return -EBADMSG;
		return check_tail(h, fixed, ((const struct ct_tally *)h)->nbuckets * sizeof(__u32));
	case CT_EVENT:
		return check_tail(h, fixed, ((const struct ct_event *)h)->text_len);
	case CT_DEVICE:
		return check_tail(h, fixed, ((const struct ct_device *)h)->name_len);
	default:
		return 0;
	}
}

int record_check(const void *rec, size_t avail)
{
	const struct ct_hdr *h = rec;

	if (avail < sizeof(*h) || h->size > avail || h->size < sizeof(*h) || h->size % 8)
		return -EBADMSG;
	switch (h->kind) {
	case CT_CALL:
	case CT_ENTER:
		return check_call(rec);
	case CT_PROCESS:
	case CT_EXEC:
		if (h->size < sizeof(struct ct_process) ||
		    !memchr(((const struct ct_process *)rec)->comm, '\0', CT_COMM_LEN))
			return -EBADMSG;
		return 0;
	case CT_THREAD_NAME:
		if (h->size < sizeof(struct ct_thread_name) ||
		    !memchr(((const struct ct_thread_name *)rec)->comm, '\0', CT_COMM_LEN))
			return -EBADMSG;
		return 0;
	case CT_PROCESS_INFO:
		return check_info(rec);
	case CT_FOREIGN:
		return check_foreign(rec);
	case CT_FORK:
		return h->size < sizeof(struct ct_fork) ? -EBADMSG : 0;
	case CT_MUTED:
		return check_muted(rec);
	case CT_NUMBER:
		return h->size < sizeof(struct ct_number) ? -EBADMSG : 0;
	case CT_EXIT:
		return h->size < sizeof(struct ct_exit) ? -EBADMSG : 0;
	case CT_LOST:
		return h->size < sizeof(struct ct_lost) ? -EBADMSG : 0;
	case CT_UNPROBED:
		return check_unprobed(h);
	case CT_MORE:
	case CT_NAME:
	case CT_USER_STACK:
	case CT_PY_STACK:
	case CT_PY_CODE:
	case CT_FRAME:
	case CT_STACK:
	case CT_ABSENT:
		return check_definition(h);
	default:
		if (h->kind < CT_KIND_END && device_fixed[h->kind])
			return check_device(h);
		/* Kinds are append-only: one that is not known here has at least the head, and sinks pass it over. */
		return 0;
	}
}

uint64_t event_place_ns(const struct ct_hdr *h)
{
	bool row = h->kind <= CT_EVENT || h->kind == CT_LOST || h->kind == CT_FOREIGN;

	if (!row)
		return 0;
	return h->end_ns > h->start_ns ? h->end_ns : h->start_ns;
}
