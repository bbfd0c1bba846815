/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * compat.h - binds functions that moved between glibc's libraries in 2.32 and 2.34 to the versions
 * that every glibc from 2.17 on has, so that one object works on old and new systems. Every file of
 * target/ includes it first. tests/agent/run.sh checks the result.
 */
#ifndef CT_COMPAT_H
#define CT_COMPAT_H

#if defined(__x86_64__)
#define OLD "GLIBC_2.2.5"
#define OLD_NAME "GLIBC_2.12"
#elif defined(__aarch64__)
#define OLD "GLIBC_2.17"
#define OLD_NAME "GLIBC_2.17"
#else
#error "which glibc was this architecture's first?"
#endif
#if !defined(__SANITIZE_ADDRESS__) && !defined(CT_NO_COMPAT)
#define BIND(fn, version) __asm__(".symver " #fn "," #fn "@" version)
BIND(dlopen, OLD);
BIND(dlsym, OLD);
BIND(dladdr, OLD);
BIND(dlerror, OLD);
BIND(dlclose, OLD);
BIND(pthread_create, OLD);
BIND(pthread_detach, OLD);
BIND(pthread_once, OLD);
BIND(pthread_sigmask, OLD);
BIND(pthread_key_create, OLD);
BIND(pthread_getspecific, OLD);
BIND(pthread_setspecific, OLD);
BIND(pthread_setname_np, OLD_NAME);
#endif

#endif
