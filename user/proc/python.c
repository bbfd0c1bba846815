/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * python.c - see python.h: finds the interpreter and learns its layout. The walk is in
 * python_walk.c.
 *
 * Two variables of the interpreter are needed: _PyRuntime, and Py_Version (since 3.11) for its
 * version; 3.10 has none, and PyExc_EncodingWarning tells it from 3.9. Both python and libpython.so
 * export them, because extension modules are linked against them. 3.13 has a section for _PyRuntime, so that it can be found in a stripped program, and
 * _PyRuntime begins with the offsets that debuggers need.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "elf_read.h"
#include "python.h"
#include "../../wire/control.h"

#define MAJOR_MINOR(version) ((version) >> 16)
#define PYTHON_310 0x030a00f0 /* it does not say which 3.10 it is */
/* release level in PY_VERSION_HEX: a, b, c, f; the layout does not change from c on */
#define CANDIDATE 0xc

/* In glibc's struct pthread, which gdb's libthread_db knows too: struct pthread, tid, behind a header of a
 * size that never changes. */
#ifdef __aarch64__
#define GLIBC_TID 208
#else
#define GLIBC_TID 720
#endif
#define TID_MAX (1u << 22) /* of the kernel */

/* From the headers of 3.10.13. A frame is an object; C calls each of them. */
static const struct ct_python python_310 = {
	.runtime_interpreters_head = 32,
	.interp_next = 0,
	.interp_threads_head = 8, /* tstate_head */
	.thread_prev = 0,
	.thread_next = 8,
	.thread_interp = 16,
	.thread_native_id = 176, /* thread_id: pthread_self() */
	.pthread_tid = GLIBC_TID,
	.thread_frame = 24,
	.cframe_frame = CT_PY_NONE,
	.frame_at = 24,	     /* f_back comes first of what is read */
	.frame_previous = 0, /* f_back */
	.frame_code = 8,     /* f_code */
	.frame_instr = 72,   /* f_lasti */
	.frame_owner = 0,
	.frame_entry = CT_PY_EACH,
	.owner_shim = CT_PY_NONE,
	.code_first_line = 40,
	.code_check = 56, /* co_consts, up to co_linetable */
	.code_filename = 104,
	.code_qualname = 112, /* co_name: there is no other */
	.code_linetable = 120,
	.code_instrs = CT_PY_NONE,
	.str_length = 16,
	.str_state = 32,
	.str_ascii_data = 48,
	.str_compact_data = 72,
	.bytes_size = 16,
	.bytes_data = 32,
};

/* From the headers of 3.11.2 and 3.11.7; tests/unit/test_python.c compares with those of the
 * installed interpreters. */
static const struct ct_python python_311 = {
	/* internal/pycore_runtime.h: struct pyruntimestate, interpreters.head */
	.runtime_interpreters_head = 40,
	/* internal/pycore_interp.h: struct _is, next; threads.head */
	.interp_next = 0,
	.interp_threads_head = 16,
	/* cpython/pystate.h: struct _ts, prev, next, interp, native_thread_id, cframe */
	.thread_prev = 0,
	.thread_next = 8,
	.thread_interp = 16,
	.thread_native_id = 160,
	.thread_frame = 56,
	/* cpython/pystate.h: struct _PyCFrame, current_frame; use_tracing comes first */
	.cframe_frame = 8,
	/* internal/pycore_frame.h: struct _PyInterpreterFrame, f_code, previous, prev_instr,
	 * owner */
	.frame_code = 32,
	.frame_previous = 48,
	.frame_instr = 56,
	.frame_entry = 68, /* is_entry */
	.frame_owner = 69,
	.owner_shim = CT_PY_NONE, /* enum _frameowner ends with FRAME_OWNED_BY_FRAME_OBJECT */
	.code_first_line = 72,	  /* cpython/code.h: struct PyCodeObject */
	.code_check = 72,
	.code_filename = 112,
	.code_qualname = 128,
	.code_linetable = 136,
	.code_instrs = 184, /* co_code_adaptive */
	.str_length = 16,   /* cpython/unicodeobject.h: PyASCIIObject */
	.str_state = 32,
	.str_ascii_data = 48,	/* sizeof(PyASCIIObject) */
	.str_compact_data = 72, /* sizeof(PyCompactUnicodeObject) */
	.bytes_size = 16,	/* cpython/bytesobject.h: PyBytesObject */
	.bytes_data = 32,
};

