/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * record.c - checks a record before any other code looks at it: its sizes, and the words and pieces
 * of memory that it announces.
 *
 * The content of a call record depends on its function's capture spec. So this file compiles each
 * spec once, at the first record of the function. Knows the wire and the specs; knows no source.
 */
#include <errno.h>
#include <string.h>

#include "event.h"
#include "../../wire/control.h"

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

/* Number of bytes that read i occupies at `at`, where `left` bytes remain; 0: malformed. */
static size_t record_read_bytes(const struct layout *l, int i, const char *at, size_t left)
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
	uint8_t most;

	/* the last words */
	size_t stack_id = (c->h.flags & CT_F_STACK ? 8 : 0) + (c->h.flags & CT_F_SCOPE ? 8 : 0);

	if (c->h.size < sizeof(*c) + stack_id || c->h.size > sizeof(*c) + CT_DATA_MAX + stack_id ||
	    c->func >= api_nfuncs)
		return -EBADMSG;
	l = layout_of(c->func);
	most = api_funcs[c->func].layer ? CT_LAYER_WORDS : CT_MAX_WORDS;
	if (l->bad || c->nwords > most || c->got >> l->nreads)
		return -EBADMSG;
	/* Of a call that began before the trace, only that it is under way is known. */
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
		n = record_read_bytes(l, i, at, left);
		if (!n)
			return -EBADMSG;
		at += n;
		left -= n;
	}
	return 0;
}

/* Checks a record that consists of a fixed part and `bytes` that it announces. */
static int check_tail(const struct ct_hdr *h, size_t fixed, size_t bytes)
{
	return fixed + bytes <= h->size ? 0 : -EBADMSG;
}

static int check_more(const struct ct_more *m)
{
	if (m->func >= api_nfuncs || m->read >= CT_MAX_READS || m->len > CT_MORE_PIECE ||
	    m->offset > CT_NAME_MAX)
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
	case CT_STACK_COPY: break;
	case CT_STACK_ADDRESSES:
		if (s->len % 8 || s->len / 8 > CT_ADDRESSES_MAX)
			return -EBADMSG;
		break;
	case CT_STACK_LIVE:
		if (s->len)
			return -EBADMSG;
		break;
	default: return -EBADMSG;
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
			  round_up8(c->name_len) + round_up8(c->file_len) +
				  round_up8(c->table_len));
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
	return check_tail(&p->h, sizeof(*p),
			  (size_t)p->exe_len + p->cmdline_len + p->container_len + p->pod_len +
				  p->host_len + p->boot_len);
}

static int check_foreign(const struct ct_foreign *f)
{
	if (f->nwords > CT_MAX_WORDS || (f->kind != CT_CALL && f->kind != CT_ENTER))
		return -EBADMSG;
	return check_tail(&f->h, sizeof(*f), f->nwords * 8u + f->name_len + f->domain_len);
}

/* The numbers may have any value: the code that adds them up must avoid overflow. */
static int check_muted(const struct ct_muted *m)
{
	return check_tail(&m->h, sizeof(*m), (size_t)m->domain_len + m->name_len);
}

static bool good_func(uint16_t func)
{
	return func < api_nfuncs || func == CT_NO_FUNC;
}

static int check_unprobed(const struct ct_unprobed *u)
{
	return u->h.end_ns < u->h.start_ns || u->ended > u->processes || u->comm[CT_COMM_LEN - 1]
		       ? -EBADMSG
		       : 0;
}

static int check_hole(const struct ct_hole *h)
{
	if (h->h.end_ns != h->h.start_ns || (h->until_ns && h->until_ns < h->h.start_ns) ||
	    h->text_len > CT_HOLE_TEXT_MAX || h->comm[CT_COMM_LEN - 1])
		return -EBADMSG;
	return check_tail(&h->h, sizeof(*h), h->text_len);
}

static int check_work(const struct ct_work *w)
{
	return w->h.end_ns >= w->h.start_ns && good_func(w->func) ? 0 : -EBADMSG;
}

static int check_marker(const struct ct_marker *m)
{
	return check_tail(&m->h, sizeof(*m), (size_t)m->text_len + m->domain_len);
}

/* A call of a function of a layer: it has a word about scopes. */
static int check_layer(const struct ct_call *c)
{
	int err = check_call(c);

	return err || (c->h.flags & CT_F_SCOPE && api_funcs[c->func].layer) ? err : -EBADMSG;
}

