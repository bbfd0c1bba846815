/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * agent_wire.h - the protocol between the agent in the target and the user side, over a SOCK_SEQPACKET
 * socket.
 *
 * Every message is one packet: a head, then the members of its type. The receiver checks the
 * lengths: it uses no field of a message before agent_msg_check() has found the message complete.
 * Records are those of wire/cudatrace.h, with pids and tids of the target's own pid namespace; the
 * user side translates them.
 *
 *   agent:  HELLO  NAMES...                 which CUPTI; the names of its callback ids
 *   user:   START  FUNCS...                 what to record; which ids are which rows
 *   agent:  STARTED  RECORDS...  SAY...
 *   user:   STOP (or closes the socket)
 *   agent:  RECORDS...  BYE
 *
 * A text says where the agent shall connect: the value of CUDATRACE_AGENT when the driver loads it
 * at a program's start ("v1 path=PATH key=HEX [cupti=PATH]"), the argument of
 * cudatrace_agent_start() when it was injected ("v1 fd=N [cupti=PATH]", the end of a socketpair
 * that the process holds already, and that the agent closes if it returned 0). Words are separated
 * by single blanks; a path's blanks, percent signs and control characters are written as %XX.
 */
#ifndef CT_AGENT_H
#define CT_AGENT_H

#include <linux/types.h>
#include <stddef.h>
#include <string.h>

#include "control.h"
#include "meet_msg.h"

#define AGENT_ENV "CUDATRACE_AGENT"
#define AGENT_INJECTION_ENV "CUDA_INJECTION64_PATH"
#define AGENT_NVTX_ENV "NVTX_INJECTION64_PATH"
#define AGENT_MAGIC 0x61746463u /* "cdta" */
#define AGENT_VERSION 1
#define AGENT_FUNCS_MAX 8192 /* callback ids told at most, in each direction */
#define AGENT_PARAMS_MAX 512 /* bytes of the parameters of a call */

enum agent_type {
	AGENT_HELLO = 1,   /* struct agent_hello */
	AGENT_NAMES = 2,   /* struct agent_list of struct agent_name */
	AGENT_STARTED = 3, /* struct agent_started */
	AGENT_RECORDS = 4, /* records, one after the other */
	AGENT_SAY = 5,	   /* struct meet_say */
	AGENT_BYE = 6,	   /* struct agent_bye */
	AGENT_START = 16,  /* struct agent_start */
	AGENT_FUNCS = 17,  /* struct agent_list of struct agent_func */
	AGENT_STOP = 18,   /* struct meet_head alone */
	AGENT_TYPE_END
};

struct agent_hello {
	MEET_HELLO
	__u32 cupti_version;  /* of cuptiGetVersion(); 0: there is none, and a SAY says why */
	__u32 driver_version; /* of cuDriverGetVersion(); 0: not known */
	__u32 path_len;	      /* of path[], where that libcupti is */
	char path[];
};

#define AGENT_LAST 0x1 /* no more messages of this list follow */
struct agent_list {
	struct meet_head h;
	__u32 n;
	__u32 flags; /* AGENT_LAST */
	char entries[];
};

enum agent_domain { AGENT_DRIVER = 1, AGENT_RUNTIME = 2 }; /* as CUpti_CallbackDomain */

/* Padded to a multiple of 4. */
struct agent_name {
	__u16 cbid;
	__u8 domain; /* enum agent_domain */
	__u8 len;    /* of name[]: cudaLaunchKernel_v7000, cuLaunchKernel_ptsz */
	char name[];
};

/* What the agent does with a function. */
/* device work refers to its calls: their correlation ids are needed */
#define AGENT_F_CAUSE 0x1
#define AGENT_F_CALL 0x2       /* calls of it are recorded */
#define AGENT_F_PER_THREAD 0x4 /* the _ptsz/_ptds twin */
/* it unloads code: afterwards CUPTI's names of that code's kernels may be gone */
#define AGENT_F_UNLOADS 0x8
struct agent_func {
	__u16 cbid;
	__u8 domain;
	__u8 flags; /* AGENT_F_* */
	__u16 row;
	/* of this entry, with the struct agent_call that follows if AGENT_F_CALL is set */
	__u16 size;
};
/* The place of word i of a call's record in the parameters that CUPTI's callback gets. They are a
 * struct with the arguments in the order of CUDA's header. */
struct agent_word {
	__u16 off;
	__u8 width; /* bytes; 0: the word is not available, and is 0 */
	__u8 how;   /* enum agent_word_how */
};
enum agent_word_how {
	AGENT_WORD_ZERO = 0 /* extended with zeros */,
	AGENT_WORD_SIGN = 1,
	AGENT_WORD_ADDRESS = 2 /* of the place */
};
struct agent_call {
	struct ct_spec spec;
	struct agent_word words[CT_MAX_WORDS];
	/* index of the word with the kernel's handle; CT_COUNT_NONE: no word has one */
	__u32 kernel;
};

/* Kinds of device records, as bits. */
enum agent_kind {
	AGENT_KERNEL = 1 << 0,
	AGENT_MEMCPY = 1 << 1,
	AGENT_MEMSET = 1 << 2,
	AGENT_SYNC = 1 << 3,
	AGENT_MEMORY = 1 << 4,
	AGENT_OVERHEAD = 1 << 5,
	AGENT_NVTX = 1 << 6,
	AGENT_CONTEXT = 1 << 7,
	AGENT_DEVICE = 1 << 8,
	AGENT_STREAM = 1 << 9,
	AGENT_UM = 1 << 10,
};
#define AGENT_DEFAULT (AGENT_KERNEL | AGENT_MEMCPY | AGENT_MEMSET | AGENT_OVERHEAD)
/* records that name them: together with any other kind */
#define AGENT_ALWAYS (AGENT_DEVICE | AGENT_CONTEXT | AGENT_STREAM)