/* From the headers of 3.12.1. It has no _Py_DebugOffsets: they came with 3.13. */
static const struct ct_python python_312 = {
	.runtime_interpreters_head = 40,
	.interp_next = 0,
	.interp_threads_head = 72,
	.thread_prev = 0,
	.thread_next = 8,
	.thread_interp = 16,
	.thread_native_id = 144,
	.thread_frame = 56,
	.cframe_frame = 0,
	.frame_code = 0,
	.frame_previous = 8,
	.frame_instr = 56,
	.frame_entry = CT_PY_NONE,
	.frame_owner = 70,
	.owner_shim = 3, /* FRAME_OWNED_BY_CSTACK */
	.code_first_line = 68,
	.code_check = 72,
	.code_filename = 112,
	.code_qualname = 128,
	.code_linetable = 136,
	.code_instrs = 192,
	.str_length = 16,
	.str_state = 32,
	.str_ascii_data = 40,
	.str_compact_data = 56,
	.bytes_size = 16,
	.bytes_data = 32,
};

/* internal/pycore_runtime.h of 3.13: struct _Py_DebugOffsets, up to what is used. "Only
 * guaranteed to be stable between patch versions for a given minor version". */
struct debug_offsets {
	char cookie[8];
	uint64_t version, free_threaded;
	struct {
		uint64_t size, finalizing, interpreters_head;
	} runtime;
	struct {
		uint64_t size, id, next, threads_head, gc, imports_modules, sysdict, builtins,
			ceval_gil, gil, gil_enabled, gil_locked, gil_holder;
	} interp;
	struct {
		uint64_t size, prev, next, interp, current_frame, thread_id, native_thread_id,
			datastack_chunk, status;
	} thread;
	struct {
		uint64_t size, previous, executable, instr_ptr, localsplus, owner;
	} frame;
	struct {
		uint64_t size, filename, name, qualname, linetable, firstlineno, argcount,
			localsplusnames, localspluskinds, code_adaptive;
	} code;
	uint64_t others[20]; /* object, type, tuple, list, dict, float, long */
	struct {
		uint64_t size, ob_size, ob_sval;
	} bytes;
	struct {
		uint64_t size, state, length, asciiobject_size;
	} unicode;
};

/* internal/pycore_debug_offsets.h of 3.14: the same parts, some of them longer. */
struct debug_offsets_314 {
	uint64_t head[6]; /* up to runtime */
	uint64_t interp[16], thread[9], frame[8], code[11], others[24];
	uint64_t bytes[3], unicode[4];
};

static void from_314(struct debug_offsets *o, const struct debug_offsets_314 *n)
{
	memcpy(o, n->head, sizeof(n->head));
	/* what is used comes first in each of them */
	memcpy(&o->interp, n->interp, sizeof(o->interp));
	memcpy(&o->thread, n->thread, sizeof(o->thread));
	memcpy(&o->frame, n->frame, sizeof(o->frame));
	memcpy(&o->code, n->code, sizeof(o->code));
	memcpy(&o->bytes, n->bytes, sizeof(o->bytes));
	memcpy(&o->unicode, n->unicode, sizeof(o->unicode));
}

/* ---- what the interpreter says about itself ---- */

/* Stores the offset of a field of `bytes` bytes in *to. Returns whether the field lies below
 * `limit`. */
static bool put_offset(uint16_t *to, uint64_t offset, uint64_t bytes, uint64_t limit)
{
	*to = (uint16_t)offset;
	return offset < limit && bytes <= limit - offset;
}

