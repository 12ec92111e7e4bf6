# SPDX-License-Identifier: MIT
# `make install` installs the tool, the library with its headers, the manual, and the package of
# Python. It takes GNU's variables (DESTDIR, prefix, libdir, …). `make uninstall` with the same
# variables removes all of these files. This file does not install the module. `make dist` packs
# the source.

prefix		= /usr/local
exec_prefix	= $(prefix)
bindir		= $(exec_prefix)/bin
sbindir		= $(exec_prefix)/sbin
libdir		= $(exec_prefix)/lib
includedir	= $(prefix)/include
mandir		= $(prefix)/share/man
bashdir		= $(prefix)/share/bash-completion/completions
zshdir		= $(prefix)/share/zsh/site-functions
# The folder below prefix in which python3 looks for packages of others; set it for another Python.
pythondir	= $(eval pythondir := $$(shell scripts/pythondir $(prefix)))$(pythondir)
# folders of the system, which do not depend on prefix
udevdir		= /usr/lib/udev/rules.d
sysusersdir	= /usr/lib/sysusers.d
modulesloaddir	= /usr/lib/modules-load.d
systemdunitdir	= /usr/lib/systemd/system
configdir	= /etc/kbarman
pkgconfigdir	= $(libdir)/pkgconfig
INSTALL		= install

