# SPDX-License-Identifier: MIT
# `make test-debug`, which tries to break the module, and the files of its VMs. This makes the files
# of a guest with a debug kernel: FLAVOUR=debug GUEST=build/guest/arm64-debug ARCH=arm64.

DEBUG_TESTS	:= $(patsubst selftests/debug/%.c,%,$(wildcard selftests/debug/*.c))
TEST_TREE	= build/module/$(notdir $(GUEST))-test

.PHONY: test-debug debug-guest debug-programs debug-module
test-debug:		## test the module under KASAN, lockdep, KCSAN, faults and NMIs (PARTS="…"; hours)
	@exec env CI=$(CI) scripts/test-debug $(PARTS)

# with the tool and the VM tests, and without
debug-guest: guest debug-programs
debug-programs: debug-module $(DEBUG_TESTS:%=$(GUEST)/debug/%) $(GUEST)/debug/guest.sh \
		$(GUEST)/debug/soak.sh $(GUEST)/debug/kcsan.awk

# The module as it is shipped, and the test build with selftests/debug/module. The test build counts
# which lines run (GCOV, KCOV) if the kernel can.
debug-module: guest-module
	@mkdir -p $(GUEST)/debug $(TEST_TREE)
	cp $(GUEST)/kbarman.ko $(GUEST)/debug/shipped.ko
	cp -rsfu $(CURDIR)/kmod $(CURDIR)/VERSION $(TEST_TREE)
	mkdir -p $(TEST_TREE)/test
	cp -rsfu $(CURDIR)/selftests/debug/module/* $(TEST_TREE)/test
	cp -u Kbuild $(TEST_TREE)/kbarman.kbuild
	cp -u selftests/debug/module/Kbuild $(TEST_TREE)/Kbuild
	@k=$$(scripts/kernel $(MACH) $(FLAVOUR)) || exit; eval "$$k"; \
	$$KTOOLS $(MAKE) --no-print-directory -C $$KDIR M=$(CURDIR)/$(TEST_TREE) ARCH=$$KARCH \
		CROSS_COMPILE=$$KCROSS GCOV_PROFILE=y KCOV_INSTRUMENT=y modules \
		>$(GUEST)/debug/module.log 2>&1 || { cat $(GUEST)/debug/module.log >&2; exit 1; }
	cp $(TEST_TREE)/kbarman.ko $(GUEST)/debug/test.ko
	cp $(TEST_TREE)/minix.ko $(GUEST)/kselftest/kbarman/minix.ko

$(GUEST)/debug/%: selftests/debug/%.c $(wildcard selftests/debug/*.h) selftests/vm/lib.h \
		  selftests/lib/tap.h kmod/uapi/barman_v2.h kmod/uapi/kbarman.h
	@mkdir -p $(@D)
	$(USER_CC) $(TEST_CFLAGS) -Wno-sign-compare -static -Ikmod -Iselftests -Iselftests/vm $< -o $@

$(GUEST)/debug/%: selftests/debug/%
	@mkdir -p $(@D)
	install -m 755 $< $@
