#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# wheels.sh - fetches older CUDA runtimes (libcudart 11.8, 12.1, 12.8) from NVIDIA's Python wheels into
# $OUTPUT/wheels/VERSION, for the cases that probe them. Skips those that are there already; without network
# or pip it says so, and the cases are skipped.
set -uo pipefail

dir=${OUTPUT:-$(cd "$(dirname "$0")/.." && pwd)/.output}/wheels
mkdir -p "$dir"
for spec in cu11==11.8.89 cu12==12.1.105 cu12==12.8.90; do
	version=${spec#*==}
	ls "$dir/$version"/libcudart.so.* > /dev/null 2>&1 && continue
	tmp=$(mktemp -d)
	if python3 -m pip download -q --no-deps --only-binary=:all: -d "$tmp" "nvidia-cuda-runtime-$spec" > "$tmp/log" 2>&1; then
		mkdir -p "$dir/$version"
		python3 - "$tmp" "$dir/$version" <<-'PY'
			import glob, os, sys, zipfile
			for wheel in glob.glob(sys.argv[1] + "/*.whl"):
			    with zipfile.ZipFile(wheel) as z:
			        for name in z.namelist():
			            if os.path.basename(name).startswith("libcudart.so."):
			                with open(os.path.join(sys.argv[2], os.path.basename(name)), "wb") as f:
			                    f.write(z.read(name))
		PY
		echo "wheels.sh: $dir/$version"
	else
		echo "wheels.sh: nvidia-cuda-runtime-$spec cannot be fetched: $(tail -n 1 "$tmp/log")" >&2
	fi
	rm -rf "$tmp"
done
