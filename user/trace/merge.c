/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * merge.c - see merge.h.
 *
 * Inputs of one boot of one host share their clock and process ids. Processes of other hosts get
 * numbers above any real pid: pid + (host << 22) (PID_MAX_LIMIT). Users see the old number, which
 * becomes the ns_pid. Each recording has its own ids of frames, stacks and metrics, so they are
 * numbered anew. Each host has its own GPUs.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../util/table/hash_map.h"
#include "align.h"
#include "merge.h"
#include "reader.h"

/* metrics with a larger number have no name when they are read (event/metrics.c) */
#define METRICS_MAX 4096

/* A record that was already written. */
struct written {
	uint64_t sum;
	uint64_t input; /* the index of the input that it came from */
};

struct input {
	char path[4096], host[256], boot[64];
	struct reader *reader;
	struct align *align;
	uint64_t start_ns, clock_error_ns;
	unsigned int group;	   /* the same for inputs of the same boot */
	const struct ct_hdr *next; /* NULL: it has ended */
	uint64_t key_ns;
	/* number among the files that one recorder wrote one after the other; 0: not such a file */
	unsigned int part;
	/* the part before this one, which must be read to its end first; NULL: none */
	const struct input *before;
	/* indexed by id modulo the size, as in the code that makes the ids */
	struct id {
		uint32_t old, new;
	} * frames, *stacks;
	uint32_t metrics[METRICS_MAX]; /* the new number; 0: not defined yet */
};

struct merge {
	struct input *inputs[MERGE_MAX];
	int n;
	unsigned int ngroups;
	uint32_t next_frame, next_stack, nmetrics;
	uint64_t metrics[METRICS_MAX]; /* a checksum of the name, unit and source of each metric */
	uint64_t records;	       /* written */
	uint64_t lost, same;
	/* two sets of written records: the newest, and those before. When the first is full, it
	 * replaces the second. They are not open if no two inputs are of one boot. */
	struct hash_map written[2];
	struct numbers *numbers;
	union {
		struct ct_hdr h;
		struct ct_work work;
		struct ct_kernel kernel;
		struct ct_call call;
		struct ct_process process;
		struct ct_process_info info;
		struct ct_fork fork;
		struct ct_hole hole;
		struct ct_frame frame;
		struct ct_host_segment segment;
		struct ct_stack stack;
		struct ct_metric metric;
		struct ct_counter counter;
		struct ct_event event;
		struct ct_device device;
		uint64_t room[65536 / 8 + 64];
	};
};

struct merge *merge_open(void)
{
	struct merge *m = calloc(1, sizeof(struct merge));

	if (!m)
		return NULL;
	m->numbers = numbers_open();
	if (!m->numbers) {
		merge_close(m);
		return NULL;
	}
	return m;
}

static void close_input(struct input *in)
{
	reader_close(in->reader);
	free(in->align);
	free(in->frames);
	free(in->stacks);
	free(in);
}

void merge_close(struct merge *m)
{
	if (!m)
		return;
	for (int i = 0; i < m->n; i++)
		close_input(m->inputs[i]);
	hash_map_close(&m->written[0]);
	hash_map_close(&m->written[1]);
	numbers_close(m->numbers);
	free(m);
}

/* ---- inputs ---- */

/* Reads the clock records of the whole recording. Blocks without definitions are skipped. */
static int read_clocks(struct input *in)
{
	const struct ct_hdr *h;
	int n;

	reader_range(in->reader, UINT64_MAX, 0);
	while ((n = reader_next(in->reader, &h)) == 1)
		if (h->kind == CT_CLOCK)
			align_clock(in->align, (const struct ct_clock *)h);
	reader_range(in->reader, 0, UINT64_MAX);
	reader_rewind(in->reader);
	return n;
}

static bool same_boot(const struct input *a, const struct input *b)
{
	return *a->boot && !strcmp(a->boot, b->boot) && !strcmp(a->host, b->host);
}

