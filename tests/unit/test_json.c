/* SPDX-License-Identifier: BSD-2-Clause */
/* test_json.c - the JSON writer: its text byte by byte, and what json-c reads back of any bytes. */
#include <json-c/json.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../user/util/io/json.h"
#include "unit.h"

static char path[64];

static void test_text(void)
{
	static const char want[] =
		"{\"a\":1,\"b\":[],\"c\":{},\"d\":[-2,\"0xff\",[3],{\"e\":null}],\n"
		" \"f\":[\n  1,\n  "
		"2],\"g\":0.500000,\"h\":null,\"i\":null,\"j\":1e+06,\"k\":true,\"l\":"
		"\"\\\"\\u001b\",\"m\":null,\"n\":\"ab\"}";
	struct out out;
	struct json j = json_to(&out);
	char *got;

	CHECK(!out_open(&out, path, false));
	json_open_object(&j, NULL);
	json_put_u64(&j, "a", 1);
	json_open_array(&j, "b");
	json_end(&j);
	json_open_object(&j, "c");
	json_end(&j);
	json_open_array(&j, "d");
	json_put_i64(&j, NULL, -2);
	json_put_hex(&j, NULL, 255);
	json_open_array(&j, NULL);
	json_put_u64(&j, NULL, 3);
	json_end(&j);
	json_open_object(&j, NULL);
	json_put_null(&j, "e");
	json_end(&j);
	json_end(&j);
	json_line(&j, " ");
	json_open_array(&j, "f");
	for (uint64_t i = 1; i < 3; i++) {
		json_line(&j, "  ");
		json_put_u64(&j, NULL, i);
	}
	json_end(&j);
	json_put_real(&j, "g", 6, 0.5);
	json_put_real(&j, "h", 6, NAN);
	json_put_digits(&j, "i", 6, INFINITY);
	json_put_digits(&j, "j", 6, 1e6);
	json_put_bool(&j, "k", true);
	json_put_str(&j, "l", "\"\x1b");
	json_put_str(&j, "m", NULL);
	json_put_bytes(&j, "n", "abc", 2);
	json_end(&j);
	CHECK_EQ(j.depth, 0);
	CHECK(!out_close(&out));
	got = unit_read(path);
	CHECK_TEXT(want, got ? got : "(no file)");
	free(got);
}

/* Strings of all lengths around a piece, of letters of one to four bytes: nothing is torn. */
static void test_strings(void)
{
	static const char *const letters[] = { "x", "\xc3\xa4", "\xe2\x82\xac",
					       "\xf0\x9f\x98\x80" };
	static char text[80000];
	size_t bad = 0;

	for (size_t k = 0; k < ARRAY_LEN(letters); k++) {
		for (size_t lead = 0; lead < 8; lead++) {
			size_t each = strlen(letters[k]), n = lead;
			struct json_object *o;
			struct out out;
			struct json j = json_to(&out);

			memset(text, 'y', lead);
			for (; n < 9000; n += each)
				memcpy(text + n, letters[k], each);
			text[n] = '\0';
			CHECK(!out_open(&out, path, false));
			json_put_str(&j, NULL, text);
			CHECK(!out_close(&out));
			o = json_object_from_file(path);
			bad += !o || strcmp(json_object_get_string(o), text) != 0;
			json_object_put(o);
		}
	}
	CHECK_EQ(bad, 0);
}

/* A string without end is cut, and what is there is still whole letters. */
static void test_long(void)
{
	static char text[200001];
	struct json_object *o;
	struct out out;
	struct json j = json_to(&out);
	size_t n;

	for (size_t i = 0; i + 3 < sizeof(text); i += 3)
		memcpy(text + i, "\xe2\x82\xac", 3);
	CHECK(!out_open(&out, path, false));
	json_put_str(&j, NULL, text);
	CHECK(!out_close(&out));
	o = json_object_from_file(path);
	n = o ? strlen(json_object_get_string(o)) : 0;
	CHECK(n > 65000 && n <= 65536 && n % 3 == 0);
	CHECK(o && !memcmp(json_object_get_string(o), text, n));
	json_object_put(o);
}

int main(void)
{
	snprintf(path, sizeof(path), "/tmp/ct_test_json.%d", (int)getpid());
	RUN(test_text);
	RUN(test_strings);
	RUN(test_long);
	unlink(path);
	return unit_end();
}
