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

void busy_add(struct busy *b, uint32_t pid, uint32_t device, uint64_t start_ns, uint64_t end_ns)
{
	struct busy_device *d = device_of(b, pid, device);

	if (!d || spans_add(&d->spans, start_ns, end_ns, 0, 0))
		b->left_out++;
}

uint64_t busy_ns(const struct busy *b)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < b->ndevices; i++)
		ns += spans_busy_ns(&b->devices[i].spans);
	return ns;
}

void busy_close(struct busy *b)
{
	for (size_t i = 0; i < b->ndevices; i++)
		spans_free(&b->devices[i].spans);
	free(b->devices);
	memset(b, 0, sizeof(*b));
}
