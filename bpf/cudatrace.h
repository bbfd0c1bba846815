/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cudatrace.h - the wire contract: what the kernel side, the agent and the user side agree on.
 *
 * The only header that all three share. It includes nothing: each side defines the __uNN types
 * before it includes this file (vmlinux.h in *.bpf.c, <linux/types.h> elsewhere). Fixed-width types
 * only, every struct's size is asserted, every record's size is a multiple of 8. Record kinds are
 * append-only because they are stored on disk. A record that arrives is not trusted: record_check()
 * (user/event) checks its lengths before any other code reads it.
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
	/* struct ct_tally: the counters of calls since the trace began, kept in the kernel; never
	 * stored */
	CT_TALLY = 35,
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
	__u8 pad[2];
	/* the communicator's, which is the same at all ranks and on all machines; 0: not known */
	__u64 hash;
};
#define CT_COLLECTIVE_COUNT 0x1
#define CT_COLLECTIVE_RETURNED 0x2
#define CT_COLLECTIVE_INNER 0x4 /* inside another call of the library, which has its number */
/* What the bandwidth of a collective is computed from. */
enum ct_collective_how {
	CT_COLLECTIVE_OTHER = 0,  /* moves nothing */
	CT_COLLECTIVE_WHOLE = 1,  /* each rank has the same elements */
	CT_COLLECTIVE_PARTS = 2,  /* elements of each rank, or for each rank */
	CT_COLLECTIVE_ROOTED = 3, /* elements from or to one rank */
	CT_COLLECTIVE_PEER = 4,	  /* elements from a rank to another one */
};

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
	CT_LOSS_TALLY = 12, /* calls for which the kernel side had no free counter */
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
 * Our BPF programs do not wait for a page, because the target could delay whoever waits for it.
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

/* ---- what user space passes to the kernel side: not records, never on disk ---- */

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
	/* index of the word that holds the pointer, or CT_FROM_READ | index of a CT_READ_BYTES
	 * read */
	__u8 from;
	/* CT_READ_ARRAY: the word that holds the count (u32), or CT_FROM_READ | index */
	__u8 count_from;
	__u16 off; /* with CT_FROM_READ: offset of the pointer in those bytes */
	/* with CT_FROM_READ in count_from: offset of the u32 count in those bytes */
	__u16 count_off;
	__u16 len;  /* bytes; need not be a multiple of 8, also for CT_READ_BYTES */
	__u16 elem; /* CT_READ_ARRAY: bytes per element */
};

/* spec.flags */
/* it returns cudaError_t or CUresult: if the low 32 bits are not zero, the call failed */
#define CT_S_ERROR 0x01
/* it may call a function of the program on the same thread: entry probe only */
#define CT_S_CALLBACK 0x02
#define CT_S_INTERNAL 0x04 /* calls made inside it are not folded */
#define CT_S_ALWAYS 0x08   /* also captured inside another call (names, handles) */
#define CT_S_SHOWN 0x10	   /* asked for by the user; without it the record carries CT_F_HIDDEN */
/* cudaErrorNotReady / CUDA_ERROR_NOT_READY (600) is an answer, not a failure */
#define CT_S_NOT_READY 0x20
/* size_word holds the call's whole size: the kernel may apply --min-size */
#define CT_S_MATCH_SIZE 0x40
/* also captured inside another call while `want_inner` is set (the driver's launches) */
#define CT_S_INNER 0x80

/* spec.more */
#define CT_S_WHOLE_NAME 0x01 /* the part that a string read cuts off is sent as CT_MORE */
#define CT_S_STACK 0x02	     /* captured with the user stack */
#define CT_S_FORGETS \
	0x04 /* it unloads kernels: its entry is counted in `forgets`, so that user space knows
	      * whether a name that it read from the process's memory is older than an unload */
/* its entry has all the data: it gets no return probe, as with CT_S_CALLBACK */
#define CT_S_ENTRY_ONLY 0x08
#define CT_S_COPIES 0x10 /* its size is the number of bytes that a copy moves */

