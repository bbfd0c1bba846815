/* SPDX-License-Identifier: BSD-2-Clause */
/* count_record.c - see count_record.h. */
#include <string.h>

#include "count_record.h"

void count_record_begin(union count_record *rec, const struct ct_count_key *key, uint64_t start_ns,
			uint64_t end_ns)
{
	memset(&rec->t, 0, sizeof(rec->t));
	rec->t.h.kind = CT_CALL_COUNT;
	rec->t.h.size = sizeof(rec->t);
	rec->t.h.pid = key->tgid;
	rec->t.h.start_ns = start_ns;
	rec->t.h.end_ns = end_ns;
	rec->t.func = key->func;
	rec->t.sub = key->sub;
	rec->t.how = key->how;
	rec->t.start = key->start;
	rec->t.by = key->by;
}

void count_record_sums(union count_record *rec, const struct ct_count_key *key,
		       const struct ct_sums *sums, bool timed)
{
	timed = timed && sums->calls > sums->untimed;
	rec->t.h.tid = key->how == CT_BY_THREAD ? (uint32_t)key->by : 0;
	rec->t.sums = *sums;
	rec->t.sums.timed = timed ? sums->calls - sums->untimed : 0;
	rec->t.sums.min_ns = rec->t.sums.timed ? ~sums->min_not : 0;
	rec->t.sums.hist = 0;
}

void *count_record_hist(union count_record *rec)
{
	return rec->room + sizeof(rec->t);
}

void count_record_has_hist(union count_record *rec)
{
	rec->t.nbuckets = CT_HIST_BUCKETS;
	rec->t.h.size = (uint16_t)(sizeof(rec->t) + sizeof(struct ct_hist));
}

void count_record_sizes(union count_record *rec, const struct ct_sizes *s)
{
	rec->t.how = CT_BY_SIZE;
	rec->t.sums.asked[0] = s->sum[0];
	rec->t.sums.asked[1] = s->sum[1];
	rec->t.nbuckets = 2 * CT_SIZE_BUCKETS;
	rec->t.h.size = (uint16_t)(sizeof(rec->t) + sizeof(s->n) + sizeof(s->n) % 8);
	memset(rec->room + sizeof(rec->t), 0, sizeof(s->n) + 8);
	memcpy(rec->room + sizeof(rec->t), s->n, sizeof(s->n));
}
