/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * record.c - the producer of the kind of record that tests/recipes.sh adds: record FILE writes a
 * recording of a process with two of them, of 1 ms and of 50 ms.
 */
#include <string.h>

#include "../../user/event/event.h"
#include "../../user/trace/writer.h"

#define MS 1000000ULL

static int put(struct writer *w, void *record, uint16_t kind, uint16_t size, uint64_t start_ns,
	       uint64_t took_ns)
{
	struct ct_hdr *h = record;

	h->kind = kind;
	h->size = size;
	h->pid = h->tid = kind == CT_CLOCK ? 0 : 77;
	h->start_ns = start_ns;
	h->end_ns = start_ns + took_ns;
	return record_check(h, h->size) ? -1 : writer_record(w, h);
}

int main(int argc, char **argv)
{
	struct ct_process p = { .start_boottime_ns = 5, .comm = "cook" };
	struct ct_clock clock = { .realtime_ns = 1700000000000000000, .boottime_ns = 6 };
	struct ct_recipe r = { .spoons = 3 };
	struct writer *w;

	if (argc != 2 || writer_open(&w, argv[1], "format 1\nhost unit\nstart_ns 5\n"))
		return 1;
	if (put(w, &clock, CT_CLOCK, sizeof(clock), 5 * MS, 0) ||
	    put(w, &p, CT_PROCESS, sizeof(p), 10 * MS, 0) ||
	    put(w, &r, CT_RECIPE, sizeof(r), 20 * MS, MS))
		return 1;
	r.spoons = 4;
	if (put(w, &r, CT_RECIPE, sizeof(r), 30 * MS, 50 * MS))
		return 1;
	return writer_end(w, "reason finished\n") || writer_close(w);
}