static bool from_debug_offsets(struct ct_python *p, const struct debug_offsets *o)
{
	const uint64_t any = CT_PY_NONE - 1, frame = CT_PY_FRAME_BYTES, object = 4096;
	const uint64_t check = sizeof(uint64_t[CT_PY_CHECK_WORDS]);
	uint64_t words = o->code.linetable + 8 - check;
	bool good;

	good = put_offset(&p->runtime_interpreters_head, o->runtime.interpreters_head, 8, any);
	good &= put_offset(&p->interp_next, o->interp.next, 8, any);
	good &= put_offset(&p->interp_threads_head, o->interp.threads_head, 8, any);
	good &= put_offset(&p->thread_prev, o->thread.prev, 8, any);
	good &= put_offset(&p->thread_next, o->thread.next, 8, any);
	good &= put_offset(&p->thread_interp, o->thread.interp, 8, any);
	good &= put_offset(&p->thread_native_id, o->thread.native_thread_id, 8, any);
	good &= put_offset(&p->thread_frame, o->thread.current_frame, 8, any);
	good &= put_offset(&p->frame_previous, o->frame.previous, 8, frame);
	good &= put_offset(&p->frame_code, o->frame.executable, 8, frame);
	good &= put_offset(&p->frame_instr, o->frame.instr_ptr, 8, frame);
	good &= put_offset(&p->frame_owner, o->frame.owner, 1, frame) && o->frame.size >= frame;
	good &= o->code.linetable + 8 >= check && put_offset(&p->code_check, words, check, object);
	good &= put_offset(&p->code_linetable, o->code.linetable, 8, object);
	good &= put_offset(&p->code_filename, o->code.filename, 8, object);
	good &= put_offset(&p->code_qualname, o->code.qualname, 8, object);
	good &= put_offset(&p->code_first_line, o->code.firstlineno, 4, object);
	good &= put_offset(&p->code_instrs, o->code.code_adaptive, 2, object);
	good &= put_offset(&p->str_state, o->unicode.state, 4, object);
	good &= put_offset(&p->str_length, o->unicode.length, 8, object);
	good &= put_offset(&p->str_ascii_data, o->unicode.asciiobject_size, 1, object);
	/* cpython/unicodeobject.h: PyCompactUnicodeObject is PyASCIIObject, utf8_length and utf8 */
	good &= put_offset(&p->str_compact_data, o->unicode.asciiobject_size + 16, 1, object);
	good &= put_offset(&p->bytes_size, o->bytes.ob_size, 8, object);
	good &= put_offset(&p->bytes_data, o->bytes.ob_sval, 1, object);
	p->cframe_frame = CT_PY_NONE;
	p->frame_entry = CT_PY_NONE;
	/* internal/pycore_frame.h: FRAME_OWNED_BY_CSTACK; 3.14: FRAME_OWNED_BY_INTERPRETER */
	p->owner_shim = 3;
	/* A code object's check is computed from the words that begin at code_check. The pointers
	 * must lie in these words, else they are not where this program looks. */
	good &= p->code_filename >= p->code_check && p->code_qualname >= p->code_check &&
		p->code_filename < p->code_linetable && p->code_qualname < p->code_linetable &&
		!((p->code_filename - p->code_check) % 8) &&
		!((p->code_qualname - p->code_check) % 8);
	return good;
}

static char reason[128];

static int refuse(const char **why, uint32_t version, const char *what)
{
	snprintf(reason, sizeof(reason), "Python %u.%u %s", version >> 24, version >> 16 & 0xff,
		 what);
	if (why)
		*why = reason;
	return -ENOTSUP;
}

/* Reads what the file has at a linked address. Versions and offsets are constants. So they can be
 * read before the loader has mapped all of the file, and do not depend on what the process has done
 * to its memory since. */
static int read_linked(const struct elf_file *f, uint64_t addr, void *buf, size_t len)
{
	for (int i = 0; i < f->nphdr; i++) {
		const Elf64_Phdr *p = &f->phdr[i];
		uint64_t in = addr - p->p_vaddr;

		if (p->p_type == PT_LOAD && addr >= p->p_vaddr && in < p->p_filesz &&
		    len <= p->p_filesz - in && p->p_offset <= INT64_MAX - in)
			return pread(f->fd, buf, len, (off_t)(p->p_offset + in)) == (ssize_t)len
				       ? 0
				       : -EIO;
	}
	return -ENOENT;
}

