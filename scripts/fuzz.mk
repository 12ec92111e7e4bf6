# SPDX-License-Identifier: MIT
# Fuzz targets: selftests/fuzz/fuzz_NAME.c is the target of one decoder. The whole library is built
# with the fuzzer's flags. `make fuzz T=600` runs all targets for 600 seconds in all.

T		?= 120
FUZZ_CC		:= clang
FUZZ_FLAGS	:= -std=gnu11 -O1 -g -fno-omit-frame-pointer -fno-sanitize-recover=all \
		   -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -DKBARMAN_VERSION='"$(VERSION)"' \
		   -Iuser/include -Iuser/lib -Ikmod
FUZZ_TARGETS	:= $(patsubst selftests/fuzz/%.c,build/fuzz/%,$(wildcard selftests/fuzz/fuzz_*.c))
FUZZ_OBJ	:= $(patsubst %.c,build/fuzz/obj/%.o,$(LIB_SRC) selftests/fuzz/random.c)

.PHONY: fuzz fuzz-targets
fuzz: fuzz-targets	## run all decoders on hostile input, T=120 seconds in all
	@scripts/fuzz $(T)

fuzz-targets: $(FUZZ_TARGETS)

# not intermediate: the next target needs these files as well
.SECONDARY: $(FUZZ_OBJ)

build/fuzz/obj/%.o: %.c
	@mkdir -p $(@D)
	$(FUZZ_CC) $(FUZZ_FLAGS) -fsanitize=fuzzer-no-link,address,undefined -MMD -MP -c $< -o $@

build/fuzz/fuzz_%: selftests/fuzz/fuzz_%.c $(FUZZ_OBJ)
	@mkdir -p $(@D)
	$(FUZZ_CC) $(FUZZ_FLAGS) -fsanitize=fuzzer,address,undefined -MMD -MP -MF $@.d \
		$< $(FUZZ_OBJ) -o $@ $(USER_LIBS)

-include $(FUZZ_OBJ:.o=.d) $(FUZZ_TARGETS:=.d)
