/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nvtx.c - the object that makes header-only NVTX 3 visible to probes.
 *
 * NVTX 3 is inlined into the program: each call goes through a slot of a table. A tool fills in the
 * slots; without a tool they are empty. This object fills in functions that have the same names as
 * those of libnvToolsExt and do nothing. cudatrace probes them like libnvToolsExt, by the rows of
 * user/api/layers/nvtx.def.
 *
 * In a program that cudatrace starts, NVTX itself loads the object (NVTX_INJECTION64_PATH). Into a
 * running program it is injected, and it learns over a socket where the tables are. When cudatrace
 * leaves or dies, the socket is closed, and slots that still hold our functions get their former
 * values. The object is never unloaded, because a thread may be about to call the address that it
 * has just read from a slot.
 *
 * It knows no record and never prints. It takes no lock of the loader: an object may be unmapped at any
 * moment, so it reads and writes tables by system calls, and calls none of the program's functions.
 */
#include "../common/compat.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <wchar.h>

#include "../common/alone.h"
#include "../common/along.h"
#include "../common/code_text.h"
#include "../common/meet.h"
#include "../common/objects.h"
#include "nvtx_payload.h"
#include "../../wire/nvtx_wire.h"
#include "../common/prologue.h"

#define EXPORT __attribute__((visibility("default"), noinline))

typedef void (*slot_fn)(void);
struct domain;

/* The beginning of nvtxEventAttributes_t. */
struct attributes {
	uint16_t version, size;
	uint32_t category, color_type, color;
	uint32_t payload_type, npayloads;
	const struct nvtx_payload *payloads;
};
#define PAYLOAD_EXTENDED 0xdfbd0009u

/* ---- the functions to which the slots lead ---- */

/* The value that NVTX's header has for a tool that does not count the depth of ranges. */
#define NO_TRACKING (-2)

/* A number of its own for each domain, text and started range of this process; never 0. */
static uint64_t next_id(void)
{
	static uint64_t last;

	return __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
}

static void *next_handle(void)
{
	return (void *)(uintptr_t)(next_id() << 4);
}

/* A body that no other function has: a linker may merge equal functions, and then probes could not
 * distinguish them. */
#define DIFFERENT(n)                           \
	do {                                   \
		PUSHES();                      \
		__asm__ volatile("" ::"i"(n)); \
	} while (0)

#define NOTHING(n, name, ...)          \
	EXPORT void name(__VA_ARGS__); \
	EXPORT void name(__VA_ARGS__)  \
	{                              \
		DIFFERENT(n);          \
	}
#define LEVEL(n, name, ...)           \
	EXPORT int name(__VA_ARGS__); \
	EXPORT int name(__VA_ARGS__)  \
	{                             \
		DIFFERENT(n);         \
		return NO_TRACKING;   \
	}
#define RANGE_ID(n, name, ...)             \
	EXPORT uint64_t name(__VA_ARGS__); \
	EXPORT uint64_t name(__VA_ARGS__)  \
	{                                  \
		DIFFERENT(n);              \
		return next_id();          \
	}
#define HANDLE(n, name, ...)            \
	EXPORT void *name(__VA_ARGS__); \
	EXPORT void *name(__VA_ARGS__)  \
	{                               \
		DIFFERENT(n);           \
		return next_handle();   \
	}

