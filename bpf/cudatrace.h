/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cudatrace.h - the wire contract: what the kernel side, the agent and the user side agree on.
 *
 * The only header that all three share. It includes nothing: each side defines the __uNN types
 * before it includes this file (vmlinux.h in *.bpf.c, <linux/types.h> elsewhere). Fixed-width
 * types only, every struct's size is asserted, every record's size is a multiple of 8. Record
 * kinds are append-only because they are stored on disk. Nothing here may be trusted on arrival:
 * a record's lengths are checked by record_check() (user/event) before anything else looks at
 * it.
 */
#ifndef CUDATRACE_H
#define CUDATRACE_H

#define CT_COMM_LEN 16

/* Limits of the in-kernel capture. CT_DATA_MAX bounds what one call's reads may take together. */
#define CT_MAX_WORDS 16	  /* argument words: registers first, then stack words */
#define CT_MAX_READS 6	  /* pieces of user memory read for one call */
#define CT_DATA_MAX 640	  /* bytes of words[] and reads of one record */
#define CT_READ_MAX 256	  /* bytes of one read */
#define CT_MAX_FRAMES 8	  /* probed calls in flight in one thread */
#define CT_MAX_FUNCS 8192 /* rows in the table of functions, a power of two */

enum ct_kind {
	CT_CALL = 1,  /* struct ct_call: a completed call (or one that never returned) */
	CT_ENTER = 2, /* struct ct_call: the entry of a call; ret is 0, end_ns is start_ns */
	/* struct ct_kernel: device work, as are the next four; from the agent, when it is done */
	CT_KERNEL = 3,
	CT_COPY = 4,  /* struct ct_copy */
	CT_SET = 5,   /* struct ct_set */
	CT_SYNC = 6,  /* struct ct_sync: a wait of the host or of a stream */
	CT_GRAPH = 7, /* struct ct_work: a graph as a whole */
	/* struct ct_overhead: what the driver or CUPTI did beside the program's work */
	CT_OVERHEAD = 8,
	/* struct ct_memory: device memory taken or given back, as the driver tells it */
	CT_MEMORY = 9,
	CT_MANAGED = 10, /* struct ct_managed: managed memory on the move */
	CT_MARKER = 11,	 /* struct ct_marker: an NVTX range or mark */
	CT_COUNTER = 12, /* struct ct_counter: a sample of some metrics of a device */
	CT_EVENT = 13,	 /* struct ct_event: something that befell a device, or a thread */
	CT_CLOCK = 14,	 /* struct ct_clock: the clocks, read together */
	CT_DEVICE = 15,	 /* struct ct_device: sent once, before the first record with it */
	CT_CONTEXT = 16, /* struct ct_context: likewise */
	CT_STREAM = 17,	 /* struct ct_stream: likewise */
	CT_NAME = 18,	 /* struct ct_name: before the first call that needs it */
	CT_STACK = 19,	 /* struct ct_stack: before the first call that has it */
	CT_PROCESS = 20, /* struct ct_process: sent once, before the process's first call */
	CT_EXEC = 21,	 /* struct ct_process: the same process id, a new program */
	CT_FORK = 22,	 /* struct ct_fork */
	CT_EXIT = 23,	 /* struct ct_exit: the last thread of a known process is gone */
	/* struct ct_hdr alone: process h.pid maps other files than before; never stored */
	CT_MAP = 24,
	CT_LOST = 25, /* struct ct_lost: made in user space of hdr.lost and of the counters */
	/* struct ct_more: the rest of a string that did not fit into a call's record, before
	 * that record */
	CT_MORE = 26,
	/* struct ct_user_stack: raw, before the record of the call that it belongs to; never
	 * stored */
	CT_USER_STACK = 27,
	/* struct ct_py_stack: raw, before the CT_USER_STACK that it belongs to; never stored */
	CT_PY_STACK = 28,
	/* struct ct_py_code: a code object, before the first CT_PY_STACK with it; never stored */
	CT_PY_CODE = 29,
	CT_FRAME = 30, /* struct ct_frame: before the first CT_STACK with it */
	/* struct ct_cause: a call that device work refers to by its correlation; ends in join,
	 * never stored */
	CT_CAUSE = 31,
	CT_METRIC = 32, /* struct ct_metric: sent once, before the first CT_COUNTER with it */
	/* struct ct_process_info: after the CT_PROCESS or CT_EXEC that it belongs to */
	CT_PROCESS_INFO = 33,
	/* struct ct_foreign: a stored call of a function that this version does not know; made
	 * by replay */
	CT_FOREIGN = 34,
	/* struct ct_tally: what calls added up to since the trace began, counted in the kernel;
	 * never stored */
	CT_TALLY = 35,
	CT_NUMBER = 36, /* struct ct_number: made by whoever writes a recording; ends in join */
	/* struct ct_tail: an agent is gone that had not given out all; ends in join, never
	 * stored */
	CT_TAIL = 37,
	/* struct ct_thread_name: before the first call of a thread but the leader, and when a
	 * thread is renamed */
	CT_THREAD_NAME = 38,
	/* struct ct_muted: calls that were not recorded one by one, because there are so many of
	 * them */
	CT_MUTED = 39,
	/* struct ct_absent: memory that a read of the next call did not find; ends in resolve,
	 * never stored */
	CT_ABSENT = 40,
	/* struct ct_unprobed: a process had CUDA's code mapped before that code had its probes */
	CT_UNPROBED = 41,
	CT_KIND_END
};

/* hdr.flags of CT_CALL and CT_ENTER */
/* did not return: thread ended, exec'd, or jumped over it (longjmp, exception) */
#define CT_F_UNFINISHED 0x0001
#define CT_F_NO_RETURN 0x0002  /* entry only by choice: ret, end_ns and outputs are not known */
#define CT_F_PER_THREAD 0x0004 /* the _ptsz/_ptds twin: stream 0 is the per-thread default stream */
/* with CT_F_UNFINISHED: has not returned yet; the call's own record comes when it does */
#define CT_F_PENDING 0x0010
/* the record's last word is the id of its CT_STACK, put there by the resolve stage */
#define CT_F_STACK 0x0020
/* with CT_F_UNFINISHED: began before the trace: start, words and reads are not known (zero,
 * none) */
#define CT_F_BEFORE 0x0040
/* with CT_F_BEFORE: told from an address on the stack that no unwinder vouches for */
#define CT_F_BY_SCAN 0x0080
#define CT_F_HIDDEN 0x0008 /* captured for others (names, handles); not asked for by the user */

struct ct_hdr {
	__u16 size;  /* of the whole record, a multiple of 8 */
	__u16 kind;  /* enum ct_kind */
	__u16 flags; /* by kind */
	/* records that found no room in the ring since the previous one (saturates; the rest
	 * follows) */
	__u16 lost;
	__u32 pid;	/* thread group id in the initial pid namespace */
	__u32 tid;	/* thread id in the initial pid namespace */
	__u64 start_ns; /* CLOCK_MONOTONIC */
	__u64 end_ns;	/* equal to start_ns for an instant */
};

