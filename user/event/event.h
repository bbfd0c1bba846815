/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * event.h - records, and events: a record together with what is known about it.
 *
 * record -> resolve -> join -> nest -> filter -> sink. A source hands in records. resolve adds
 * records with facts that only the live machine knows. join gives device work its cause, and calls
 * their numbers. nest puts parents before their children. filter decides what is shown. Sinks see
 * only struct event.
 */
#ifndef CT_EVENT_H
#define CT_EVENT_H

#include "../api/api.h"
#include "kinds.h"

/* The function to which a stage or a source hands its records. Returns 0, or -errno to stop (the
 * sink cannot be written, or -n is reached: -ECANCELED). */
typedef int (*emit_fn)(void *ctx, const struct ct_hdr *rec);

/* A process, as records described it. Owned by the process table; valid during the call that
 * hands it out. */
struct process {
	uint32_t pid; /* initial namespace: the key */
	/* pid in the tracer's namespace, which users see; the same as `pid` if it has none there */
	uint32_t shown_pid;
	/* shown_pid if no other process of the trace had that number, see process_unique(); 0:
	 * not assigned yet */
	uint32_t unique_pid;
	uint32_t nth; /* its place among the processes of its host with that shown_pid, from 1 */
	uint64_t start_boottime_ns, cgroup_id;
	uint32_t uid, gid, ppid;
	char comm[CT_COMM_LEN];
	bool exited;
	bool heard; /* a record described it; false: only its number is known */
	const struct process_info *info; /* NULL: not known */
};

/* What a process is. The texts are NUL-terminated, untrusted bytes, "" where not known. */
struct process_info {
	/* CT_UNKNOWN: it is not part of a job with several processes */
	uint32_t rank, world_size, local_rank;
	const char *exe, *container, *pod;
	/* in merged recordings: the host where it ran, and that host's boot id */
	const char *host, *boot;
	const char *cmdline; /* arguments, separated by NUL bytes */
	size_t cmdline_len;
};

/*
 * The number of a process in formats that identify it by one number: no two processes of a trace
 * have the same. It is shown_pid, unless another process had that number before (on another host,
 * in another container, or one that has ended). Then it is PROCESS_MADE_UP or more, a number that
 * no process of Linux has. It is always below 1 << 24. A process keeps its number after an exec.
 */
#define PROCESS_MADE_UP (1u << 22)
static inline uint32_t process_unique(const struct process *p)
{
	return p->unique_pid ? p->unique_pid : p->shown_pid;
}

/* In merged recordings, the numbers of processes, threads and machines' devices of all hosts but
 * the first are larger than any real number: the host's number is stored above these bits. */
#define PROCESS_HOST_SHIFT 22 /* PID_MAX_LIMIT */
#define DEVICE_HOST_SHIFT 10
static inline uint32_t process_host(uint32_t pid)
{
	return pid >> PROCESS_HOST_SHIFT;
}
/* The pid or tid that its host uses, in the initial namespace. */
static inline uint32_t process_host_pid(uint32_t pid)
{
	return pid & ((1u << PROCESS_HOST_SHIFT) - 1);
}
/* The thread id that users see. Outside the initial pid namespace only the leader's id is known;
 * the ids of other threads are not translated. */
static inline uint32_t process_tid(const struct process *p, uint32_t tid)
{
	return !tid || tid == p->pid  ? p->shown_pid
	       : process_host(p->pid) ? process_host_pid(tid)
				      : tid;
}

/* A kernel's name. Owned by the name table; valid during the call that hands it out. */
struct kernel_name {
	/* the name that the compiler made, or a C name; NUL-terminated; untrusted bytes */
	const char *mangled;
	/* demangled; the same as `mangled` when there is nothing to demangle */
	const char *full;
	/* demangled; without template arguments and parameters if it would be too wide */
	const char *brief;
	uint8_t source; /* enum ct_name_source */
	/* `mangled` is only the beginning of the name; full and brief are then the same as
	 * mangled */
	bool cut;
};
/* "registered", "symbol", "driver", "inner", "fatbin" */
const char *kernel_name_source(uint8_t source);

