/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * make_python.h - memory as a program with Python may have it, for the unit test and for what the fuzzer begins
 * with: two threads, of which the second is in three functions; below them a shim. The functions have a name, a
 * file and a table of lines.
 */
#ifndef MAKE_PYTHON_H
#define MAKE_PYTHON_H

#include <stdint.h>
#include <string.h>

#include "../../wire/cudatrace.h"
#include "../../wire/control.h"

struct python_memory {
	uint64_t runtime[1], interp[1][2], thread[2][5], frame[4][10], code[3][26], name[8],
		file[8], table[8];
};

/* m: filled in as it is to lie at address `base`; the second thread is `tid`. */
static inline struct ct_python make_python(struct python_memory *m, uint64_t base, uint64_t tid)
{
#define LIES(member) (base + (uint64_t)((char *)(m->member) - (char *)m))
	struct ct_python p = { .runtime = LIES(runtime),
			       .version = 0x030d00f0,
			       .interp_next = 0,
			       .interp_threads_head = 8,
			       .thread_prev = 0,
			       .thread_next = 8,
			       .thread_interp = 16,
			       .thread_native_id = 24,
			       .thread_frame = 32,
			       .cframe_frame = CT_PY_NONE,
			       .frame_previous = 8,
			       .frame_instr = 56,
			       .frame_owner = 70,
			       .frame_entry = CT_PY_NONE,
			       .owner_shim = 3,
			       .code_first_line = 68,
			       .code_check = 72,
			       .code_filename = 112,
			       .code_qualname = 128,
			       .code_linetable = 136,
			       .code_instrs = 200,
			       .str_length = 16,
			       .str_state = 32,
			       .str_ascii_data = 40,
			       .str_compact_data = 56,
			       .bytes_size = 16,
			       .bytes_data = 32 };

	memset(m, 0, sizeof(*m));
	m->runtime[0] = LIES(interp[0]);
	m->interp[0][1] = LIES(thread[0]);
	m->thread[0][1] = LIES(thread[1]);
	m->thread[0][3] = 1;
	m->thread[1][3] = tid;
	m->thread[1][4] = LIES(frame[0]);
	for (int i = 0; i < 3; i++) {
		m->frame[i][0] = LIES(code[i]);
		m->frame[i][1] = LIES(frame[i + 1]);
		m->frame[i][7] = LIES(code[i]) + 200 + 2 * (uint64_t)i;
		m->code[i][8] = 7ull << 32; /* the first line */
		m->code[i][14] = LIES(file);
		m->code[i][16] = LIES(name);
		m->code[i][17] = LIES(table);
	}
	((uint8_t *)m->frame[3])[70] = 3; /* the shim */
	m->name[2] = 4;
	m->name[4] = 0x64; /* ASCII, compact, of one byte each */
	memcpy(&m->name[5], "main", 4);
	m->file[2] = 3;
	m->file[4] = 0x28; /* UCS-2, compact */
	memcpy(&m->file[7], "a\0.\0p\0", 6);
	m->table[2] = 12;
	memcpy(&m->table[4], "\x80\x01\x91\x02\xe9\x04\xf2\x02\x04\x01\x06\xf8", 12);
	return p;
#undef LIES
}

#endif