/*
 * A call. words[] holds nwords argument words as the ABI passes them: first the argument
 * registers (6 on x86-64, 8 on aarch64), then 8-byte words of the stack. After them come the
 * reads of the row's capture spec that succeeded, in the order of the spec: bit i of `got` says
 * that read i is there. A read of kind CT_READ_BYTES takes its length rounded up to 8. A
 * CT_READ_STR or CT_READ_ARRAY starts with a __u64 holding the number of bytes that follow
 * (before rounding); CT_STR_CUT is or'ed in when there was more.
 */
struct ct_call {
	struct ct_hdr h;
	/* row of the table of functions; meaningful within one run, files carry a dictionary */
	__u16 func;
	__u8 nwords;
	/* number of probed calls in the same thread around this one; 0: called by the program */
	__u8 depth;
	__u32 got;
	__s64 ret; /* the return register, unnarrowed */
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

/* The name of thread h.tid from here on. That of the thread group leader is the process's name
 * too, in place of ct_process.comm. */
struct ct_thread_name {
	struct ct_hdr h;
	char comm[CT_COMM_LEN]; /* NUL-terminated */
};

/* What a process is, as /proc tells; empty where it does not. */
struct ct_process_info {
	struct ct_hdr h;
	/* of RANK, WORLD_SIZE, LOCAL_RANK in its environment; CT_UNKNOWN: not there */
	__u32 rank, world_size, local_rank;
	/* in text[], one after the other; boot_len was padding, and zero, in 0.1.0 */
	__u16 exe_len, cmdline_len, container_len, pod_len, host_len, boot_len;
	/* the executable's path; arguments, a NUL between them; container's id; pod's uid; in
	 * merged files host, its boot id */
	char text[];
};

/* A call whose function is not known here, or is known with other arguments: what can be said of
 * it without its row. */
enum ct_foreign_why { CT_FOREIGN_UNKNOWN = 0, CT_FOREIGN_CHANGED = 1 };
struct ct_foreign {
	struct ct_hdr h; /* flags: as of the call */
	__s64 ret;
	__u16 kind; /* CT_CALL or CT_ENTER */
	__u8 nwords, depth;
	__u8 name_len, domain_len; /* behind words[], one after the other */
	__u8 why;		   /* enum ct_foreign_why */
	__u8 pad;
	__u64 words[];
};

/* So many calls of process h.pid were numbered before the next one: the files of one recorder
 * count on, and what lies between is not needed to know a call's number. */
struct ct_number {
	struct ct_hdr h;
	__u32 number;
	__u32 pad;
};

struct ct_fork {
	struct ct_hdr h;    /* pid, tid: the parent */
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
	CT_LOSS_RING = 0,    /* the ring buffer was full */
	CT_LOSS_DEPTH = 1,   /* more than CT_MAX_FRAMES probed calls in flight in one thread */
	CT_LOSS_STORAGE = 2, /* the kernel had no memory for a thread's in-flight store */
	/* no cookie and the address could not be attributed to a function (below 6.6) */
	CT_LOSS_FUNCTION = 3,
	CT_LOSS_READ = 4, /* a record arrived malformed and was dropped */
	/* a return without an entry: the call began before the attach, or in a parent before
	 * fork */
	CT_LOSS_ORPHAN = 5,
	/* a call's stack did not fit into the ring: the call was shown without */
	CT_LOSS_STACK = 6,
	CT_LOSS_DEVICE = 7, /* device records that CUPTI dropped */
	/* records that the agent could not send: the socket was full, or its memory was */
	CT_LOSS_AGENT = 8,
	/* device records without a valid time (zero, or an end before the start) */
	CT_LOSS_TIME = 9,
	/* launches, copies and sets whose device record had not come when the process ended;
	 * counted by join */
	CT_LOSS_TAIL = 10,
	CT_LOSS_FILE = 11,  /* records of a recording that cannot be read: damaged, or cut off */
	CT_LOSS_TALLY = 12, /* calls that found no room among the kernel side's counts */
	CT_LOSS_END
};

struct ct_lost {
	struct ct_hdr h; /* start_ns..end_ns: between which two times */
	__u32 cause;	 /* enum ct_loss */
	__u32 cpu;	 /* ~0: not known */
	__u64 count;
};

/*
 * A process mapped a file of CUDA's for execution at h.start_ns, which had its probes at
 * h.end_ns only: calls that the process made in between were not seen. h.pid and h.tid are 0:
 * not even the process's begin was seen.
 */
struct ct_unprobed {
	struct ct_hdr h;
	__u32 ns_pid; /* in the tracer's pid namespace */
	/* 1; more where there was no room to tell of each; 0: an earlier record told of this
	 * one, for another file */
	__u32 processes;
	__u32 ended;		/* of these processes, had ended before the file had its probes */
	__u32 more;		/* 1: there may have been others, which are not known */
	char comm[CT_COMM_LEN]; /* NUL-terminated; empty: not known */
};

/* ---- names and stacks ---- */

/*
 * What a read of kind CT_READ_STR cut off: piece after piece, each before the record of its
 * call, which is the next record of that function in the same thread. The string is the read's
 * bytes (without the NUL) followed by the pieces in order of `offset`; a missing piece leaves it
 * cut. Sent only for rows with CT_S_WHOLE_NAME.
 */
#define CT_MORE_PIECE 1000 /* bytes of a piece at most */
#define CT_NAME_MAX 16384  /* bytes of a name at most; what is longer stays cut */
struct ct_more {
	struct ct_hdr h;
	__u16 func;
	__u8 read;    /* index of the read */
	__u8 last;    /* no more follows: the string ends here */
	__u32 offset; /* of the first byte in the whole string */
	__u32 len;    /* of bytes[], at most CT_MORE_PIECE */
	__u32 pad;
	char bytes[]; /* not NUL-terminated */
};

/*
 * Memory that a call's read did not find in the address space: the page was not resident, or
 * there is none. No program of ours waits for a page, because a program may hold up whoever
 * does. User space reads the file behind the mapping in its place. The record comes before that
 * of its call, as CT_MORE does, and describes the mapping at the moment of the read.
 */
/* a private mapping of a regular file, which no user serves through userfaultfd; the rest is
 * valid */
#define CT_ABSENT_FILE 0x01
/* some page of the mapping has been written to: it may differ from the file */
#define CT_ABSENT_WRITTEN 0x02
/* the mappings were being changed: they could not be looked at without waiting */
#define CT_ABSENT_BUSY 0x04
#define CT_ABSENT_OTHER 0x08 /* a mapping of another kind. No flag: there is none */
struct ct_absent {
	struct ct_hdr h;
	__u64 address;	/* of the first byte that is missing */
	__u64 offset;	/* of that byte in the file */
	__u64 left;	/* bytes of the mapping from there on */
	__u64 dev, ino; /* of the inode that is mapped; dev as in struct ct_vma */
	__u64 size;	/* of the file, bytes */
	/* with the next and size: tells what the file held then from what it holds later */
	__s64 ctime_sec;
	__u32 ctime_nsec;
	__u32 magic; /* of the file system (statfs.f_type) */
	__u16 func;
	__u8 read;  /* index of the read */
	__u8 flags; /* CT_ABSENT_* */
	__u32 pad;
};

/* How a kernel's name is known. Append-only. */
enum ct_name_source {
	CT_NAME_NONE = 0,
	/* the program registered or looked it up under this name while being traced */
	CT_NAME_REGISTERED = 1,
	/* symbol table of a mapped file: of a host stub, or of the variable that holds the
	 * handle */
	CT_NAME_SYMBOL = 2,
	/* read from the driver's own description of the function, in the process's memory */
	CT_NAME_DRIVER = 3,
	CT_NAME_INNER = 4,  /* that of the driver's launch inside this runtime launch */
	CT_NAME_FATBIN = 5, /* the only kernel in the process's device code */
	/* CUPTI's name of a kernel that ran; its handle has CT_HANDLE_DEVICE set */
	CT_NAME_DEVICE = 6,
	CT_NAME_END
};

/* A handle that the agent made up for a kernel's name: no address of user space has this bit. */
#define CT_HANDLE_DEVICE (1ULL << 63)

/* From h.start_ns on, `handle` names this kernel in process h.pid. No name (len 0): it names
 * nothing any more. */
struct ct_name {
	struct ct_hdr h;
	/* as calls pass it: the address of a host stub, cudaKernel_t, cudaFunction_t,
	 * CUfunction, CUkernel */
	__u64 handle;
	__u32 len;   /* of name[], at most CT_NAME_MAX */
	__u8 source; /* enum ct_name_source */
	__u8 cut;    /* the name is longer than that */
	__u8 pad[2];
	char name[]; /* as the compiler made it, mangled; not NUL-terminated; padded with zeros */
};

/*
 * The stack of the thread h.tid at its call that began at h.start_ns, as it was at that call's
 * return (or entry): from the caller's frame on. ip is the return address of the call, sp what
 * it is after the return, bp and regs the callee-saved registers. On the stack return addresses
 * that a pending return probe replaced are to be repaired: where the word at saved[i].sp is not
 * saved[i].ip, take the latter.
 */
#define CT_STACK_MAX 16384 /* bytes of user stack copied at most */
#define CT_ADDRESSES_MAX 127
struct ct_saved {
	__u64 sp; /* where the return address lies (aarch64: sp at entry) */
	__u64 ip; /* the return address */
};
enum ct_user_stack_how {
	CT_STACK_COPY = 0, /* len bytes of memory from sp on */
	/* len bytes: __u64 addresses, innermost first, the caller's own first (frame pointers) */
	CT_STACK_ADDRESSES = 1,
	/* nothing copied (len 0): the thread is still inside the call, its memory can be read */
	CT_STACK_LIVE = 2,
};
struct ct_user_stack {
	struct ct_hdr h;
	__u64 ip, sp, bp;
	__u64 regs[10]; /* x86-64: rbx, r12, r13, r14, r15, 0...; aarch64: x19 to x28 */
	__u32 len;
	__u8 how; /* enum ct_user_stack_how */
	__u8 nsaved;
	__u8 cut; /* the stack goes on beyond what was copied */
	__u8 pad;
	struct ct_saved saved[CT_MAX_FRAMES]; /* outermost first; nsaved of them */
	__u8 bytes[];
};

/* Python frames of the thread, innermost first, in pieces: a frame's position is first + its index. */
#define CT_PY_PIECE 64
#define CT_PY_MAX 1024 /* frames at most */
/* Each evaluation loop, which is one native frame of _PyEval_EvalFrameDefault, has exactly one
 * frame with CT_PY_ENTRY: its outermost. A loop that has left its last Python frame but not
 * returned has one with CT_PY_SHIM | CT_PY_ENTRY alone. */
/* called from C: the next frame belongs to the next outer evaluation loop */
#define CT_PY_ENTRY 0x1
#define CT_PY_SHIM 0x2 /* no Python code: code, check and instr are 0 */
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
	/* bytes of each in bytes[], in this order, each rounded up to 8 */
	__u16 name_len, file_len, table_len;
	__u8 name_kind, file_kind;
	char bytes[]; /* co_qualname, co_filename, co_linetable */
};

