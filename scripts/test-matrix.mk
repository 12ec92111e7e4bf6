# SPDX-License-Identifier: MIT
# `make test-matrix` tests all supported kernels and machines. Its VMs get static programs and the
# module, so no library of the target is needed.

.PHONY: test-matrix matrix-guest
test-matrix:		## run the VM tests on every kernel and machine (TARGETS="…"; an hour)
	@exec env CI=$(CI) scripts/test-matrix $(TARGETS)

matrix-guest: guest-module guest-states $(GUEST_TESTS) $(GUEST)/kselftest/run_kselftest.sh \
	      $(GUEST)/capture $(GUEST)/matrix.sh

$(GUEST)/capture: selftests/matrix/capture.c selftests/vm/lib.h selftests/lib/tap.h \
		  kmod/uapi/barman_v2.h kmod/uapi/kbarman.h
	@mkdir -p $(@D)
	$(USER_CC) $(TEST_CFLAGS) -Wno-sign-compare -static -Ikmod -Iselftests -Iselftests/vm $< -o $@

$(GUEST)/matrix.sh: selftests/matrix/guest.sh
	@mkdir -p $(@D)
	cp $< $@
