# SPDX-License-Identifier: MIT
# `make help` lists all targets. Everything that make creates is under build/ and out/.

ARCH	?= $(shell dpkg --print-architecture 2>/dev/null || uname -m)
MACH	:= $(patsubst x86_64,amd64,$(patsubst aarch64,arm64,$(ARCH)))
HOST	:= $(patsubst x86_64,amd64,$(patsubst aarch64,arm64,$(shell uname -m)))

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

include scripts/user.mk
include scripts/static.mk
include scripts/install.mk
include scripts/module.mk
include scripts/tests.mk
include scripts/test-debug.mk
include scripts/test-matrix.mk
include scripts/analyze.mk
include scripts/fuzz.mk
include scripts/soak.mk
include scripts/bench.mk
include scripts/demo.mk

.PHONY: all help clean
all: user		## build the tool, the library and the module for this machine
	@$(MAKE) --no-print-directory module || { \
		echo "make: the module is not built; $(O)/kbarman is: it reads captures, and counts (stat)" >&2; \
		exit 2; }

help:			## print this list
	@sed -n 's/^\([a-z_-]*\):[^#]*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

clean:			## remove build/ and out/
	rm -rf build out
