#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dist.sh - the files of a release (make dist): made twice they are the same bytes; each installs into an empty folder, runs
# there, and is removed without a rest. Nothing is fetched. Needs root (rpm and dpkg into a folder of their own, chroot) and make static.
# Prints `ok`, `not ok` and `skip` lines.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
export LC_ALL=C
export SOURCE_DATE_EPOCH=1700000000

tmp=$(mktemp -d) || exit 1
chmod 0755 "$tmp"
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$tmp"' EXIT
failed=0
not_ok() {
	echo "not ok $1: $(tr '\n' ' ' <<< "$2" | cut -c1-300)"
	failed=1
}
# check NAME COMMAND...: its status, and what it printed when that is not 0
check() {
	local out
	if out=$("${@:2}" 2>&1); then
		echo "ok $1"
	else
		not_ok "$1" "$2 fails: $(tail -n 5 <<< "$out")"
	fi
}
# same NAME WANT GOT
same() {
	if [ "$2" = "$3" ]; then
		echo "ok $1"
	else
		not_ok "$1" "differences: $(diff <(echo "$2") <(echo "$3") | grep '^[<>]' | head -n 5)"
	fi
}
# refused NAME MESSAGE COMMAND...: it fails and says so
refused() {
	local out
	if out=$("${@:3}" 2>&1); then
		not_ok "$1" "it succeeded: $out"
	elif [[ $out == *"$2"* ]]; then
		echo "ok $1"
	else
		not_ok "$1" "it says: $out"
	fi
}
files() { # FOLDER: what is in it but folders
	(cd "$1" && find . ! -type d | sed 's|^\./||' | sort)
}
# the system's Python has what packages of the system bring
python=/usr/bin/python3
[ -x $python ] || python=python3

# ---- made twice --------------------------------------------------------------------------------------------------

version=$(sed -n 's/^VERSION := //p' Makefile)
machine=$(uname -m)
dist=$tmp/one
if ! make -s .output/static/cudatrace > "$tmp/log" 2>&1 || ! scripts/dist/dist.sh "$version" .output/static/cudatrace "$dist" >> "$tmp/log" 2>&1; then
	not_ok dist "it cannot be made: $(tail -n 3 "$tmp/log")"
	exit 1
fi
(umask 077 && TZ=Asia/Tokyo scripts/dist/dist.sh "$version" .output/static/cudatrace "$tmp/other" > "$tmp/log" 2>&1) || not_ok dist-again "$(tail -n 3 "$tmp/log")"
same dist-reproducible "$(cat "$dist/SHA256SUMS")" "$(cat "$tmp/other/SHA256SUMS")"
rm -rf "$tmp/other"
check dist-sums env -C "$dist" sha256sum -c --strict SHA256SUMS
same dist-files "SHA256SUMS
cudatrace-$version-1.$machine.rpm
cudatrace-$version-daemonset.yaml
cudatrace-$version-linux-$machine.tar.gz
cudatrace-$version-oci-$machine.tar
cudatrace-$version-py3-none-manylinux_2_17_$machine.whl
cudatrace-$version.spdx.json
cudatrace_${version}_$(dpkg --print-architecture).deb
install.sh" "$(files "$dist")"

# without the tools of packages: the others are made, and it says what installs the tools
mkdir "$tmp/tools"
while IFS= read -r -d : folder; do
	find -L "$folder" -maxdepth 1 -type f -executable ! -name dpkg-deb ! -name rpmbuild ! -name buildah -print0 2> /dev/null |
		xargs -0 -r -n 200 ln -s -t "$tmp/tools" 2> /dev/null
done <<< "$PATH:"
refused dist-tools "not installed, so their packages were not made: dpkg-deb rpmbuild buildah; 'scripts/deps.sh all' installs them" \
	env PATH="$tmp/tools" scripts/dist/dist.sh "$version" .output/static/cudatrace "$tmp/without"
check dist-others test -s "$tmp/without/cudatrace-$version-linux-$machine.tar.gz"
rm -rf "$tmp/without" "$tmp/tools"

# ---- tarball -----------------------------------------------------------------------------------------------------