static int open_input(struct merge *m, struct input *in, const char *path)
{
	int err = reader_open(&in->reader, path);
	const char *head;

	if (err)
		return err;
	head = reader_head(in->reader);
	snprintf(in->path, sizeof(in->path), "%s", path);
	reader_value(head, "host", in->host, sizeof(in->host));
	reader_value(head, "boot_id", in->boot, sizeof(in->boot));
	in->start_ns = reader_number(head, "start_ns");
	in->clock_error_ns = reader_number(head, "clock_error_ns");
	in->part = reader_number(head, "part") <= UINT32_MAX
			   ? (unsigned int)reader_number(head, "part")
			   : 0;
	in->align = calloc(1, sizeof(*in->align));
	in->frames = calloc(STACK_TABLE_FRAMES, sizeof(*in->frames));
	in->stacks = calloc(STACK_TABLE_STACKS, sizeof(*in->stacks));
	if (!in->align || !in->frames || !in->stacks)
		return -ENOMEM;
	err = read_clocks(in);
	if (err)
		return err;
	in->group = m->ngroups;
	for (int i = 0; i < m->n && in->group == m->ngroups; i++)
		if (same_boot(m->inputs[i], in))
			in->group = m->inputs[i]->group;
	if (in->group && (!in->align->n || !m->inputs[0]->align->n))
		return -ENOTSUP;
	m->ngroups += in->group == m->ngroups;
	return 0;
}

int merge_add(struct merge *m, const char *path)
{
	struct input *in;
	int err;

	if (m->n == MERGE_MAX)
		return -E2BIG;
	in = calloc(1, sizeof(*in));
	if (!in)
		return -ENOMEM;
	err = open_input(m, in, path);
	if (err) {
		close_input(in);
		return err;
	}
	m->inputs[m->n++] = in;
	return 0;
}

/* Converts a time to the clock of the first input. */
static uint64_t placed(const struct merge *m, const struct input *in, uint64_t at_ns)
{
	return in->group && at_ns ? align_time(in->align, m->inputs[0]->align, at_ns) : at_ns;
}

int merge_count(const struct merge *m)
{
	return m->n;
}

void merge_placed(const struct merge *m, int i, struct merge_placed *out)
{
	const struct input *in = m->inputs[i], *first = m->inputs[0];

	*out = (struct merge_placed){ .path = in->path, .host = in->host, .same_host = !in->group };
	if (!in->group)
		return;
	out->shift_ns = (int64_t)(placed(m, in, in->start_ns) - in->start_ns);
	out->error_ns = in->align->error_ns + first->align->error_ns + in->clock_error_ns +
			first->clock_error_ns;
	out->drift_ns = align_drift(in->align) + align_drift(first->align);
	out->unsynced = !in->clock_error_ns || !first->clock_error_ns;
}

/* Returns how many inputs have a number under this key in their head. */
static int said_by(const struct merge *m, const char *key)
{
	int n = 0;

	for (int i = 0; i < m->n; i++)
		n += reader_number(reader_head(m->inputs[i]->reader), key) != 0;
	return n;
}

char *merge_head(const struct merge *m)
{
	const struct input *first = m->inputs[0];
	uint64_t start_ns = UINT64_MAX;
	char *head = NULL, text[1024];
	size_t len;
	FILE *f = open_memstream(&head, &len);

	if (!f)
		return NULL;
	for (int i = 0; i < m->n; i++) {
		uint64_t at = placed(m, m->inputs[i], m->inputs[i]->start_ns);

		start_ns = at < start_ns ? at : start_ns;
	}
	fprintf(f, "format %d\nversion %s\narch %s\nhost %s\nboot_id %s\n", TRACE_FORMAT,
		CT_VERSION, API_ARCH_HERE == API_AARCH64 ? "aarch64" : "x86_64", first->host,
		m->ngroups > 1 ? "" : first->boot);
	if (reader_value(reader_head(first->reader), "kernel", text, sizeof(text)))
		fprintf(f, "kernel %s\n", text);
	fprintf(f, "start_ns %llu\nrealtime_offset_ns %llu\nclock_error_ns %llu\ntraced %d recordings\n",
		(unsigned long long)start_ns,
		(unsigned long long)(first->align->n ? align_offset(first->align, start_ns)
						     : reader_number(reader_head(first->reader),
								     "realtime_offset_ns")),
		(unsigned long long)first->clock_error_ns, m->n);
	fprintf(f, "places %d\nwhole %d\nwork %d\n", said_by(m, "places") == m->n,
		said_by(m, "whole") == m->n, said_by(m, "work") > 0);
	for (int i = 0; i < m->n; i++) {
		struct merge_placed p;

		merge_placed(m, i, &p);
		fprintf(f, "merged %s of %s, moved by %lld ns, error %llu ns%s\n", p.path,
			*p.host ? p.host : "an unknown host", (long long)p.shift_ns,
			(unsigned long long)p.error_ns, p.unsynced ? " or more" : "");
	}
	if (fclose(f)) {
		free(head);
		return NULL;
	}
	return head;
}

