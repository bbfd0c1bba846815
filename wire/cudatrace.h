/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cudatrace.h - the wire contract: the records, as the kernel side, the agent and the user side make
 * and read them. What user space passes to the kernel side is in control.h.
 *
 * A *.bpf.c includes vmlinux.h, which defines the __uNN types, before this file. Fixed-width types only, every struct's size is asserted, every
 * record's size is a multiple of 8. Record kinds are append-only because they are stored on disk. A
 * record that arrives is not trusted: record_check() (user/event) checks its lengths before any other
 * code reads it.
 */
#ifndef CUDATRACE_H
#define CUDATRACE_H

#ifndef __bpf__
#include <linux/types.h>
#endif

#define CT_COMM_LEN 16

/* Limits of the in-kernel capture. CT_DATA_MAX bounds what one call's reads may take together. */
#define CT_MAX_WORDS 16	  /* argument words: registers first, then stack words */
#define CT_LAYER_WORDS 24 /* the same of functions of layers, which have more arguments */
#define CT_MAX_READS 6	  /* pieces of user memory read for one call */
#define CT_DATA_MAX 640	  /* bytes of words[] and reads of one record */
#define CT_PLAN_MAX \
	624 /* what a function's words and reads may take: the words for the scope and for the stack follow */
#define CT_READ_MAX 256	  /* bytes of one read */
#define CT_MAX_FRAMES 8	  /* probed calls in flight in one thread */
#define CT_MAX_FUNCS 8192 /* rows in the table of functions, a power of two */

enum ct_kind {
	CT_CALL = 1,  /* struct ct_call: a completed call (or one that never returned) */
	CT_ENTER = 2, /* struct ct_call: the entry of a call; ret is 0, end_ns is start_ns */
	/* struct ct_kernel. This kind and the next four are device work; the agent sends them when
	 * the work is done */
	CT_KERNEL = 3,
	CT_COPY = 4,  /* struct ct_copy */
	CT_SET = 5,   /* struct ct_set */
	CT_SYNC = 6,  /* struct ct_sync: a wait of the host or of a stream */
	CT_GRAPH = 7, /* struct ct_work: a graph as a whole */
	/* struct ct_overhead: time that the driver or CUPTI used in addition to the program's
	 * work */
	CT_OVERHEAD = 8,
	/* struct ct_memory: device memory allocated or freed, as the driver reports it */
	CT_MEMORY = 9,
	CT_MANAGED = 10, /* struct ct_managed: managed memory that was moved */
	CT_MARKER = 11,	 /* struct ct_marker: an NVTX range or mark */
	CT_COUNTER = 12, /* struct ct_counter: a sample of some metrics of a device */
	CT_EVENT = 13,	 /* struct ct_event: something that happened to a device or to a thread */
	CT_CLOCK = 14,	 /* struct ct_clock: the clocks, read together */
	CT_DEVICE = 15,	 /* struct ct_device: sent once, before the first record with it */
	CT_CONTEXT = 16, /* struct ct_context: sent once, before the first record with it */
	CT_STREAM = 17,	 /* struct ct_stream: sent once, before the first record with it */
	CT_NAME = 18,	 /* struct ct_name: before the first call that needs it */
	CT_STACK = 19,	 /* struct ct_stack: before the first call that has it */
	CT_PROCESS = 20, /* struct ct_process: sent once, before the process's first call */
	CT_EXEC = 21,	 /* struct ct_process: the same process id, a new program */
	CT_FORK = 22,	 /* struct ct_fork */
	CT_EXIT = 23,	 /* struct ct_exit: the last thread of a known process has ended */
	/* only a struct ct_hdr: the mapped files of process h.pid have changed; never stored */
	CT_MAP = 24,
	CT_LOST = 25, /* struct ct_lost: made in user space from hdr.lost and from the counters */
	/* struct ct_more: the rest of a string that did not fit into a call's record; comes before
	 * that record */
	CT_MORE = 26,
	/* struct ct_user_stack: not yet unwound; comes before the record of its call; never
	 * stored */
	CT_USER_STACK = 27,
	/* struct ct_py_stack: not yet resolved; comes before its CT_USER_STACK; never stored */
	CT_PY_STACK = 28,
	/* struct ct_py_code: a code object, before the first CT_PY_STACK with it; never stored */
	CT_PY_CODE = 29,
	CT_FRAME = 30, /* struct ct_frame: before the first CT_STACK with it */
	/* struct ct_cause: a call that device work refers to by its correlation id; the join stage
	 * consumes it, never stored */
	CT_CAUSE = 31,
	CT_METRIC = 32, /* struct ct_metric: sent once, before the first CT_COUNTER with it */
	/* struct ct_process_info: after the CT_PROCESS or CT_EXEC that it belongs to */
	CT_PROCESS_INFO = 33,
	/* struct ct_foreign: a stored call of a function that this version does not know; made
	 * by replay */
	CT_FOREIGN = 34,
	/* struct ct_call_count: the counters of calls since the trace began, kept in the kernel; never
	 * stored */
	CT_CALL_COUNT = 35,
	/* struct ct_number: made by the writer of a recording; the join stage consumes it */
	CT_NUMBER = 36,
	/* struct ct_tail: an agent ended before it had sent all its records; the join stage
	 * consumes it, never stored */
	CT_TAIL = 37,
	/* struct ct_thread_name: before the first call of a thread that is not the leader, and when
	 * a thread is renamed */
	CT_THREAD_NAME = 38,
	/* struct ct_muted: calls that were not recorded one by one, because there were too many */
	CT_MUTED = 39,
	/* struct ct_absent: memory that was not resident when the next call's read needed it; the
	 * resolve stage consumes it, never stored */
	CT_ABSENT = 40,
	/* struct ct_unprobed: a process had mapped CUDA's code before that code had its probes */
	CT_UNPROBED = 41,
	/* struct ct_scope: a scope begins; a definition while the scope is open */
	CT_SCOPE_BEGIN = 42,
	CT_SCOPE_END = 43, /* struct ct_scope: it has ended, or it is a mark */
	/* struct ct_call with CT_F_SCOPE: a call of a function of a layer, at its entry or at its
	 * return; the scopes stage consumes both, never stored */
	CT_LAYER_BEGIN = 44,
	CT_LAYER_END = 45,
	/* struct ct_node: a node of a CUDA graph was made; a definition */
	CT_NODE = 46,
	/* struct ct_hole: something was not seen, or was counted and not recorded; a definition */
	CT_HOLE = 47,
	/* struct ct_hdr: for so long an agent came into the process, inside a call of the thread: the
	 * time is none of the call's own */
	CT_ENTERED = 48,
	/* struct ct_host_segment: a thread was off the CPU, or was seen on it */
	CT_HOST_SEGMENT = 49,
	/* struct ct_signal: a signal that ends processes; for `watch` alone, never stored */
	CT_SIGNAL = 50,
	CT_KIND_END
};

