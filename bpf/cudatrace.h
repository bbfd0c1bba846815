/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cudatrace.h - the wire contract: what the kernel side, the agent and the user side agree on.
 *
 * The only header that all three share. It includes nothing: each side defines the __uNN types before it
 * includes this file (vmlinux.h in *.bpf.c, <linux/types.h> elsewhere). Fixed-width types only, every
 * struct's size is asserted, every record's size is a multiple of 8. Record kinds are append-only because
 * they are stored on disk. Nothing here may be trusted on arrival: a record's lengths are checked by
 * record_check() (user/event) before anything else looks at it.
 */
#ifndef CUDATRACE_H
#define CUDATRACE_H

#define CT_COMM_LEN 16

/* Limits of the in-kernel capture. CT_DATA_MAX bounds what one call's reads may take together. */
#define CT_MAX_WORDS 16   /* argument words: registers first, then stack words */
#define CT_MAX_READS 6    /* pieces of user memory read for one call */
#define CT_DATA_MAX 640   /* bytes of words[] and reads of one record */
#define CT_READ_MAX 256   /* bytes of one read */
#define CT_MAX_FRAMES 8   /* probed calls in flight in one thread */
#define CT_MAX_FUNCS 2048 /* rows in the table of functions */

enum ct_kind {
	CT_CALL = 1,	  /* struct ct_call: a completed call (or one that never returned) */
	CT_ENTER = 2,	  /* struct ct_call: the entry of a call; ret is 0, end_ns is start_ns */
	CT_KERNEL = 3,	  /* device work, from the agent */
	CT_COPY = 4,
	CT_SET = 5,
	CT_SYNC = 6,
	CT_GRAPH = 7,
	CT_OVERHEAD = 8,
	CT_MEMORY = 9,
	CT_MANAGED = 10,
	CT_MARKER = 11,
	CT_COUNTER = 12,
	CT_EVENT = 13,
	CT_CLOCK = 14,
	CT_DEVICE = 15,
	CT_CONTEXT = 16,
	CT_STREAM = 17,
	CT_NAME = 18,	  /* struct ct_name: before the first call that needs it */
	CT_STACK = 19,	  /* struct ct_stack: before the first call that has it */
	CT_PROCESS = 20,  /* struct ct_process: sent once, before the process's first call */
	CT_EXEC = 21,	  /* struct ct_process: the same process id, a new program */
	CT_FORK = 22,	  /* struct ct_fork */
	CT_EXIT = 23,	  /* struct ct_exit: the last thread of a known process is gone */
	CT_MAP = 24,	  /* struct ct_hdr alone: process h.pid maps other files than before; never stored */
	CT_LOST = 25,	  /* struct ct_lost: made in user space of hdr.lost and of the counters */
	CT_MORE = 26,	  /* struct ct_more: the rest of a string that did not fit into a call's record, before that record */
	CT_USER_STACK = 27, /* struct ct_user_stack: raw, before the record of the call that it belongs to; never stored */
	CT_PY_STACK = 28, /* struct ct_py_stack: raw, before the CT_USER_STACK that it belongs to; never stored */
	CT_PY_CODE = 29,  /* struct ct_py_code: a code object, before the first CT_PY_STACK with it; never stored */
	CT_FRAME = 30,	  /* struct ct_frame: before the first CT_STACK with it */
	CT_KIND_END
};

/* hdr.flags of CT_CALL and CT_ENTER */
#define CT_F_UNFINISHED 0x0001 /* did not return: thread ended, exec'd, or jumped over it (longjmp, exception) */
#define CT_F_NO_RETURN	0x0002 /* entry only by choice: ret, end_ns and outputs are not known */
#define CT_F_PER_THREAD 0x0004 /* the _ptsz/_ptds twin: stream 0 is the per-thread default stream */
#define CT_F_PENDING	0x0010 /* with CT_F_UNFINISHED: has not returned yet; the call's own record comes when it does */
#define CT_F_STACK	0x0020 /* the record's last word is the id of its CT_STACK, put there by the resolve stage */
#define CT_F_BEFORE	0x0040 /* with CT_F_UNFINISHED: began before the trace: start, words and reads are not known (zero, none) */
#define CT_F_BY_SCAN	0x0080 /* with CT_F_BEFORE: told from an address on the stack that no unwinder vouches for */
#define CT_F_HIDDEN	0x0008 /* captured for others (names, handles); not asked for by the user */

