/* SPDX-License-Identifier: BSD-2-Clause */
/* test_hooks_without.c - what is known of who has hooks: it is forgotten, however late it comes. */
#include <stdio.h>
#include <unistd.h>

#include "../../user/source/hooks/hooks_without.h"
#include "../../user/util/now.h"
#include "unit.h"

#define MANY 70000	 /* more than there is room for at a time */
#define NOBODY 0x400001u /* no process has a number as large */

static struct hooks_batch *batch;
static unsigned int holes;

static int count(void *ctx, const struct ct_hdr *h)
{
	(void)ctx;
	holes += h->kind == CT_HOLE;
	return 0;
}

/* The hooks of many processes were heard of after these had ended. One that lives, and has hooks, has no row. */
static void test_heard_late(void)
{
	const struct capture_plan plan = { .follow = true };
	struct hooks_files *files = hooks_files_open(&plan);
	struct hooks_without *w = hooks_without_open(&plan, files);
	uint64_t now = now_ns();

	batch = hooks_batch_open();
	if (!w) {
		printf("skipped: not without the right to watch the machine\n");
	} else {
		for (uint32_t i = 0; i < MANY; i++)
			hooks_without_hooked(w, (pid_t)(NOBODY + i), now - 20000000000ULL);
		CHECK(!hooks_without_tell(w, false, batch));
		hooks_without_add(w, getpid());
		hooks_without_uses(w, getpid(), now_ns());
		hooks_without_hooked(w, getpid(), now_ns());
		CHECK(!hooks_without_tell(w, true, batch));
		CHECK(!hooks_batch_emit(batch, count, NULL));
		CHECK_EQ(0, holes);
	}
	hooks_batch_close(batch);
	hooks_without_close(w);
	hooks_files_close(files);
}

int main(void)
{
	RUN(test_heard_late);
	return unit_end();
}
