/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * api.h - what CUDA's functions are: the table of functions and everything that follows from a row.
 *
 * domains.def names the libraries. runtime.def and the like hold one row per function (and per
 * changed signature), xlat.def the enums, flags and error names, struct.def the layouts of the
 * structs that are decoded. A row names its arguments in the order of CUDA's header. From it follow
 * the symbols to attach, the capture spec of the kernel side, the class filter, and the names and
 * types in every sink. No other code in the project names a function.
 *
 * This room knows CUDA's interface and the two ABIs (x86-64 System V, AAPCS64); it knows no
 * source, no sink and no process.
 */
#ifndef CT_API_H
#define CT_API_H

#include "../util/types.h"
#include "../../wire/cudatrace.h"
#include "domain.h"
#include "field.h"

struct ct_spec; /* wire/control.h */

/* Classes, in the order in which `list` and --help name them. */
enum api_class {
	API_MEMORY,
	API_COPY,
	API_SET,
	API_LAUNCH,
	API_STREAM,
	API_EVENT,
	API_SYNC,
	API_GRAPH,
	API_DEVICE,
	API_CONTEXT,
	API_MODULE,
	API_QUERY,
	API_PEER,
	API_TEXTURE,
	API_PROFILER,
	API_RANGE,
	API_MARK,
	API_COLLECTIVE,
	API_COMMUNICATOR,
	API_OPERATOR,
	API_GEMM,
	API_INTERNAL,
	API_CLASS_END
};

enum api_ret {
	API_RET_STATUS, /* of the domain's error type */
	API_RET_STR,
	API_RET_INT,
	API_RET_PTR,
	API_RET_VOID
};

#define API_MAX_ARGS 24
/* A row's flags beyond those of CT_S_*. */
/* returns a struct in memory, whose address x86-64 passes as a hidden first word */
#define API_SRET 0x100
#define API_ENTRY_ONLY 0x200   /* its arguments say everything: it needs no return probe */
#define API_ENDS_CONTEXT 0x400 /* handles that were looked up in a context are no longer valid */
#define API_GRAPH_LAUNCH 0x800 /* begins the work of a graph */
/* frees what a context had: the context in the argument marked DESTROYED, or the device's own */
#define API_FREES_ALL 0x1000
#define API_NO_RECORD 0x2000 /* of a class that copies, but the device makes no record of it */
/* from this call on the thread's calls make a graph and no device work... */
#define API_BEGINS_CAPTURE 0x4000
#define API_ENDS_CAPTURE 0x8000 /* ...until this call */
/* the error that it returns belongs to an earlier call: the call itself did not fail */
#define API_REPORTS_ERROR 0x10000
/* The direction of a copy if no argument says it, as for cuMemcpyHtoD. Stored as API_WAY_UNKNOWN
 * minus the direction. */
#define API_WAY_SHIFT 17
#define API_WAY_MASK (7u << API_WAY_SHIFT)
/* Flags from which traits.h makes traits. */
#define API_ASYNC 0x100000    /* copies, sets, allocates or frees in the order of a stream */
#define API_LINEAR 0x200000   /* a copy whose first two arguments are destination and source */
#define API_LAUNCHES 0x400000 /* launches a kernel */
#define API_CREATES 0x800000  /* creates an event, a stream or a graph, depending on the class */
#define API_DESTROYS 0x1000000
#define API_POLLS 0x2000000   /* asks whether a stream or an event is done */
#define API_RECORDS 0x4000000 /* records an event */
#define API_LOADS 0x8000000   /* loads device code */
#define API_WAITS_STREAM 0x10000000
#define API_WAITS_EVENT 0x20000000
#define API_WAITS_DEVICE 0x40000000

/* How an argument is passed. This decides in which word or words it is. */
enum api_abi {
	API_ABI_WORD, /* one integer register or stack word */
	/* an aggregate of 9..16 bytes (dim3): two registers, or both words on the stack */
	API_ABI_PAIR,
	API_ABI_MEMORY, /* a larger aggregate: x86-64: on the stack; aarch64: a pointer to a copy */
	API_ABI_FLOAT,	/* a floating-point register: its value is not captured */
};

enum api_dir { API_IN, API_OUT, API_INOUT };

/* What an argument says about kernels' names, or about device memory. `of` names the argument to
 * which the role refers. */