/* A place in a program. The stack table owns it and its strings, which are NUL-terminated,
 * untrusted bytes. */
struct stack_frame {
	uint8_t kind;	      /* enum ct_frame_kind */
	uint32_t line;	      /* 0: not known */
	uint64_t address;     /* in the object; without an object, in the process */
	uint64_t offset;      /* in the function */
	const char *function; /* demangled; NULL: not known */
	const char *mangled;  /* the name in the symbol table; NULL: `function` was not mangled */
	const char *file;     /* source file; NULL: not known */
	const char *object;   /* path of the mapped file; NULL: none */
};

/* A call's stack, innermost frame (the caller of the function) first. */
struct stack {
	uint32_t id, nframes;
	uint32_t flags; /* CT_STACK_* */
	const struct stack_frame *const *frames;
};

/* The call that caused device work: the part of its record that join remembers. Owned by join. */
struct cause {
	uint64_t start_ns;
	uint64_t end_ns; /* 0: not known, for example because the call is not shown */
	uint32_t tid;
	uint16_t func; /* row */
};

/* The call that made a node of a CUDA graph: what was captured, and is replayed. */
struct capture {
	uint64_t call_ns; /* its begin; 0: not known */
	uint32_t tid;
	uint32_t number; /* of the call; 0: not known */
	uint32_t scope;	 /* around it: id; CT_SCOPE_NONE; CT_SCOPE_UNKNOWN */
	uint32_t stack;
	uint16_t func; /* row; CT_NO_FUNC: not known */
	bool before;   /* the node was there before the trace: nothing is known of it */
};

struct metric_table;
struct kernel_counters;
struct scope_line;
struct lineage;
struct gpu;
struct gpu_table;

struct event {
	const struct ct_hdr *rec;
	const struct process *proc; /* never NULL: an unknown process gets an entry with comm "?" */
	/* name of the record's thread; NULL: not known, or it is the leader, whose name is
	 * proc->comm; untrusted bytes */
	const char *thread;
	/* the kernel that the call launches or asks about, or that ran; NULL: none, or not known */
	const struct kernel_name *kernel;
	/* the stack of the call, or, for device work, of its cause; NULL: none */
	const struct stack *stack;
	const struct cause *cause; /* the call that caused device work; NULL: not known */
	/* the innermost scope around the call, or, for device work, around its cause
	 * (event/scopes/lineage.h); NULL: none, or not known */
	const struct scope_line *scope;
	uint32_t scope_id; /* its id; CT_SCOPE_NONE; CT_SCOPE_UNKNOWN */
	/* of work that a graph's replay did: the call that was captured; NULL: it is no such work,
	 * or the process's nodes are not followed */
	const struct capture *capture;
	const char *captured_in; /* the name of the innermost scope around it; NULL: none */
	const struct stack *captured_stack; /* of that call; NULL: none, or not known any more */
	const char *captured_at; /* the place in the program where it was made; NULL: not known */
	/* of a collective's kernel: the bytes that its bus bandwidth is computed from; 0: none */
	double bus_bytes;
	/* of a kernel of a call for products of matrices: that call (event/scopes/lineage.h); NULL: it
	 * is none. Then also: what its device could compute at most in the type that it computes in,
	 * FLOP a second (event/scopes/peak.h); 0: not known */
	const struct scope_line *product;
	double peak;
	/* the scopes that it is inside of; NULL: none are known */
	const struct lineage *lineage;
	/* For a call: its number in its process, from 1, in the order of the records. For device
	 * work: the number of its cause. 0: none. Formats write it as the correlation id: it is
	 * the same live and on replay. */
	uint32_t number;
	/* For a call: what it works on, as far as records reported it (otherwise CT_UNKNOWN).
	 * For device work: the values of its record. */
	uint32_t device, context, stream;
	/* for device work and calls: the GPU that `device` means; for samples and events of the
	 * machine: their GPU; NULL: not known */
	const struct gpu *gpu;
	const struct gpu_table *gpus; /* which GPUs there are (event/gpus.h); NULL: not known */
	/* for a call: handle of the current context if the program created it; 0: the device's
	 * own context, or not known */
	uint64_t context_handle;
	/* of a kernel (event/kernel_counters.h); NULL: none */
	const struct kernel_counters *counters;
	/* names of metrics (event/device.h); NULL: none are known */
	const struct metric_table *metrics;
};

