# SPDX-License-Identifier: MIT
# The library and the tool: `make user`; for another architecture `make user ARCH=arm64`.

ifeq ($(MACH),$(HOST))
O		:= build
USER_CC		:= $(or $(filter-out cc,$(CC)),gcc)
else
O		:= build/$(MACH)
CROSS_COMPILE	?= $(CROSS_$(MACH))
USER_CC		= $(CROSS_COMPILE)gcc
TRIPLET		= $(patsubst %-,%,$(CROSS_COMPILE))
# libelf and zlib of that machine; asked for when first needed, once.
SYSROOT		= $(eval SYSROOT := $$(shell scripts/sysroot $(MACH)))$(SYSROOT)
USER_CPPFLAGS	= -isystem $(SYSROOT)/usr/include
# What those libraries need themselves is there, and maybe not here.
USER_LDFLAGS	= -L$(SYSROOT)/usr/lib/$(TRIPLET) -Wl,-rpath-link=$(SYSROOT)/usr/lib/$(TRIPLET) \
		  -Wl,--allow-shlib-undefined
endif
CROSS_arm64	:= aarch64-linux-gnu-
CROSS_armhf	:= arm-linux-gnueabihf-
CROSS_s390x	:= s390x-linux-gnu-
CROSS_i386	:= i686-linux-gnu-
CROSS_riscv64	:= riscv64-linux-gnu-

VERSION		:= $(shell cat VERSION)
SONAME		:= libkbarman.so.0
CFLAGS		?= -O2 -g
USER_CFLAGS	 = -std=gnu11 -Wall -Wextra $(if $(CI),-Werror) $(CFLAGS) -fPIC \
		   -ffile-prefix-map=$(CURDIR)=. -Wdate-time -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 \
		   -DKBARMAN_VERSION='"$(VERSION)"' -Iuser/include -Iuser/lib -Ikmod \
		   $(USER_CPPFLAGS)
# The last two are for C libraries that are not one file, such as glibc before 2.34.
USER_LIBS	:= -lelf -lz -lm -ldl -pthread

HTML		:= build/gen/html_page.c
LIB_SRC		:= $(sort $(wildcard user/lib/*/*.c)) $(HTML)
CLI_SRC		:= $(sort $(wildcard user/cli/*.c))
AGENT_SRC	:= $(sort $(wildcard user/agent/*.c))
LIB_OBJ		:= $(LIB_SRC:%.c=$(O)/obj/%.o)
CLI_OBJ		:= $(CLI_SRC:%.c=$(O)/obj/%.o)
AGENT_OBJ	:= $(AGENT_SRC:%.c=$(O)/obj/%.o)

.PHONY: user
user: $(O)/kbarman $(O)/kbarmand $(O)/libkbarman.a $(O)/libkbarman.so	## build build/kbarman, build/kbarmand, build/libkbarman.{a,so}

$(O)/obj/%.o: %.c VERSION
	@mkdir -p $(@D)
	$(USER_CC) $(USER_CFLAGS) -MMD -MP -c $< -o $@

# The page of `convert --to html` as C source.
$(HTML): scripts/embed $(wildcard user/lib/export/html/*)
	@mkdir -p $(@D)
	scripts/embed kb_html_page user/lib/export/html/page.html >$@.$$$$ && mv $@.$$$$ $@

$(O)/libkbarman.a: $(LIB_OBJ)
	rm -f $@
	$(CROSS_COMPILE)ar rcsD $@ $^

$(O)/libkbarman.so: $(LIB_OBJ) user/libkbarman.map
	$(USER_CC) -shared -Wl,-soname,$(SONAME) -Wl,--version-script=user/libkbarman.map \
		$(LDFLAGS) -o $@ $(LIB_OBJ) $(USER_LDFLAGS) $(USER_LIBS)

$(O)/kbarman: $(CLI_OBJ) $(O)/libkbarman.a
	$(USER_CC) $(LDFLAGS) -o $@ $^ $(USER_LDFLAGS) $(USER_LIBS)

$(O)/kbarmand: $(AGENT_OBJ) $(O)/libkbarman.a
	$(USER_CC) $(LDFLAGS) -o $@ $^ $(USER_LDFLAGS) $(USER_LIBS)

# The README's example, which needs only the two UAPI headers.
user: $(O)/map_reader
$(O)/map_reader: user/examples/map_reader.c $(wildcard kmod/uapi/*.h)
	@mkdir -p $(@D)
	$(USER_CC) $(USER_CFLAGS) $(LDFLAGS) -o $@ $< $(USER_LDFLAGS)

-include $(LIB_OBJ:.o=.d) $(CLI_OBJ:.o=.d) $(AGENT_OBJ:.o=.d)
