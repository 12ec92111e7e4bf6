# SPDX-License-Identifier: MIT
# The tool as one file that needs no library: `make static`, `make static ARCH=arm64`. It runs on
# any Linux of that architecture. It can't open libraries, so it prints no source lines and no C++
# names; another machine can, of its captures.

STATIC		= build/static/$(MACH)$(LESS)
STATIC_CC	= $(if $(filter $(HOST),$(MACH)),$(USER_CC),$(CROSS_COMPILE)gcc)
STATIC_ROOT	= $(eval STATIC_ROOT := $$(shell scripts/static-sysroot $(MACH)))$(STATIC_ROOT)
STATIC_OBJ	= $(patsubst %.c,$(STATIC)/obj/%.o,$(LIB_SRC) $(CLI_SRC))
# libcurl can't be opened
STATIC_PUSH	= $(filter-out %/main.o,$(STATIC_OBJ)) $(patsubst %.c,$(STATIC)/obj/%.o,$(filter-out user/push/http.c,$(wildcard user/push/*.c)))
STATIC_FILE	= $(shell $(STATIC_CC) -print-file-name=$(1))

.PHONY: static
static: $(PROGRAMS:%=$(STATIC)/%)	## build build/static/ARCH/kbarman, which needs no library (ARCH=amd64 or arm64)

# the libraries of another architecture's shared tool are not these
$(STATIC)/obj/%.o: USER_CPPFLAGS :=
$(STATIC)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(STATIC_CC) $(filter-out -fPIC,$(USER_CFLAGS)) $(WITHOUT:%=-DKBARMAN_WITHOUT_%) -fno-pie -ffunction-sections -fdata-sections \
		-nostdinc -isystem $(STATIC_ROOT)/include -isystem $(call STATIC_FILE,include) \
		-MMD -MP -c $< -o $@

$(STATIC)/kbarman: $(STATIC_OBJ)
$(STATIC)/kbarman-push: $(STATIC_PUSH)
$(PROGRAMS:%=$(STATIC)/%):
	$(STATIC_CC) $(LDFLAGS) -static -no-pie -nostdlib -Wl,--gc-sections -Wl,--build-id -o $@ \
		$(STATIC_ROOT)/lib/crt1.o $(STATIC_ROOT)/lib/crti.o $^ -L$(STATIC_ROOT)/lib -lelf -lz \
		-Wl,--start-group -lc -lgcc -lgcc_eh -Wl,--end-group $(STATIC_ROOT)/lib/crtn.o
	$(CROSS_COMPILE)objcopy --only-keep-debug $@ $@.debug
	$(CROSS_COMPILE)strip $@
	cp -r $(STATIC_ROOT)/licenses $(@D)

-include $(patsubst %.c,$(STATIC)/obj/%.d,$(LIB_SRC) $(CLI_SRC) $(PUSH_SRC))

.PHONY: test-static
test-static:		## try that tool in VMs that have only a busybox (ARCH=…, FLAVOUR=5.10 …)
	@exec env CI=$(CI) FLAVOUR=$(FLAVOUR) scripts/test-static \
		$(if $(filter command environment,$(origin ARCH)),$(MACH))
