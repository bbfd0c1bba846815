/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * watch_stub.c - see target/common/call_stub.h: the code to which a function's jump, or its gate, leads. Here it
 * has one way, to hooks_entry, and a second part (GO): the first instruction, and a jump back.
 */
#include "../common/emit.h"
#include "../common/pads.h"
#include "../common/call_stub.h"
#include "../common/code_text.h"

#if defined(__x86_64__)
#define GO 32

unsigned int stub_bytes(const struct stub *s, const struct stub_first *first, bool folds)
{
	(void)s;
	(void)first;
	(void)folds;
	return 0; /* it never takes its pad's place */
}

static void put_go(__u8 *code, __u64 at, const struct stub_first *first)
{
	__s32 displacement = (__s32)(first->to - (at + first->n));

	memcpy(code, first->bytes, first->n);
	if (first->disp_at)
		memcpy(code + first->disp_at, &displacement, 4);
	put_jump_far(code + first->n, first->next);
}

void stub_make(struct stub *s, const struct stub_first *first, unsigned int number,
	       unsigned int bytes)
{
	__u8 code[CHUNK_SLOT];

	memset(code, EMIT_FILL, sizeof(code));
	put_entry(code, number);
	s->bytes = (__u8)bytes;
	s->go = s->at + GO;
	put_go(code + GO, s->go, first);
	text_make(s->at, code, bytes);
}
#else
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
#endif

int stub_lead(struct stub *s, __u32 flags)
{
	(void)s;
	(void)flags;
	return 0;
}