struct ct_hdr {
	__u16 size;   /* of the whole record, a multiple of 8 */
	__u16 kind;   /* enum ct_kind */
	__u16 flags;  /* by kind */
	__u16 lost;   /* records that found no room in the ring since the previous one (saturates; the rest follows) */
	__u32 pid;    /* thread group id in the initial pid namespace */
	__u32 tid;    /* thread id in the initial pid namespace */
	__u64 start_ns; /* CLOCK_MONOTONIC */
	__u64 end_ns;	/* equal to start_ns for an instant */
};

/*
 * A call. words[] holds nwords argument words as the ABI passes them: first the argument registers
 * (6 on x86-64, 8 on aarch64), then 8-byte words of the stack. After them come the reads of the row's
 * capture spec that succeeded, in the order of the spec: bit i of `got` says that read i is there. A read
 * of kind CT_READ_BYTES takes its length rounded up to 8. A CT_READ_STR or CT_READ_ARRAY starts with a
 * __u64 holding the number of bytes that follow (before rounding); CT_STR_CUT is or'ed in when there was more.
 */
struct ct_call {
	struct ct_hdr h;
	__u16 func;   /* row of the table of functions; meaningful within one run, files carry a dictionary */
	__u8 nwords;
	__u8 depth;   /* number of probed calls in the same thread around this one; 0: called by the program */
	__u32 got;
	__s64 ret;    /* the return register, unnarrowed */
	__u64 words[];
};
#define CT_STR_CUT (1ULL << 32)

struct ct_process {
	struct ct_hdr h;
	__u64 start_boottime_ns; /* with pid: identifies the process, since a pid alone is reused */
	__u64 cgroup_id;	 /* of cgroup v2; 0 if unknown */
	__u32 uid, gid;		 /* in the initial user namespace */
	__u32 ns_pid;		 /* the pid in the tracer's pid namespace; 0 if not visible there */
	__u32 ppid;		 /* in the initial pid namespace */
	char comm[CT_COMM_LEN];	 /* of the thread group leader; NUL-terminated */
};

struct ct_fork {
	struct ct_hdr h; /* pid, tid: the parent */
	__u32 child_pid;    /* initial namespace */
	__u32 child_ns_pid; /* the tracer's; 0: not visible there */
};

struct ct_exit {
	struct ct_hdr h;
	__s32 status; /* as wait(2) has it */
	__u32 pad;
};

/* Why a record is missing. Append-only. */
enum ct_loss {
	CT_LOSS_RING = 0,     /* the ring buffer was full */
	CT_LOSS_DEPTH = 1,    /* more than CT_MAX_FRAMES probed calls in flight in one thread */
	CT_LOSS_STORAGE = 2,  /* the kernel had no memory for a thread's in-flight store */
	CT_LOSS_FUNCTION = 3, /* no cookie and the address could not be attributed to a function (below 6.6) */
	CT_LOSS_READ = 4,     /* a record arrived malformed and was dropped */
	CT_LOSS_ORPHAN = 5,   /* a return without an entry: the call began before the attach, or in a parent before fork */
	CT_LOSS_STACK = 6,  /* a call's stack did not fit into the ring: the call was shown without */
	CT_LOSS_END
};

struct ct_lost {
	struct ct_hdr h; /* start_ns..end_ns: between which two times */
	__u32 cause;	 /* enum ct_loss */
	__u32 cpu;	 /* ~0: not known */
	__u64 count;
};

/* ---- names and stacks ------------------------------------------------------------------------------ */

/*
 * What a read of kind CT_READ_STR cut off: piece after piece, each before the record of its call, which is the next
 * record of that function in the same thread. The string is the read's bytes (without the NUL) followed by the pieces in
 * order of `offset`; a missing piece leaves it cut. Sent only for rows with CT_S_WHOLE_NAME.
 */
#define CT_MORE_PIECE 1000 /* bytes of a piece at most */
#define CT_NAME_MAX 16384  /* bytes of a name at most; what is longer stays cut */
struct ct_more {
	struct ct_hdr h;
	__u16 func;
	__u8 read;   /* index of the read */
	__u8 last;   /* no more follows: the string ends here */
	__u32 offset; /* of the first byte in the whole string */
	__u32 len;   /* of bytes[], at most CT_MORE_PIECE */
	__u32 pad;
	char bytes[]; /* not NUL-terminated */
};

