/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hooks_wire.h - the protocol between the hooks in a process and the user side: messages over a
 * SOCK_SEQPACKET socket, and the area of shared memory to which the records of calls are written.
 * docs/hooks.md describes it in order.
 *
 *	agent:	HELLO
 *	user:	START (with the area's descriptor)  FILTERS (with another one)  SPECS...  PYTHON  FUNCS...
 *							FILTERS only where the kernel tells of them, PYTHON
 *							where its frames are wanted, and found
 *	agent:	INSTALLED  SAY...
 *	agent:	MAPPED					files were mapped: the thread waits for the answer
 *	user:	PYTHON  FUNCS...
 *	agent:	INSTALLED
 *	user:	MUTE					also after any list of functions
 *	agent:	READ					a record was written that is to be read now: the
 *							thread waits for the answer
 *	user:	READ
 *	agent:	CHILD (with a socket)			of a forked child, with which all of this begins
 *							anew over that socket
 *	user:	STOP (or hangs up)
 *	agent:	BYE
 *
 * The user side makes the area and seals its size, because a process that truncates shared memory
 * makes its readers crash. The user side trusts neither the area nor any message. The text that
 * tells the agent where to connect is described in wire/agent_wire.h.
 *
 * The area: a struct hooks_area, and from HOOKS_AREA_HEAD on a block for each thread that makes
 * calls: a struct hooks_thread, padded to HOOKS_BLOCK_HEAD bytes, and its ring. A ring holds
 * entries: 8 bytes of tag, then a record of wire/cudatrace.h. The tag is computed from the entry's
 * place in the stream (hooks_tag()) and is written last, so that old bytes from an earlier round
 * are not mistaken for a record. An entry does not wrap around: a special tag, hooks_skip(), says
 * that the next entry is at the ring's begin.
 *
 * If calls are counted (config.count), three arrays follow the blocks: for each block HOOKS_LISTS
 * words, the cells, and for each cell a struct hooks_extra. A cell is a struct ct_entry, as the
 * kernel side has it. It belongs to the thread that took it, so no two threads write to one cache
 * line; the user side adds up the cells of one key. A list is an index of a cell + 1, and the cell's
 * `pad` is the next one. A cell whose key has no process (tgid) is not complete.
 */
#ifndef CT_HOOKS_WIRE_H
#define CT_HOOKS_WIRE_H

#include <linux/types.h>
#include <stddef.h>
#include <string.h>

#include "control.h"
#include "meet_msg.h"

#define HOOKS_ENV "CUDATRACE_HOOKS"
#define HOOKS_MAGIC 0x6b686463u /* "cdhk" */
#define HOOKS_VERSION 14
#define HOOKS_MAPPED_MS 2000  /* how long a thread waits for the object's own one */
#define HOOKS_ANSWER_MS 1000  /* how long a thread waits for the answer to its question */
#define HOOKS_FUNCS_MAX 18432 /* in one process */
#define HOOKS_THREADS_MAX 4096
/* an area takes at most one part of so many of a limited address space (RLIMIT_AS) */
#define HOOKS_LIMIT_PART 16
#define HOOKS_CELLS (1u << 18)	    /* in an area in which calls are counted */
#define HOOKS_CELLS_EACH (1u << 16) /* how many of them one thread may have */
#define HOOKS_CHUNK 16u		    /* cells that a thread takes at a time */
#define HOOKS_LISTS 1024u	    /* a thread's lists of cells */

enum hooks_type {
	HOOKS_HELLO = 1,     /* struct hooks_hello */
	HOOKS_INSTALLED = 2, /* struct hooks_installed */
	HOOKS_SAY = 3,	     /* struct meet_say */
	HOOKS_MAPPED = 4,    /* struct hooks_ask */
	HOOKS_BYE = 5,	     /* struct hooks_bye */
	HOOKS_CHILD = 6,     /* struct hooks_child, with a descriptor */
	HOOKS_READ = 7,	     /* struct hooks_ask; from either side */
	HOOKS_LOOK =
		8, /* struct meet_head alone: files were mapped that will be asked for. No answer */
	HOOKS_START = 16,   /* struct hooks_start, with a descriptor */
	HOOKS_SPECS = 17,   /* struct hooks_list of struct hooks_spec */
	HOOKS_FUNCS = 18,   /* struct hooks_list of struct hooks_func */
	HOOKS_STOP = 19,    /* struct meet_head alone */
	HOOKS_PYTHON = 20,  /* struct hooks_python */
	HOOKS_MUTE = 21,    /* struct hooks_mute */
	HOOKS_FILTERS = 22, /* struct hooks_filters, with a descriptor */
};

struct hooks_hello {
	MEET_HELLO
	__u32 flags; /* HOOKS_H_* */
};
#define HOOKS_H_MEMORY 0x1 /* the process may read its own memory with a system call */

/* times are in ticks of the processor's counter, and the user side converts them */
#define HOOKS_S_TSC 0x1
/* forked children get hooks of their own */
#define HOOKS_S_FOLLOW 0x2
struct hooks_start {
	struct meet_head h;
	__u32 version;
	__u32 flags;	  /* HOOKS_S_* */
	__u32 threads;	  /* blocks in the area */
	__u32 ring_bytes; /* of each ring, a power of two */
	__u64 min_ticks;  /* shorter calls are not recorded; in the unit of the clock */
	struct ct_config config;
	__u32 cells;  /* number of cells in the area; 0: nothing is counted there */
	__u32 tracer; /* cudatrace's process id in the program's pid namespace; 0: not known */
};

/*
 * A question of a thread. The thread waits for the answer that has its number or a later one. Each
 * type has its own numbers, from 1 on. A number is assigned before the question is sent, so an
 * answer to a later number also answers the earlier ones, although these may arrive after it. 0:
 * there was no question.
 */
struct hooks_ask {
	struct meet_head h;
	__u32 number;
	__u32 pad;
};

#define HOOKS_LAST 0x1 /* no more messages of this list follow */
struct hooks_list {
	struct meet_head h;
	__u32 n;
	__u32 flags;
	__u32 number; /* with HOOKS_LAST: number of the HOOKS_MAPPED that the list answers */
	__u32 pad;
	/* with HOOKS_LAST: the code of the library whose calls of others are a part of its own (the runtime);
	 * bytes 0: none */
	__u64 within, within_bytes;
};
struct hooks_spec {
	__u32 row;
	__u32 pad;
	struct ct_spec spec;
};
/* The place at which the process's Python keeps its frames. */
struct hooks_python {
	struct meet_head h;
	struct ct_python python; /* generation: not used */
};

/*
 * A function that is called very often: its calls are only counted from here on, in
 * hooks_thread.muted[number]. HOOKS_MUTE_OFF: they are recorded again.
 */
#define HOOKS_MUTED 63
#define HOOKS_MUTE_OFF 0x1
#define HOOKS_MUTE_WINDOWS 0x2 /* from time to time they are recorded for a short time */
struct hooks_mute {
	struct meet_head h;
	__u32 func;   /* row */
	__u16 number; /* below HOOKS_MUTED; no two functions have the same one */
	__u16 flags;  /* HOOKS_MUTE_* */
	/* code of the runtime: calls of functions with HOOKS_F_FOLDS from there are parts of its calls */
	__u64 within, within_bytes;
};

/* The kernel says in the word at this place of what is mapped (filters.h) that the process sets a filter of its
 * system calls. */
struct hooks_filters {
	struct meet_head h;
	__u32 place;
	__u32 pad;
};

#define HOOKS_F_ENTRY_ONLY 0x1 /* its return is not recorded */
#define HOOKS_F_REGS 0x2       /* the stacks of its calls are recorded */
#define HOOKS_F_FOLDS 0x4      /* a call by the runtime is a part of the runtime's call */
#define HOOKS_F_MUTES 0x8      /* HOOKS_MUTE applies to it */
/* it is a function of the driver, or of the runtime's library: it gets a hook although there is no room
 * for others */
#define HOOKS_F_FIRST 0x10
struct hooks_func {
	__u64 address;
	__u32 cookie;  /* CT_COOKIE() | CT_COOKIE_OF() */
	__u32 flags;   /* HOOKS_F_* */
	__u32 size;    /* of the function in bytes; 0: not known */
	__u32 tensors; /* which of an operator's arguments are read: CT_TENSORS_*() */
	/* the function's first bytes in the file; nfile of them are valid */
	__u8 nfile;
	__u8 pad[7];
	__u8 file[16];
};

/* The result for each function of a list, in its order: enum hook_result (engine.h). If the results
 * have no room in one message, there are several. A message without functions is sent when `late`
 * has changed. */
#define HOOKS_NO_ROOM 1	  /* HOOK_NO_MEMORY: there is no room for more functions */
#define HOOKS_ZONE 10	  /* HOOK_ZONE: its jump would land in memory that is in use */
#define HOOKS_NO_WRITE 12 /* HOOK_NO_WRITE: no function of this process can be hooked */
#define HOOKS_PARTLY 13	  /* HOOK_PARTLY: hooked where other code calls it */
struct hooks_installed {
	struct meet_head h;
	__u32 n;
	__u32 on;   /* how many of these are hooked, including those with HOOKS_PARTLY */
	__u32 late; /* total number of functions that were refused first and hooked partly later */
	/* so long ago, in ms, a thread went on without an answer, before the hooks of this list were on; 0:
	 * none did */
	__u32 alone_ms;
	__s32 err[];
};

struct hooks_bye {
	struct meet_head h;
	__s32 err;
	__u32 kept; /* bytes of code that stay mapped in the process */
};

/* Of a forked child, with a socket that is connected to it. */
struct hooks_child {
	struct meet_head h;
	__u32 tid; /* the parent's thread that called fork(2), in the parent's pid namespace */
	__u32 pad;
	__u64 ns; /* CLOCK_MONOTONIC, in the child, right after the fork */
};

/* ---- the area ---- */

#define HOOKS_AREA_HEAD 4096
#define HOOKS_SCOPES_BYTES 6144
#define HOOKS_BLOCK_HEAD 16384

/*
 * Where a thread of the program, or a forked child, waits for the thread of the hooks, which has a descriptor
 * table of its own (listener.h). Both sides have an abstract address that the kernel chose; each writes its
 * own here, where nobody else can, so that each knows the other.
 */
#define HOOKS_LISTENERS 8
struct hooks_listener {
	__u32 state; /* enum listener_state */
	__u32 kind;  /* enum listener_kind */
	__u32 pid, tid;
	__u64 ns;
	__s32 err;
	__u32 pad;
	__u8 address[8], connector[8];
};

enum hooks_owner { HOOKS_FREE = 0, HOOKS_USED = 1 };

/* A call that is under way, and the data for its record. */
struct hooks_call {
	__u64 sp, ip;
	__u64 cookie;
	/* the engine's number of the call in its thread; 0: this struct is being filled */
	__u64 number;
	__u64 frame; /* address of the engine's frame of the call */
	__u64 cut_at;
	__u32 cut_len, cut_read;
	__u32 owed; /* the call must still be recorded or counted */
	__u32 len;  /* bytes used of data[] */
	__u8 spec_flags;
	__u8 frees; /* it is a call that frees freed_bytes, which do not count as held any more */
	__u8 pad[2];
	__u32 scope; /* with config.layers: the number of the innermost scope around it */
	__u64 freed_bytes;
	/* with CT_S_STACK: hook_kept_regs() at the entry; the call has preserved them at its return */
#if defined(__x86_64__)
	__u64 regs[6];
#else
	__u64 regs[11];
#endif
	struct ct_call rec;
	__u64 data[CT_DATA_MAX / 8]; /* continues rec.words */
};

struct hooks_thread {
	/* written only by the thread */
	__u64 head; /* number of bytes of the ring that were ever used */
	__u64 lost; /* records that did not fit */
	__u64 folded, filtered, deep;
	__u32 tid;
	__u32 depth;
	__u64 forgets;
	__u32 renames; /* the process's number of renames when the thread's name was last sent */
	__u32 cells;   /* number of cells that the thread has taken */
	/* the next cell of the thread's chunk, and the chunk's end << 32 */
	__u64 chunk;
	__u64 no_cell;	  /* calls for which there was no cell */
	__u64 lists;	  /* address of the thread's lists in the process */
	__u64 unfinished; /* counted calls that did not return */
	__u64 no_stack;	  /* calls whose stack is missing */
	/* number of scopes for which there was no room, and of ends of scopes whose begin was not
	 * seen */
	__u64 scopes_dropped, scopes_unbegun;
	__u64 left; /* calls whose recording a signal handler left by a jump */
	/* written only by the user side */
	__u64 tail; /* number of bytes that were ever read */
	__u64 pad2[15];
	__u32 owner; /* enum hooks_owner: taken by a thread, freed by the user side */
	__u32 pad3[15];
	/* calls that were only counted, by the function's number; calls inside other calls are in
	 * the second array. The last element counts calls from code in hooks_mute.within */
	__u64 muted[HOOKS_MUTED + 1], muted_inside[HOOKS_MUTED + 1];
	struct hooks_call calls[CT_MAX_FRAMES];
	__u32 more_used, pad4;
	__u64 more[(sizeof(struct ct_more) + CT_MORE_PIECE) / 8]; /* a piece that is being made */
	__u64 scopes[HOOKS_SCOPES_BYTES / 8]; /* the thread's open scopes, for itself alone */
};

struct hooks_area {
	__u32 phase;	/* enum ct_phase, from the user side */
	__u32 inner;	/* the driver's launches inside other calls are recorded */
	__u32 blocks;	/* how many blocks, from the first on, have ever been taken */
	__u32 count_by; /* enum ct_by, from the user side: for CT_BY_ASKED */
	__u64 no_block; /* calls of threads for which there was no block */
	/* from the user side: nanoseconds in a tick of the clock, << 32 */
	__u64 tick_ns;
	__u64 too_deep;	      /* calls that were nested deeper than the engine's frames */
	__u64 scopes_dropped; /* the same for functions of layers */
	__u64 interrupted; /* functions whose hooks were off for a time, because of another tracer */
	__u64 left;  /* calls for which there was no frame, because too many calls were left */
	__u32 cells; /* how many cells, from the first on, have ever been taken */
	__u32 pad2[15];
	/* 0, or when (as a record has times) the object found that its connection was gone, and took the hooks
	 * off; and when a child of vfork(2), which has its parent's memory, made a call the first time */
	__u64 gone, in_vfork;
	__u64 pad3[6];
	/* a futex, which is changed when there is something to do for the thread of the hooks: by the program's
	 * threads, and by the user side after each message */
	__u32 bell;
	__u32 listeners_closed;
	__u32 pad4[14];
	struct hooks_listener listeners[HOOKS_LISTENERS];
};

/* Additional data of a cell: for a key of CT_BY_SIZE the sizes, otherwise the durations. */
union hooks_extra {
	struct ct_hist hist;
	struct ct_sizes sizes;
};

/* Returns the bytes of an entry: tag and record. */
static inline __u64 hooks_entry_bytes(__u64 record)
{
	return 8 + ((record + 7) & ~7ULL);
}

/* Returns a number that memory rarely contains by chance; it is different for each place. */
static inline __u64 hooks_tag(__u64 at)
{
	return (at + 0x9e3779b97f4a7c15ULL) * 0xbf58476d1ce4e5b9ULL;
}
static inline __u64 hooks_skip(__u64 at)
{
	return ~hooks_tag(at);
}

static inline size_t hooks_block_bytes(__u32 ring_bytes)
{
	return HOOKS_BLOCK_HEAD + (size_t)ring_bytes;
}
static inline size_t hooks_blocks_end(__u32 threads, __u32 ring_bytes)
{
	return HOOKS_AREA_HEAD + threads * hooks_block_bytes(ring_bytes);
}
static inline size_t hooks_area_bytes(__u32 threads, __u32 ring_bytes, __u32 cells)
{
	size_t each = sizeof(struct ct_entry) + sizeof(union hooks_extra);

	return hooks_blocks_end(threads, ring_bytes) +
	       (cells ? threads * HOOKS_LISTS * sizeof(__u64) + cells * each : 0);
}
/* Return the lists of block i, and the first cell. Only for an area with cells. */
static inline __u64 *hooks_lists(void *area, __u32 i, __u32 threads, __u32 ring_bytes)
{
	return (__u64 *)((char *)area + hooks_blocks_end(threads, ring_bytes)) +
	       (size_t)i * HOOKS_LISTS;
}
static inline struct ct_entry *hooks_cells(void *area, __u32 threads, __u32 ring_bytes)
{
	return (struct ct_entry *)hooks_lists(area, threads, threads, ring_bytes);
}
static inline union hooks_extra *hooks_extras(struct ct_entry *cells, __u32 n)
{
	return (union hooks_extra *)(cells + n);
}
static inline struct hooks_thread *hooks_block(void *area, __u32 i, __u32 ring_bytes)
{
	return (struct hooks_thread *)((char *)area + HOOKS_AREA_HEAD +
				       i * hooks_block_bytes(ring_bytes));
}
static inline char *hooks_ring(struct hooks_thread *t)
{
	return (char *)t + HOOKS_BLOCK_HEAD;
}

/* Returns the size of a message's fixed part; 0: there is no such type. */
static inline size_t hooks_fixed(unsigned int type)
{
	switch (type) {
	case HOOKS_HELLO: return sizeof(struct hooks_hello);
	case HOOKS_INSTALLED: return sizeof(struct hooks_installed);
	case HOOKS_SAY: return sizeof(struct meet_say);
	case HOOKS_MAPPED: return sizeof(struct hooks_ask);
	case HOOKS_BYE: return sizeof(struct hooks_bye);
	case HOOKS_CHILD: return sizeof(struct hooks_child);
	case HOOKS_READ: return sizeof(struct hooks_ask);
	case HOOKS_LOOK: return sizeof(struct meet_head);
	case HOOKS_START: return sizeof(struct hooks_start);
	case HOOKS_SPECS: return sizeof(struct hooks_list);
	case HOOKS_FUNCS: return sizeof(struct hooks_list);
	case HOOKS_STOP: return sizeof(struct meet_head);
	case HOOKS_PYTHON: return sizeof(struct hooks_python);
	case HOOKS_MUTE: return sizeof(struct hooks_mute);
	case HOOKS_FILTERS: return sizeof(struct hooks_filters);
	default: return 0;
	}
}

/* Checks that the n received bytes are one complete message. Returns its type, or -1. */
static inline int hooks_msg_check(const void *msg, size_t n)
{
	struct hooks_installed installed;
	struct hooks_list l = { 0 };
	struct meet_say say;
	size_t rest = 0, entry = 0;
	int type = meet_msg_type(msg, n, hooks_fixed, &rest);

	switch (type) {
	case HOOKS_INSTALLED:
		memcpy(&installed, msg, sizeof(installed));
		l.n = installed.n;
		entry = sizeof(installed.err[0]);
		break;
	case HOOKS_SAY: memcpy(&say, msg, sizeof(say)); return say.len <= rest ? type : -1;
	case HOOKS_SPECS:
		memcpy(&l, msg, sizeof(l));
		entry = sizeof(struct hooks_spec);
		break;
	case HOOKS_FUNCS:
		memcpy(&l, msg, sizeof(l));
		entry = sizeof(struct hooks_func);
		break;
	}
	return rest == l.n * entry ? type : -1;
}

CT_ASSERT_SIZE(struct hooks_hello, 56);
CT_ASSERT_SIZE(struct hooks_start, 40 + sizeof(struct ct_config));
CT_ASSERT_SIZE(struct hooks_ask, 16);
CT_ASSERT_SIZE(struct hooks_list, 40);
CT_ASSERT_SIZE(struct hooks_spec, 96);
CT_ASSERT_SIZE(struct hooks_func, 48);
CT_ASSERT_SIZE(struct hooks_installed, 24);
CT_ASSERT_SIZE(struct hooks_bye, 16);
CT_ASSERT_SIZE(struct hooks_python, 88);
CT_ASSERT_SIZE(struct hooks_child, 24);
CT_ASSERT_SIZE(struct hooks_mute, 32);
CT_ASSERT_SIZE(struct hooks_filters, 16);
_Static_assert(sizeof(struct hooks_thread) <= HOOKS_BLOCK_HEAD, "a thread's block");
_Static_assert(offsetof(struct hooks_thread, tail) % 64 == 0, "a line of the cache of its own");
_Static_assert(offsetof(struct hooks_area, cells) == 64, "a line of the cache of its own");
_Static_assert(offsetof(struct hooks_area, bell) % 64 == 0, "a line of the cache of its own");
_Static_assert(sizeof(struct hooks_area) <= HOOKS_AREA_HEAD, "the area's head");

#endif
