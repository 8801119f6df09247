# SPDX-License-Identifier: GPL-2.0-or-later
#
# make                 build into build/
# make deps            install the Debian packages that are missing (deps.txt), as root
# make check           install, build, run all tests; ends with "N passed, N failed, N skipped"
# make demo [APP=...]  the demonstration on the simulated disk, as root
# make check-boot      headstart on Debian 12's own kernel, in QEMU, as root
# make bench-record [PAIRS=20]  what recording costs a warm start, as root
# make install DESTDIR= PREFIX=/usr/local
# make uninstall       the same variables
# make fuzz            every parser of untrusted input, 60 s each, with sanitizers (tests/fuzz)
# make clean           removes what was compiled; make distclean removes build/ whole
#
# Variables: V=1 shows commands, WERROR=1 makes warnings errors, SANITIZE=address,undefined.

PREFIX ?= /usr/local
BUILD ?= build
CC ?= gcc
MUSL_CC ?= $(shell command -v musl-gcc 2>/dev/null)
PKG_CONFIG ?= pkg-config
OPT ?= -O2 -g
V ?= 0
Q := $(if $(filter 1,$(V)),,@)

VERSION := 0.1.0

HARDENING := -fstack-protector-strong -fPIE -D_FORTIFY_SOURCE=2 -Wformat -Wformat-security \
             $(if $(filter x86_64,$(shell uname -m)),-fstack-clash-protection -fcf-protection)
ifneq ($(SANITIZE),)
HARDENING := -fsanitize=$(SANITIZE) -fno-omit-frame-pointer
endif
WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
            -Wno-missing-field-initializers $(if $(WERROR),-Werror)
COMMON_FLAGS := -std=gnu17 $(OPT) $(WARNINGS) -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 \
                -DHEADSTART_VERSION='"$(VERSION)"' -I. -MMD -MP

PKGS := glib-2.0 gio-2.0 json-glib-1.0 blkid ext2fs com_err libtracefs libtraceevent
# Asked once, and only by targets that compile: `make deps` and `make clean` work without them.
NEEDS_PKGS := $(filter-out deps clean distclean check check-boot bench-record demo fuzz help,$(or $(MAKECMDGOALS),all))
ifneq ($(NEEDS_PKGS),)
PKG_CFLAGS := $(shell $(PKG_CONFIG) --cflags $(PKGS) 2>/dev/null)
PKG_LIBS := $(shell $(PKG_CONFIG) --libs $(PKGS) 2>/dev/null)
FUSE_CFLAGS := $(shell $(PKG_CONFIG) --cflags fuse3 glib-2.0 2>/dev/null)
FUSE_LIBS := $(shell $(PKG_CONFIG) --libs fuse3 glib-2.0 2>/dev/null)
ifeq ($(strip $(PKG_CFLAGS)),)
$(error Libraries are missing: run `make deps` as root, or install the packages of deps.txt)
endif
endif

# Reasons for waiting through BPF: built when clang and libbpf's headers are there; BPF= leaves it out.
CLANG ?= $(shell command -v clang 2>/dev/null)
BPF ?= $(if $(CLANG),$(shell $(PKG_CONFIG) --exists 'libbpf >= 1.0' 2>/dev/null && echo 1))
BPF_OBJ := $(if $(BPF),$(BUILD)/obj/profiler/bpf/why.bpf.o)

CFLAGS_ALL = $(COMMON_FLAGS) $(HARDENING) $(PKG_CFLAGS) $(CFLAGS)
LDFLAGS_ALL = -pie -Wl,-z,relro,-z,now -Wl,--as-needed $(if $(SANITIZE),-fsanitize=$(SANITIZE)) $(LDFLAGS)

