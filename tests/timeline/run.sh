#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run.sh - the timeline page: what tests/unit/test_export.c writes is read back by page.py and compared with a stored text, then
# opened in headless Chromium and used as a reader would. Prints `ok`, `not ok` and `skip` lines. Screenshots are left in
# .output/timeline.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1

pages=.output/timeline
program=.output/unit/test_export
browser=
for name in chromium chromium-browser google-chrome; do
	browser=$(command -v "$name") && break
done
if [ ! -x "$program" ]; then
	echo "not ok timeline: $program is not built: make unit-programs"
	exit 1
fi
mkdir -p "$pages"
for kind in stacks bare steps empty many rubbish; do
	if ! "$program" write html "$kind" "$pages/$kind.html" > /dev/null; then
		echo "not ok timeline-$kind: the page was not written"
		exit 1
	fi
done
failed=0
if difference=$(python3 tests/timeline/page.py "$pages/stacks.html" 2>&1 | diff tests/golden/timeline.txt -); then
	echo "ok timeline-data"
else
	echo "not ok timeline-data: $(head -n 6 <<< "$difference" | tr '\n' ' ')"
	failed=1
fi
if [ -z "$browser" ]; then
	echo "skip timeline-browser: there is no chromium"
	exit $failed
fi
python3 tests/timeline/browser.py "$browser" "$pages" || failed=1
exit $failed
