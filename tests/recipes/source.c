/* SPDX-License-Identifier: BSD-2-Clause */
/* source.c - the source that tests/recipes.sh adds: it hands out the records of recipe.bpf.c. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/libbpf.h>

#include "../bpf/ring.h"
#include "../source.h"
#include "../../util/msg.h"
#include "recipe.skel.h"

#define RECIPES 64 /* that are taken at once */

struct recipes {
	struct recipe_bpf *skel;
	struct ring ring;
	size_t len, at; /* of what was taken */
	uint64_t received, malformed;
	bool stopped;
	char bytes[RECIPES * RING_TAKEN(sizeof(struct ct_recipe))] __attribute__((aligned(8)));
};

static int recipe_open(struct source *src, const struct capture_plan *plan)
{
	struct recipes *r = calloc(1, sizeof(*r));
	int err;

	src->priv = r;
	if (!r) {
		msg_error("no memory");
		return -ENOMEM;
	}
	r->skel = recipe_bpf__open();
	if (!r->skel)
		return -errno;
	r->skel->rodata->program = (uint32_t)plan->program;
	err = recipe_bpf__load(r->skel);
	if (!err)
		err = ring_open(&r->ring, bpf_map__fd(r->skel->maps.recipes),
				bpf_map__max_entries(r->skel->maps.recipes));
	if (err)
		msg_error("signals cannot be seen: %s", strerror(-err));
	return err;
}

static int recipe_start(struct source *src)
{
	int err = recipe_bpf__attach(((struct recipes *)src->priv)->skel);

	if (err)
		msg_error("signals cannot be seen: %s", strerror(-err));
	return err;
}

static int recipe_fds(struct source *src, int *fd, int max)
{
	if (max > 0)
		*fd = ((struct recipes *)src->priv)->ring.map_fd;
	return max > 0;
}

static int recipe_drain(struct source *src, emit_fn emit, void *ctx)
{
	struct recipes *r = src->priv;

	while (!source_paused(src->paused)) {
		const struct ct_hdr *h = (const void *)(r->bytes + r->at + sizeof(uint64_t));
		uint64_t size;
		int err;

		if (r->at == r->len) {
			r->at = 0;
			r->len = ring_take(&r->ring, r->bytes, sizeof(r->bytes));
			if (!r->len)
				return r->stopped;
			continue;
		}
		memcpy(&size, r->bytes + r->at, sizeof(size));
		r->at += RING_TAKEN(size);
		if (record_check(h, size)) {
			r->malformed++;
			continue;
		}
		r->received++;
		err = emit(ctx, h);
		if (err)
			return err;
	}
	return 0;
}

static void recipe_stop(struct source *src)
{
	struct recipes *r = src->priv;

	recipe_bpf__detach(r->skel);
	r->stopped = true;
}

static void recipe_losses(struct source *src, struct losses *l)
{
	const struct recipes *r = src->priv;

	l->sent += r->received;
	l->lost[CT_LOSS_RING] += r->skel->bss->recipes_lost;
	l->lost[CT_LOSS_READ] += r->malformed;
}

static void recipe_close(struct source *src)
{
	struct recipes *r = src->priv;

	if (!r)
		return;
	if (r->skel)
		ring_close(&r->ring);
	recipe_bpf__destroy(r->skel);
	free(r);
	src->priv = NULL;
}

const struct source_ops source_recipe = {
	.name = "recipe",
	.open = recipe_open,
	.start = recipe_start,
	.fds = recipe_fds,
	.drain = recipe_drain,
	.stop = recipe_stop,
	.losses = recipe_losses,
	.close = recipe_close,
};
