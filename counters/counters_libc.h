/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * counters_libc.h - included before anything else in each file of the helper: functions of the C
 * library whose newest version is younger than 2.17 are bound to their first. They lived in
 * libdl and libpthread then, which the helper names as needed.
 */
#if defined(__x86_64__)
#define CT_LIBC_FIRST "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define CT_LIBC_FIRST "GLIBC_2.17"
#endif
__asm__(".symver dlopen, dlopen@" CT_LIBC_FIRST);
__asm__(".symver dlsym, dlsym@" CT_LIBC_FIRST);
__asm__(".symver dlclose, dlclose@" CT_LIBC_FIRST);
__asm__(".symver dlerror, dlerror@" CT_LIBC_FIRST);
__asm__(".symver pthread_create, pthread_create@" CT_LIBC_FIRST);
__asm__(".symver pthread_detach, pthread_detach@" CT_LIBC_FIRST);
__asm__(".symver glob, glob@" CT_LIBC_FIRST);
__asm__(".symver memcpy, memcpy@" CT_LIBC_FIRST);
