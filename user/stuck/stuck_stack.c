/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stuck_stack.c - see stuck_stack.h.
 *
 * What the unwinder found is believed. Only where it lost its way before the thread's first
 * frame is the rest of the stack searched, and only if no frame has shown a call.
 */
#include "stuck_stack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../proc/target.h"
#include "../resolve/stacks/cfi.h"
#include "../resolve/stacks/unwind.h"

#define PROCESSES 64 /* whose address spaces are kept */
#define SCAN_MAX (64u << 10)
#define PUSHED_MAX 32 /* bytes that a return probe's trampoline has pushed */
#if defined(__x86_64__)
#define RETURN_BYTES 8 /* what a return takes from the stack */
#else
#define RETURN_BYTES 0
#endif

struct process {
	pid_t pid;
	uint64_t start_boottime_ns;
	struct target *target;
	struct space *space;
	uint64_t used, read_ns;
};

struct stuck_stacks {
	struct objects *objects;
	struct process procs[PROCESSES];
	uint64_t clock;
	struct unwind_regs regs[UNWIND_MAX];
	struct stuck_frame frames[UNWIND_MAX];
};

struct stuck_stacks *stuck_stacks_open(struct objects *objects)
{
	struct stuck_stacks *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->objects = objects;
	return s;
}

static void forget(struct process *p)
{
	space_close(p->space);
	target_close(p->target);
	*p = (struct process){ .space = NULL };
}

void stuck_stacks_close(struct stuck_stacks *s)
{
	if (!s)
		return;
	for (int i = 0; i < PROCESSES; i++)
		forget(&s->procs[i]);
	free(s);
}

/* The place of a process; of one that is not there that of the one that was used least recently, and p->space is NULL or
 * another one's. */
static struct process *place_of(struct stuck_stacks *s, const struct snapshot_process *about,
				bool *there)
{
	struct process *p = &s->procs[0];

	*there = false;
	for (int i = 0; i < PROCESSES; i++) {
		if (s->procs[i].space && s->procs[i].pid == about->pid &&
		    s->procs[i].start_boottime_ns == about->about.start_boottime_ns) {
			*there = true;
			return &s->procs[i];
		}
		if (s->procs[i].used < p->used)
			p = &s->procs[i];
	}
	return p;
}

/* Opens a process in this place. Returns false if it is gone, or there is no memory: the place is as it was. */
static bool open_process(struct stuck_stacks *s, struct process *p,
			 const struct snapshot_process *about)
{
	struct process new = { .pid = about->pid,
			       .start_boottime_ns = about->about.start_boottime_ns };

	if (target_open(&new.target, about->pid, about->about.start_boottime_ns))
		return false;
	new.space = space_open(s->objects);
	if (!new.space || space_refresh(new.space, new.target)) {
		forget(&new);
		return false;
	}
	forget(p);
	*p = new;
	return true;
}

/* NULL: it is gone, or there is no memory. */
static struct process *process_of(struct stuck_stacks *s, const struct snapshot_process *about)
{
	bool there;
	struct process *p = place_of(s, about, &there);

	if (!there && !open_process(s, p, about))
		return NULL;
	p->used = ++s->clock;
	return p;
}

void stuck_stacks_know(struct stuck_stacks *s, const struct snapshot_process *about,
		       uint64_t now_ns, uint64_t every_ns)
{
	bool there;
	struct process *p = place_of(s, about, &there);

	if (there && p->read_ns && now_ns - p->read_ns < every_ns)
		return;
	if (!open_process(s, p, about))
		return;
	p->read_ns = now_ns;
	p->used = ++s->clock;
}

static int read_code(void *ctx, uint64_t addr, void *buf, size_t len)
{
	return target_read(ctx, addr, buf, len);
}

/* Searches what the unwinder did not get to: from the stack pointer of the last frame that it
 * found on. */
static bool scan(const struct snapshot_thread *t, uint64_t sp, struct target *target,
		 struct stuck_call *call)
{
	uint64_t skip = (sp - t->sp + 7) & ~7ULL;

