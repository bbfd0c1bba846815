/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * python_walk.c - the frames and code objects of a Python process, read from its memory. See
 * python.h.
 *
 * bpf/python.bpf.h does the same at the moment of a call, and sends records of the same form.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "python.h"
#include "../../wire/control.h"

#define MAX_INTERPS 64
#define MAX_THREADS 4096
#define MAX_STEPS (2 * CT_PY_MAX) /* frames of one walk, including the interpreter's own */

/* Returns the thread's number as the program itself sees it: the last one of "NSpid:\t123\t7". */
static uint64_t own_tid(struct target *t, pid_t tid)
{
	char path[64], line[512];
	uint64_t own = (uint64_t)tid;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)target_pid(t), (int)tid);
	f = fopen(path, "re");
	if (!f)
		return own;
	while (fgets(line, sizeof(line), f)) {
		if (strncmp(line, "NSpid:", 6))
			continue;
		for (char *at = line + 6; *at == '\t';)
			own = strtoull(at + 1, &at, 10);
		break;
	}
	fclose(f);
	return own;
}

static int read_word(struct target *t, uint64_t addr, uint64_t *word)
{
	return target_read(t, addr, word, sizeof(*word));
}

static int current_frame(struct target *t, const struct ct_python *p, uint64_t thread,
			 uint64_t *frame)
{
	int err = read_word(t, thread + p->thread_frame, frame);

	if (!err && *frame && p->cframe_frame != CT_PY_NONE)
		err = read_word(t, *frame + p->cframe_frame, frame);
	return err;
}

/* The number of the thread of a state. */
static int tid_of(struct target *t, const struct ct_python *p, uint64_t thread, uint64_t *tid)
{
	uint32_t number = 0;
	int err = read_word(t, thread + p->thread_native_id, tid);

	if (err || !p->pthread_tid)
		return err;
	/* the C library may have freed the memory of a thread that has ended */
	err = target_read(t, *tid + p->pthread_tid, &number, sizeof(number));
	*tid = number;
	return err == -EFAULT ? 0 : err;
}

/*
 * Finds the innermost frame of a thread; 0: it has none. With several interpreters a thread may
 * have a state in each of them. Then the newest interpreter in which the thread has frames is used;
 * the newest comes first.
 */
static int find_frame(struct target *t, const struct ct_python *p, uint64_t tid, uint64_t *frame)
{
	uint64_t interp, thread, id;
	int err = read_word(t, p->runtime + p->runtime_interpreters_head, &interp),
	    left = MAX_THREADS;

	*frame = 0;
	for (int i = 0; !err && interp && i < MAX_INTERPS; i++) {
		err = read_word(t, interp + p->interp_threads_head, &thread);
		while (!err && thread && left-- > 0) {
			err = tid_of(t, p, thread, &id);
			if (!err && id == tid)
				err = current_frame(t, p, thread, frame);
			if (err || *frame)
				return err;
			err = read_word(t, thread + p->thread_next, &thread);
		}
		if (!err)
			err = read_word(t, interp + p->interp_next, &interp);
	}
	return err;
}

static uint64_t python_walk_word_at(const uint8_t *bytes, unsigned int at)
{
	uint64_t word;

	memcpy(&word, bytes + at, sizeof(word));
	return word;
}

static bool offsets_fit(const struct ct_python *p)
{
	const unsigned int word = CT_PY_FRAME_BYTES - 8;

	return p->frame_code <= word && p->frame_previous <= word && p->frame_instr <= word &&
	       p->frame_owner < CT_PY_FRAME_BYTES &&
	       (p->frame_entry < CT_PY_FRAME_BYTES || p->frame_entry >= CT_PY_EACH);
}

/* Adds one frame that has code. Returns 0 or an error. */
static int take_frame(struct target *t, const struct ct_python *p, const uint8_t *raw,
		      struct ct_py_frame *f)
{
	__u64 words[CT_PY_CHECK_WORDS];
	int err;

	f->code = python_walk_word_at(raw, p->frame_code) &
		  ~7ULL; /* 3.14 has flags in the lowest bits */
	err = target_read(t, f->code + p->code_check, words, sizeof(words));
	if (err)
		return err;
	f->check = ct_py_check(words);
	f->instr = p->code_instrs == CT_PY_NONE
			   ? (uint32_t)python_walk_word_at(raw, p->frame_instr) * 2
			   : (uint32_t)(python_walk_word_at(raw, p->frame_instr) - f->code -
					p->code_instrs);
	f->flags = p->frame_entry == CT_PY_EACH ||
				   (p->frame_entry != CT_PY_NONE && raw[p->frame_entry])
			   ? CT_PY_ENTRY
			   : 0;
	return 0;
}