/* How a kernel's name is known. Append-only. */
enum ct_name_source {
	CT_NAME_NONE = 0,
	CT_NAME_REGISTERED = 1, /* the program registered or looked it up under this name while being traced */
	CT_NAME_SYMBOL = 2,	/* symbol table of a mapped file: of a host stub, or of the variable that holds the handle */
	CT_NAME_DRIVER = 3,	/* read from the driver's own description of the function, in the process's memory */
	CT_NAME_INNER = 4,	/* that of the driver's launch inside this runtime launch */
	CT_NAME_FATBIN = 5,	/* the only kernel in the process's device code */
	CT_NAME_END
};

/* From h.start_ns on, `handle` names this kernel in process h.pid. No name (len 0): it names nothing any more. */
struct ct_name {
	struct ct_hdr h;
	__u64 handle; /* as calls pass it: the address of a host stub, cudaKernel_t, cudaFunction_t, CUfunction, CUkernel */
	__u32 len;    /* of name[], at most CT_NAME_MAX */
	__u8 source;  /* enum ct_name_source */
	__u8 cut;     /* the name is longer than that */
	__u8 pad[2];
	char name[];  /* as the compiler made it, mangled; not NUL-terminated; padded with zeros */
};

/*
 * The stack of the thread h.tid at its call that began at h.start_ns, as it was at that call's return (or entry): from
 * the caller's frame on. ip is the return address of the call, sp what it is after the return, bp and regs the
 * callee-saved registers. On the stack return addresses that a pending return probe replaced are to be repaired: where
 * the word at saved[i].sp is not saved[i].ip, take the latter.
 */
#define CT_STACK_MAX 16384 /* bytes of user stack copied at most */
#define CT_ADDRESSES_MAX 127
struct ct_saved {
	__u64 sp; /* where the return address lies (aarch64: sp at entry) */
	__u64 ip; /* the return address */
};
enum ct_user_stack_how {
	CT_STACK_COPY = 0,	/* len bytes of memory from sp on */
	CT_STACK_ADDRESSES = 1, /* len bytes: __u64 addresses, innermost first, the caller's own first (frame pointers) */
	CT_STACK_LIVE = 2,	/* nothing copied (len 0): the thread is still inside the call, its memory can be read */
};
struct ct_user_stack {
	struct ct_hdr h;
	__u64 ip, sp, bp;
	__u64 regs[10]; /* x86-64: rbx, r12, r13, r14, r15, 0...; aarch64: x19 to x28 */
	__u32 len;
	__u8 how;	/* enum ct_user_stack_how */
	__u8 nsaved;
	__u8 cut;	/* the stack goes on beyond what was copied */
	__u8 pad;
	struct ct_saved saved[CT_MAX_FRAMES]; /* outermost first; nsaved of them */
	__u8 bytes[];
};

/* Python frames of the thread, innermost first, in pieces: a frame's position is first + its index. */
#define CT_PY_PIECE 64
#define CT_PY_MAX 1024 /* frames at most */
/* Each evaluation loop, which is one native frame of _PyEval_EvalFrameDefault, has exactly one frame with CT_PY_ENTRY: its
 * outermost. A loop that has left its last Python frame but not returned has one with CT_PY_SHIM | CT_PY_ENTRY alone. */
#define CT_PY_ENTRY 0x1 /* called from C: the next frame belongs to the next outer evaluation loop */
#define CT_PY_SHIM 0x2	/* no Python code: code, check and instr are 0 */
struct ct_py_frame {
	__u64 code;  /* address of the code object */
	__u64 check; /* what tells it from another one at the same address */
	__u32 instr; /* offset in bytes of the current instruction from the first */
	__u32 flags; /* CT_PY_* */
};
struct ct_py_stack {
	struct ct_hdr h;
	__u16 first, n;
	__u8 last; /* the last piece */
	__u8 cut;  /* there were more than CT_PY_MAX, or one could not be read */
	__u8 pad[2];
	struct ct_py_frame frames[];
};

/* A code object's strings, as PyUnicode keeps them: `kind` 0: ASCII, 1, 2, 4: bytes a character. */
#define CT_PY_NAME 256	  /* bytes of co_qualname at most; what is longer is cut */
#define CT_PY_FILE 512	  /* of co_filename */
#define CT_PY_TABLE 32768 /* of co_linetable; instructions beyond have no line */
struct ct_py_code {
	struct ct_hdr h;
	__u64 code, check;
	__u32 first_line;
	__u32 version; /* of the interpreter: 0x030b00f0 and so on (Py_Version) */
	__u16 name_len, file_len, table_len; /* bytes of each in bytes[], in this order, each rounded up to 8 */
	__u8 name_kind, file_kind;
	char bytes[]; /* co_qualname, co_filename, co_linetable */
};

