/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_stat.c - the user side of `stat` on a large machine: the sums of 10 000 processes of 40
 * functions each are booked and made tables of. Prints the time and the memory that took.
 */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "../../user/sums/report.h"

#define PROCESSES 10000
#define FUNCTIONS 40

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(void)
{
	struct ct_call_count t = { .h = { .kind = CT_CALL_COUNT,
					  .size = sizeof(t),
					  .start_ns = 1,
					  .end_ns = 1000000000 },
				   .sums = { .calls = 10,
					     .timed = 10,
					     .ns = 1000,
					     .min_ns = 50,
					     .max_ns = 200,
					     .squares = { 200000, 0 } } };
	struct process proc = { .comm = "python3" };
	struct book *book = book_open(BOOK_BY_FUNCTION, false, 1 << 19);
	double begin = now_s();
	struct report *report;
	struct rusage use;

	for (uint32_t p = 0; p < PROCESSES && book; p++) {
		proc.pid = proc.shown_pid = t.h.pid = 1000 + p;
		for (uint16_t f = 0; f < FUNCTIONS; f++) {
			t.func = f;
			if (book_event(book, &(struct event){ .rec = &t.h, .proc = &proc }) < 0)
				return 1;
		}
	}
	report = book ? report_make(book) : NULL;
	if (!report || book->no_room)
		return 1;
	getrusage(RUSAGE_SELF, &use);
	printf("%-58s %.2f s, %ld MiB\n", "10 000 processes x 40 functions, user side",
	       now_s() - begin, use.ru_maxrss / 1024);
	report_free(report);
	book_close(book);
	return 0;
}
