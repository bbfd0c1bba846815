# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154,SC2317
# owner.sh - to whom belongs what is written under sudo: to the user who called it, if it is new and he may write to its folder.
# Sourced by run.sh; a case per function.

# The user of sudo, and another one; numbers without names.
USER_ID=54321 GROUP_ID=54322 OTHER_ID=54323

# as_sudo ARGS...: cudatrace as sudo starts it for that user. VARIABLE=VALUE in front replaces what sudo would set.
as_sudo() {
	SUDO_UID=${SUDO_UID-$USER_ID} SUDO_GID=${SUDO_GID-$GROUP_ID} ct "$@"
}

owner_of() {
	stat -c %u:%g "$1"
}

# belongs FILE...: to the user of sudo.
belongs() {
	local file
	for file in "$@"; do
		expect "the owner of $file" "$(owner_of "$file")" $USER_ID:$GROUP_ID
	done
}

# root_has FILE...: they are root's.
root_has() {
	local file
	for file in "$@"; do
		expect "the owner of $file" "$(owner_of "$file")" 0:0
	done
}

says_nothing_of_owners() {
	! grep -q 'belongs to root' "$T/err" || fail "$(grep 'belongs to root' "$T/err")"
}

# folder NAME MODE OWNER: its path in `folder`.
folder() {
	folder=$T/$1
	mkdir "$folder"
	chown "$3" "$folder"
	chmod "$2" "$folder"
}

# What root has in a folder of the user's: recordings, tables, databases, folders of files, one for each process, what is compressed.
case_owner_of_recordings() { # undisturbed
	umask 022
	folder home 700 $USER_ID:$GROUP_ID
	as_sudo record -o "$folder/r.ctrace" -- "$CALLS" mix 1 1 1
	ok_rc
	says_nothing_of_owners
	belongs "$folder/r.ctrace"
	expect "its mode" "$(stat -c %a "$folder/r.ctrace")" 600
	# the old one is kept, and the new one is new
	chown 0:0 "$folder/r.ctrace"
	as_sudo record -o "$folder/r.ctrace" -- "$CALLS" mix 1 1 1
	ok_rc
	belongs "$folder/r.ctrace"
	root_has "$folder/r.ctrace.old"
	# begun while privileges are given up: parts, what is kept in memory, a file for each process
	as_sudo record --max-size 64KiB --rotate 2 -o "$folder/parts" -- "$CALLS" mix 60000 0 0
	ok_rc
	belongs "$folder/parts" "$folder/parts.1"
	as_sudo record --last 30s --dump-on failed,end -o "$folder/dump" -- "$CALLS" fail 3
	belongs "$folder"/dump*
	as_sudo -o "$folder/rows.%p" -- "$CALLS" mix 1 1 1
	ok_rc
	belongs "$folder"/rows.*
	as_sudo record --source=hooks -o "$folder/hooks.ctrace" -- "$CALLS" mix 1 1 1
	ok_rc
	belongs "$folder/hooks.ctrace"
	says_nothing_of_owners
}