	if (sp < t->sp || skip >= t->len)
		return false;
	return stuck_call_by_scan(call, t->process, t->sp + skip, t->stack + skip,
				  t->len - skip < SCAN_MAX ? t->len - skip : SCAN_MAX, read_code,
				  target);
}

/* The unwinder lost its way outside of this call. Is it inside of an older one? */
static bool may_be_around(const struct snapshot_thread *t, const struct stuck_call *call,
			  struct target *target)
{
	struct stuck_call outer;
	uint64_t from = call->sp;

	if (snapshot_began(t, call->sp, call->ip != 0) != SNAPSHOT_SINCE)
		return false;
	for (uint32_t i = 0; i < t->nreach && i < CT_REACHES; i++)
		if (t->reach[i].sp > from && from > t->reach[i].start)
			from = t->reach[i].sp;
	return scan(t, from, target, &outer);
}

/* The caller's frame, for resolving its stack while the call lasts. */
static void caller(const struct unwind_regs *r, const struct ct_saved *saved, int nsaved,
		   struct ct_user_stack *out)
{
	*out = (struct ct_user_stack){
		.h = { .size = sizeof(*out), .kind = CT_USER_STACK },
		.ip = r->ip,
		.sp = r->sp,
		.bp = r->bp,
		.how = CT_STACK_LIVE,
	};
	memcpy(out->regs, r->regs, sizeof(out->regs));
	for (int i = 0; i < nsaved; i++)
		if (saved[i].sp >= r->sp)
			out->saved[out->nsaved++] = saved[i];
}

/* The return addresses that are missing on the stack as it was read. What the kernel knows may
 * be of a moment before. */
static int missing(const struct snapshot_thread *t, struct process *p,
		   struct ct_saved out[CT_MAX_FRAMES])
{
	int n = 0;

	for (int i = 0; i < t->nsaved && n < CT_MAX_FRAMES; i++) {
		uint64_t at = t->saved[i].sp - t->sp, word;

		if (at < t->len && t->len - at >= 8)
			memcpy(&word, t->stack + at, 8);
		else if (target_read(p->target, t->saved[i].sp, &word, 8))
			continue;
		if (space_find(p->space, p->target, word).kind == SPACE_UPROBES)
			out[n++] = t->saved[i];
	}
	return n;
}

static bool leads(const struct snapshot_thread *t, const struct ct_saved *s,
		  struct unwind_regs *now)
{
	uint64_t sp = s->sp + RETURN_BYTES;

	if (!s->sp || !s->ip || sp < t->sp || sp - t->sp > PUSHED_MAX || sp - t->sp > t->len)
		return false;
	now->ip = s->ip;
	now->sp = sp;
	now->exact = false;
	return true;
}

/* A thread that is in a return probe, on its way out of a call, is taken to where it is going: the kernel knows
 * the return address. Returns false if it does not. */
static bool leave(const struct snapshot_thread *t, struct unwind_regs *now)
{
	for (int i = t->nsaved; i-- > 0;)
		if (leads(t, &t->saved[i], now))
			return true;
	for (size_t i = 0; i < ARRAY_LEN(t->ending); i++)
		if (leads(t, &t->ending[i], now))
			return true;
	return false;
}

/* Has the thread come upon the probe at the begin of a function, and the kernel not dealt with it yet? On x86-64
 * it then stands one byte behind, as if it had executed a push of one byte. But on top of the stack is still the
 * return address. */
static bool at_probe(const struct snapshot_thread *t, struct process *p)
{
#if defined(__x86_64__)
	enum space_kind kind;
	uint64_t word;

	if (t->len < sizeof(word) || !stuck_call_begins(t->process, t->ip - 1))
		return false;
	memcpy(&word, t->stack, sizeof(word));
	kind = space_find(p->space, p->target, word).kind;
	return kind == SPACE_CODE || kind == SPACE_OBJECT || kind == SPACE_UPROBES;
#else
	return false;
#endif
}

