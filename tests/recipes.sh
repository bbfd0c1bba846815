#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# recipes.sh - follows eleven recipes of docs/HOWTO.md in a copy of the tree: a function, a library (a domain), a kind of
# record, a source with a BPF object of its own that makes such records, a column, an output format, an output that keeps something for each process, a subcommand, a table that it prints, a filter of calls, a rule of advise. git counts the files that each touches,
# apart from tests; then the copy is built, reusing what is built here, and the additions have to be traced, shown in every format, filtered and stored. The additions are in tests/recipes/. Needs root and
# ./cudatrace. Prints `ok NAME` or `not ok NAME: why` for each test.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
here=$PWD
pieces=$here/tests/recipes
export LC_ALL=C

tmp=$(mktemp -d /tmp/recipes.XXXXXX) || exit 1
trap 'rm -rf "$tmp"' EXIT
failed=0
ok() {
	echo "ok $1"
}
not_ok() { # NAME WHY
	echo "not ok $1: ${2//$'\n'/ | }"
	failed=1
}
# same NAME WANT GOT
same() {
	if [ "$2" = "$3" ]; then
		ok "$1"
	else
		not_ok "$1" "want: $2; got: $3"
	fi
}
# has NAME FILE PATTERN: a line of the file matches
has() {
	if grep -aqE -- "$3" "$2"; then
		ok "$1"
	else
		not_ok "$1" "nothing in $(head -c 600 "$2") matches $3"
	fi
}

# ---- the copy ----------------------------------------------------------------------------------------------------

# The repository may belong to another user than root.
git=(git -c "safe.directory=*" -c user.name=recipes -c user.email=recipes@localhost)
if ! "${git[@]}" ls-files -z --cached --others --exclude-standard > "$tmp/files" 2> /dev/null; then
	echo "skip recipes: this is no git repository, or git is not installed"
	exit 0
fi
mkdir "$tmp/tree"
# shellcheck disable=SC2016
xargs -0 -a "$tmp/files" sh -c 'for f; do [ ! -e "$f" ] || printf "%s\0" "$f"; done' sh |
	tar -c --null -T - | tar -x -C "$tmp/tree"
# What is built already, so that only what the recipes touch is built again.
for built in agent cudatrace.bpf.o cudatrace.skel.h filters.bpf.o filters.skel.h host.bpf.o host.skel.h signals.bpf.o signals.skel.h user standin cupti counters; do
	[ ! -e "$here/.output/$built" ] || { mkdir -p "$tmp/tree/.output" && cp -a "$here/.output/$built" "$tmp/tree/.output/"; }
done
cd "$tmp/tree" || exit 1
"${git[@]}" init -q . && "${git[@]}" add -A && "${git[@]}" commit -q -m tree || exit 1

# touches RECIPE FILE...: what was changed or added since the last recipe, without tests, is these files.
touches() {
	local recipe=$1 want
	shift
	want=$(printf '%s\n' "$@" | sort | tr '\n' ' ')
	"${git[@]}" add -A
	same "$recipe-touches-$#-files" "$want" \
		"$("${git[@]}" diff --cached --name-only HEAD -- . ':!tests' | sort | tr '\n' ' ')"
	"${git[@]}" commit -q -m "$recipe"
}

# ---- a function of CUDA: a row -----------------------------------------------------------------------------------

echo 'cudaRecipe' >> tests/standin/runtime.syms
echo 'API(cudaRecipe, DEVICE, STATUS, INT(device), SIZE(size, UNIT(1)))' >> user/api/runtime.def
touches function user/api/runtime.def

# ---- a library: a table of rows, the names of its errors, and one row --------------------------------------------

# Thousands of rows before those that are called: the wire has room for them.
{
	cat "$pieces/toy.def"
	seq -f 'API(toyPad%g, CONTEXT, STATUS, INT(n))' 3000
	sed -n '/^API(/p' "$pieces/toy.def" | sed 's/toy/toyLast/'
} > user/api/toy.def
sed -i "/^\/\* The layers are the last rows/e cat $pieces/domain.def" user/api/domains.def
cat "$pieces/xlat.def" >> user/api/xlat.def
touches library user/api/toy.def user/api/domains.def user/api/xlat.def