/* The check of a code object: of the words that end with co_linetable. They hold, on all
 * versions, the pointers to its names, co_filename, co_qualname and co_linetable and some
 * counts; from 3.12 on co_version too, which no other has. */
#define CT_PY_CHECK_WORDS 9
static inline __u64 ct_py_check(const __u64 *words)
{
	__u64 sum = 0;
	int i;

	for (i = 0; i < CT_PY_CHECK_WORDS; i++)
		sum = (sum ^ words[i]) * 0x9e3779b97f4a7c15ULL;
	return sum ^ sum >> 32;
}

/* A place in a program, sent once. Strings follow each other without NUL, in the order of their
 * lengths. */
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
	__u8 kind; /* enum ct_frame_kind */
	__u8 pad;
	/* function (as it is in the symbol table: mangled), source file, object's path */
	char strings[];
};

/* A stack: frames innermost first. */
#define CT_STACK_CUT 0x1    /* goes on beyond what was captured */
#define CT_STACK_BROKEN 0x2 /* the unwinder found no way further */
struct ct_stack {
	struct ct_hdr h; /* pid: the process that had it first */
	__u32 id;	 /* from 1 on, not reused within a trace */
	__u32 nframes;
	__u32 flags; /* CT_STACK_* */
	__u32 pad;
	__u32 frames[]; /* ids of CT_FRAME */
};

/* ---- what the device did ---- */

/*
 * The head of device work. h.pid is the process; start_ns and end_ns are the device's own, on
 * CLOCK_MONOTONIC. Numbers of devices, contexts and streams are CUPTI's, valid within the process;
 * CT_UNKNOWN where not known.
 *
 * The agent sends `correlation`; h.tid, call_ns, func and stack are 0 (func: CT_NO_FUNC) until
 * join has found the call that caused the work: then they are that call's, and stored so.
 */
#define CT_UNKNOWN (~0u)
#define CT_NO_FUNC 0xffff

/* hdr.flags of device work */
/* the cause was found by thread and time, because the correlation id is not to be trusted */
#define CT_F_INFERRED 0x0001
/* start_ns and end_ns are not the device's: it gave none that can be true */
#define CT_F_NO_TIME 0x0002

struct ct_work {
	struct ct_hdr h;
	__u32 device, context, stream;
	__u32 correlation; /* CUPTI's, of the call; 0: none */
	__u64 call_ns;	   /* start_ns of the call's record; 0: not known */
	__u64 graph_node;  /* 0: none */
	__u32 graph;	   /* 0: none */
	__u32 stack;	   /* id of the call's CT_STACK; 0: none */
	__u16 func;	   /* row of the call; CT_NO_FUNC: not known */
	__u16 channel;	   /* hardware queue; 0xffff: not known */
	__u32 pad;
};

