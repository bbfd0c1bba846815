#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# pictures.sh - makes docs/pictures/*.svg anew, each from a real run on the stand-in. Needs root, and `make cudatrace standin cuda_events_test`.
set -euo pipefail
cd "$(dirname "$0")/.."
export LD_LIBRARY_PATH=$PWD/.output/standin

scripts/terminal_svg.py --columns 146 --lines 12-18,22-32,41-44 --prompt 'sudo cudatrace -- ./cuda_events_test' \
	-o docs/pictures/trace.svg -- ./cudatrace --color always -- ./cuda_events_test
