/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_options.c - a command line: the first byte says which command, the rest are its words, with a
 * NUL or the end of a line behind each. They are parsed, and completed as a shell asks for it.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../user/cli/options/command.h"
#include "../../user/cli/options/opts.h"
#include "../../user/util/io/out.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define WORDS_MAX 64

/* The words, which lie in `text`; returns how many. */
static int split(char *text, size_t size, char **words)
{
	int n = 0;

	for (size_t at = 0; at < size && n < WORDS_MAX; n++) {
		words[n] = text + at;
		at += strcspn(text + at, "\n");
		text[at++] = '\0';
	}
	words[n] = NULL;
	return n;
}

static void parse(enum opts_cmd cmd, int n, char **words)
{
	struct sink_wants wants;
	char title[256];
	struct opts o;

	if (!opts_parse(&o, cmd, n, words) && !o.help && !o.version) {
		wants = request_wants(&o.ask);
		request_title(&o.ask, title, sizeof(title));
		if (strlen(title) >= sizeof(title) || (wants.for_programs && !o.ask.format))
			abort();
	}
	opts_free(&o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text, *words[WORDS_MAX + 2], name[] = "cudatrace";
	int n, null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	struct out out;

	if (!size || null < 0) {
		if (null >= 0)
			close(null);
		return 0;
	}
	text = malloc(size);
	if (!text || out_open_fd(&out, null, "out"))
		abort();
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	words[0] = name;
	n = split(text, size - 1, words + 1);
	opts_complete(&out, (const char *const *)words + 1, n);
	/* getopt moves the words */
	parse(command_at(data[0] % COMMAND_END)->bit, n + 1, words);
	out_close(&out);
	close(null);
	free(text);
	return 0;
}