# ---- a kind of record: a struct and its number, a row, its fields, its row on timelines ------------------------------------------------

last=$(sed -nE '/^enum ct_kind/,/CT_KIND_END/s/^\tCT_[A-Z_]+ = ([0-9]+),.*/\1/p' wire/cudatrace.h | sort -n | tail -n 1)
sed -i "s/^\tCT_KIND_END\$/\tCT_RECIPE = $((last + 1)), \/* struct ct_recipe *\/\n&/" wire/cudatrace.h
sed -i '$d' wire/cudatrace.h # the #endif
cat >> wire/cudatrace.h << 'END'
struct ct_recipe {
	struct ct_hdr h;
	__u32 spoons, pad;
};
CT_ASSERT_SIZE(struct ct_recipe, 40);

#endif
END
echo 'K(RECIPE, ct_recipe, "recipe", "recipe", KIND_DEVICE | KIND_TIMED)' >> user/event/kinds.def
sed -i 's/^\tcase CT_OVERHEAD: .*/&\n\tcase CT_RECIPE:\n\t\tfield_add_u(\&at, "spoons", FIELD_UINT, ((const struct ct_recipe *)h)->spoons);\n\t\tbreak;/' \
	user/event/device_fields.c
echo 'S(RECIPE, RANGES, "recipe", "user_annotation", RANGE, SLICE_ROW | SLICE_NESTS | SLICE_RANGE, any)' >> user/export/slice/slices.def
touches kind wire/cudatrace.h user/event/kinds.def user/event/device_fields.c user/export/slice/slices.def

# ---- a source with an object of its own in the kernel: its two files, and a row ------------------------------------

cp "$pieces/recipe.bpf.c" bpf/recipe.bpf.c
cp "$pieces/source.c" user/source/states/recipe.c
echo 'A(recipe, o->host)' >> user/source/added.def
touches source bpf/recipe.bpf.c user/source/states/recipe.c user/source/added.def

# ---- a column: a row. The field is shown by the outputs without columns as it is. ---------------------------------

sed -i 's#^/\* csv ends here \*/$#C(SPOONS, "spoons", I64, OTHERS)\n&#' user/render/columns.def
touches column user/render/columns.def

# ---- an output format: a file and a row --------------------------------------------------------------------------

cp "$pieces/names.c" user/export/rows/names.c
echo 'S(names, ".names", SINKS_EXPORT)' >> user/flow/sinks.def
touches format user/export/rows/names.c user/flow/sinks.def

# ---- an output that keeps something for each process: likewise, with a struct and two callbacks ------------------

cp "$pieces/each.c" user/export/rows/each.c
echo 'S(each, ".each", SINKS_EXPORT)' >> user/flow/sinks.def
touches each user/export/rows/each.c user/flow/sinks.def

# ---- a subcommand: a row and a file ------------------------------------------------------------------------------

sed -i '$s/$/ \\/' user/cli/options/commands.def
printf '\tX(arg, RECIPE, recipe, 0, "", "what a recipe makes")\n' >> user/cli/options/commands.def
cp "$pieces/cmd_recipe.c" user/cli/cmd_recipe.c
touches subcommand user/cli/options/commands.def user/cli/cmd_recipe.c

# ---- a column of a table that a command prints: a row, for text, JSON and CSV ------------------------------------

sed -i 's#^\t/\* another column goes here \*/$#\t{ .key = "stirred", .head = "Stirred", .text = 2, .csv = 3, .width = 7, TABLE_AT(struct dish, stirred) },\n&#' \
	user/cli/cmd_recipe.c
same table-column-is-1-row "1 0" "$("${git[@]}" diff --numstat -- user | cut -f1,2 | tr '\t' ' ')"
touches table-column user/cli/cmd_recipe.c