/* Where the function of a frame begins, in the process; 0: not known. */
static uint64_t begin_of(struct process *p, const struct stuck_frame *f)
{
	uint64_t ip = f->ip - !f->exact, begin;
	struct space_place place = space_find(p->space, p->target, ip);

	if (place.kind != SPACE_OBJECT || !cfi_begin(place.object, place.address, &begin))
		return 0;
	return ip - (place.address - begin);
}

/* The frames of a thread, to s->regs. Returns their number, or -EAGAIN: it is at a probe, and it is not known
 * where it goes. */
static int unwind(struct stuck_stacks *s, struct process *p, const struct snapshot_thread *t,
		  struct ct_saved saved[CT_MAX_FRAMES], int *nsaved, uint32_t *flags)
{
	struct unwind_regs now = {
		.ip = t->ip, .sp = t->sp, .bp = t->bp, .lr = t->lr, .exact = true
	};

	objects_set_process(s->objects, target_root(p->target), target_uid(p->target));
	memcpy(now.regs, t->regs, sizeof(now.regs));
	if (at_probe(t, p))
		now.ip--;
	if (space_find(p->space, p->target, t->ip).kind == SPACE_UPROBES && !leave(t, &now))
		return -EAGAIN;
	*nsaved = missing(t, p, saved);
	return unwind_thread(p->space, p->target, &now, t->stack + (now.sp - t->sp),
			     t->len - (now.sp - t->sp), saved, *nsaved, s->regs, UNWIND_MAX, flags);
}

bool stuck_stacks_frames(struct stuck_stacks *s, const struct snapshot_thread *t,
			 void (*each)(void *ctx, const struct space_place *, uint64_t ip,
				      bool exact),
			 void *ctx)
{
	struct process *p = process_of(s, t->process);
	struct ct_saved saved[CT_MAX_FRAMES];
	uint32_t flags = 0;
	int n, nsaved;

	n = p ? unwind(s, p, t, saved, &nsaved, &flags) : 0;
	for (int i = 0; i < n; i++) {
		struct space_place at =
			space_find(p->space, p->target, s->regs[i].ip - !s->regs[i].exact);

		/* the place is that of the address itself: symbols_find() looks before it */
		at.address += at.kind == SPACE_OBJECT && !s->regs[i].exact;
		each(ctx, &at, s->regs[i].ip, s->regs[i].exact);
	}
	return n > 0 && !flags;
}

int stuck_stacks_call(struct stuck_stacks *s, const struct snapshot_thread *t,
		      struct stuck_call *call, struct ct_user_stack *stack)
{
	struct process *p = process_of(s, t->process);
	struct ct_saved saved[CT_MAX_FRAMES];
	uint32_t flags;
	int n, nsaved;

	stack->h.size = 0;
	if (!p)
		return 0;
	n = unwind(s, p, t, saved, &nsaved, &flags);
	if (n < 0)
		return n;
	/* a call with a return probe that began or ended at this moment: what is around it is not known */
	if (t->sampled && flags && n < UNWIND_MAX && s->regs[n].ip &&
	    space_find(p->space, p->target, s->regs[n].ip).kind == SPACE_UPROBES)
		return -EAGAIN;
	for (int i = 0; i < n; i++)
		s->frames[i] = (struct stuck_frame){ .ip = s->regs[i].ip,
						     .sp = s->regs[i].sp,
						     .exact = s->regs[i].exact };
	for (int i = 0; i + 1 < n; i++)
		if (stuck_call_enters(t->process, &s->frames[i], &s->frames[i + 1]))
			s->frames[i].begin = begin_of(p, &s->frames[i]);
	if (stuck_call_of_frames(call, t->process, s->frames, n, read_code, p->target)) {
		if (flags && may_be_around(t, call, p->target))
			return -EAGAIN;
		if (call->caller >= 0)
			caller(&s->regs[call->caller], saved, nsaved, stack);
		return 1;
	}
	return flags && scan(t, n ? s->regs[n - 1].sp : t->sp, p->target, call);
}
