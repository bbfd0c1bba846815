/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * filters.h - the words in which the kernel side says that a process is setting a filter of its system calls
 * (bpf/filters.bpf.c). The process maps them all, to be read, and looks at the one in its place.
 */
#ifndef CT_FILTERS_H
#define CT_FILTERS_H

#define FILTER_PLACES 4096u
#define FILTER_BYTES (FILTER_PLACES * 8)
#define FILTER_OF_ONE 1 /* a thread of it has a filter, or is about to have one */
#define FILTER_OF_ALL 2 /* all its threads, ours too */
#define FILTER_NO_EXIT \
	4 /* a filter forbids the end of a thread, or it is not known whether it does */

#endif