/* The function to which a stage hands its events. The event and its record are valid during the
 * call. Returns as emit_fn. */
typedef int (*event_fn)(void *ctx, struct event *ev);

#define EVENT_MAX_FIELDS 64

/* Writes the fields of a record of any kind; calls go to api_decode(). Returns the number of
 * fields. */
int event_fields(const struct event *, struct field *out, int max);

/* The id of the innermost scope around a call: CT_SCOPE_NONE if none was recorded. */
uint32_t call_scope(const struct ct_call *);
/* What a scope is: "range", "mark". */
const char *scope_word(const struct ct_scope *);
/* What a call of a library for collectives said; NULL: the scope is none. */
const struct ct_collective *scope_collective(const struct ct_scope *);
/* What a call for products of matrices said (event/scopes/products/gemms.c); NULL: the scope is none. */
const struct ct_gemm *scope_gemm(const struct ct_scope *);
/* "4096 x 4096 x 512, batch 8, float16 -> float32, TN", as far as it is known; cut to size. */
void gemm_text(const struct ct_gemm *, char *text, size_t size);
/* "float16"; NULL: a number that is not known. */
const char *gemm_type(uint32_t type);
/* Has a call of a library for collectives, or for products, failed? */
bool scope_failed(const struct ct_scope *);
/* The name of the number that such a call returned, of its element's type, of its operation; NULL: it
 * has none. */
const char *scope_error(const struct ct_scope *, int32_t ret);
const char *scope_datatype(uint32_t);
const char *scope_op(uint32_t);

/* The words of CT_HOST_SEGMENT: "blocked", "file"; "unknown" */
const char *host_state(uint8_t state);
const char *host_reason(uint8_t reason);

/* Checks one record that claims to be at `rec` with `avail` bytes: its size, that its kind's
 * fixed part and all announced words and reads fit. Returns 0, or -EBADMSG. Nothing may look at
 * a record that was not checked. */
int record_check(const void *rec, size_t avail);

/* The place of a row in the order of time (CLOCK_MONOTONIC, ns): the end of what the record
 * describes, or, for the entry of a call, the time of the entry. 0: it has no place, like a
 * definition. */
uint64_t event_place_ns(const struct ct_hdr *);

/* ---- the process table (event/process.c) ---- */
struct process_table;
struct process_table *process_table_open(void); /* NULL: no memory */
void process_table_close(struct process_table *);
/* Updates the table from CT_PROCESS, CT_PROCESS_INFO, CT_EXEC, CT_EXIT, CT_FORK records and from
 * the leader's CT_THREAD_NAME; others are ignored. */
int process_table_record(struct process_table *, const struct ct_hdr *);
/* Number of records that it has learned from. The caller hands in each record once. */
uint64_t process_table_learned(const struct process_table *);
/* Finds the process of a pid, with its unique number. For an unknown pid it makes an entry with
 * comm "?". NULL: no memory. */
const struct process *process_table_find(struct process_table *, uint32_t pid);
/*
 * Sums come long after the calls: the process may have ended, and another one may have its number.
 * So for a source that counts, ended processes are kept until process_table_counted() says that
 * their sums have come. A number that is beyond the room for them is not kept.
 */
void process_table_keep_ended(struct process_table *);
void process_table_counted(struct process_table *);
/* The process of a CT_CALL_COUNT record, by the number and the start; valid until the next call. comm
 * is "?" where it is not known. NULL: no memory. */
