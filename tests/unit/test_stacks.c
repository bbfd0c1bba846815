/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_stacks.c - raw records in, frames and stacks out, and what the table of stacks makes of
 * them: joined with Python's frames, each sent once, forgotten at the same time on both sides.
 */
#include <errno.h>
#include <time.h>

#include "../../user/resolve/stacks/stacks.h"
#include "../../user/resolve/stacks/unwind.h"
#include "shots.h"

static uint8_t buf[SHOTS_RECORD_MAX] __attribute__((aligned(8)));
static struct shot shot;

/* The outlet: the table learns, as a later stage would. */
static struct stack_table *table;
static uint32_t nframes_sent, nstacks_sent, fail_after;

static int take(void *ctx, const struct ct_hdr *rec)
{
	(void)ctx;
	CHECK(rec->kind == CT_FRAME || rec->kind == CT_STACK);
	CHECK(!record_check(rec, rec->size));
	nframes_sent += rec->kind == CT_FRAME;
	nstacks_sent += rec->kind == CT_STACK;
	if (fail_after && !--fail_after)
		return -ECANCELED;
	return stack_table_record(table, rec);
}

struct rig {
	struct stacks *stacks;
	struct shots shots;
	struct target *target;
};

static struct rig rig_open(const char *shape, int n)
{
	struct rig r = { .stacks = stacks_open(take, NULL, NULL, false),
			 .shots = shots_start("debug", shape, n, SHOT_MAX) };

	table = stack_table_open();
	nframes_sent = nstacks_sent = 0;
	CHECK(shots_next(&r.shots, &shot));
	CHECK(!target_open(&r.target, r.shots.pid, 0));
	return r;
}

static void rig_close(struct rig *r)
{
	stacks_close(r->stacks);
	stack_table_close(table);
	shots_end(&r->shots);
	target_close(r->target);
}

/* The call's record, with the id as the resolve stage puts it. */
static const struct stack *find(uint32_t id)
{
	union {
		struct ct_call c;
		uint64_t words[sizeof(struct ct_call) / 8 + 1];
	} call = { .c.h = { .size = sizeof(call), .kind = CT_CALL, .flags = CT_F_STACK } };

	call.words[sizeof(struct ct_call) / 8] = id;
	return stack_table_find(table, &call.c);
}

static uint32_t resolve(struct rig *r, struct target *t, uint64_t start_ns)
{
	struct ct_call c = { .h = { .size = sizeof(c), .kind = CT_CALL, .start_ns = start_ns } };

	c.h.pid = c.h.tid = (uint32_t)r->shots.pid;
	return stacks_of_call(r->stacks, t, &c);
}

static void send_native(struct rig *r, uint64_t start_ns)
{
	CHECK(!stacks_record(r->stacks, r->target,
			     &shots_record(&shot, r->shots.pid, start_ns, buf)->h));
}

static void send_python(struct rig *r, uint64_t start_ns, const struct ct_py_frame *frames,
			int first, int n)
{
	struct ct_py_stack *ps = (struct ct_py_stack *)buf;

	memset(ps, 0, sizeof(*ps));
	ps->h.kind = CT_PY_STACK;
	ps->h.size = (uint16_t)(sizeof(*ps) + (size_t)n * sizeof(frames[0]));
	ps->h.pid = ps->h.tid = (uint32_t)r->shots.pid;
	ps->h.start_ns = start_ns;
	ps->first = (uint16_t)first;
	ps->n = (uint16_t)n;
	memcpy(ps->frames, frames, (size_t)n * sizeof(frames[0]));
	CHECK(!stacks_record(r->stacks, r->target, &ps->h));
}

