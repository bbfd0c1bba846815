/* SPDX-License-Identifier: BSD-2-Clause */
/* holes_text.c - what was not seen, in words: of formats, of the last line, of one row. See holes.h. */
#include <stdio.h>
#include <string.h>

#include "../../util/utf8.h"
#include "holes_inside.h"

#define PROCESS_TEXT 64
#define CLAUSE_MAX 400

/* "process 4242 (python3)", with the name as it may reach a terminal. */
static void process_text(const struct holes_row *r, char *text, size_t size)
{
	char comm[CT_COMM_LEN];

	memcpy(comm, r->comm, sizeof(comm));
	utf8_plain(comm);
	if (!r->shown_pid)
		snprintf(text, size, "a process");
	else if (*comm)
		snprintf(text, size, "process %u (%s)", r->shown_pid, comm);
	else
		snprintf(text, size, "process %u", r->shown_pid);
}

static double seconds(uint64_t ns, uint64_t zero_ns)
{
	return (double)(ns > zero_ns ? ns - zero_ns : 0) / 1e9;
}

/* ", from 2.310 s on", ", from 2.310 s to 3.100 s"; "" if the begin is not known. Returns the length. */
static size_t time_text(uint64_t from_ns, uint64_t to_ns, uint64_t zero_ns, char *text, size_t size)
{
	*text = '\0';
	if (!from_ns || !zero_ns)
		return 0;
	if (to_ns == CT_HOLE_OPEN)
		return (size_t)snprintf(text, size, ", from %.3f s on", seconds(from_ns, zero_ns));
	if (to_ns <= from_ns)
		return 0;
	return (size_t)snprintf(text, size, ", from %.3f s to %.3f s", seconds(from_ns, zero_ns),
				seconds(to_ns, zero_ns));
}

/* Writes a clause of holes.def with what its signs stand for. least: the number may be larger. */
static void put_clause(char *text, size_t size, const char *how, uint64_t number, bool least,
		       const char *process, const struct holes_row *row)
{
	char what[CT_HOLE_TEXT_MAX + 1];
	size_t n = 0;

	snprintf(what, sizeof(what), "%s", row->text);
	utf8_plain(what);

	*text = '\0';
	for (; *how && n + 1 < size; how++) {
		int wrote = 1;

		if (*how != '%' || !how[1]) {
			text[n] = *how;
			text[n + 1] = '\0';
		} else if (*++how == 'n') {
			wrote = snprintf(text + n, size - n, "%s%llu", least ? "at least " : "",
					 (unsigned long long)number);
		} else {
			wrote = snprintf(text + n, size - n, "%s",
					 *how == 'p'   ? process
					 : *how == 't' ? what
						       : hole_layer(row->layer));
		}
		n += (size_t)wrote;
	}
}

/* What all rows of a reason say together. */
static void clause(const struct holes *l, uint16_t reason, uint64_t zero_ns, char *text,
		   size_t size)
{
	const struct hole_why *w = hole_why(reason);
	uint64_t number = holes_number(l, (enum ct_hole_reason)reason), from = UINT64_MAX, to = 0;
	const struct holes_row *one = NULL;
	char process[PROCESS_TEXT];
	bool least = false;
	size_t n;

	for (size_t i = 0; i < l->n; i++) {
		const struct holes_row *r = &l->rows[i];

		if (r->reason != reason || holes_void(r))
			continue;
		one = one ? one : r;
		least |= r->state == CT_HOLE_UNSEEN;
		/* a time is said only if all of it is known */
		from = holes_begin(r) < from ? holes_begin(r) : from;
		to = r->end_ns > to ? r->end_ns : to;
	}
	if (w->per == HOLES_PROCESSES && number != 1)
		snprintf(process, sizeof(process), "%llu processes", (unsigned long long)number);
	else
		process_text(one, process, sizeof(process));
	put_clause(text, size, number == 1 ? w->one : w->many, number, least, process, one);
	n = strlen(text);
	if (w->flags & HOLES_ALL && n < size)
		time_text(from == UINT64_MAX ? 0 : from, to, zero_ns, text + n, size - n);
}

/* The last line says these in other clauses: lost records and muted calls with their numbers. */
static bool is_elsewhere(uint16_t reason)
{
	return reason == CT_HOLE_RECORDS || reason == CT_HOLE_THROTTLED ||
	       reason == CT_HOLE_UNPROBED;
}

