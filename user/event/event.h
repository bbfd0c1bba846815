/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * event.h - what flows: records, and records with what belongs to them.
 *
 * record -> resolve -> join -> nest -> filter -> sink. A source hands in records; resolve makes
 * records of what only the live machine knows; join gives device work its cause and calls their
 * numbers; nest puts parents before their children; filter decides what is shown. Sinks see
 * struct event, nothing else.
 */
#ifndef CT_EVENT_H
#define CT_EVENT_H

#include "../api/api.h"
#include "kinds.h"

/* A stage's or source's outlet. Returns 0, or -errno to stop (the sink cannot be written, or -n
 * is reached: -ECANCELED). */
typedef int (*emit_fn)(void *ctx, const struct ct_hdr *rec);

/* A process as records told of it. Owned by the process table; valid during the call that hands
 * it out. */
struct process {
	uint32_t pid; /* initial namespace: the key */
	/* in the tracer's namespace; what users see; pid if it has none there */
	uint32_t shown_pid;
	/* shown_pid, if no other process of the trace had that: see process_unique(); 0: not
	 * given */
	uint32_t unique_pid;
	uint32_t nth; /* of the processes of its host with that shown_pid, from 1 on */
	uint64_t start_boottime_ns, cgroup_id;
	uint32_t uid, gid, ppid;
	char comm[CT_COMM_LEN];
	bool exited;
	const struct process_info *info; /* NULL: not known */
};

/* What a process is. The texts are NUL-terminated, untrusted bytes, "" where not known. */
struct process_info {
	uint32_t rank, world_size, local_rank; /* CT_UNKNOWN: it is none of several */
	const char *exe, *container, *pod;
	const char *host, *boot; /* that it ran on, and that host's boot id, in merged recordings */
	const char *cmdline;	 /* arguments with a NUL between them */
	size_t cmdline_len;
};

/*
 * The number of a process in formats that know it by that alone: no two processes of a trace
 * have the same. It is shown_pid, unless a process of another host or container, or one that has
 * ended, had that number before: then it is one that no process of Linux has, from
 * PROCESS_MADE_UP on. Below 1 << 24. An exec makes no other process.
 */
#define PROCESS_MADE_UP (1u << 22)
static inline uint32_t process_unique(const struct process *p)
{
	return p->unique_pid ? p->unique_pid : p->shown_pid;
}

/* In merged recordings, processes, threads and machines' devices of the hosts after the first
 * have numbers beyond any real one: the host's number lies above these bits. */
#define PROCESS_HOST_SHIFT 22 /* PID_MAX_LIMIT */
#define DEVICE_HOST_SHIFT 10
static inline uint32_t process_host(uint32_t pid)
{
	return pid >> PROCESS_HOST_SHIFT;
}
/* A pid or tid as its host has it, in the initial namespace. */
static inline uint32_t process_host_pid(uint32_t pid)
{
	return pid & ((1u << PROCESS_HOST_SHIFT) - 1);
}
/* A thread as users see it: outside the initial pid namespace the leader's id is known, others'
 * are not translated. */
static inline uint32_t process_tid(const struct process *p, uint32_t tid)
{
	return !tid || tid == p->pid  ? p->shown_pid
	       : process_host(p->pid) ? process_host_pid(tid)
				      : tid;
}

/* A kernel's name. Owned by the name table; valid during the call that hands it out. */
struct kernel_name {
	/* as the compiler made it, or a C name; NUL-terminated; untrusted bytes */
	const char *mangled;
	/* demangled; the same as `mangled` when there is nothing to demangle */
	const char *full;
	/* demangled, without template arguments and parameters where it is wide */
	const char *brief;
	uint8_t source; /* enum ct_name_source */
	/* `mangled` is only the beginning of it; full and brief are the same then */
	bool cut;
};
/* "registered", "symbol", "driver", "inner", "fatbin" */
const char *kernel_name_source(uint8_t source);

/* A place in a program. Owned by the stack table, as its strings are: NUL-terminated, untrusted
 * bytes. */
struct stack_frame {
	uint8_t kind;	      /* enum ct_frame_kind */
	uint32_t line;	      /* 0: not known */
	uint64_t address;     /* in the object; without an object, in the process */
	uint64_t offset;      /* in the function */
	const char *function; /* demangled; NULL: not known */
	const char *mangled;  /* as the symbol table has it; NULL: `function` was not mangled */
	const char *file;     /* source file; NULL: not known */
	const char *object;   /* path of the mapped file; NULL: none */
};

/* A call's stack, innermost frame (the caller of the function) first. */
struct stack {
	uint32_t id, nframes;
	uint32_t flags; /* CT_STACK_* */
	const struct stack_frame *const *frames;
};