# ---- a filter of calls: a member, the option's row, the kernel side ----------------------------------------------

sed -i -e 's/^\t__u64 min_duration_ns, min_size_bytes;/&\n\t__u64 max_size_bytes;/' \
	-e 's/^\(CT_ASSERT_SIZE(struct ct_filter\), 24/\1, 32/; s/^\(CT_ASSERT_SIZE(struct ct_config\), 72/\1, 80/' wire/control.h
sed -i 's/^\t{ 0, "min-size", /\t{ 0, "max-size", "SIZE", SIZE(ask.filter.max_size_bytes, 0, OPTION_MAX, "give bytes"), OPTS_TRACE, NULL, "calls of at most this size" },\n&/' \
	user/cli/options/opts.c
sed -i 's/^\treturn config.filter.min_size_bytes && (flags & CT_S_MATCH_SIZE) &&$/\tif (config.filter.max_size_bytes \&\& (flags \& CT_S_MATCH_SIZE) \&\&\n\t    f->data[spec->size_word \& (CT_MAX_WORDS - 1)] > config.filter.max_size_bytes)\n\t\treturn true;\n&/' \
	bpf/capture.bpf.h
touches filter wire/control.h user/cli/options/opts.c bpf/capture.bpf.h

# ---- a rule of advise: a file and a word -------------------------------------------------------------------------

cp "$pieces/rule.c" user/advise/rules/recipe.c
echo 'RULE(recipe)' >> user/advise/rules.def
touches rule user/advise/rules/recipe.c user/advise/rules.def

# ---- the rules of docs/ARCHITECTURE.md still hold -------------------------------------------------------------------

same rules-hold "" "$(python3 scripts/check_rooms.py | grep -v '^ok ')"

# ---- build -------------------------------------------------------------------------------------------------------

export CCACHE_BASEDIR=$tmp/tree CCACHE_NOHASHDIR=1
if ! make -j "$(nproc)" cudatrace standin .output/unit/test_opts > "$tmp/log" 2>&1; then
	not_ok build "$(grep -E 'error|Error' "$tmp/log" | head -n 5)"
	exit 1
fi
ok build
ct=$tmp/tree/cudatrace
lib=$tmp/tree/.output/standin
{
	cc -O1 -fPIC -fcf-protection=none -fno-omit-frame-pointer -shared -Wl,-soname,libtoy.so.2 -o "$lib/libtoy.so.2" \
		"$pieces/toy.c" -L"$lib" -lcudart &&
		cc -O1 -o "$tmp/again" "$pieces/again.c" -L"$lib" -lcudart -Wl,-rpath,"$lib" &&
		cc -O1 -o "$tmp/program" "$pieces/program.c" "$lib/libtoy.so.2" -L"$lib" -lcudart -Wl,-rpath,"$lib"
} > "$tmp/log" 2>&1 || not_ok program "$(cat "$tmp/log")"

# traced OPTION...: rows of the program's calls, without times and ids
traced() {
	"$ct" -o "$tmp/rows" "$@" -- "$tmp/program" > "$tmp/log" 2>&1 || cat "$tmp/log" >> "$tmp/rows"
}

# ---- the function is traced --------------------------------------------------------------------------------------

traced --format json
has function-traced "$tmp/rows" '"domain":"runtime","name":"cudaRecipe","args":\{"device":3,"size":4096\}'
has function-listed <("$ct" list cudaRecipe) '^runtime +device +cudaRecipe\(device, size\)'

# ---- the subcommand runs, and is where commands and options are listed -------------------------------------------

same options-of-all "" "$(.output/unit/test_opts 2>&1 | grep FAILED)" # of the subcommand, and of the library, which is no layer
same subcommand-runs made "$("$ct" recipe)"
same subcommand-option $'made\nmade' "$("$ct" recipe --times 2)"
has subcommand-wrong-value <("$ct" recipe --times 10 2>&1) "'10' is no number of times; give 1 to 9"
has subcommand-in-help <("$ct" --help) '^ +cudatrace recipe +what a recipe makes'
has subcommand-own-help <("$ct" recipe --help) '^ +--times N +how often it is said \[1\]'
has subcommand-completed <("$ct" --complete rec) '^recipe$'
has subcommand-option-completed <("$ct" --complete recipe --t) '^--times$'
has subcommand-misspelled <("$ct" recipy 2>&1) 'did you mean recipe'

