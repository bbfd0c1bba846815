/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * questions.h - asks the peer for what a call of the program waits for: hooks on what the dynamic loader has mapped, and the
 * outputs of a call that are read before the program goes on.
 */
#ifndef CT_HOOKS_QUESTIONS_H
#define CT_HOOKS_QUESTIONS_H

#include <stdbool.h>

#include "../../wire/hooks_wire.h"

/* The questions to the peer, one for each type of message; hooks_wire.h says how they are numbered. */
struct question {
	enum hooks_type type;
	__u32 asked;	/* the newest number that was assigned */
	__u32 sent;	/* the newest one that was sent */
	__u32 answered; /* a futex */
};
extern struct question question_mapped, question_reads;
/* A question was not answered in time: nobody waits for one until a message has come. A forked child
 * inherits this. */
extern bool questions_unanswered;
extern __u64
	questions_alone_ns; /* since then threads go on without an answer; 0: they have waited for each */

/* Notes the loader's count. Hooks are requested for everything that is mapped after this. It is
 * called before the first list of functions is made, so that objects that are mapped while the list
 * is made are not assumed to be hooked. */
void loader_look(void);
__u32 question_number(struct question *q);
/* Marks this question and all before it as answered. */
void question_answered(struct question *q, __u32 number);
/* The peer is gone and will not answer: wakes the threads that wait. */
void questions_give_up(void);
__u64 sys_now(void);
/* Waits for the answer, but not longer than HOOKS_ANSWER_MS, and not for a peer that is stopped, which the
 * thread of the hooks finds. After that, no thread waits for it. */
void question_wait(struct question *q, __u32 number);
/* Has the thread of the hooks ask. If it cannot, no thread waits for the answer. */
void question_ask(struct question *q, __u32 number);
/*
 * Asks for hooks if code was mapped since the last question. Returns the number of a question: once
 * it is answered, all code that is mapped now has its hooks. Another thread may have asked this
 * question, for example one that is about to wait for the loader's lock. The number is assigned
 * before the count is stored, so that a thread that sees the count also sees the number.
 */
__u32 ask_for_mapped(void);
/* Was something unmapped since the last question? */
bool is_unmapped(void);
/* The number of the last question that was asked for this reason. */
extern __u32 question_unmapped;
/* Has the peer look at what is mapped, which it will be asked for when all of it is: it reads the files meanwhile. */
void look_at_mapped(void);
/* On the thread of the hooks. */
void questions_send(void);
/* On the thread of the hooks: does somebody wait for an answer? If the peer is stopped, nobody does any more. */
bool questions_are_waited_for(void);

#endif
