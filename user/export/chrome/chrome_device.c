/* SPDX-License-Identifier: BSD-2-Clause */
/* chrome_device.c - see chrome_device.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../event/gpus.h"
#include "chrome_device.h"
#include "../../render/json_fields.h"
#include "../../util/table/array.h"

#define DEVICES_MAX 4096
#define NAME_BYTES 128

struct device {
	char name[NAME_BYTES];
	uint32_t name_len;
	uint32_t number;    /* of the GPU in the trace */
	struct ct_device d; /* without its name */
};

struct chrome_devices {
	struct device *devices;
	uint32_t n;
};

struct chrome_devices *chrome_devices_open(void)
{
	return calloc(1, sizeof(struct chrome_devices));
}

void chrome_devices_close(struct chrome_devices *t)
{
	if (!t)
		return;
	free(t->devices);
	free(t);
}

static struct device *device_find(const struct chrome_devices *t, uint32_t pid, uint32_t id)
{
	/* search the newest first, because a process id can be reused */
	for (uint32_t i = t->n; i--;)
		if (t->devices[i].d.id == id && t->devices[i].d.h.pid == pid)
			return &t->devices[i];
	return NULL;
}

int chrome_devices_record(struct chrome_devices *t, const struct event *ev)
{
	const struct ct_device *d = (const struct ct_device *)ev->rec;
	struct device *dev = device_find(t, d->h.pid, d->id);

	if (!d->h.pid)
		return 0;
	if (!dev) {
		if (t->n == DEVICES_MAX)
			return 0;
		dev = array_add(t->devices, t->n);
		if (!dev)
			return -ENOMEM;
	}
	memset(dev, 0, sizeof(*dev));
	memcpy(&dev->d, d, sizeof(*d));
	dev->number = ev->gpu ? ev->gpu->number : d->id;
	dev->name_len = d->name_len < NAME_BYTES ? d->name_len : NAME_BYTES;
	memcpy(dev->name, d->name, dev->name_len);
	return 0;
}

static void put_one(const struct device *dev, struct row *w)
{
	static const uint8_t none[16];
	const struct ct_device *d = &dev->d;
	char uuid[48];

	row_room(w, JSON_ROOM);
	w->p = put_u64(put_lit(w->p, "{\"id\":"), dev->number);
	w->p = json_next(w->p, "name");
	json_string(w, dev->name, dev->name_len);
	row_room(w, 1024);
	w->p = json_next_u64(w->p, "totalGlobalMem", d->memory_bytes);
	w->p = json_next_u64(w->p, "computeMajor", d->major);
	w->p = json_next_u64(w->p, "computeMinor", d->minor);
	/* the limits of a block are the same on every device of these architectures */
	w->p = put_lit(w->p, ",\"maxThreadsPerBlock\":1024");
	w->p = json_next_u64(w->p, "maxThreadsPerMultiprocessor", d->max_threads);
	w->p = json_next_u64(w->p, "regsPerMultiprocessor", d->max_registers);
	w->p = json_next_u64(w->p, "warpSize", d->warp_size);
	w->p = json_next_u64(w->p, "sharedMemPerMultiprocessor", d->max_shared);
	w->p = json_next_u64(w->p, "numSms", d->multiprocessors);
	if (memcmp(d->uuid, none, sizeof(none))) {
		gpu_uuid_text(d->uuid, uuid);
		w->p = json_next_word(w->p, "uuid", uuid);
	}
	*w->p++ = '}';
}

void chrome_devices_put(const struct chrome_devices *t, uint32_t pid, struct row *w)
{
	bool first = true;

	for (uint32_t i = 0; i < t->n; i++) {
		bool reported = false;

		if (pid && t->devices[i].d.h.pid != pid)
			continue;
		for (uint32_t k = 0; k < i && !reported; k++)
			reported = (!pid || t->devices[k].d.h.pid == pid) &&
				   t->devices[k].number == t->devices[i].number;
		if (reported)
			continue;
		row_room(w, 2);
		if (!first)
			*w->p++ = ',';
		first = false;
		put_one(&t->devices[i], w);
	}
}

static uint64_t round_up(uint64_t v, uint64_t to)
{
	return (v + to - 1) / to * to;
}

/*
 * Number of blocks that fit on a multiprocessor at a time. The hardware allocates registers to a
 * warp in units of 256 and shared memory to a block in units of 128 bytes; the system uses 1 KiB of
 * each block's shared memory from compute capability 8.0 on (CUDA's occupancy calculator).
 */
static uint64_t fitting_blocks(const struct ct_device *d, const struct ct_kernel *k, uint64_t warps)
{
	uint64_t n = d->max_blocks ? d->max_blocks : 32, more;
	uint64_t shared = (uint64_t)k->static_shared + k->dynamic_shared;

	if (d->max_warps && d->max_warps / warps < n)
		n = d->max_warps / warps;
	if (k->registers && d->max_registers) {
		more = d->max_registers / round_up((uint64_t)k->registers * d->warp_size, 256) /
		       warps;
		if (more < n)
			n = more;
	}
	shared = round_up(shared + (d->major >= 8 ? 1024 : 0), 128);
	if (shared && d->max_shared && d->max_shared / shared < n)
		n = d->max_shared / shared;
	return n;
}

bool chrome_devices_load(const struct chrome_devices *t, const struct event *ev,
			 struct chrome_load *load)
{
	const struct ct_kernel *k = (const struct ct_kernel *)ev->rec;
	const struct device *dev = device_find(t, k->w.h.pid, k->w.device);
	uint64_t threads = (uint64_t)k->block[0] * k->block[1] * k->block[2], warps, fit;
	double blocks;

	if (!dev || !dev->d.multiprocessors || !dev->d.warp_size || !dev->d.max_threads ||
	    !threads || threads > 65536)
		return false;
	warps = (threads + dev->d.warp_size - 1) / dev->d.warp_size;
	blocks = (double)k->grid[0] * k->grid[1] * k->grid[2] / dev->d.multiprocessors;
	load->blocks = blocks;
	load->warps = blocks * (double)threads / dev->d.warp_size;
	fit = fitting_blocks(&dev->d, k, warps);
	if (blocks > (double)fit)
		blocks = (double)fit;
	load->occupancy = (int)(0.5 + blocks * (double)threads / dev->d.max_threads * 100);
	if (load->occupancy > 100)
		load->occupancy = 100;
	return true;
}