enum api_role {
	API_ROLE_NONE,
	API_ROLE_NAMES, /* a string: the name of the kernel whose handle is in `of` */
	/* another handle of the kernel whose handle is `of`; on a module: it belongs to the
	 * library `of` */
	API_ROLE_SAME_AS,
	API_ROLE_OWNER,	  /* the fat binary, module or library that the row's kernel belongs to */
	API_ROLE_UNLOADS, /* its kernels no longer exist after the call */
	/* memory of the argument's kind and space: an output, or an input if the program chooses
	 * the place. In a struct: the member ptr or dptr */
	API_ROLE_ALLOCATES, /* memory of the call's size is allocated by the call */
	/* memory is freed by the call; with a size, all memory in that many bytes from this
	 * address */
	API_ROLE_FREES,
	API_ROLE_BACKS, /* the handle of the physical memory that is mapped at an address */
	/* an output: another handle of the physical memory at the address in `of` */
	API_ROLE_RETAINS,
	API_ROLE_PITCH, /* an output: bytes from one row to the next */
	/* says which device (an int) or context (a pointer) is the thread's current one */
	/* this one is current after the call, which set it (inputs) or reported it (outputs) */
	API_ROLE_CURRENT,
	/* this context becomes current; when it is popped the one before becomes current again.
	 * `of`: its device */
	API_ROLE_PUSHED,
	API_ROLE_POPPED,     /* this context is no longer current */
	API_ROLE_CONTEXT_OF, /* a context of the device `of` */
	API_ROLE_DESTROYED,  /* this context no longer exists */
};

struct api_struct; /* the layout of a struct, from struct.def */

struct api_arg {
	const char *name; /* as CUDA's header names it */
	/* the name that the table prints (cudaMemcpy's `count` is `size`); often the same string */
	const char *label;
	/* enum field_type of the value, or of what an output pointer points to */
	uint8_t type;
	uint8_t abi; /* enum api_abi */
	uint8_t dir; /* API_OUT, API_INOUT: a pointer to the value, read at return */
	/* size of the value in bytes: 1, 2, 4, 8; or the size of an aggregate or of a list's
	 * element */
	uint16_t width;
	bool is_signed;
	/* API_IN: a pointer to the value (string, struct, array), read at entry */
	bool deref;
	/* API_UNIT_*: what the argument says about the call's size in bytes; 0: nothing */
	uint8_t unit;
	uint8_t role; /* enum api_role */
	/* for roles that concern memory: enum api_memory_kind, enum api_memory_space */
	uint8_t memory, space;
	bool in_context; /* a handle that lives no longer than a context */
	uint16_t max;	 /* bytes read at most, for strings and lists; otherwise 0 */
	/* not passed itself: a string whose address is at this offset, less 1, of what the argument
	 * `of` points to; 0: passed as any other */
	uint16_t text_at;
	/* a list: the name of the argument with the number of its elements; otherwise NULL */
	const char *count;
	/* with a role: the name of the argument to which the role refers; otherwise NULL */
	const char *of;
	/* a union: the name of the argument that selects its member; otherwise NULL */
	const char *by;
	const struct xlat *xlat;
	const struct api_struct *layout; /* of a struct, or of a list's elements; NULL otherwise */
};

/*
 * struct api_arg's `unit`. The size of a call is the product of the values of all arguments with a
 * unit, each multiplied by its unit (cuMemsetD32's N counts words of 4 bytes). The elements of a
 * list with a unit are added up, and a struct computes its own size.
 */
#define API_UNIT_MASK 0x3f	  /* bytes per count */
#define API_UNIT_ZERO_IS_ONE 0x41 /* a height or depth of 0 means that there is no such dimension */
/* if not 0, the size is not known (cudaMemcpy3D with an array counts elements) */
#define API_UNIT_VOID 0x80

struct api_func {
	const char *name; /* the symbol, without _ptsz/_ptds, with _vN */
	uint8_t domain, class, ret, nargs;
	/* CT_S_CALLBACK, CT_S_INTERNAL, CT_S_ALWAYS, CT_S_NOT_READY, and API_SRET and the flags
	 * below it */
	uint32_t flags;
	/* CUDA version / 10 (1180, 1300): the first version with this row, and the first one
	 * without it; 0: no bound */
	uint16_t since, until;
	const struct api_arg *args;
	uint8_t layer; /* enum api_layer */
	/* Of a row that stands for many C++ functions, whose name has a `*`: what precedes that part
	 * of a function's name in the name of its scopes. NULL: of one function. */
	const char *named;
	/* of a GEMM whose name says the type of its matrices: that type's number, plus 1; 0: arguments
	 * say it */
	uint8_t element;
};

/* What calls of a function of a layer say about scopes (docs/internals/scopes.md). Its arguments
 * say the rest, by their names: `message` or `name`, `domain`, `id`, `category`, `eventAttrib`. */
