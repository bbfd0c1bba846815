/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stub_aarch64.c - see call_stub.h. There is only one way, to hooks_entry: call_enter() counts the
 * calls.
 */
#include "../common/emit.h"
#include "../common/pads.h"
#include "../common/call_stub.h"
#include "../common/code_text.h"

void stub_make(struct stub *s, const struct stub_first *first, unsigned int number,
	       unsigned int bytes)
{
	__u8 code[CHUNK_SLOT];

	memset(code, EMIT_FILL, sizeof(code));
	put_entry(code, number);
	s->bytes = (__u8)bytes;
	s->go = first->next;
	text_make(s->at, code, bytes);
}

int stub_lead(struct stub *s, __u32 flags)
{
	(void)s;
	(void)flags;
	return 0;
}
