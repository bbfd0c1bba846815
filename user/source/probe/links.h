/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * links.h - inside attach: how each kind (attach_kind.h) puts programs on a set of offsets of
 * one file. attach.c decides what goes into a set (one per file and group); these functions only
 * make and break the links of one set.
 */
#ifndef CT_LINKS_H
#define CT_LINKS_H

#include "attach.h"

struct link_set {
	int *fds; /* links and perf events: closing them detaches */
	int nfds;
	/* tracefs: the event's name, to be removed after the descriptors are closed; "" else */
	char event[64];
};

struct link_target {
	int file_fd; /* the ELF file */
	const struct elf_probe *probes;
	int nprobes;
	pid_t pid; /* 0: all processes (and all later ones) that map the file */
	/* goes into the cookies: differs from that of links that these replace */
	unsigned generation;
	bool entry_only; /* no return probes at all */
};

/*
 * Makes all links of the set or none. On failure returns -errno and, where one probe is to blame
 * and it is known, its index in *bad (else -1). Cookies are CT_COOKIE() where the kind has them;
 * tracefs has none (the kernel side then finds the function by address, see
 * ct_config.by_address).
 */
int links_make(enum attach_kind, const struct attach_progs *, const struct link_target *,
	       struct link_set *, int *bad);
/* One of each kind, only for links_make(). */
int links_session(const struct attach_progs *, const struct link_target *, struct link_set *,
		  int *bad);
int links_multi(const struct attach_progs *, const struct link_target *, struct link_set *,
		int *bad);
int links_tracefs(const struct attach_progs *, const struct link_target *, struct link_set *,
		  int *bad);
int links_perf(const struct attach_progs *, const struct link_target *, struct link_set *,
	       int *bad);

/* Keeps tracefs open for the rest of this process's life: what it takes to open it is not needed
 * any more. Returns 0 or -errno. */
int links_tracefs_hold(void);

void links_close(struct link_set *);
/* Closing a link waits for the kernel's grace periods (40 ms and more): done on the side. The
 * set is a copy of the caller's. */
void links_close_later(const struct link_set *, unsigned delay_us);
/* Descriptors that links_close_later() has not closed yet. */
unsigned links_closing(void);
/* Closes what links_close_later() was given, whether it is due or not, and waits until that is
 * done. */
void links_close_now(void);
/* Behind the closing of its descriptors: removes the tracefs event; frees. */
void links_removed(struct link_set *);

#endif