/* ---- numbers ---- */

static uint32_t new_pid(const struct input *in, uint32_t pid)
{
	return pid ? pid + (in->group << PROCESS_HOST_SHIFT) : 0;
}

static uint32_t new_gpu(const struct input *in, uint32_t gpu)
{
	return gpu == CT_UNKNOWN ? gpu : gpu + (in->group << DEVICE_HOST_SHIFT);
}

static uint32_t define_id(struct id *ids, uint32_t size, uint32_t old, uint32_t *next)
{
	struct id *id = &ids[old % size];

	if (id->old != old || !id->new)
		*id = (struct id){ old, ++*next };
	return id->new;
}

static uint32_t find_id(const struct id *ids, uint32_t size, uint32_t old)
{
	return ids[old % size].old == old ? ids[old % size].new : 0;
}

/* A metric that is the same in several recordings gets one number, so that the numbers stay within
 * what a reader can keep names for. */
static uint32_t define_metric(struct merge *m, struct input *in, const struct ct_metric *r)
{
	uint64_t sum = 0xcbf29ce484222325ULL ^ r->source ^ (uint64_t)r->name_len << 32;
	uint32_t i;

	for (size_t k = 0; k < (size_t)r->name_len + r->unit_len; k++)
		sum = (sum ^ (uint8_t)r->text[k]) * 0x100000001b3ULL;
	for (i = 1; i <= m->nmetrics && m->metrics[i] != sum; i++)
		;
	if (i < METRICS_MAX)
		m->metrics[i] = sum;
	if (i < METRICS_MAX && i > m->nmetrics)
		m->nmetrics = i;
	if (r->id < METRICS_MAX)
		in->metrics[r->id] = i;
	return i;
}

static uint32_t find_metric(const struct input *in, uint32_t id)
{
	return id < METRICS_MAX ? in->metrics[id] : METRICS_MAX;
}

/* Converts the times and the stack's id of calls and of device work. */
static void place_work(struct merge *m, const struct input *in)
{
	m->work.call_ns = placed(m, in, m->work.call_ns);
	if (m->work.stack)
		m->work.stack = find_id(in->stacks, STACK_TABLE_STACKS, m->work.stack);
	if (m->h.kind == CT_KERNEL) {
		m->kernel.queued_ns = placed(m, in, m->kernel.queued_ns);
		m->kernel.submitted_ns = placed(m, in, m->kernel.submitted_ns);
	}
}

static void place_call(struct merge *m, const struct input *in)
{
	uint64_t id;

	if (!(m->h.flags & CT_F_STACK))
		return;
	memcpy(&id, (char *)m->room + m->h.size - sizeof(id), sizeof(id));
	id = find_id(in->stacks, STACK_TABLE_STACKS, (uint32_t)id);
	memcpy((char *)m->room + m->h.size - sizeof(id), &id, sizeof(id));
}

/* Adds the host and its boot to the description of a process. */
static void put_host(struct merge *m, const struct input *in)
{
	size_t used = (size_t)m->info.exe_len + m->info.cmdline_len + m->info.container_len +
		      m->info.pod_len,
	       host = strlen(in->host), boot = strlen(in->boot), n = host + boot;

	if (m->info.host_len || m->info.boot_len || sizeof(m->info) + used + n + 8 > UINT16_MAX - 8)
		return;
	memset(m->info.text + used, 0, n + 8);
	memcpy(m->info.text + used, in->host, host);
	memcpy(m->info.text + used + host, in->boot, boot);
	m->info.host_len = (uint16_t)host;
	m->info.boot_len = (uint16_t)boot;
	m->h.size = (uint16_t)((sizeof(m->info) + used + n + 7) & ~(size_t)7);
}