case_owner_of_exports() {
	local r=tests/traces/calls.ctrace to
	umask 022
	folder home 755 $USER_ID:$GROUP_ID
	for to in chrome csv folded flame html json nsys-sqlite parquet perfetto; do
		as_sudo export --to $to -o "$folder/$to" "$r"
		ok_rc
		says_nothing_of_owners
		belongs "$folder/$to"
	done
	belongs "$folder"/parquet/*
	expect "modes" "$(stat -c %a "$folder/nsys-sqlite" "$folder/parquet" "$folder/parquet/calls.parquet" | tr '\n' ' ')" "644 755 644 "
	as_sudo replay -o "$folder/table.gz" "$r"
	as_sudo merge -o "$folder/merged" "$r" "$r"
	as_sudo stat --save "$folder/saved" -o "$folder/sums" "$r"
	as_sudo mem --html "$folder/page" -o "$folder/memory" "$r"
	as_sudo compare -o "$folder/compared" "$folder/saved" "$folder/saved"
	as_sudo export --to chrome -o "$folder/one.%p.json" "$r"
	belongs "$folder"/{table.gz,merged,saved,sums,page,memory,compared} "$folder"/one.*
	says_nothing_of_owners
}

# Where the user may not write, nothing is given, and one line says what to type.
case_owner_elsewhere() {
	local r=tests/traces/calls.ctrace name mode owner
	while read -r name mode owner; do
		folder "$name" "$mode" "$owner"
		as_sudo replay -o "$folder/rows" "$r"
		ok_rc
		root_has "$folder/rows"
		says "^cudatrace: $folder/rows belongs to root and not to you: you may not put files there without sudo; to have it, type: sudo chown $USER_ID:$GROUP_ID $folder/rows\$"
		as_sudo replay -q -o "$folder/quiet" "$r"
		says_nothing_of_owners
		as_sudo export --to nsys-sqlite -o "$folder/db" "$r"
		ok_rc
		root_has "$folder/db"
		says "sudo chown $USER_ID:$GROUP_ID $folder/db\$"
		as_sudo export --to parquet -o "$folder/tables" "$r"
		ok_rc
		root_has "$folder/tables" "$folder/tables/calls.parquet"
		says "sudo chown -R $USER_ID:$GROUP_ID $folder/tables\$"
	done <<- EOF
		roots 755 0:0
		others 755 $OTHER_ID:$OTHER_ID
		read-only 555 $USER_ID:$GROUP_ID
		of-a-group 757 $OTHER_ID:$GROUP_ID
		not-of-a-group 707 $OTHER_ID:$OTHER_ID
	EOF
	# the group may write, and the user is in it
	folder shared 775 $OTHER_ID:$GROUP_ID
	as_sudo replay -o "$folder/rows" "$r"
	belongs "$folder/rows"
	# everybody may write to it, but only root may go there
	folder closed 700 0:0
	mkdir -m 777 "$folder/open"
	as_sudo replay -o "$folder/open/rows" "$r"
	root_has "$folder/open/rows"
	(cd "$folder/open" && as_sudo replay -o inside "$ROOT/$r")
	root_has "$folder/open/inside"
}

# An access list says less than the mode.
case_owner_access_list() {
	command -v setfacl > /dev/null || skip "no setfacl"
	folder list 775 $OTHER_ID:$GROUP_ID
	setfacl -m "g::r-x,u:$OTHER_ID:rwx" "$folder" || skip "this file system has no access lists"
	as_sudo replay -o "$folder/rows" tests/traces/calls.ctrace
	root_has "$folder/rows"
}

# In a folder as /tmp: what is new is the user's, and can be written again; what is there stays whose it is.
case_owner_sticky() {
	local r=tests/traces/calls.ctrace
	folder tmp 1777 0:0
	for _ in first again; do
		as_sudo replay -o "$folder/rows" "$r"
		ok_rc
		as_sudo export --to nsys-sqlite -o "$folder/db" "$r"
		ok_rc
		as_sudo merge -o "$folder/merged" "$r" "$r"
		ok_rc
		belongs "$folder/rows" "$folder/db" "$folder/merged"
		says_nothing_of_owners
	done
	belongs "$folder/merged.old"
	# root's, which the user could not have replaced
	chown 0:0 "$folder"/*
	as_sudo replay -o "$folder/rows" "$r"
	ok_rc
	as_sudo export --to nsys-sqlite -o "$folder/db" "$r"
	ok_rc
	says "^cudatrace: $folder/db belongs to root and not to you"
	as_sudo merge -o "$folder/merged" "$r" "$r"
	ok_rc
	says "^cudatrace: $folder/merged belongs to root and not to you"
	root_has "$folder/rows" "$folder/db" "$folder/merged" "$folder/merged.old"
	# others' files are refused as without sudo, and so is a file of the user's that has another name too
	chown $OTHER_ID "$folder/rows"
	as_sudo replay -o "$folder/rows" "$r"
	ok_rc 1
	echo precious > "$T/precious"
	chown $USER_ID "$T/precious"
	ln "$T/precious" "$folder/name"
	as_sudo replay -o "$folder/name" "$r"
	ok_rc 1
	expect "a file with two names" "$(cat "$T/precious")" precious
	# somebody else's folder of this kind
	folder tmp2 1777 $OTHER_ID:$OTHER_ID
	as_sudo replay -o "$folder/rows" "$r"
	belongs "$folder/rows"
}

# A link leads out of the user's folder: the folder counts to which it leads, and a file that is there keeps its owner.
case_owner_links() {
	local r=tests/traces/calls.ctrace home
	folder home 755 $USER_ID:$GROUP_ID
	home=$folder
	folder roots 755 0:0
	echo precious > "$folder/there"
	ln -s "$folder/new" "$home/link"
	ln -s "$folder/there" "$home/old"
	ln -s "$folder" "$home/folder"
	ln -s mine "$home/own"
	chown -h $USER_ID:$GROUP_ID "$home"/*
	as_sudo replay -o "$home/link" "$r"
	ok_rc
	root_has "$folder/new"
	says "$home/link belongs to root"
	as_sudo replay -o "$home/old" "$r"
	as_sudo replay -o "$home/folder/newer" "$r"
	as_sudo export --to nsys-sqlite -o "$home/folder/db" "$r"
	as_sudo export --to parquet -o "$home/folder/tables" "$r"
	root_has "$folder/there" "$folder/newer" "$folder/db" "$folder/tables" "$folder"
	expect "the link" "$(owner_of "$home/link")" $USER_ID:$GROUP_ID
	as_sudo replay -o "$home/own" "$r"
	belongs "$home/mine"
	# an existing file of root's in the user's folder
	echo roots > "$home/roots"
	as_sudo replay -o "$home/roots" "$r"
	ok_rc
	root_has "$home/roots"
	as_sudo replay --append -o "$home/roots" "$r"
	root_has "$home/roots"
	# devices and pipes are nobody's
	as_sudo replay -o /dev/null "$r"
	ok_rc
	expect "the device" "$(owner_of /dev/null)" 0:0
}

# What stands in SUDO_UID and SUDO_GID is not believed where it cannot be sudo's.
case_owner_wrong_numbers() {
	local r=tests/traces/calls.ctrace wrong
	folder home 777 $USER_ID:$GROUP_ID
	for wrong in '' 0 root -1 +$USER_ID "$USER_ID " "${USER_ID}x" 0x10 4294967295 4294967296 99999999999999999999 $'1\n'; do
		SUDO_UID=$wrong as_sudo replay -o "$folder/uid" "$r"
		ok_rc
		SUDO_GID=$wrong as_sudo replay -o "$folder/gid" "$r"
		ok_rc
		root_has "$folder/uid" "$folder/gid"
		says_nothing_of_owners
		rm "$folder"/*
	done
	# without the other one
	env -u SUDO_GID SUDO_UID=$USER_ID "$CUDATRACE" replay -o "$folder/alone" "$r" 2> "$T/err" || fail "$(cat "$T/err")"
	root_has "$folder/alone"
	# who is not root gives nothing away
	command -v setpriv > /dev/null || return 0
	SUDO_UID=$USER_ID SUDO_GID=$GROUP_ID setpriv --reuid $OTHER_ID --regid $OTHER_ID --clear-groups "$CUDATRACE" replay -o "$folder/not-root" "$r" 2> "$T/err" ||
		fail "$(cat "$T/err")"
	expect "the owner" "$(owner_of "$folder/not-root")" $OTHER_ID:$OTHER_ID
	says_nothing_of_owners
}