enum ct_launch_type {
	CT_LAUNCH_REGULAR = 0,
	CT_LAUNCH_COOPERATIVE = 1,
	CT_LAUNCH_COOPERATIVE_MULTI = 2,
	CT_LAUNCH_CDP = 3
};
struct ct_kernel {
	struct ct_work w;
	__u64 name;			     /* handle of the CT_NAME that came before */
	__u64 queued_ns, submitted_ns;	     /* 0: not known */
	__u32 grid[3], block[3], cluster[3]; /* cluster 0: none */
	__u32 registers;		     /* for each thread */
	/* bytes for each block; executed: what the hardware was set to, or CT_UNKNOWN */
	__u32 static_shared, dynamic_shared, executed_shared;
	__u32 local_per_thread; /* bytes */
	__u64 local_total;	/* bytes */
	__u64 grid_id;
	__u8 launch; /* enum ct_launch_type */
	__u8 pad[7];
};

/* As CUPTI numbers them: CUpti_ActivityMemcpyKind, CUpti_ActivityMemoryKind. */
enum ct_copy_kind {
	CT_COPY_UNKNOWN = 0,
	CT_COPY_HTOD = 1,
	CT_COPY_DTOH = 2,
	CT_COPY_HTOA = 3,
	CT_COPY_ATOH = 4,
	CT_COPY_ATOA = 5,
	CT_COPY_ATOD = 6,
	CT_COPY_DTOA = 7,
	CT_COPY_DTOD = 8,
	CT_COPY_HTOH = 9,
	CT_COPY_PTOP = 10,
};
enum ct_memory_kind {
	CT_MEM_UNKNOWN = 0,
	CT_MEM_PAGEABLE = 1,
	CT_MEM_PINNED = 2,
	CT_MEM_DEVICE = 3,
	CT_MEM_ARRAY = 4,
	CT_MEM_MANAGED = 5,
	CT_MEM_DEVICE_STATIC = 6,
	CT_MEM_MANAGED_STATIC = 7,
};
#define CT_W_ASYNC 0x1 /* asked for by an asynchronous call */
struct ct_copy {
	struct ct_work w;
	__u64 bytes;
	/* w.device's own unless peer to peer */
	__u32 src_device, src_context, dst_device, dst_context;
	__u32 count;   /* copies that this record stands for (batched); 1 otherwise */
	__u8 kind;     /* enum ct_copy_kind */
	__u8 src, dst; /* enum ct_memory_kind */
	__u8 flags;    /* CT_W_* */
};

struct ct_set {
	struct ct_work w;
	__u64 bytes;
	__u32 value;
	__u8 memory; /* enum ct_memory_kind */
	__u8 flags;  /* CT_W_* */
	__u8 pad[2];
};

/* CUpti_ActivitySynchronizationType */
enum ct_sync_type {
	CT_SYNC_UNKNOWN = 0,
	CT_SYNC_EVENT = 1,
	CT_SYNC_STREAM_WAIT = 2,
	CT_SYNC_STREAM = 3,
	CT_SYNC_CONTEXT = 4
};
struct ct_sync {
	struct ct_work w;
	__u32 type;	  /* enum ct_sync_type */
	__u32 event;	  /* CUPTI's number of the event; CT_UNKNOWN: none */
	__u64 event_sync; /* which record of that event; 0: not known */
};

/* The head of what is not device work but speaks of a device. h.tid: the thread, where it is one's. */
struct ct_overhead {
	struct ct_hdr h;
	__u32 type;	   /* CUpti_ActivityOverheadKind */
	__u32 correlation; /* 0: none */
	__u32 device, context, stream;
	__u32 pad;
};

/* CUpti_ActivityMemoryOperationType */
enum ct_memory_op { CT_MEMORY_ALLOC = 1, CT_MEMORY_FREE = 2 };
struct ct_memory {
	struct ct_work w; /* an instant */
	__u64 address, bytes;
	__u64 pool;		     /* address of the memory pool; 0: none */
	__u64 pool_bytes, pool_used; /* of the pool then; 0: not known */
	__u8 op;		     /* enum ct_memory_op */
	__u8 memory;		     /* enum ct_memory_kind */
	__u8 pad[6];
};

struct ct_managed {
	struct ct_work w;
	__u64 address, value; /* bytes, faults, by kind */
	__u32 kind;	      /* CUpti_ActivityUnifiedMemoryCounterKind */
	__u32 src_device, dst_device;
	__u32 pad;
};

enum ct_marker_what { CT_MARKER_MARK = 0, CT_MARKER_PUSH_POP = 1, CT_MARKER_START_END = 2 };
struct ct_marker {
	struct ct_hdr h; /* of a range: from its begin to its end */
	__u32 id;
	__u32 color; /* ARGB; 0: none */
	__u32 category;
	__u16 text_len, domain_len; /* in text[], one after the other */
	__u8 what;		    /* enum ct_marker_what */
	__u8 pad[7];
	char text[];
};

/* A metric's meaning. Metrics are numbered from 1 on within a trace. */
struct ct_metric {
	struct ct_hdr h; /* pid 0 */
	__u32 id;
	__u16 name_len, unit_len; /* in text[]: "sm_active", "%" */
	__u32 source;		  /* enum ct_metric_source */
	__u32 pad;
	char text[];
};
enum ct_metric_source { CT_METRIC_PM = 1, CT_METRIC_GPM = 2, CT_METRIC_NVML = 3 };

/* Over start_ns..end_ns. A metric that could not be read is not among them. */
#define CT_VALUE_SUSPECT 0x1 /* cannot be true, as a share over 100 % */
struct ct_value {
	__u32 metric;
	__u32 flags; /* CT_VALUE_* */
	__u64 bits;  /* an IEEE 754 double's */
};
struct ct_counter {
	struct ct_hdr h; /* pid 0: the device as a whole */
	__u32 device;	 /* number of NVML's order: `gpu` of a CT_DEVICE with pid 0 */
	__u32 n;
	struct ct_value values[];
};

/* CUPTI gave up: code */
enum ct_event_type {
	CT_EVENT_XID = 1,
	CT_EVENT_ECC = 2,
	CT_EVENT_CLOCK = 3,
	CT_EVENT_TRUNCATED = 4,
	CT_EVENT_UNDECIDED =
		5 /* `stuck` cannot tell whether thread h.tid is inside a call; never stored */
};
struct ct_event {
	struct ct_hdr h;
	__u32 device; /* as struct ct_counter's; CT_UNKNOWN: none in particular */
	__u32 type;   /* enum ct_event_type */
	__u64 code;   /* an XID, a bitmap of reasons */
	__u32 text_len, pad;
	char text[];
};

