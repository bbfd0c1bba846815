/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_unprobed.c - processes that ran before their calls were seen: who is told of, from mmap
 * records in whatever order they are read; what the records add up to, in words; which of them a
 * filter lets pass.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../user/event/select.h"
#include "../../user/source/discover/gone.h"
#include "../../user/source/discover/unprobed.h"
#include "unit.h"

static char reported[4096];

static void on_reported(void *ctx, pid_t pid, uint64_t from_ns, uint64_t to_ns)
{
	size_t n = strlen(reported);

	(void)ctx;
	snprintf(reported + n, sizeof(reported) - n, "%d %llu-%llu\n", pid,
		 (unsigned long long)from_ns, (unsigned long long)to_ns);
}

static uint64_t map(struct unprobed *u, pid_t pid, uint64_t ino, uint64_t at_ns, const char *name,
		    bool known)
{
	const struct watch_map m = { .pid = pid,
				     .major = 8,
				     .minor = 1,
				     .ino = ino,
				     .generation = 1,
				     .time_ns = at_ns,
				     .name = name };

	return unprobed_mapped(u, &m, known);
}

#define DEV (8ULL << 20 | 1)
#define LIB "/x/libcudart.so.13"

static void expect(const char *want)
{
	CHECK_TEXT(want, reported);
	*reported = 0;
}

static void who_is_reported(void)
{
	struct unprobed *u = unprobed_open(on_reported, NULL);
	uint64_t number;

	/* before the trace began nothing counts, and what began before counts from then */
	map(u, 1, 70, 100, LIB, false);
	unprobed_probed(u, DEV, 70, 200);
	expect("");
	map(u, 2, 71, 100, LIB, false);
	unprobed_begin(u, 300);
	unprobed_probed(u, DEV, 71, 400);
	expect("2 300-400\n");
	/* each that mapped it, and nobody twice */
	map(u, 3, 72, 500, LIB, false);
	map(u, 4, 72, 510, LIB, false);
	map(u, 5, 73, 520, "/x/other", false);
	unprobed_probed(u, DEV, 72, 600);
	expect("3 500-600\n4 510-600\n");
	/* a record that is read when the file has its probes, and its name is known by then */
	CHECK(!map(u, 6, 72, 599, LIB, true));
	expect("6 599-600\n");
	CHECK(!map(u, 7, 72, 601, LIB, true));
	CHECK(!map(u, 8, 72, 700, LIB, false));
	expect("");
	/* of a file that was looked at and has nothing to probe nobody is told, though its name
	 * is like a library's */
	number = map(u, 9, 74, 800, LIB, false);
	CHECK(number && unprobed_waits(u, number));
	unprobed_forget(u, number);
	CHECK(!unprobed_waits(u, number));
	/* what nobody could look at is judged by its name */
	map(u, 10, 75, 900, LIB, false);
	map(u, 11, 76, 910, "/x/libcudafoo.so", false);
	unprobed_end(u, 1000);
	expect("10 900-1000\n");
	unprobed_end(u, 1100);
	expect("");
	unprobed_close(u);
}

/* On overlayfs the records name a file by other numbers than its mappings do. */
static void other_numbers(void)
{
	struct unprobed *u = unprobed_open(on_reported, NULL);

	unprobed_begin(u, 1);
	map(u, 1, 70, 100, LIB, false);
	unprobed_same(u, DEV, 70, 5, 4711);
	unprobed_same(u, DEV, 70, 5, 4711);
	map(u, 2, 70, 110, LIB, false);
	unprobed_probed(u, 5, 4711, 200);
	expect("1 100-200\n2 110-200\n");
	CHECK(!map(u, 3, 70, 150, LIB, true));
	expect("3 150-200\n");
	unprobed_close(u);
}

/* More than are remembered: those whose name is a library's are told of when they are given up. */
static void too_many(void)
{
	struct unprobed *u = unprobed_open(on_reported, NULL);

	unprobed_begin(u, 1);
	map(u, 1, 1, 100, "/x/plain", false);
	map(u, 2, 2, 110, LIB, false);
	for (int i = 0; i < 4096; i++)
		map(u, 3, 3, 200 + (uint64_t)i, "/x/plain", false);
	expect("2 110-4295\n");
	unprobed_close(u);
}

static void add(struct unprobed_sum *s, uint64_t ns, uint32_t processes, uint32_t ended,
		uint32_t more)
{
	const struct ct_unprobed u = { .h = { .size = sizeof(u),
					      .kind = CT_UNPROBED,
					      .start_ns = 1000,
					      .end_ns = 1000 + ns },
				       .processes = processes,
				       .ended = ended,
				       .more = more };

	CHECK(!record_check(&u, sizeof(u)));
	unprobed_add(s, &u);
}

static void expect_text(const struct unprobed_sum *s, const char *want)
{
	char text[UNPROBED_TEXT];

	CHECK(unprobed_text(text, sizeof(text), s) == strlen(want));
	CHECK_TEXT(want, text);
}

