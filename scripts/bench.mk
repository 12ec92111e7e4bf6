# SPDX-License-Identifier: MIT
# `make bench`: what a record, decoding, encoding and a look-up cost; see scripts/bench.

BENCHES	:= build/selftests/bench/ring build/selftests/bench/decode build/selftests/bench/symbols \
	   build/selftests/bench/report build/kbarman

.PHONY: bench
bench: user $(BENCHES)	## figures of speed and memory: a table, and out/bench.json
	@scripts/bench

build/selftests/bench/decode: selftests/bench/decode.c build/libkbarman.a
	@mkdir -p $(@D)
	$(USER_CC) $(USER_CFLAGS) $< build/libkbarman.a -o $@ $(USER_LIBS)

# libdw is for the comparison only.
build/selftests/bench/symbols: selftests/bench/symbols.c selftests/bench/program.h build/libkbarman.a
	@mkdir -p $(@D)
	$(USER_CC) $(USER_CFLAGS) $< build/libkbarman.a -o $@ $(USER_LIBS) -ldl

build/selftests/bench/report: selftests/bench/report.c selftests/bench/program.h build/libkbarman.a
	@mkdir -p $(@D)
	$(USER_CC) $(USER_CFLAGS) $< build/libkbarman.a -o $@ $(USER_LIBS)
