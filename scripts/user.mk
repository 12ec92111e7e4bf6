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
		   -DKBARMAN_VERSION='"$(VERSION)"' -Iuser/include -Iuser/lib -Iuser -Ikmod \
		   $(USER_CPPFLAGS)
# The last two are for C libraries that are not one file, such as glibc before 2.34.
USER_LIBS	:= -lelf -lz -lm -ldl -pthread

# Parts that a build may leave out: `make user WITHOUT="stat tptp"`. A part has the files that have one of
# these words in their names. Such a build is in a folder of its own, with what it is not the same in:
# the files that ask for KBARMAN_WITHOUT_part.
PARTS		:= push stat query tptp heph
PART_push	:= /push/
PART_stat	:= /stat. /stat_ /stat/
PART_query	:= /query
PART_tptp	:= /tptp _tptp
PART_heph	:= /heph _heph
ifneq ($(filter-out $(PARTS),$(WITHOUT)),)
$(error WITHOUT=$(WITHOUT): the parts that can be left out are $(PARTS))
endif
ifneq ($(strip $(WITHOUT)),)
kb_empty	:=
LESS		:= /without-$(subst $(kb_empty) ,-,$(sort $(WITHOUT)))
DIFFERENT	:= $(shell grep -rlE --include=*.c 'KBARMAN_WITHOUT_($(subst $(kb_empty) ,|,$(sort $(WITHOUT))))\>' user)
endif
B		:= $(O)$(LESS)
has_word	= $(strip $(foreach word,$(1),$(findstring $(word),$(2))))
built		= $(foreach file,$(1),$(if $(call has_word,$(foreach p,$(WITHOUT),$(PART_$(p))),$(file)),,$(file)))
objects		= $(foreach file,$(1),$(if $(filter $(file),$(DIFFERENT)),$(B),$(O))/obj/$(file:%.c=%.o))

HTML		:= build/gen/html_page.c
LIB_SRC		:= $(call built,$(sort $(wildcard user/lib/*/*.c user/lib/*/*/*.c)) $(HTML))
CLI_SRC		:= $(call built,$(sort $(wildcard user/cli/*.c user/cli/*/*.c)))
AGENT_SRC	:= $(sort $(wildcard user/agent/*.c))
# kbarman-push sends by libcurl, which it opens when there is something to send: a build needs its header,
# which is the same for all machines. Without it the program can only show metrics.
CURL_H		:= $(firstword $(wildcard /usr/include/curl/curl.h /usr/include/*-linux-gnu/curl/curl.h))
PUSH_SRC	:= $(filter-out user/push/$(if $(CURL_H),no_http,http).c,$(call built,$(sort $(wildcard user/push/*.c))))
LIB_OBJ		:= $(call objects,$(LIB_SRC))
CLI_OBJ		:= $(call objects,$(CLI_SRC))
AGENT_OBJ	:= $(call objects,$(AGENT_SRC))
PUSH_OBJ	:= $(call objects,$(PUSH_SRC))
PROGRAMS	:= kbarman $(if $(PUSH_SRC),kbarman-push)

.PHONY: user
user: $(PROGRAMS:%=$(B)/%) $(B)/kbarmand $(B)/libkbarman.a $(B)/libkbarman.so	## build build/kbarman, build/kbarman-push, build/kbarmand, build/libkbarman.{a,so} (WITHOUT="stat …": in build/without-stat)

$(O)/obj/%.o: %.c VERSION
	@mkdir -p $(@D)
	$(USER_CC) $(USER_CFLAGS) -MMD -MP -c $< -o $@

ifdef LESS
$(B)/obj/%.o: %.c VERSION
	@mkdir -p $(@D)
	$(USER_CC) $(USER_CFLAGS) $(WITHOUT:%=-DKBARMAN_WITHOUT_%) -MMD -MP -c $< -o $@
endif

# The page of `convert --to html` as C source.
$(HTML): scripts/embed $(wildcard user/lib/export/html/page/*)
	@mkdir -p $(@D)
	scripts/embed kb_html_page user/lib/export/html/page/page.html >$@.$$$$ && mv $@.$$$$ $@

$(B)/libkbarman.a: $(LIB_OBJ)
	rm -f $@
	$(CROSS_COMPILE)ar rcsD $@ $^

$(B)/libkbarman.so: $(LIB_OBJ) user/libkbarman.map
	$(USER_CC) -shared -Wl,-soname,$(SONAME) -Wl,--version-script=user/libkbarman.map \
		$(LDFLAGS) -o $@ $(LIB_OBJ) $(USER_LDFLAGS) $(USER_LIBS)

$(B)/kbarman: $(CLI_OBJ) $(B)/libkbarman.a
	$(USER_CC) $(LDFLAGS) -o $@ $^ $(USER_LDFLAGS) $(USER_LIBS)

# What the tool and its other program both have.
$(B)/obj/cli.a: $(filter-out %/main.o,$(CLI_OBJ))
	rm -f $@
	$(CROSS_COMPILE)ar rcsD $@ $^

$(O)/obj/user/push/http.o: USER_CPPFLAGS += -idirafter $(CURL_H:/curl/curl.h=)
$(B)/kbarman-push: $(PUSH_OBJ) $(B)/obj/cli.a $(B)/libkbarman.a
	$(USER_CC) $(LDFLAGS) -o $@ $^ $(USER_LDFLAGS) $(USER_LIBS)
ifndef CURL_H
	@echo "make: $@ can't send, it only shows metrics: curl/curl.h is missing (install libcurl4-openssl-dev)" >&2
endif

$(B)/kbarmand: $(AGENT_OBJ) $(B)/libkbarman.a
	$(USER_CC) $(LDFLAGS) -o $@ $^ $(USER_LDFLAGS) $(USER_LIBS)

# The README's example, which needs only the two UAPI headers.
user: $(O)/map_reader
$(O)/map_reader: user/examples/map_reader.c $(wildcard kmod/uapi/*.h)
	@mkdir -p $(@D)
	$(USER_CC) $(USER_CFLAGS) $(LDFLAGS) -o $@ $< $(USER_LDFLAGS)

-include $(LIB_OBJ:.o=.d) $(CLI_OBJ:.o=.d) $(AGENT_OBJ:.o=.d) $(PUSH_OBJ:.o=.d)