/* hdr.flags of CT_CALL and CT_ENTER */
/* the call did not return: its thread ended, called exec, or jumped over it (longjmp, exception) */
#define CT_F_UNFINISHED 0x0001
/* only the entry was captured, on purpose: ret, end_ns and outputs are not known */
#define CT_F_NO_RETURN 0x0002
#define CT_F_PER_THREAD 0x0004 /* the _ptsz/_ptds twin: stream 0 is the per-thread default stream */
/* with CT_F_UNFINISHED: the call has not returned yet; its own record comes when it does */
#define CT_F_PENDING 0x0010
/* the record's last word is the id of its CT_STACK, put there by the resolve stage */
#define CT_F_STACK 0x0020
/* with CT_F_UNFINISHED: the call began before the trace, so its start is 0 and it has no words and
 * no reads */
#define CT_F_BEFORE 0x0040
/* with CT_F_BEFORE: the call was inferred from an address on the stack that no unwinder
 * confirmed */
#define CT_F_BY_SCAN 0x0080
/* captured for names and handles of other calls; the user did not ask for it */
#define CT_F_HIDDEN 0x0008
/* a word about scopes follows the reads. It is the last word, or the one before the stack's id */
#define CT_F_SCOPE 0x0100

struct ct_hdr {
	__u16 size;  /* of the whole record, a multiple of 8 */
	__u16 kind;  /* enum ct_kind */
	__u16 flags; /* by kind */
	/* records since the previous one that did not fit into the ring (saturates; the next
	 * records carry the rest) */
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
	/* number of probed calls of the same thread that this call is inside of; 0: the program
	 * made it */
	__u8 depth;
	__u32 got;
	__s64 ret; /* the whole return register, also if the return type is narrower */
	__u64 words[];
};
#define CT_STR_CUT (1ULL << 32)

/* The scopes that a thread has open are numbered by the source, from 1 on in each thread. The word
 * about scopes of CT_LAYER_BEGIN and CT_LAYER_END has the number of the scope that begins or ends in
 * its low half (0: none does), and that of the innermost scope around it in its high half. That of a
 * call has the innermost scope around it in its low half: by its number as the source sends it, and
 * from the scopes stage on, with CT_SCOPE_BY_ID in its high half, by its id. */
#define CT_SCOPE_BY_ID 1u
#define CT_SCOPE_NONE 0u     /* there is none */
#define CT_SCOPE_UNKNOWN ~0u /* there is one, but it is not known which */

/* Append-only. */
enum ct_scope_kind {
	CT_SCOPE_RANGE = 1,
	CT_SCOPE_MARK = 2,
	CT_SCOPE_COLLECTIVE =
		3, /* a call of a library for collectives, with struct ct_collective */
	CT_SCOPE_COMMUNICATOR = 4, /* the same: it makes, asks or destroys a communicator */
	CT_SCOPE_OPERATOR = 5,	   /* a call of a framework's operator, or of a node of its graph */
	CT_SCOPE_GEMM = 6,	   /* a call that multiplies matrices, with struct ct_gemm */
	CT_SCOPE_KIND_END
};
#define CT_SCOPE_CUT 0x1	/* the name is longer than what was read */
#define CT_SCOPE_UNNAMED 0x2	/* the name could not be read */
#define CT_SCOPE_UNFINISHED 0x4 /* its end was not seen: the trace, the thread or the call ended */
#define CT_SCOPE_ANY_THREAD 0x8 /* it belongs to no thread's stack of scopes: a start/end range */
#define CT_SCOPE_UNPAIRED 0x10	/* the start of a range whose end cannot be told from others */
/* NVTX's numbers. */
enum ct_payload {
	CT_PAYLOAD_NONE = 0,
	CT_PAYLOAD_U64 = 1,
	CT_PAYLOAD_I64 = 2,
	CT_PAYLOAD_DOUBLE = 3,
	CT_PAYLOAD_U32 = 4,
	CT_PAYLOAD_I32 = 5,
	CT_PAYLOAD_FLOAT = 6
};
struct ct_scope {
	struct ct_hdr h; /* CT_SCOPE_BEGIN: the begin alone. h.flags: CT_F_HIDDEN or 0 */
	__u32 id;	 /* from 1 on in each process, not reused within a trace */
	__u32 parent;	 /* id; CT_SCOPE_NONE; CT_SCOPE_UNKNOWN */
	__u32 category;
	__u32 color;   /* ARGB; 0: none */
	__u64 payload; /* its bits */
	/* of the texts in text[], which follow each other: the name; the program's own domain of
	 * names, "" if it is the default one; the name of the category; the layer: "nvtx" */
	__u16 text_len, domain_len, category_len, layer_len;
	__u8 kind;	   /* enum ct_scope_kind */
	__u8 flags;	   /* CT_SCOPE_CUT and on */
	__u8 depth;	   /* scopes of the thread that it is inside of */
	__u8 payload_type; /* enum ct_payload */
	__u16 fields_len;  /* behind the layer's: what a payload with a schema says, "a=1, b=2" */
	__u8 pad[2];
	char text[];
};
/* What ends the record of a scope that is a call of a library for collectives; its name is that of
 * the function. */
struct ct_collective {
	__u64 comm;   /* the communicator's handle; 0: none, or not known */
	__u64 count;  /* elements; with CT_COLLECTIVE_COUNT */
	__u64 bytes;  /* of these; 0: not known */
	__u64 stream; /* its handle; with CT_COLLECTIVE_COUNT */
	/* its number among the collectives of the communicator, from 1 on, which is the same at all
	 * ranks; 0: none, or not known */
	__u64 sequence;
	__u32 rank,
		ranks;	/* this process's in the communicator, and how many it has; or CT_UNKNOWN */
	__u32 datatype; /* the library's number; CT_UNKNOWN: none. So are those below */
	__u32 op;	/* of a reduction */
	__u32 root, peer;
	__s32 ret;  /* with CT_COLLECTIVE_RETURNED */
	__u8 how;   /* enum ct_collective_how */
	__u8 flags; /* CT_COLLECTIVE_COUNT and on */
	/* of the end of a group: calls in it; then `bytes` are those of all, and the record's
	 * fields name their functions */
	__u16 members;
	/* the communicator's, which is the same at all ranks and on all machines; 0: not known */
	__u64 hash;
};
#define CT_COLLECTIVE_COUNT 0x1
#define CT_COLLECTIVE_RETURNED 0x2
#define CT_COLLECTIVE_GROUPED 0x8 /* within a group, whose end launches it */
#define CT_COLLECTIVE_INNER 0x4	  /* inside another call of the library, which has its number */
/* What the bandwidth of a collective is computed from. */
enum ct_collective_how {
	CT_COLLECTIVE_OTHER = 0,  /* moves nothing */
	CT_COLLECTIVE_WHOLE = 1,  /* each rank has the same elements */
	CT_COLLECTIVE_PARTS = 2,  /* elements of each rank, or for each rank */
	CT_COLLECTIVE_ROOTED = 3, /* elements from or to one rank */
	CT_COLLECTIVE_PEER = 4,	  /* elements from a rank to another one */
};

