# SPDX-License-Identifier: BSD-2-Clause
# cudatrace: `make` builds ./cudatrace, `make help` lists the targets. V=1 shows the commands.
OUTPUT  := .output
CLANG   ?= clang
# Ubuntu's /usr/sbin/bpftool only looks for that of the kernel that runs.
BPFTOOL ?= $(firstword $(wildcard /usr/lib/linux-tools/*/bpftool /usr/sbin/bpftool /usr/bin/bpftool) bpftool)
CC      ?= gcc
STRIP   ?= strip
OBJCOPY ?= objcopy
ARCH    := $(shell uname -m)
BPFARCH := $(patsubst x86_64,x86,$(patsubst aarch64,arm64,$(ARCH)))
VERSION := 0.1.0
# What --version says of the source. Without a repository (a copy of the files) nothing is known.
COMMIT  ?= $(if $(wildcard .git),$(shell GIT_OPTIONAL_LOCKS=0 git -c safe.directory='*' describe --always --dirty --abbrev=12 --exclude='*' 2> /dev/null))
DESTDIR ?=
PREFIX  ?= /usr/local

Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-8s %s\n' $(1) $(2))

CFLAGS   ?= -O2 -g
# cudatrace runs as root and reads what others wrote; tests/hardening.sh holds it to these. A build without optimisation needs HARDENING=.
HARDENING ?= -fstack-protector-strong -D_FORTIFY_SOURCE=2 -fPIE
HARDENING_LD ?= -Wl,-z,relro,-z,now
WARN     := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wno-missing-field-initializers -Werror
# A record ends with an array without a length, and is a member of what gives it its room: GNU C.
CC_CLANG := $(findstring clang,$(shell $(CC) --version 2> /dev/null))
WARN     += $(if $(CC_CLANG),-Wno-gnu-variable-sized-type-not-at-end)
CT_CPPFLAGS := -D_GNU_SOURCE -DCT_VERSION='"$(VERSION)"' -I$(OUTPUT)
CT_CFLAGS := -std=gnu11 $(WARN) $(HARDENING) -pthread
LDLIBS   := -lbpf -ldw -lelf -lz -llzma -liberty -lzstd -llz4 -lsqlite3 -ljson-c -lncursesw -ltinfo -levent_extra -levent_openssl -levent_core -lssl -lcrypto -lyaml -lcrypt -lm -pthread
LDLIBS_STATIC := -lbpf -ldw -lelf -lz -llzma -lbz2 -liberty -lzstd -llz4 -lsqlite3 -ljson-c -lncursesw -ltinfo -levent_extra -levent_openssl -levent_core -lssl -lcrypto -lyaml -lcrypt -ldl -lm -pthread

SRCS := $(sort $(shell find user -name '*.c'))
OBJS := $(SRCS:%.c=$(OUTPUT)/%.o)
LIB  := $(filter-out $(OUTPUT)/user/cli/main.o,$(OBJS))
# The same for test programs: each is linked with what it needs, which is ten times as fast as with all, a hundred times over. An archive
# of references (T) takes no room.
LIBRARY := $(OUTPUT)/user.a
# The kernel side's objects: each bpf/NAME.bpf.c becomes NAME.skel.h, for user/source to include.
BPF := $(patsubst bpf/%.bpf.c,%,$(wildcard bpf/*.bpf.c))
SKELS := $(BPF:%=$(OUTPUT)/%.skel.h)

all: cudatrace

help:
	@echo 'make                 ./cudatrace'
	@echo 'make static          .output/static/cudatrace: one file to copy to another machine'
	@echo 'make test            the shorter test suites (as root, by sudo); the last line counts them'
	@echo 'make unit            the tests that need no root; T=join CASE=orders: one program, one case'
	@echo 'make bench           speed, as ratios in one run (as root)'
	@echo 'make demo            a trace of the sample program (as root, by sudo)'
	@echo 'make standin         libcudart and libcuda that need no GPU'
	@echo 'make format          lays the C files out as .clang-format has it'
	@echo 'make install         to $$(DESTDIR)$$(PREFIX), /usr/local by default; make uninstall removes it'
	@echo 'make dist            .output/dist: a release: tarball, .deb, .rpm, container image, Python wheel'

include target/cupti/Makefile.inc
include target/hooks/Makefile.inc
include tests/hooks/Makefile.inc
include tests/standin/Makefile.inc
include $(wildcard tests/cases/Makefile.inc)
include $(wildcard tests/programs/Makefile.inc)
include tests/traces/Makefile.inc
include tests/fuzz/Makefile.inc
include counters/Makefile.inc

cudatrace: $(OBJS)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) -pie $(HARDENING_LD) $(LDFLAGS) -o $@ $^ $(LDLIBS)

static: $(OUTPUT)/static/cudatrace
$(OUTPUT)/static/cudatrace: $(OBJS)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -static-pie $(HARDENING_LD) $(LDFLAGS) -Wl,-t,-t -o $@ $^ $(LDLIBS_STATIC) 2>$@.log > $@.inputs || { cat $@.log; exit 1; }

$(LIBRARY): $(LIB)
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcsT $@ $^

$(OUTPUT)/%.o: %.c
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CT_CPPFLAGS) $(CPPFLAGS) $(CT_CFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

# They are there before user/source is compiled for the first time; from then on the compiler's lists say who includes which.
$(filter $(OUTPUT)/user/source/%,$(OBJS)): | $(SKELS)
$(OUTPUT)/user/source/built.o: CT_CPPFLAGS += -DCT_COMMIT='"$(COMMIT)"'
$(OUTPUT)/user/source/built.o: $(OUTPUT)/commit
# Made anew only when it would be another, so that `make -q` finds nothing to do.
ifneq ($(shell cat $(OUTPUT)/commit 2> /dev/null),$(VERSION) $(COMMIT))
$(OUTPUT)/commit: FORCE
endif
$(OUTPUT)/commit:
	$(Q)mkdir -p $(@D)
	$(Q)echo '$(VERSION) $(COMMIT)' > $@
$(OUTPUT)/user/cli/cmd_schema.o: docs/schema.json
$(OUTPUT)/user/export/stacks/flame.o: user/export/stacks/flame.html
$(OUTPUT)/user/source/counters/counters_image.o: $(COUNTERS)
$(OUTPUT)/user/source/counters/counters_image.o: CT_CPPFLAGS += -DCT_COUNTERS_HELPER='"$(COUNTERS)"'
$(OUTPUT)/user/export/html/html.o: user/export/html/timeline.html
$(OUTPUT)/user/mem/mem_page.o: user/mem/mem_page.html
$(OUTPUT)/user/export/nsys/nsys_names.o: user/export/nsys/nsys_cbid.def

BPF_CFLAGS := -g -O2 -mcpu=v3 -target bpf -D__TARGET_ARCH_$(BPFARCH) -Wall -Wextra -Wno-unused-parameter \
	-Wno-gnu-variable-sized-type-not-at-end -Werror -Ivmlinux/$(ARCH) -Ibpf
$(OUTPUT)/%.bpf.o: bpf/%.bpf.c $(wildcard bpf/*.h wire/*.h capture/*.h) vmlinux/types.h vmlinux/$(ARCH)/vmlinux.h
	$(call say,BPF,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) -c -o $@ $<

$(SKELS): $(OUTPUT)/%.skel.h: $(OUTPUT)/%.bpf.o
	$(call say,SKEL,$@)
	$(Q)$(BPFTOOL) gen skeleton $< name $*_bpf > $@

# The other architecture's BPF objects: compiled, so that they stay compilable.
bpf-arm64:
	$(Q)for name in $(BPF); do \
		$(CLANG) $(subst -D__TARGET_ARCH_$(BPFARCH),-D__TARGET_ARCH_arm64,$(subst vmlinux/$(ARCH),vmlinux/aarch64,$(BPF_CFLAGS))) \
			-c -o $(OUTPUT)/$$name-arm64.bpf.o bpf/$$name.bpf.c || exit 1; \
	done

# ---- tests and benchmarks ----------------------------------------------------------------------------------

UNIT_SRCS := $(wildcard tests/unit/test_*.c)
UNIT := $(UNIT_SRCS:tests/unit/%.c=$(OUTPUT)/unit/%)
$(OUTPUT)/unit/%: $(OUTPUT)/tests/unit/%.o $(LIBRARY)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter-out $(LIBRARY),$^) $(LIBRARY) $(LDLIBS)
# Objects of tests stay: programs are linked anew when a file of user/ has changed, and scripts/mutate.py links them with copies.
.SECONDARY: $(UNIT_SRCS:%.c=$(OUTPUT)/%.o)
unit-programs: $(UNIT)
# All unit tests, or with T=join that of one program, and with CASE=orders its cases with this in their names. test_agent runs the
# stand-in's programs.
ifneq ($(filter-out $(UNIT_SRCS:tests/unit/test_%.c=%),$(T:test_%=%)),)
$(error T is one of: $(UNIT_SRCS:tests/unit/test_%.c=%))
endif
UNIT_RUN := $(if $(T),$(patsubst %,$(OUTPUT)/unit/test_%,$(T:test_%=%)),$(UNIT))
unit: $(UNIT_RUN) standin
	$(Q)tests/unit/run.sh $(UNIT_RUN)

# The user side with AddressSanitizer and UndefinedBehaviorSanitizer, in a folder of its own.
SAN_FLAGS := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
sanitized:
	$(Q)$(MAKE) --no-print-directory OUTPUT=$(OUTPUT)/san CFLAGS='$(SAN_FLAGS)' HARDENING= unit-programs $(OUTPUT)/san/cudatrace
$(OUTPUT)/cudatrace: $(OBJS)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) -pie $(HARDENING_LD) $(LDFLAGS) -o $@ $^ $(LDLIBS)

BENCH := $(OUTPUT)/bench
# Static, as they are run on GPU machines too; ld's warnings about getaddrinfo concern nothing that is called.
$(BENCH)/empty.bpf.o: tests/bench/empty.bpf.c vmlinux/$(ARCH)/vmlinux.h
	$(call say,BPF,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) -c -o $@ $<
$(BENCH)/empty.skel.h: $(BENCH)/empty.bpf.o
	$(Q)$(BPFTOOL) gen skeleton $< name empty_bpf > $@
$(BENCH)/empty: tests/bench/empty.c $(BENCH)/empty.skel.h $(LIBRARY)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CT_CPPFLAGS) -I$(BENCH) $(CT_CFLAGS) $(CFLAGS) -static -o $@ $< $(LIBRARY) $(LDLIBS_STATIC) 2>/dev/null
$(BENCH)/target $(BENCH)/loads $(BENCH)/pingpong: $(BENCH)/%: tests/bench/%.c
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CT_CPPFLAGS) $(CT_CFLAGS) -O2 -o $@ $< -ldl
$(BENCH)/many: tests/bench/many.c
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CT_CPPFLAGS) $(CT_CFLAGS) -O2 -o $@ $< -ldl
$(BENCH)/bench_nsys: $(OUTPUT)/tests/bench/bench_nsys.o $(LIBRARY)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -static -o $@ $^ $(LDLIBS_STATIC) 2>/dev/null
$(BENCH)/bench_advise: $(OUTPUT)/tests/bench/bench_advise.o $(LIBRARY)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -static -o $@ $^ $(LDLIBS_STATIC) 2>/dev/null
$(BENCH)/bench_sinks: $(OUTPUT)/tests/bench/bench_sinks.o $(LIBRARY)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -static -o $@ $^ $(LDLIBS_STATIC) 2>/dev/null
$(BENCH)/bench_stat: $(OUTPUT)/tests/bench/bench_stat.o $(LIBRARY)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -static -o $@ $^ $(LDLIBS_STATIC) 2>/dev/null
$(BENCH)/bench_trace: $(OUTPUT)/tests/bench/bench_trace.o $(LIBRARY)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -static -o $@ $^ $(LDLIBS_STATIC) 2>/dev/null
$(BENCH)/hooks_on: tests/bench/hooks_on.c tests/hooks/exported.h
$(BENCH)/hooks $(BENCH)/hooks_on: $(BENCH)/%: tests/bench/%.c target/engine/engine.h $(ENGINE_OBJS)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CT_CPPFLAGS) -std=gnu11 $(WARN) -O2 -pthread -o $@ $< $(ENGINE_OBJS) -ldl
$(BENCH)/hooks_cold: tests/bench/hooks_cold.c $(wildcard target/hooks/*.h target/engine/*.h target/common/*.h wire/*.h capture/*.h) $(CAPTURE_OBJS) $(ENGINE_OBJS)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -D_GNU_SOURCE -std=gnu11 $(WARN) -O2 -pthread -o $@ $< $(CAPTURE_OBJS) $(ENGINE_OBJS)
bench-programs: $(BENCH)/loads $(BENCH)/pingpong $(BENCH)/hooks $(BENCH)/hooks_cold $(BENCH)/hooks_on $(BENCH)/bench_trace $(BENCH)/empty $(BENCH)/target $(BENCH)/many $(BENCH)/bench_sinks $(BENCH)/bench_nsys $(BENCH)/bench_stat $(BENCH)/bench_advise
bench: cudatrace standin cases-progs bench-programs
	$(Q)tests/bench/run.sh

check-api:
	$(Q)scripts/check_api.py

test:
	$(Q)scripts/test.sh

format:
	$(Q)scripts/check_format.sh --fix

demo:
	$(Q)scripts/demo.sh

# What is installed, and as what below PREFIX: uninstall removes the same. The pages keep their places, so that the links between them
# lead to files.
PROGRAM ?= cudatrace
PAGES := README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md LICENSE scripts/cuda_events.sh scripts/cuda_events.bt \
	$(sort $(wildcard docs/*.md docs/*.py docs/*.ctrace docs/*.json docs/internals/*.md docs/pictures/* deploy/*))
# A page for each command, from the rows of its --help; what runs without a word has the large page.
COMMANDS := $(filter-out trace,$(shell sed -n 's/^\tX.arg, [A-Z]*, \([a-z]*\),.*/\1/p' user/cli/options/commands.def))
COMMAND_PAGES := $(COMMANDS:%=$(OUTPUT)/man/cudatrace-%.1)
INSTALLED := docs/cudatrace.1:share/man/man1/cudatrace.1 \
	$(foreach page,$(COMMAND_PAGES),$(page):share/man/man1/$(notdir $(page))) \
	scripts/completions/cudatrace.bash:share/bash-completion/completions/cudatrace \
	scripts/completions/_cudatrace:share/zsh/site-functions/_cudatrace \
	scripts/completions/cudatrace.fish:share/fish/vendor_completions.d/cudatrace.fish \
	$(foreach page,$(PAGES),$(page):share/doc/cudatrace/$(page))

# Most commands need no root: bin, not sbin, where 0.1.0 put it and where it would be found first.
install: $(PROGRAM)
	$(Q)scripts/gen_man.sh $(PROGRAM) $(OUTPUT)/man
	$(Q)chown -R --reference=. $(OUTPUT)/man 2> /dev/null || true # root must not leave files where a user builds
	install -D -m 0755 $(PROGRAM) $(DESTDIR)$(PREFIX)/bin/cudatrace
	rm -f $(DESTDIR)$(PREFIX)/sbin/cudatrace
	$(Q)for file in $(INSTALLED); do \
		install -D -m 0644 "$${file%%:*}" "$(DESTDIR)$(PREFIX)/$${file#*:}" || exit 1; \
	done

# Folders that only cudatrace has go too; those that others may have files in stay.
uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/cudatrace
	$(Q)for file in $(INSTALLED); do rm -f "$(DESTDIR)$(PREFIX)/$${file#*:}" || exit 1; done
	$(Q)for folder in docs/internals docs/pictures docs deploy scripts ''; do \
		[ ! -d "$(DESTDIR)$(PREFIX)/share/doc/cudatrace/$$folder" ] || \
			rmdir --ignore-fail-on-non-empty "$(DESTDIR)$(PREFIX)/share/doc/cudatrace/$$folder"; \
	done

# A release as it would be published, in .output/dist; nothing is fetched. docs/releases.md says what each file is.
dist: $(OUTPUT)/static/cudatrace
	$(Q)scripts/dist/dist.sh $(VERSION) $< $(OUTPUT)/dist

clean:
	$(Q)rm -rf $(OUTPUT) cudatrace cuda_events_test

-include $(OBJS:.o=.d) $(UNIT_SRCS:%.c=$(OUTPUT)/%.d) $(wildcard $(OUTPUT)/tests/bench/*.d)
.PHONY: all help format static unit unit-programs sanitized bench bench-programs bpf-arm64 check-api test demo install uninstall dist clean FORCE
.DELETE_ON_ERROR:
.SECONDARY:
