/* SPDX-License-Identifier: BSD-2-Clause */
/* test_findings.c - the one form of findings: its JSON and text, and the conditions of --fail-if. */
#include <stdlib.h>
#include <unistd.h>

#include "unit.h"
#include "../../user/findings/findings.h"
#include "../../user/util/msg.h"

static const struct finding gaps = { .id = "gpu-gaps",
				     .claim = "the device waits",
				     .pid = 42,
				     .process = "a\033b",
				     .process_len = 3,
				     .rank = FINDING_UNKNOWN,
				     .device = 1,
				     .share = 0.25,
				     .share_error = 0.01,
				     .confidence = FINDING_ESTIMATED,
				     .evidence = "cudatrace -p 42",
				     .not_judged = "" };

static void said(const char *text)
{
	(void)text;
}

static void test_conditions(void)
{
	static const struct {
		const char *text;
		bool good, fails;
	} rows[] = {
		{ "any>5%", true, true },	  { "any>25%", true, false },
		{ "gpu-gaps>24.9%", true, true }, { "gpu-gap>1%", true, false },
		{ "leak>0%", true, false },	  { "any>101%", false, false },
		{ "any>", false, false },	  { ">5%", false, false },
		{ "any>5", false, false },	  { "any<5%", false, false },
		{ "any>-1%", false, false },	  { "any>nan%", false, false },
	};

	msg_taker = said;
	for (unsigned int i = 0; i < ARRAY_LEN(rows); i++) {
		const char *const list[] = { "leak>0%", rows[i].text, NULL };

		CASE_ROW("%s", rows[i].text);
		CHECK_EQ(rows[i].good, !finding_check_condition("--fail-if", rows[i].text));
		CHECK_EQ(rows[i].fails, finding_fails(&gaps, list));
	}
	msg_taker = NULL;
	CHECK(!finding_fails(&gaps, NULL));
}

static void test_forms(void)
{
	char path[64], *got;
	struct out o;
	struct json j = json_to(&o);

	snprintf(path, sizeof(path), "/tmp/ct_test_findings.%d", (int)getpid());
	CHECK(!out_open(&o, path, false));
	json_open_object(&j, NULL);
	finding_json(&j, &gaps);
	json_end(&j);
	out_char(&o, '\n');
	finding_text(&o, "  ", &gaps);
	CHECK(!out_close(&o));
	got = unit_read(path);
	unlink(path);
	CHECK_TEXT("{\"id\":\"gpu-gaps\",\"claim\":\"the device waits\",\"subject\":{\"pid\":42,"
		   "\"process\":\"a\\u001bb\",\"rank\":null,\"device\":1,\"line\":null},"
		   "\"share\":0.250000,\"share_error\":0.010000,\"confidence\":\"estimated\","
		   "\"evidence\":\"cudatrace -p 42\",\"not_judged\":null,\"next\":null}\n"
		   "  Confidence: estimated, within 1.0 points\n  Rows: cudatrace -p 42\n",
		   got ? got : "(no file)");
	free(got);
}

int main(void)
{
	RUN(test_conditions);
	RUN(test_forms);
	return unit_end();
}
