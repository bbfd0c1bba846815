/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * floods.c - a hostile program that sends as much as it can until its input ends: `floods records`
 * sends device work in the place of its agent, `floods words` messages for the user, `floods ring
 * BYTES` writes records into the memory that it shares with its hooks, whose rings have so many bytes, and
 * `floods hole BYTES` says of 1000 such rings that they are full and writes nothing there. It heeds no signal and nothing that it is asked for. Prints "floods" once it does.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cuda_runtime_api.h>

#include "../../../wire/agent_wire.h"
#include "../../../wire/hooks_wire.h"

#define RECORDS 200 /* in a message */
#define HOLES 1000

static bool input_ended(void)
{
	char c;

	return !read(0, &c, 1);
}

static void say_so(void)
{
	printf("floods\n");
	fflush(stdout);
}

/* What stands behind "NAME=" in the agent's words. */
static void word(const char *name, char *to, size_t size)
{
	const char *from = strstr(getenv("CUDATRACE_AGENT"), name);
	size_t len = from ? strcspn(from + strlen(name), " ") : 0;

	snprintf(to, size, "%.*s", (int)len, from ? from + strlen(name) : "");
}

static int greet(void)
{
	struct agent_hello hello = { .h = { sizeof(hello), AGENT_HELLO, 0 },
				     .magic = AGENT_MAGIC,
				     .version = AGENT_VERSION,
				     .pid = (__u32)getpid(),
				     .cupti_version = 130001,
				     .driver_version = 13000 };
	struct agent_list names = { .h = { sizeof(names), AGENT_NAMES, 0 }, .flags = AGENT_LAST };
	struct agent_started started = { .h = { sizeof(started), AGENT_STARTED, 0 },
					 .kinds = 0xffff };
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	char path[sizeof(at.sun_path)], key[sizeof(hello.key) + 1];

	word("path=", path, sizeof(path));
	word("key=", key, sizeof(key));
	memcpy(hello.key, key, sizeof(hello.key));
	memcpy(at.sun_path, path, sizeof(path));
	if (path[0] == '@')
		at.sun_path[0] = 0;
	if (connect(fd, (void *)&at,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path))) ||
	    send(fd, &hello, sizeof(hello), 0) < 0 || send(fd, &names, sizeof(names), 0) < 0 ||
	    send(fd, &started, sizeof(started), 0) < 0)
		return -1;
	return fd;
}

static __u64 now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (__u64)t.tv_sec * 1000000000 + (__u64)t.tv_nsec;
}

static void records(int fd)
{
	static struct {
		struct meet_head h;
		struct ct_set sets[RECORDS];
	} msg = { .h = { sizeof(msg), AGENT_RECORDS, 0 } };

	for (int i = 0; i < RECORDS; i++)
		msg.sets[i].w.h = (struct ct_hdr){ .size = sizeof(msg.sets[i]), .kind = CT_SET };
	do
		for (int i = 0; i < RECORDS; i++)
			msg.sets[i].w.h.start_ns = msg.sets[i].w.h.end_ns = now_ns();
	while (send(fd, &msg, sizeof(msg), MSG_NOSIGNAL) > 0 && !input_ended());
}

static void words(int fd)
{
	char msg[sizeof(struct meet_say) + 8] = { 0 };
	struct meet_say *say = (void *)msg;

	say->h = (struct meet_head){ sizeof(msg), AGENT_SAY, 0 };
	say->len = 8;
	memcpy(say->text, "any word", 8);
	while (send(fd, msg, sizeof(msg), MSG_NOSIGNAL) > 0 && !input_ended())
		;
}

static void *find_area(void)
{
	char line[4096], *area = NULL;
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long start, end;

	while (f && fgets(line, sizeof(line), f))
		if (strstr(line, "cudatrace-hooks") && sscanf(line, "%lx-%lx", &start, &end) == 2) {
			area = area ? area : (char *)start;
			mprotect((void *)start, end - start, PROT_READ | PROT_WRITE);
		}
	return area;
}

/* The last call that this thread, which has the first block, has made. */
static const struct ct_hdr *a_call(struct hooks_area *area, uint32_t bytes)
{
	const char *from = hooks_ring(hooks_block(area, 0, bytes));
	const struct ct_hdr *h = (const void *)(from + 8), *call = NULL;

	for (uint64_t at = 0; *(const uint64_t *)(from + at) == hooks_tag(at);
	     at += hooks_entry_bytes(h->size)) {
		h = (const void *)(from + at + 8);
		if (h->kind == CT_CALL)
			call = h;
	}
	return call;
}

static void hole(uint32_t bytes)
{
	struct hooks_area *area = find_area();

	if (!area)
		exit(3);
	for (uint32_t i = 1; i <= HOLES; i++) {
		struct hooks_thread *t = hooks_block(area, i, bytes);

		t->owner = HOOKS_USED;
		t->tid = (__u32)getpid();
		t->head = bytes;
	}
	area->blocks = HOLES + 1;
	say_so();
}

static void ring(uint32_t bytes)
{
	struct hooks_area *area = find_area();
	const struct ct_hdr *call = area ? a_call(area, bytes) : NULL;
	struct hooks_thread *t;
	uint64_t head = 0, need;

	if (!call)
		exit(3);
	need = hooks_entry_bytes(call->size);
	t = hooks_block(area, 1, bytes);
	t->owner = HOOKS_USED;
	t->tid = (__u32)getpid();
	area->blocks = 2;
	say_so();
	for (uint64_t n = 0; n % 100000 || !input_ended(); n++) {
		char *at = hooks_ring(t) + (head & (bytes - 1));
		size_t left = bytes - (head & (bytes - 1));

		if (head + (left < need ? left : need) -
			    __atomic_load_n(&t->tail, __ATOMIC_ACQUIRE) >
		    bytes)
			continue;
		if (left < need) {
			__atomic_store_n(&t->head, head + left, __ATOMIC_RELEASE);
			__atomic_store_n((uint64_t *)at, hooks_skip(head), __ATOMIC_RELEASE);
			head += left;
			continue;
		}
		memcpy(at + 8, call, call->size);
		__atomic_store_n(&t->head, head + need, __ATOMIC_RELEASE);
		__atomic_store_n((uint64_t *)at, hooks_tag(head), __ATOMIC_RELEASE);
		head += need;
	}
}

int main(int argc, char **argv)
{
	int fd;

	if (argc < 2)
		return 2;
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	fcntl(0, F_SETFL, O_NONBLOCK);
	if (argc > 2) {
		for (int i = 0; i < 5; i++)
			cudaStreamQuery(NULL);
		(strcmp(argv[1], "hole") ? ring : hole)((uint32_t)atol(argv[2]));
	} else {
		fd = greet();
		if (fd < 0)
			return 4;
		say_so();
		(strcmp(argv[1], "words") ? records : words)(fd);
	}
	while (!input_ended())
		usleep(10000);
	return 0;
}
