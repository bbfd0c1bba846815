/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * control.h - what user space passes to the kernel side, and what it reads from the kernel side's
 * maps and iterators: capture specs, the settings of the run, counters, tasks and mappings. The
 * hooks inside a process get the same specs and settings, and count in the same cells; the agent
 * gets the specs.
 *
 * Nothing of it is a record, and nothing of it is stored on disk. Every struct's size is asserted.
 */
#ifndef CUDATRACE_CONTROL_H
#define CUDATRACE_CONTROL_H

#include "cudatrace.h"

/* ---- which calls are captured, and what of them ---- */

enum ct_read_kind {
	CT_READ_BYTES = 1, /* len bytes */
	CT_READ_STR = 2,   /* NUL-terminated, at most len bytes with the NUL */
	CT_READ_ARRAY = 3, /* count * elem bytes, at most len */
};
enum ct_read_when { CT_AT_ENTRY = 1, CT_AT_RETURN = 2 };
/* in `from`: the low bits are the index of an earlier read of the same record */
#define CT_FROM_READ 0x80
/* in `from`: the value that the call returned */
#define CT_FROM_RETURN 0x40
#define CT_COUNT_NONE 0xff

/* One piece of user memory to read. Outputs (CT_AT_RETURN) are skipped when the call failed. */
struct ct_read {
	__u8 when; /* enum ct_read_when; all entry reads precede all return reads */
	__u8 kind; /* enum ct_read_kind */
	/* index of the word that holds the pointer, or CT_FROM_READ | index of a CT_READ_BYTES
	 * read, or CT_FROM_RETURN */
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
#define CT_S_NESTED 0x80

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
	__u8 nwords;	/* words to copy; <= CT_MAX_WORDS, of layers CT_LAYER_WORDS */
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
	/* is a scope; both the entry and the return instructions have a probe: two records, whose
	 * only word is the number of the function's name */
	CT_LAYER_OPERATOR = 6,
};
#define CT_LAYER_HOW(layer) ((layer)&0x1f)
/* with CT_LAYER_CALL, at the return: a thread of a program that was started waits until what it made
 * has been read */
#define CT_LAYER_WAITS 0x40
/* what the layer pushes, it pops: its ranges are apart from those of other layers */
#define CT_LAYER_OWN 0x20
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

/* How a process is traced. */
enum ct_pid {
	CT_PID_TRACED = 1,
	/* other calls of it are recorded inside the process: user space must know of each call here when it begins, whether it is shown or
	 * not */
	CT_PID_BESIDE = 2,
};

/* The attach cookie of a probe: row | flags << 16 | symbol << 17 | ends << 31 | generation << 32. A
 * link that replaces another one has a higher generation. Of a row that stands for many functions,
 * `symbol` is the number of the function's name, and `ends` says that the probe is on an instruction
 * that returns. */
#define CT_COOKIE_GENERATION(g) ((__u64)(g) << 32)
#define CT_COOKIE(func, per_thread) ((__u64)(func) | ((per_thread) ? 1ULL << 16 : 0))
#define CT_COOKIE_FUNC(c) ((__u16)(c))
#define CT_SYMBOLS 16384 /* numbers of names; 0: none */
#define CT_COOKIE_OF(symbol, ends) ((__u64)(symbol) << 17 | ((ends) ? 1ULL << 31 : 0))
#define CT_COOKIE_SYMBOL(c) ((__u32)((c) >> 17) & (CT_SYMBOLS - 1))
#define CT_COOKIE_ENDS(c) (((c) >> 31) & 1)
#define CT_COOKIE_PER_THREAD(c) (((c) >> 16) & 1)

/* What is read of the tensors among an operator's arguments, by the number of its name. 0: nothing.
 * For each of six registers what it has; then of a TensorImpl: the word with its rank, how far behind
 * its type the byte is that says how its sizes are found, and the bits of it that are not set if
 * they are found in the TensorImpl itself. */
enum ct_tensors {
	CT_TENSORS_NOT = 0,
	CT_TENSORS_ONE = 1,	 /* the address of a Tensor */
	CT_TENSORS_OPTIONAL = 2, /* of one, with a byte behind it that says whether it is there */
	CT_TENSORS_LIST = 3,	 /* of several; the next register has their number */
};
#define CT_TENSORS_REGS 6
#define CT_TENSORS_REG(plan, i) ((plan) >> (2 * (i)) & 3)
#define CT_TENSORS_LAYOUT(rank_word, byte, bits) \
	((__u32)(rank_word) << 12 | (__u32)(byte) << 17 | (__u32)(bits) << 20)
