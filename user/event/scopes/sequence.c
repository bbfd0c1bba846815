/* SPDX-License-Identifier: BSD-2-Clause */
/* sequence.c - see sequence.h. */
#include "sequence.h"

#define READINGS_MAX 4096 /* of a communicator that is never at rest */

/* A call begins after the reading. If nothing was under way, the reading counts all calls before it. */
static void use_reading(struct sequence *q)
{
	if (!q->pending) {
		q->known = q->supposed && q->begun == q->read;
		q->supposed = true;
		q->begun = q->read;
	}
	q->until_ns = 0;
}

uint64_t sequence_begin(struct sequence *q, uint64_t start_ns)
{
	if (!q->known && q->until_ns && start_ns > q->until_ns)
		use_reading(q);
	q->begun++;
	if (q->known)
		return q->begun;
	q->pending++;
	return 0;
}

void sequence_undo(struct sequence *q, uint64_t number)
{
	if (q->known) {
		/* those after it keep their numbers */
		q->begun -= number && number == q->begun;
	} else if (q->pending) {
		q->pending--;
		q->begun--;
	}
}

bool sequence_launched(struct sequence *q, uint32_t n, uint64_t end_ns)
{
	q->pending -= n < q->pending ? n : q->pending;
	if (q->known || q->never || q->pending || q->readings == READINGS_MAX)
		return false;
	/* what ended before the newest reading is in it */
	if (q->until_ns && end_ns < q->from_ns)
		return false;
	q->until_ns = 0;
	return true;
}

void sequence_read(struct sequence *q, uint64_t begun, uint64_t from_ns, uint64_t until_ns)
{
	q->readings++;
	q->read = begun;
	q->from_ns = from_ns;
	q->until_ns = until_ns;
}
