/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * python_walk.h - walks the Python frames of the current thread. Compiled twice: for the kernel side
 * (python.bpf.h), and for the hooks inside a process (target/hooks/python_frames.c), so that both send the same.
 *
 * The thread is inside a call, so its own frames do not change, whichever thread holds the interpreter's
 * lock. The lists of threads may change while they are read: they are read again when the thread
 * was not found, and what is found is checked. user/proc/python_walk.c does the same from outside.
 *
 * Who includes it defines before: BOUND(), __always_inline, __noinline, and
 *
 *	PY_THREAD_OWN			members of struct py_thread, for itself
 *	PY_BUFFERS			how many code objects may be in the making at a time
 *	PY_LOOP(n, fn, ctx)		calls fn(i, ctx) at most n times, until it returns 1
 *	long py_read(to, len, from)	0: the program's memory has been copied
 *	py_now()			nanoseconds, of any clock
 *	py_pid(), py_tid()		for the records' heads
 *
 * and after it
 *
 *	py_send(t, hdr, size)		0: the record has been sent
 *	py_is_sent(t, p, code, check)	was the code object sent before?
 *	py_set_sent(t, p, code, check)
 *	py_buffer_take(i)		buffer i, if it is free; else NULL
 *	py_buffer_give(b)
 *	py_is_sure(t)			the state that was found before is not freed while the thread is in a
 *					call
 *	py_not_sure(t)			others' states are read from here on
 *	py_lost()			one stack, or a piece of it, is missing
 */
#ifndef CT_PYTHON_WALK_H
#define CT_PYTHON_WALK_H

#define PY_THREADS_MAX 4096 /* steps in the lists of interpreters and threads */
/* how long a thread that was not found may be believed to have no Python */
#define PY_ABSENT_NS 100000000
/* how often a search begins again because a thread ended meanwhile and took its state out of the list */
#define PY_RESTARTS 16

/* One for each thread whose frames were asked for. */
struct py_thread {
	__u64 own_tid;	   /* in its own pid namespace, as Python has it */
	__u32 generation;  /* of the struct ct_python that the rest belongs to; 0: none yet */
	__u64 state;	   /* its PyThreadState; 0: not known */
	__u64 absent_head; /* it had none while the first interpreter's list began here... */
	__u64 absent_ns;   /* ...until then */
	__u64 interp, at;  /* the next of the search */
	__u64 restarts;	   /* of the search */
	__u64 frame;	   /* the next of the walk; 0: at its end */
	__u64 start_ns;	   /* of the records: that of the call */
	__u64 end_ns;
	__u32 taken;   /* frames in the pieces before */
	__u32 n;       /* frames in this piece */
	__u32 entered; /* the frame before was its evaluation loop's outermost */
	__u32 cut;
	__u64 words[CT_PY_CHECK_WORDS];
	__u8 raw[CT_PY_FRAME_BYTES];
	PY_THREAD_OWN
	struct ct_py_stack piece;
	struct ct_py_frame frames[CT_PY_PIECE]; /* continues piece.frames */
};

struct py_buffer {
	__u64 busy;
	struct ct_py_code code;
	__u8 bytes[CT_PY_NAME + CT_PY_FILE + CT_PY_TABLE]; /* continues code.bytes */
};

static __always_inline long py_send(struct py_thread *, struct ct_hdr *, __u32 size);
static __always_inline bool py_is_sent(struct py_thread *, const struct ct_python *, __u64 code,
				       __u64 check);
static __always_inline void py_set_sent(struct py_thread *, const struct ct_python *, __u64 code,
					__u64 check);
static __always_inline struct py_buffer *py_buffer_take(__u32 i);
static __always_inline void py_buffer_give(struct py_buffer *);
static __always_inline void py_lost(void);
static __always_inline bool py_is_sure(const struct py_thread *);
static __always_inline void py_not_sure(struct py_thread *);

/* ---- code objects ---- */

static __always_inline __u64 py_word(__u64 addr)
{
	__u64 word;

	return py_read(&word, sizeof(word), addr) ? 0 : word;
}

