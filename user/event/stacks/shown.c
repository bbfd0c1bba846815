/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shown.c - which frames of a stack people see: the program's own. Every report and page asks here,
 * so that a frame is hidden in all of them or in none. What a frame is follows from a row: how the
 * name of its file, or of its function, begins.
 */
#include <string.h>

#include "../../util/table/array.h"
#include "../event.h"

/* Where a row looks. */
enum where {
	IN_OBJECT,   /* the name of the mapped file, without its folders */
	IN_FUNCTION, /* the name of the function, behind the type that it returns */
};

/* The first row that fits says it. */
static const struct row {
	enum frame_role role;
	enum where where;
	const char *begins;
} rows[] = {
	/* the interpreter: in its library, or in its program */
	{ FRAME_GLUE, IN_OBJECT, "libpython" },
	{ FRAME_GLUE, IN_OBJECT, "python3" },
	/* what calls compiled code for it */
	{ FRAME_GLUE, IN_OBJECT, "libffi.so" },
	{ FRAME_GLUE, IN_OBJECT, "libffi-" },
	{ FRAME_GLUE, IN_OBJECT, "_ctypes." },
	{ FRAME_GLUE, IN_OBJECT, "_cffi_backend." },
	{ FRAME_GLUE, IN_OBJECT, "libtorch_python" },
	{ FRAME_GLUE, IN_OBJECT, "libnanobind" },
	{ FRAME_GLUE, IN_OBJECT, "libboost_python" },
	/* the same where it is linked into a program or an extension */
	{ FRAME_GLUE, IN_FUNCTION, "pybind11::" },
	{ FRAME_GLUE, IN_FUNCTION, "nanobind::" },
	{ FRAME_GLUE, IN_FUNCTION, "boost::python::" },
	{ FRAME_GLUE, IN_FUNCTION, "__Pyx_" },
	{ FRAME_GLUE, IN_FUNCTION, "_PyEval_" },
	{ FRAME_GLUE, IN_FUNCTION, "_PyFunction_" },
	{ FRAME_GLUE, IN_FUNCTION, "_PyObject_" },
	{ FRAME_GLUE, IN_FUNCTION, "_PyRun_" },
	{ FRAME_GLUE, IN_FUNCTION, "_PyVectorcall_" },
	{ FRAME_GLUE, IN_FUNCTION, "_Py_" },
	{ FRAME_GLUE, IN_FUNCTION, "PyCFuncPtr_" },
	{ FRAME_GLUE, IN_FUNCTION, "PyCFunction_" },
	{ FRAME_GLUE, IN_FUNCTION, "PyEval_" },
	{ FRAME_GLUE, IN_FUNCTION, "PyObject_" },
	{ FRAME_GLUE, IN_FUNCTION, "PyRun_" },
	{ FRAME_GLUE, IN_FUNCTION, "PyVectorcall_" },
	{ FRAME_GLUE, IN_FUNCTION, "Py_BytesMain" },
	{ FRAME_GLUE, IN_FUNCTION, "Py_RunMain" },
	{ FRAME_GLUE, IN_FUNCTION, "cfunction_call" },
	{ FRAME_GLUE, IN_FUNCTION, "cfunction_vectorcall" },
	{ FRAME_GLUE, IN_FUNCTION, "method_vectorcall" },
	{ FRAME_GLUE, IN_FUNCTION, "pymain_" },
	{ FRAME_GLUE, IN_FUNCTION, "slot_tp_call" },
	/* the blocks that PyTorch's allocator gives out */
	{ FRAME_ALLOCATOR, IN_OBJECT, "libc10" },
	{ FRAME_ALLOCATOR, IN_OBJECT, "libtorch" },
	/* the start of a program or thread */
	{ FRAME_START, IN_OBJECT, "libc.so." },
	{ FRAME_START, IN_OBJECT, "libc-2." },
	{ FRAME_START, IN_OBJECT, "libpthread" },
	{ FRAME_START, IN_OBJECT, "ld-linux" },
	{ FRAME_START, IN_OBJECT, "ld-musl" },
	{ FRAME_START, IN_FUNCTION, "__libc_start" },
	{ FRAME_START, IN_FUNCTION, "start_thread" },
	{ FRAME_START, IN_FUNCTION, "clone3" },
	{ FRAME_START, IN_FUNCTION, "__clone" },
};

static const char *base_of(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash && slash[1] ? slash + 1 : path;
}

/* `void pybind11::cpp_function::initialize<...>(...)`: the name of a template's function comes
 * behind its type. */
static const char *shown_name_of(const char *function)
{
	const char *name = function, *end = function ? function + strcspn(function, "<(") : NULL;

	for (const char *at = function; at && at < end; at++)
		if (*at == ' ' && at + 1 < end)
			name = at + 1;
	return name;
}

static bool begins(const char *text, const char *with)
{
	return text && !strncmp(text, with, strlen(with));
}

enum frame_role frame_role(uint8_t kind, const char *function, const char *object)
{
	const char *base = base_of(object), *name = shown_name_of(function);

	if (kind == CT_FRAME_PYTHON)
		return FRAME_OWN;
	if (function && !strcmp(function, "_start"))
		return FRAME_START;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (begins(rows[i].where == IN_OBJECT ? base : name, rows[i].begins))
			return rows[i].role;
	return FRAME_OWN;
}

const char *frame_file(uint8_t kind, const char *file)
{
	static const char *const folders[] = { "/site-packages/", "/dist-packages/" };
	const char *in = file;

	for (size_t i = 0; file && kind == CT_FRAME_PYTHON && i < ARRAY_LEN(folders); i++)
		for (const char *at = in; (at = strstr(at, folders[i]));)
			in = at += strlen(folders[i]);
	return in && *in ? in : file;
}

static bool is_start(const struct stack_frame *f)
{
	return frame_role(f->kind, f->function, f->object) == FRAME_START;
}

struct stack_view stack_view(const struct stack *s, bool whole)
{
	struct stack_view v = { .n = s->nframes };

	while (!whole && v.n && is_start(s->frames[v.n - 1]))
		v.n--;
	if (!v.n)
		v.n = s->nframes;
	for (uint32_t i = 0; !whole && !v.hides && i < v.n; i++)
		v.hides = s->frames[i]->kind == CT_FRAME_PYTHON;
	return v;
}
