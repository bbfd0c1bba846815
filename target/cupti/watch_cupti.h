/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * watch_cupti.h - hooks on those functions of libcupti by which a program uses CUPTI itself. A hook sees
 * the call before the function's first instruction, whichever way the program found the function,
 * and may wait; then the function is executed, unchanged. The hooks are those of target/common/jump.h and,
 * for functions without room for a jump and on aarch64, of target/common/slots.h. Calls that come from the
 * agent and from libcupti itself are passed on unseen.
 */
#ifndef CT_WATCH_H
#define CT_WATCH_H

#include <stdbool.h>
#include <stdint.h>

/* What a call does, as far as it matters here. `kind`, `on`: which argument they are. */
enum watch_what {
	WATCH_OTHER, /* uses CUPTI, and that is all */
	WATCH_SUBSCRIBE,
	WATCH_UNSUBSCRIBE,
	WATCH_BUFFERS, /* registers the functions that get the buffers */
	WATCH_CLOCK,   /* registers a clock */
	WATCH_ENABLE,  /* a kind of records */
	WATCH_DISABLE,
	WATCH_FLUSH,
	WATCH_FINALIZE,
};

/* F(function, what, number of the argument that is the kind of records) */
#define WATCHED(F)                                                    \
	F(cuptiSubscribe, WATCH_SUBSCRIBE, 0)                         \
	F(cuptiSubscribe_v2, WATCH_SUBSCRIBE, 0)                      \
	F(cuptiUnsubscribe, WATCH_UNSUBSCRIBE, 0)                     \
	F(cuptiActivityRegisterCallbacks, WATCH_BUFFERS, 0)           \
	F(cuptiActivityRegisterCallbacks_v2, WATCH_OTHER, 0)          \
	F(cuptiActivityRegisterTimestampCallback, WATCH_CLOCK, 0)     \
	F(cuptiActivityEnable, WATCH_ENABLE, 0)                       \
	F(cuptiActivityEnableAndDump, WATCH_ENABLE, 0)                \
	F(cuptiActivityEnableContext, WATCH_ENABLE, 1)                \
	F(cuptiActivityEnable_v2, WATCH_ENABLE, 1)                    \
	F(cuptiActivityEnableAndDump_v2, WATCH_ENABLE, 1)             \
	F(cuptiActivityDisable, WATCH_DISABLE, 0)                     \
	F(cuptiActivityDisableContext, WATCH_DISABLE, 1)              \
	F(cuptiActivityDisable_v2, WATCH_DISABLE, 1)                  \
	F(cuptiActivityEnableRuntimeApi, WATCH_OTHER, 0)              \
	F(cuptiActivityEnableDriverApi, WATCH_OTHER, 0)               \
	F(cuptiActivityEnableLatencyTimestamps, WATCH_OTHER, 0)       \
	F(cuptiActivityEnableHWTrace, WATCH_OTHER, 0)                 \
	F(cuptiActivityConfigureUnifiedMemoryCounter, WATCH_OTHER, 0) \
	F(cuptiActivitySetAttribute, WATCH_OTHER, 0)                  \
	F(cuptiActivitySetAttribute_v2, WATCH_OTHER, 0)               \
	F(cuptiSetThreadIdType, WATCH_OTHER, 0)                       \
	F(cuptiActivityFlushPeriod, WATCH_OTHER, 0)                   \
	F(cuptiActivityFlush, WATCH_FLUSH, 0)                         \
	F(cuptiActivityFlushAll, WATCH_FLUSH, 0)                      \
	F(cuptiFinalize, WATCH_FINALIZE, 0)

/* Called on the program's thread, before the function. `args` are its integer arguments. */
typedef void (*watch_call_fn)(enum watch_what, unsigned int kind_arg, const uint64_t *args);

/*
 * Puts the hooks on, for one thread at a time. lib: of dlopen(); it is never closed. *blind gets the
 * name of a function whose calls cannot be seen, *by_slots of one whose calls by pointers of dlsym()
 * cannot; NULL: there is none. Returns 0 or -errno: then there are no hooks.
 */
int watch_on(void *lib, watch_call_fn, const char **blind, const char **by_slots);
/* Returns 0, or -errno where some stay: their calls go on as before, and are not looked at. */
int watch_off(void);
/* Called once a second: hooks the slots of objects that were loaded meanwhile. */
void watch_look(void);
/* Returns whether two functions of ours are registered in libcupti for buffers (1), two of somebody
 * else (-1), or none that can be found (0): reads the writable memory of libcupti. */
int watch_registered(const void *request, const void *complete);

#endif