static int check_scope(const struct ct_scope *s)
{
	size_t texts = (size_t)s->text_len + s->domain_len + s->category_len + s->layer_len +
		       s->fields_len;

	if (s->kind >= CT_SCOPE_KIND_END || !s->kind || s->h.end_ns < s->h.start_ns)
		return -EBADMSG;
	if (s->kind == CT_SCOPE_COLLECTIVE || s->kind == CT_SCOPE_COMMUNICATOR)
		texts += sizeof(struct ct_collective);
	else if (s->kind == CT_SCOPE_GEMM)
		texts += sizeof(struct ct_gemm);
	return check_tail(&s->h, sizeof(*s), texts);
}

static int check_metric(const struct ct_metric *m)
{
	return check_tail(&m->h, sizeof(*m), (size_t)m->name_len + m->unit_len);
}

static int check_call_count(const struct ct_call_count *t)
{
	if (t->func >= api_nfuncs || t->nbuckets > CT_HIST_BUCKETS)
		return -EBADMSG;
	return check_tail(&t->h, sizeof(*t), t->nbuckets * sizeof(__u32));
}

static int check_comm(const char comm[CT_COMM_LEN])
{
	return memchr(comm, '\0', CT_COMM_LEN) ? 0 : -EBADMSG;
}

static int check_signal(const void *rec)
{
	const struct ct_signal *s = rec;

	if (check_comm(s->comm) || check_comm(s->by_comm))
		return -EBADMSG;
	return s->len > CT_SIGNAL_STACK ? -EBADMSG : check_tail(&s->h, sizeof(*s), s->len);
}

static int check_segment(const struct ct_host_segment *s)
{
	return check_comm(s->comm) || check_comm(s->other) ||
			       !memchr(s->object, '\0', sizeof(s->object))
		       ? -EBADMSG
		       : 0;
}

int record_check(const void *rec, size_t avail)
{
	const struct ct_hdr *h = rec;

	if (avail < sizeof(*h) || h->size > avail || h->size < sizeof(*h) || h->size % 8)
		return -EBADMSG;
	/* Kinds are append-only: a record of a kind that is not known here has at least the
	 * head, and sinks skip it. */
	if (h->kind >= CT_KIND_END)
		return 0;
	if (h->size < record_kinds[h->kind].fixed)
		return -EBADMSG;
	if (kind_is(h->kind, KIND_CALL))
		return check_call(rec);
	if (kind_is(h->kind, KIND_WORK))
		return check_work(rec);
	switch (h->kind) {
	case CT_PROCESS:
	case CT_EXEC: return check_comm(((const struct ct_process *)rec)->comm);
	case CT_THREAD_NAME: return check_comm(((const struct ct_thread_name *)rec)->comm);
	case CT_PROCESS_INFO: return check_info(rec);
	case CT_FOREIGN: return check_foreign(rec);
	case CT_MUTED: return check_muted(rec);
	case CT_UNPROBED: return check_unprobed(rec);
	case CT_HOLE: return check_hole(rec);
	case CT_MORE: return check_more(rec);
	case CT_ABSENT: return check_absent(rec);
	case CT_NAME: return check_name(rec);
	case CT_USER_STACK: return check_user_stack(rec);
	case CT_PY_STACK: return check_py_stack(rec);
	case CT_PY_CODE: return check_py_code(rec);
	case CT_FRAME: return check_frame(rec);
	case CT_STACK: return check_stack(rec);
	case CT_CAUSE: return good_func(((const struct ct_cause *)rec)->func) ? 0 : -EBADMSG;
	case CT_MARKER: return check_marker(rec);
	case CT_SCOPE_BEGIN:
	case CT_SCOPE_END: return check_scope(rec);
	case CT_LAYER_BEGIN:
	case CT_LAYER_END: return check_layer(rec);
	case CT_METRIC: return check_metric(rec);
	case CT_COUNTER:
		return check_tail(h, sizeof(struct ct_counter),
				  ((const struct ct_counter *)rec)->n * sizeof(struct ct_value));
	case CT_CALL_COUNT: return check_call_count(rec);
	case CT_EVENT:
		return check_tail(h, sizeof(struct ct_event),
				  ((const struct ct_event *)rec)->text_len);
	case CT_DEVICE:
		return check_tail(h, sizeof(struct ct_device),
				  ((const struct ct_device *)rec)->name_len);
	case CT_HOST_SEGMENT: return check_segment(rec);
	case CT_SIGNAL: return check_signal(rec);
	default: return 0;
	}
}

uint64_t event_place_ns(const struct ct_hdr *h)
{
	bool row = kind_is(h->kind, KIND_CALL | KIND_DEVICE) || h->kind == CT_LOST ||
		   h->kind == CT_FOREIGN;

	if (!row)
		return 0;
	return h->end_ns > h->start_ns ? h->end_ns : h->start_ns;
}
