# SPDX-License-Identifier: MIT
# Tests: `make test` runs those that everybody runs, `make test SUITES="host cli"` two suites, and
# `make test-all` all of them. The programs of selftests/host run on this machine, those of
# selftests/vm in a VM with the files in $(GUEST).

GUEST		= build/guest/$(MACH)
VM_TESTS	:= load abi map records objects stream torture session memory sessions sessions_list sessions_marks boot cpus tasks samples counts turns cores wakeups syscalls faults block interrupts beside_ftrace throttling rows mounts chains stacks stacks_threads stacks_hostile stacks_switches tracepoints clock marks mark_client permission leaks year neighbours $(if $(filter amd64,$(MACH)),word32) lockdown
GUEST_TESTS	= $(patsubst %,$(GUEST)/kselftest/kbarman/%,$(VM_TESTS) suspend no_interrupt room blackbox reserved survivor \
		   $(if $(filter amd64,$(MACH)),uninterrupted plug tracers) \
		   $(if $(filter arm64,$(MACH)),known guests))
NAMES		= $(addprefix $(GUEST)/names/,names part-child part-static_pie part-stripped \
		   liblinked.so libopened.so)
HOST_TESTS	:= $(patsubst selftests/%.c,build/selftests/%,$(wildcard selftests/host/test_*.c))
RING_TESTS	:= $(patsubst %,$(O)/selftests/ring/%,torture stream losses poll $(if $(filter amd64,$(MACH)),step))
TEST_CFLAGS	= -std=gnu11 -O2 -g -Wall -Wextra $(if $(CI),-Werror) -D_GNU_SOURCE \
		  -D_FILE_OFFSET_BITS=64 -pthread
# of the kernel's source; asked for when first needed, once
KSELFTEST	= $(eval KSELFTEST := $$(shell scripts/kselftest))$(KSELFTEST)

.PHONY: test test-all check canary host-tests guest vm
test:			## run the tests, here and in VMs (SUITES="static host …"; MINUTES=20: and longer ones, begun by then)
	@exec env CI=$(CI) scripts/test $(if $(MINUTES),--minutes $(MINUTES)) $(SUITES)

test-all:		## run them and the longer ones (MINUTES=50: begin none of these after that time)
	@exec env CI=$(CI) scripts/test --all $(if $(MINUTES),--minutes $(MINUTES))

check:			## static checks and host tests: W=1 and sparse on the module, cppcheck …
	@exec env CI=$(CI) scripts/test static host

canary:			## build the module for the newest kernels that Debian has today (SUITES="sid …")
	@exec env CI=$(CI) scripts/canary $(SUITES)

.PHONY: test-hosts
test-hosts:		## build and test user space in Debian 11 to the next, with each of their compilers (SUITES=…)
	@exec scripts/test-hosts $(SUITES)

host-tests: $(HOST_TESTS) $(RING_TESTS) build/selftests/compare/compare	## build the tests that run on this machine

build/selftests/host/%: selftests/host/%.c build/libkbarman.a
	@mkdir -p $(@D)
	$(USER_CC) $(USER_CFLAGS) -pthread -MMD -MP -MF $@.d $< build/libkbarman.a -o $@ $(USER_LIBS)

# The kernel's headers, as far as the module's files for sparse stacks use them.
$(addprefix build/selftests/host/test_,known_chain sparse sparse_s390 sparse_x86 sparse_stack unwind_machines unwind_walker): \
	USER_CFLAGS += -Iselftests/compare -Wno-unused-parameter
# Another demangler, if it is installed.
build/selftests/host/test_sym_rust: USER_LIBS += $(if $(wildcard /usr/include/libiberty/demangle.h),-liberty)

# What is cached is found by it.
build/selftests/host/test_unwind_cache: USER_LIBS += -Wl,--build-id

# The module's ring and the code that wakes its pollers, built for user space: see selftests/ring/.
# Only x86 can single-step.
RING_SRC	:= kmod/ring/ring.c kmod/ring/ring.h selftests/ring/ring_env.h selftests/ring/snapshot.h kmod/uapi/barman_v2.h \
		   kmod/uapi/kbarman.h
RING_TESTED	= kmod/ring/ring.c