struct ct_clock {
	struct ct_hdr h; /* start_ns: CLOCK_MONOTONIC; pid 0 */
	__u64 realtime_ns, boottime_ns;
	__u64 error_ns; /* how far apart the readings may lie */
};

/* A device as a process numbers it (pid not 0), or as the machine does (pid 0). The UUID joins
 * them. */
struct ct_device {
	struct ct_hdr h;
	__u32 id; /* CUDA's ordinal in the process; with pid 0 NVML's index */
	__u32 pad;
	__u8 uuid[16];		       /* all zero: not known */
	__u64 memory_bytes, bandwidth; /* bytes; bytes/s; 0: not known */
	__u32 major, minor;	       /* compute capability */
	__u32 multiprocessors, clock_khz;
	/* of a multiprocessor; 0: not known, as below */
	__u32 l2_bytes, max_threads, max_warps, max_blocks;
	__u32 max_registers, max_shared; /* of a multiprocessor */
	__u32 warp_size;
	__u32 name_len;
	char name[];
};

struct ct_context {
	struct ct_hdr h; /* CT_F_HIDDEN: was told before, without its handle */
	__u32 id, device, null_stream;
	__u32 parent; /* of a green context; CT_UNKNOWN: it is none */
	__u64 handle; /* CUcontext; 0: not known */
	__u32 api;    /* 1: CUDA (CUpti_ActivityComputeApiKind) */
	__u32 pad;
};

struct ct_stream {
	struct ct_hdr h;
	__u32 id, context;
	__u64 handle; /* as calls pass it; 0 with flags 3: the null stream; else 0: not known */
	__s32 priority;
	__u32 flags; /* CUpti_ActivityStreamFlag: 1 default, 2 non-blocking, 3 null */
};

/* A call with a correlation id, as CUPTI's own records or callbacks tell it: lies within the
 * call's own record. */
struct ct_cause {
	struct ct_hdr h;
	__u32 correlation;
	__u16 func; /* row; CT_NO_FUNC: not known */
	__u16 pad;
};

/* The process ended, or became another program, without its agent's having given out all: of
 * calls in that time some device records did not come. */
struct ct_tail {
	struct ct_hdr h; /* pid; start_ns..end_ns: when device records were made */
	__u32 kinds;	 /* of these kinds: bits 1 << enum ct_kind */
	__u32 pad;
};

/* ---- what user space tells the kernel side: not records, never on disk ---- */

enum ct_read_kind {
	CT_READ_BYTES = 1, /* len bytes */
	CT_READ_STR = 2,   /* NUL-terminated, at most len bytes with the NUL */
	CT_READ_ARRAY = 3, /* count * elem bytes, at most len */
};
enum ct_read_when { CT_AT_ENTRY = 1, CT_AT_RETURN = 2 };
/* in `from`: the low bits are the index of an earlier read of the same record */
#define CT_FROM_READ 0x80
#define CT_COUNT_NONE 0xff

/* One piece of user memory to read. Outputs (CT_AT_RETURN) are skipped when the call failed. */
struct ct_read {
	__u8 when; /* enum ct_read_when; all entry reads precede all return reads */
	__u8 kind; /* enum ct_read_kind */
	/* the word that holds the pointer, or CT_FROM_READ | index of a CT_READ_BYTES read */
	__u8 from;
	/* CT_READ_ARRAY: the word that holds the count (u32), or CT_FROM_READ | index */
	__u8 count_from;
	__u16 off; /* with CT_FROM_READ: offset of the pointer in those bytes */
	/* with CT_FROM_READ in count_from: offset of the u32 count in those bytes */
	__u16 count_off;
	__u16 len;  /* bytes, a multiple of 8 for CT_READ_BYTES is not required */
	__u16 elem; /* CT_READ_ARRAY: bytes per element */
};

/* spec.flags */
/* returns cudaError_t or CUresult: a non-zero low 32 bits is a failure */
#define CT_S_ERROR 0x01
#define CT_S_CALLBACK 0x02 /* calls the program back on the same thread: entry probe only */
#define CT_S_INTERNAL 0x04 /* does not fold the calls made inside it */
#define CT_S_ALWAYS 0x08   /* captured also inside another call (names, handles) */
#define CT_S_SHOWN 0x10	   /* asked for by the user; without it the record carries CT_F_HIDDEN */
/* cudaErrorNotReady / CUDA_ERROR_NOT_READY (600) is an answer, not a failure */
#define CT_S_NOT_READY 0x20
#define CT_S_MATCH_SIZE 0x40 /* size_word is the whole truth: the kernel may apply --min-size */
/* captured also inside another call while `want_inner` is set (the driver's launches) */
#define CT_S_INNER 0x80

/* spec.more */
#define CT_S_WHOLE_NAME 0x01 /* what a string read cuts off follows as CT_MORE */
#define CT_S_STACK 0x02	     /* with the user stack */
#define CT_S_FORGETS \
	0x04 /* unloads kernels: counted in `forgets` at its entry, so that a name read from the process's
			       memory is known to be no older than what was unloaded */
/* its entry tells everything: no return probe is put on it, as with CT_S_CALLBACK */
#define CT_S_ENTRY_ONLY 0x08
#define CT_S_COPIES 0x10 /* its size is what a copy moves */

struct ct_spec {
	__u8 nwords;	/* words to copy; <= CT_MAX_WORDS */
	__u8 nreads;	/* all reads */
	__u8 nentry;	/* how many of them at entry */
	__u8 flags;	/* CT_S_* */
	__u8 size_word; /* the word with the size in bytes; CT_COUNT_NONE: none */
	__u8 more;	/* CT_S_WHOLE_NAME and on */
	/* Where counting finds what it tells calls apart by, and what a launch asks for;
	 * CT_COUNT_NONE: not in a word. */
	__u8 kind_word; /* cudaMemcpyKind */
	__u8 stream_word;
	struct ct_read reads[CT_MAX_READS];
	__u8 func_word;	  /* the kernel's handle */
	__u8 grid_word;	  /* the first of the grid's and the block's sizes */
	__u8 grid_how;	  /* enum ct_grid */
	__u8 shared_word; /* dynamic shared memory, bytes */
	/* enum ct_memory_how; 0: its calls take and free nothing, or not what one word says the
	 * size of */
	__u8 memory_how;
	__u8 memory_word;  /* the address, or where it comes */
	__u8 memory_space; /* an address names something else in another one; never 0 */
	__u8 pad;
};
enum ct_grid {
	CT_GRID_DIM3 = 1, /* four words: x and y, z, of the grid, then of the block */
	CT_GRID_SIX = 2,  /* six words */
};

enum ct_memory_how {
	CT_MEMORY_TAKES_OUT = 1, /* size_word bytes; the address is an output, at *memory_word */
	CT_MEMORY_TAKES_IN = 2,	 /* likewise, at memory_word */
	CT_MEMORY_FREES = 3,	 /* memory_word */
};

/* The attach cookie of a probe: row | flags << 16 | generation << 32. Links that replace others
 * have a higher one. */
