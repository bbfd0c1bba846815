#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# wheels.sh - fetches other versions of CUDA's runtime from NVIDIA's Python wheels into $OUTPUT/wheels/VERSION: libcudart,
# libcudart_static.a where the wheel has it (12.9 and later), and the headers in include/. Without --all only 11.8, 12.1 and 12.8, for the cases that probe them; with --all each minor version from
# 11.8 on, for tests/versions.sh; with --cupti libcupti of each into
# $OUTPUT/wheels/cupti/VERSION, for tests/agent/versions.sh. Skips those that are there already; without network or pip it says so.
set -uo pipefail

dir=${OUTPUT:-$(cd "$(dirname "$0")/.." && pwd)/.output}/wheels
mkdir -p "$dir"

# unpack FOLDER VERSION: libcudart and the headers of the wheels in FOLDER
unpack() {
	python3 - "$1" "$dir/$2" <<-'PY'
		import glob, os, sys, zipfile
		for wheel in glob.glob(sys.argv[1] + "/*.whl"):
		    with zipfile.ZipFile(wheel) as z:
		        for name in z.namelist():
		            base = os.path.basename(name)
		            if base.startswith(("libcudart.so.", "libcudart_static.a", "libcupti.so.")):
		                to = base
		            elif "/include/" in name and base:
		                to = "include/" + name.split("/include/", 1)[1]
		            else:
		                continue
		            to = os.path.normpath(os.path.join(sys.argv[2], to))
		            if not to.startswith(sys.argv[2] + "/"):
		                sys.exit("a name in the wheel leads out of its folder: " + name)
		            os.makedirs(os.path.dirname(to), exist_ok=True)
		            with open(to, "wb") as f:
		                f.write(z.read(name))
	PY
}

# fetch VERSION WHEEL...
fetch() {
	local version=$1 tmp spec
	shift
	[ -e "$dir/$version/include/cuda_runtime_api.h" ] && ls "$dir/$version"/libcudart.so.* > /dev/null 2>&1 && return
	tmp=$(mktemp -d)
	for spec; do
		if ! python3 -m pip download -q --no-deps --only-binary=:all: -d "$tmp" "$spec" > "$tmp/log" 2>&1; then
			echo "wheels.sh: $spec cannot be fetched: $(tail -n 1 "$tmp/log")" >&2
			rm -rf "$tmp"
			return
		fi
	done
	unpack "$tmp" "$version" && echo "wheels.sh: $dir/$version"
	rm -rf "$tmp"
}

# fetch_cupti VERSION WHEEL
fetch_cupti() {
	local tmp
	ls "$dir/cupti/$1"/libcupti.so.* > /dev/null 2>&1 && return
	tmp=$(mktemp -d)
	if python3 -m pip download -q --no-deps --only-binary=:all: -d "$tmp" "$2==$1" > "$tmp/log" 2>&1; then
		unpack "$tmp" "cupti/$1" && rm -rf "$dir/cupti/$1/include" && echo "wheels.sh: $dir/cupti/$1"
	else
		echo "wheels.sh: $2==$1 cannot be fetched: $(tail -n 1 "$tmp/log")" >&2
	fi
	rm -rf "$tmp"
}

if [ "${1:-}" = --cupti ]; then
	fetch_cupti 11.8.87 nvidia-cuda-cupti-cu11
	for version in 12.0.146 12.1.105 12.2.142 12.3.101 12.4.127 12.5.82 12.6.80 12.8.90 12.9.79; do
		fetch_cupti $version nvidia-cuda-cupti-cu12
	done
	for version in 13.0.85 13.1.115 13.2.86 13.3.75 13.4.92 13.5.25; do
		fetch_cupti $version nvidia-cuda-cupti
	done
	exit 0
fi

fetch 11.8.89 nvidia-cuda-runtime-cu11==11.8.89
fetch 12.1.105 nvidia-cuda-runtime-cu12==12.1.105
fetch 12.8.90 nvidia-cuda-runtime-cu12==12.8.90
[ "${1:-}" = --all ] || exit 0
for version in 12.0.146 12.2.140 12.3.101 12.4.127 12.5.82 12.6.77 12.9.79; do
	fetch "$version" nvidia-cuda-runtime-cu12==$version
done
for version in 13.0.96/13.0.88 13.1.80/13.1.115 13.2.86/13.2.86 13.3.29/13.3.73 13.4.92/13.4.92 13.5.37/13.5.37; do
	fetch "${version%/*}" nvidia-cuda-runtime=="${version%/*}" nvidia-cuda-crt=="${version#*/}"
done