#define CT_TENSORS_RANK_WORD(plan) ((plan) >> 12 & 31)
#define CT_TENSORS_BYTE(plan) ((plan) >> 17 & 7)
#define CT_TENSORS_BITS(plan) ((plan) >> 20 & 0xff)
/* its lists are passed by the address of an IListRef: { array, number, 0: it is an array } */
#define CT_TENSORS_BY_REFERENCE (1U << 28)

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
	__u32 failed_only, succeeded_only;
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
	__u8 shapes;	  /* of operators' tensors too */
	__u8 python_only; /* enum ct_python_only */
	__u8 stop_on_map; /* a thread that the tracer has seized is stopped when files were mapped */
	__u8 stacks;	  /* some rows have CT_S_STACK */
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
	__u8 reach;    /* threads note how far out on their stacks calls begin */
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

/* An entry of the map `halts`: thread ns_tid (in the tracer's namespace; 0: not visible there) asks its
 * tracer to interrupt it, and polls for at most CT_HALT_NS. The answer is the question's number at
 * its place in `halted`. */
#define CT_HALT_NS 100000000ULL
#define CT_HALTS 4096

enum ct_halt_why {
	CT_HALT_MAPPED = 1, /* the process has mapped files */
	CT_HALT_READ = 2    /* an argument of a call was not in memory */
};

struct ct_halt {
	__u32 ns_tid;
	__u32 why; /* enum ct_halt_why */
	__u64 number;
	__u64 at_ns; /* CLOCK_MONOTONIC */
};

/* ---- counting: the maps `entries`, `hists`, `held` and `sizes` ---- */

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
	__u32 tgid, start; /* as in struct ct_count_key */
};
#define CT_INSIDE_MAX 6 /* how many functions are kept as called inside another one */
struct ct_inside {
	__u32 func; /* row + 1; 0: free */
	__u32 calls;
};

struct ct_count_key {
	__u32 tgid;
	__u32 start; /* made from the start time: differs between processes that had the same pid */
	__u16 func;
	__u8 sub; /* CT_SUB_* */
	__u8 how; /* enum ct_by: the meaning of `by`; never CT_BY_ASKED */
	__u8 pad[4];
	__u64 by; /* thread id, kernel's handle, stream's handle, cgroup id, 0, or CT_BY_REST */
};

/* An element of the map `entries`; all zero if it is free. If n.calls is 0, another CPU is still
 * filling it in. */
struct ct_entry {
	struct ct_count_key key;
	struct ct_sums n;
	__u64 pad; /* makes an element two cache lines long */
};

#define CT_HISTS_MAX 8192 /* histograms in `hists`, a power of two */

/* Memory that was allocated and not freed: key of the map `held`. The bytes in the map are the
 * allocated ones minus ct_sums.unheld_bytes minus the freed ones. */
struct ct_held_key {
	__u32 tgid, start; /* as in struct ct_count_key */
	__u64 addr;	   /* the address; its highest byte is xored with the address space */
};

/* Value of the map `sizes`: the two histograms of CT_BY_SIZE, and what their sizes add up to. */
struct ct_sizes {
	__u64 sum[2];
	/* they wrap around: a reader must read often enough and add up the differences */
	__u32 n[2][CT_SIZE_BUCKETS];
	__u32 pad[2];
};

/* ---- values of other maps, and what the iterators write ---- */

/* The place of a function in its file, for kernels without cookies: key of the map `by_offset`. */
struct ct_where {
	__u64 dev, ino, offset;
};

/*
 * Where a walk of Python's frames finds its data, as offsets in bytes from the start of each struct
 * of CPython: value of the map `pythons`, by thread group id. The offsets are from the
 * interpreter's own _Py_DebugOffsets if it has one (3.13), else from a table by version.
 */
/* Of which calls the native stack is taken too. */
enum ct_python_only {
	CT_PY_AND_NATIVE = 0, /* of all */
	CT_PY_ALONE = 1,      /* of none */
	CT_PY_FIRST = 2,      /* of those whose thread runs no Python */
};