static void in_words(void)
{
	struct unprobed_sum s = { 0 };

	expect_text(&s, "");
	CHECK(!unprobed_any(&s));
	add(&s, 12340000, 1, 0, 0);
	CHECK(unprobed_any(&s));
	expect_text(&s, "1 process ran up to 12.3 ms before its calls were seen");
	add(&s, 1000000, 1, 0, 0);
	/* the same process once more, and longer */
	add(&s, 20000000, 0, 0, 0);
	expect_text(&s, "2 processes ran up to 20.0 ms before their calls were seen");
	/* how long one ran that has ended is not known */
	add(&s, 5000000000, 1, 1, 0);
	expect_text(
		&s,
		"2 processes ran up to 20.0 ms before their calls were seen, 1 ended before that");
	add(&s, 0, 0, 0, 1);
	expect_text(&s, "at least 2 processes ran up to 20.0 ms before their calls were seen, at "
			"least 1 ended before that");
	s = (struct unprobed_sum){ 0 };
	add(&s, 1, 1, 1, 0);
	expect_text(&s, "1 process ended before its calls were seen");
	add(&s, 1, 299, 299, 0);
	expect_text(&s, "300 processes ended before their calls were seen");
	s = (struct unprobed_sum){ 0 };
	add(&s, 0, 0, 0, 1);
	CHECK(unprobed_any(&s));
	expect_text(&s, "an unknown number of processes ran before their calls were seen");
	s = (struct unprobed_sum){
		.processes = UINT64_MAX, .ended = 1, .longest_ns = UINT64_MAX, .more = true
	};
	add(&s, UINT64_MAX - 1000, UINT32_MAX, 0, 1);
	expect_text(&s, "at least 18446744073709551614 processes ran up to 18446744073709.6 ms "
			"before their calls were seen, at least 1 ended before that");
}

static void refused(void)
{
	struct ct_unprobed u = {
		.h = { .size = sizeof(u), .kind = CT_UNPROBED, .start_ns = 2, .end_ns = 3 },
		.processes = 1
	};

	CHECK(!record_check(&u, sizeof(u)));
	u.h.end_ns = 1;
	CHECK(record_check(&u, sizeof(u)) == -EBADMSG);
	u.h.end_ns = 3;
	u.ended = 2;
	CHECK(record_check(&u, sizeof(u)) == -EBADMSG);
	u.ended = 1;
	memset(u.comm, 'x', sizeof(u.comm));
	CHECK(record_check(&u, sizeof(u)) == -EBADMSG);
	memset(u.comm, 0, sizeof(u.comm));
	u.h.size = sizeof(u) - 8;
	CHECK(record_check(&u, sizeof(u) - 8) == -EBADMSG);
}

static void filtered(void)
{
	struct ct_unprobed u = { .h = { .size = sizeof(u), .kind = CT_UNPROBED },
				 .ns_pid = 7,
				 .comm = "train" };
	const struct event ev = { .rec = &u.h };
	const pid_t seven = 7, eight = 8;
	struct filter f = { .calls.failed_only = true, .comm_glob = "tr*" };

	CHECK(filter_match(&f, &ev));
	f.comm_glob = "serve";
	CHECK(!filter_match(&f, &ev));
	/* whose it was is not known */
	*u.comm = 0;
	CHECK(filter_match(&f, &ev));
	f = (struct filter){ .pids = &seven, .npids = 1 };
	CHECK(filter_match(&f, &ev));
	f.pids = &eight;
	CHECK(!filter_match(&f, &ev));
	u.ns_pid = 0;
	CHECK(filter_match(&f, &ev));
}

/* A file of a process that has ended, by its name: it alone, and nothing else that has the name
 * now. */
static void gone(void)
{
	char path[] = "/tmp/test_unprobed.XXXXXX";
	int fd = mkstemp(path), got;
	struct stat st, found;
	uint64_t dev;

	CHECK(fd >= 0 && !fstat(fd, &st));
	dev = (uint64_t)(st.st_dev >> 8 & 0xfff) << 20 | (st.st_dev & 0xff) |
	      (st.st_dev >> 12 & 0xfff00);
	got = gone_open(path, dev, st.st_ino);
	/* a kernel before 5.12 has no RESOLVE_CACHED, and statx(2) may not tell the mount */
	if (got >= 0)
		CHECK(!fstat(got, &found) && found.st_ino == st.st_ino);
	CHECK(gone_open(path, dev, st.st_ino + 1) < 0);
	CHECK(gone_open(path, dev + 1, st.st_ino) < 0);
	CHECK(!stat("/dev/null", &st) && gone_open("/dev/null", dev, st.st_ino) < 0);
	CHECK(gone_open("/proc/self/exe", dev, st.st_ino) < 0);
	CHECK(gone_open("/nowhere/at/all", dev, 1) < 0);
	if (got >= 0)
		close(got);
	close(fd);
	unlink(path);
}

int main(void)
{
	RUN(who_is_reported);
	RUN(other_numbers);
	RUN(too_many);
	RUN(in_words);
	RUN(refused);
	RUN(filtered);
	RUN(gone);
	return unit_end();
}
