# SPDX-License-Identifier: MIT
# The demo: `make demo`, on arm64, whose emulated PMU really overflows, if ARCH does not say
# otherwise.

DEMO_ARCH	= $(if $(filter command environment,$(origin ARCH)),$(MACH),arm64)

.PHONY: demo demo-guest
demo:			## record real programs in a VM, into out/demo/ (ARCH=arm64 or amd64)
	@scripts/demo $(DEMO_ARCH)

demo-guest: guest-module user $(GUEST)/kbarman $(GUEST)/truth