enum api_layer {
	API_LAYER_NONE,	    /* not a function of a layer */
	API_LAYER_PUSH,	    /* opens a range inside the thread's other ranges */
	API_LAYER_POP,	    /* closes the thread's innermost range */
	API_LAYER_START,    /* opens a range, whose id it returns */
	API_LAYER_END,	    /* closes the range `id` */
	API_LAYER_MARK,	    /* an instant */
	API_LAYER_DOMAIN,   /* returns a domain's handle */
	API_LAYER_STRING,   /* returns the handle of a registered text */
	API_LAYER_CATEGORY, /* names a category */
	API_LAYER_PAYLOAD,  /* gives the payload, a text, of what begins next in the thread */
	/* Each call is a scope, from the function's entry to one of its return instructions: these
	 * functions throw, and a replaced return address would end the program. The argument
	 * `symbol` says which function it is (api/symbol.h). */
	API_LAYER_OPERATOR, /* a scope with the name of its schema in the library */
	API_LAYER_NODE,	    /* a scope with the name of its class */
	/* Recorded as calls, and no scopes: an allocator inside the program has given out or taken back
	 * a block of memory; it has no memory left. */
	API_LAYER_BLOCK,
	API_LAYER_NO_MEMORY,
	/* Each call multiplies matrices, and is a scope. Its arguments say what (event/scopes/products/gemms.c),
	 * and `element` of its row. */
	API_LAYER_GEMM,
	/* Each call multiplies matrices or convolves, and is a scope. Earlier calls have
	 * described it: the argument `executionPlan`, or `xDesc`, `wDesc` and `yDesc`, refer to
	 * them (event/scopes/products/descriptors.c). */
	API_LAYER_DESCRIBED,
	API_LAYER_DESCRIBE, /* describes the descriptor in its first argument */
	API_LAYER_DERIVE,   /* makes descriptors, which are known when it returns */
	API_LAYER_FORGET,   /* destroys a descriptor */
	/* Each call of the following functions is a scope. Their arguments: `comm`, `count`,
	 * `datatype`, `op`, `root`, `peer`, `stream`, `nranks`, `rank`. */
	API_LAYER_WHOLE,   /* a collective: each rank has the same `count` elements */
	API_LAYER_PARTS,   /* a collective: `count` elements from each rank, or for each rank */
	API_LAYER_SPREAD,  /* the same, which the library makes of sends and receives */
	API_LAYER_ROOTED,  /* a collective: `count` elements from or to the rank `root` */
	API_LAYER_SEND,	   /* sends to the rank `peer` */
	API_LAYER_RECEIVE, /* receives from the rank `peer` */
	/* begin and end of a group: the end launches what the thread called between them */
	API_LAYER_GROUP_START,
	API_LAYER_GROUP_END,
	API_LAYER_CREATE,  /* makes a communicator, which is an output */
	API_LAYER_ASK,	   /* says something about a communicator */
	API_LAYER_DESTROY, /* destroys a communicator */
};

/* Whether calls of this function of a layer are recorded as calls. */
static inline bool api_layer_reports(const struct api_func *f)
{
	return f->layer == API_LAYER_BLOCK || f->layer == API_LAYER_NO_MEMORY;
}

extern const struct api_func api_funcs[];
extern const int api_nfuncs;

enum api_arch { API_X86_64, API_AARCH64 };
#if defined(__aarch64__)
#define API_ARCH_HERE API_AARCH64
#else
#define API_ARCH_HERE API_X86_64
#endif

/*
 * Finds the row for a symbol of a library. `version` is the CUDA version of that library as
 * 10*major*100+... in CUDA's own form (13000, 12040, 11080), or 0 if unknown (then the newest
 * row is taken). A _ptsz or _ptds suffix is stripped and reported in *per_thread. Returns the
 * row, or -1 when the table has no such function.
 */
int api_lookup(const char *symbol, int version, bool *per_thread);

/* All rows whose name is `name` exactly, starting the search after row `prev` (-1 at first); -1
 * at the end. */
int api_next(const char *name, int prev);

const char *api_class_name(enum api_class); /* the name of the class: "memory" */
int api_class_parse(const char *name);	    /* the class with this name, or -1 */
/* Whether the functions of this class belong to layers. */
static inline bool api_class_of_layers(enum api_class class)
{
	return class >= API_RANGE && class <= API_GEMM;
}

/* Compiles a row into what the kernel side needs. `shown`: the user asked for it. Returns 0, or
 * -E2BIG when a row needs more than the wire allows (a unit test runs it over every row). */