/* What ends the record of a scope that is a call for products of matrices, D = A * B + C; its name is
 * that of the function. The numbers of types, of operations and of how it computes are cuBLAS'. */
struct ct_gemm {
	__u64 m, n, k;		      /* with CT_GEMM_SHAPE: D is m * n, and k is summed over */
	__u64 batch;		      /* products; in a group those of all its parts */
	__u64 flop;		      /* of all products; 0: not known */
	__u32 a_type, b_type, d_type; /* CT_UNKNOWN: not known. So are those below */
	__u32 compute;
	__u32 trans_a, trans_b;
	__s32 ret;    /* with CT_GEMM_RETURNED */
	__u32 groups; /* of products that differ in their shapes; 0: it is no such call */
	__u32 flags;  /* CT_GEMM_SHAPE and on */
	__u32 pad;
};
#define CT_GEMM_SHAPE 0x1
#define CT_GEMM_RETURNED 0x2
#define CT_GEMM_CONVOLUTION 0x4 /* it is a convolution, as products: one for each group */
#define CT_GEMM_NETWORK 0x8	/* of a library that computes other things than products too */

/* What follows the word of an operator's CT_LAYER_BEGIN: for each tensor that was read a word, rank |
 * type << 8 | number << 32, and as many sizes. Types are c10::ScalarType. */
#define CT_TENSOR_RANK_MAX 5
#define CT_TENSOR_SPECIAL 0xf0
#define CT_TENSOR_UNKNOWN 0xff /* as a rank */
#define CT_TENSOR_NONE 0xfe    /* an optional tensor that is not there */
/* `number` tensors; those of as many as `type` says follow, CT_TENSOR_EACH at most */
#define CT_TENSOR_LIST 0xfd
#define CT_TENSOR_EACH 4

struct ct_process {
	struct ct_hdr h;
	__u64 start_boottime_ns; /* with pid: identifies the process, since a pid alone is reused */
	__u64 cgroup_id;	 /* of cgroup v2; 0 if unknown */
	__u32 uid, gid;		 /* in the initial user namespace */
	__u32 ns_pid;		 /* the pid in the tracer's pid namespace; 0 if not visible there */
	__u32 ppid;		 /* in the initial pid namespace */
	char comm[CT_COMM_LEN];	 /* of the thread group leader; NUL-terminated */
};

/* The name of thread h.tid from h.start_ns on. The leader's name is also the name of the process,
 * and replaces ct_process.comm. */
struct ct_thread_name {
	struct ct_hdr h;
	char comm[CT_COMM_LEN]; /* NUL-terminated */
};

/* What /proc says about a process. A text that /proc does not have is empty. */
struct ct_process_info {
	struct ct_hdr h;
	/* from RANK, WORLD_SIZE, LOCAL_RANK in its environment; CT_UNKNOWN: not set */
	__u32 rank, world_size, local_rank;
	/* lengths of the texts in text[], which follow each other; in 0.1.0 boot_len was padding
	 * and zero */
	__u16 exe_len, cmdline_len, container_len, pod_len, host_len, boot_len;
	/* the executable's path; the arguments, separated by NUL; the container's id; the pod's
	 * uid; only in merged files: the host's name and its boot id */
	char text[];
};

/* A call whose function this version does not know, or knows with other arguments. Holds what is
 * known without the function's row. */
enum ct_foreign_why { CT_FOREIGN_UNKNOWN = 0, CT_FOREIGN_CHANGED = 1 };
struct ct_foreign {
	struct ct_hdr h; /* flags: those of the call */
	__s64 ret;
	__u16 kind; /* CT_CALL or CT_ENTER */
	__u8 nwords, depth;
	__u8 name_len, domain_len; /* lengths of the texts that follow words[] */
	__u8 why;		   /* enum ct_foreign_why */
	__u8 pad;
	__u64 words[];
};

/* The number of calls of process h.pid before the next one. The numbers continue through the files
 * of one recorder, so a call's number is known even if a file between is missing. */
struct ct_number {
	struct ct_hdr h;
	__u32 number;
	__u32 pad;
};

struct ct_fork {
	struct ct_hdr h;    /* pid and tid are the parent's */
	__u32 child_pid;    /* in the initial pid namespace */
	__u32 child_ns_pid; /* in the tracer's pid namespace; 0: not visible there */
};

struct ct_exit {
	struct ct_hdr h;
	__s32 status; /* as wait(2) returns it; -1: not known */
	__u32 pad;
};

/* Why a record is missing. Append-only. */
enum ct_loss {
	CT_LOSS_RING = 0,    /* the ring buffer was full */
	CT_LOSS_DEPTH = 1,   /* more than CT_MAX_FRAMES probed calls in flight in one thread */
	CT_LOSS_STORAGE = 2, /* the kernel had no memory to store a thread's calls in flight */
	/* the kernel has no cookies (below 6.6), and the address belongs to no known function */
	CT_LOSS_FUNCTION = 3,
	CT_LOSS_READ = 4, /* a record arrived malformed and was dropped */
	/* a return without an entry: the call began before the probes were attached, or in the
	 * parent before fork */
	CT_LOSS_ORPHAN = 5,
	/* a call's stack did not fit into the ring: the call was shown without its stack */
	CT_LOSS_STACK = 6,
	CT_LOSS_DEVICE = 7, /* device records that CUPTI dropped */
	/* records that the agent could not send: the socket or the agent's memory was full */
	CT_LOSS_AGENT = 8,
	/* device records without a valid time (zero, or an end before the start) */
	CT_LOSS_TIME = 9,
	/* launches, copies and sets whose device record had not come when the process ended;
	 * counted by join */
	CT_LOSS_TAIL = 10,
	/* records of a recording that cannot be read, because the file is damaged or cut off */
	CT_LOSS_FILE = 11,
	CT_LOSS_COUNTS = 12, /* calls for which the kernel side had no free counter */
	/* hooks: a signal handler left the code that recorded the call by siglongjmp() */
	CT_LOSS_LEFT = 13,
	CT_LOSS_END
};

struct ct_lost {
	struct ct_hdr h; /* start_ns..end_ns: the time in which they were lost */
	__u32 cause;	 /* enum ct_loss */
	__u32 cpu;	 /* ~0: not known */
	__u64 count;
};