/* Reads the offsets with which _PyRuntime begins. */
static bool read_offsets(const struct elf_file *f, uint64_t runtime, uint32_t version,
			 struct debug_offsets *o)
{
	struct debug_offsets_314 newer;

	if (MAJOR_MINOR(version) < 0x030e)
		return !read_linked(f, runtime, o, sizeof(*o));
	if (read_linked(f, runtime, &newer, sizeof(newer)))
		return false;
	from_314(o, &newer);
	return true;
}

/* runtime: its linked address. */
static int layout_of(const struct elf_file *f, uint64_t runtime, uint32_t version,
		     struct ct_python *out, const char **why)
{
	struct debug_offsets o;

	if (MAJOR_MINOR(version) < 0x030a)
		return refuse(why, version, "is older than 3.10");
	if (MAJOR_MINOR(version) > 0x030e)
		return refuse(why, version,
			      "is newer than 3.14, the last one whose frames this program knows");
	if ((version >> 4 & 0xf) < CANDIDATE)
		return refuse(why, version, "is an alpha or beta, whose layout no release has");
	memset(out, 0, sizeof(*out));
	if (MAJOR_MINOR(version) >= 0x030d) {
		if (!read_offsets(f, runtime, version, &o) ||
		    memcmp(o.cookie, "xdebugpy", sizeof(o.cookie)) || o.version != version)
			return refuse(why, version,
				      "does not begin _PyRuntime with its debug offsets");
		if (o.free_threaded)
			return refuse(why, version, "is the free-threaded build");
		if (!from_debug_offsets(out, &o))
			return refuse(why, version, "has debug offsets that cannot be");
	} else {
		*out = MAJOR_MINOR(version) == 0x030a	? python_310
		       : MAJOR_MINOR(version) == 0x030b ? python_311
							: python_312;
	}
	out->version = version;
	return 0;
}

/* Whether the C library keeps the thread's number where glibc does. */
static bool pthread_holds(struct target *t, const struct ct_python *p, uint64_t thread)
{
	uint64_t at;
	uint32_t tid;

	return !p->pthread_tid ||
	       (!target_read(t, thread + p->thread_native_id, &at, sizeof(at)) &&
		!target_read(t, at + p->pthread_tid, &tid, sizeof(tid)) && tid && tid <= TID_MAX);
}

/* Whether the first thread of the first interpreter points back to that interpreter. Before the
 * interpreter has started there is no thread, and while the file is being mapped there are other
 * bytes in its place. */
static int layout_holds(struct target *t, const struct ct_python *p, const char **why)
{
	const struct target_map *m = target_map_at(t, p->runtime);
	uint64_t interp, thread, back;
	int err = 0;

	if (!m || !m->write)
		return 0;
	/* if a thread ends meanwhile, that does not mean a wrong layout: look again */
	for (int i = 0; i < 5; i++) {
		if (i)
			usleep(1000);
		err = target_read(t, p->runtime + p->runtime_interpreters_head, &interp,
				  sizeof(interp));
		if (err || !interp)
			return err;
		err = target_read(t, interp + p->interp_threads_head, &thread, sizeof(thread));
		if (!err && !thread)
			return 0;
		if (!err)
			err = target_read(t, thread + p->thread_interp, &back, sizeof(back));
		if (!err && back == interp && pthread_holds(t, p, thread))
			return 0;
		if (err && err != -EFAULT)
			return err;
	}
	return refuse(why, p->version, "keeps its threads in a way of its own");
}

/* ---- which file the interpreter is in ---- */

struct found {
	uint64_t runtime, version; /* their linked addresses; 0: not there */
	bool encoding_warning;	   /* 3.10 or newer */
};

static int on_variable(void *ctx, const struct elf_sym *sym)
{
	struct found *f = ctx;

	if (sym->defined && !strcmp(sym->name, "_PyRuntime"))
		f->runtime = sym->value;
	if (sym->defined && !strcmp(sym->name, "Py_Version"))
		f->version = sym->value;
	f->encoding_warning |= sym->defined && !strcmp(sym->name, "PyExc_EncodingWarning");
	return 0;
}

/* Computes the difference between the addresses in the process and the linked ones, from a mapping
 * of one of the file's segments. */