/* The check of a code object: of the words that end with co_linetable. They hold, on all versions, the pointers to its
 * names, co_filename, co_qualname and co_linetable and some counts; from 3.12 on co_version too, which no other has. */
#define CT_PY_CHECK_WORDS 9
static inline __u64 ct_py_check(const __u64 *words)
{
	__u64 sum = 0;
	int i;

	for (i = 0; i < CT_PY_CHECK_WORDS; i++)
		sum = (sum ^ words[i]) * 0x9e3779b97f4a7c15ULL;
	return sum ^ sum >> 32;
}

/* A place in a program, sent once. Strings follow each other without NUL, in the order of their lengths. */
enum ct_frame_kind {
	CT_FRAME_NATIVE = 0,
	CT_FRAME_INLINED = 1, /* a function that the compiler put into the next outer frame's */
	CT_FRAME_PYTHON = 2,
	CT_FRAME_UNKNOWN = 3, /* address is all that is known */
};
struct ct_frame {
	struct ct_hdr h; /* pid 0: true for every process */
	__u32 id;	 /* from 1 on, not reused within a trace */
	__u32 line;	 /* 0: not known */
	__u64 address;	 /* in the object as it was linked; without an object, in the process */
	__u64 offset;	 /* of the address in the function, bytes */
	__u16 function_len, file_len, object_len;
	__u8 kind;	 /* enum ct_frame_kind */
	__u8 pad;
	char strings[]; /* function (as it is in the symbol table: mangled), source file, object's path */
};

/* A stack: frames innermost first. */
#define CT_STACK_CUT 0x1	 /* goes on beyond what was captured */
#define CT_STACK_BROKEN 0x2	 /* the unwinder found no way further */
struct ct_stack {
	struct ct_hdr h; /* pid: the process that had it first */
	__u32 id;	 /* from 1 on, not reused within a trace */
	__u32 nframes;
	__u32 flags; /* CT_STACK_* */
	__u32 pad;
	__u32 frames[]; /* ids of CT_FRAME */
};

/* ---- what user space tells the kernel side: not records, never on disk ---------------------------- */

enum ct_read_kind {
	CT_READ_BYTES = 1, /* len bytes */
	CT_READ_STR = 2,   /* NUL-terminated, at most len bytes with the NUL */
	CT_READ_ARRAY = 3, /* count * elem bytes, at most len */
};
enum ct_read_when { CT_AT_ENTRY = 1, CT_AT_RETURN = 2 };
#define CT_FROM_READ 0x80 /* in `from`: the low bits are the index of an earlier read of the same record */
#define CT_COUNT_NONE 0xff

/* One piece of user memory to read. Outputs (CT_AT_RETURN) are skipped when the call failed. */
struct ct_read {
	__u8 when;	 /* enum ct_read_when; all entry reads precede all return reads */
	__u8 kind;	 /* enum ct_read_kind */
	__u8 from;	 /* the word that holds the pointer, or CT_FROM_READ | index of a CT_READ_BYTES read */
	__u8 count_from; /* CT_READ_ARRAY: the word that holds the count (u32), or CT_FROM_READ | index */
	__u16 off;	 /* with CT_FROM_READ: offset of the pointer in those bytes */
	__u16 count_off; /* with CT_FROM_READ in count_from: offset of the u32 count in those bytes */
	__u16 len;	 /* bytes, a multiple of 8 for CT_READ_BYTES is not required */
	__u16 elem;	 /* CT_READ_ARRAY: bytes per element */
};

/* spec.flags */
#define CT_S_ERROR	0x01 /* returns cudaError_t or CUresult: a non-zero low 32 bits is a failure */
#define CT_S_CALLBACK	0x02 /* calls the program back on the same thread: entry probe only */
#define CT_S_INTERNAL	0x04 /* does not fold the calls made inside it */
#define CT_S_ALWAYS	0x08 /* captured also inside another call (names, handles) */
#define CT_S_SHOWN	0x10 /* asked for by the user; without it the record carries CT_F_HIDDEN */
#define CT_S_NOT_READY	0x20 /* cudaErrorNotReady / CUDA_ERROR_NOT_READY (600) is an answer, not a failure */
#define CT_S_MATCH_SIZE 0x40 /* size_word is the whole truth: the kernel may apply --min-size */
#define CT_S_INNER	0x80 /* captured also inside another call while `want_inner` is set (the driver's launches) */