/*
 * A process mapped one of CUDA's files for execution at h.start_ns, but the file had its probes
 * only at h.end_ns. Calls that the process made in between were not seen. h.pid and h.tid are 0,
 * because the start of the process was not seen either.
 */
struct ct_unprobed {
	struct ct_hdr h;
	__u32 ns_pid; /* in the tracer's pid namespace */
	/* 1; more than 1 if there was no room to report each process; 0: an earlier record reported
	 * this process, for another file */
	__u32 processes;
	/* how many of these processes had ended before the file had its probes */
	__u32 ended;
	__u32 more;		/* 1: there may have been other processes, which are not known */
	char comm[CT_COMM_LEN]; /* NUL-terminated; empty: not known */
};

/*
 * A row of the list of what was not seen. The row's key is the process, the thread, h.start_ns, the
 * layer, the state, the reason, the device and the text: a later record with the same key replaces
 * the row's end and number. A source sends it when something changes, never for a call.
 */
/* Which records are concerned. Append-only. */
enum ct_hole_layer {
	CT_HOLE_CALLS = 1,     /* calls of CUDA, and of the layers that --layers names */
	CT_HOLE_DEVICE = 2,    /* device work */
	CT_HOLE_SCOPES = 3,    /* ranges, operators, collectives, products */
	CT_HOLE_STACKS = 4,    /* stacks of calls that were recorded */
	CT_HOLE_PROCESSES = 5, /* begins, names and ends of processes */
	CT_HOLE_COUNTERS = 6,  /* hardware counters */
	CT_HOLE_HOST = 7,      /* what threads waited for */
	CT_HOLE_LAYER_END
};
/* What is known of it. Append-only. */
enum ct_hole_state {
	CT_HOLE_LOST = 1,    /* `count` records are missing */
	CT_HOLE_UNSEEN = 2,  /* records are missing, at least `count`; how many is not known */
	CT_HOLE_REFUSED = 3, /* the source cannot see `count` things (functions, files) */
	CT_HOLE_MUTED = 4,   /* `count` calls were counted or estimated, and not recorded */
	CT_HOLE_TAKEN = 5,   /* another tool, or the program itself, took over */
	CT_HOLE_STATE_END
};
/* Why: a row of user/event/holes.def each, which has the words. Append-only. */
enum ct_hole_reason {
	CT_HOLE_FILE_REFUSED = 1,   /* a file has no probes: its user's programs map too many */
	CT_HOLE_UNHOOKED = 2,	    /* functions have no hook */
	CT_HOLE_PARTLY_HOOKED = 3,  /* functions are seen only through the dynamic loader's slots */
	CT_HOLE_INTERRUPTED = 4,    /* another tracer's breakpoints took hooks away for a time */
	CT_HOLE_UNPROBED = 5,	    /* CUDA's code ran before it had its probes */
	CT_HOLE_RECORDS = 6,	    /* records were lost; the text is the name of enum ct_loss */
	CT_HOLE_SCOPES_DROPPED = 7, /* too many scopes were open at a time */
	CT_HOLE_UNREPORTED = 8,	 /* forks, execs and ends of processes found no room in the ring */
	CT_HOLE_NO_HOOKS = 9,	 /* a process uses CUDA and has no hooks */
	CT_HOLE_NO_AGENT = 10,	 /* a process gave work to a device and has no agent */
	CT_HOLE_PROFILER = 11,	 /* the program's own use of CUPTI: the agent has withdrawn */
	CT_HOLE_HOOKS_GONE = 12, /* the connection of the hooks was closed, or they were removed */
	CT_HOLE_SHARED_MEMORY = 13, /* a child that shares its parent's memory made calls */
	CT_HOLE_NO_RECORD = 14,	    /* launches, copies and sets without a device record */
	CT_HOLE_THROTTLED = 15,	    /* a function is called too often */
	CT_HOLE_QUEUED = 16,	    /* what had arrived and was not read before the end */
	CT_HOLE_KIND = 17,	    /* functions that this kind of probe leaves out */
	CT_HOLE_INDIRECT = 18,	    /* functions are indirect (IFUNC) */
	CT_HOLE_SHARED_CODE =
		19,		/* functions have another one's code, and its name in the output */
	CT_HOLE_NO_PLACE = 20,	/* processes found no place for their hooks or agent */
	CT_HOLE_UNWRITTEN = 21, /* records of a process whose file could not be made */
	CT_HOLE_STRIPPED =
		22, /* functions of a runtime without symbols were not found; the text is the file */
	CT_HOLE_LATE = 23, /* what was shown before the end could not wait for these records */
	CT_HOLE_AGENT_GONE = 24, /* the program closed the connection of its agent, and goes on */
	CT_HOLE_REASON_END
};
/* hdr.flags: the row as it is at the end, for outputs that show stretches of time: start_ns and
 * end_ns are within the trace. Made by the session, never stored. Outputs use either these or the others */
#define CT_F_FINAL 0x0001
#define CT_HOLE_TEXT_MAX 256
#define CT_HOLE_OPEN (~0ULL)
struct ct_hole {
	/* pid 0: it is not known of which process, or of all. tid 0: all threads; with pid 0, in a
	 * merged file, a number of the recorder. start_ns: from when; 0: not known. end_ns is start_ns */
	struct ct_hdr h;
	__u64 until_ns; /* CT_HOLE_OPEN: it goes on; 0: not known */
	__u64 count;	/* by state; 0: not known */
	/* the 95 % interval of the number reaches from count - below to count + above */
	__u64 below, above;
	__u32 device; /* CT_UNKNOWN: no single one */
	__u32 ns_pid; /* in the tracer's pid namespace; 0: as in CT_PROCESS */
	__u16 reason; /* enum ct_hole_reason */
	__u8 layer, state;
	__u16 text_len;
	__u8 pad[2];
	/* NUL-terminated; empty: as in CT_PROCESS. Untrusted, like the text */
	char comm[CT_COMM_LEN];
	char text[]; /* which file, which function; at most CT_HOLE_TEXT_MAX bytes */
};

/* ---- names and stacks ---- */

/*
 * The rest of a string that a read of kind CT_READ_STR cut off, in pieces. All pieces come before
 * the record of their call, which is the next record of that function in the same thread. The whole
 * string is the read's bytes (without the NUL), then the pieces in order of `offset`. If a piece is
 * missing the string stays cut. Sent only for rows with CT_S_WHOLE_NAME.
 */
