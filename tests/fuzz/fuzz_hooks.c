/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_hooks.c - hooks that talk nonsense, and an area of memory that makes none. The input's first
 * half is a list of messages, each with its type and its length before it: heads are made right and a
 * greeting goes first. The second half is written into the first blocks of the area and into its
 * cells, in pieces, each with its place before it; some of them are announced as entries.
 *
 * The process that talks has ended and had little memory: nothing of it is listed, and its area has one block, so that
 * many inputs are tried in a second. What is mapped does not come from the hooks.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../user/source/agent/agent_tids.h"
#include "../../user/source/hooks/hooks_counts.h"
#include "../../user/source/hooks/hooks_peer.h"
#include "../../user/util/now.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MESSAGES_MAX 32
#define RING_BYTES 65536u
#define THREADS 4
#define CELLS 64u

/* What the rest of the program relies on, whatever the hooks say. */
static int emit(void *ctx, const struct ct_hdr *rec)
{
	(void)ctx;
	if (record_check(rec, rec->size) || rec->pid != (uint32_t)getpid() ||
	    rec->start_ns > rec->end_ns)
		abort();
	return 0;
}

/* How a message is made: its type, and what is added so that chance need not find it. */
#define TYPE 0x7
#define COUNTS 0x8  /* of HOOKS_INSTALLED: as many results as it has room for */
#define PASSES 0x10 /* with a descriptor */

static void send_with(int fd, const void *msg, size_t size, int pass)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { .head = { CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	struct iovec io = { (void *)msg, size };
	struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1 };

	if (pass >= 0) {
		memcpy(CMSG_DATA(&control.head), &pass, sizeof(int));
		m.msg_control = &control;
		m.msg_controllen = sizeof(control);
	}
	sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static size_t put(int fd, const uint8_t *data, size_t size)
{
	static char msg[MEET_MSG_MAX];
	struct meet_head h = { .type = data[0] & TYPE };
	size_t len = data[1] | (size_t)data[2] << 8;

	len = len < size - 3 ? len : size - 3;
	len = len < sizeof(msg) - sizeof(h) ? len : sizeof(msg) - sizeof(h);
	h.size = (uint32_t)(sizeof(h) + len);
	memcpy(msg, &h, sizeof(h));
	memcpy(msg + sizeof(h), data + 3, len);
	if (data[0] & COUNTS && h.type == HOOKS_INSTALLED &&
	    h.size >= sizeof(struct hooks_installed)) {
		uint32_t n = (h.size - (uint32_t)sizeof(struct hooks_installed)) / 4;

		h.size = (uint32_t)(sizeof(struct hooks_installed) + n * 4);
		memcpy(msg, &h, sizeof(h));
		memcpy(msg + offsetof(struct hooks_installed, n), &n, sizeof(n));
	}
	send_with(fd, msg, h.size, data[0] & PASSES ? fd : -1);
	return size - 3 - len;
}

/* A process that has ended, and that nobody waits for. */
static pid_t ended_process(void)
{
	static pid_t pid;
	siginfo_t info;

	if (pid)
		return pid;
	pid = fork();
	if (!pid) {
		struct rlimit little = { 1 << 20, 1 << 20 };

		setrlimit(RLIMIT_AS, &little);
		_exit(0);
	}
	if (pid < 0 || waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT))
		abort();
	return pid;
}

/* With one function that is muted. */
static struct hooks_muted *muted_get(void)
{
	static struct capture_plan plan = { .count = true, .count_by = CT_BY_FUNCTION };
	static struct hooks_muted *muted;
	struct ct_call call = { .h = { .pid = 1, .end_ns = 1 } };

	if (muted)
		return muted;
	memset(plan.shown, 0xff, sizeof(plan.shown));
	muted = hooks_muted_open(&plan);
	call.func = (uint16_t)api_next("cudaGetDevice", -1);
	for (int i = 0; muted && i < 100000 && hooks_muted_call(muted, &call) < 0; i++)
		;
	if (!muted || hooks_muted_n(muted) != 1)
		abort();
	return muted;
}

/* What it has said, and what it is told meanwhile. */
static void listen_to(struct hooks_peer *p)
{
	struct hooks_birth birth;

	hooks_peer_drain(p);
	if (hooks_peer_birth(p, &birth))
		close(birth.fd);
	hooks_peer_was_read(p);
	hooks_peer_mute(p, 0);
	if (hooks_peer_partly(p) + hooks_peer_unhooked(p) > MEET_MSG_MAX * MESSAGES_MAX)
		abort();
}