/* The call that caused device work: what join remembers of its record. Owned by join. */
struct cause {
	uint64_t start_ns;
	uint64_t end_ns; /* 0: not known, as of a call that is not shown */
	uint32_t tid;
	uint16_t func; /* row */
};

struct metric_table;
struct kernel_counters;
struct gpu;
struct gpu_table;

struct event {
	const struct ct_hdr *rec;
	const struct process *proc; /* never NULL: an unknown process gets an entry with comm "?" */
	/* name of the record's thread; NULL: it is the leader, whose name is proc->comm, or not
	 * known; untrusted bytes */
	const char *thread;
	/* that the call launches or asks about, or that ran; NULL: none, or not known */
	const struct kernel_name *kernel;
	/* of the call; of device work that of its cause; NULL: none */
	const struct stack *stack;
	const struct cause *cause; /* of device work; NULL: not known */
	/* Of a call its number in its process, from 1 on in the order of the records; of device
	 * work that of its cause. 0: none. The correlation id that formats write: the same live
	 * and on replay. */
	uint32_t number;
	/* Of a call: what it works on, as far as records told (CT_UNKNOWN). Of device work: as
	 * in its record. */
	uint32_t device, context, stream;
	/* that `device` is, of device work and calls; of samples and events of the machine
	 * theirs; NULL: not known */
	const struct gpu *gpu;
	const struct gpu_table *gpus; /* which GPUs there are (event/gpus.h); NULL: not known */
	/* of a call: of the current context, where the program made that; 0: the device's own,
	 * or not known */
	uint64_t context_handle;
	/* of a kernel (event/kernel_counters.h); NULL: none */
	const struct kernel_counters *counters;
	/* names of metrics (event/device.h); NULL: none are known */
	const struct metric_table *metrics;
};

/* The outlet of the stages that deal in events. The event and its record are valid during the
 * call. Returns as emit_fn. */
typedef int (*event_fn)(void *ctx, struct event *ev);

#define EVENT_MAX_FIELDS 64

/* The fields of any record, kind by kind; calls go to api_decode(). Returns their number. */
int event_fields(const struct event *, struct field *out, int max);

/* Checks one record that claims to be at `rec` with `avail` bytes: its size, that its kind's
 * fixed part and all announced words and reads fit. Returns 0, or -EBADMSG. Nothing may look at
 * a record that was not checked. */
int record_check(const void *rec, size_t avail);

/* The place of a row in the order of time (CLOCK_MONOTONIC, ns): the end of what the record
 * tells of, of an entry its moment. 0: it has none, as definitions have. */
uint64_t event_place_ns(const struct ct_hdr *);

/* ---- the process table (event/process.c) ---- */
struct process_table;
struct process_table *process_table_open(void); /* NULL: no memory */
void process_table_close(struct process_table *);
/* Updates the table from CT_PROCESS, CT_PROCESS_INFO, CT_EXEC, CT_EXIT, CT_FORK records and from
 * the leader's CT_THREAD_NAME; others are ignored. */
int process_table_record(struct process_table *, const struct ct_hdr *);
/* How many records it has learned from: each is to be entered once. */
uint64_t process_table_learned(const struct process_table *);
/* The process of a pid, with its unique number; makes an entry with comm "?" for an unknown one.
 * NULL: no memory. */
const struct process *process_table_find(struct process_table *, uint32_t pid);

/* ---- the names of threads (event/threads.c), as CT_THREAD_NAME records tell them ---- */
struct thread_table;
struct thread_table *thread_table_open(void); /* NULL: no memory */
void thread_table_close(struct thread_table *);
/* Learns from CT_THREAD_NAME records; others are ignored. The names of many threads are kept;
 * those not asked for longest go first. */
void thread_table_record(struct thread_table *, const struct ct_hdr *);
/* The name of a thread that is not its process's leader, NUL-terminated, valid until the next
 * call; NULL: not known. */
const char *thread_table_find(struct thread_table *, uint32_t pid, uint32_t tid);

/* ---- the names of kernels (event/names.c), as CT_NAME records tell them ---- */
struct name_table;
struct name_table *name_table_open(void); /* NULL: no memory */
void name_table_close(struct name_table *);
/* Learns from CT_NAME, CT_PROCESS, CT_EXEC and CT_EXIT records; others are ignored. Returns 0 or
 * -ENOMEM. */