#define CT_MORE_PIECE 1000 /* bytes of a piece at most */
#define CT_NAME_MAX 16384  /* bytes of a name at most; a longer name stays cut */
struct ct_more {
	struct ct_hdr h;
	__u16 func;
	__u8 read;    /* index of the read */
	__u8 last;    /* the last piece: the string ends here */
	__u32 offset; /* of the first byte in the whole string */
	__u32 len;    /* of bytes[], at most CT_MORE_PIECE */
	__u32 pad;
	char bytes[]; /* not NUL-terminated */
};

/*
 * Memory that a call's read could not get: the page was not resident, or nothing is mapped there.
 * Our BPF programs do not wait for a page, because the target could delay every program that waits for it.
 * User space reads the mapped file instead. The record comes before the record of its call, as
 * CT_MORE does, and describes the mapping at the moment of the read.
 */
/* a private mapping of a regular file, which no program serves through userfaultfd; the other
 * members are valid */
#define CT_ABSENT_FILE 0x01
/* a page of the mapping has been written to, so the memory may differ from the file */
#define CT_ABSENT_WRITTEN 0x02
/* the mappings were being changed, and could not be read without waiting */
#define CT_ABSENT_BUSY 0x04
/* a mapping of another kind. No flag at all: nothing is mapped there */
#define CT_ABSENT_OTHER 0x08
struct ct_absent {
	struct ct_hdr h;
	__u64 address;	/* of the first byte that is missing */
	__u64 offset;	/* of that byte in the file */
	__u64 left;	/* bytes from there to the end of the mapping */
	__u64 dev, ino; /* of the inode that is mapped; dev as in struct ct_vma */
	__u64 size;	/* of the file, bytes */
	/* this, ctime_nsec and size tell whether the file has changed since then */
	__s64 ctime_sec;
	__u32 ctime_nsec;
	__u32 magic; /* of the file system (statfs.f_type) */
	__u16 func;
	__u8 read;  /* index of the read */
	__u8 flags; /* CT_ABSENT_* */
	__u32 pad;
};

/* Where a kernel's name was found. Append-only. */
enum ct_name_source {
	CT_NAME_NONE = 0,
	/* the program registered it or looked it up under this name while it was traced */
	CT_NAME_REGISTERED = 1,
	/* from the symbol table of a mapped file: the symbol of a host stub, or of the variable
	 * that holds the handle */
	CT_NAME_SYMBOL = 2,
	/* read from the driver's own description of the function, in the process's memory */
	CT_NAME_DRIVER = 3,
	CT_NAME_INNER = 4,  /* the name of the driver's launch inside this runtime launch */
	CT_NAME_FATBIN = 5, /* the only kernel in the process's device code */
	/* CUPTI's name of a kernel that ran; its handle has CT_HANDLE_DEVICE set */
	CT_NAME_DEVICE = 6,
	CT_NAME_END
};

/* Set in a handle that the agent made for a kernel's name. No user-space address has this bit. */
#define CT_HANDLE_DEVICE (1ULL << 63)

/* From h.start_ns on, `handle` names this kernel in process h.pid. If len is 0, it names no kernel
 * from then on. */
struct ct_name {
	struct ct_hdr h;
	/* the value that calls pass: the address of a host stub, or a cudaKernel_t, cudaFunction_t,
	 * CUfunction or CUkernel */
	__u64 handle;
	__u32 len;   /* of name[], at most CT_NAME_MAX */
	__u8 source; /* enum ct_name_source */
	__u8 cut;    /* the name is longer than CT_NAME_MAX */
	__u8 pad[2];
	char name[]; /* as the compiler made it, mangled; not NUL-terminated; padded with zeros */
};

/*
 * The stack of thread h.tid at its call that began at h.start_ns, as it was when that call returned
 * (or was entered). It begins with the caller's frame. ip is the return address of the call, sp is
 * the stack pointer after the return, bp and regs are the callee-saved registers. A pending return
 * probe has replaced some return addresses on the stack. The reader repairs them: if the word at
 * saved[i].sp is not saved[i].ip, use saved[i].ip.
 */
#define CT_STACK_MAX 16384 /* bytes of user stack copied at most */
#define CT_ADDRESSES_MAX 127
struct ct_saved {
	__u64 sp; /* the address of the return address on the stack (aarch64: sp at entry) */
	__u64 ip; /* the return address */
};
enum ct_user_stack_how {
	CT_STACK_COPY = 0, /* len bytes of memory from sp on */
	/* len bytes of __u64 addresses found by frame pointers, innermost first; the first is the
	 * caller's */
	CT_STACK_ADDRESSES = 1,
	/* nothing was copied (len 0): the thread is still inside the call, so its memory can be
	 * read */
	CT_STACK_LIVE = 2,
};
struct ct_user_stack {
	struct ct_hdr h;
	__u64 ip, sp, bp;
	__u64 regs[10]; /* x86-64: rbx, r12, r13, r14, r15, 0...; aarch64: x19 to x28 */
	__u32 len;
	__u8 how; /* enum ct_user_stack_how */
	__u8 nsaved;
	__u8 cut; /* the stack is longer than what was copied */
	__u8 pad;
	struct ct_saved saved[CT_MAX_FRAMES]; /* outermost first; nsaved of them */
	__u8 bytes[];
};

/* Python frames of the thread, innermost first, in pieces. A frame's position is `first` + its
 * index. */
#define CT_PY_PIECE 64
#define CT_PY_MAX 1024 /* frames at most */
/* An evaluation loop is one native frame of _PyEval_EvalFrameDefault. Its outermost Python frame,
 * and no other, has CT_PY_ENTRY. A loop that has left its last Python frame but has not returned
 * has only one frame, with CT_PY_SHIM | CT_PY_ENTRY. */