#define CT_COOKIE_GENERATION(g) ((__u64)(g) << 32)
#define CT_COOKIE(func, per_thread) ((__u64)(func) | ((per_thread) ? 1ULL << 16 : 0))
#define CT_COOKIE_FUNC(c) ((__u16)(c))
#define CT_COOKIE_PER_THREAD(c) (((c) >> 16) & 1)

/* What the programs do, as user space has it in the variable `phase`. */
enum ct_phase {
	/* probes are being put on: nothing, so that all functions begin to be seen at the same
	 * moment */
	CT_PHASE_OPENING = 0,
	CT_PHASE_RUNNING = 1,
	CT_PHASE_CLOSING = 2, /* no call is begun any more; those under way may still return */
	CT_PHASE_CLOSED = 3,  /* nothing: what has not returned is unfinished */
};

/* Which completed calls are wanted: an option sets a member, the plan and recordings' filter carry
 * it, the kernel side looks at it. Zero: no such filter. */
struct ct_filter {
	__u64 min_duration_ns, min_size_bytes;
	__u32 failed_only, pad;
};

/* What the run is about: read-only to the programs, so that the verifier drops what is not wanted. */
struct ct_config {
	__u8 filter_pids; /* only the processes in the map `pids` */
	__u8 follow;	  /* a child of a process in `pids` joins it */
	__u8 enter;	  /* CT_ENTER records too */
	__u8 nested;	  /* calls inside calls too */
	__u8 no_return;	  /* entry probes only */
	__u8 by_address;  /* no cookies: the function is found by its address */
	__u8 pad3[2];
	__u8 stop_on_map;    /* ct_dl_state sends SIGURG */
	__u8 stacks;	     /* some rows have CT_S_STACK */
	__u8 frame_pointers; /* stacks by bpf_get_stack */
	__u8 python;	     /* Python frames too, of the processes in the map `pythons` */
	/* calls are counted, not sent (those that name kernels are, as ever) */
	__u8 count;
	__u8 count_by; /* enum ct_by */
	__u8 hist;     /* histograms of durations too: enum ct_hist_by */
	__u8 sizes;    /* histograms of what launches and copies ask for */
	__u8 memory;   /* what calls free is known by what they took */
	/* ct_dl_state waits until what the process maps has been looked at */
	__u8 hold;
	/* functions may be counted in windows: the array `sampled` is looked at */
	__u8 samples;
	/* what processes ran last, and when they ended, is remembered: the map `images` */
	__u8 images;
	__u32 entries; /* that the map of that name has room for */
	struct ct_filter filter;
	__u64 cgroup_id; /* 0: off */
	__u32 ns_inum;	 /* the tracer's pid namespace */
	/* of `entries`, that one process may have for kinds told apart by `by`; 0: all */
	__u32 entries_each;
};

/* What the process with a pid (in the tracer's namespace) ran last: the map `images`. Times are
 * CLOCK_MONOTONIC. */
struct ct_image {
	__u64 since_ns; /* 0: it ran when the trace began, or was forked and ran nothing else */
	__u64 ended_ns; /* 0: runs */
	__u32 tgid;	/* initial namespace */
	__u32 outside;	/* of config.cgroup_id */
	char comm[CT_COMM_LEN];
};

/* What became of a process's threads at their loader's _dl_debug_state: the map `loads`, by
 * tgid. Times are CLOCK_MONOTONIC; 0: never. */
struct ct_load {
	__u64 pages;	  /* executable pages that were mapped the last time */
	__u64 waiting_ns; /* since when a thread waits; 0: none does */
	__u64 waited_ns;  /* when the last thread came that waited until it was answered */
	__u64 passed_ns;  /* when the last thread went on without an answer */
};

/* What the map `looks` carries: process ns_pid (the tracer's namespace; 0: not visible there)
 * has mapped something. */
struct ct_look {
	__u32 ns_pid;
	__u32 anew; /* it is another program, run by a thread that was not the first */
};

/*
 * Calls of a function of class query that was called so often that they were counted, in
 * windows, and not recorded one by one. All numbers are of the stretch h.start_ns..h.end_ns, and
 * those of several records of a process add up: an estimate that was too high is taken back by a
 * negative number.
 */
struct ct_estimated {
	__s64 calls;	    /* that nothing counted, as estimated */
	__s64 below, above; /* so much fewer or more they may be, at 95 % */
};
struct ct_muted {
	struct ct_hdr h;       /* pid; tid: one thread's alone, 0: the process's */
	__u64 counted, failed; /* in the windows, each */
	__u64 timed, ns; /* of those counted, the ones whose duration is known, and the sum of it */
	struct ct_estimated unseen;
	__u32 windows; /* in which calls were counted */
	/* of the function, in text[], one after the other: "runtime", "cudaGetDevice" */
	__u8 domain_len, name_len;
	__u8 pad[2];
	char text[];
};

/* ---- counting in the kernel: the maps `entries`, `tallies` and `hists` ---- */

enum ct_by {
	CT_BY_FUNCTION = 0,
	CT_BY_THREAD = 1,
	CT_BY_KERNEL = 2,
	CT_BY_STREAM = 3,
	CT_BY_CGROUP = 4,
	CT_BY_SIZE = 5,
	CT_BY_ASKED = 6, /* as the variable `count_by_now` says, which changes while it counts */
};
enum ct_hist_by {
	CT_HIST_NONE = 0,
	CT_HIST_BY_KEY = 1,
	CT_HIST_BY_FUNCTION = 2 /* of all processes together */
};

/*
 * Functions of class query that are called very often have their probes taken off, and put on
 * again for short windows in which their calls are counted and not sent: what user space writes
 * into the array `sampled`, for each function.
 */
enum ct_sampled {
	CT_SAMPLED_NO = 0,	/* each call is captured */
	CT_SAMPLED_OFF = 1,	/* no probes are wanted; what still hits one is passed over */
	CT_SAMPLED_COUNTED = 2, /* each call is counted in the map `entries` */
	/* Likewise, but it is called inside of functions whose probes were off until just now: a
	 * thread may be inside of such a call that no probe saw begin. Calls of a thread count
	 * once it is known not to be: after any call of it that is not INSIDE, or after so many
	 * calls that one outer call does not make them. */
	CT_SAMPLED_INSIDE = 3,
};
#define CT_UNSURE_MAX 16
/* Key of the map `progress`: how many calls of other functions a process has made since anything
 * is sampled. How much of what it did went by unseen is told from these. */
struct ct_progress_key {
	__u32 tgid, start; /* as in struct ct_tally_key */
};
#define CT_INSIDE_MAX 6 /* functions that are remembered as called inside of another one */
struct ct_inside {
	__u32 func; /* row + 1; 0: free */
	__u32 calls;
};
#define CT_SUB_KIND 0x0f   /* the copy's cudaMemcpyKind */
#define CT_SUB_STREAM 0x10 /* on a stream of the program's own making */

