#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run.sh - the flame graph's page in a browser, headless Chromium: the pages that tests/unit/test_fold.c writes are opened
# and used as a reader would. Prints `ok`, `not ok` and `skip` lines. Screenshots are left in .output/flame.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1

pages=.output/flame
program=.output/unit/test_fold
browser=
for name in chromium chromium-browser google-chrome; do
	browser=$(command -v "$name") && break
done
if [ -z "$browser" ]; then
	echo "skip flame: there is no chromium"
	exit 0
fi
if [ ! -x "$program" ]; then
	echo "not ok flame: $program is not built: make unit-programs"
	exit 1
fi
mkdir -p "$pages"
for kind in program many empty time bytes hostile; do
	if ! "$program" page "$kind" "$pages/$kind.html" 2> /dev/null; then
		echo "not ok flame-$kind: the page was not written"
		exit 1
	fi
done
exec python3 tests/flame/browser.py "$browser" "$pages"