/* ---- code objects ---- */

/* Reads a str's characters, at most max bytes, to `at` in the buffer. Returns their number in
 * bytes. */
static __always_inline __u32 py_str(const struct ct_python *p, __u64 addr, struct py_buffer *b,
				    __u32 at, __u32 max, __u8 *kind)
{
	__u64 len = py_word(addr + p->str_length), data;
	__u32 state = 0, width;

	if (py_read(&state, sizeof(state), addr + p->str_state))
		return 0;
	/* cpython/unicodeobject.h, PyASCIIObject.state: interned 2 bits, kind 3, compact, ascii */
	if (!(state >> 5 & 1))
		return 0;
	width = state >> 2 & 7;
	*kind = width;
	data = addr + p->str_compact_data;
	if (state >> 6 & 1) {
		*kind = 0;
		width = 1;
		data = addr + p->str_ascii_data;
	}
	if (width != 1 && width != 2 && width != 4)
		return 0;
	if (len > max)
		len = max;
	len *= width;
	BOUND(len, max);
	BOUND(at, CT_PY_NAME);
	if (py_read(b->bytes + at, len, data))
		return 0;
	return len;
}

static __always_inline void py_fill(const struct ct_python *p, struct py_thread *t,
				    struct py_buffer *b)
{
	struct ct_py_code *c = &b->code;
	__u64 name = 0, file = 0, table = 0, len;
	__u64 code = c->code;
	__u32 at;

	py_read(&c->first_line, sizeof(c->first_line), code + p->code_first_line);
	name = py_word(code + p->code_qualname);
	file = py_word(code + p->code_filename);
	table = py_word(code + p->code_linetable);
	c->name_kind = c->file_kind = 0;
	at = py_str(p, name, b, 0, CT_PY_NAME, &c->name_kind);
	c->name_len = at;
	at = (at + 7) & ~7U;
	c->file_len = py_str(p, file, b, at, CT_PY_FILE, &c->file_kind);
	at += (c->file_len + 7) & ~7U;
	len = py_word(table + p->bytes_size);
	BOUND(len, CT_PY_TABLE);
	BOUND(at, CT_PY_NAME + CT_PY_FILE);
	if (py_read(b->bytes + at, len, table + p->bytes_data))
		len = 0;
	c->table_len = len;
	at += (len + 7) & ~7ULL;
	BOUND(at, CT_PY_NAME + CT_PY_FILE + CT_PY_TABLE);
	if (!py_send(t, &c->h, sizeof(*c) + at))
		py_set_sent(t, p, code, c->check);
}

/* Sends a code object if it was not sent before. If no buffer is free, or the ring is full, the
 * next call sends it. */
static __noinline int py_send_code(struct py_thread *t, const struct ct_python *p, __u64 code,
				   __u64 check)
{
	struct py_buffer *b = NULL;
	__u32 i;

	if (!t || !p)
		return 0;
	for (i = 0; i < PY_BUFFERS; i++) {
		b = py_buffer_take(i);
		if (b)
			break;
	}
	if (!b)
		return 0;
	b->code.h.kind = CT_PY_CODE;
	b->code.h.flags = 0;
	b->code.h.pid = py_pid();
	b->code.h.tid = py_tid();
	b->code.h.start_ns = t->start_ns;
	b->code.h.end_ns = t->end_ns;
	b->code.code = code;
	b->code.check = check;
	b->code.version = p->version;
	py_fill(p, t, b);
	py_buffer_give(b);
	return 0;
}

/* ---- frames ---- */

static __noinline int py_send_piece(struct py_thread *t, bool last)
{
	__u32 n;

	if (!t)
		return 0;
	n = t->n;
	BOUND(n, CT_PY_PIECE);
	t->piece.h.kind = CT_PY_STACK;
	t->piece.h.flags = 0;
	t->piece.h.pid = py_pid();
	t->piece.h.tid = py_tid();
	t->piece.h.start_ns = t->start_ns;
	t->piece.h.end_ns = t->end_ns;
	t->piece.first = t->taken;
	t->piece.n = n;
	t->piece.last = last;
	t->piece.cut = last && t->cut;
	if (py_send(t, &t->piece.h, sizeof(t->piece) + n * sizeof(t->frames[0]))) {
		py_lost();
		t->frame = 0;
	}
	t->taken += n;
	t->n = 0;
	return 0;
}

