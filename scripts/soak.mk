# SPDX-License-Identifier: MIT
# `make soak`: what `make test` does for seconds, for as long as one likes: `make soak T=600`
# for ten minutes a part, PARTS="ring vm-arm64" for some of them.

.PHONY: soak
soak:			## the ring and the device under load for long (T=60 seconds a part, PARTS=…)
	@exec env CI=$(CI) scripts/soak $(if $(filter command environment,$(origin T)),-t $(T)) $(PARTS)