mkdir "$tmp/tar"
tar -xzf "$dist/cudatrace-$version-linux-$machine.tar.gz" -C "$tmp/tar"
tree=$tmp/tar/cudatrace-$version-linux-$machine
doc=$tree/share/doc/cudatrace
ct=$tree/bin/cudatrace
said=$("$ct" --version)
same tarball-version "cudatrace $version" "$(head -n 1 <<< "$said")"
[[ $said == *", static, libbpf "[1-9]* ]]
check tarball-static test $? = 0
same tarball-needs "" "$(readelf -Wd "$ct" | grep NEEDED)"
same tarball-stripped "" "$(readelf -WS "$ct" | grep -E '\.(symtab|debug_info)')"
[ ! -e .git ] || check tarball-commit grep -qE '^commit [0-9a-f]{12}(-dirty)?$' <<< "$said"
# what make install installs is there, and more
make -s install DESTDIR="$tmp/install" PREFIX=/usr > "$tmp/log" 2>&1 || not_ok dist-install "$(tail -n 3 "$tmp/log")"
same tarball-installed "" "$(comm -23 <(files "$tmp/install/usr") <(files "$tree"))"
same tarball-list "$(files "$tree" | grep -vx share/doc/cudatrace/FILES)" "$(cat "$doc/FILES")"
check tarball-replays "$ct" replay tests/traces/two.ctrace
check sbom $python tests/dist/check.py spdx "$doc/cudatrace.spdx.json" "$ct"
same sbom-beside "$(cat "$doc/cudatrace.spdx.json")" "$(cat "$dist/cudatrace-$version.spdx.json")"
# a text for each package, none of them empty
same licences "$($python -c 'import json, sys; print("\n".join(sorted(p["name"] + ".txt" for p in json.load(open(sys.argv[1]))["packages"][1:])))' \
	"$doc/cudatrace.spdx.json")" "$(cd "$doc/licences" && find . -name '*.txt' -size +200c | sed 's|^\./||' | sort)"
# A library that no package owns has no licence that could be added.
mkdir "$tmp/foreign"
echo "($tmp/foreign/libx.a)x.o" > "$tmp/foreign/inputs"
refused licences-foreign "belongs to no package" env SOURCE_DATE_EPOCH=0 $python scripts/dist/linked.py "$ct" "$tmp/foreign/inputs" \
	"$version" "" "$tmp/foreign/licences" "$tmp/foreign/sbom"

# ---- .deb and .rpm -----------------------------------------------------------------------------------------------

root=$tmp/deb
mkdir -p "$root/var/lib/dpkg/info" "$root/var/lib/dpkg/updates"
touch "$root/var/lib/dpkg/status"
packed=$(files "$tree" | grep -vx share/doc/cudatrace/FILES | sed 's|^|usr/|')
# the pages of the manual are compressed, and there is a file that Debian wants
deb_packed=$(printf '%s\nusr/share/doc/cudatrace/copyright\n' "$packed" | sed 's|/man1/.*|&.gz|' | sort)
check deb-installs dpkg --root="$root" -i "$dist"/*.deb
same deb-files "$deb_packed" "$(files "$root" | grep '^usr/')"
check deb-runs chroot "$root" /usr/bin/cudatrace --version
same deb-whole "" "$(dpkg --root="$root" --verify cudatrace 2>&1)"
check deb-purges dpkg --root="$root" -P cudatrace
same deb-leaves "" "$(find "$root" -mindepth 1 -path "$root/var" -prune -o -print)"

root=$tmp/rpm
mkdir "$root"
rpm=(rpm --root "$root" --dbpath /db)
check rpm-installs "${rpm[@]}" -i "$dist"/*.rpm
same rpm-files "$packed" "$(files "$root" | grep '^usr/')"
check rpm-runs chroot "$root" /usr/bin/cudatrace --version
check rpm-whole "${rpm[@]}" -V cudatrace
same rpm-needs "" "$("${rpm[@]}" -q --requires cudatrace 2> /dev/null | grep -v '^rpmlib(')"
check rpm-erases "${rpm[@]}" -e cudatrace
# rpm leaves folders that no package owns, as /usr/bin
same rpm-leaves "" "$(files "$root" | grep '^usr/'; find "$root" -path '*/share/doc/cudatrace*')"

# ---- container image ---------------------------------------------------------------------------------------------