int python_walk(struct target *t, const struct ct_python *p, pid_t tid, struct ct_py_frame *out,
		int max, bool *cut)
{
	uint8_t raw[CT_PY_FRAME_BYTES];
	bool entered = true; /* the previous frame was the outermost one of its evaluation loop */
	uint64_t frame;
	int n = 0, err;

	if (cut)
		*cut = false;
	if (!offsets_fit(p))
		return -EINVAL;
	err = find_frame(t, p, own_tid(t, tid), &frame);
	if (err)
		return err;
	for (int i = 0; frame; i++) {
		bool shim;

		err = target_read(t, frame + p->frame_at, raw, sizeof(raw));
		shim = !err && raw[p->frame_owner] >= p->owner_shim;
		if (shim && !entered) {
			out[n - 1].flags |= CT_PY_ENTRY;
			entered = true;
		} else {
			if (!err && (n == max || i == MAX_STEPS))
				err = -E2BIG;
			if (!err && shim)
				out[n] = (struct ct_py_frame){ .flags = CT_PY_SHIM | CT_PY_ENTRY };
			else if (!err)
				err = take_frame(t, p, raw, &out[n]);
			if (err)
				break;
			entered = out[n++].flags & CT_PY_ENTRY;
		}
		frame = python_walk_word_at(raw, p->frame_previous);
	}
	if (cut)
		*cut = err != 0;
	return err == -ESRCH || err == -EPERM ? err : n;
}

/* ---- code objects ---- */

/* Reads the characters of a PyUnicode, at most max bytes; *kind is as in struct ct_py_code. Returns
 * their number in bytes. */
static ssize_t read_str(struct target *t, const struct ct_python *p, uint64_t addr, char *buf,
			size_t max, uint8_t *kind)
{
	uint32_t state;
	uint64_t len;
	bool ascii;
	int err = target_read(t, addr + p->str_state, &state, sizeof(state));

	if (!err)
		err = read_word(t, addr + p->str_length, &len);
	if (err)
		return err;
	/* cpython/unicodeobject.h, PyASCIIObject.state: interned 2 bits, kind 3, compact, ascii */
	ascii = state >> 6 & 1;
	*kind = ascii ? 0 : state >> 2 & 7;
	if (!(state >> 5 & 1) || (*kind != 0 && *kind != 1 && *kind != 2 && *kind != 4) ||
	    (!ascii && !*kind))
		return -EINVAL;
	max /= ascii ? 1 : *kind;
	if (len > max)
		len = max;
	len *= ascii ? 1 : *kind;
	err = target_read(t, addr + (ascii ? p->str_ascii_data : p->str_compact_data), buf, len);
	return err ? err : (ssize_t)len;
}

int python_read_code(struct target *t, const struct ct_python *p, uint64_t code, void *buf,
		     size_t size)
{
	__u64 words[CT_PY_CHECK_WORDS];
	uint64_t len, table;
	struct ct_py_code *c = buf;
	size_t at = 0;
	ssize_t n;
	int err;

	if (size < PYTHON_CODE_BYTES)
		return -ENOBUFS;
	if ((unsigned)p->code_qualname - p->code_check > sizeof(words) - 8 ||
	    (unsigned)p->code_filename - p->code_check > sizeof(words) - 8 ||
	    (unsigned)p->code_linetable - p->code_check > sizeof(words) - 8)
		return -EINVAL;
	memset(c, 0, sizeof(*c));
	err = target_read(t, code + p->code_check, words, sizeof(words));
	if (!err)
		err = target_read(t, code + p->code_first_line, &c->first_line,
				  sizeof(c->first_line));
	if (err)
		return err;
	c->h.kind = CT_PY_CODE;
	c->h.pid = c->h.tid = (uint32_t)target_pid(t);
	c->code = code;
	c->check = ct_py_check(words);
	c->version = p->version;
	n = read_str(t, p, python_walk_word_at((uint8_t *)words, p->code_qualname - p->code_check),
		     c->bytes, CT_PY_NAME, &c->name_kind);
	if (n < 0)
		return (int)n;
	c->name_len = (uint16_t)n;
	at += (n + 7) & ~7;
	n = read_str(t, p, python_walk_word_at((uint8_t *)words, p->code_filename - p->code_check),
		     c->bytes + at, CT_PY_FILE, &c->file_kind);
	if (n < 0)
		return (int)n;
	c->file_len = (uint16_t)n;
	at += (n + 7) & ~7;
	table = python_walk_word_at((uint8_t *)words, p->code_linetable - p->code_check);
	/* if the table cannot be read, only the line is missing, not the name */
	err = read_word(t, table + p->bytes_size, &len);
	if (!err) {
		len = len < CT_PY_TABLE ? len : CT_PY_TABLE;
		err = target_read(t, table + p->bytes_data, c->bytes + at, len);
	}
	if (!err) {
		c->table_len = (uint16_t)len;
		at += (len + 7) & ~7ULL;
	}
	/* clears the gaps between the pieces, so that no old bytes stay there */
	memset(c->bytes + c->name_len, 0, -c->name_len & 7);
	memset(c->bytes + ((c->name_len + 7) & ~7) + c->file_len, 0, -c->file_len & 7);
	memset(c->bytes + at - (-c->table_len & 7), 0, -c->table_len & 7);
	c->h.size = (uint16_t)(sizeof(*c) + at);
	return c->h.size;
}