struct ct_tally_key {
	__u32 tgid;
	__u32 start; /* tells processes of the same number apart: from the start time */
	__u16 func;
	__u8 sub; /* CT_SUB_* */
	__u8 how; /* enum ct_by: what `by` is; never CT_BY_ASKED */
	__u8 pad[4];
	__u64 by; /* thread id, kernel's handle, stream's handle, cgroup id; 0; CT_BY_REST */
};
/* all of a process's that came after it had its share of the entries, together */
#define CT_BY_REST (~0ULL)
struct ct_sums {
	__u64 calls, failed;
	union {
		__u64 timed;   /* calls whose duration is known: the next four are theirs */
		__u64 untimed; /* in the map: calls whose duration is not known */
	};
	__u64 ns;
	union {
		__u64 min_ns;
		__u64 min_not; /* in the map: the complement of it */
	};
	__u64 max_ns;
	__u64 squares[2]; /* sum of ns * ns: low and high word */
	union {
		struct {
			/* of calls with a size in one word; of calls that free, of what is known to
			 * have been taken */
			__u64 bytes;
			union {
				__u64 threads; /* of launches */
				__u64 unsized; /* calls that free what is of unknown size */
				__u64 unheld; /* calls that take memory and found no room in `held` */
			};
		};
		__u64 asked[2]; /* CT_BY_SIZE: the sums of the two sizes */
	};
	union {
		__u64 shared;	    /* of launches: bytes of dynamic shared memory */
		__u64 unheld_bytes; /* of calls that take memory: not, or no more, in `held` */
	};
	__u64 hist; /* in the map: the place in `hists`, + 1; 0: none, and in records */
};
_Static_assert(sizeof(struct ct_sums) == 12 * 8, "recordings have it");

/*
 * Durations by size: 8 buckets an octave, so that a bucket's ends are 1/8 apart. Below 16 ns a
 * bucket for every 2 ns. Bucket b of the others holds (8 + b % 8) << (b / 8) ns and on; the last
 * one whatever is longer.
 */
#define CT_HIST_BUCKETS 288
static inline __u32 ct_hist_bucket(__u64 ns)
{
	__u32 shift = 0, b;
	__u64 v = ns;

	if (v >> 32) {
		shift += 32;
		v >>= 32;
	}
	if (v >> 16) {
		shift += 16;
		v >>= 16;
	}
	if (v >> 8) {
		shift += 8;
		v >>= 8;
	}
	if (v >> 4) {
		shift += 4;
		v >>= 4;
	}
	if (v >> 2) {
		shift += 2;
		v >>= 2;
	}
	shift += v >> 1; /* shift: position of the highest bit */
	if (shift < 4)
		return ns >> 1;
	b = (shift - 3) * 8 + (__u32)(ns >> (shift - 3) & 7);
	return b < CT_HIST_BUCKETS ? b : CT_HIST_BUCKETS - 1;
}
struct ct_hist {
	__u32 n[CT_HIST_BUCKETS]; /* saturates nowhere near: 4 thousand million calls */
};

/* What the map `entries` holds: all zero where it is free. Sums whose calls are 0 are being made. */
struct ct_entry {
	struct ct_tally_key key;
	struct ct_sums n;
	__u64 pad; /* two lines of the cache each */
};

#define CT_HISTS_MAX 8192 /* places in `hists`, a power of two */

/* Memory that was taken and not given back: key of the map `held`. The bytes taken less `shared`
 * less those freed are in it. */
struct ct_held_key {
	__u32 tgid, start; /* as in struct ct_tally_key */
	__u64 addr;	   /* its highest byte ^ the space */
};

/*
 * The map `sizes`: of a process's launches the blocks of the grid and the threads of a block, of
 * its copies the bytes. Bucket b counts what is over 2^(b-1) and not over 2^b, the first one 0
 * too, the last one whatever is more. Its key has `by` CT_OF_*, and of copies the function and
 * the direction in `sub`.
 */
#define CT_SIZE_BUCKETS 41
enum ct_of { CT_OF_LAUNCHES = 1, CT_OF_COPIES = 2 };
struct ct_sizes {
	__u64 sum[2];
	/* they wrap around: who reads often enough adds up what was added */
	__u32 n[2][CT_SIZE_BUCKETS];
	__u32 pad[2];
};

/*
 * What user space makes of an entry of the maps. CT_BY_SIZE: one of `sizes`, hist has both rows
 * of it, sums.bytes and sums.threads their sums, sums.calls is 0. Without a process: one of
 * `hists` by function alone. hdr.flags:
 */
#define CT_F_LAST 0x0001 /* the process has ended: nothing will be added */
struct ct_tally {
	struct ct_hdr h; /* pid; tid with CT_BY_THREAD; start_ns..end_ns: over which time */
	__u16 func;
	__u8 sub;
	__u8 how;    /* enum ct_by */
	__u32 start; /* with pid: which process, as in struct ct_tally_key */
	__u64 by;
	__u32 nbuckets; /* of hist[]; 0: there is none */
	__u32 pad;
	struct ct_sums sums;
	/* beside those in `sums`: of functions that are counted in windows */
	struct ct_estimated unseen;
	__u32 hist[];
};

/* Where a function's address belongs, for kernels without cookies: key of the map `by_offset`. */
struct ct_where {
	__u64 dev, ino, offset;
};

/*
 * Where CPython keeps what a walk of its frames needs, in bytes from the start of each struct:
 * value of the map `pythons`, by thread group id. From the interpreter's own _Py_DebugOffsets
 * where it has one (3.13), else from a table by version.
 */
#define CT_PY_NONE 0xffff
#define CT_PY_FRAME_BYTES 80 /* of a frame that are read; the frame_* offsets lie within */
struct ct_python {
	__u64 runtime; /* address of _PyRuntime in this process */
	__u32 version; /* Py_Version */
	/* never the same again for the same process id: what was sent under another one is
	 * forgotten */
	__u32 generation;
	__u16 runtime_interpreters_head;
	__u16 interp_next, interp_threads_head;
	__u16 thread_prev, thread_next, thread_interp, thread_native_id, thread_frame;
	/* 3.11, 3.12: thread_frame leads to a struct that has the frame here; CT_PY_NONE: to the
	 * frame */
	__u16 cframe_frame;
	__u16 frame_previous, frame_code, frame_instr, frame_owner;
	/* 3.11: byte that says that C called this frame; CT_PY_NONE: a shim lies below such a
	 * frame */
	__u16 frame_entry;
	/* value of frame_owner of the interpreter's own frames; CT_PY_NONE: there are none */
	__u16 owner_shim;
	__u16 code_check; /* of the CT_PY_CHECK_WORDS words */
	__u16 code_qualname, code_filename, code_first_line, code_linetable, code_instrs;
	/* PyASCIIObject, PyCompactUnicodeObject */
	__u16 str_state, str_length, str_ascii_data, str_compact_data;
	__u16 bytes_size, bytes_data;
	__u16 pad;
};