mkdir "$tmp/image"
check image $python tests/dist/check.py oci "$dist/cudatrace-$version-oci-$machine.tar" "cudatrace:$version" "$tmp/image"
same image-files "$(cd "$doc" && { ls licences; echo LICENSE; } | sed 's|^|licences/|' | cat - <(echo cudatrace) | sort)" "$(files "$tmp/image")"
check image-runs chroot --userspec=65534:65534 "$tmp/image" /cudatrace --version
same image-daemonset "          image: cudatrace:$version" "$(grep ' image:' "$dist/cudatrace-$version-daemonset.yaml")"

# ---- Python wheel ------------------------------------------------------------------------------------------------

wheel=$(echo "$dist"/*.whl)
if $python -m venv "$tmp/venv" > "$tmp/log" 2>&1; then
	pip=("$tmp/venv/bin/python" -m pip --disable-pip-version-check -q)
	check wheel-installs "${pip[@]}" install --no-index "$wheel"
	same wheel-runs "$said" "$("$tmp/venv/bin/cudatrace" --version 2>&1)"
	check wheel-replays "$tmp/venv/bin/cudatrace" replay tests/traces/two.ctrace
	same wheel-version "$version" "$("$tmp/venv/bin/python" -c 'import importlib.metadata as m; print(m.version("cudatrace"))' 2>&1)"
	# its module runs its own program
	same wheel-module "36 $tmp/venv/bin/cudatrace" "$(env -u CUDATRACE "$tmp/venv/bin/python" -c \
		'import cudatrace; print(len(cudatrace.read("tests/traces/two.ctrace").calls), cudatrace.find_program())' 2>&1)"
	check wheel-removes "${pip[@]}" uninstall -y cudatrace
	same wheel-leaves "" "$(find "$tmp/venv" -name '*cudatrace*')"
else
	not_ok wheel "no virtual environment: $(tail -n 2 "$tmp/log")"
fi

# ---- install.sh --------------------------------------------------------------------------------------------------

# As nobody, from a server on this machine; files of a release that is damaged are beside it.
stranger() {
	setpriv --reuid 65534 --regid 65534 --clear-groups env -i PATH="$PATH" HOME="$tmp/home" TMPDIR="$tmp/home/tmp" "$@"
}
mkdir -p "$tmp/home/tmp" "$tmp/web"
cp -r "$dist" "$tmp/web/good"
cp -r "$dist" "$tmp/web/damaged"
cp -r "$dist" "$tmp/web/short"
tarball=cudatrace-$version-linux-$machine.tar.gz
printf 'x' | dd of="$tmp/web/damaged/$tarball" bs=1 seek=1000000 conv=notrunc status=none
rm "$tmp/web/short/$tarball"
chown -R 65534:65534 "$tmp/home"
$python -u - "$tmp/web" > "$tmp/port" 2> /dev/null << 'END' &
import functools
import http.server
import sys
server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), functools.partial(http.server.SimpleHTTPRequestHandler, directory=sys.argv[1]))
print(server.server_port)
server.serve_forever()
END
server=$!
until [ -s "$tmp/port" ] || ! kill -0 "$server" 2> /dev/null; do
	sleep 0.05
done
url=http://127.0.0.1:$(cat "$tmp/port")
script=$dist/install.sh
home=$tmp/home/.local
refused install-damaged "has another sum" stranger sh "$script" --from "$url/damaged"
refused install-absent "cannot fetch" stranger sh "$script" --from "$url/short"
refused install-nowhere "cannot fetch" stranger sh "$script" --from "$url/none"
same install-refused-leaves "" "$(find "$tmp/home" -mindepth 1 ! -path "$tmp/home/tmp")"
check install stranger sh "$script" --from "$url/good/"
same install-runs "$said" "$(stranger "$home/bin/cudatrace" --version 2>&1)"
same install-files "$(files "$tree")" "$(files "$home")"
check install-again stranger sh "$script" --from "$url/good"
touch "$home/bin/other"
check install-uninstalls stranger sh "$script" --uninstall
same install-leaves "bin/other" "$(files "$home")$(find "$home/share" -name cudatrace)"
refused install-uninstalled "nothing of install.sh" stranger sh "$script" --uninstall
# from its own folder, to a prefix
check install-prefix stranger sh "$tmp/web/good/install.sh" --prefix "$tmp/home/apps"
check install-prefix-runs stranger "$tmp/home/apps/bin/cudatrace" --version
check install-syntax sh -n "$script"

# ---- the workflow that would publish ------------------------------------------------------------------------------

check workflow $python tests/dist/check.py workflow .github/workflows/release.yml
exit $failed
