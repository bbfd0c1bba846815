/* SPDX-License-Identifier: BSD-2-Clause */
/* findings.c - see findings.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "findings.h"
#include "../render/table.h"
#include "../util/msg.h"

static const char *const confidences[] = { "measured", "estimated", "inferred" };

static struct cell integer_or_null(int64_t n)
{
	return n < 0 ? (struct cell){ .is = CELL_NULL } : cell_number((uint64_t)n);
}

#define COLUMN(name, value)                                       \
	static struct cell name(const void *row, const void *ctx) \
	{                                                         \
		const struct finding *f = row;                    \
                                                                  \
		(void)ctx;                                        \
		return value;                                     \
	}
COLUMN(get_id, cell_string(f->id))
COLUMN(get_claim, cell_string(f->claim))
COLUMN(get_share, cell_real(f->share))
COLUMN(get_error, f->share_error < 0 ? (struct cell){ .is = CELL_NULL } : cell_real(f->share_error))
COLUMN(get_confidence, cell_string(confidences[f->confidence]))
COLUMN(get_evidence, cell_string(f->evidence))
COLUMN(get_judged, cell_string(f->not_judged && * f->not_judged ? f->not_judged : NULL))
COLUMN(get_next, cell_string(f->next))
COLUMN(get_pid, f->pid ? cell_number(f->pid) : (struct cell){ .is = CELL_NULL })
COLUMN(get_process, f->process ? cell_bytes(f->process, f->process_len, false)
			       : (struct cell){ .is = CELL_NULL })
COLUMN(get_rank, integer_or_null(f->rank))
COLUMN(get_device, integer_or_null(f->device))
COLUMN(get_line,
       f->line ? cell_bytes(f->line, f->line_len, false) : (struct cell){ .is = CELL_NULL })

static const struct table_column subject[] = {
	{ .key = "pid", .get = get_pid },   { .key = "process", .get = get_process },
	{ .key = "rank", .get = get_rank }, { .key = "device", .get = get_device },
	{ .key = "line", .get = get_line },
};

static void put_subject(struct json *j, const void *row, const void *ctx)
{
	const struct table t = TABLE_OF(subject, 0, ctx);

	json_open_object(j, "subject");
	table_json_members(&t, j, row);
	json_end(j);
}

static const struct table_column columns[] = {
	{ .key = "id", .get = get_id },
	{ .key = "claim", .get = get_claim },
	{ .key = "subject", .put = put_subject },
	{ .key = "share", .json_digits = 6, .get = get_share },
	{ .key = "share_error", .json_digits = 6, .get = get_error },
	{ .key = "confidence", .get = get_confidence },
	{ .key = "evidence", .get = get_evidence },
	{ .key = "not_judged", .get = get_judged },
	{ .key = "next", .get = get_next },
};

void finding_json(struct json *j, const struct finding *f)
{
	const struct table t = TABLE_OF(columns, 0, NULL);

	table_json_members(&t, j, f);
}

void finding_text(struct out *o, const char *indent, const struct finding *f)
{
	out_fmt(o, "%sConfidence: %s", indent, confidences[f->confidence]);
	if (f->share_error >= 0)
		out_fmt(o, ", within %.1f points", f->share_error * 100);
	out_char(o, '\n');
	if (f->evidence) {
		out_fmt(o, "%sRows: ", indent);
		out_str(o, f->evidence);
		out_char(o, '\n');
	}
	if (f->next) {
		out_fmt(o, "%sNext: ", indent);
		out_str(o, f->next);
		out_char(o, '\n');
	}
}

/* ---- --fail-if ---- */

/* Splits "ID>5%" at its sign. Returns the length of the id; 0: it is none. */
static size_t parse_condition(const char *text, double *share)
{
	size_t n = strcspn(text, ">");
	char *end;

	if (!n || text[n] != '>' || !strchr("0123456789.", text[n + 1]) || !text[n + 1])
		return 0;
	*share = strtod(text + n + 1, &end) / 100;
	return !strcmp(end, "%") && *share <= 1 ? n : 0;
}

int finding_check_condition(const char *option, const char *text)
{
	double share;

	if (parse_condition(text, &share))
		return 0;
	msg_error("%s: '%s' is no condition; give the name of a finding, or any, and a share of "
		  "the time, as "
		  "any>5%% or gpu-gaps>10%%",
		  option, text);
	return -EINVAL;
}

bool finding_fails(const struct finding *f, const char *const *conditions)
{
	for (int i = 0; conditions && conditions[i]; i++) {
		double share;
		size_t n = parse_condition(conditions[i], &share);
		bool any = n == 3 && !strncmp(conditions[i], "any", 3);

		if (n && f->share > share &&
		    (any || (strlen(f->id) == n && !strncmp(f->id, conditions[i], n))))
			return true;
	}
	return false;
}