same table-in-text $'      Size Stirred  Dish\n   2.0 KiB       3  soup\n      10 B       0  a "roll"' "$("$ct" recipe --format table)"
same table-in-json $'{"name":"soup","bytes":2048,"stirred":3}\n{"name":"a \\"roll\\"","bytes":10,"stirred":0}' "$("$ct" recipe --format json)"
same table-in-csv $'name,bytes,stirred\n"soup",2048,3\n"a ""roll""",10,0' "$("$ct" recipe --format csv | tr -d '\r')"

# ---- the library is traced, chosen, shown in every format, and survives a recording ------------------------------

has library-output "$tmp/rows" '"name":"toyOpen","args":\{"name":"first","session":102\}'
has library-with-thousands "$tmp/rows" '"name":"toyLastSend","args":\{"session":5,"buffer":"0x6","bytes":7\}'
has library-error "$tmp/rows" '"name":"toySend".*TOY_NO_SESSION'
# What it calls stands for itself: nothing folds into it.
same library-does-not-fold "toyOpen toySend cudaMalloc cudaFree toySend toyLastSend" \
	"$(sed -nE 's/.*"start_ns":([0-9]+).*"domain":"[a-z]*","name":"(toy[A-Za-z]*|cudaMalloc|cudaFree)".*/\1 \2/p' "$tmp/rows" | sort -n | cut -d' ' -f2 | tr '\n' ' ' | sed 's/ $//')"
traced --format json -e toy
same library-chosen-by-events "toyOpen toySend toySend toyLastSend" "$(sed -nE 's/.*"domain":"[a-z]*","name":"([A-Za-z]*)".*/\1/p' "$tmp/rows" | tr '\n' ' ' | sed 's/ $//')"
traced --format json --domain toy -e '*Send'
same library-chosen-by-domain "toySend toySend toyLastSend" "$(sed -nE 's/.*"domain":"[a-z]*","name":"([A-Za-z]*)".*/\1/p' "$tmp/rows" | tr '\n' ' ' | sed 's/ $//')"
has library-listed <("$ct" list --domain toy) '^toy +peer +toySend\(session, buffer, bytes\)'
has library-in-help <("$ct" --help) '^Libraries:.* toy'
has library-completed <("$ct" --complete trace --domain '') '^toy$'
"$ct" doctor > "$tmp/doctor" 2>&1
"$ct" stat -o "$tmp/stat" --save "$tmp/saved" -- "$tmp/program" > "$tmp/log" 2>&1
has library-in-stat "$tmp/stat" '^Toy calls'
has library-in-stat-rows "$tmp/stat" ' toySend$'
"$ct" compare "$tmp/saved" "$tmp/saved" --fail-if 'toy.calls!=4' > "$tmp/log" 2>&1
same library-in-compare 0 $?
if ! "$ct" record -o "$tmp/recording" -- "$tmp/program" > "$tmp/log" 2>&1; then
	not_ok library-recorded "$(cat "$tmp/log")"
fi
# texts_of READER FILE: the cells of a file whose texts are compressed.
texts_of() {
	python3 -c 'import sys; sys.path.insert(0, "tests/export"); r = __import__(sys.argv[1]); p = sys.argv[2]
print(r.read(open(p, "rb").read() if sys.argv[1] == "check_arrow" else p))' "$@"
}
for format in $("$ct" --complete export --to ''); do
	"$ct" export --to "$format" -o "$tmp/out.$format" "$tmp/recording" > "$tmp/log" 2>&1 || cp "$tmp/log" "$tmp/out.$format"
	case $format in
	html) has "library-in-$format" <(python3 tests/timeline/page.py "$tmp/out.$format" 2>&1) toySend ;;
	arrow) has "library-in-$format" <(texts_of check_arrow "$tmp/out.$format" 2>&1) toySend ;;
	parquet) has "library-in-$format" <(texts_of check_parquet "$tmp/out.$format/calls.parquet" 2>&1) toySend ;;
	memory-viz | each) ;; # blocks of PyTorch's allocator, no calls; numbers of calls
	*) has "library-in-$format" "$tmp/out.$format" toySend ;;
	esac