#pragma GCC diagnostic ignored "-Wunused-parameter"
/* clang-format off */
NOTHING(1, nvtxMarkEx, const struct attributes *a)
NOTHING(2, nvtxMarkA, const char *message)
NOTHING(3, nvtxMarkW, const wchar_t *message)
RANGE_ID(4, nvtxRangeStartEx, const struct attributes *a)
RANGE_ID(5, nvtxRangeStartA, const char *message)
RANGE_ID(6, nvtxRangeStartW, const wchar_t *message)
NOTHING(7, nvtxRangeEnd, uint64_t id)
LEVEL(8, nvtxRangePushEx, const struct attributes *a)
LEVEL(9, nvtxRangePushA, const char *message)
LEVEL(10, nvtxRangePushW, const wchar_t *message)
LEVEL(11, nvtxRangePop, void)
NOTHING(12, nvtxNameCategoryA, uint32_t category, const char *name)
NOTHING(13, nvtxNameCategoryW, uint32_t category, const wchar_t *name)
NOTHING(14, nvtxDomainMarkEx, struct domain *d, const struct attributes *a)
RANGE_ID(15, nvtxDomainRangeStartEx, struct domain *d, const struct attributes *a)
NOTHING(16, nvtxDomainRangeEnd, struct domain *d, uint64_t id)
LEVEL(17, nvtxDomainRangePushEx, struct domain *d, const struct attributes *a)
LEVEL(18, nvtxDomainRangePop, struct domain *d)
NOTHING(19, nvtxDomainNameCategoryA, struct domain *d, uint32_t category, const char *name)
NOTHING(20, nvtxDomainNameCategoryW, struct domain *d, uint32_t category, const wchar_t *name)
HANDLE(21, nvtxDomainRegisterStringA, struct domain *d, const char *string)
HANDLE(22, nvtxDomainRegisterStringW, struct domain *d, const wchar_t *string)
HANDLE(23, nvtxDomainCreateA, const char *name)
HANDLE(24, nvtxDomainCreateW, const wchar_t *name)
/* not a function of NVTX: the payload, as text, of the next event in this thread */
NOTHING(31, nvtxPayloadText, const char *message)
/* Not probed. They are here so that a call of them does not initialise NVTX, which empties all
 * slots if it finds no tool. */
#undef EXPORT
#define EXPORT static __attribute__((noinline))
NOTHING(25, name_thread_a, uint32_t thread, const char *name)
NOTHING(26, name_thread_w, uint32_t thread, const wchar_t *name)
HANDLE(27, create_resource, struct domain *d, void *attributes)
NOTHING(28, destroy_resource, void *resource)
NOTHING(29, destroy_domain, struct domain *d)
NOTHING(30, initialize, const void *reserved)
#undef EXPORT
#define EXPORT __attribute__((visibility("default"), noinline))
/* clang-format on */

static __attribute__((noinline)) void say_payload(const struct domain *d,
						  const struct attributes *a)
{
	char text[NVTX_PAYLOAD_TEXT];

	if (nvtx_payload_text(d, a->payloads, a->npayloads, text))
		nvtxPayloadText(text);
}

static void look(const struct domain *d, const struct attributes *a)
{
	if (a && a->size >= sizeof(*a) && a->payload_type == PAYLOAD_EXTENDED && a->npayloads)
		say_payload(d, a);
}

/* The functions with attributes to which slots lead. */
static void mark(const struct attributes *a)
{
	look(NULL, a);
	nvtxMarkEx(a);
}
static uint64_t start(const struct attributes *a)
{
	look(NULL, a);
	return nvtxRangeStartEx(a);
}
static int push(const struct attributes *a)
{
	look(NULL, a);
	return nvtxRangePushEx(a);
}
static void domain_mark(struct domain *d, const struct attributes *a)
{
	look(d, a);
	nvtxDomainMarkEx(d, a);
}
static uint64_t domain_start(struct domain *d, const struct attributes *a)
{
	look(d, a);
	return nvtxDomainRangeStartEx(d, a);
}
static int domain_push(struct domain *d, const struct attributes *a)
{
	look(d, a);
	return nvtxDomainRangePushEx(d, a);
}

#define CORE 1
#define CORE_2 5
#define IDS NVTX_IDS

