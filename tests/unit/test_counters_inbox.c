/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_counters_inbox.c - what the helper for hardware counters says over its socket, also if it says what no helper says.
 */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../user/source/counters/counters_inbox.h"
#include "../../user/util/msg.h"
#include "unit.h"

static char said[2048], lines[2048];
static struct counters_inbox inbox;
static int helper, ours, emitted, refuse;
static bool paused;

static void take_said(const char *text)
{
	snprintf(said + strlen(said), sizeof(said) - strlen(said), "%s", text);
}

static void take_line(void *ctx, const char *text, size_t len)
{
	CHECK(ctx == &inbox && len == strlen(text));
	snprintf(lines + strlen(lines), sizeof(lines) - strlen(lines), "%s\n", text);
}

static int emit(void *ctx, const struct ct_hdr *rec)
{
	(void)ctx;
	CHECK(!record_check(rec, rec->size));
	emitted++;
	return refuse;
}

static void begin(void)
{
	int fds[2];

	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds));
	ours = fds[0];
	helper = fds[1];
	memset(&inbox, 0, sizeof(inbox));
	inbox.paused = &paused;
	inbox.line = take_line;
	inbox.line_ctx = &inbox;
	emitted = refuse = 0;
	said[0] = lines[0] = '\0';
	msg_taker = take_said;
}

static void end(void)
{
	msg_taker = NULL;
	close(ours);
	if (helper >= 0)
		close(helper);
}

/* One message, and what becomes of it. */
static void says(const void *msg, size_t n)
{
	CHECK_EQ((ssize_t)n, send(helper, msg, n, MSG_NOSIGNAL));
	CHECK_EQ(1, counters_inbox_next(&inbox, ours));
	CHECK_EQ(0, counters_inbox_records(&inbox, emit, NULL));
}

union text {
	struct counters_text t;
	char room[sizeof(struct counters_text) + 2048];
};

static void text(uint32_t level, const char *words)
{
	union text m = { .t = { .h = { .kind = COUNTERS_TEXT }, .level = level } };

	m.t.len = (__u32)strlen(words);
	m.t.h.size = (__u16)((sizeof(m.t) + m.t.len + 7) & ~(size_t)7);
	memcpy(m.t.text, words, m.t.len);
	says(&m, m.t.h.size);
}

static void test_texts(void)
{
	begin();
	text(COUNTERS_WARN, "no\x1b[2J device\x7f");
	text(COUNTERS_NOTE, "note");
	text(COUNTERS_LINE, "sm  %");
	text(COUNTERS_VERBOSE, "not shown");
	text(77, "not shown");
	CHECK(!inbox.failed);
	text(COUNTERS_ERROR, "no driver");
	CHECK(inbox.failed);
	inbox.optional = true;
	inbox.line = NULL;
	text(COUNTERS_ERROR, "no driver");
	text(COUNTERS_LINE, "for nobody");
	CHECK_TEXT(
		"cudatrace: warning: no?[2J device?\ncudatrace: note\ncudatrace: error: no driver\n"
		"cudatrace: warning: no driver\n",
		said);
	CHECK_TEXT("sm  %\n", lines);
	CHECK_EQ(0, inbox.malformed);
	CHECK_EQ(0, emitted);
	end();
}

/* Texts that claim more than they have: counted, and not said. */
static void test_bad_texts(void)
{
	static const struct {
		uint16_t size;
		uint32_t len;
	} rows[] = { { 32, 0 },	     { 40, 1 },	     { 40, UINT32_MAX },     { 48, 9 },
		     { 1064, 1025 }, { 2080, 2040 }, { 48, UINT32_MAX - 39 } };

	begin();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		union text m = { .t = { .h = { .size = rows[i].size, .kind = COUNTERS_TEXT },
					.len = rows[i].len } };

		CASE_ROW("%u of %u", rows[i].len, rows[i].size);
		says(&m, rows[i].size);
		CHECK_EQ(i + 1, inbox.malformed);
	}
	CHECK(!inbox.failed);
	CHECK_TEXT("", said);
	end();
}