/* "level level main"; inlined in brackets, Python's as py:ADDRESS or py:NAME; up to main. */
static const char *names(const struct stack *s)
{
	static char text[65536];
	size_t len = 0;

	text[0] = '\0';
	for (uint32_t i = 0; s && i < s->nframes; i++) {
		const struct stack_frame *f = s->frames[i];
		const char *name = f->function ? f->function : "-";
		char code[32];

		snprintf(code, sizeof(code), "%llx", (unsigned long long)f->address);
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s%s%s", len ? " " : "",
					f->kind == CT_FRAME_INLINED  ? "["
					: f->kind == CT_FRAME_PYTHON ? "py:"
								     : "",
					f->kind == CT_FRAME_PYTHON && !f->function ? code : name,
					f->kind == CT_FRAME_INLINED ? "]" : "");
		if (f->function && !strcmp(f->function, "main"))
			return text;
	}
	return text;
}

static void test_one(void)
{
	struct rig r = rig_open("inlined", 1);
	const struct stack *s;
	uint64_t resolved, broken;
	uint32_t id, sent;

	CHECK(resolve(&r, r.target, 5) == 0); /* no stack came */
	send_native(&r, 1);
	CHECK(resolve(&r, r.target, 2) == 0); /* of another call */
	id = resolve(&r, r.target, 1);
	CHECK_EQ(1, id);
	CHECK_EQ(1, nstacks_sent);
	CHECK(nframes_sent >= 6);
	s = find(id);
	if (CHECK(s)) {
		CHECK_EQ(1, s->id);
		CHECK(!s->flags);
		CHECK_EQ(nframes_sent, s->nframes);
	}
	CHECK_TEXT("[inner_inlined] [outer_inlined] holds_inlined main", names(s));
	if (s && s->nframes > 4) {
		CHECK(s->frames[0]->line);
		CHECK(s->frames[1]->line > s->frames[0]->line);
		CHECK(s->frames[0]->file);
		CHECK_EQ(s->frames[2]->address, s->frames[0]->address);
		CHECK(s->frames[2]->offset);
		CHECK(s->frames[2]->object);
		CHECK(!strncmp(s->frames[2]->object, shots_dir, strlen(shots_dir)));
	}
	/* the same again: the return of a call whose entry was shown; then another call from the
	 * same place */
	sent = nframes_sent;
	CHECK(resolve(&r, r.target, 1) == id);
	send_native(&r, 2);
	CHECK(resolve(&r, NULL, 2) == id);
	CHECK(nframes_sent == sent && nstacks_sent == 1);
	stacks_totals(r.stacks, &resolved, &broken);
	CHECK_EQ(2, resolved);
	CHECK(!broken);
	CHECK(!stacks_error(r.stacks));
	rig_close(&r);
}

/* A stack that the session no longer wants is no reason to fail. */
static void test_outlet_stops(void)
{
	struct rig r = rig_open("level", 3);

	fail_after = 2;
	send_native(&r, 1);
	resolve(&r, r.target, 1);
	CHECK(stacks_error(r.stacks) == -ECANCELED);
	fail_after = 0;
	rig_close(&r);
}

/* Python frames that nothing is known of, for the rule that joins them. */
static struct ct_py_frame py(uint64_t code, uint32_t flags)
{
	return (struct ct_py_frame){ .code = code, .check = 1, .flags = flags };
}

/* The stack of eval in stacks.c: native frames a, b and c, each called by an evaluation loop. */
static void join(const char *want, const struct ct_py_frame *frames, int n, uint32_t want_flags)
{
	struct rig r = rig_open("python", 1);
	const struct stack *s;

	if (n)
		send_python(&r, 1, frames, 0, n);
	send_native(&r, 1);
	s = find(resolve(&r, r.target, 1));
	CHECK(s && s->flags == want_flags);
	CHECK_TEXT(want, names(s));
	rig_close(&r);
}

static void test_join(void)
{
	const struct ct_py_frame plain[] = { py(0xa1, 0),	    py(0xa2, CT_PY_ENTRY),
					     py(0xb1, CT_PY_ENTRY), py(0xc1, 0),
					     py(0xc2, 0),	    py(0xc3, CT_PY_ENTRY) };
	const struct ct_py_frame left[] = { py(0xa1, CT_PY_ENTRY), py(0, CT_PY_SHIM | CT_PY_ENTRY),
					    py(0xc1, 0), py(0xc2, CT_PY_ENTRY) };
	const struct ct_py_frame few[] = { py(0xa1, CT_PY_ENTRY) };
	const struct ct_py_frame many[] = { py(0xa1, CT_PY_ENTRY), py(0xb1, CT_PY_ENTRY),
					    py(0xc1, CT_PY_ENTRY), py(0xd1, CT_PY_ENTRY),
					    py(0xd2, CT_PY_ENTRY) };
	const struct ct_py_frame no_entry[] = { py(0xa1, 0), py(0xa2, 0) };

	join("native_a py:a1 py:a2 native_b py:b1 native_c py:c1 py:c2 py:c3 main", plain, 6, 0);
	/* the loop in the middle has left its last frame */
	join("native_a py:a1 native_b _PyEval_EvalFrameDefault native_c py:c1 py:c2 main", left, 4,
	     0);
	/* more loops than runs: they stay as they are */
	join("native_a py:a1 native_b _PyEval_EvalFrameDefault native_c _PyEval_EvalFrameDefault "
	     "main",
	     few, 1, 0);
	join("native_a py:a1 py:a2 native_b _PyEval_EvalFrameDefault native_c "
	     "_PyEval_EvalFrameDefault main",
	     no_entry, 2, 0);
	join("native_a _PyEval_EvalFrameDefault native_b _PyEval_EvalFrameDefault native_c "
	     "_PyEval_EvalFrameDefault main",
	     NULL, 0, 0);
	/* more runs than loops: none is dropped */
	{
		struct rig r = rig_open("python", 1);
		const struct stack *s;

		send_python(&r, 1, many, 0, 5);
		send_native(&r, 1);
		s = find(resolve(&r, r.target, 1));
		CHECK_TEXT("native_a py:a1 native_b py:b1 native_c py:c1 main", names(s));
		if (CHECK(s)) {
			if (CHECK(s->nframes > 2))
				CHECK_EQ(0xd2, s->frames[s->nframes - 1]->address);
		}
		if (CHECK(s)) {
			if (CHECK(s->nframes > 2))
				CHECK_EQ(0xd1, s->frames[s->nframes - 2]->address);
		}
		rig_close(&r);
	}
}

static void test_python_pieces(void)
{
	struct rig r = rig_open("level", 1);
	struct ct_py_frame frames[1200];
	const struct stack *s;
	uint32_t id;

	for (int i = 0; i < 1200; i++)
		frames[i] = py(0x1000 + (uint64_t)i, 0);
	/* only Python's, in pieces */
	for (int i = 0; i < 1024; i += CT_PY_PIECE)
		send_python(&r, 1, frames + i, i, CT_PY_PIECE);
	send_python(&r, 1, frames + 1024, 1024, 64); /* more than there may be */
	id = resolve(&r, r.target, 1);
	s = find(id);
	if (CHECK(s)) {
		if (CHECK_EQ(1024, s->nframes))
			CHECK_EQ(0x1000 + 1023, s->frames[1023]->address);
	}
	/* a piece is missing: what follows has no place */
	send_python(&r, 2, frames, 0, 10);
	send_python(&r, 2, frames + 20, 20, 10);
	s = find(resolve(&r, r.target, 2));
	if (CHECK(s)) {
		CHECK_EQ(10, s->nframes);
		CHECK_EQ(CT_STACK_CUT, s->flags);
	}
	rig_close(&r);
}

static void test_hostile(void)
{
	struct rig r = rig_open("level", 2);
	struct ct_user_stack *us = (struct ct_user_stack *)buf;
	struct ct_py_stack *ps = (struct ct_py_stack *)buf;

	shots_record(&shot, r.shots.pid, 1, buf);
	us->len += 8;
	CHECK(stacks_record(r.stacks, r.target, &us->h) == -EBADMSG);
	shots_record(&shot, r.shots.pid, 1, buf);
	us->h.size = sizeof(*us) - 8;
	CHECK(stacks_record(r.stacks, r.target, &us->h) == -EBADMSG);
	shots_record(&shot, r.shots.pid, 1, buf);
	us->nsaved = 9;
	CHECK(stacks_record(r.stacks, r.target, &us->h) == -EBADMSG);
	shots_record(&shot, r.shots.pid, 1, buf);
	us->how = CT_STACK_ADDRESSES;
	us->len = 12;
	CHECK(stacks_record(r.stacks, r.target, &us->h) == -EBADMSG);
	memset(ps, 0, sizeof(*ps));
	ps->h = (struct ct_hdr){ .size = sizeof(*ps), .kind = CT_PY_STACK };
	ps->n = 1;
	CHECK(stacks_record(r.stacks, r.target, &ps->h) == -EBADMSG);
	/* a way of capturing that is not known is taken as a copy; an empty one gives the caller */
	shots_record(&shot, r.shots.pid, 1, buf);
	us->how = 77;
	us->len = 0;
	us->h.size = sizeof(*us);
	CHECK(!stacks_record(r.stacks, r.target, &us->h));
	CHECK_TEXT("level", names(find(resolve(&r, r.target, 1))));
	rig_close(&r);
}

/* ---- processes ---- */

static void test_exec(void)
{
	struct rig r = rig_open("exec", 4);
	struct ct_process exec = {
		.h = { .size = sizeof(exec), .kind = CT_EXEC, .pid = (uint32_t)r.shots.pid }
	};
	struct ct_exit end = {
		.h = { .size = sizeof(end), .kind = CT_EXIT, .pid = (uint32_t)r.shots.pid }
	};
	struct ct_fork fork_rec = {
		.h = { .size = sizeof(fork_rec), .kind = CT_FORK, .pid = (uint32_t)r.shots.pid },
		.child_pid = 999999
	};
	uint32_t id;

	send_native(&r, 1);
	CHECK_TEXT("level main", names(find(resolve(&r, r.target, 1))));
	shots_go(&r.shots);
	CHECK(shots_next(&r.shots, &shot));
	stacks_process(r.stacks, r.target, &exec.h);
	send_native(&r, 2);
	id = resolve(&r, r.target, 2);
	CHECK_TEXT("with_alloca with_alloca with_alloca with_alloca main", names(find(id)));
	/* a child has what its parent had, also when it lived too short to be looked at */
	stacks_process(r.stacks, r.target, &fork_rec.h);
	send_native(&r, 3);
	((struct ct_user_stack *)buf)->h.pid = ((struct ct_user_stack *)buf)->h.tid = 999999;
	CHECK(!stacks_record(r.stacks, NULL, (struct ct_hdr *)buf));
	{
		struct ct_call c = { .h = { .size = sizeof(c),
					    .kind = CT_CALL,
					    .pid = 999999,
					    .tid = 999999,
					    .start_ns = 3 } };

		CHECK_TEXT("with_alloca with_alloca with_alloca with_alloca main",
			   names(find(stacks_of_call(r.stacks, NULL, &c))));
	}
	/* its last records may come after its end */
	stacks_process(r.stacks, NULL, &end.h);
	CHECK(resolve(&r, NULL, 3) == id);
	rig_close(&r);
}