/* By the numbers that NVTX's header gives them (NVTX_CBID_CORE_*, NVTX_CBID_CORE2_*). */
#define AT(n, name) [n] = (slot_fn)(name)
static const slot_fn of_core[IDS] = {
	AT(1, mark),
	AT(2, nvtxMarkA),
	AT(3, nvtxMarkW),
	AT(4, start),
	AT(5, nvtxRangeStartA),
	AT(6, nvtxRangeStartW),
	AT(7, nvtxRangeEnd),
	AT(8, push),
	AT(9, nvtxRangePushA),
	AT(10, nvtxRangePushW),
	AT(11, nvtxRangePop),
	AT(12, nvtxNameCategoryA),
	AT(13, nvtxNameCategoryW),
	AT(14, name_thread_a),
	AT(15, name_thread_w),
};
static const slot_fn of_core_2[IDS] = {
	AT(1, domain_mark),
	AT(2, domain_start),
	AT(3, nvtxDomainRangeEnd),
	AT(4, domain_push),
	AT(5, nvtxDomainRangePop),
	AT(8, nvtxDomainNameCategoryA),
	AT(9, nvtxDomainNameCategoryW),
	AT(10, nvtxDomainRegisterStringA),
	AT(11, nvtxDomainRegisterStringW),
	AT(12, nvtxDomainCreateA),
	AT(13, nvtxDomainCreateW),
	AT(6, create_resource),
	AT(7, destroy_resource),
	AT(14, destroy_domain),
	AT(15, initialize),
};

/* A module's slots, as NVTX's GetModuleFunctionTable returns them. */
typedef int (*get_table_fn)(uint32_t module, slot_fn ***slots, unsigned int *n);

struct callbacks {
	size_t size;
	get_table_fn get_table;
};

/* ---- in a program that cudatrace started: NVTX has loaded this object ---- */

EXPORT int InitializeInjectionNvtx2(const void *(*get_export_table)(uint32_t id));

static void fill(get_table_fn get, uint32_t module, const slot_fn *ours)
{
	slot_fn **slots = NULL;
	unsigned int n = 0;

	if (!get(module, &slots, &n) || !slots)
		return;
	for (unsigned int i = 1; i < n && i < IDS; i++)
		if (ours[i] && slots[i])
			__atomic_store_n(slots[i], ours[i], __ATOMIC_RELEASE);
}

int InitializeInjectionNvtx2(const void *(*get_export_table)(uint32_t id))
{
	const struct callbacks *c = get_export_table ? get_export_table(1) : NULL;

	if (!c || c->size < sizeof(*c) || !c->get_table)
		return 0;
	fill(c->get_table, CORE, of_core);
	fill(c->get_table, CORE_2, of_core_2);
	return 1;
}

/* An extension of NVTX, as its nvtxExtTypes.h has it. */
struct extension {
	uint16_t version, size, module, compatible;
	size_t nsegments;
	struct {
		size_t id, nslots;
		intptr_t *slots;
	} * segments;
};
#define EXTENSION_PAYLOAD 2
#define PAYLOAD_COMPATIBLE 0x0100 /* and the byte below: additions */
#define SCHEMA_REGISTER 0
#define ENUM_REGISTER 1

EXPORT int InitializeInjectionNvtxExtension(struct extension *);

/* NVTX calls it, too. Slots that are not set do nothing; returning 0 would disable the program's
 * domains. */
int InitializeInjectionNvtxExtension(struct extension *x)
{
	if (x && x->module == EXTENSION_PAYLOAD && (x->compatible & 0xff00) == PAYLOAD_COMPATIBLE &&
	    x->nsegments && x->segments->nslots > SCHEMA_REGISTER)
		x->segments->slots[SCHEMA_REGISTER] = (intptr_t)nvtx_schema_register;
	if (x && x->module == EXTENSION_PAYLOAD && (x->compatible & 0xff00) == PAYLOAD_COMPATIBLE &&
	    x->nsegments && x->segments->nslots > ENUM_REGISTER)
		x->segments->slots[ENUM_REGISTER] = (intptr_t)nvtx_enum_register;
	return 1;
}

/* ---- in a program that was already running ---- */

struct taken {
	uint64_t at;	 /* the globals */
	uint64_t lo, hi; /* the object that they are in */
	bool again;	 /* not initialised yet: the initialisation may empty the slots */
	uint64_t was[2][IDS];
};

static struct {
	pid_t pid; /* a forked child inherits this, but not the thread that uses it */
	int users; /* connections */
	int ntaken;
	struct taken taken[NVTX_GLOBALS_MAX];
} all;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The process's memory and its mappings, for a thread that has a descriptor table of its own. */
static void begin_reading(struct text_fds kept)
{
	pthread_mutex_lock(&lock);
	text_keep_these(kept);
	text_open(); /* it is read without, too */
}