enum agent_clock { AGENT_CLOCK_AUTO = 0, AGENT_CLOCK_CALLBACK = 1, AGENT_CLOCK_OFFSET = 2 };

#define AGENT_S_GRAPHS 0x1 /* a record for each graph launch instead of each node */
#define AGENT_S_CALLS 0x2  /* calls too, by callbacks */
#define AGENT_S_NESTED 0x4 /* calls inside calls too */
#define AGENT_S_ENTER 0x8  /* CT_ENTER too */
struct agent_start {
	struct meet_head h;
	__u32 version;
	__u32 kinds;	    /* enum agent_kind; 0: no device records */
	__u32 flags;	    /* AGENT_S_* */
	__u32 clock;	    /* enum agent_clock; AUTO: by CUPTI's version */
	__u32 buffer_bytes; /* of one buffer in host memory */
	__u32 buffers;	    /* how many at most */
	/* CUPTI's, in device memory; 0: as CUPTI has them */
	__u32 device_buffer_bytes, device_buffers;
	__u64 min_duration_ns;
};

struct agent_started {
	struct meet_head h;
	__s32 err;   /* 0: records may come; -errno: no records will come, and a SAY has said why */
	__u32 clock; /* enum agent_clock: which is used */
	__u32 kinds; /* those that this CUPTI and driver could give */
	/* the known faults that this version has (target/cupti/faults.h) */
	__u32 faults;
};

struct agent_bye {
	struct meet_head h;
	/* 0; -EIO: CUPTI reported a fatal error; -ETIMEDOUT: CUPTI could not be ended in time */
	__s32 err;
	__u32 finalized;       /* cuptiFinalize was called and succeeded */
	__u64 records, unsent; /* sent; found no room, as CT_LOST reported */
	/* records that could not be sent in time: they are reported only here */
	__u64 left;
};

/* The bytes of a message's fixed part; 0: no such type. */
static inline size_t agent_fixed(unsigned int type)
{
	switch (type) {
	case AGENT_HELLO: return sizeof(struct agent_hello);
	case AGENT_NAMES: return sizeof(struct agent_list);
	case AGENT_STARTED: return sizeof(struct agent_started);
	case AGENT_RECORDS: return sizeof(struct meet_head);
	case AGENT_SAY: return sizeof(struct meet_say);
	case AGENT_BYE: return sizeof(struct agent_bye);
	case AGENT_START: return sizeof(struct agent_start);
	case AGENT_FUNCS: return sizeof(struct agent_list);
	case AGENT_STOP: return sizeof(struct meet_head);
	default: return 0;
	}
}

/* Checks that the n received bytes are one message with its complete fixed part and announced
 * texts. Entries of lists and records are checked by agent_name_at(), agent_func_at() and
 * record_check(). Returns the type, or -1. */
static inline int agent_msg_check(const void *msg, size_t n)
{
	struct agent_hello hello;
	struct meet_say say;
	size_t rest;
	int type = meet_msg_type(msg, n, agent_fixed, &rest);

	if (type == AGENT_HELLO) {
		memcpy(&hello, msg, sizeof(hello));
		if (hello.path_len > rest)
			return -1;
	} else if (type == AGENT_SAY) {
		memcpy(&say, msg, sizeof(say));
		if (say.len > rest)
			return -1;
	}
	return type;
}

/* Returns the entry of a list at *at (offset in the message), and moves *at to the next one. NULL:
 * there is no complete entry. */
static inline const struct agent_name *agent_name_at(const void *msg, size_t n, size_t *at)
{
	const struct agent_name *e = (const struct agent_name *)((const char *)msg + *at);
	size_t left = n - *at;

	if (*at > n || left < sizeof(*e) || left < sizeof(*e) + e->len)
		return NULL;
	*at += (sizeof(*e) + e->len + 3) & ~(size_t)3;
	return e;
}

static inline const struct agent_func *agent_func_at(const void *msg, size_t n, size_t *at)
{
	const struct agent_func *e = (const struct agent_func *)((const char *)msg + *at);
	size_t left = n - *at, need = sizeof(*e);

	if (*at > n || left < need)
		return NULL;
	if (e->flags & AGENT_F_CALL)
		need += sizeof(struct agent_call);
	if (e->size < need || e->size > left || e->size % 4)
		return NULL;
	*at += e->size;
	return e;
}

CT_ASSERT_SIZE(struct agent_hello, 64);
CT_ASSERT_SIZE(struct agent_list, 16);
CT_ASSERT_SIZE(struct agent_name, 4);
CT_ASSERT_SIZE(struct agent_func, 8);
CT_ASSERT_SIZE(struct agent_word, 4);
CT_ASSERT_SIZE(struct agent_call,
	       sizeof(struct ct_spec) + CT_MAX_WORDS * sizeof(struct agent_word) + 4);
CT_ASSERT_SIZE(struct agent_start, 48);
CT_ASSERT_SIZE(struct agent_started, 24);
CT_ASSERT_SIZE(struct agent_bye, 40);

#endif
