#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# stripped.sh - NVIDIA's static runtime without symbols, of many versions of CUDA: tests/stripped.sh [--debian] [ARCHIVE...]
#
# Versions: each libcudart_static.a and libcudart of .output/wheels (tests/wheels.sh --all), that of the toolkit, and each ARCHIVE.
# --debian fetches those of CUDA 11.8 and 12.4 from Debian's packages, which are large (apt-get, 1.7 GB). With each archive a program and a
# library are linked, and stripped: the functions that are found in them must be those of their twins that have symbols. A libcudart is
# searched as if it had no symbols. Then no file of this machine that has no runtime may have a function of it, and those that have one must
# have all functions at the distances of one archive; and a call of the package cuda-bindings (pip) must be a row. Prints `ok NAME`, `not ok NAME:
# why`, and the counts.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

out=${OUTPUT:-.output}
find=$PWD/$out/unit/test_stripped
passed=0 failed=0
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
# too short to be known
unknown='^__cudaGetProcAddress '

ok() {
	echo "ok $1"
	passed=$((passed + 1))
}
bad() {
	echo "not ok $1: $2"
	failed=$((failed + 1))
}

# functions FILE NM-OPTION: "NAME ADDRESS" of the runtime's functions, by symbols
functions() {
	nm "$2" --defined-only "$1" | awk '$2 ~ /[tT]/ { sub(/^0+/, "", $1); sub(/@.*/, "", $3); if ($3 ~ /^(__)?cuda[A-Z]/) print $3, $1 }' |
		grep -v "$unknown" | sort -u
}

# compare NAME STRIPPED WITH-SYMBOLS NM-OPTION
compare() {
	"$find" --runtime "$2" | cut -d' ' -f1,2 | sort > "$tmp/got"
	functions "$3" "$4" > "$tmp/want"
	if [ "$(wc -l < "$tmp/want")" -lt 300 ]; then
		bad "$1" "the twin has $(wc -l < "$tmp/want") functions"
	elif diff "$tmp/want" "$tmp/got" > "$tmp/diff"; then
		ok "$1, $(wc -l < "$tmp/got") functions"
	else
		bad "$1" "$(grep -c '^>' "$tmp/diff") wrong, $(grep -c '^<' "$tmp/diff") not found: $(grep '^[<>]' "$tmp/diff" | head -n 3 | tr '\n' ' ')"
	fi
}

# distances FILE: of all functions from cudaMalloc, in the order of their names; from "NAME ADDRESS"
distances() {
	python3 -c 'import sys
at = dict(line.split()[:2] for line in open(sys.argv[1]))
for name in sorted(at):
    print(name, int(at[name], 16) - int(at["cudaMalloc"], 16))' "$1"
}

# debian SUITE: the archive of its CUDA
debian() {
	local dir=$out/wheels/debian-$1 list=$tmp/$1.list options
	[ -e "$dir/libcudart_static.a" ] && return
	mkdir -p "$dir" "$tmp/$1/lists/partial" "$tmp/$1/archives/partial"
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $1 non-free" > "$list"
	options=(-qq -o "Dir::Etc::sourcelist=$list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$tmp/$1/lists"
		-o "Dir::Cache=$tmp/$1" -o APT::Sandbox::User=root)
	if ! { apt-get "${options[@]}" update && (cd "$tmp/$1" && apt-get "${options[@]}" download nvidia-cuda-dev) &&
		dpkg-deb --fsys-tarfile "$tmp/$1"/nvidia-cuda-dev*.deb | tar -xO --wildcards '*/libcudart_static.a' > "$dir/libcudart_static.a"; }; then
		bad "$1" "its package cannot be fetched"
		rm -f "$dir/libcudart_static.a"
	fi
	rm -rf "${tmp:?}/$1"
}

make -s "$find" cudatrace || exit 1
if [ "${1:-}" = --debian ]; then
	shift
	debian bookworm
	debian trixie
fi
cat > "$tmp/a.c" <<'C'
int cudaMalloc(void **, unsigned long);
int go(int n) { void *p; return cudaMalloc(&p, n); }
int main(void) { return go(3) != 35; }
C
n=0
for archive in "$out"/wheels/*/libcudart_static.a "${CUDA_HOME:-/usr/local/cuda}/lib64/libcudart_static.a" "$@"; do
	[ -s "$archive" ] || continue
	n=$((n + 1))
	for how in program library; do
		options=(-fPIC -shared "-Wl,--exclude-libs,ALL")
		[ $how = library ] || options=()
		"${CC:-cc}" "${options[@]}" -o "$tmp/with.$n.$how" "$tmp/a.c" "$archive" -pthread -ldl -lrt && strip -o "$tmp/without" "$tmp/with.$n.$how"
		compare "$archive: a $how" "$tmp/without" "$tmp/with.$n.$how" -n
	done
	functions "$tmp/with.$n.library" -n > "$tmp/all"
	distances "$tmp/all" > "$tmp/distances.$n"
done
for library in "$out"/wheels/*/libcudart.so.*; do
	[ -e "$library" ] && compare "$library" "$library" "$library" -D
done

# All files of this machine: those without the runtime have none of its functions.
mapfile -d '' files < <(find /usr/lib /usr/bin /usr/local/lib "${CUDA_HOME:-/usr/local/cuda}/lib64/" -type f -size +8k \( -name '*.so' -o -name '*.so.*' -o -perm -100 \) -print0)
"$find" "${files[@]}" > "$tmp/scan"
number=$(awk -F': ' '{ n += $2 } END { print n }' "$tmp/scan")
wrong=$(grep -c 'no stripped runtime, [1-9]' "$tmp/scan")
if [ "$wrong" = 0 ] && [ "$number" -gt 10000 ]; then
	ok "$number functions of ${#files[@]} files, none by a wrong name"
else
	bad "$number functions of ${#files[@]} files" "$wrong files have functions of a runtime that is not in them"
fi
same=0
while IFS= read -r file; do
	"$find" --runtime "$file" | sort > "$tmp/got"
	distances "$tmp/got" > "$tmp/here"
	for archive in "$tmp"/distances.*; do
		if cmp -s "$archive" "$tmp/here"; then
			same=$((same + 1))
			continue 2
		fi
	done
	# of a version that is not here; or a name is wrong
	echo "# $file: $(wc -l < "$tmp/got") functions, of no archive that is here"
done < <(sed -n 's/: [0-9]* functions, a stripped runtime, .*//p' "$tmp/scan")
number=$(grep -c ' a stripped runtime' "$tmp/scan")
if [ "$number" = 0 ] || [ "$same" != 0 ]; then
	ok "$same of $number files with a stripped runtime have all functions where an archive has them"
else
	bad "$number files with a stripped runtime" "none has the functions where an archive has them"
fi

# A module that others have made.
if python3 -m venv "$tmp/venv" && "$tmp/venv/bin/pip" -q install cuda-bindings > "$tmp/pip" 2>&1; then
	./cudatrace --format json -o "$tmp/rows" -- "$tmp/venv/bin/python" -c 'from cuda.bindings import runtime
for _ in range(7): runtime.cudaGetDeviceCount()' > /dev/null 2> "$tmp/err"
	calls=$(grep -c '"name":"cudaGetDeviceCount"' "$tmp/rows")
	if [ "$calls" = 7 ]; then
		ok "cuda-bindings: $calls calls"
	else
		bad cuda-bindings "$calls calls of 7: $(tail -n 1 "$tmp/err")"
	fi
else
	echo "skip cuda-bindings: it cannot be installed: $(tail -n 1 "$tmp/pip" 2> /dev/null)"
fi
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