static void end_reading(void)
{
	text_close();
	text_forget();
	pthread_mutex_unlock(&lock);
}

enum what { TAKE, PUT_BACK };

/* Examines and changes globals. */
struct visit {
	enum what what;
	bool fresh; /* those too */
	struct taken *t;
	/* out */
	bool there, taken, others, again;
};

static uint32_t state_of(uint64_t at)
{
	uint32_t state = NVTX_COMPLETE;

	return text_read(at, &state, sizeof(state)) ? NVTX_COMPLETE : state;
}

/*
 * Writes a slot by which the program's threads may be calling. With pwrite() they could read half an address, because
 * the kernel may copy byte by byte, and a store of ours would crash where the object has been unmapped. The kernel
 * stores the address of a thread's list of robust locks as one word, and fails where a store would crash. So for
 * this moment `to` is the list of this thread, which has no such locks.
 */
static bool store(uint64_t slot, uint64_t to)
{
	uint64_t mine;
	size_t bytes;
	bool stored;

	if (syscall(SYS_get_robust_list, 0, &mine, &bytes) ||
	    syscall(SYS_set_robust_list, to, bytes))
		return false;
	stored = !syscall(SYS_get_robust_list, 0, slot, &bytes);
	syscall(SYS_set_robust_list, mine, bytes);
	return stored;
}

/* If the program changes the slot at this moment, our function may take the place of what it writes there. This
 * is rare, and the slot has one of the two. */
static bool change(uint64_t slot, uint64_t from, uint64_t to)
{
	uint64_t is;

	return !text_read(slot, &is, sizeof(is)) && is == from && store(slot, to);
}

static void take(struct visit *v, uint64_t slot, uint64_t ours, uint64_t *was, uint32_t state)
{
	uint64_t is;

	if (text_read(slot, &is, sizeof(is)))
		return;
	if (is == ours) {
		v->taken = true;
	} else if (is && (is < v->t->lo || is >= v->t->hi)) {
		v->others = true;
	} else if (state == NVTX_COMPLETE ? !is : v->fresh && is) {
		/* empty, or it leads to the function that would initialise NVTX and find no tool */
		if (change(slot, is, ours)) {
			*was = is;
			v->taken = true;
		}
	}
}

/* If NVTX has been initialised, no slot may still lead to the function that initialises it: that
 * function would call itself. */
static void put_back(uint64_t at, uint64_t slot, uint64_t ours, uint64_t was)
{
	if (state_of(at) != NVTX_FRESH)
		was = 0;
	if (change(slot, ours, was) && was && state_of(at) != NVTX_FRESH)
		change(slot, was, 0);
}

static void work_on(struct visit *v, unsigned int first, const slot_fn *ours, uint64_t *was)
{
	uint64_t slots = v->t->at + sizeof(struct nvtx_globals) + first * 8ULL;

	for (unsigned int i = 1; i < IDS; i++) {
		uint64_t slot = slots + (i - 1) * 8ULL;

		if (!ours[i])
			continue;
		if (v->what == TAKE)
			take(v, slot, (uint64_t)(uintptr_t)ours[i], &was[i], state_of(v->t->at));
		else
			put_back(v->t->at, slot, (uint64_t)(uintptr_t)ours[i], was[i]);
	}
}

static bool is_in(const struct taken *t, uint64_t at)
{
	return at >= t->lo && at < t->hi;
}

static struct visit visit(enum what what, struct taken *t, bool fresh)
{
	struct visit v = { .what = what, .fresh = fresh, .t = t };
	struct nvtx_layout l;

	/* another object may be mapped there by now */
	if (text_read(t->at, &l, sizeof(l)) || !nvtx_globals_plausible(&l.head) ||
	    !is_in(t, l.head.get_table) || !is_in(t, l.head.set_version))
		return v;
	v.there = true;
	/* a copy of a linker that has taken another one of the same object: nothing leads to its slots */
	if (!nvtx_tables_lead(&l, t->at))
		return v;
	v.again = l.head.state != NVTX_COMPLETE;
	if (what == TAKE && l.head.state == NVTX_STARTED)
		return v;
	work_on(&v, NVTX_SLOT_CORE, of_core, t->was[0]);
	work_on(&v, NVTX_SLOT_CORE_2, of_core_2, t->was[1]);
	return v;
}

