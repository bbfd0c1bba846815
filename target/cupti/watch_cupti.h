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

/* F(function) */
#define WATCHED(F)                                    \
	F(cuptiSubscribe)                             \
	F(cuptiSubscribe_v2)                          \
	F(cuptiUnsubscribe)                           \
	F(cuptiActivityRegisterCallbacks)             \
	F(cuptiActivityRegisterCallbacks_v2)          \
	F(cuptiActivityRegisterTimestampCallback)     \
	F(cuptiActivityEnable)                        \
	F(cuptiActivityEnableAndDump)                 \
	F(cuptiActivityEnableContext)                 \
	F(cuptiActivityEnable_v2)                     \
	F(cuptiActivityEnableAndDump_v2)              \
	F(cuptiActivityDisable)                       \
	F(cuptiActivityDisableContext)                \
	F(cuptiActivityDisable_v2)                    \
	F(cuptiActivityEnableRuntimeApi)              \
	F(cuptiActivityEnableDriverApi)               \
	F(cuptiActivityEnableLatencyTimestamps)       \
	F(cuptiActivityEnableHWTrace)                 \
	F(cuptiActivityConfigureUnifiedMemoryCounter) \
	F(cuptiActivitySetAttribute)                  \
	F(cuptiActivitySetAttribute_v2)               \
	F(cuptiSetThreadIdType)                       \
	F(cuptiActivityFlushPeriod)                   \
	F(cuptiActivityFlush)                         \
	F(cuptiActivityFlushAll)                      \
	F(cuptiFinalize)

/* Called on the program's thread, before the function; ends: it is cuptiFinalize, after which CUPTI is as new. */
typedef void (*watch_call_fn)(bool ends);

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
