#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dist.sh - makes the files of a release: scripts/dist/dist.sh VERSION PROGRAM FOLDER (`make dist`). Fetches nothing, needs no root.
#
# PROGRAM is the static program; PROGRAM.inputs is what the linker read for it. FOLDER is emptied. Of the packages, those are made
# whose tools are here (dpkg-deb, rpmbuild, buildah); the others are named on standard error, and the status is then 1.
# SOURCE_DATE_EPOCH (default: the commit's time) is the time of every file, so that two runs give the same bytes.
set -euo pipefail
cd "$(dirname "$0")/../.."
export LC_ALL=C TZ=UTC
umask 022

[ $# = 3 ] || { echo "usage: scripts/dist/dist.sh VERSION PROGRAM FOLDER" >&2; exit 2; }
version=$1 program=$2 folder=$3
machine=$(uname -m)
case $machine in
x86_64) deb_arch=amd64 ;;
aarch64) deb_arch=arm64 ;;
*) deb_arch=$machine ;;
esac
summary="shows what running programs ask of CUDA"

if [ -z "${SOURCE_DATE_EPOCH:-}" ]; then
	SOURCE_DATE_EPOCH=$({ [ -e .git ] && git -c safe.directory='*' log -1 --format=%ct 2> /dev/null; } || stat -c %Y CHANGELOG.md)
fi
export SOURCE_DATE_EPOCH

rm -rf "$folder"
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
tmp=$(mktemp -d)
trap 'chmod -R u+w "$tmp"; rm -rf "$tmp"' EXIT
missing=()

# pack TAR FOLDER NAME...: a tar file whose bytes depend only on what is in it
pack() {
	tar -c --sort=name --format=ustar --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -f "$1" -C "$2" "${@:3}"
}

# logged COMMAND...: its output is printed only when it fails
logged() {
	"$@" > "$tmp/log" 2>&1 || {
		cat "$tmp/log" >&2
		exit 1
	}
}

# ---- what all of them contain ------------------------------------------------------------------------------------

strip -o "$tmp/cudatrace" "$program"
commit=$("$tmp/cudatrace" --version | sed -n 's/^commit //p')
python3 scripts/dist/linked.py "$tmp/cudatrace" "$program.inputs" "$version" "$commit" "$tmp/licences" "$tmp/sbom.json"
# a variable of an outer make would reach the inner one
env -u MAKEFLAGS -u MAKELEVEL make -s install PROGRAM="$tmp/cudatrace" DESTDIR="$tmp/stage" PREFIX=/usr
doc=$tmp/stage/usr/share/doc/cudatrace
cp -r "$tmp/licences" "$doc/licences"
cp "$tmp/sbom.json" "$doc/cudatrace.spdx.json"
cp "$tmp/sbom.json" "$folder/cudatrace-$version.spdx.json"
# the service starts the program from where a package puts it
sed -i 's|/usr/local/bin/|/usr/bin/|' "$doc/deploy/cudatrace.service"
find "$tmp/stage" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +

# ---- tarball -----------------------------------------------------------------------------------------------------

name=cudatrace-$version-linux-$machine
mkdir "$tmp/$name"
cp -a "$tmp/stage/usr/." "$tmp/$name"
(cd "$tmp/$name" && find . -type f | sed 's|^\./||' | sort > "$tmp/FILES")
cp "$tmp/FILES" "$tmp/$name/share/doc/cudatrace/FILES"
pack "$tmp/$name.tar" "$tmp" "$name"
gzip -9n < "$tmp/$name.tar" > "$folder/$name.tar.gz"
install -m 0755 scripts/dist/install.sh "$folder/install.sh"

# ---- .deb --------------------------------------------------------------------------------------------------------