static void talk(const uint8_t *data, size_t size)
{
	static struct capture_plan plan = { .ring_bytes = 1 << 18 };
	static struct hooks_files *files;
	struct hooks_hello h = { .h = { .type = HOOKS_HELLO, .size = sizeof(h) },
				 .magic = HOOKS_MAGIC,
				 .version = HOOKS_VERSION,
				 .pid = (uint32_t)ended_process() };
	struct hooks_peer_opts o = { .who.pid = ended_process(),
				     .plan = &plan,
				     .muted = muted_get() };
	struct hooks_peer *p;
	size_t left = size;
	int fds[2];

	files = files ? files : hooks_files_open(&plan);
	o.files = files;
	if (!files || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds))
		abort();
	p = hooks_peer_open(fds[0], &o);
	if (!p || send(fds[1], &h, sizeof(h), MSG_NOSIGNAL) < 0)
		abort();
	for (int i = 0; i < MESSAGES_MAX && left > 3; i++)
		left = put(fds[1], data + (size - left), left);
	for (int i = 0; i < MESSAGES_MAX && hooks_peer_state(p) != HOOKS_PEER_ENDED; i++)
		listen_to(p);
	hooks_peer_stop(p);
	hooks_peer_close(p);
	close(fds[1]);
}

/* Pieces of at most 255 bytes at places of 8 bytes; the first byte's low bit makes an entry of one. */
static void scribble(char *area, const uint8_t *data, size_t size)
{
	size_t most = hooks_area_bytes(2, RING_BYTES, 0);
	char *cells = (char *)hooks_cells((void *)area, THREADS, RING_BYTES);

	while (size > 5) {
		size_t at = ((size_t)data[1] << 8 | data[2]) * 8 % (most - 512), n = data[3];

		n = n < size - 5 ? n : size - 5;
		if (data[0] & 1) {
			struct hooks_thread *t = hooks_block(area, data[4] & 1, RING_BYTES);
			uint64_t place = at % (RING_BYTES - 512);
			uint64_t tag = data[0] & 2 ? hooks_skip(place) : hooks_tag(place);

			t->owner = HOOKS_USED;
			t->head = place + 4096;
			memcpy(hooks_ring(t) + place, &tag, 8);
			memcpy(hooks_ring(t) + place + 8, data + 5, n);
			((struct hooks_area *)area)->blocks = 2;
		} else if (data[0] & 4) {
			((struct hooks_area *)area)->cells = data[4];
			memcpy(cells + at % (CELLS * sizeof(struct ct_entry)), data + 5, n);
		} else {
			memcpy(area + at, data + 5, n);
		}
		data += 5 + n;
		size -= 5 + n;
	}
}

static void read_area(const uint8_t *data, size_t size)
{
	static struct agent_tids *tids;
	pid_t inner;
	struct hooks_batch *b = hooks_batch_open();
	struct hooks_ring_opts o = {
		.threads = THREADS, .ring_bytes = RING_BYTES, .cells = CELLS, .pid = getpid()
	};
	struct capture_plan plan = { .count = true, .sizes = true, .hist = CT_HIST_BY_KEY };
	struct hooks_counts *sums;
	struct hooks_ring_counts counts;
	struct hooks_ring *r;
	char *area;
	int fd;

	tids = tids ? tids : agent_tids_open(getpid(), &inner);
	o.tids = tids;
	r = hooks_ring_open(&o, &fd);
	memset(plan.capture, 0xff, sizeof(plan.capture));
	sums = hooks_counts_open(&plan, muted_get());
	if (!tids || !b || !r || !sums)
		abort();
	area = mmap(NULL, hooks_area_bytes(THREADS, RING_BYTES, CELLS), PROT_READ | PROT_WRITE,
		    MAP_SHARED, fd, 0);
	if (area == MAP_FAILED)
		abort();
	scribble(area, data, size);
	hooks_ring_read(r, b, false);
	hooks_ring_read(r, b, true);
	hooks_ring_inflight(r, CT_F_UNFINISHED, 0, now_ns(), -1, b);
	hooks_ring_returning(r, 1000000);
	hooks_ring_sweep(r, hooks_ring_rest, b, b);
	hooks_ring_counts(r, &counts);
	hooks_batch_emit(b, emit, NULL);
	hooks_counts_begin(sums);
	hooks_counts_add(sums, r, 1);
	hooks_counts_keep(sums, r, 2);
	hooks_counts_emit(sums, now_ns(), emit, NULL);
	hooks_counts_close(sums);
	hooks_batch_close(b);
	hooks_ring_close(r);
	munmap(area, hooks_area_bytes(THREADS, RING_BYTES, CELLS));
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	talk(data, size / 2);
	read_area(data + size / 2, size - size / 2);
	return 0;
}