/* called from C: the next frame belongs to the next outer evaluation loop */
#define CT_PY_ENTRY 0x1
#define CT_PY_SHIM 0x2 /* the frame has no Python code: code, check and instr are 0 */
struct ct_py_frame {
	__u64 code;  /* address of the code object */
	__u64 check; /* ct_py_check(): differs for another code object at the same address */
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

/* A code object's strings, as PyUnicode stores them. name_kind and file_kind are 0 for ASCII, else
 * 1, 2 or 4 bytes per character. */
#define CT_PY_NAME 256	  /* bytes of co_qualname at most; a longer one is cut */
#define CT_PY_FILE 512	  /* of co_filename */
#define CT_PY_TABLE 32768 /* of co_linetable; instructions after the cut have no line */
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

/* The checksum of a code object, over its CT_PY_CHECK_WORDS words that end with co_linetable. In
 * all versions these words hold the pointers to its names, co_filename, co_qualname and
 * co_linetable, and some counts; from 3.12 on also co_version, which is unique. */
#define CT_PY_CHECK_WORDS 9
static inline __u64 ct_py_check(const __u64 *words)
{
	__u64 sum = 0;
	int i;

	for (i = 0; i < CT_PY_CHECK_WORDS; i++)
		sum = (sum ^ words[i]) * 0x9e3779b97f4a7c15ULL;
	return sum ^ sum >> 32;
}

/* A place in a program, sent once. The strings follow each other without NUL, in the order of their
 * length members. */
enum ct_frame_kind {
	CT_FRAME_NATIVE = 0,
	/* a function that the compiler inlined into the next outer frame's function */
	CT_FRAME_INLINED = 1,
	CT_FRAME_PYTHON = 2,
	CT_FRAME_UNKNOWN = 3, /* only the address is known */
};
struct ct_frame {
	struct ct_hdr h; /* pid 0: valid for every process */
	__u32 id;	 /* from 1 on, not reused within a trace */
	__u32 line;	 /* 0: not known */
	/* in the object file as it was linked; if there is no object, in the process */
	__u64 address;
	__u64 offset; /* of the address in the function, bytes */
	__u16 function_len, file_len, object_len;
	__u8 kind; /* enum ct_frame_kind */
	__u8 pad;
	/* the function's name (mangled, as in the symbol table), the source file, the object's
	 * path */
	char strings[];
};

/* A stack: frames innermost first. */
#define CT_STACK_CUT 0x1    /* the stack has more frames than were captured */
#define CT_STACK_BROKEN 0x2 /* the unwinder could not continue */
struct ct_stack {
	struct ct_hdr h; /* pid: the first process that had it */
	__u32 id;	 /* from 1 on, not reused within a trace */
	__u32 nframes;
	__u32 flags; /* CT_STACK_* */
	__u32 pad;
	__u32 frames[]; /* ids of CT_FRAME */
};

/* ---- what threads did when they were in no call, or waited inside one ---- */

/* Append-only, both. */
enum ct_host_state {
	CT_HOST_BLOCKED =
		1, /* off the CPU from start_ns on, woken at wake_ns, on it again at end_ns */
	CT_HOST_READY = 2,     /* another one got the CPU */
	CT_HOST_THROTTLED = 3, /* its group has used up what it may (cpu.max) */
	CT_HOST_SAMPLED = 4,   /* it was on the CPU at this instant */
	CT_HOST_RUNNING = 5,   /* nothing but that it was on the CPU from run_ns to start_ns */
};
enum ct_host_reason {
	CT_HOST_OTHER = 0, /* a system call that is none of these */
	CT_HOST_FILE = 1,
	CT_HOST_PIPE = 2,
	CT_HOST_SOCKET = 3,
	CT_HOST_POLL = 4, /* several descriptors */
	CT_HOST_LOCK = 5, /* a futex: a mutex, a condition, a semaphore, the end of a thread */
	CT_HOST_GIL = 6,  /* Python's lock */
	CT_HOST_SLEEP = 7,
	CT_HOST_FAULT = 8,   /* a page that had to be read */
	CT_HOST_CHILD = 9,   /* the end of a process */
	CT_HOST_SYNC = 10,   /* fsync and the like */
	CT_HOST_DEVICE = 11, /* a device file: a driver, a terminal */
	/* of samples: */
	CT_HOST_USER = 12,     /* the program's own code */
	CT_HOST_SYSCALL = 13,  /* in the kernel, for a system call */
	CT_HOST_FAULTING = 14, /* in the kernel, for a page */
	CT_HOST_GC = 15,       /* Python collects garbage */
	CT_HOST_REASON_END
};
/* What ended a wait. */
enum ct_host_by {
	CT_HOST_BY_NOBODY = 0, /* not seen */
	CT_HOST_BY_THREAD = 1, /* other_tid of other_pid */
	CT_HOST_BY_INTERRUPT = 2,
	CT_HOST_BY_KERNEL = 3,
};
/* A thread is on the CPU from the end of one segment to the start of the next one, if run_ns of that is the
 * end of the first; else segments are missing between them. */
struct ct_host_segment {
	struct ct_hdr h;
	__u64 run_ns;	 /* since when the thread was on the CPU before start_ns */
	__u64 wake_ns;	 /* 0: it was not woken */
	__u64 folded_ns; /* short times off the CPU between run_ns and start_ns */
	__u32 folded;	 /* how many */
	__u32 stack;	 /* id; 0: none */
	/* who ended the wait; of CT_HOST_GIL who held it; of CT_HOST_READY who got the CPU; 0: not
	 * known */
	__u32 other_pid, other_tid;
	__u64 ino; /* of the file, with `magic` of its file system; of a lock its address */
	__u32 magic;
	__s32 syscall; /* negative: none */
	__u8 state;    /* enum ct_host_state */
	__u8 reason;   /* enum ct_host_reason */
	__u8 by;       /* enum ct_host_by */
	__u8 pad[5];
	char comm[CT_COMM_LEN];	 /* of the thread */
	char other[CT_COMM_LEN]; /* of other_tid */
	char object[24]; /* the file's name; NUL-terminated, untrusted bytes, like both others */
};

/* ---- signals that end processes ---- */

enum ct_signal_what {
	CT_SIGNAL_SENT = 1,   /* it was sent to the process or to a thread of it */
	CT_SIGNAL_THREAD = 2, /* a thread that it ends: registers and stack */
	CT_SIGNAL_EXIT = 3,   /* the process has ended: status */
};
enum ct_signal_by { CT_SIGNAL_BY_ITSELF = 1, CT_SIGNAL_BY_PROCESS = 2, CT_SIGNAL_BY_KERNEL = 3 };
#define CT_SIGNAL_STACK 16384
#define CT_SIGNAL_THREADS 128 /* of a process, that are sent */
struct ct_signal {
	struct ct_hdr h; /* pid and tid 0: it may be about a process that is not traced */
	__u64 begun_ns;	 /* of the process, CLOCK_MONOTONIC */
	__u64 address;	 /* CT_SIGNAL_SENT by the kernel: of a fault */
	__u32 tgid, tid; /* initial namespace */
	__u32 shown_tgid, shown_tid; /* ours; 0: not visible there */
	__u32 parent;		     /* tgid */
	__u32 sender, shown_sender;
	__s32 code;   /* si_code */
	__s32 status; /* CT_SIGNAL_EXIT: as wait(2) returns it */
	__u8 signal;
	__u8 what;		/* enum ct_signal_what */
	__u8 by;		/* enum ct_signal_by */
	__u8 handled;		/* CT_SIGNAL_SENT: the process has a handler for it */
	char comm[CT_COMM_LEN]; /* of the process, or of the thread; untrusted, as the next */
	char by_comm[CT_COMM_LEN];
	__u64 ip, sp, bp, lr;
	__u64 regs[10]; /* as in struct ct_user_stack */
	__u32 len, pad; /* of bytes[]: memory from sp on */
	__u8 bytes[];
};

/* ---- what the device did ---- */

/*
 * The head of device work. h.pid is the process; start_ns and end_ns are times of the device,
 * converted to CLOCK_MONOTONIC. Numbers of devices, contexts and streams are CUPTI's, valid within
 * the process; CT_UNKNOWN where not known.
 *
 * The agent sends `correlation`. h.tid, call_ns, func and stack are 0 (func: CT_NO_FUNC) until the
 * join stage finds the call that caused the work. Then they are set from that call, and stored with
 * these values.
 */
#define CT_UNKNOWN (~0u)
#define CT_NO_FUNC 0xffff

/* hdr.flags of device work */
/* the cause was found by thread and time, because the correlation id is not reliable */
#define CT_F_INFERRED 0x0001
/* start_ns and end_ns are not from the device, whose own times cannot be true */
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
	/* id of the innermost scope around the call; CT_SCOPE_NONE: none, or none was recorded;
	 * CT_SCOPE_UNKNOWN */
	__u32 scope;
};