static bool is_code(const struct text_maps *maps, uint64_t at)
{
	const struct text_map *m = text_maps_find(maps, at);

	return m && m->exec;
}

/* Finds the object that the globals at this address are in. Returns false if there can be none: the loader
 * makes a part of an object read-only. */
static bool find_object(const struct text_maps *maps, struct taken *t)
{
	struct nvtx_globals g;
	struct object o;

	if (t->at % 8 || t->at > UINT64_MAX - NVTX_GLOBALS_BYTES || !object_find(maps, t->at, &o) ||
	    o.hi - t->at < NVTX_GLOBALS_BYTES)
		return false;
	for (uint64_t at = t->at; at < t->at + NVTX_GLOBALS_BYTES;) {
		const struct text_map *m = text_maps_find(maps, at);

		if (!m || !m->read || !m->write)
			return false;
		at = m->hi;
	}
	t->lo = o.lo;
	t->hi = o.hi;
	return !text_read(t->at, &g, sizeof(g)) && is_code(maps, g.get_table) &&
	       is_code(maps, g.set_version);
}

static struct taken *nvtx_find(uint64_t at)
{
	for (int i = 0; i < all.ntaken; i++)
		if (all.taken[i].at == at)
			return &all.taken[i];
	return NULL;
}

static void take_one(const struct text_maps *maps, uint64_t at, bool fresh,
		     struct nvtx_reported *reported)
{
	struct taken *t = nvtx_find(at);
	struct visit v = { 0 };

	if (!t && all.ntaken == NVTX_GLOBALS_MAX) {
		reported->refused++;
		return;
	}
	if (!t) {
		t = &all.taken[all.ntaken++];
		memset(t, 0, sizeof(*t));
		t->at = at;
	}
	if (find_object(maps, t))
		v = visit(TAKE, t, fresh);
	t->again = v.again;
	reported->taken += v.there && !v.others;
	reported->others += v.others;
	reported->refused += !v.there;
	if (!v.there)
		*t = all.taken[--all.ntaken];
}

static void take_all(const struct nvtx_ask *ask, struct text_fds kept,
		     struct nvtx_reported *reported)
{
	struct text_maps maps;

	memset(reported, 0, sizeof(*reported));
	begin_reading(kept);
	text_maps_read(&maps); /* without them all are refused */
	for (uint32_t i = 0; i < ask->n; i++)
		take_one(&maps, ask->at[i], ask->fresh, reported);
	text_maps_free(&maps);
	end_reading();
}

/* Looks at globals that were not initialised: since then, a call that leads to no function of ours
 * may have initialised them. `every`: looks at the others, too, because an object that was unloaded
 * may be back at its place. Returns whether some are still not initialised. */
static bool look_again(struct text_fds kept, bool fresh, bool every)
{
	bool left = false;

	begin_reading(kept);
	for (int i = 0; i < all.ntaken; i++) {
		struct taken *t = &all.taken[i];
		struct visit v;

		left |= t->again;
		if (!every && (!t->again || state_of(t->at) == NVTX_FRESH))
			continue;
		v = visit(TAKE, t, fresh);
		t->again = v.again;
		if (!v.there) /* unloaded: if it comes back, cudatrace finds it */
			all.taken[i--] = all.taken[--all.ntaken];
	}
	end_reading();
	return left;
}

static void leave(struct text_fds kept)
{
	begin_reading(kept);
	if (!--all.users) {
		for (int i = 0; i < all.ntaken; i++)
			visit(PUT_BACK, &all.taken[i], false);
		all.ntaken = 0;
	}
	end_reading();
}

/* ---- the thread ---- */

#define AGAIN_MS 250
#define EVERY_MS 2000