static __always_inline __u64 py_raw(struct py_thread *t, __u32 at)
{
	BOUND(at, CT_PY_FRAME_BYTES - 8);
	return *(__u64 *)(t->raw + at);
}

static __always_inline __u8 py_raw_byte(struct py_thread *t, __u32 at)
{
	BOUND(at, CT_PY_FRAME_BYTES - 1);
	return t->raw[at];
}

/* The context of PY_LOOP(), which is bpf_loop(). It holds only pointers: a kernel before 6.7 verifies the function with
 * the stack values of the first turn, and removes code that this turn does not reach. Values that
 * change are kept in the map. */
struct py_walk {
	struct py_thread *t;
	const struct ct_python *p;
};

/* The offset of the instruction in bytes. */
static __always_inline __u32 py_instr(const struct ct_python *p, __u64 raw, __u64 code)
{
	return p->code_instrs == CT_PY_NONE ? (__u32)raw * 2 : raw - code - p->code_instrs;
}

/* Takes one frame. Returns 1 at the end. */
static long py_step(__u32 i, struct py_walk *w)
{
	struct py_thread *t = w->t;
	const struct ct_python *p = w->p;
	struct ct_py_frame *f;
	__u64 code;
	__u32 n;
	bool shim;

	(void)i;
	if (!t->frame)
		return 1;
	if (py_read(t->raw, sizeof(t->raw), t->frame + p->frame_at)) {
		t->cut = 1;
		return 1;
	}
	t->frame = py_raw(t, p->frame_previous);
	shim = py_raw_byte(t, p->frame_owner) >= p->owner_shim;
	if (shim && !t->entered) {
		n = t->n - 1;
		BOUND(n, CT_PY_PIECE - 1);
		t->frames[n].flags |= CT_PY_ENTRY;
		t->entered = 1;
		return 0;
	}
	/* A full piece is sent only now, because the flags of its last frame were not known
	 * before. */
	if (t->n >= CT_PY_PIECE) {
		if (t->taken + t->n >= CT_PY_MAX) {
			t->cut = 1;
			return 1;
		}
		py_send_piece(t, false);
	}
	n = t->n;
	BOUND(n, CT_PY_PIECE - 1);
	f = &t->frames[n];
	if (shim) {
		f->code = f->check = f->instr = 0;
		f->flags = CT_PY_SHIM | CT_PY_ENTRY;
	} else {
		code = py_raw(t, p->frame_code) & ~7ULL; /* 3.14 has flags in the lowest bits */
		if (py_read(t->words, sizeof(t->words), code + p->code_check)) {
			t->cut = 1;
			return 1;
		}
		f->code = code;
		f->check = ct_py_check(t->words);
		f->instr = py_instr(p, py_raw(t, p->frame_instr), code);
		f->flags = p->frame_entry == CT_PY_EACH || (p->frame_entry != CT_PY_NONE &&
							    py_raw_byte(t, p->frame_entry))
				   ? CT_PY_ENTRY
				   : 0;
		if (!py_is_sent(t, p, f->code, f->check))
			py_send_code(t, p, f->code, f->check);
	}
	t->entered = f->flags & CT_PY_ENTRY;
	t->n = n + 1;
	return 0;
}

/* ---- the thread's state ---- */

static __always_inline __u64 py_innermost(const struct ct_python *p, __u64 state)
{
	__u64 frame = py_word(state + p->thread_frame);

	if (frame && p->cframe_frame != CT_PY_NONE)
		frame = py_word(frame + p->cframe_frame);
	return frame;
}

/* The number of a state's thread. */
static __always_inline __u64 py_tid_of(const struct ct_python *p, __u64 state)
{
	__u64 id = py_word(state + p->thread_native_id);

	return p->pthread_tid ? (__u32)py_word(id + p->pthread_tid) : id;
}

