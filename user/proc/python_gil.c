/* SPDX-License-Identifier: BSD-2-Clause */
/* python_gil.c - see python_gil.h. From the headers of 3.11.7, 3.12.1 and 3.13.0, default builds. */
#include <errno.h>

#include "python_gil.h"

/* internal/pycore_gil.h: struct _gil_runtime_state */
#define GIL_HOLDER 8
#define GIL_LOCKED 16
#define GIL_COND 32 /* up to the end: cond, mutex, switch_cond, switch_mutex */
#define GIL_BYTES 208

static const struct gil_row {
	uint32_t version; /* major and minor */
	uint16_t runtime; /* of the lock in _PyRuntime; 0: the interpreter has a pointer to it */
	uint16_t interp;  /* of that pointer */
	uint16_t gc_said; /* where _PyRuntime says where the interpreter has `gc`; 0: it does not */
	uint16_t gc;	  /* of gc.collecting in the interpreter, or in `gc` */
} rows[] = {
	{ 0x030b, 360, 0, 0, 848 },
	{ 0x030c, 0, 384, 0, 312 },
	{ 0x030d, 0, 16, 80, 200 }, /* _Py_DebugOffsets, interpreter_state.gc */
};

int python_gil(struct target *t, struct ct_host_python *p)
{
	const struct gil_row *row = NULL;
	uint64_t interp, gil, gc = 0;
	int err;

	for (unsigned int i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].version == p->py.version >> 16)
			row = &rows[i];
	if (!row)
		return 0;
	err = target_read(t, p->py.runtime + p->py.runtime_interpreters_head, &interp,
			  sizeof(interp));
	if (err)
		return err;
	if (!interp)
		return -EAGAIN;
	gil = p->py.runtime + row->runtime;
	if (!row->runtime)
		err = target_read(t, interp + row->interp, &gil, sizeof(gil));
	if (!err && row->gc_said)
		err = target_read(t, p->py.runtime + row->gc_said, &gc, sizeof(gc));
	if (err)
		return err;
	if (!gil)
		return -EAGAIN;
	p->gil_from = gil + GIL_COND;
	p->gil_until = gil + GIL_BYTES;
	p->gil_holder = gil + GIL_HOLDER;
	p->gil_locked = gil + GIL_LOCKED;
	p->gc = interp + gc + row->gc;
	return 0;
}