struct ct_spec {
	__u8 nwords;	/* words to copy; <= CT_MAX_WORDS */
	__u8 nreads;	/* all reads */
	__u8 nentry;	/* how many of them at entry */
	__u8 flags;	/* CT_S_* */
	__u8 size_word; /* the word with the size in bytes; CT_COUNT_NONE: none */
	__u8 more;	/* CT_S_WHOLE_NAME and on */
	/* The words that hold the keys of counters, and what a launch asks for. CT_COUNT_NONE: no
	 * word has it. */
	__u8 kind_word; /* cudaMemcpyKind */
	__u8 stream_word;
	struct ct_read reads[CT_MAX_READS];
	__u8 func_word;	  /* the kernel's handle */
	__u8 grid_word;	  /* the first of the grid's and the block's sizes */
	__u8 grid_how;	  /* enum ct_grid */
	__u8 shared_word; /* dynamic shared memory, bytes */
	/* enum ct_memory_how; 0: its calls allocate and free nothing, or no single word holds the
	 * size */
	__u8 memory_how;
	__u8 memory_word; /* the address, or where the address is written */
	/* the address space: the same address in another space is other memory; never 0 */
	__u8 memory_space;
	__u8 layer; /* enum ct_layer, and CT_LAYER_DOMAIN; 0: not a function of a layer */
};
/* What a call of a function of a layer does to the scopes of its thread. */
enum ct_layer {
	CT_LAYER_PUSH = 1,  /* opens a scope: one record, at the entry */
	CT_LAYER_POP = 2,   /* closes the innermost one that was pushed: one record */
	CT_LAYER_NOTE = 3,  /* nothing: one record, at the entry */
	CT_LAYER_AFTER = 4, /* nothing: one record, at the return, with the result */
	CT_LAYER_CALL = 5,  /* is a scope: two records */
};
#define CT_LAYER_HOW(layer) ((layer)&0x3f)
/* with CT_LAYER_CALL, at the return: a thread of a program that was started waits until what it made
 * has been read */
#define CT_LAYER_WAITS 0x40
/* the first word says in which of the program's domains a scope is pushed or popped */
#define CT_LAYER_DOMAIN 0x80
enum ct_grid {
	/* four words: x and y together, then z; first of the grid, then of the block */
	CT_GRID_DIM3 = 1,
	CT_GRID_SIX = 2, /* six words: x, y, z of the grid, then of the block */
};

enum ct_memory_how {
	/* allocates as many bytes as size_word says; the address is an output, at *memory_word */
	CT_MEMORY_TAKES_OUT = 1,
	/* allocates as many bytes as size_word says; the address is in memory_word */
	CT_MEMORY_TAKES_IN = 2,
	CT_MEMORY_FREES = 3, /* memory_word */
};

/* The attach cookie of a probe: row | flags << 16 | generation << 32. A link that replaces another
 * one has a higher generation. */
#define CT_COOKIE_GENERATION(g) ((__u64)(g) << 32)
#define CT_COOKIE(func, per_thread) ((__u64)(func) | ((per_thread) ? 1ULL << 16 : 0))
#define CT_COOKIE_FUNC(c) ((__u16)(c))
#define CT_COOKIE_PER_THREAD(c) (((c) >> 16) & 1)

/* What the BPF programs do. User space sets it in the variable `phase`. */
enum ct_phase {
	/* probes are being attached: the programs do nothing, so that all functions are seen from
	 * the same moment on */
	CT_PHASE_OPENING = 0,
	CT_PHASE_RUNNING = 1,
	CT_PHASE_CLOSING = 2, /* new calls are ignored; calls under way may still return */
	/* the programs do nothing: a call that has not returned is unfinished */
	CT_PHASE_CLOSED = 3,
};

/* Which completed calls are wanted. An option sets a member, the plan and the filter of recordings
 * pass it on, and the kernel side applies it. 0: this filter is off. */
struct ct_filter {
	__u64 min_duration_ns, min_size_bytes;
	__u32 failed_only, pad;
};

/* The settings of the run. They are read-only to the BPF programs, so the verifier removes code
 * that is not needed. */