/* spec.more */
#define CT_S_WHOLE_NAME 0x01 /* what a string read cuts off follows as CT_MORE */
#define CT_S_STACK	0x02 /* with the user stack */
#define CT_S_FORGETS	0x04 /* unloads kernels: counted in `forgets` at its entry, so that a name read from the process's
			       memory is known to be no older than what was unloaded */
#define CT_S_ENTRY_ONLY 0x08 /* its entry tells everything: no return probe is put on it, as with CT_S_CALLBACK */

struct ct_spec {
	__u8 nwords;	/* words to copy; <= CT_MAX_WORDS */
	__u8 nreads;	/* all reads */
	__u8 nentry;	/* how many of them at entry */
	__u8 flags;	/* CT_S_* */
	__u8 size_word; /* the word with the size in bytes; CT_COUNT_NONE: none */
	__u8 more;	/* CT_S_WHOLE_NAME and on */
	__u8 pad[2];
	struct ct_read reads[CT_MAX_READS];
};

/* The attach cookie of a probe: row | flags << 16 | generation << 32. Links that replace others have a higher one. */
#define CT_COOKIE_GENERATION(g) ((__u64)(g) << 32)
#define CT_COOKIE(func, per_thread) ((__u64)(func) | ((per_thread) ? 1ULL << 16 : 0))
#define CT_COOKIE_FUNC(c) ((__u16)(c))
#define CT_COOKIE_PER_THREAD(c) (((c) >> 16) & 1)

/* What the run is about: read-only to the programs, so that the verifier drops what is not wanted. */
struct ct_config {
	__u8 filter_pids;	/* only the processes in the map `pids` */
	__u8 follow;		/* a child of a process in `pids` joins it */
	__u8 enter;		/* CT_ENTER records too */
	__u8 nested;		/* calls inside calls too */
	__u8 no_return;		/* entry probes only */
	__u8 failed_only;
	__u8 by_address;	/* no cookies: the function is found by its address */
	__u8 sleepable;		/* bpf_copy_from_user may be called */
	__u8 stop_on_map;	/* ct_dl_state sends SIGURG */
	__u8 stacks;		/* some rows have CT_S_STACK */
	__u8 frame_pointers;	/* stacks by bpf_get_stack */
	__u8 python;		/* Python frames too, of the processes in the map `pythons` */
	__u8 pad[4];
	__u64 min_duration_ns, min_size_bytes;
	__u64 cgroup_id;	/* 0: off */
	__u32 ns_inum; /* the tracer's pid namespace */
	__u32 pad2;
};

/* Where a function's address belongs, for kernels without cookies: key of the map `by_offset`. */
struct ct_where {
	__u64 dev, ino, offset;
};

/*
 * Where CPython keeps what a walk of its frames needs, in bytes from the start of each struct: value of the map `pythons`,
 * by thread group id. From the interpreter's own _Py_DebugOffsets where it has one (3.13), else from a table by version.
 */
#define CT_PY_NONE 0xffff
#define CT_PY_FRAME_BYTES 80 /* of a frame that are read; the frame_* offsets lie within */
struct ct_python {
	__u64 runtime; /* address of _PyRuntime in this process */
	__u32 version; /* Py_Version */
	__u32 generation; /* never the same again for the same process id: what was sent under another one is forgotten */
	__u16 runtime_interpreters_head;
	__u16 interp_next, interp_threads_head;
	__u16 thread_prev, thread_next, thread_interp, thread_native_id, thread_frame;
	__u16 cframe_frame; /* 3.11, 3.12: thread_frame leads to a struct that has the frame here; CT_PY_NONE: to the frame */
	__u16 frame_previous, frame_code, frame_instr, frame_owner;
	__u16 frame_entry; /* 3.11: byte that says that C called this frame; CT_PY_NONE: a shim lies below such a frame */
	__u16 owner_shim;  /* value of frame_owner of the interpreter's own frames; CT_PY_NONE: there are none */
	__u16 code_check;  /* of the CT_PY_CHECK_WORDS words */
	__u16 code_qualname, code_filename, code_first_line, code_linetable, code_instrs;
	__u16 str_state, str_length, str_ascii_data, str_compact_data; /* PyASCIIObject, PyCompactUnicodeObject */
	__u16 bytes_size, bytes_data;
	__u16 pad;
};