size_t holes_text(const struct holes *l, uint64_t zero_ns, const char *before, const char *after,
		  char *text, size_t size)
{
	bool said[CT_HOLE_REASON_END + 1] = { false };
	unsigned int left = 0;
	char one[CLAUSE_MAX];
	size_t n = 0;

	*text = '\0';
	if (unprobed_any(holes_unprobed(l))) {
		unprobed_text(one, sizeof(one), holes_unprobed(l));
		n = (size_t)snprintf(text, size, "%s%s%s", before, one, after);
	}
	for (size_t i = 0; i < holes_rows(l) && n < size; i++) {
		uint16_t reason = l->rows[i].reason;
		bool *was = &said[reason < CT_HOLE_REASON_END ? reason : CT_HOLE_REASON_END];

		if (is_elsewhere(reason) || *was || holes_void(&l->rows[i]))
			continue;
		*was = true;
		clause(l, reason, zero_ns, one, sizeof(one));
		if (n + strlen(one) + 64 < size)
			n += (size_t)snprintf(text + n, size - n, "%s%s%s", before, one, after);
		else
			left++;
	}
	if (left && n < size)
		n += (size_t)snprintf(text + n, size - n, "%sand %u further reasons%s", before,
				      left, after);
	return n < size ? n : size - 1;
}

void holes_row_text(const struct holes_row *r, uint64_t zero_ns, char *text, size_t size)
{
	const struct hole_why *w = hole_why(r->reason);
	char process[PROCESS_TEXT], what[CT_HOLE_TEXT_MAX + 1];
	bool one = w->per == HOLES_PROCESSES ? !r->joined : r->count == 1;
	size_t n;

	process_text(r, process, sizeof(process));
	put_clause(text, size, one ? w->one : w->many, r->count, r->state == CT_HOLE_UNSEEN,
		   process, r);
	n = strlen(text);
	if (*r->text && !strstr(one ? w->one : w->many, "%t") && n < size) {
		snprintf(what, sizeof(what), "%s", r->text);
		utf8_plain(what);
		n += (size_t)snprintf(text + n, size - n, " (%s)", what);
	}
	if (w->per == HOLES_COUNT && r->shown_pid && n < size)
		n += (size_t)snprintf(text + n, size - n, ", %s", process);
	if (n < size)
		time_text(holes_begin(r), r->end_ns, zero_ns, text + n, size - n);
}

struct ct_hole hole_of(uint32_t pid, enum ct_hole_layer layer, enum ct_hole_state state,
		       enum ct_hole_reason reason)
{
	return (struct ct_hole){
		.h = { .size = sizeof(struct ct_hole), .kind = CT_HOLE, .pid = pid },
		.device = CT_UNKNOWN,
		.reason = (uint16_t)reason,
		.layer = (uint8_t)layer,
		.state = (uint8_t)state,
	};
}

void hole_say(struct hole_text *t, const char *text)
{
	size_t n = strnlen(text, CT_HOLE_TEXT_MAX);

	memset(t->room + sizeof(t->hole), 0, CT_HOLE_TEXT_MAX);
	memcpy(t->room + sizeof(t->hole), text, n);
	t->hole.text_len = (uint16_t)n;
	t->hole.h.size = (uint16_t)((sizeof(t->hole) + n + 7) & ~(size_t)7);
}

void hole_when(struct ct_hole *h, uint64_t from_ns, uint64_t until_ns)
{
	h->h.start_ns = h->h.end_ns = from_ns;
	h->until_ns = until_ns;
}

void hole_final(const struct holes_row *r, uint64_t begin_ns, uint64_t end_ns, struct hole_text *t)
{
	uint64_t from = holes_begin(r);

	t->hole = hole_of(r->pid, (enum ct_hole_layer)r->layer, (enum ct_hole_state)r->state,
			  (enum ct_hole_reason)r->reason);
	t->hole.h.flags = CT_F_FINAL;
	t->hole.h.tid = r->tid;
	t->hole.h.start_ns = from > begin_ns ? from : begin_ns;
	t->hole.h.end_ns = r->end_ns && r->end_ns < end_ns ? r->end_ns : end_ns;
	if (t->hole.h.end_ns < t->hole.h.start_ns)
		t->hole.h.end_ns = t->hole.h.start_ns;
	t->hole.until_ns = t->hole.h.end_ns;
	t->hole.count = r->count;
	t->hole.below = r->below;
	t->hole.above = r->above;
	t->hole.device = r->device;
	t->hole.ns_pid = r->shown_pid;
	memcpy(t->hole.comm, r->comm, sizeof(t->hole.comm));
	hole_say(t, r->text);
}