/* One task, as the iterator ct_tasks writes it. */
struct ct_task {
	__u32 tgid, tid;       /* initial namespace */
	__u32 ns_tgid, ns_tid; /* the tracer's; 0: not visible there */
	__u32 ppid;	       /* parent's tgid, initial namespace */
	__u16 ended;	       /* the process has no living thread: a zombie */
	__u16 signal_stack;    /* the thread has an alternate signal stack */
};

/* One thread that has user memory, as the iterator ct_threads writes it: where it is in its
 * program... */
struct ct_thread_head {
	__u32 tgid, tid;       /* initial namespace */
	__u32 ns_tgid, ns_tid; /* the tracer's; 0: not visible there */
	__u64 switches;	       /* how often it has been taken off a CPU */
	/* these and the next of the process, as struct ct_process has them */
	__u64 start_boottime_ns, cgroup_id;
	__u32 uid, gid, ppid;
	__u32 running; /* on a CPU, or 32-bit code: the registers are not known */
	char comm[CT_COMM_LEN];
	__u64 ip, sp, bp, lr; /* lr: aarch64 */
	__u64 regs[10];	      /* as in struct ct_user_stack */
};
/* ...and what probes have to do with that. */
struct ct_thread_probed {
	/* of the last call that a probe of ours saw begin, not inside another such; 0: none */
	__u64 begun_ns;
	/* the caller's stack pointer of that call, and of those under way inside it; 0: none */
	__u64 calls[CT_MAX_FRAMES];
	/* return addresses that anybody's return probe replaced, innermost first */
	struct ct_saved saved[CT_MAX_FRAMES];
	__u32 nsaved, pad;
};
struct ct_thread {
	struct ct_thread_head h;
	struct ct_thread_probed p;
};

/* One executable mapping of a file, as the iterator ct_maps writes it. */
struct ct_vma {
	/* thread group: initial namespace; the tracer's (0: not visible there) */
	__u32 pid, ns_pid;
	__u64 dev, ino; /* of the real inode; dev as the kernel has it: major << 20 | minor */
	__u64 start, end, pgoff;
	__u32 magic; /* of the file system (statfs.f_type); 0: not known */
	__u32 pad;
};

/* What the kernel side counts, per CPU; user space adds up. */
struct ct_counters {
	__u64 folded;	  /* calls inside other calls, not reported */
	__u64 filtered;	  /* completed calls dropped by duration, size, failure or cgroup */
	__u64 unfinished; /* records sent with CT_F_UNFINISHED */
	/* CT_FORK, CT_EXEC, CT_EXIT and new names of threads that found no room in the ring;
	 * they are sent once */
	__u64 untold;
	__u64 beyond; /* calls that were counted as CT_BY_REST */
	__u64 lost[CT_LOSS_END];
};

#define CT_ASSERT_SIZE(type, n) _Static_assert(sizeof(type) == (n), "size of " #type)
CT_ASSERT_SIZE(struct ct_hdr, 32);
CT_ASSERT_SIZE(struct ct_call, 48);
CT_ASSERT_SIZE(struct ct_process, 80);
CT_ASSERT_SIZE(struct ct_thread_name, 48);
CT_ASSERT_SIZE(struct ct_process_info, 56);
CT_ASSERT_SIZE(struct ct_foreign, 48);
CT_ASSERT_SIZE(struct ct_number, 40);
CT_ASSERT_SIZE(struct ct_fork, 40);
CT_ASSERT_SIZE(struct ct_exit, 40);
CT_ASSERT_SIZE(struct ct_lost, 48);
CT_ASSERT_SIZE(struct ct_unprobed, 64);
CT_ASSERT_SIZE(struct ct_more, 48);
CT_ASSERT_SIZE(struct ct_absent, 104);
CT_ASSERT_SIZE(struct ct_name, 48);
CT_ASSERT_SIZE(struct ct_saved, 16);
CT_ASSERT_SIZE(struct ct_user_stack, 272);
CT_ASSERT_SIZE(struct ct_py_frame, 24);
CT_ASSERT_SIZE(struct ct_py_stack, 40);
CT_ASSERT_SIZE(struct ct_py_code, 64);
CT_ASSERT_SIZE(struct ct_frame, 64);
CT_ASSERT_SIZE(struct ct_stack, 48);
CT_ASSERT_SIZE(struct ct_work, 80);
CT_ASSERT_SIZE(struct ct_kernel, 184);
CT_ASSERT_SIZE(struct ct_copy, 112);
CT_ASSERT_SIZE(struct ct_set, 96);
CT_ASSERT_SIZE(struct ct_sync, 96);
CT_ASSERT_SIZE(struct ct_overhead, 56);
CT_ASSERT_SIZE(struct ct_memory, 128);
CT_ASSERT_SIZE(struct ct_managed, 112);
CT_ASSERT_SIZE(struct ct_marker, 56);
CT_ASSERT_SIZE(struct ct_metric, 48);
CT_ASSERT_SIZE(struct ct_value, 16);
CT_ASSERT_SIZE(struct ct_counter, 40);
CT_ASSERT_SIZE(struct ct_event, 56);
CT_ASSERT_SIZE(struct ct_clock, 56);
CT_ASSERT_SIZE(struct ct_device, 120);
CT_ASSERT_SIZE(struct ct_context, 64);
CT_ASSERT_SIZE(struct ct_stream, 56);
CT_ASSERT_SIZE(struct ct_cause, 40);
CT_ASSERT_SIZE(struct ct_tail, 40);
CT_ASSERT_SIZE(struct ct_python, 72);
CT_ASSERT_SIZE(struct ct_read, 12);
CT_ASSERT_SIZE(struct ct_spec, 88);
CT_ASSERT_SIZE(struct ct_tally_key, 24);
CT_ASSERT_SIZE(struct ct_sums, 96);
CT_ASSERT_SIZE(struct ct_entry, 128);
CT_ASSERT_SIZE(struct ct_held_key, 16);
CT_ASSERT_SIZE(struct ct_sizes, 352);
CT_ASSERT_SIZE(struct ct_estimated, 24);
CT_ASSERT_SIZE(struct ct_muted, 96);
CT_ASSERT_SIZE(struct ct_tally, 176);
CT_ASSERT_SIZE(struct ct_filter, 24);
CT_ASSERT_SIZE(struct ct_config, 64);
CT_ASSERT_SIZE(struct ct_look, 8);
CT_ASSERT_SIZE(struct ct_image, 40);
CT_ASSERT_SIZE(struct ct_load, 32);
CT_ASSERT_SIZE(struct ct_progress_key, 8);
CT_ASSERT_SIZE(struct ct_where, 24);
CT_ASSERT_SIZE(struct ct_task, 24);
CT_ASSERT_SIZE(struct ct_thread_head, 184);
CT_ASSERT_SIZE(struct ct_thread_probed, 208);
CT_ASSERT_SIZE(struct ct_thread, 392);
CT_ASSERT_SIZE(struct ct_vma, 56);

#endif