done
"$ct" replay --format json -e toy -o "$tmp/rows" "$tmp/recording" > "$tmp/log" 2>&1
same library-replayed "toyOpen toySend toySend toyLastSend" "$(sed -nE 's/.*"domain":"[a-z]*","name":"([A-Za-z]*)".*/\1/p' "$tmp/rows" | tr '\n' ' ' | sed 's/ $//')"
# A version without the library tells its calls by their names.
"$here/cudatrace" replay -o "$tmp/rows" "$tmp/recording" > "$tmp/log" 2>&1
has library-unknown-elsewhere "$tmp/rows" toySend

# ---- the kind of record is shown, filtered and stored ------------------------------------------------------------

mapfile -t objects < <(find user -name '*.c' ! -name main.c | sed 's,\(.*\)\.c,.output/\1.o,')
libs=$(sed -nE 's/^LDLIBS +:= *//p' Makefile)
# shellcheck disable=SC2086
cc -D_GNU_SOURCE -o "$tmp/record" "$tmp/tree/tests/recipes/record.c" "${objects[@]}" $libs > "$tmp/log" 2>&1 || not_ok record "$(cat "$tmp/log")"
"$tmp/record" "$tmp/kinds" || not_ok kind-stored "it cannot be written"
"$ct" replay "$tmp/kinds" > "$tmp/rows" 2>&1
has kind-in-table "$tmp/rows" '\[recipe\].*spoons=3'
"$ct" replay --format json "$tmp/kinds" > "$tmp/rows" 2>&1
same kind-in-json 2 "$(grep -c '"type":"recipe".*"spoons":[34]' "$tmp/rows")"
"$ct" replay --format json --min-duration 10ms "$tmp/kinds" > "$tmp/rows" 2>&1
same kind-filtered-by-duration '"spoons":4' "$(grep -oE '"spoons":[0-9]+' "$tmp/rows" | tr '\n' ' ' | sed 's/ $//')"
"$ct" replay --format json -e none "$tmp/kinds" > "$tmp/rows" 2>&1
same kind-kept-by-events-none 2 "$(grep -c '"type":"recipe"' "$tmp/rows")"
"$ct" replay --format json -p 78 "$tmp/kinds" > "$tmp/rows" 2>&1
same kind-filtered-by-process 0 "$(grep -c '"type":"recipe"' "$tmp/rows")"
"$ct" merge -o "$tmp/merged" "$tmp/kinds" "$tmp/recording" > "$tmp/log" 2>&1
"$ct" replay --format json "$tmp/merged" > "$tmp/rows" 2>&1
same kind-merged 2 "$(grep -c '"type":"recipe".*"spoons":[34]' "$tmp/rows")"
# in_every_output NAME RECORDING: its records of the new kind are in every output that shows kinds
in_every_output() {
	local name=$1 recording=$2 out=$tmp/$1 format
	for format in $("$ct" --complete export --to ''); do
		"$ct" export --to "$format" -o "$out.$format" "$recording" > "$tmp/log" 2>&1
		same "$name-stops-no-$format" 0 $?
		case $format in
		html) has "$name-in-$format" <(python3 tests/timeline/page.py "$out.$format" 2>&1) recipe ;;
		arrow) has "$name-in-$format" <(texts_of check_arrow "$out.$format" 2>&1) recipe ;;
		parquet) has "$name-in-$format" <(texts_of check_parquet "$out.$format/others.parquet" 2>&1) recipe ;;
		csv) has "$name-in-$format" "$out.$format" '(^|,)recipe,' ;;
		speedscope) [ "$name" = source ] || has "$name-in-$format" "$out.$format" recipe ;; # stacks, in a recording that has some
		json | perfetto | chrome | nsys-sqlite) has "$name-in-$format" "$out.$format" recipe ;;
		esac
	done
}
in_every_output kind "$tmp/kinds"