/* Converts the current record to what the result contains. False: the result does not contain
 * it. */
static bool place(struct merge *m, struct input *in)
{
	uint32_t pid = m->h.pid;

	m->h.start_ns = placed(m, in, m->h.start_ns);
	m->h.end_ns = placed(m, in, m->h.end_ns);
	/* rounding must not let it end before it begins */
	if (m->h.end_ns < m->h.start_ns)
		m->h.end_ns = m->h.start_ns;
	m->h.pid = new_pid(in, m->h.pid);
	m->h.tid = new_pid(in, m->h.tid);
	if (trace_shape(m->h.kind) == TRACE_SHAPE_WORK)
		place_work(m, in);
	switch (m->h.kind) {
	case CT_CALL:
	case CT_ENTER: place_call(m, in); break;
	case CT_CLOCK: /* the result has only one clock */ return !in->group;
	case CT_PROCESS:
	case CT_EXEC:
		if (!m->process.ns_pid)
			m->process.ns_pid = pid;
		m->process.ppid = new_pid(in, m->process.ppid);
		break;
	case CT_PROCESS_INFO: put_host(m, in); break;
	case CT_HOLE:
		if (!m->hole.ns_pid)
			m->hole.ns_pid = pid;
		m->h.end_ns = m->h.start_ns;
		if (m->hole.until_ns != CT_HOLE_OPEN)
			m->hole.until_ns = placed(m, in, m->hole.until_ns);
		/* one of a whole machine must not replace that of another recorder */
		if (!pid)
			m->h.tid = (uint32_t)hash_word(0, in->start_ns);
		break;
	case CT_FORK:
		if (!m->fork.child_ns_pid)
			m->fork.child_ns_pid = m->fork.child_pid;
		m->fork.child_pid = new_pid(in, m->fork.child_pid);
		break;
	case CT_FRAME:
		m->frame.id =
			define_id(in->frames, STACK_TABLE_FRAMES, m->frame.id, &m->next_frame);
		break;
	case CT_STACK:
		m->stack.id =
			define_id(in->stacks, STACK_TABLE_STACKS, m->stack.id, &m->next_stack);
		for (uint32_t i = 0; i < m->stack.nframes; i++)
			m->stack.frames[i] =
				find_id(in->frames, STACK_TABLE_FRAMES, m->stack.frames[i]);
		break;
	case CT_HOST_SEGMENT:
		m->segment.run_ns = placed(m, in, m->segment.run_ns);
		if (m->segment.wake_ns)
			m->segment.wake_ns = placed(m, in, m->segment.wake_ns);
		m->segment.other_pid = new_pid(in, m->segment.other_pid);
		m->segment.other_tid = new_pid(in, m->segment.other_tid);
		m->segment.stack = find_id(in->stacks, STACK_TABLE_STACKS, m->segment.stack);
		break;
	case CT_METRIC: m->metric.id = define_metric(m, in, &m->metric); break;
	case CT_COUNTER:
		m->counter.device = new_gpu(in, m->counter.device);
		for (uint32_t i = 0; i < m->counter.n; i++)
			m->counter.values[i].metric = find_metric(in, m->counter.values[i].metric);
		break;
	case CT_EVENT:
		m->event.device = pid ? m->event.device : new_gpu(in, m->event.device);
		break;
	case CT_DEVICE: m->device.id = pid ? m->device.id : new_gpu(in, m->device.id); break;
	}
	return true;
}

/* ---- what is in several inputs ---- */

static uint64_t add_bytes(uint64_t sum, const void *p, size_t n)
{
	const uint8_t *s = p;

	for (; n >= 8; n -= 8, s += 8) {
		uint64_t word;

		memcpy(&word, s, sizeof(word));
		sum = (sum ^ word) * 0x9e3779b97f4a7c15ULL;
		sum ^= sum >> 32;
	}
	while (n--)
		sum = (sum ^ *s++) * 0x100000001b3ULL;
	return sum;
}

/* Returns a checksum of everything in a record, except the stack's id and the count of losses
 * before it, which are specific to each recording. */