/* Does the interpreter's list lead to this state? Not if it has been freed. */
static __always_inline bool py_is_linked(const struct ct_python *p, __u64 state)
{
	__u64 before = py_word(state + p->thread_prev);

	if (before)
		return py_word(before + p->thread_next) == state;
	before = py_word(state + p->thread_interp);
	return py_word(before + p->interp_threads_head) == state;
}

/* Is there a living state of this thread at the address? Freed memory may still hold the thread's
 * number. */
static __always_inline bool py_is_state(const struct ct_python *p, __u64 state, __u64 tid)
{
	return py_tid_of(p, state) == tid && py_is_linked(p, state);
}

/* Does the state that was found before still belong to this thread? */
static __always_inline bool py_state_holds(const struct py_thread *t, const struct ct_python *p)
{
	if (!t->state)
		return false;
	return py_is_sure(t) ? py_tid_of(p, t->state) == t->own_tid
			     : py_is_state(p, t->state, t->own_tid);
}

/* The next thread state of the lists. A thread may have a state in each of several interpreters:
 * the newest interpreter in which it has frames is tried first. */
static long py_look(__u32 i, struct py_walk *w)
{
	struct py_thread *t = w->t;
	const struct ct_python *p = w->p;
	__u64 next;

	(void)i;
	if (!t->at) {
		if (!t->interp)
			return 1;
		t->at = py_word(t->interp + p->interp_threads_head);
		t->interp = py_word(t->interp + p->interp_next);
		return 0;
	}
	if (py_tid_of(p, t->at) == t->own_tid) {
		t->state = t->at;
		t->frame = py_innermost(p, t->at);
		if (t->frame)
			return 1;
	}
	next = py_word(t->at + p->thread_next);
	if (next ? py_word(next + p->thread_prev) == t->at : py_is_linked(p, t->at)) {
		t->at = next;
		return 0;
	}
	/* this state was freed, or the next one: what lies there leads anywhere */
	t->at = 0;
	t->interp = py_word(p->runtime + p->runtime_interpreters_head);
	return ++t->restarts > PY_RESTARTS;
}

/* Puts the thread's innermost frame into t->frame; 0: it runs no Python now. */
static __noinline int py_find(struct py_thread *t, const struct ct_python *p)
{
	struct py_walk w = { .t = t, .p = p };
	__u64 now, head;
	bool one;

	if (!t || !p)
		return 0;
	t->frame = 0;
	t->interp = py_word(p->runtime + p->runtime_interpreters_head);
	if (!t->interp)
		return 0;
	/* with several interpreters the thread may go from one to another */
	one = !py_word(t->interp + p->interp_next);
	if (one && py_state_holds(t, p)) {
		t->frame = py_innermost(p, t->state);
		if (t->frame)
			return 0;
	}
	/* Threads that never ran Python also make calls. They are not searched for at each call:
	 * CPython puts a new state at the head of its list. */
	py_not_sure(t);
	now = py_now();
	head = py_word(t->interp + p->interp_threads_head);
	if (one && head == t->absent_head && now < t->absent_ns)
		return 0;
	t->state = t->at = t->restarts = 0;
	PY_LOOP(PY_THREADS_MAX, py_look, &w);
	if (!t->frame && t->restarts > PY_RESTARTS) {
		py_lost();
	} else if (!t->frame) {
		t->absent_head = head;
		t->absent_ns = now + PY_ABSENT_NS;
	}
	return 0;
}

/* Sends the Python frames of the current thread. The caller has set own_tid, start_ns and end_ns.
 * Returns 1 when there were any. */
static __always_inline int py_walk_thread(struct py_thread *t, const struct ct_python *p)
{
	struct py_walk w = { .t = t, .p = p };

	py_find(t, p);
	if (!t->frame)
		return 0;
	t->taken = t->n = t->cut = 0;
	t->entered = 1;
	PY_LOOP(2 * CT_PY_MAX, py_step, &w);
	if (t->n)
		py_send_piece(t, true);
	return 1;
}

#endif