static void test_unseen(void)
{
	struct rig r = rig_open("level", 2);
	const struct stack *s;
	uint64_t resolved, broken;

	send_native(&r, 1);
	s = find(resolve(&r, NULL, 1));
	if (CHECK(s)) {
		if (CHECK_EQ(1, s->nframes)) {
			if (CHECK_EQ(CT_STACK_BROKEN, s->flags))
				CHECK_EQ(CT_FRAME_UNKNOWN, s->frames[0]->kind);
		}
	}
	if (CHECK(s)) {
		CHECK_EQ(shot.regs[0], s->frames[0]->address);
		CHECK(!s->frames[0]->object);
		CHECK(!s->frames[0]->function);
	}
	stacks_totals(r.stacks, &resolved, &broken);
	CHECK(resolved == 1 && broken == 1);
	rig_close(&r);
}

/* ---- once, and forgotten ---- */

/* Every call has a stack that was never seen before: both sides forget, and every id that is
 * handed out is known. */
static void test_bounded(void)
{
	struct rig r = rig_open("level", 1);
	struct ct_py_frame frames[4];
	uint32_t unknown = 0, wrong = 0, id = 0, again;

	for (uint32_t i = 0; i < 200000; i++) {
		const struct stack *s;

		for (uint32_t k = 0; k < 4; k++)
			frames[k] = py(0x100000 + i * 4 + k, 0);
		/* one frame that is there from the first stack to the last */
		frames[3] = py(0x77, 0);
		send_python(&r, i + 1, frames, 0, 4);
		id = resolve(&r, r.target, i + 1);
		s = find(id);
		unknown += !s;
		wrong += s && (s->nframes != 4 || s->frames[0]->address != 0x100000 + i * 4 ||
			       s->frames[3]->address != 0x77);
	}
	CHECK(!unknown);
	CHECK(!wrong);
	CHECK_EQ(200000, id);
	CHECK(!find(1) && find(id - 1000));
	/* the last one is remembered, the first one gets another id */
	send_python(&r, 300000, frames, 0, 4);
	again = resolve(&r, r.target, 300000);
	CHECK(again == id);
	for (uint32_t k = 0; k < 3; k++)
		frames[k] = py(0x100000 + k, 0);
	send_python(&r, 300001, frames, 0, 4);
	again = resolve(&r, r.target, 300001);
	if (CHECK_EQ(id + 1, again)) {
		if (CHECK(find(again)))
			CHECK_EQ(0x100000, find(again)->frames[0]->address);
	}
	rig_close(&r);
}

/* Processor time of this process: other programs on the machine do not change it. */
static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A stack that was seen before costs a walk by known rows, a small part of what the first one
 * took. The figures are printed. */
static void test_speed(void)
{
	struct rig r = rig_open("alloca", 20);
	double first, again, began = seconds();
	int rounds = 20000;

	send_native(&r, 1);
	resolve(&r, r.target, 1);
	first = seconds() - began;
	began = seconds();
	for (int i = 0; i < rounds; i++) {
		((struct ct_user_stack *)buf)->h.start_ns = 2 + (uint64_t)i;
		stacks_record(r.stacks, r.target, (struct ct_hdr *)buf);
		resolve(&r, r.target, 2 + (uint64_t)i);
	}
	again = (seconds() - began) / rounds;
	printf("a stack of %u frames, %u bytes: the first %.0f us, again %.2f us\n",
	       find(1) ? find(1)->nframes : 0, ((struct ct_user_stack *)buf)->len, first * 1e6,
	       again * 1e6);
	CHECK(nstacks_sent == 1 && again * 10 < first);
	rig_close(&r);
}

/* ---- the table alone, with records that a file may hold ---- */

static void send_frame(uint32_t id, uint8_t kind, const char *function, const char *file, int lie)
{
	union {
		struct ct_frame f;
		char text[sizeof(struct ct_frame) + 20000];
	} r = { .f = { .id = id, .kind = kind, .line = 7 } };
	size_t a = strlen(function), b = strlen(file);

	memcpy(r.f.strings, function, a);
	memcpy(r.f.strings + a, file, b);
	r.f.function_len = (uint16_t)a;
	r.f.file_len = (uint16_t)((int)b + lie);
	r.f.h = (struct ct_hdr){ .kind = CT_FRAME,
				 .size = (uint16_t)((sizeof(r.f) + a + b + 7) & ~7ul) };
	CHECK(!stack_table_record(table, &r.f.h));
}