/* Records of these kinds are passed on; others are counted. */
static void test_kinds(void)
{
	struct {
		struct ct_lost good, forged;
		struct ct_exit exit;
		struct ct_hdr ready, bye;
	} m = { .good = { .h = { .size = sizeof(m.good), .kind = CT_LOST },
			  .cause = CT_LOSS_TIME,
			  .count = UINT64_MAX },
		.forged = { .h = { .size = sizeof(m.forged), .kind = CT_LOST },
			    .cause = CT_LOSS_TIME,
			    .count = 5 },
		.exit = { .h = { .size = sizeof(m.exit), .kind = CT_EXIT, .pid = 1, .tid = 1 } },
		.ready = { .size = sizeof(m.ready), .kind = COUNTERS_READY },
		.bye = { .size = sizeof(m.bye), .kind = COUNTERS_BYE } };
	struct ct_counter c = { .h = { .size = sizeof(c), .kind = CT_COUNTER, .pid = 7 } };
	struct ct_event e = { .h = { .size = sizeof(e), .kind = CT_EVENT } };

	begin();
	says(&m, sizeof(m));
	CHECK_EQ(2, emitted);
	CHECK_EQ(UINT64_MAX, inbox.lost[CT_LOSS_TIME]);
	CHECK_EQ(1, inbox.malformed);
	CHECK(inbox.ready && inbox.bye);
	says(&c, sizeof(c));
	says(&e, sizeof(e));
	CHECK_EQ(4, emitted);
	e.h.pid = 7; /* it is the machine's */
	says(&e, sizeof(e));
	CHECK_EQ(4, emitted);
	CHECK_EQ(2, inbox.malformed);
	CHECK_EQ(4, inbox.received);
	end();
}

/* Sizes that lead out of the message: the rest of it is not looked at. */
static void test_sizes(void)
{
	static const uint16_t sizes[] = { 0, 1, 8, 31, 36, 40, 72, 65528, 65535 };
	static char big[COUNTERS_MESSAGE_MAX + 64];

	begin();
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct ct_hdr m[2] = { { .size = sizes[i], .kind = COUNTERS_READY },
				       { .size = sizeof(m[1]), .kind = COUNTERS_BYE } };

		CASE_ROW("%u", sizes[i]);
		m[0].size = sizes[i];
		if (sizes[i] == 40)
			m[0].kind = CT_LOST;
		says(m, sizeof(m));
		CHECK(inbox.malformed == i + 1 && !inbox.bye);
	}
	/* fewer bytes than a head; and a message that is too long is cut */
	says(big, 1);
	says(big, 31);
	says(big, sizeof(big));
	CHECK_EQ(sizeof(inbox.message), inbox.len);
	CHECK_EQ(sizeof(sizes) / sizeof(sizes[0]) + 3, inbox.malformed);
	CHECK_EQ(0, emitted);
	end();
}

/* Records wait while the trace is paused, and stay where emit failed. */
static void test_pause(void)
{
	struct ct_event e[3];

	begin();
	for (int i = 0; i < 3; i++)
		e[i] = (struct ct_event){ .h = { .size = sizeof(e[0]), .kind = CT_EVENT } };
	paused = true;
	says(e, sizeof(e));
	CHECK_EQ(0, emitted);
	paused = false;
	refuse = -ENOMEM;
	CHECK_EQ(-ENOMEM, counters_inbox_records(&inbox, emit, NULL));
	CHECK_EQ(1, emitted);
	refuse = 0;
	CHECK_EQ(0, counters_inbox_records(&inbox, emit, NULL));
	CHECK_EQ(3, emitted);
	CHECK_EQ(0, counters_inbox_next(&inbox, ours));
	end();
}

/* It dies before it has read that it is to begin: what it had said is read. */
static void test_dies_unread(void)
{
	struct ct_hdr bye = { .size = sizeof(bye), .kind = COUNTERS_BYE };

	begin();
	CHECK_EQ(1, send(ours, "", 1, 0));
	CHECK_EQ((ssize_t)sizeof(bye), send(helper, &bye, sizeof(bye), 0));
	close(helper);
	helper = -1;
	CHECK_EQ(1, counters_inbox_next(&inbox, ours));
	CHECK_EQ(0, counters_inbox_records(&inbox, emit, NULL));
	CHECK(inbox.bye);
	CHECK_EQ(-ENODATA, counters_inbox_next(&inbox, ours));
	end();
}

int main(void)
{
	msg_unlimited = true;
	RUN(test_texts);
	RUN(test_bad_texts);
	RUN(test_kinds);
	RUN(test_sizes);
	RUN(test_pause);
	RUN(test_dies_unread);
	return unit_end();
}