#define CT_PY_NONE 0xffff
#define CT_PY_EACH 0xfffe
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
	__u16 frame_at; /* where the bytes of a frame that are read begin */
	__u16 frame_previous, frame_code, frame_instr, frame_owner; /* in them */
	/* 3.11: offset of the byte that says that C called this frame; CT_PY_NONE: such a frame has
	 * a shim frame below it; CT_PY_EACH: C calls each frame (3.10) */
	__u16 frame_entry;
	/* the interpreter's own frames have this value of frame_owner, or a larger one;
	 * CT_PY_NONE: there are no such frames */
	__u16 owner_shim;
	__u16 code_check; /* of the CT_PY_CHECK_WORDS words */
	__u16 code_qualname, code_filename, code_first_line, code_linetable;
	/* CT_PY_NONE: the frame has the number of the instruction, not its address */
	__u16 code_instrs;
	/* PyASCIIObject, PyCompactUnicodeObject */
	__u16 str_state, str_length, str_ascii_data, str_compact_data;
	__u16 bytes_size, bytes_data;
	/* 3.10: thread_native_id points to the C library's struct of the thread, which has the
	 * thread's number at this offset; 0: thread_native_id is the number */
	__u16 pthread_tid;
	__u16 pad[3];
};

/* One task, as the iterator ct_tasks writes it. */
#define CT_WANTS_SIGNAL_STACK 1 /* it has an alternate signal stack */
#define CT_WANTS_DISPATCH 2	/* its system calls become SIGSYS */
struct ct_task {
	__u32 tgid, tid;       /* initial namespace */
	__u32 ns_tgid, ns_tid; /* the tracer's; 0: not visible there */
	__u32 ppid;	       /* parent's tgid, initial namespace */
	__u16 ended;	       /* the process is a zombie: it has no living thread */
	__u16 wants_session;   /* CT_WANTS_*: why a plain return probe may end the thread */
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
/* One of a thread's stacks, from start to end, and how far out on it a call lies that began since all probes
 * were placed: the largest of the callers' stack pointers. */
#define CT_REACHES 4
struct ct_reach {
	__u64 start, end, sp;
};
/* Second: what probes know about the thread. */
struct ct_thread_probed {
	/* the caller's stack pointers of the calls under way whose begin our probes saw; 0: none */
	__u64 calls[CT_MAX_FRAMES];
	struct ct_reach reach[CT_REACHES];
	/* Return addresses of the innermost of these calls, and of the one inside it that returned last: the kernel
	 * forgets what a return probe replaced before the thread is back in its code. sp 0: none. */
	struct ct_saved ending[2];
	/* return addresses that return probes of any tracer replaced, innermost first */
	struct ct_saved saved[CT_MAX_FRAMES];
	__u32 nsaved;
	__u32 nreach; /* above CT_REACHES: the thread has more stacks than there is room for */
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
	__u64 unreported;
	__u64 beyond; /* calls that were counted as CT_BY_REST */
	/* scopes inside so many others that there was no room; ends of scopes that were not begun */
	__u64 scopes_dropped, scopes_unbegun;
	__u64 lost[CT_LOSS_END];
};

CT_ASSERT_SIZE(struct ct_python, 80);
CT_ASSERT_SIZE(struct ct_read, 12);
CT_ASSERT_SIZE(struct ct_spec, 88);
CT_ASSERT_SIZE(struct ct_count_key, 24);
CT_ASSERT_SIZE(struct ct_entry, 128);
CT_ASSERT_SIZE(struct ct_held_key, 16);
CT_ASSERT_SIZE(struct ct_sizes, 352);
CT_ASSERT_SIZE(struct ct_filter, 24);
CT_ASSERT_SIZE(struct ct_config, 72);
CT_ASSERT_SIZE(struct ct_look, 8);
CT_ASSERT_SIZE(struct ct_image, 40);
CT_ASSERT_SIZE(struct ct_load, 32);
CT_ASSERT_SIZE(struct ct_progress_key, 8);
CT_ASSERT_SIZE(struct ct_where, 24);
CT_ASSERT_SIZE(struct ct_task, 24);
CT_ASSERT_SIZE(struct ct_thread_head, 184);
CT_ASSERT_SIZE(struct ct_reach, 24);
CT_ASSERT_SIZE(struct ct_thread_probed, 328);
CT_ASSERT_SIZE(struct ct_thread, 512);
CT_ASSERT_SIZE(struct ct_vma, 56);
CT_ASSERT_SIZE(struct ct_inside, 8);
CT_ASSERT_SIZE(struct ct_counters, 168);

#endif