static void send_stack(uint32_t id, uint32_t n, const uint32_t *ids, uint32_t claim)
{
	union {
		struct ct_stack s;
		uint32_t room[sizeof(struct ct_stack) / 4 + 16];
	} r = { .s = { .id = id, .nframes = claim } };

	r.s.h = (struct ct_hdr){ .kind = CT_STACK,
				 .size = (uint16_t)((sizeof(r.s) + 4 * n + 7) & ~7u) };
	memcpy(r.s.frames, ids, 4 * n);
	CHECK(!stack_table_record(table, &r.s.h));
}

static void test_table(void)
{
	static char endless[3000];
	const uint32_t ids[] = { 1, 2, 3, 99 };
	const struct stack *s;

	table = stack_table_open();
	send_frame(1, CT_FRAME_NATIVE, "_ZN5shape7handlerEi", "a.cc", 0);
	send_frame(2, CT_FRAME_PYTHON, "_ZN5shape7handlerEi", "a.py", 0);
	send_frame(3, CT_FRAME_NATIVE, "_Znot mangled", "", 0);
	send_frame(4, CT_FRAME_NATIVE, "f", "g", 9); /* longer than the record */
	send_stack(1, 4, ids, 4);
	s = find(1);
	CHECK(s && s->nframes == 4);
	if (s) {
		CHECK_TEXT("shape::handler(int)", s->frames[0]->function);
		CHECK_TEXT("_ZN5shape7handlerEi",
			   s->frames[0]->mangled ? s->frames[0]->mangled : "");
		CHECK(!s->frames[1]->mangled && !s->frames[2]->mangled);
		CHECK_TEXT("a.cc", s->frames[0]->file);
		CHECK_TEXT("_ZN5shape7handlerEi", s->frames[1]->function);
		CHECK_TEXT("_Znot mangled", s->frames[2]->function);
		CHECK(!s->frames[2]->file);
		CHECK(!s->frames[2]->object);
		CHECK_EQ(7, s->frames[2]->line);
		CHECK(s->frames[3]->kind == CT_FRAME_UNKNOWN && !s->frames[3]->function);
	}
	send_stack(2, 4, ids, 5); /* more frames than there are */
	send_stack(3, 2, ids, UINT32_MAX);
	send_stack(0, 1, ids, 1);
	CHECK(!find(2));
	CHECK(!find(3));
	CHECK(!find(0));
	/* a short name that stands for gigabytes */
	strcpy(endless, "_Z1f");
	strcat(endless, "1aIiiE");
	for (int i = 0; i < 200; i++)
		strcat(endless, "S_IS_S_E");
	send_frame(5, CT_FRAME_NATIVE, endless, "", 0);
	/* ids that jump: far ahead everything begins anew, and nothing points to what was freed */
	send_frame(4000000000u, CT_FRAME_NATIVE, "far", "", 0);
	CHECK(!find(1));
	send_frame(6, CT_FRAME_NATIVE, "back", "", 0);
	send_stack(9, 1, (uint32_t[]){ 6 }, 1);
	s = find(9);
	CHECK(s && s->frames[0]->function);
	CHECK_TEXT("back", names(s));
	send_stack(4000000000u, 1, (uint32_t[]){ 6 }, 1);
	CHECK(!find(9) && find(4000000000u));
	stack_table_close(table);
}