const struct process *process_table_find_counted(struct process_table *,
						 const struct ct_call_count *);

/* ---- the names of threads (event/threads.c), from CT_THREAD_NAME records ---- */
struct thread_table;
struct thread_table *thread_table_open(void); /* NULL: no memory */
void thread_table_close(struct thread_table *);
/* Learns from CT_THREAD_NAME records; others are ignored. The number of names kept is bounded:
 * the names that were not asked for longest are dropped first. */
void thread_table_record(struct thread_table *, const struct ct_hdr *);
/* The name of a thread that is not its process's leader, NUL-terminated, valid until the next
 * call; NULL: not known. */
const char *thread_table_find(struct thread_table *, uint32_t pid, uint32_t tid);

/* ---- the names of kernels (event/names.c), from CT_NAME records ---- */
struct name_table;
struct name_table *name_table_open(void); /* NULL: no memory */
void name_table_close(struct name_table *);
/* Learns from CT_NAME, CT_PROCESS, CT_EXEC and CT_EXIT records; others are ignored. Returns 0 or
 * -ENOMEM. */
int name_table_record(struct name_table *, const struct ct_hdr *);
/* The kernel that a call's record refers to; NULL: it refers to none, or to one that is not
 * known. */
const struct kernel_name *name_table_find(struct name_table *, const struct ct_call *);
/* The kernel that a handle means in a process; NULL: not known. */
const struct kernel_name *name_table_handle(struct name_table *, uint32_t pid, uint64_t handle);

/* ---- stacks (stacks/stacks.c), from CT_FRAME and CT_STACK records ---- */
/* The table remembers at least this many of the newest stacks. Whoever makes the records uses no
 * older ids. */
#define STACK_TABLE_STACKS 65536
#define STACK_TABLE_FRAMES 262144
struct stack_table;
struct stack_table *stack_table_open(void); /* NULL: no memory */
void stack_table_close(struct stack_table *);
/* Learns from CT_FRAME and CT_STACK records; others are ignored. Returns 0 or -ENOMEM. */
int stack_table_record(struct stack_table *, const struct ct_hdr *);
/* The stack of a call's record (CT_F_STACK); NULL: it has none, or one that is not known. */
const struct stack *stack_table_find(struct stack_table *, const struct ct_call *);
/* The stack with an id; NULL: not known. */
const struct stack *stack_table_get(struct stack_table *, uint32_t id);
/* The place in the program that a stack shows, "forward at model.py:12": the innermost frame of Python,
 * else the innermost one with a line, else the innermost one; cut to size. False: there is none. */
bool stack_place(const struct stack *, char *text, size_t size);

/* ---- what people need not see of a stack ---- */

/* What a frame is to its program, by the rows of stacks/shown.c. */
enum frame_role {
	FRAME_OWN,	 /* the program's, or of a library that it uses */
	FRAME_GLUE,	 /* of the Python interpreter, or between it and code that was compiled */
	FRAME_ALLOCATOR, /* of PyTorch's allocator, or of the operators that ask it for blocks */
	FRAME_START,	 /* of libc, around a program's or a thread's first function */
};
enum frame_role frame_role(uint8_t kind, const char *function, const char *object);
/* A source file as it is shown: torch/nn/modules/linear.py of a package that is installed. It is a part of
 * the text; takes NULL. */
const char *frame_file(uint8_t kind, const char *file);
/* Which frames of a stack are shown: the innermost n, without those of libc's start, and with `hides` none that is
 * FRAME_GLUE, since the stack has frames of Python. With `whole` all. */
struct stack_view {
	uint32_t n;
	bool hides;
};
struct stack_view stack_view(const struct stack *, bool whole);
/* Is one of these n frames shown? */
static inline bool stack_shows(const struct stack_view *v, const struct stack_frame *f)
{
	return !v->hides || frame_role(f->kind, f->function, f->object) != FRAME_GLUE;
}