if command -v dpkg-deb > /dev/null; then
	mkdir -p "$tmp/deb/DEBIAN"
	cp -a "$tmp/stage/." "$tmp/deb"
	gzip -9n "$tmp/deb/usr/share/man/man1/"*.1
	{
		cat LICENSE
		printf '\nThe licences of what is linked in are in /usr/share/doc/cudatrace/licences.\n'
	} > "$tmp/deb/usr/share/doc/cudatrace/copyright"
	(cd "$tmp/deb" && find usr -type f | sort | xargs md5sum > DEBIAN/md5sums)
	cat > "$tmp/deb/DEBIAN/control" <<- END
		Package: cudatrace
		Version: $version
		Architecture: $deb_arch
		Maintainer: the authors of cudatrace <cudatrace@localhost>
		Installed-Size: $(du -sk --apparent-size "$tmp/deb/usr" | cut -f 1)
		Section: devel
		Priority: optional
		Description: $summary
		 strace for the GPU: the calls that running programs make to CUDA, what the GPU
		 did, statistics, recordings, exports. Programs are not changed or restarted.
	END
	find "$tmp/deb" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
	dpkg-deb --root-owner-group -Zxz --build "$tmp/deb" "$folder/cudatrace_${version}_$deb_arch.deb" > /dev/null
else
	missing+=(dpkg-deb)
fi

# ---- .rpm --------------------------------------------------------------------------------------------------------

if command -v rpmbuild > /dev/null; then
	# What would make the file depend on this machine or on the hour is switched off; the program is stripped already.
	cat > "$tmp/cudatrace.spec" <<- END
		%define debug_package %{nil}
		%define __os_install_post %{nil}
		%define _build_id_links none
		%define _buildhost reproducible
		%define use_source_date_epoch_as_buildtime 1
		%define clamp_mtime_to_source_date_epoch 1
		%define _binary_payload w9.gzdio
		%define _docdir_fmt %{NAME}
		Name: cudatrace
		Version: $version
		Release: 1
		Summary: $summary
		License: BSD-2-Clause
		AutoReqProv: no
		%description
		strace for the GPU: the calls that running programs make to CUDA, what the GPU
		did, statistics, recordings, exports. Programs are not changed or restarted.
		%install
		mkdir -p %{buildroot}
		cp -a $tmp/stage/. %{buildroot}
		%files
		%defattr(-,root,root)
	END
	# folders that are the package's own go with it
	(cd "$tmp/stage" && find usr/share/doc/cudatrace -type d -printf '%%dir /%p\n' && find usr -type f -printf '/%p\n') >> "$tmp/cudatrace.spec"
	logged rpmbuild -bb --quiet --target "$machine-linux" --define "_topdir $tmp/rpm" --define "_rpmdir $folder" --define "_dbpath $tmp/rpmdb" \
		--define '_rpmfilename %{NAME}-%{VERSION}-%{RELEASE}.%{ARCH}.rpm' "$tmp/cudatrace.spec"
else
	missing+=(rpmbuild)
fi

# ---- container image ---------------------------------------------------------------------------------------------

if command -v buildah > /dev/null; then
	mkdir -p "$tmp/image/.output/static"
	cp "$tmp/cudatrace" "$tmp/image/.output/static/"
	cp LICENSE "$tmp/image/"
	cp -r "$tmp/licences" "$tmp/image/LICENSES"
	store=(buildah --root "$tmp/containers" --runroot "$tmp/containers.run" --storage-driver vfs)
	logged "${store[@]}" bud --quiet --isolation chroot --format oci --timestamp "$SOURCE_DATE_EPOCH" -t "cudatrace:$version" \
		--label "org.opencontainers.image.version=$version" --label org.opencontainers.image.licenses=BSD-2-Clause \
		-f deploy/Dockerfile "$tmp/image"
	logged "${store[@]}" push --quiet "cudatrace:$version" "oci:$tmp/oci:cudatrace:$version"
	pack "$folder/cudatrace-$version-oci-$machine.tar" "$tmp/oci" blobs index.json oci-layout
	sed "s|image: cudatrace:latest|image: cudatrace:$version|" deploy/daemonset.yaml > "$folder/cudatrace-$version-daemonset.yaml"
else
	missing+=(buildah)
fi

# ---- Python wheel ------------------------------------------------------------------------------------------------

python3 scripts/dist/wheel.py "$tmp/cudatrace" "$version" "$tmp/licences" "$folder"

chmod 0644 "$folder"/*
chmod 0755 "$folder/install.sh"
(cd "$folder" && sha256sum -- * > "$tmp/SHA256SUMS")
mv "$tmp/SHA256SUMS" "$folder/SHA256SUMS"
[ ${#missing[@]} = 0 ] || { echo "dist.sh: not installed, so their packages were not made: ${missing[*]}; 'scripts/deps.sh all' installs them" >&2; exit 1; }
echo "$folder:"
find "$folder" -type f -printf '%10s  %f\n' | sort -k 2
