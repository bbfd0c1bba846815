/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stub.h - finds the kernel's name in the names that CUDA's compilers give to the host's side of a
 * kernel. Works on text only.
 *
 * For `void k(int *)` nvcc makes the host function _Z1kPi, which calls __device_stub__Z1kPi(int *),
 * whose symbol is _Z20__device_stub__Z1kPiPi, or _ZL20... where it is static. The latter launches.
 * Up to nvcc 12 (and with -D__NV_LEGACY_LAUNCH) a launch passes the address of _Z1kPi. From nvcc 13
 * on it passes what the static variable __handle in the stub holds:
 * _ZZ20__device_stub__Z1kPiPiE8__handle. clang passes the address of its stub, the kernel's own
 * symbol with the name changed: _Z16__device_stub__kPi.
 */
#ifndef CT_STUB_H
#define CT_STUB_H

#include "../../util/types.h"
#include "../../../wire/cudatrace.h"

/* Each function copies a name with its NUL into `out` and returns its length; 0: `symbol` is no
 * such symbol, or the name does not fit. `symbol` need not be NUL-terminated. */

/* The kernel of the variable that holds a handle. */
size_t stub_of_handle(const char *symbol, size_t len, char *out, size_t size);
/* The kernel of any symbol that belongs to nvcc's stub: the stub itself, a part of it, one of its
 * variables. */
size_t stub_of_any(const char *symbol, size_t len, char *out, size_t size);
/* The kernel of clang's stub. */
size_t stub_of_clang(const char *symbol, size_t len, char *out, size_t size);
/* The host function's symbol without the mark of a static function (_ZL1kPi, _ZN1nL1kEPi), which
 * the kernel's name does not have. For any other symbol a copy. */
size_t stub_plain(const char *symbol, size_t len, char *out, size_t size);
/* The name that `mangled` would have if it were declared extern "C"; only for names without
 * templates. */
size_t stub_extern_c(const char *mangled, size_t len, char *out, size_t size);

/* How two names for the same kernel may differ: what stub_of_handle() made of a symbol, and what
 * the device's code calls it. STUB_OTHER: these are different kernels. */
enum stub_match { STUB_OTHER, STUB_SPELLING, STUB_SAME };
enum stub_match stub_compare(const char *from_symbol, const char *device);

/* Whether this may be a kernel's name: 1 to CT_NAME_MAX - 1 characters of those that PTX's
 * identifiers and ELF symbols of C and C++ are made of, no digit first. */
bool stub_is_name(const char *s, size_t len);

#endif