struct ct_config {
	__u8 filter_pids; /* only the processes in the map `pids` */
	__u8 follow;	  /* a child of a process in `pids` is added to `pids` */
	__u8 enter;	  /* also send CT_ENTER records */
	__u8 nested;	  /* also record nested calls */
	__u8 no_return;	  /* entry probes only */
	__u8 by_address;  /* the kernel has no cookies: the function is found by its address */
	__u8 layers;	  /* some rows have a layer */
	__u8 pad3;
	__u8 stop_on_map;    /* ct_dl_state sends SIGURG when files were mapped */
	__u8 stacks;	     /* some rows have CT_S_STACK */
	__u8 frame_pointers; /* stacks are taken with bpf_get_stack */
	__u8 python;	     /* also Python frames, for the processes in the map `pythons` */
	/* calls are counted, not sent (but calls that name kernels are still sent) */
	__u8 count;
	__u8 count_by; /* enum ct_by */
	__u8 hist;     /* also histograms of durations: enum ct_hist_by */
	__u8 sizes;    /* histograms of what launches and copies ask for */
	/* for calls that free memory, the size is known from the call that allocated it */
	__u8 memory;
	/* ct_dl_state waits until user space has looked at what the process mapped */
	__u8 hold;
	/* functions may be counted in windows: the programs read the array `sampled` */
	__u8 samples;
	/* the map `images` keeps what each process ran last, and when it ended */
	__u8 images;
	__u32 entries; /* the capacity of the map `entries` */
	struct ct_filter filter;
	__u64 cgroup_id; /* 0: off */
	__u32 ns_inum;	 /* the tracer's pid namespace */
	/* how many of `entries` one process may use for keys that have a `by`; 0: all */
	__u32 entries_each;
};

/* The program that a process ran last: value of the map `images`, by pid in the tracer's namespace.
 * Times are CLOCK_MONOTONIC. */
struct ct_image {
	/* when the process started the program; 0: before the trace, or the process was forked and
	 * has not called exec */
	__u64 since_ns;
	__u64 ended_ns; /* 0: it still runs */
	__u32 tgid;	/* initial namespace */
	__u32 outside;	/* 1: not in config.cgroup_id */
	char comm[CT_COMM_LEN];
};

/* What a process's threads did at their loader's _dl_debug_state: value of the map `loads`, by
 * tgid. Times are CLOCK_MONOTONIC; 0: never. */
struct ct_load {
	__u64 pages;	  /* number of executable pages that were mapped at the last look */
	__u64 waiting_ns; /* since when a thread has been waiting; 0: none waits */
	__u64 waited_ns;  /* when the last thread that waited for the answer, and got it, arrived */
	__u64 passed_ns;  /* when the last thread went on without an answer */
};

/* An entry of the map `looks`: process ns_pid (in the tracer's namespace; 0: not visible there) has
 * mapped a file. */
