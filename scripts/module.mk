# SPDX-License-Identifier: MIT
# The kernel module: `make module` for the running kernel,
# `make module KDIR=… [ARCH=…] [CROSS_COMPILE=…]` for any other one.
#
# Kbuild writes objects beside the sources, so it builds in a tree of links.

KREL		?= $(shell uname -r)
KDIR		?= /lib/modules/$(KREL)/build
KARCH		:= $(patsubst amd64,x86_64,$(patsubst armhf,arm,$(patsubst s390x,s390,$(patsubst riscv64,riscv,$(MACH)))))
MODULE_TREE	= build/module/$(MACH)-$(notdir $(patsubst %/build,%,$(KDIR)))
MODULE_DIR	= $(O)
# what runs the kernel's make, if tools of this machine are too old for it: scripts/kernel says it
KTOOLS		?=
# The module does not tell where it was built. Not in Kbuild: the kernel compiles one file without it.
MODULE_KCFLAGS	= -ffile-prefix-map=$(CURDIR)/$(MODULE_TREE)=. $(KCFLAGS)

.PHONY: module
module:			## build build/kbarman.ko
	@test -e $(KDIR)/Makefile || { \
		echo "make module: no kernel headers in $(KDIR)" >&2; \
		echo "  install them (apt-get install linux-headers-$(KREL)) or give KDIR=…" >&2; \
		exit 2; }
	@mkdir -p $(MODULE_TREE)
	@cp -rsfu $(addprefix $(CURDIR)/,Kbuild VERSION kmod) $(MODULE_TREE)
	$(KTOOLS) $(MAKE) -C $(KDIR) M=$(CURDIR)/$(MODULE_TREE) ARCH=$(KARCH) \
		CROSS_COMPILE=$(CROSS_COMPILE) KCFLAGS="$(MODULE_KCFLAGS)" $(MODULE_FLAGS) modules
	@mkdir -p $(MODULE_DIR)
	cp $(MODULE_TREE)/kbarman.ko $(MODULE_DIR)/kbarman.ko
