# SPDX-License-Identifier: GPL-2.0-or-later
#
# make fuzz [FUZZ_SECONDS=60] [FUZZ="NAME..."]: one libFuzzer target an input format, with the address and
# undefined-behaviour sanitizers. Included by the Makefile.

FUZZ_CC ?= clang
FUZZ_SECONDS ?= 60
FUZZ_FLAGS := -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined \
              -fno-omit-frame-pointer
FUZZ_BIN := $(patsubst tests/fuzz/%.c,$(BUILD)/fuzz/%,$(wildcard tests/fuzz/fuzz-*.c))
FUZZ_OBJ := $(MODULE_SRC:%.c=$(BUILD)/fuzz/obj/%.o)

.PHONY: fuzz fuzz-built
fuzz: deps
	@FUZZ_CC=$(FUZZ_CC) tests/fuzz/deps
	@$(MAKE) --no-print-directory fuzz-built

fuzz-built: all $(FUZZ_BIN)
	@BUILD=$(BUILD) FUZZ_SECONDS=$(FUZZ_SECONDS) tests/fuzz/run $(FUZZ)

$(BUILD)/fuzz/obj/%.o: %.c
	@echo "  FUZZ    $<"
	@mkdir -p $(@D)
	$(Q)$(FUZZ_CC) $(COMMON_FLAGS) $(FUZZ_FLAGS) $(PKG_CFLAGS) $(CFLAGS) -c -o $@ $<

$(BUILD)/fuzz/libheadstart.a: $(FUZZ_OBJ)
	@rm -f $@ && ar rcs $@ $^

$(FUZZ_BIN): $(BUILD)/fuzz/%: $(BUILD)/fuzz/obj/tests/fuzz/%.o $(BUILD)/fuzz/libheadstart.a
	@echo "  LINK    $@"
	$(Q)$(FUZZ_CC) $(FUZZ_FLAGS) -fsanitize=fuzzer $(LDFLAGS) -o $@ $^ $(PKG_LIBS) -lm -lpthread

-include $(shell find $(BUILD)/fuzz/obj -name '*.d' 2>/dev/null)