HEADERS		:= $(wildcard user/include/kbarman/*.h)
UAPI		:= $(wildcard kmod/uapi/*.h)
PYTHON		:= $(wildcard user/python/kbarman/*.py) user/python/kbarman/py.typed
MAN1		:= $(wildcard user/man/*.1)
# Made of the headers; asked for when first needed, once.
MAN3		= $(eval MAN3 := $$(addprefix build/man3/,$$(shell scripts/man3 --list)))$(MAN3)
MAN5		:= $(wildcard user/man/*.5)
MAN7		:= $(wildcard user/man/*.7)
MAN8		:= $(wildcard user/man/*.8)

# Every file, by its name on the target machine.
INSTALLED = $(PROGRAMS:%=$(bindir)/%) $(sbindir)/kbarmand \
	    $(addprefix $(libdir)/,libkbarman.a libkbarman.so $(SONAME) libkbarman.so.$(VERSION)) \
	    $(pkgconfigdir)/kbarman.pc \
	    $(HEADERS:user/include/%=$(includedir)/%) \
	    $(UAPI:kmod/%=$(includedir)/kbarman/%) \
	    $(MAN1:user/man/%=$(mandir)/man1/%) $(MAN3:build/man3/%=$(mandir)/man3/%) \
	    $(MAN5:user/man/%=$(mandir)/man5/%) \
	    $(MAN7:user/man/%=$(mandir)/man7/%) \
	    $(MAN8:user/man/%=$(mandir)/man8/%) \
	    $(bashdir)/kbarman $(zshdir)/_kbarman \
	    $(PYTHON:user/python/%=$(pythondir)/%)

# Section 3 of the manual, the pages of the library. The last one that is written stands for all.
user: build/man3/libkbarman.3
build/man3/libkbarman.3: scripts/man3 user/man/libkbarman.3.in VERSION $(HEADERS)
	scripts/man3 $(@D)

# In the tree, the module's headers are beside the library's. Installed, they are below kbarman/, so
# that kbarman/ is the only new entry of the include directory.
define install_header
sed 's|<uapi/|<kbarman/uapi/|' $1 >$2/$(notdir $1)
chmod 644 $2/$(notdir $1)

endef

.PHONY: install uninstall
install: $(PROGRAMS:%=$(B)/%) $(B)/kbarmand $(B)/libkbarman.a $(B)/libkbarman.so build/man3/libkbarman.3	## install tool, library, headers, manual, package of Python (DESTDIR=, prefix=)
	$(INSTALL) -d $(sort $(dir $(INSTALLED:%=$(DESTDIR)%)))
	$(INSTALL) -m 755 $(PROGRAMS:%=$(B)/%) $(DESTDIR)$(bindir)
	$(INSTALL) -m 755 $(B)/kbarmand $(DESTDIR)$(sbindir)
	$(INSTALL) -m 644 $(B)/libkbarman.a $(DESTDIR)$(libdir)
	$(INSTALL) -m 644 $(B)/libkbarman.so $(DESTDIR)$(libdir)/libkbarman.so.$(VERSION)
	ln -sf libkbarman.so.$(VERSION) $(DESTDIR)$(libdir)/$(SONAME)
	ln -sf $(SONAME) $(DESTDIR)$(libdir)/libkbarman.so
	$(foreach h,$(HEADERS),$(call install_header,$h,$(DESTDIR)$(includedir)/kbarman))
	$(INSTALL) -m 644 $(UAPI) $(DESTDIR)$(includedir)/kbarman/uapi
	$(INSTALL) -m 644 $(MAN1) $(DESTDIR)$(mandir)/man1
	$(INSTALL) -m 644 $(MAN3) $(DESTDIR)$(mandir)/man3
	$(INSTALL) -m 644 $(MAN5) $(DESTDIR)$(mandir)/man5
	$(INSTALL) -m 644 $(MAN7) $(DESTDIR)$(mandir)/man7
	$(INSTALL) -m 644 $(MAN8) $(DESTDIR)$(mandir)/man8
	$(INSTALL) -m 644 user/completion/kbarman.bash $(DESTDIR)$(bashdir)/kbarman
	$(INSTALL) -m 644 user/completion/_kbarman $(DESTDIR)$(zshdir)
	$(INSTALL) -m 644 $(PYTHON) $(DESTDIR)$(pythondir)/kbarman
	sed -e 's|@prefix@|$(prefix)|' -e 's|@exec_prefix@|$(exec_prefix)|' \
	    -e 's|@libdir@|$(libdir)|' -e 's|@includedir@|$(includedir)|' \
	    -e 's|@version@|$(VERSION)|' -e 's|@libs@|$(filter-out -lelf -lz,$(USER_LIBS))|' \
	    user/kbarman.pc.in >$(DESTDIR)$(pkgconfigdir)/kbarman.pc
	chmod 644 $(DESTDIR)$(pkgconfigdir)/kbarman.pc

uninstall:		## remove what `make install` with the same variables has installed
	rm -f $(INSTALLED:%=$(DESTDIR)%)
	rm -rf $(DESTDIR)$(pythondir)/kbarman/__pycache__
	-rmdir $(DESTDIR)$(includedir)/kbarman/uapi $(DESTDIR)$(includedir)/kbarman \
		$(DESTDIR)$(pythondir)/kbarman

# Files with which the system sets up the device. Packages install them; without a package, root
# does.
UNITS = kbarman-flight kbarmand kbarman-push
SYSTEM = $(udevdir)/70-kbarman.rules $(sysusersdir)/kbarman.conf $(modulesloaddir)/kbarman.conf \
	 $(UNITS:%=$(systemdunitdir)/%.service)

.PHONY: install-system uninstall-system
install-system:		## install udev rule, group, module at boot, units of flight recorder, agent and push (DESTDIR=)
	$(INSTALL) -d $(sort $(dir $(SYSTEM:%=$(DESTDIR)%)))
	$(INSTALL) -m 644 packaging/70-kbarman.rules $(DESTDIR)$(udevdir)
	$(INSTALL) -m 644 packaging/kbarman.sysusers $(DESTDIR)$(sysusersdir)/kbarman.conf
	$(INSTALL) -m 644 packaging/kbarman.modules-load $(DESTDIR)$(modulesloaddir)/kbarman.conf
	for unit in $(UNITS); do \
		sed 's|@bindir@|$(bindir)|;s|@sbindir@|$(sbindir)|' packaging/$$unit.service \
			>$(DESTDIR)$(systemdunitdir)/$$unit.service || exit; \
	done
	chmod 644 $(UNITS:%=$(DESTDIR)$(systemdunitdir)/%.service)
	[ -e $(DESTDIR)$(configdir)/kbarmand.conf ] || \
		$(INSTALL) -D -m 644 packaging/kbarmand.conf $(DESTDIR)$(configdir)/kbarmand.conf

uninstall-system:	## remove what `make install-system` has installed
	rm -f $(SYSTEM:%=$(DESTDIR)%)

.PHONY: dist
dist:			## write out/kbarman-VERSION.tar.xz: what git has of HEAD
	@scripts/dist