int name_table_record(struct name_table *, const struct ct_hdr *);
/* The kernel that a call's record names; NULL: it names none, or one that is not known. */
const struct kernel_name *name_table_find(struct name_table *, const struct ct_call *);
/* That of a handle in a process; NULL: not known. */
const struct kernel_name *name_table_handle(struct name_table *, uint32_t pid, uint64_t handle);

/* ---- stacks (event/stacks.c), as CT_FRAME and CT_STACK records tell them ---- */
/* Remembered at least, the newest ones; whoever makes the records uses no older ids. */
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

/* ---- the filter (event/filter.c): what the user asked to see ---- */
struct filter {
	const uint64_t *shown;	/* bitmap over the rows of api_funcs; NULL: all */
	struct ct_filter calls; /* with a least size, functions without one are not shown */
	const char *comm_glob;	/* NULL: off; fnmatch(3) on the process's name */
	uint32_t tid;		/* 0: off (initial namespace) */
	const pid_t *pids;	/* as users see them; npids 0: all */
	int npids;
	/* of device work, and of calls of which it is known, what concerns this device */
	bool one_device;
	uint32_t device;
	bool nested; /* show calls inside calls */
	/* show stored calls of functions that this version does not know */
	bool foreign;
	bool by_process; /* samples of what a process has of a device too */
	/* calls come as CT_TALLY: those that were sent all the same are not shown too */
	bool counted;
	/* for a recording: hidden calls too that later ones' devices are known by */
	bool stores;
	/* names, frames and stacks too, for a sink that stores what it is given */
	bool definitions;
};
bool filter_match(const struct filter *, const struct event *);
/* The same of the device alone, which is known later: calls are numbered whether they are shown
 * or not. */
bool filter_match_device(const struct filter *, const struct event *);

/* Processes that ran while CUDA's code had no probes yet: from CT_UNPROBED records. */
struct unprobed_sum {
	uint64_t processes;  /* all */
	uint64_t ended;	     /* of them, had ended before there were probes */
	uint64_t longest_ns; /* of the others: the longest time from the mapping to the probes */
	bool more;	     /* there may have been others */
};
static inline bool unprobed_any(const struct unprobed_sum *u)
{
	return u->processes || u->more;
}
void unprobed_add(struct unprobed_sum *, const struct ct_unprobed *);
/* "3 processes ran up to 12.3 ms before their calls were seen, 2 ended before that"; "" where
 * there are none. Returns its length. */
#define UNPROBED_TEXT 160
size_t unprobed_text(char *, size_t size, const struct unprobed_sum *);

/* What the probes cost the traced programs: hits times what an empty pair was measured to cost,
 * and how much of the time those are on that can be taken off. */
struct probe_cost {
	bool told;		/* there is a duty or a limit; false: the rest says nothing */
	double duty;		/* of the time; 1: all probes are on */
	double cost;		/* of the programs' CPU time, lately; below 0: not known yet */
	double max_cost;	/* the limit; 0: there is none */
	uint64_t ns, cpu_ns;	/* since tracing began */
	unsigned int functions; /* whose probes are not on all the time */
};

/* What was lost and dropped, by cause; part of every sink's end. */
struct losses {
	struct unprobed_sum unprobed; /* whose calls were missed is not known, nor how many */
	uint64_t lost[CT_LOSS_END];
	uint64_t calls; /* calls seen by the kernel side */
	uint64_t folded, filtered, sent, unfinished;
	uint64_t untold; /* forks, execs and ends of processes that were lost */
	/* calls that the kernel side counted without their kernel, thread...: their process has
	 * its share */
	uint64_t beyond;
	uint64_t received; /* records that arrived */
	uint64_t shown;	   /* rows that the sink printed */
	uint64_t counted;  /* calls that the kernel side counted and did not send */
	/* what an empty pair of probes was measured to cost a call; 0: not known */
	uint64_t pair_ns;
	struct probe_cost probes;
	uint64_t files; /* that have probes now */
	/* files with functions that were not probed, because their users' programs map too many:
	 * what was called in them is not known */
	uint64_t refused;
};
/* Adds to a number of losses; it stays at the most that there can be, since counts come from a
 * traced program or a file too. */
static inline void losses_add(uint64_t *to, uint64_t n)
{
	*to = n > UINT64_MAX - *to ? UINT64_MAX : *to + n;
}
uint64_t losses_total(const struct losses *); /* all causes but CT_LOSS_ORPHAN */
/* Those without which sums over calls and device records are wrong: a stack, or a time, is not
 * among them. */
uint64_t losses_of_sums(const struct losses *);
const char *loss_name(enum ct_loss); /* "ring_full", as JSON has it */
const char *loss_text(enum ct_loss); /* "ring buffer full (raise --ring-size)" */

#endif