static void live(struct held *sock, struct text_fds kept)
{
	struct nvtx_ask ask;
	struct nvtx_reported reported;
	bool left = false, fresh = false;
	int slept_ms = 0;

	for (;;) {
		int fd = held_fd(sock);
		struct pollfd p = { .fd = fd, .events = POLLIN };
		ssize_t n;

		if (fd < 0)
			return; /* the program has closed it */
		n = poll(&p, 1, left ? AGAIN_MS : EVERY_MS);
		if ((n < 0 && errno != EINTR) || (!n && alone()))
			return;
		slept_ms += n ? 0 : left ? AGAIN_MS : EVERY_MS;
		if (left || slept_ms >= EVERY_MS)
			left = look_again(kept, fresh, slept_ms >= EVERY_MS);
		if (slept_ms >= EVERY_MS)
			slept_ms = 0;
		if (n <= 0 || held_fd(sock) < 0)
			continue;
		n = recv(fd, &ask, sizeof(ask), MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n != sizeof(ask) || ask.n > NVTX_ASK_MAX)
			return;
		fresh = ask.fresh;
		take_all(&ask, kept, &reported);
		left = look_again(kept, fresh, false);
		if (send(fd, &reported, sizeof(reported), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			return;
	}
}

static struct along along;
static const struct text_fds none = { -1, -1 };

/* Opens, on a thread that has a descriptor table of its own, what it keeps open; the lock is for what reads. */
static struct text_fds keep(void)
{
	struct text_fds kept;

	pthread_mutex_lock(&lock);
	text_forget();
	text_keep();
	kept = text_kept();
	text_forget();
	pthread_mutex_unlock(&lock);
	return kept;
}

static void let_go(struct text_fds kept)
{
	pthread_mutex_lock(&lock);
	text_keep_these(kept);
	text_let_go();
	pthread_mutex_unlock(&lock);
}

static void *thread_main(void *arg)
{
	int fds[ALONG_FDS] = { (int)(intptr_t)arg, -1, -1 };
	struct text_fds kept = none;
	struct held sock;

	prctl(PR_SET_NAME, "cudatrace-nvtx");
	alone_begins();
	if (!along_take(&along, fds)) {
		held_take(&sock, fds[0]);
		if (along.own) {
			alone_keep();
			kept = keep();
		}
		along_taken(&along);
		live(&sock, kept);
		leave(kept);
		let_go(kept);
		held_close(&sock);
	}
	alone_ends();
	return NULL;
}

/* The thread has a descriptor table of its own: the socket does not stay in the program's. */
static int begin_thread(int fd)
{
	static int beginning; /* for another tracer, at the same time */
	const int fds[ALONG_FDS] = { fd, -1, -1 };
	const struct meet m = { .fd = fd };
	struct held given;
	int err = meet_connect(&m, 0, &given);

	if (err)
		return err; /* it is no socket of ours */
	if (__atomic_exchange_n(&beginning, 1, __ATOMIC_ACQUIRE))
		return -EAGAIN;
	err = along_begin(&along, thread_main, (void *)(intptr_t)fd, fds);
	if (err || along.own)
		held_close(&given);
	__atomic_store_n(&beginning, 0, __ATOMIC_RELEASE);
	return err;
}

/* A number after "fd=". */
static int fd_of(const char *how)
{
	const char *at = strstr(how, "fd=");

	return at ? atoi(at + 3) : -1;
}

EXPORT int cudatrace_nvtx_start(const char *how);

/* Called by the injector on a thread of the program: it only creates our own thread, which blocks
 * all signals. Returns 0 or -errno. */
int cudatrace_nvtx_start(const char *how)
{
	pid_t pid = (pid_t)syscall(SYS_getpid);
	int fd = fd_of(how), err;

	if (fd < 0)
		return -EINVAL;
	if (all.pid != pid) { /* the first time, or in a child that was forked */
		pthread_mutex_init(&lock, NULL);
		all.users = 0;
		all.pid = pid;
	}
	pthread_mutex_lock(&lock);
	all.users++;
	pthread_mutex_unlock(&lock);
	err = begin_thread(fd);
	if (err)
		leave(none);
	return err;
}

__attribute__((constructor)) static void born(void)
{
	alone_meet();
}