/* Jumps of ids, in any order: the table stays small and what it hands out is alive. */
static void test_table_random(void)
{
	uint32_t seed = 99, found = 0;

	table = stack_table_open();
	for (int i = 0; i < 200000; i++) {
		uint32_t ids[8], id, kind;

		seed = seed * 1664525 + 1013904223;
		kind = seed >> 29;
		id = 1 + (seed >> 8) % (i % 1000 ? 5000 : 4000000000u);
		for (int k = 0; k < 8; k++)
			ids[k] = 1 + (seed >> k) % 5000;
		if (kind < 4)
			send_frame(id, CT_FRAME_NATIVE, "function", "file.c", 0);
		else if (kind < 6)
			send_stack(id, 8, ids, 8);
		else if (find(id)) {
			const struct stack *s = find(id);

			for (uint32_t k = 0; k < s->nframes; k++)
				found += s->frames[k]->function &&
					 !strcmp(s->frames[k]->function, "function");
		}
	}
	CHECK(found > 0);
	stack_table_close(table);
}

/* What the compiler added to a function's name is not shown; what only looks like it is. */
static void test_suffixes(void)
{
	static const char *const names[][2] = {
		{ "take.constprop.0.isra.0", "take" },
		{ "take.isra.0.part.12.cold", "take" },
		{ "take.cold", "take" },
		{ "take.lto_priv.3", "take" },
		{ "_Z4stepi.part.0", "step(int)" },
		{ "hash.llvm.1234567", "hash" },
		{ "runtime.mallocgc", "runtime.mallocgc" },
		{ "v1.2", "v1.2" },
		{ ".cold", ".cold" },
		{ "", NULL },
		{ "0", "0" },
		{ "take.constprop", "take" },
		{ "x.coldness", "x.coldness" },
	};
	const uint32_t n = sizeof(names) / sizeof(names[0]);
	union {
		struct ct_frame f;
		struct ct_stack s;
		char room[256];
	} r;
	const struct stack *stack;

	table = stack_table_open();
	for (uint32_t i = 0; i < n; i++) {
		size_t len = strlen(names[i][0]);

		memset(&r, 0, sizeof(r));
		r.f = (struct ct_frame){ .h = { .size = (uint16_t)((sizeof(r.f) + len + 7) & ~7UL),
						.kind = CT_FRAME },
					 .id = i + 1,
					 .address = i + 1,
					 .function_len = (uint16_t)len,
					 .kind = CT_FRAME_NATIVE };
		memcpy(r.f.strings, names[i][0], len);
		CHECK(!record_check(&r.f.h, r.f.h.size));
		CHECK(!stack_table_record(table, &r.f.h));
	}
	memset(&r, 0, sizeof(r));
	r.s = (struct ct_stack){ .h = { .size = (uint16_t)((sizeof(r.s) + n * 4 + 7) & ~7UL),
					.kind = CT_STACK,
					.pid = 1 },
				 .id = 1,
				 .nframes = n };
	for (uint32_t i = 0; i < n; i++)
		r.s.frames[i] = i + 1;
	CHECK(!stack_table_record(table, &r.s.h));
	stack = stack_table_get(table, 1);
	CHECK(stack && stack->nframes == n);
	for (uint32_t i = 0; stack && i < n; i++)
		CHECK_TEXT(names[i][1] ? names[i][1] : "(none)",
			   stack->frames[i]->function ? stack->frames[i]->function : "(none)");
	stack_table_close(table);
}

/* ---- what people see ---- */