# ---- the source's records are seen live, and are in every output -----------------------------------------------------

"$ct" record --host -o "$tmp/signals" -- "$tmp/program" > "$tmp/log" 2>&1 || not_ok source-records "$(cat "$tmp/log")"
has source-in-table <("$ct" replay "$tmp/signals" 2>&1) '\[recipe\].*spoons=10'
same source-number-of-records '"spoons":10' "$("$ct" replay --format json "$tmp/signals" 2>&1 | grep -oE '"spoons":[0-9]+' | tr '\n' ' ' | sed 's/ $//')"
in_every_output source "$tmp/signals"

# ---- the column is in every table --------------------------------------------------------------------------------

same column-in-csv "3 4" "$(python3 -c 'import csv, sys; print(*[r["spoons"] for r in csv.DictReader(open(sys.argv[1])) if r["spoons"]])' "$tmp/kind.csv" 2>&1)"
has column-in-parquet <(texts_of check_parquet "$tmp/kind.parquet/others.parquet" 2>&1) spoons
has column-in-arrow <(texts_of check_arrow "$tmp/kind.arrow" 2>&1) spoons
has column-in-table <("$ct" replay "$tmp/kinds" 2>&1) 'spoons=3'
has column-in-json <("$ct" replay --format json "$tmp/kinds" 2>&1) '"spoons":3'

# ---- the format is written ---------------------------------------------------------------------------------------

traced --format names
same format-live "call toyOpen" "$(grep toyOpen "$tmp/rows")"
same format-exported "call toySend call toySend" "$(grep toySend "$tmp/out.names" | tr '\n' ' ' | sed 's/ $//')"
same format-of-a-kind "recipe recipe" "$(grep recipe "$tmp/kind.names" | tr '\n' ' ' | sed 's/ $//')"

# ---- the output sees when a process becomes another program, and when it ends ------------------------------------

"$ct" record -o "$tmp/twice" -- "$tmp/again" > "$tmp/log" 2>&1
"$ct" -o "$tmp/rows" --format each -- "$tmp/again" > "$tmp/log" 2>&1
same each-live $'1 calls until its exec\n2 calls until its exit' "$(cat "$tmp/rows")"
same each-exported $'1 calls until its exec\n2 calls until its exit' "$("$ct" export --to each -o - "$tmp/twice" 2> "$tmp/log")"

# ---- the filter decides in the kernel ----------------------------------------------------------------------------

traced --format json --max-size 4096 -e 'cudaRecipe,toy'
same filter-lets-pass 'cudaRecipe toyOpen toySend toyLastSend' "$(sed -nE 's/.*"domain":"[a-z]*","name":"([A-Za-z]*)".*/\1/p' "$tmp/rows" | tr '\n' ' ' | sed 's/ $//')"
traced --format json --max-size 4095 -e 'cudaRecipe,toy'
same filter-drops 'toyOpen toySend toyLastSend' "$(sed -nE 's/.*"domain":"[a-z]*","name":"([A-Za-z]*)".*/\1/p' "$tmp/rows" | tr '\n' ' ' | sed 's/ $//')"
has filter-in-help <("$ct" --help) '--max-size SIZE +calls of at most this size'

# ---- the rule makes its finding ----------------------------------------------------------------------------------

"$ct" advise -o "$tmp/advice" -- "$tmp/program" > "$tmp/log" 2>&1
has rule-finds "$tmp/advice" 'the recipe allocates 1 time'
has rule-says-what-to-do "$tmp/advice" 'Mend the recipe'
exit $failed