MODULES := common measure profiler relocator readahead
MODULE_SRC := $(foreach m,$(MODULES),$(filter-out readahead/headstart-replay.c,$(wildcard $(m)/*.c)))
MODULE_OBJ := $(MODULE_SRC:%.c=$(BUILD)/obj/%.o)
CLI_SRC := $(wildcard cli/*.c)
CLI_OBJ := $(CLI_SRC:%.c=$(BUILD)/obj/%.o)
LIB := $(BUILD)/libheadstart.a

UNIT_SRC := $(filter-out tests/test-slowdisk%,$(wildcard tests/test-*.c))
UNIT_BIN := $(UNIT_SRC:tests/%.c=$(BUILD)/tests/%)
SLOW_SRC := $(filter-out %/main.c %/log-tool.c,$(wildcard tests/slowdisk/*.c))
SLOW_OBJ := $(SLOW_SRC:%.c=$(BUILD)/slow/%.o)
SLOW_UNIT := $(patsubst tests/%.c,$(BUILD)/tests/%,$(wildcard tests/test-slowdisk*.c))
SLOW_BIN := $(if $(wildcard tests/slowdisk/main.c),$(BUILD)/slowdisk) \
            $(if $(wildcard tests/slowdisk/log-tool.c),$(BUILD)/slowdisk-log)

# headstart-replay: libc and raw system calls only, static, small; musl when there is one.
REPLAY_SRC := $(wildcard readahead/headstart-replay.c readahead/engine*.c readahead/pack.c)
REPLAY_CC := $(if $(MUSL_CC),$(MUSL_CC) -idirafter /usr/include \
             -idirafter /usr/include/$(shell $(CC) -print-multiarch),$(CC))

.PHONY: all
all: $(BUILD)/headstart $(BUILD)/headstart-replay $(BUILD)/exclude.d/00-default.conf

# Where a program that is not installed looks for the rules of what to leave out.
$(BUILD)/exclude.d/00-default.conf: docs/exclude.conf
	@mkdir -p $(@D)
	$(Q)cp $< $@

$(LIB): $(MODULE_OBJ)
	@echo "  AR      $@"
	$(Q)rm -f $@ && ar rcs $@ $^

$(BUILD)/headstart: $(CLI_OBJ) $(LIB)
	@echo "  LINK    $@"
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $(CLI_OBJ) $(LIB) $(PKG_LIBS) -lm -lpthread

$(BUILD)/headstart-replay: $(REPLAY_SRC) $(wildcard readahead/*.h) Makefile
	@echo "  CC      $@"
	@mkdir -p $(@D)
	$(Q)$(REPLAY_CC) -std=gnu17 -Os $(WARNINGS) -D_GNU_SOURCE -DHEADSTART_VERSION='"$(VERSION)"' -I. \
	        -fno-asynchronous-unwind-tables -ffunction-sections -static -s -Wl,--gc-sections \
	        -o $@ $(REPLAY_SRC) -lpthread

$(BUILD)/obj/%.o: %.c
	@echo "  CC      $<"
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -c -o $@ $<

ifneq ($(BPF_OBJ),)
$(BPF_OBJ): profiler/bpf/why.bpf.c profiler/bpf/why-shared.h
	@echo "  BPF     $<"
	@mkdir -p $(@D)
	$(Q)$(CLANG) -target bpf -O2 -g -Wall $(if $(WERROR),-Werror) -I. \
	        -idirafter /usr/include/$(shell $(CC) -print-multiarch) -c -o $@ $<
$(BUILD)/obj/profiler/why-bpf.o: $(BPF_OBJ)
$(BUILD)/obj/profiler/why-bpf.o: CFLAGS_ALL += -DHEADSTART_BPF_OBJECT='"$(abspath $(BPF_OBJ))"'
endif

$(BUILD)/slow/%.o: %.c
	@echo "  CC      $<"
	@mkdir -p $(@D)
	$(Q)$(CC) $(COMMON_FLAGS) $(HARDENING) $(FUSE_CFLAGS) $(CFLAGS) -c -o $@ $<

$(BUILD)/slowdisk: $(SLOW_OBJ) $(BUILD)/slow/tests/slowdisk/main.o
	@echo "  LINK    $@"
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(FUSE_LIBS) -lm -lpthread

$(BUILD)/slowdisk-log: $(SLOW_OBJ) $(BUILD)/slow/tests/slowdisk/log-tool.o
	@echo "  LINK    $@"
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(FUSE_LIBS) -lm -lpthread

$(SLOW_UNIT): $(BUILD)/tests/%: $(BUILD)/slow/tests/%.o $(SLOW_OBJ)
	@echo "  LINK    $@"
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(FUSE_LIBS) -lm -lpthread

$(UNIT_BIN): $(BUILD)/tests/%: $(BUILD)/obj/tests/%.o $(LIB)
	@echo "  LINK    $@"
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $< $(LIB) $(PKG_LIBS) -lm -lpthread

# Small programs that root tests start (tests/lab/NAME.c -> build/lab/NAME); static, so that a start of
# one reads no file but those of the test.
LAB_BIN := $(patsubst tests/lab/%.c,$(BUILD)/lab/%,$(wildcard tests/lab/*.c))
$(LAB_BIN): $(BUILD)/lab/%: tests/lab/%.c
	@echo "  CC      $<"
	@mkdir -p $(@D)
	$(Q)$(CC) $(COMMON_FLAGS) $(CFLAGS) -static -o $@ $< -lpthread

# Measurements that call into the modules (tests/bench/NAME.c -> build/bench/NAME).
BENCH_BIN := $(patsubst tests/bench/%.c,$(BUILD)/bench/%,$(wildcard tests/bench/*.c))
$(BENCH_BIN): $(BUILD)/bench/%: $(BUILD)/obj/tests/bench/%.o $(LIB)
	@echo "  LINK    $@"
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $< $(LIB) $(PKG_LIBS) -lm -lpthread

.PHONY: test-programs
test-programs: all $(UNIT_BIN) $(SLOW_UNIT) $(SLOW_BIN) $(LAB_BIN)

.PHONY: deps check check-built check-boot bench-record demo install uninstall clean distclean format check-format
deps:
	@tests/lab/deps

check: deps
	@$(MAKE) --no-print-directory check-built

check-built: test-programs
	@BUILD=$(BUILD) tests/run

demo: deps
	@$(MAKE) -s --no-print-directory all $(BUILD)/slowdisk $(LAB_BIN)
	@BUILD=$(BUILD) APP='$(subst ','\'',$(APP))' tests/lab/demo

# Slow, and not part of `make check`: Debian 12's own kernel in QEMU; what recording costs.
check-boot: deps
	@$(MAKE) --no-print-directory all $(LAB_BIN)
	@BUILD=$(BUILD) tests/slow/check-boot

bench-record: deps
	@$(MAKE) --no-print-directory all $(LAB_BIN) $(BUILD)/bench/collect
	@BUILD=$(BUILD) tests/lab/bench-record

install: all
	install -D -m 0755 $(BUILD)/headstart $(DESTDIR)$(PREFIX)/bin/headstart
	install -D -m 0755 $(BUILD)/headstart-replay $(DESTDIR)$(PREFIX)/lib/headstart/headstart-replay
	install -D -m 0644 docs/exclude.conf $(DESTDIR)$(PREFIX)/lib/headstart/exclude.d/00-default.conf
	install -D -m 0644 docs/headstart.1 $(DESTDIR)$(PREFIX)/share/man/man1/headstart.1
	install -D -m 0644 docs/headstart-replay.8 $(DESTDIR)$(PREFIX)/share/man/man8/headstart-replay.8
	install -D -m 0644 docs/headstart.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/headstart

uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/headstart $(DESTDIR)$(PREFIX)/lib/headstart/headstart-replay \
	      $(DESTDIR)$(PREFIX)/lib/headstart/exclude.d/00-default.conf \
	      $(DESTDIR)$(PREFIX)/share/man/man1/headstart.1 $(DESTDIR)$(PREFIX)/share/man/man8/headstart-replay.8 \
	      $(DESTDIR)$(PREFIX)/share/bash-completion/completions/headstart
	-rmdir $(DESTDIR)$(PREFIX)/lib/headstart/exclude.d $(DESTDIR)$(PREFIX)/lib/headstart

format:
	clang-format -i $$(git ls-files '*.c' '*.h')
check-format:
	clang-format --dry-run -Werror $$(git ls-files '*.c' '*.h')

include tests/fuzz/fuzz.mk

clean:
	rm -rf $(BUILD)/fuzz $(BUILD)/obj $(BUILD)/slow $(BUILD)/tests $(BUILD)/lab $(BUILD)/tmp $(LIB) $(BUILD)/headstart \
	       $(BUILD)/headstart-replay $(BUILD)/slowdisk $(BUILD)/slowdisk-log
distclean:
	@if findmnt -rno TARGET | grep -q "^$(abspath $(BUILD))/"; then \
	        echo "something is still mounted below $(BUILD)/" >&2; exit 1; fi
	rm -rf $(BUILD)

-include $(shell find $(BUILD)/obj $(BUILD)/slow $(BUILD)/lab -name '*.d' 2>/dev/null)