struct ct_look {
	__u32 ns_pid;
	/* 1: the process runs a new program, and a thread other than its first called exec */
	__u32 anew;
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

/* ---- counting in the kernel: the maps `entries`, `tallies` and `hists` ---- */

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
enum ct_hist_by {
	CT_HIST_NONE = 0,
	CT_HIST_BY_KEY = 1,
	CT_HIST_BY_FUNCTION = 2 /* for all processes together */
};

/*
 * The probes of query functions that are called very often are detached, and attached again for
 * short windows. In a window the calls are counted and not sent. User space writes one of these
 * values per function into the array `sampled`.
 */
enum ct_sampled {
	CT_SAMPLED_NO = 0,	/* each call is captured */
	CT_SAMPLED_OFF = 1,	/* no probes are wanted; a call that still hits one is ignored */
	CT_SAMPLED_COUNTED = 2, /* each call is counted in the map `entries` */
	/* As CT_SAMPLED_COUNTED, but other functions whose probes were off until now call this
	 * function. A thread may be inside such an outer call, whose entry no probe saw. The calls
	 * of a thread are counted only when it is certain that it is not: after a call of any
	 * function that is not CT_SAMPLED_INSIDE, or after CT_UNSURE_MAX calls, which one outer
	 * call does not make. */
	CT_SAMPLED_INSIDE = 3,
};
#define CT_UNSURE_MAX 16
/* Key of the map `progress`. The value is how many calls of other functions a process has made
 * since the first function was sampled. From it user space estimates how much was not seen. */
struct ct_progress_key {
	__u32 tgid, start; /* as in struct ct_tally_key */
};
#define CT_INSIDE_MAX 6 /* how many functions are kept as called inside another one */
struct ct_inside {
	__u32 func; /* row + 1; 0: free */
	__u32 calls;
};
#define CT_SUB_KIND 0x0f   /* the copy's cudaMemcpyKind */
#define CT_SUB_STREAM 0x10 /* on a stream that the program created */

struct ct_tally_key {
	__u32 tgid;
	__u32 start; /* made from the start time: differs between processes that had the same pid */
	__u16 func;
	__u8 sub; /* CT_SUB_* */
	__u8 how; /* enum ct_by: the meaning of `by`; never CT_BY_ASKED */
	__u8 pad[4];
	__u64 by; /* thread id, kernel's handle, stream's handle, cgroup id, 0, or CT_BY_REST */
};
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
	__u64 hist; /* in the map: index in `hists` + 1; 0: none. Always 0 in records */
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

/* An element of the map `entries`; all zero if it is free. If n.calls is 0, another CPU is still
 * filling it in. */
struct ct_entry {
	struct ct_tally_key key;
	struct ct_sums n;
	__u64 pad; /* makes an element two cache lines long */
};

#define CT_HISTS_MAX 8192 /* histograms in `hists`, a power of two */

/* Memory that was allocated and not freed: key of the map `held`. The bytes in the map are the
 * allocated ones minus ct_sums.unheld_bytes minus the freed ones. */
struct ct_held_key {
	__u32 tgid, start; /* as in struct ct_tally_key */
	__u64 addr;	   /* the address; its highest byte is xored with the address space */
};

/*
 * Value of the map `sizes`. For a process's launches: the blocks of the grid and the threads of a
 * block. For its copies: the bytes. Bucket b counts sizes greater than 2^(b-1) and at most 2^b. The
 * first bucket also counts 0, the last one also everything larger. In the key `by` is CT_OF_*; for
 * copies the key also has the function, and the direction in `sub`.
 */
#define CT_SIZE_BUCKETS 41
enum ct_of { CT_OF_LAUNCHES = 1, CT_OF_COPIES = 2 };
struct ct_sizes {
	__u64 sum[2];
	/* they wrap around: a reader must read often enough and add up the differences */
	__u32 n[2][CT_SIZE_BUCKETS];
	__u32 pad[2];
};

/*
 * The record that user space makes from an entry of the maps. With CT_BY_SIZE it is made from
 * `sizes`: hist[] has both rows n[], sums.bytes and sums.threads have the two sums, and sums.calls
 * is 0. Without a process (pid 0) it is a histogram of `hists` for a function in all processes.
 * hdr.flags:
 */
#define CT_F_LAST 0x0001 /* the process has ended: its counters will not change */
struct ct_tally {
	/* pid; tid with CT_BY_THREAD; start_ns..end_ns: the time that was counted */
	struct ct_hdr h;
	__u16 func;
	__u8 sub;
	__u8 how;    /* enum ct_by */
	__u32 start; /* identifies the process together with pid, as in struct ct_tally_key */
	__u64 by;
	__u32 nbuckets; /* of hist[]; 0: there is none */
	__u32 pad;
	struct ct_sums sums;
	/* in addition to `sums`: estimated calls of functions that are counted in windows */
	struct ct_estimated unseen;
	__u32 hist[];
};

/* The place of a function in its file, for kernels without cookies: key of the map `by_offset`. */
struct ct_where {
	__u64 dev, ino, offset;
};

/*
 * Where a walk of Python's frames finds its data, as offsets in bytes from the start of each struct
 * of CPython: value of the map `pythons`, by thread group id. The offsets are from the
 * interpreter's own _Py_DebugOffsets if it has one (3.13), else from a table by version.
 */
#define CT_PY_NONE 0xffff
#define CT_PY_FRAME_BYTES 80 /* bytes of a frame that are read; all frame_* offsets are below it */
struct ct_python {
	__u64 runtime; /* address of _PyRuntime in this process */
	__u32 version; /* Py_Version */
	/* never repeats for the same process id: data that was sent with another generation is
	 * dropped */
	__u32 generation;
	__u16 runtime_interpreters_head;
	__u16 interp_next, interp_threads_head;
	__u16 thread_prev, thread_next, thread_interp, thread_native_id, thread_frame;
	/* 3.11, 3.12: thread_frame points to a struct that has the frame at this offset;
	 * CT_PY_NONE: thread_frame points to the frame itself */
	__u16 cframe_frame;
	__u16 frame_previous, frame_code, frame_instr, frame_owner;
	/* 3.11: offset of the byte that says that C called this frame; CT_PY_NONE: such a frame has
	 * a shim frame below it */
	__u16 frame_entry;
	/* the value of frame_owner that the interpreter's own frames have; CT_PY_NONE: there are no
	 * such frames */
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
	__u16 ended;	       /* the process is a zombie: it has no living thread */
	__u16 signal_stack;    /* the thread has an alternate signal stack */
};

/* One thread that has user memory, as the iterator ct_threads writes it. First: where the thread is
 * in its program. */
struct ct_thread_head {
	__u32 tgid, tid;       /* initial namespace */
	__u32 ns_tgid, ns_tid; /* the tracer's; 0: not visible there */
	__u64 switches;	       /* how often the scheduler has taken it off a CPU */
	/* this and the next members up to comm are those of struct ct_process */
	__u64 start_boottime_ns, cgroup_id;
	__u32 uid, gid, ppid;
	__u32 running; /* 1: on a CPU, or in 32-bit code: the registers are not known */
	char comm[CT_COMM_LEN];
	__u64 ip, sp, bp, lr; /* lr: aarch64 */
	__u64 regs[10];	      /* as in struct ct_user_stack */
};
/* Second: what probes know about the thread. */
struct ct_thread_probed {
	/* begin of the last outermost call that our probes saw; 0: none */
	__u64 begun_ns;
	/* the caller's stack pointers of that call and of the nested calls under way; 0: none */
	__u64 calls[CT_MAX_FRAMES];
	/* return addresses that return probes of any tracer replaced, innermost first */
	struct ct_saved saved[CT_MAX_FRAMES];
	__u32 nsaved, pad;
};
struct ct_thread {
	struct ct_thread_head h;
	struct ct_thread_probed p;
};

/* One executable mapping of a file, as the iterator ct_maps writes it. */
struct ct_vma {
	/* thread group id, in the initial and in the tracer's namespace (0: not visible there) */
	__u32 pid, ns_pid;
	__u64 dev, ino; /* of the real inode; dev as in the kernel: major << 20 | minor */
	__u64 start, end, pgoff;
	__u32 magic; /* of the file system (statfs.f_type); 0: not known */
	__u32 pad;
};

/* The kernel side's counters, per CPU; user space adds them up. */
struct ct_counters {
	__u64 folded;	  /* nested calls that were not reported */
	__u64 filtered;	  /* completed calls dropped by duration, size, failure or cgroup */
	__u64 unfinished; /* records sent with CT_F_UNFINISHED */
	/* CT_FORK, CT_EXEC, CT_EXIT and CT_THREAD_NAME records that did not fit into the ring; they
	 * are not sent again */
	__u64 untold;
	__u64 beyond; /* calls that were counted as CT_BY_REST */
	/* scopes inside so many others that there was no room; ends of scopes that were not begun */
	__u64 scopes_dropped, scopes_unbegun;
	__u64 lost[CT_LOSS_END];
};

#define CT_ASSERT_SIZE(type, n) _Static_assert(sizeof(type) == (n), "size of " #type)
CT_ASSERT_SIZE(struct ct_hdr, 32);
CT_ASSERT_SIZE(struct ct_call, 48);
CT_ASSERT_SIZE(struct ct_scope, 72);
CT_ASSERT_SIZE(struct ct_collective, 80);
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
