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

TABLE_GET(get_id, struct finding, f, cell_string(f->id))
TABLE_GET(get_claim, struct finding, f, cell_string(f->claim))
TABLE_GET(get_share, struct finding, f, cell_real(f->share))
TABLE_GET(get_error, struct finding, f,
	  f->share_error < 0 ? (struct cell){ .is = CELL_NULL } : cell_real(f->share_error))
TABLE_GET(get_confidence, struct finding, f, cell_string(confidences[f->confidence]))
TABLE_GET(get_evidence, struct finding, f, cell_string(f->evidence))
TABLE_GET(get_judged, struct finding, f,
	  cell_string(f->not_judged && * f->not_judged ? f->not_judged : NULL))
TABLE_GET(get_next, struct finding, f, cell_string(f->next))
TABLE_GET(get_pid, struct finding, f,
	  f->pid ? cell_number(f->pid) : (struct cell){ .is = CELL_NULL })
TABLE_GET(get_process, struct finding, f,
	  f->process ? cell_bytes(f->process, f->process_len, false)
		     : (struct cell){ .is = CELL_NULL })
TABLE_GET(get_rank, struct finding, f, integer_or_null(f->rank))
TABLE_GET(get_device, struct finding, f, integer_or_null(f->device))
TABLE_GET(get_line, struct finding, f,
	  f->line ? cell_bytes(f->line, f->line_len, false) : (struct cell){ .is = CELL_NULL })

static const struct table_column subject[] = {
	{ .key = "pid", .get = get_pid },   { .key = "process", .get = get_process },
	{ .key = "rank", .get = get_rank }, { .key = "device", .get = get_device },
	{ .key = "line", .get = get_line },
};

static void put_subject(struct json *j, const struct table_at *at)
{
	const struct table t = TABLE_OF(subject, 0, NULL);

	json_open_object(j, "subject");
	table_json_members(&t, j, at->row);
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
		  "the time, as any>5%% or gpu-gaps>10%%",
		  option, text);
	return -EINVAL;
}

int finding_check_named(const char *option, const char *text, const char *(*name_at)(unsigned int))
{
	size_t n = strcspn(text, ">");
	const char *name = "any";

	if (finding_check_condition(option, text))
		return -EINVAL;
	for (unsigned int i = 0; name; name = name_at(i++))
		if (strlen(name) == n && !strncmp(name, text, n))
			return 0;
	msg_error("%s: there is no finding '%.*s'; give a name that JSON has as id, or any", option,
		  (int)(n < 60 ? n : 60), text);
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
