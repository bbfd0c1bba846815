/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unprobed.h - inside discover: which processes had a file mapped before it had its probes, and for
 * how long. It uses the kernel's mmap records, which have times, and may be from processes that
 * have ended since. Bounded memory.
 */
#ifndef CT_UNPROBED_H
#define CT_UNPROBED_H

#include "watch.h"

struct unprobed;

/* A process mapped a file at from_ns, which had its probes at to_ns. Or nobody could look at the
 * file before that moment, and its name is that of a library of CUDA's. */
typedef void (*unprobed_fn)(void *ctx, pid_t pid, uint64_t from_ns, uint64_t to_ns);

struct unprobed *unprobed_open(unprobed_fn, void *ctx); /* NULL: no memory */
void unprobed_close(struct unprobed *);

/* Mappings before this moment do not count. Until this is called nothing is reported. */
void unprobed_begin(struct unprobed *, uint64_t at_ns);

/* A process mapped a file. If the file got its probes later than this, it is reported at once.
 * known: nothing needs to be remembered. Returns a number for unprobed_forget(), or 0. */
uint64_t unprobed_mapped(struct unprobed *, const struct watch_map *, bool known);
/* The file of this mapping has been looked at. */
void unprobed_forget(struct unprobed *, uint64_t number);
/* The file has been looked at and gets no probes, whichever process mapped it. */
void unprobed_none(struct unprobed *, uint64_t real_dev, uint64_t real_ino);
/* Was the file of this mapping not looked at yet? */
bool unprobed_waits(const struct unprobed *, uint64_t number);
/* The kernel's records name the file dev, ino (which they do on overlayfs) that mappings have as
 * real_dev, real_ino. */
void unprobed_same(struct unprobed *, uint64_t dev, uint64_t ino, uint64_t real_dev,
		   uint64_t real_ino);
/* A file has its probes: reports all processes that mapped it before. */
void unprobed_probed(struct unprobed *, uint64_t real_dev, uint64_t real_ino, uint64_t at_ns);
/* A file has no probes any more. */
void unprobed_gone(struct unprobed *, uint64_t real_dev, uint64_t real_ino);
/* When a file got its probes the last time; 0: none has. */
uint64_t unprobed_last(const struct unprobed *);
/* No more files get probes: reports the files that could not be examined and have the name of one
 * of CUDA's libraries. */
void unprobed_end(struct unprobed *, uint64_t at_ns);

#endif