static bool bias_of(const struct elf_file *f, const struct target_map *m, uint64_t *bias)
{
	for (int i = 0; i < f->nphdr; i++) {
		const Elf64_Phdr *p = &f->phdr[i];

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) ||
		    m->offset < (p->p_offset & ~4095ULL) || m->offset >= p->p_offset + p->p_filesz)
			continue;
		*bias = m->start - m->offset - (p->p_vaddr - p->p_offset);
		return true;
	}
	return false;
}

/* Finds the variables. named: the file's name is Python's, so a full search is worth its cost. */
static void find_variables(const struct elf_file *file, bool named, struct found *f)
{
	static const char *const begins[] = { "_PyRuntime", "Py_Version", "PyExc_EncodingWarning",
					      NULL };

	elf_variables(file, SHT_DYNSYM, begins, on_variable, f);
	if (!f->runtime && named)
		elf_variables(file, SHT_SYMTAB, begins, on_variable, f);
	for (uint32_t i = 0; !f->runtime && i < file->nshdr; i++)
		if (!strcmp(elf_section_name(file, i), ".PyRuntime"))
			f->runtime = file->shdr[i].sh_addr;
}

static int version_of(const struct elf_file *file, const struct found *f, uint32_t *version)
{
	struct debug_offsets o;
	uint64_t v = 0;

	if (f->version && !read_linked(file, f->version, &v, sizeof(v))) {
		*version = (uint32_t)v;
		return 0;
	}
	if (!read_linked(file, f->runtime, &o, sizeof(o)) &&
	    !memcmp(o.cookie, "xdebugpy", sizeof(o.cookie))) {
		*version = (uint32_t)o.version;
		return 0;
	}
	*version = PYTHON_310;
	return f->encoding_warning && !f->version ? 0 : -ENOENT;
}

/* Looks for the interpreter in one mapped file. */
static int look_into(struct target *t, const struct target_map *m, bool named,
		     struct ct_python *out, const char **why)
{
	struct found f = { 0 };
	struct elf_file file;
	uint64_t bias = 0;
	uint32_t version;
	int fd = target_open_map(t, m), err;

	if (fd < 0)
		return fd == -ESRCH ? fd : -ENOENT;
	err = elf_file_open(&file, fd);
	if (!err && bias_of(&file, m, &bias))
		find_variables(&file, named, &f);
	if (err || !f.runtime) {
		err = -ENOENT;
	} else if (version_of(&file, &f, &version)) {
		if (why)
			*why = "its Python has no Py_Version and no PyExc_EncodingWarning: it is "
			       "older than 3.10";
		err = -ENOTSUP;
	} else {
		err = layout_of(&file, f.runtime, version, out, why);
	}
	elf_file_close(&file);
	close(fd);
	if (err)
		return err;
	out->runtime = bias + f.runtime;
	return layout_holds(t, out, why);
}

/* python3.11, libpython3.11.so.1.0; not libtorch_python.so, nor a module such as
 * x.cpython-311-x86_64-linux-gnu.so */
static bool named_python(const char *path)
{
	const char *base = strrchr(path, '/');

	base = base ? base + 1 : path;
	return !strncmp(base, "python", 6) || !strncmp(base, "libpython", 9);
}

int python_find(struct target *t, struct ct_python *out, const char **why)
{
	const struct target_map *maps, *program = NULL;
	int n = target_maps(t, &maps), refused = -ENOENT;

	if (n < 0)
		return n;
	for (int i = 0; i < n; i++) {
		int err;

		if (!maps[i].exec || !maps[i].ino || maps[i].path[0] != '/')
			continue;
		if (!program)
			/* a program lies at lower addresses than the libraries that it loads */
			program = &maps[i];
		if (!named_python(maps[i].path))
			continue;
		err = look_into(t, &maps[i], true, out, why);
		if (err != -ENOENT && err != -ENOTSUP)
			return err;
		if (err == -ENOTSUP)
			refused = err;
	}
	/* Python inside another program (it exports the variables for the sake of extension
	 * modules) */
	if (refused == -ENOENT && program && !named_python(program->path))
		return look_into(t, program, false, out, why);
	return refused;
}