/* A node of a graph, at the time and in the thread of the call that made it, which the join stage
 * adds. w.graph_node is its number. 0: none was made; the process's nodes are reported from then on. */
struct ct_node {
	struct ct_work w;
	__u64 origin; /* the number of the node of which it is a copy; 0: it is none */
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
	__u32 registers;		     /* per thread */
	/* bytes per block; executed_shared: the size that the hardware was set to, or CT_UNKNOWN */
	__u32 static_shared, dynamic_shared, executed_shared;
	__u32 local_per_thread; /* bytes */
	__u64 local_total;	/* bytes */
	__u64 grid_id;
	__u8 launch; /* enum ct_launch_type */
	__u8 pad[7];
};

/* The values are those of CUPTI's CUpti_ActivityMemcpyKind and CUpti_ActivityMemoryKind. */
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
#define CT_W_ASYNC 0x1 /* requested by an asynchronous call */
struct ct_copy {
	struct ct_work w;
	__u64 bytes;
	/* equal to w.device and w.context unless the copy is peer to peer */
	__u32 src_device, src_context, dst_device, dst_context;
	__u32 count;   /* number of copies in this record (a batch); 1 otherwise */
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

/* Not device work, but it concerns a device. h.tid is the thread, if it belongs to one. */
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
	__u64 pool_bytes, pool_used; /* of the pool at that time; 0: not known */
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
	struct ct_hdr h; /* start_ns..end_ns: a range's begin and end */
	__u32 id;
	__u32 color; /* ARGB; 0: none */
	__u32 category;
	__u16 text_len, domain_len; /* lengths of the texts in text[], which follow each other */
	__u8 what;		    /* enum ct_marker_what */
	__u8 pad[7];
	char text[];
};

/* What a metric is. Metrics are numbered from 1 on within a trace. */
struct ct_metric {
	struct ct_hdr h; /* pid 0 */
	__u32 id;
	__u16 name_len, unit_len; /* in text[]: "sm_active", "%" */
	__u32 source;		  /* enum ct_metric_source */
	__u32 pad;
	char text[];
};
enum ct_metric_source { CT_METRIC_PM = 1, CT_METRIC_GPM = 2, CT_METRIC_NVML = 3 };

/* The values of metrics over h.start_ns..h.end_ns. A metric that could not be read is left out. */
#define CT_VALUE_SUSPECT 0x1 /* the value cannot be true, for example a share over 100 % */
struct ct_value {
	__u32 metric;
	__u32 flags; /* CT_VALUE_* */
	__u64 bits;  /* the bits of an IEEE 754 double */
};
struct ct_counter {
	struct ct_hdr h; /* pid 0: the device as a whole */
	__u32 device;	 /* NVML's index: `id` of a CT_DEVICE with pid 0 */
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
	__u32 device; /* as in struct ct_counter; CT_UNKNOWN: no single device */
	__u32 type;   /* enum ct_event_type */
	__u64 code;   /* an XID, a bitmap of reasons */
	__u32 text_len, pad;
	char text[];
};

struct ct_clock {
	struct ct_hdr h; /* start_ns: CLOCK_MONOTONIC; pid 0 */
	__u64 realtime_ns, boottime_ns;
	__u64 error_ns; /* how far apart in time the readings may be */
};

/* A device, with its number in a process (pid not 0) or on the machine (pid 0). Both have the same
 * UUID. */
struct ct_device {
	struct ct_hdr h;
	__u32 id; /* CUDA's ordinal in the process; with pid 0 NVML's index */
	__u32 pad;
	__u8 uuid[16];		       /* all zero: not known */
	__u64 memory_bytes, bandwidth; /* bytes; bytes/s; 0: not known */
	__u32 major, minor;	       /* compute capability */
	__u32 multiprocessors, clock_khz;
	/* the maxima are per multiprocessor; 0: not known, also below */
	__u32 l2_bytes, max_threads, max_warps, max_blocks;
	__u32 max_registers, max_shared; /* per multiprocessor */
	__u32 warp_size;
	__u32 name_len;
	char name[];
};

struct ct_context {
	struct ct_hdr h; /* CT_F_HIDDEN: an earlier record reported it without its handle */
	__u32 id, device, null_stream;
	__u32 parent; /* the parent of a green context; CT_UNKNOWN: it is not a green context */
	__u64 handle; /* CUcontext; 0: not known */
	__u32 api;    /* 1: CUDA (CUpti_ActivityComputeApiKind) */
	__u32 pad;
};

struct ct_stream {
	struct ct_hdr h;
	__u32 id, context;
	/* the value that calls pass. 0: the null stream if flags is 3, else not known */
	__u64 handle;
	__s32 priority;
	__u32 flags; /* CUpti_ActivityStreamFlag: 1 default, 2 non-blocking, 3 null */
};

/* A call with a correlation id, as CUPTI's own records or callbacks report it. Its time lies within
 * the time of the call's own record. */
struct ct_cause {
	struct ct_hdr h;
	__u32 correlation;
	__u16 func; /* row; CT_NO_FUNC: not known */
	__u16 pad;
};

/* The process ended, or called exec, before its agent had sent all its records. Some device records
 * of calls in that time are missing. */
struct ct_tail {
	struct ct_hdr h; /* pid; start_ns..end_ns: the time in which device records were made */
	__u32 kinds;	 /* the kinds of these records: bits 1 << enum ct_kind */
	__u32 pad;
};

/*
 * Calls of a throttled or sampled function: they were counted in windows, and not recorded one by
 * one. All numbers are for the time h.start_ns..h.end_ns. The numbers of several records of a
 * process are to be added: a negative number corrects an earlier estimate that was too high.
 */