/* One task, as the iterator ct_tasks writes it. */
struct ct_task {
	__u32 tgid, tid;       /* initial namespace */
	__u32 ns_tgid, ns_tid; /* the tracer's; 0: not visible there */
	__u32 ppid;	       /* parent's tgid, initial namespace */
	__u32 ended;	       /* the process has no living thread: a zombie */
};

/* One thread that has user memory, as the iterator ct_threads writes it: where it is in its program... */
struct ct_thread_head {
	__u32 tgid, tid;       /* initial namespace */
	__u32 ns_tgid, ns_tid; /* the tracer's; 0: not visible there */
	__u64 switches;	       /* how often it has been taken off a CPU */
	__u64 start_boottime_ns, cgroup_id; /* these and the next of the process, as struct ct_process has them */
	__u32 uid, gid, ppid;
	__u32 running;	       /* on a CPU, or 32-bit code: the registers are not known */
	char comm[CT_COMM_LEN];
	__u64 ip, sp, bp, lr;  /* lr: aarch64 */
	__u64 regs[10];	       /* as in struct ct_user_stack */
};
/* ...and what probes have to do with that. */
struct ct_thread_probed {
	__u64 begun_ns;		      /* of the last call that a probe of ours saw begin, not inside another such; 0: none */
	__u64 calls[CT_MAX_FRAMES];   /* the caller's stack pointer of that call, and of those under way inside it; 0: none */
	struct ct_saved saved[CT_MAX_FRAMES]; /* return addresses that anybody's return probe replaced, innermost first */
	__u32 nsaved, pad;
};
struct ct_thread {
	struct ct_thread_head h;
	struct ct_thread_probed p;
};

/* One executable mapping of a file, as the iterator ct_maps writes it. */
struct ct_vma {
	__u32 pid, ns_pid; /* thread group: initial namespace; the tracer's (0: not visible there) */
	__u64 dev, ino;	   /* of the real inode; dev as the kernel has it: major << 20 | minor */
	__u64 start, end, pgoff;
};

/* What the kernel side counts, per CPU; user space adds up. */
struct ct_counters {
	__u64 folded;	/* calls inside other calls, not reported */
	__u64 filtered; /* completed calls dropped by duration, size, failure or cgroup */
	__u64 unfinished; /* records sent with CT_F_UNFINISHED */
	__u64 lost[CT_LOSS_END];
};

#define CT_ASSERT_SIZE(type, n) _Static_assert(sizeof(type) == (n), "size of " #type)
CT_ASSERT_SIZE(struct ct_hdr, 32);
CT_ASSERT_SIZE(struct ct_call, 48);
CT_ASSERT_SIZE(struct ct_process, 80);
CT_ASSERT_SIZE(struct ct_fork, 40);
CT_ASSERT_SIZE(struct ct_exit, 40);
CT_ASSERT_SIZE(struct ct_lost, 48);
CT_ASSERT_SIZE(struct ct_more, 48);
CT_ASSERT_SIZE(struct ct_name, 48);
CT_ASSERT_SIZE(struct ct_saved, 16);
CT_ASSERT_SIZE(struct ct_user_stack, 272);
CT_ASSERT_SIZE(struct ct_py_frame, 24);
CT_ASSERT_SIZE(struct ct_py_stack, 40);
CT_ASSERT_SIZE(struct ct_py_code, 64);
CT_ASSERT_SIZE(struct ct_frame, 64);
CT_ASSERT_SIZE(struct ct_stack, 48);
CT_ASSERT_SIZE(struct ct_python, 72);
CT_ASSERT_SIZE(struct ct_read, 12);
CT_ASSERT_SIZE(struct ct_spec, 80);
CT_ASSERT_SIZE(struct ct_config, 48);
CT_ASSERT_SIZE(struct ct_where, 24);
CT_ASSERT_SIZE(struct ct_task, 24);
CT_ASSERT_SIZE(struct ct_thread_head, 184);
CT_ASSERT_SIZE(struct ct_thread_probed, 208);
CT_ASSERT_SIZE(struct ct_thread, 392);
CT_ASSERT_SIZE(struct ct_vma, 48);

#endif
