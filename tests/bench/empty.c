/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * empty.c - puts an empty uprobe and uretprobe on functions of a library until its stdin is closed:
 * the floor that the benchmarks divide by. With -e the uprobe alone.
 *
 *     empty [-e] LIBRARY FUNCTION...
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "../../user/source/probe/links.h"
#include "empty.skel.h"

int main(int argc, char **argv)
{
	struct elf_probe probes[8] = { 0 };
	struct link_target t = { .probes = probes };
	struct attach_progs progs;
	struct empty_bpf *skel;
	struct link_set set;
	int i, err, bad;
	char c;

	if (argc > 1 && !strcmp(argv[1], "-e")) {
		t.entry_only = true;
		argc--;
		argv++;
	}
	if (argc < 3 || argc > 10)
		return 2;
	t.file_fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	if (t.file_fd < 0) {
		perror(argv[1]);
		return 1;
	}
	for (i = 2; i < argc; i++) {
		probes[t.nprobes].offset = elf_symbol_offset(t.file_fd, argv[i]);
		if (!probes[t.nprobes++].offset) {
			fprintf(stderr, "empty: %s does not define %s\n", argv[1], argv[i]);
			return 1;
		}
	}
	skel = empty_bpf__open();
	if (!skel)
		return 1;
	bpf_program__set_expected_attach_type(skel->progs.empty_enter, 48);
	bpf_program__set_expected_attach_type(skel->progs.empty_exit, 48);
	err = empty_bpf__load(skel);
	if (err)
		return 1;
	progs.entry_fd = bpf_program__fd(skel->progs.empty_enter);
	progs.return_fd = bpf_program__fd(skel->progs.empty_exit);
	err = links_multi(&progs, &t, &set, &bad);
	if (err) {
		fprintf(stderr, "empty: %s\n", strerror(-err));
		return 1;
	}
	printf("ready\n");
	fflush(stdout);
	while (read(0, &c, 1) > 0)
		;
	return 0;
}