static void test_roles(void)
{
	static const struct {
		enum frame_role role;
		uint8_t kind;
		const char *function, *object;
	} rows[] = {
		{ FRAME_OWN, CT_FRAME_NATIVE, "step", "/opt/app/libapp.so" },
		{ FRAME_OWN, CT_FRAME_NATIVE, NULL, NULL },
		{ FRAME_OWN, CT_FRAME_NATIVE, "", "" },
		/* Python's own files may have any name */
		{ FRAME_OWN, CT_FRAME_PYTHON, "PyObject_Call", "libpython3.11.so" },
		{ FRAME_GLUE, CT_FRAME_NATIVE, NULL, "/usr/lib/x86_64-linux-gnu/libffi.so.8.1.2" },
		{ FRAME_GLUE, CT_FRAME_NATIVE, "ffi_call", "/x/libffi-3a1b.so.8" },
		{ FRAME_GLUE, CT_FRAME_INLINED, "_call_function_pointer",
		  "/x/lib-dynload/_ctypes.cpython-311-x86_64-linux-gnu.so" },
		{ FRAME_GLUE, CT_FRAME_NATIVE, "x", "/x/_cffi_backend.cpython-312.so" },
		{ FRAME_GLUE, CT_FRAME_NATIVE, "x", "/usr/lib/libpython3.12.so.1.0" },
		{ FRAME_GLUE, CT_FRAME_NATIVE, "x", "/usr/bin/python3.11" },
		{ FRAME_GLUE, CT_FRAME_NATIVE, "torch::autograd::THPVariable_add(_object*)",
		  "/x/torch/lib/libtorch_python.so" },
		/* linked into a program or an extension */
		{ FRAME_GLUE, CT_FRAME_NATIVE, "_PyEval_EvalFrameDefault", "/bin/app" },
		{ FRAME_GLUE, CT_FRAME_NATIVE, "PyObject_Vectorcall", "/bin/app" },
		{ FRAME_GLUE, CT_FRAME_NATIVE,
		  "pybind11::cpp_function::dispatcher(_object*, _object*, _object*)", "/x/ext.so" },
		{ FRAME_GLUE, CT_FRAME_NATIVE,
		  "void pybind11::cpp_function::initialize<void (*&)(int), int>(void (*&)(int))",
		  "/x/ext.so" },
		{ FRAME_GLUE, CT_FRAME_NATIVE,
		  "nanobind::detail::nb_func_vectorcall_simple(_object*)", "/x/ext.so" },
		/* the program's, though glue is in what it takes */
		{ FRAME_OWN, CT_FRAME_NATIVE, "void step<pybind11::object>(pybind11::object)",
		  "/x/ext.so" },
		{ FRAME_OWN, CT_FRAME_NATIVE, "step(PyObject_Call, pybind11::object)",
		  "/x/ext.so" },
		{ FRAME_OWN, CT_FRAME_NATIVE, "my_pybind11::step()", "/x/pythonic.so" },
		{ FRAME_ALLOCATOR, CT_FRAME_NATIVE, "x", "/x/libc10_cuda.so" },
		{ FRAME_ALLOCATOR, CT_FRAME_NATIVE, "at::empty()", "/x/libtorch_cpu.so" },
		{ FRAME_START, CT_FRAME_NATIVE, "_start", "/bin/app" },
		{ FRAME_OWN, CT_FRAME_NATIVE, "_started", "/bin/app" },
		{ FRAME_START, CT_FRAME_NATIVE, "__libc_start_main", "/usr/lib/libc.so.6" },
		{ FRAME_START, CT_FRAME_NATIVE, "clone3", NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CASE_ROW("%zu, %s", i, rows[i].function ? rows[i].function : "no name");
		CHECK_EQ(rows[i].role, frame_role(rows[i].kind, rows[i].function, rows[i].object));
	}
}

int main(void)
{
	char cmd[64];

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!mkdtemp(shots_dir))
		abort();
	if (!shots_build("debug",
			 "gcc -g -O2 -fomit-frame-pointer -pthread -o $out $src/stacks.c")) {
		printf("FAILED: tests/unit/prog/stacks.c cannot be built\n");
		return 1;
	}
	RUN(test_suffixes);
	RUN(test_roles);
	RUN(test_one);
	RUN(test_outlet_stops);
	RUN(test_join);
	RUN(test_python_pieces);
	RUN(test_hostile);
	RUN(test_exec);
	RUN(test_unseen);
	RUN(test_bounded);
	RUN(test_speed);
	RUN(test_table);
	RUN(test_table_random);
	snprintf(cmd, sizeof(cmd), "rm -r %s", shots_dir);
	CHECK(system(cmd) == 0);
	return unit_end();
}