int api_spec(int func, enum api_arch arch, bool shown, struct ct_spec *out);

/* Where the words of a call's record are found in the parameters that a CUPTI callback gets
 * (api/params.c). */
/* the address of the place itself */
enum api_param_how { API_PARAM_ZERO = 0, API_PARAM_SIGN = 1, API_PARAM_ADDRESS = 2 };
struct api_param {
	uint16_t off;
	uint8_t width; /* bytes, extended with zeros or by the sign; 0: the word is not available */
	uint8_t how;   /* enum api_param_how */
};
/* Fills in words[CT_MAX_WORDS]. *kernel: the word with the handle of the kernel that a call is
 * about; -1: none. Returns 0 or -errno. */
int api_params(int func, enum api_arch arch, struct api_param *words, int *kernel);

/* The name of an error code that a row returns: "cudaErrorInvalidValue"; NULL when the headers know
 * no such code. */
const char *api_error_name(unsigned int func, int64_t code);

/* True when the call's return value says that it failed. NotReady is no failure for rows whose
 * answer it is, and neither is the error of an earlier call that cudaGetLastError reports. An
 * unfinished call and one without a return value did not fail. */
bool api_failed(const struct ct_call *);

/* The direction of a copy: the first five as cudaMemcpyKind numbers them. BY_ADDRESS: the driver
 * finds it out from the addresses. */
enum api_way {
	API_WAY_HTOH,
	API_WAY_HTOD,
	API_WAY_DTOH,
	API_WAY_DTOD,
	API_WAY_BY_ADDRESS,
	API_WAY_PTOP,
	API_WAY_UNKNOWN,
	API_WAY_END
};
/* The direction in which calls of a row copy. `kind` is the call's cudaMemcpyKind; it is used
 * only if the row has such an argument. API_WAY_UNKNOWN: the row does not copy, or the direction
 * is not known. */
enum api_way api_way(unsigned int func, uint32_t kind);
/* the same, with the kind from the call's words */
enum api_way api_call_way(const struct ct_call *);

/* Number of bytes that the call moves or allocates, computed if it depends on several arguments
 * (width * height); -1 if the function has no size. */
int64_t api_size(const struct ct_call *, enum api_arch);

/* Memory by what it is... */
enum api_memory_kind {
	API_MEM_DEVICE,
	API_MEM_MANAGED,
	API_MEM_ARRAY,
	API_MEM_POOL,	  /* allocated in the order of a stream */
	API_MEM_GRAPH,	  /* allocated by a graph's node */
	API_MEM_PHYSICAL, /* physical memory without an address of its own, from cuMemCreate */
	/* pinned memory of the host, allocated by the driver or by the program itself */
	API_MEM_HOST,
	API_MEM_REGISTERED,
	/* these hold no memory by themselves */
	API_MEM_IMPORTED, /* memory of another process */
	/* reserved addresses, and addresses with memory mapped behind them */
	API_MEM_RESERVED,
	API_MEM_MAPPED,
	API_MEM_END
};
const char *api_memory_name(enum api_memory_kind); /* "device" */
/* ...and by how it is identified: the same number may mean something else in another space. */
enum api_memory_space {
	API_SPACE_DEVICE,
	API_SPACE_HOST,
	API_SPACE_REGISTERED,
	API_SPACE_ARRAY,
	API_SPACE_IPC,
	API_SPACE_HANDLE,
	API_SPACE_RESERVED,
	API_SPACE_MAPPED,
};

enum api_memory_what {
	API_MEMORY_NONE,
	API_MEMORY_TAKEN,
	API_MEMORY_FREED,
	API_MEMORY_RETAINED,  /* `address` is another handle of the memory at the address `of` */
	API_MEMORY_NOT_TAKEN, /* the call failed: address is 0, bytes is what it asked for */
	API_MEMORY_NOT_FREED, /* the call failed: address is what it should have freed */
	/* everything that belongs to a context is gone: `of` is the context's handle; 0: the
	 * current device's */
	API_MEMORY_ENDED,
};
struct api_memory {
	uint8_t what;	     /* enum api_memory_what */
	uint8_t kind, space; /* FREED: only the space is known */
	uint32_t device;     /* the device that the call itself names; CT_UNKNOWN: none */
	/* bytes: 0 if not known; FREED: size of what is unmapped, otherwise 0 */
	uint64_t address, bytes;
	uint64_t of; /* MAPPED: the handle of the memory behind it */
};
/* What a call did to memory. Returns `what`. A call that did not return did nothing. */
enum api_memory_what api_memory(const struct ct_call *, enum api_arch, struct api_memory *);
/* What the kernel side knows about a row's calls when it counts them: 1: they allocate memory,
 * -1: they free it (ct_spec.memory_how), 0: neither. *host: it is pinned memory of the host. */
