#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# ubuntu_keys.sh - the keys of Ubuntu's archive, for apt and debootstrap on Debian, which has no package of them: tests/dist/ubuntu_keys.sh FILE
# writes them to FILE, unless it is there. They are taken out of the package of this sum, and of no other.
set -eu
SERVER=http://archive.ubuntu.com/ubuntu
PACKAGE=pool/main/u/ubuntu-keyring/ubuntu-keyring_2023.11.28.1_all.deb
SUM=36de43b15853ccae0028e9a767613770c704833f82586f28eb262f0311adb8a8

[ ! -s "$1" ] || exit 0
trap 'rm -f "$1.deb" "$1.part"' EXIT
curl -sSf -m 120 -o "$1.deb" "$SERVER/$PACKAGE"
echo "$SUM  $1.deb" | sha256sum --quiet -c -
dpkg-deb --fsys-tarfile "$1.deb" | tar -xO ./usr/share/keyrings/ubuntu-archive-keyring.gpg > "$1.part"
mv "$1.part" "$1"
