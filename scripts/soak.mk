# SPDX-License-Identifier: MIT
# `make soak` runs tests of `make test` for a long time: `make soak T=600` runs each part for ten
# minutes, PARTS="ring vm-arm64" selects parts.

.PHONY: soak
soak:			## run the ring and the device under load for long (T=60 seconds per part, PARTS=…)
	@exec env CI=$(CI) scripts/soak $(if $(filter command environment,$(origin T)),-t $(T)) $(PARTS)