int api_memory_sign(unsigned int func, bool *host);
/* Adds the rows whose calls do something to memory to a bitmap over the rows. */
void api_remembering(uint64_t *set);
/* Adds the functions that make or give back streams, events, graphs or device code (traits.h). */
void api_handling(uint64_t *set);

/* The kernel that a call is about: the value of its first argument of type FIELD_FUNC, also in a
 * struct, inputs before outputs. False: it has none, it is NULL, or it could not be read. */
bool api_kernel(const struct ct_call *, enum api_arch, uint64_t *handle);
/* These return true if calls of the row can be about a kernel, if an argument says its name, and
 * if they unload kernels. */
bool api_has_kernel(int func);
bool api_says_name(int func);
bool api_forgets(int func);

/* What a call teaches about the names of kernels. */
enum api_name_event_kind {
	API_NAME_EVENT_NONE,
	API_NAME_EVENT_NAME, /* `handle` is the kernel `name`, which belongs to `owner` */
	/* `handle` is another handle of the kernel whose handle is `of` */
	API_NAME_EVENT_SAME,
	API_NAME_EVENT_PART,	      /* what belongs to `handle` belongs to the library `of` */
	API_NAME_EVENT_UNLOADED,      /* what belongs to `owner` is gone */
	API_NAME_EVENT_CONTEXT_ENDED, /* what was looked up in a context is gone */
};
struct api_name_event {
	uint8_t kind;	 /* enum api_name_event_kind */
	bool in_context; /* NAME, SAME: `handle` lives no longer than a context */
	/* NAME: the name was cut; the rest may have come as CT_MORE pieces of the read `read` */
	bool cut;
	uint8_t read;
	uint32_t len; /* of name */
	/* in the record, not NUL-terminated, untrusted; NULL: could not be read */
	const char *name;
	uint64_t handle, of, owner; /* owner 0: not known */
};
/* Returns the kind. A call that failed, or whose outputs are not there, teaches nothing. */
enum api_name_event_kind api_name_event(const struct ct_call *, enum api_arch,
					struct api_name_event *);
/* Adds the rows whose calls teach names to a bitmap over the rows. */
void api_teaching(uint64_t *set);

/* What a call says about a thread's current device or context. */
enum api_place_kind {
	API_PLACE_NONE,
	API_PLACE_SET,	     /* `value` is the current device or context from now on */
	API_PLACE_IS,	     /* `value` is the current device or context */
	API_PLACE_PUSHED,    /* the context `value` is current until it is popped */
	API_PLACE_POPPED,    /* the context `value` was popped */
	API_PLACE_CONTEXT,   /* the context `value` is on `device` */
	API_PLACE_DESTROYED, /* the context `value` is gone */
	API_PLACE_ENDED,     /* contexts are gone, but it is not known which */
	API_PLACE_LOST,	     /* what is current may have changed: the call's end was not seen */
};
struct api_place {
	uint8_t kind;	 /* enum api_place_kind */
	bool is_device;	 /* SET, TOLD: `value` is a device */
	uint64_t value;	 /* a device's number, or a context's handle; 0 may mean the context NULL */
	uint32_t device; /* PUSHED, CONTEXT: device of the context; CT_UNKNOWN: not known */
};
/* Returns the kind. A call that failed or has not returned yet says nothing. */
enum api_place_kind api_place(const struct ct_call *, enum api_arch, struct api_place *);
/* Adds the rows that change a thread's current device or context to a bitmap over the rows. */
void api_placing(uint64_t *set);
/* True if calls of the row get a stream, as an argument or in a struct. */
bool api_takes_stream(int func);
/* The stream that a call gets, as an argument or in a struct. False: none, or it could not be
 * read. */
bool api_stream(const struct ct_call *, enum api_arch, uint64_t *handle);

/*
 * Decodes a call's arguments and outputs into fields, inputs in the order of the header, then
 * outputs, then (unless CT_ENTER, unfinished, or entry only) the return value as the last field,
 * named "returned". The record must have passed record_check(). Strings point into the record.
 * Returns the number of fields written, at most max (64 always suffices; structs take two more
 * than their members).
 */
int api_decode(const struct ct_call *, enum api_arch, struct field *out, int max);

#endif
