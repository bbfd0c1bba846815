#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run.sh - the page of `cudatrace mem --html`, as tests/unit/test_mem.c writes it, opened in headless Chromium and used as a
# reader would. Prints `ok`, `not ok` and `skip` lines. Screenshots are left in .output/memory.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1

pages=.output/memory
program=.output/unit/test_mem
browser=
for name in chromium chromium-browser google-chrome; do
	browser=$(command -v "$name") && break
done
if [ ! -x "$program" ]; then
	echo "not ok memory-page: $program is not built: make unit-programs"
	exit 1
fi
mkdir -p "$pages"
for kind in story rubbish empty; do
	if ! "$program" page "$kind" "$pages/$kind.html" > /dev/null; then
		echo "not ok memory-page-$kind: the page was not written"
		exit 1
	fi
done
if [ -z "$browser" ]; then
	echo "skip memory-browser: there is no chromium"
	exit 0
fi
python3 tests/memory/browser.py "$browser" "$pages"