static uint64_t sum_of(struct merge *m, const struct input *in, const struct ct_hdr *h)
{
	uint64_t sum = 0xcbf29ce484222325ULL ^ in->group;
	size_t n = h->size;

	memcpy(m->room, h, n);
	m->h.lost = 0;
	if ((h->kind == CT_CALL || h->kind == CT_ENTER) && h->flags & CT_F_STACK)
		n -= sizeof(uint64_t);
	if (trace_shape(h->kind) == TRACE_SHAPE_WORK)
		m->work.stack = 0;
	for (uint32_t i = 0; h->kind == CT_COUNTER && i < m->counter.n; i++)
		m->counter.values[i].metric = find_metric(in, m->counter.values[i].metric);
	sum = add_bytes(sum, m->room, n);
	return sum ? sum : 1;
}

/* Whether another input of this boot had the same record. If not, the record is remembered. If
 * there is no memory, the answer is no. */
static bool was_written(struct merge *m, const struct input *in, uint64_t index,
			const struct ct_hdr *h)
{
	struct written want, *w = NULL;
	bool made;

	if (!m->written[0].size || trace_is_definition(h->kind) || h->kind == CT_NUMBER)
		return false;
	want.sum = sum_of(m, in, h);
	for (int i = 0; i < 2 && !w; i++)
		w = m->written[i].size ? hash_map_find(&m->written[i], &want.sum) : NULL;
	if (w)
		return w->input != index;
	if (m->written[0].n == MERGE_SAME) {
		hash_map_close(&m->written[1]);
		m->written[1] = m->written[0];
		hash_map_open(&m->written[0], sizeof(struct written), sizeof(want.sum), MERGE_SAME);
	}
	w = hash_map_get(&m->written[0], &want.sum, &made);
	if (w)
		w->input = index;
	return false;
}

/* ---- all of it ---- */

/* Reads the next record of an input. It is never ordered before the input's previous record. */
static int advance(struct merge *m, struct input *in)
{
	int n = reader_next(in->reader, &in->next);
	uint64_t at;

	if (n <= 0) {
		in->next = NULL;
		return n;
	}
	at = placed(m, in, in->next->end_ns);
	if (at > in->key_ns)
		in->key_ns = at;
	return 0;
}

static int write_next(struct merge *m, struct input *in, uint64_t index, struct writer *w)
{
	const struct ct_hdr *h = in->next;
	int err = 0;

	if (was_written(m, in, index, h)) {
		m->same++;
		return 0;
	}
	memcpy(m->room, h, h->size);
	if (h->kind == CT_LOST && ((const struct ct_lost *)h)->cause == CT_LOSS_FILE)
		m->lost += ((const struct ct_lost *)h)->count;
	if (place(m, in))
		err = writer_record(w, &m->h);
	if (err || (h->kind != CT_PROCESS && h->kind != CT_EXEC))
		return err;
	/* says on which host the process ran, in case nothing else describes it */
	m->info = (struct ct_process_info){
		.h = m->h, .rank = CT_UNKNOWN, .world_size = CT_UNKNOWN, .local_rank = CT_UNKNOWN
	};
	m->h.kind = CT_PROCESS_INFO;
	m->h.size = sizeof(m->info);
	put_host(m, in);
	return writer_record(w, &m->h);
}

/* Whether this input is the same file as an input before it. */
static bool is_again(const struct merge *m, int i)
{
	const struct input *in = m->inputs[i];

	for (int k = 0; k < i; k++)
		if (same_boot(m->inputs[k], in) && m->inputs[k]->start_ns == in->start_ns &&
		    m->inputs[k]->part == in->part)
			return true;
	return false;
}

