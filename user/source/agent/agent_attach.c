/* SPDX-License-Identifier: BSD-2-Clause */
/* agent_attach.c - see agent_attach.h. */
#include <string.h>
#include <sys/socket.h>

#include "../../util/msg.h"
#include "agent_attach.h"
#include "agent_file.h"
#include "../inject/inject.h"
#include "../inject/inject_check.h"

#define LIMIT_MS 5000

int agent_attach(pid_t pid, const char *how, const struct capture_plan *plan)
{
	struct inject_what what = {
		.name = "the agent",
		.symbol = "cudatrace_agent_start",
		.how = how,
		.sock_type = SOCK_SEQPACKET,
		.limit_ms = LIMIT_MS,
		.ready = inject_check_cuda, /* the agent is never the first to start CUDA */
		.frames = plan->frames,
		.ctx = plan->frames_ctx,
	};
	struct inject_result got = { .sock = -1 };
	int err;

	what.so = agent_file_bytes(&what.so_bytes);
	err = inject_run(pid, &what, &got);
	return err ? err : got.sock;
}