/* Processes that ran while CUDA's code had no probes yet: from CT_UNPROBED records. */
struct unprobed_sum {
	uint64_t processes; /* number of all such processes */
	uint64_t ended;	    /* those of them that had ended before the probes were attached */
	/* for the others: the longest time from the mapping to the attached probes */
	uint64_t longest_ns;
	bool more; /* there may have been more */
};
static inline bool unprobed_any(const struct unprobed_sum *u)
{
	return u->processes || u->more;
}
void unprobed_add(struct unprobed_sum *, const struct ct_unprobed *);
/* "3 processes ran up to 12.3 ms before their calls were seen, 2 ended before that"; "" if there
 * are none. Returns the length. */
#define UNPROBED_TEXT 160
size_t unprobed_text(char *, size_t size, const struct unprobed_sum *);

/* The estimated cost of the probes in the traced programs: the number of hits times the measured
 * cost of an empty pair. Also the share of the time for which the removable probes are attached. */
struct probe_cost {
	/* a duty or a limit was set; false: the other members have no meaning */
	bool reported;
	double duty;		/* share of the time; 1: all probes are attached all the time */
	double cost;		/* recent share of the programs' CPU time; below 0: not known yet */
	double max_cost;	/* the limit; 0: there is none */
	uint64_t ns, cpu_ns;	/* since tracing began */
	unsigned int functions; /* number of functions whose probes are not attached all the time */
};

struct holes;

/* What was lost and dropped, by cause, and other numbers of the sources. Every sink gets it at the end. */
/* Whether a traced process had code with functions that are traced. */
enum losses_code { LOSSES_CODE_UNKNOWN, LOSSES_CODE_NONE, LOSSES_CODE_LOADED };

struct losses {
	/* what was not seen (event/holes/holes.h); what the members say that are marked with "row" is
	 * in its rows too, and outputs ask only it. A source leaves it as it is */
	const struct holes *holes;
	uint64_t lost[CT_LOSS_END]; /* row */
	uint64_t calls;		    /* calls seen by the kernel side */
	uint64_t folded, filtered, sent, unfinished;
	/* row: forks, execs and ends of processes that were lost and so never reported */
	uint64_t unreported;
	/* calls that the kernel side counted without their kernel, thread and so on; each
	 * process's share of them is stored with the process */
	uint64_t beyond;
	/* scopes that were not followed, because too many were open at a time (row); ends of ranges
	 * whose begins were not seen */
	uint64_t scopes_dropped, scopes_unbegun;
	uint64_t received; /* records that arrived */
	uint64_t shown;	   /* rows that the sink printed */
	uint64_t counted;  /* calls that the kernel side counted and did not send */
	/* measured cost of an empty pair of probes per call; 0: not known */
	uint64_t pair_ns;
	struct probe_cost probes;
	uint64_t files; /* number of files that have probes now */
	uint8_t code;	/* enum losses_code */
	/* row: number of files in which functions were not probed, because the programs of their user
	 * map too many files; the calls in them are not known */
	uint64_t refused;
};
/* Adds to a number of losses. The sum stops at the largest value instead of overflowing, since
 * counts also come from a traced program or a file. */
static inline void losses_add(uint64_t *to, uint64_t n)
{
	*to = n > UINT64_MAX - *to ? UINT64_MAX : *to + n;
}
/* By how much a sum of them rose since *last, which becomes `now`. One that has fallen, because a
 * reading failed or a traced program lowered it, did not rise, and *last stays. */
static inline uint64_t losses_rise(uint64_t *last, uint64_t now)
{
	uint64_t n = now > *last ? now - *last : 0;

	*last += n;
	return n;
}
uint64_t losses_total(const struct losses *); /* all causes but CT_LOSS_ORPHAN */
/* The losses that make sums over calls and device records wrong. A lost stack or a lost time
 * does not. */
uint64_t losses_of_sums(const struct losses *);
const char *loss_name(enum ct_loss); /* "ring_full", as JSON has it */
const char *loss_text(enum ct_loss); /* "ring buffer full (raise --ring-size)" */

#endif