static char *end_text(const struct merge *m)
{
	static const char *const sums[] = { "calls",
					    "folded",
					    "filtered",
					    "sent",
					    "unfinished",
					    "received",
					    "refused_files",
					    "unhooked_functions",
					    "partly_hooked_functions",
					    "interrupted_functions" };
	const size_t always = ARRAY_LEN(sums) - 4; /* the other keys only if they have a value */
	uint64_t first_ns = UINT64_MAX, last_ns = 0;
	char *text = NULL, key[64];
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return NULL;
	for (int i = 0; i < m->n; i++) {
		const struct input *in = m->inputs[i];
		uint64_t at = placed(m, in, in->start_ns);

		first_ns = at < first_ns ? at : first_ns;
		at += reader_end(in->reader) ? reader_number(reader_end(in->reader), "uptime_ns")
					     : 0;
		at = at < in->key_ns ? in->key_ns : at;
		last_ns = at > last_ns ? at : last_ns;
	}
	fprintf(f, "reason merged\nuptime_ns %llu\n", (unsigned long long)(last_ns - first_ns));
	for (size_t k = 0; k < ARRAY_LEN(sums) + CT_LOSS_END; k++) {
		uint64_t sum = 0;

		if (k < ARRAY_LEN(sums))
			snprintf(key, sizeof(key), "%s", sums[k]);
		else
			snprintf(key, sizeof(key), "lost.%s",
				 loss_name((enum ct_loss)(k - ARRAY_LEN(sums))));
		for (int i = 0; i < m->n; i++)
			sum += reader_end(m->inputs[i]->reader) && !is_again(m, i)
				       ? reader_number(reader_end(m->inputs[i]->reader), key)
				       : 0;
		if (k == ARRAY_LEN(sums) + CT_LOSS_FILE)
			sum += m->lost;
		if (sum || k < always)
			fprintf(f, "%s %llu\n", key, (unsigned long long)sum);
	}
	if (fclose(f)) {
		free(text);
		return NULL;
	}
	return text;
}

/* Finds the files that one recorder wrote one after the other. Each continues where the one before
 * it ends, so they must be read in this order. */
static void find_parts(struct merge *m)
{
	for (int i = 0; i < m->n; i++) {
		struct input *in = m->inputs[i];

		for (int k = 0; k < m->n && in->part; k++) {
			const struct input *other = m->inputs[k];

			if (other->part && other->part < in->part &&
			    other->start_ns == in->start_ns && same_boot(other, in) &&
			    (!in->before || in->before->part < other->part))
				in->before = other;
		}
	}
}

/* Whether a part before this one still has records. If none has, this input's records are ordered
 * after those of the earlier parts. */
static bool waits(struct input *in)
{
	for (const struct input *b = in->before; b; b = b->before) {
		if (b->next)
			return true;
		if (b->key_ns > in->key_ns)
			in->key_ns = b->key_ns;
	}
	return false;
}

/* Returns the input that has the next record; -1: all inputs have ended. */
static int next_input(struct merge *m)
{
	int least = -1;

	for (int i = 0; i < m->n; i++) {
		struct input *in = m->inputs[i];

		if (!in->next || waits(in))
			continue;
		if (least < 0 || in->key_ns < m->inputs[least]->key_ns)
			least = i;
	}
	return least;
}

/* Only two inputs of one boot can have the same record. */
static bool any_same_boot(const struct merge *m)
{
	return m->ngroups < (unsigned int)m->n;
}

/* The time of day is not read at each record. */
static void show_progress(struct merge *m, struct progress *shown)
{
	uint64_t done = 0, all = 0;

	if (++m->records % 4096)
		return;
	for (int i = 0; i < m->n; i++) {
		struct reader_stats stats;

		reader_stats(m->inputs[i]->reader, &stats);
		done += reader_at(m->inputs[i]->reader);
		all += stats.bytes;
	}
	progress_at(shown, done, all);
}

int merge_write(struct merge *m, struct writer *w, struct progress *shown)
{
	char *text;
	int err = 0;

	find_parts(m);
	if (any_same_boot(m))
		hash_map_open(&m->written[0], sizeof(struct written), sizeof(uint64_t), MERGE_SAME);
	writer_numbers(w, m->numbers);
	for (int i = 0; i < m->n && !err; i++)
		err = advance(m, m->inputs[i]);
	while (!err) {
		int least = next_input(m);

		if (least < 0)
			break;
		err = write_next(m, m->inputs[least], (uint64_t)least, w);
		if (!err)
			err = advance(m, m->inputs[least]);
		show_progress(m, shown);
	}
	text = err ? NULL : end_text(m);
	if (!err)
		err = text ? writer_end(w, text) : -ENOMEM;
	free(text);
	return err;
}

uint64_t merge_same(const struct merge *m)
{
	return m->same;
}

uint64_t merge_lost(const struct merge *m)
{
	return m->lost;
}
