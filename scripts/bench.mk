# SPDX-License-Identifier: MIT
# `make bench`: the cost of a record, of decoding, encoding, look-ups and unwinding; see
# scripts/bench.

BENCHES	:= build/selftests/bench/ring build/selftests/bench/decode build/selftests/bench/symbols \
	   build/selftests/bench/report build/selftests/bench/unwind build/selftests/bench/stacks \
	   build/selftests/bench/query \
	   build/kbarman

COMPARE_SRC	:= $(wildcard selftests/compare/*.c) kmod/stacks/sparse_stack.c kmod/maps/code_bounds.c

build/selftests/compare/compare: $(COMPARE_SRC) build/libkbarman.a $(wildcard selftests/compare/*.h \
				 selftests/compare/*/*.h) kmod/stacks/sparse.h kmod/stacks/sparse_stack.h kmod/maps/code_bounds.h
	@mkdir -p $(@D)
	$(USER_CC) $(USER_CFLAGS) -Wno-sign-compare -Wno-unused-value -Wno-unused-parameter \
		-Iselftests/compare $(COMPARE_SRC) build/libkbarman.a \
		-o $@ $(USER_LIBS)

.PHONY: compare-perf
compare-perf: build/selftests/compare/compare	## compare call chains of real programs, and the bytes of their stacks, with perf's
	@scripts/compare-perf

.PHONY: bench bench-profile bench-switch bench-guest bench-agent bench-full bench-neighbours
bench: user $(BENCHES) bench-switch	## measure speed and memory, also of other tracers; results in out/bench.json
	@scripts/bench

TRACER		?= kbarman
WORKLOAD	?= yield
bench-profile: bench-switch	## list the instructions of a context switch (TRACER=kbarman, ftrace … WORKLOAD=yield, pipe …)
	@scripts/bench-switches --profile $(TRACER) $(WORKLOAD)

bench-agent: build/bench/count.so user	## measure what kbarmand costs at 10,000 switches a second
	@$(MAKE) --no-print-directory ARCH=amd64 GUEST=build/bench/guest-amd64 guest-module \
		$(addprefix build/bench/guest-amd64/,measure neighbour hold_kbarman kbarmand)
	@scripts/bench-agent

bench-full: build/bench/count.so user	## count what recordings with stacks cost (WORKLOADS="hackbench redis sqlite cxx pgbench")
	@$(MAKE) --no-print-directory ARCH=amd64 GUEST=build/bench/guest-amd64 guest-module \
		$(addprefix build/bench/guest-amd64/,measure empty_probe.ko kbarman kbarmand)
	@scripts/bench-full $(WORKLOADS)

bench-neighbours: bench-switch	## count what a session costs those beside it: mapping, fork, exec, umount …
	@scripts/bench-neighbours

# The programs that scripts/bench-switches runs, on this machine and in guests.
BENCH_GUEST	:= build/bench/guest-$(MACH)
BENCH_PROBE	:= build/bench/probe-$(MACH)
SWITCH		:= selftests/bench/switch

bench-switch: build/bench/count.so build/bench/rate user
	@$(MAKE) --no-print-directory ARCH=amd64 bench-guest
	@$(MAKE) --no-print-directory ARCH=arm64 bench-guest

build/bench/count.so build/bench/sections.so build/bench/tasks.so: build/bench/%.so: $(SWITCH)/%.c \
		      $(SWITCH)/insn.h $(SWITCH)/plugin.h $(SWITCH)/plugin_api.h \
		      $(SWITCH)/mark.h selftests/vm/known.h
	@mkdir -p $(@D)
	$(USER_CC) $(TEST_CFLAGS) -fPIC -shared -fvisibility=hidden $< -o $@

build/bench/rate: $(SWITCH)/rate.c
	@mkdir -p $(@D)
	$(USER_CC) $(TEST_CFLAGS) $< -o $@

bench-guest: $(BENCH_GUEST)/measure $(BENCH_GUEST)/neighbour $(BENCH_GUEST)/hold_kbarman $(BENCH_GUEST)/hold_bpf \
	     $(BENCH_GUEST)/empty_probe.ko
	@$(MAKE) --no-print-directory ARCH=$(MACH) GUEST=$(BENCH_GUEST) guest-module \
		$(BENCH_GUEST)/kbarman $(BENCH_GUEST)/kbarmand

$(BENCH_GUEST)/%: $(SWITCH)/%.c $(SWITCH)/mark.h $(SWITCH)/hold.h kmod/uapi/kbarman.h
	@mkdir -p $(@D)
	$(USER_CC) $(TEST_CFLAGS) -Ikmod -static $< -o $@

$(BENCH_GUEST)/empty_probe.ko: $(wildcard $(SWITCH)/probe/*) kmod/compat/tracepoint.c \
			       kmod/compat/tracepoint.h
	@mkdir -p $(@D) $(BENCH_PROBE)
	@cp -rsfu $(addprefix $(CURDIR)/,$(wildcard $(SWITCH)/probe/*) kmod) $(BENCH_PROBE)
	@k=$$(scripts/kernel $(MACH)) || exit; eval "$$k"; \
	$(MAKE) -C $$KDIR M=$(CURDIR)/$(BENCH_PROBE) ARCH=$$KARCH CROSS_COMPILE=$$KCROSS modules \
		>$(BENCH_PROBE).log 2>&1 || { cat $(BENCH_PROBE).log >&2; exit 1; }
	cp $(BENCH_PROBE)/empty_probe.ko $@

build/selftests/bench/decode build/selftests/bench/query: selftests/bench/mix.h
build/selftests/bench/decode build/selftests/bench/query build/selftests/bench/unwind: \
		build/selftests/bench/%: selftests/bench/%.c build/libkbarman.a
	@mkdir -p $(@D)
	$(USER_CC) $(USER_CFLAGS) $< build/libkbarman.a -o $@ $(USER_LIBS)

# The module's code, without the registers that the kernel does not use.
STACKS_CFLAGS	= $(filter-out -fPIC,$(USER_CFLAGS)) -Wno-sign-compare -Wno-unused-value \
		  -Wno-unused-parameter -Iselftests/compare
build/selftests/bench/stacks_module.o: kmod/stacks/sparse_stack.c kmod/stacks/sparse_stack.h kmod/stacks/sparse.h \
				       selftests/compare/kernel.h
	@mkdir -p $(@D)
	$(USER_CC) $(STACKS_CFLAGS) -mgeneral-regs-only -fno-strict-aliasing -c $< -o $@

build/selftests/bench/stacks: selftests/bench/stacks.c build/selftests/bench/stacks_module.o \
			      kmod/maps/code_bounds.c kmod/maps/code_bounds.h selftests/bench/callgrind.h
	$(USER_CC) $(STACKS_CFLAGS) $(filter-out %.h,$^) -o $@ -Wl,-z,now

# libdw is for the comparison only.
build/selftests/bench/symbols: selftests/bench/symbols.c selftests/bench/program.h build/libkbarman.a
	@mkdir -p $(@D)
	$(USER_CC) $(USER_CFLAGS) $< build/libkbarman.a -o $@ $(USER_LIBS) -ldl

build/selftests/bench/report: selftests/bench/report.c selftests/bench/program.h build/libkbarman.a
	@mkdir -p $(@D)
	$(USER_CC) $(USER_CFLAGS) $< build/libkbarman.a -o $@ $(USER_LIBS) -lm
