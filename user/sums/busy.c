/* SPDX-License-Identifier: BSD-2-Clause */
/* busy.c - see busy.h. */
#include <stdlib.h>
#include <string.h>

#include "busy.h"

static struct busy_device *device_of(struct busy *b, uint32_t pid, uint32_t device)
{
	struct busy_device *d;

	for (size_t i = 0; i < b->ndevices; i++)
		if (b->devices[i].pid == pid && b->devices[i].device == device)
			return &b->devices[i];
	if (b->ndevices == BUSY_DEVICES)
		return NULL;
	if (!b->devices)
		b->devices = calloc(BUSY_DEVICES, sizeof(*b->devices));
	if (!b->devices)
		return NULL;
	d = &b->devices[b->ndevices++];
	d->pid = pid;
	d->device = device;
	return d;
}

static void add_gap(struct busy_device *d, uint64_t start_ns, uint64_t end_ns)
{
	unsigned int at = d->newest++ % BUSY_GAPS;

	d->gaps[at].start_ns = start_ns;
	d->gaps[at].end_ns = end_ns;
}

/* Adds the part of start..end that lies in gaps, which was not busy so far. */
static void fill_gaps(struct busy_device *d, uint64_t start_ns, uint64_t end_ns)
{
	for (unsigned int i = 0; i < BUSY_GAPS; i++) {
		uint64_t from = d->gaps[i].start_ns, to = d->gaps[i].end_ns;
		uint64_t begin = start_ns > from ? start_ns : from, end = end_ns < to ? end_ns : to;

		if (begin >= end)
			continue;
		d->ns += end - begin;
		/* if gaps are left on both sides, one of them stays in this place */
		d->gaps[i].end_ns = begin;
		if (begin == from) {
			d->gaps[i].start_ns = end;
			d->gaps[i].end_ns = to;
		} else if (end < to) {
			add_gap(d, end, to);
		}
	}
}

void busy_add(struct busy *b, uint32_t pid, uint32_t device, uint64_t start_ns, uint64_t end_ns)
{
	struct busy_device *d = device_of(b, pid, device);

	if (!d) {
		b->left_out++;
		return;
	}
	if (!d->last_ns)
		add_gap(d, 0, d->last_ns = start_ns); /* an earlier one may come later */
	if (start_ns < d->last_ns)
		fill_gaps(d, start_ns, end_ns < d->last_ns ? end_ns : d->last_ns);
	if (end_ns <= d->last_ns)
		return;
	if (start_ns > d->last_ns)
		add_gap(d, d->last_ns, start_ns);
	d->ns += end_ns - (start_ns > d->last_ns ? start_ns : d->last_ns);
	d->last_ns = end_ns;
}

uint64_t busy_ns(const struct busy *b)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < b->ndevices; i++)
		ns += b->devices[i].ns;
	return ns;
}

void busy_close(struct busy *b)
{
	free(b->devices);
	memset(b, 0, sizeof(*b));
}
