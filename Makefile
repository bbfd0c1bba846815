# SPDX-License-Identifier: BSD-2-Clause
# cudatrace: `make` builds ./cudatrace, `make help` lists the targets. V=1 shows the commands.
OUTPUT  := .output
CLANG   ?= clang
BPFTOOL ?= $(firstword $(wildcard /usr/sbin/bpftool /usr/bin/bpftool) bpftool)
CC      ?= gcc
ARCH    := $(shell uname -m)
BPFARCH := $(patsubst x86_64,x86,$(patsubst aarch64,arm64,$(ARCH)))
VERSION := 0.1.0

Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-8s %s\n' $(1) $(2))

CPPFLAGS += -D_GNU_SOURCE -DCT_VERSION='"$(VERSION)"' -I$(OUTPUT)
CFLAGS   ?= -O2 -g
CFLAGS   += -std=gnu11 -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wno-missing-field-initializers -Werror
LDLIBS   := -lbpf -lelf -lz -levent_core

SRCS := $(wildcard user/*.c user/*/*.c)
OBJS := $(SRCS:%.c=$(OUTPUT)/%.o)

all: cudatrace

cudatrace: $(OBJS)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(OUTPUT)/%.o: %.c
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

$(OUTPUT)/user/source/bpf.o: $(OUTPUT)/cudatrace.skel.h

$(OUTPUT)/cudatrace.bpf.o: bpf/cudatrace.bpf.c bpf/cudatrace.h vmlinux/$(ARCH)/vmlinux.h
	$(call say,BPF,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) -g -O2 -Wall -Wextra -Wno-unused-parameter -Wno-gnu-variable-sized-type-not-at-end -Werror -target bpf -D__TARGET_ARCH_$(BPFARCH) -mcpu=v3 -Ivmlinux/$(ARCH) -c -o $@ $<

$(OUTPUT)/cudatrace.skel.h: $(OUTPUT)/cudatrace.bpf.o
	$(call say,SKEL,$@)
	$(Q)$(BPFTOOL) gen skeleton $< name cudatrace_bpf > $@

clean:
	$(Q)rm -rf $(OUTPUT) cudatrace cuda_events_test

-include $(OBJS:.o=.d)
.PHONY: all clean
.DELETE_ON_ERROR:
