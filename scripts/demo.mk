# SPDX-License-Identifier: MIT
# The demo: `make demo`. The default of ARCH is arm64, whose emulated PMU has real overflows.

DEMO_ARCH	= $(if $(filter command environment,$(origin ARCH)),$(MACH),arm64)

.PHONY: demo demo-guest
demo:			## record real programs in a VM, into out/demo/ (ARCH=arm64 or amd64, FLAVOUR=7.3 …)
	@scripts/demo $(DEMO_ARCH)

demo-guest: guest-module user $(GUEST)/kbarman $(GUEST)/truth