struct ct_estimated {
	__s64 calls;	    /* estimated number of calls that were not counted */
	__s64 below, above; /* the 95 % interval reaches from calls - below to calls + above */
};
struct ct_muted {
	struct ct_hdr h;       /* pid; tid: the calls of one thread, or 0: of the whole process */
	__u64 counted, failed; /* exact numbers, of calls in the windows */
	/* the counted calls whose duration is known, and the sum of these durations */
	__u64 timed, ns;
	struct ct_estimated unseen;
	__u32 windows; /* number of windows in which calls were counted */
	/* lengths of the function's domain and name in text[], which follow each other: "runtime",
	 * "cudaGetDevice" */
	__u8 domain_len, name_len;
	__u8 pad[2];
	char text[];
};

/* ---- calls that were counted, not recorded one by one ---- */

enum ct_by {
	CT_BY_FUNCTION = 0,
	CT_BY_THREAD = 1,
	CT_BY_KERNEL = 2,
	CT_BY_STREAM = 3,
	CT_BY_CGROUP = 4,
	CT_BY_SIZE = 5,
	/* the variable `count_by_now` says by what, and may change during the run */
	CT_BY_ASKED = 6,
};

#define CT_SUB_KIND 0x0f   /* the copy's cudaMemcpyKind */
#define CT_SUB_STREAM 0x10 /* on a stream that the program created */

/* A size that is this large, or larger, cannot be: 256 TiB is all that a process can address. A sum that has come
 * near its end takes no more. So no sum of a process wraps around, whatever the process says. */
#define CT_SIZE_MOST (1ULL << 48)
#define CT_SUM_MOST (1ULL << 60)

/* the sum of all keys of a process that came after it had used its share of the entries */
#define CT_BY_REST (~0ULL)
struct ct_sums {
	__u64 calls, failed;
	union {
		/* calls whose duration is known; ns, min_ns, max_ns and squares are of these */
		__u64 timed;
		__u64 untimed; /* in the map: calls whose duration is not known */
	};
	__u64 ns;
	union {
		__u64 min_ns;
		__u64 min_not; /* in the map: its complement */
	};
	__u64 max_ns;
	__u64 squares[2]; /* sum of ns * ns: low and high word */
	union {
		struct {
			/* the sizes of calls that have a size in one word; for calls that free, the
			 * size that was allocated, if known */
			__u64 bytes;
			union {
				__u64 threads; /* of launches */
				__u64 unsized; /* calls that free memory of unknown size */
				/* calls that allocate memory and did not fit into `held` */
				__u64 unheld;
			};
		};
		__u64 asked[2]; /* CT_BY_SIZE: the sums of the two sizes */
	};
	union {
		__u64 shared; /* of launches: bytes of dynamic shared memory */
		/* of calls that allocate memory: bytes that are not, or no longer, in `held` */
		__u64 unheld_bytes;
	};
	__u32 hist; /* in the map: index in `hists` + 1; 0: none. Always 0 in records */
	/* calls with a size that cannot be: it is in none of the sums of bytes and threads */
	__u32 odd;
};
_Static_assert(sizeof(struct ct_sums) == 12 * 8, "recordings have it");

/*
 * Histogram of durations, with 8 buckets per power of two: the upper end of a bucket is at most 1/8
 * above its lower end. Below 16 ns each bucket is 2 ns wide. Any other bucket b begins at (8 + b %
 * 8) << (b / 8) ns. The last bucket also holds everything longer.
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
	/* never saturates in practice: that takes 4 thousand million calls */
	__u32 n[CT_HIST_BUCKETS];
};

/*
 * Histograms of sizes, with CT_BY_SIZE. Of a process's launches (`by` is CT_OF_LAUNCHES): the blocks
 * of the grid and the threads of a block. Of its copies (CT_OF_COPIES): the bytes, for each function
 * and direction (`func`, `sub`). Bucket b counts sizes greater than 2^(b-1) and at most 2^b. The
 * first bucket also counts 0, the last one also everything larger.
 */
#define CT_SIZE_BUCKETS 41
enum ct_of { CT_OF_LAUNCHES = 1, CT_OF_COPIES = 2 };

/*
 * The record that user space makes from an entry of the maps. With CT_BY_SIZE it is made from
 * `sizes`: hist[] has both rows n[], sums.bytes and sums.threads have the two sums, and sums.calls
 * is 0. Without a process (pid 0) it is a histogram of `hists` for a function in all processes.
 * hdr.flags:
 */
#define CT_F_LAST 0x0001 /* the process has ended: its counters will not change */
struct ct_call_count {
	/* pid; tid with CT_BY_THREAD; start_ns..end_ns: the time that was counted */
	struct ct_hdr h;
	__u16 func;
	__u8 sub;
	__u8 how;    /* enum ct_by */
	__u32 start; /* identifies the process together with pid, as in struct ct_count_key */
	__u64 by;
	__u32 nbuckets; /* of hist[]; 0: there is none */
	__u32 pad;
	struct ct_sums sums;
	/* in addition to `sums`: estimated calls of functions that are counted in windows */
	struct ct_estimated unseen;
	__u32 hist[];
};

#define CT_ASSERT_SIZE(type, n) _Static_assert(sizeof(type) == (n), "size of " #type)
CT_ASSERT_SIZE(struct ct_hdr, 32);
CT_ASSERT_SIZE(struct ct_call, 48);
CT_ASSERT_SIZE(struct ct_scope, 72);
CT_ASSERT_SIZE(struct ct_collective, 80);
CT_ASSERT_SIZE(struct ct_gemm, 80);
CT_ASSERT_SIZE(struct ct_process, 80);
CT_ASSERT_SIZE(struct ct_thread_name, 48);
CT_ASSERT_SIZE(struct ct_process_info, 56);
CT_ASSERT_SIZE(struct ct_foreign, 48);
CT_ASSERT_SIZE(struct ct_number, 40);
CT_ASSERT_SIZE(struct ct_fork, 40);
CT_ASSERT_SIZE(struct ct_exit, 40);
CT_ASSERT_SIZE(struct ct_lost, 48);
CT_ASSERT_SIZE(struct ct_unprobed, 64);
CT_ASSERT_SIZE(struct ct_hole, 96);
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
CT_ASSERT_SIZE(struct ct_host_segment, 152);
CT_ASSERT_SIZE(struct ct_signal, 240);
CT_ASSERT_SIZE(struct ct_work, 80);
CT_ASSERT_SIZE(struct ct_node, 88);
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
CT_ASSERT_SIZE(struct ct_sums, 96);
CT_ASSERT_SIZE(struct ct_estimated, 24);
CT_ASSERT_SIZE(struct ct_muted, 96);
CT_ASSERT_SIZE(struct ct_call_count, 176);

#endif