$(O)/selftests/ring/losses: RING_TESTED = kmod/ring/ring.c kmod/ring/record.c
$(O)/selftests/ring/losses: kmod/ring/record.c kmod/ring/record.h
$(O)/selftests/ring/poll: RING_TESTED = kmod/ring/wake.c
$(O)/selftests/ring/poll: kmod/ring/wake.c kmod/ring/wake.h $(wildcard selftests/ring/linux/*.h)
$(O)/selftests/ring/%: selftests/ring/%.c $(RING_SRC)
	@mkdir -p $(@D)
	$(USER_CC) $(TEST_CFLAGS) -Wno-unused-parameter -include selftests/ring/ring_env.h \
		-Iselftests/ring -Ikmod $(if $(filter $(HOST),$(MACH)),,-static) \
		$< $(RING_TESTED) -o $@

# With the clock and without it, in one program: each with a ring of its own inside.
BENCH_RING	:= $(O)/selftests/bench/ring
BENCH_CFLAGS	= $(TEST_CFLAGS) -include selftests/bench/ring_env.h -Ikmod

$(BENCH_RING)_with_clock.o: BENCH_CLOCK :=
$(BENCH_RING)_without_clock.o: BENCH_CLOCK := -DCLOCK=0
$(BENCH_RING)_%_clock.o: selftests/bench/ring_writer.c kmod/ring/record.c kmod/ring/record.h \
			 selftests/bench/ring_env.h $(RING_SRC)
	@mkdir -p $(@D)/$*
	for f in $(filter %.c,$^); do \
		$(USER_CC) $(BENCH_CFLAGS) $(BENCH_CLOCK) -DWRITER=writer_$*_clock -c $$f \
			-o $(@D)/$*/$$(basename $$f .c).o || exit; \
	done
	$(CROSS_COMPILE)ld -r $(@D)/$*/*.o -o $@
	$(CROSS_COMPILE)objcopy --keep-global-symbol=writer_$*_clock $@

$(BENCH_RING): selftests/bench/ring.c selftests/bench/callgrind.h $(BENCH_RING)_with_clock.o \
	       $(BENCH_RING)_without_clock.o
	$(USER_CC) $(BENCH_CFLAGS) $(filter-out %.h,$^) kmod/ring/ring.c -o $@

-include $(HOST_TESTS:=.d)

# ---- what goes into a VM

guest: guest-module user $(GUEST)/kbarman $(GUEST)/kbarman-push $(GUEST)/truth $(GUEST)/truth-static $(NAMES) \
	$(GUEST)/waits $(GUEST)/mutexes \
	$(GUEST)/map_reader $(GUEST_TESTS) $(GUEST)/kselftest/run_kselftest.sh \
	$(GUEST)/marks $(GUEST)/guest.sh $(GUEST)/test_record_device.sh \
	$(GUEST)/test_marks_device.sh $(GUEST)/test_files_device.sh $(GUEST)/threads \
	$(GUEST)/test_openmetrics_device.sh \
	$(GUEST)/test_agent_device.sh $(GUEST)/kbarmand $(GUEST)/keeper $(GUEST)/peers \
	$(GUEST)/test_trigger_device.sh $(GUEST)/outliers \
	$(GUEST)/test_examples_device.sh $(GUEST)/examples.txt \
	$(GUEST)/device_test.sh $(GUEST)/device_record.sh $(GUEST)/device_parts.sh \
	guest-states $(GUEST)/idler $(GUEST)/causes	## build module, tool and tests for a VM, under build/guest/

.PHONY: guest-module
guest-module:
	@mkdir -p $(GUEST)
	@k=$$(scripts/kernel $(MACH) $(FLAVOUR)) || exit; eval "$$k"; \
	$(MAKE) --no-print-directory module MODULE_DIR=$(GUEST) KDIR=$$KDIR CROSS_COMPILE=$$KCROSS \
		KTOOLS="$$KTOOLS" >$(GUEST)/module.log 2>&1 || \
		{ cat $(GUEST)/module.log >&2; exit 1; }; \
	mkdir -p $(GUEST)/kselftest/kbarman; \
	. scripts/kernels.sh; \
	for other in minix overlay virtio_blk; do \
		file=$$(find "$$MODROOT/lib/modules/$$KREL" -name "$$other.ko*" | head -n 1); \
		[ -z "$$file" ] || kernel_module "$$file" >$(GUEST)/kselftest/kbarman/$$other.ko; \
	done
	@ln -f $(GUEST)/kbarman.ko $(GUEST)/kselftest/kbarman/kbarman.ko

# An idle driver for selftests/vm/idler.c, PMUs for cores.c, and what panics.sh loads.
STATES_TREE	= build/module/$(notdir $(GUEST))-states

.PHONY: guest-states
guest-states:
	@mkdir -p $(GUEST) $(STATES_TREE)
	@cp -rsfu $(CURDIR)/kmod $(CURDIR)/selftests/vm/module/. $(STATES_TREE)
	@k=$$(scripts/kernel $(MACH) $(FLAVOUR)) || exit; eval "$$k"; \
	$$KTOOLS $(MAKE) --no-print-directory -C $$KDIR M=$(CURDIR)/$(STATES_TREE) ARCH=$$KARCH \
		CROSS_COMPILE=$$KCROSS $(MODULE_FLAGS) modules >$(GUEST)/states.log 2>&1 || \
		{ cat $(GUEST)/states.log >&2; exit 1; }
	@! [ -e $(STATES_TREE)/idle_states.ko ] || cp $(STATES_TREE)/idle_states.ko $(GUEST)/idle_states.ko
	@mkdir -p $(GUEST)/kselftest/kbarman
	@cp $(STATES_TREE)/core_pmus.ko $(STATES_TREE)/panics.ko $(GUEST)/kselftest/kbarman
	@cp $(STATES_TREE)/long_interrupts.ko $(GUEST)/long_interrupts.ko

$(GUEST)/kbarman: $(O)/kbarman
	@mkdir -p $(@D)
	cp $< $@

$(GUEST)/kbarman-push: $(O)/kbarman-push
	@mkdir -p $(@D)
	cp $< $@

$(GUEST)/kbarmand: $(O)/kbarmand
	@mkdir -p $(@D)
	cp $< $@

$(GUEST)/truth: selftests/truth/truth.c
	@mkdir -p $(@D)
	$(USER_CC) $(TEST_CFLAGS) -fno-omit-frame-pointer $< -o $@

$(GUEST)/truth-static: selftests/truth/truth.c
	@mkdir -p $(@D)
	$(USER_CC) $(TEST_CFLAGS) -fno-omit-frame-pointer -static $< -o $@

$(GUEST)/waits: selftests/truth/waits.c user/include/kbarman/mark.h
	@mkdir -p $(@D)
	$(USER_CC) $(TEST_CFLAGS) -Iuser/include -static $< -o $@

$(GUEST)/mutexes: selftests/truth/mutexes.c
	@mkdir -p $(@D)
	$(USER_CC) $(TEST_CFLAGS) -pthread -static $< -o $@

# Programs and libraries with known names: selftests/truth/names.c describes them.
NAMES_CC	= $(USER_CC) $(TEST_CFLAGS) -fno-omit-frame-pointer -fno-toplevel-reorder \
		  -fno-optimize-sibling-calls -Wl,--build-id
NAMES_LIBRARY	= $(NAMES_CC) -shared -fPIC -DLIBRARY
NAMES_SRC	:= selftests/truth/part.c selftests/truth/part.h

$(GUEST)/names/names: selftests/truth/names.c selftests/truth/part.h $(GUEST)/names/liblinked.so
	$(NAMES_CC) $< -o $@ -L$(@D) -llinked -ldl -Wl,-rpath,'$$ORIGIN'

$(GUEST)/names/lib%.so: $(NAMES_SRC)
	@mkdir -p $(@D)
	$(NAMES_LIBRARY) -DPART=$* $< -o $@

# Libraries as prelink makes them: they don't begin at 0, and headers and code are one segment.
$(GUEST)/names/liblinked.so: NAMES_LIBRARY += -Wl,-Ttext-segment=0x41000000 -Wl,-z,noseparate-code

$(GUEST)/names/part-child: $(NAMES_SRC)
	@mkdir -p $(@D)
	$(NAMES_CC) -static -DPART=child -DPART_BURNS=4 $< -o $@

$(GUEST)/names/part-static_pie: $(NAMES_SRC)
	@mkdir -p $(@D)
	$(NAMES_CC) -static-pie -fPIE -DPART=static_pie $< -o $@

$(GUEST)/names/part-stripped: $(NAMES_SRC)
	@mkdir -p $(@D)
	$(NAMES_CC) -DPART=stripped $< -o $@.whole
	$(CROSS_COMPILE)objcopy --only-keep-debug $@.whole $@.debug
	$(CROSS_COMPILE)objcopy --strip-all --add-gnu-debuglink=$@.debug $@.whole $@
	rm $@.whole

$(GUEST)/map_reader: user/examples/map_reader.c kmod/uapi/barman_v2.h kmod/uapi/kbarman.h
	@mkdir -p $(@D)
	$(USER_CC) $(TEST_CFLAGS) -Ikmod -static $< -o $@

$(GUEST)/outliers: selftests/vm/outliers.c user/include/kbarman/mark.h
	@mkdir -p $(@D)
	$(USER_CC) $(TEST_CFLAGS) -Iuser/include -static -pthread $< -o $@

$(GUEST)/marks: user/examples/marks.c user/include/kbarman/mark.h
	@mkdir -p $(@D)
	$(USER_CC) $(TEST_CFLAGS) -Iuser/include -static $< -o $@

$(GUEST)/%.sh: selftests/vm/%.sh
	@mkdir -p $(@D)
	cp $< $@

$(GUEST)/%.sh: selftests/lib/%.sh
	@mkdir -p $(@D)
	cp $< $@

$(GUEST)/%.sh: selftests/cli/%.sh
	@mkdir -p $(@D)
	cp $< $@

$(GUEST)/examples.txt: selftests/lib/examples.py README.md $(wildcard docs/*.md docs/*/*.md user/man/*)
	@mkdir -p $(@D)
	python3 $< device >$@

$(GUEST)/idler: selftests/vm/idler.c selftests/vm/lib.h selftests/vm/details.h \
		kmod/uapi/barman_v2.h kmod/uapi/kbarman.h
	@mkdir -p $(@D)
	$(USER_CC) $(TEST_CFLAGS) -Wno-sign-compare -static -Ikmod $< -o $@

$(GUEST)/threads: selftests/vm/threads.c
	@mkdir -p $(@D)
	$(USER_CC) $(TEST_CFLAGS) -static $< -o $@

$(GUEST)/keeper $(GUEST)/peers $(GUEST)/causes $(GUEST)/sampler: $(GUEST)/%: selftests/vm/%.c
	@mkdir -p $(@D)
	$(USER_CC) $(TEST_CFLAGS) -pthread -static $< -o $@

# Programs of all kernels of an architecture: they need nothing but Linux. Debug kernels are slow.
VM_PROGRAMS	= build/selftests/vm/$(MACH)$(SLOWNESS:%=-slow%)

$(GUEST)/kselftest/kbarman/%: $(VM_PROGRAMS)/%
	@mkdir -p $(@D)
	cp $< $@

.PRECIOUS: $(VM_PROGRAMS)/%

# The harness's header has warnings with -Wall, and its macros compare signed with unsigned.
$(VM_PROGRAMS)/%: selftests/vm/%.c $(wildcard selftests/vm/*.h) \
		  kmod/uapi/barman_v2.h kmod/uapi/kbarman.h user/include/kbarman/mark.h
	@mkdir -p $(@D)
	$(USER_CC) $(TEST_CFLAGS) -Wno-sign-compare -static -isystem $(KSELFTEST) -Ikmod \
		-Iuser/include $(if $(SLOWNESS),-DSLOWNESS=$(SLOWNESS)) $< -o $@

# As Debian 13 compiles for arm64: CPUs sign return addresses.
ifeq ($(MACH),arm64)
$(VM_PROGRAMS)/%: TEST_CFLAGS += -mbranch-protection=standard
endif
# Chains of known shape, and functions as they stand in the source.
$(VM_PROGRAMS)/chains: TEST_CFLAGS += -fno-omit-frame-pointer -fno-toplevel-reorder

# Long chains, and marks for the plugin that counts.
$(VM_PROGRAMS)/uninterrupted: TEST_CFLAGS += -fno-omit-frame-pointer
$(VM_PROGRAMS)/uninterrupted: selftests/bench/switch/mark.h

# Each of the known programs is far from all other code: known.h.
$(VM_PROGRAMS)/known: selftests/vm/known.h
$(VM_PROGRAMS)/known: TEST_CFLAGS += -Wl,--section-start=.known0=0x50000000,--section-start=.known1=0x58000000 \
		-Wl,--section-start=.known2=0x60000000,--section-start=.known3=0x68000000

# A program of 32 bits, without a C library. The headers of x86 have both.
$(VM_PROGRAMS)/word32: selftests/vm/word32.c kmod/uapi/barman_v2.h kmod/uapi/kbarman.h
	@mkdir -p $(@D)
	$(USER_CC) $(TEST_CFLAGS) -O1 -m32 -ffreestanding -fno-pie -fno-stack-protector -nostdlib -static \
		-idirafter /usr/include/x86_64-linux-gnu -Ikmod $< -o $@

# Without perl its runner shows nothing before a program has ended: sed keeps the lines back.
$(GUEST)/kselftest/run_kselftest.sh: scripts/kselftest scripts/tests.mk
	@mkdir -p $(@D)/kselftest $(@D)/kbarman
	cp $(KSELFTEST)/kselftest/*.sh $(@D)/kselftest
	sed -i 's|^\t*sed -e .*|while IFS= read -r line; do printf "# %s\\n" "$$line"; done|' \
		$(@D)/kselftest/runner.sh
	printf 'kbarman:%s\n' $(VM_TESTS) >$(@D)/kselftest-list.txt
	echo timeout=$$((1800 * $(or $(SLOWNESS),1))) >$(@D)/kbarman/settings
	cp $(KSELFTEST)/run_kselftest.sh $@

vm: demo-guest $(GUEST)/map_reader	## start a shell in a VM with the module and the tool (ARCH=… FLAVOUR=…)
	@scripts/vm --arch $(MACH) $(if $(FLAVOUR),--flavour $(FLAVOUR)) --root debian \
		--share $(GUEST) --timeout 0 --shell -- \
		sh -c 'insmod kbarman.ko; PATH=/host:$$PATH; export PATH; \
		echo "the module is loaded; kbarman, truth and map_reader are in the path"; \
		bash -i; exit 0'
