# SPDX-License-Identifier: MIT
# What reads the code without running it: `make analyze`. One log an analyzer and file.

ANALYZED	:= $(filter-out build/%,$(LIB_SRC)) $(CLI_SRC) $(wildcard user/examples/*.c) \
		   selftests/analyze/user.c

# Global exceptions of cppcheck: the kernel's style declares at the head of a function
# (variableScope), and `a & b ? c : d` is plain (clarifyCalculation); glibc's readdir() is safe
# on a directory of one's own (readdirCalled); gcc says what a shift of a negative number is
# (shiftTooManyBitsSigned); `a ?: b` is not understood (unreadVariable), nor is __has_include
# (preprocessorErrorDirective).
CPPCHECK_FLAGS	:= --quiet -j2 --inline-suppr --enable=warning,style,performance,portability \
		   --std=c11 --platform=unix64 --library=posix,gnu -D_GNU_SOURCE -D__linux__ \
		   -D__x86_64__ -DKBARMAN_VERSION='"0"' -Iuser/include -Iuser/lib -Ikmod \
		   $(addprefix --suppress=,variableScope clarifyCalculation readdirCalled \
		   shiftTooManyBitsSigned unreadVariable preprocessorErrorDirective) \
		   --template='{file}:{line}:{column}: warning: {message} [{id}]'

.PHONY: analyze analyze-cppcheck analyze-fanalyzer analyze-tidy
analyze:		## clang-tidy, cppcheck, gcc -fanalyzer, coccinelle, checkpatch (PARTS="…")
	@exec env CI=$(CI) scripts/analyze $(PARTS)

analyze-cppcheck:
	@mkdir -p build/analyze/cppcheck
	cppcheck $(CPPCHECK_FLAGS) user selftests/analyze/user.c 2>build/analyze/cppcheck/all

analyze-fanalyzer: $(ANALYZED:%=build/analyze/fanalyzer/%)
analyze-tidy: $(ANALYZED:%=build/analyze/tidy/%)

# gcc 12 loses sight of memory that a structure holds which it knows by a pointer, and calls it
# leaked; the sanitizers of `make fuzz` see what leaks. What it finds is read, and fails nothing here.
build/analyze/fanalyzer/%: %
	@mkdir -p $(@D)
	$(USER_CC) $(filter-out -Werror,$(USER_CFLAGS)) -fanalyzer -Wno-analyzer-malloc-leak -c $< -o /dev/null 2>$@

build/analyze/tidy/%: %
	@mkdir -p $(@D)
	clang-tidy --quiet $< -- $(USER_CFLAGS) >$@ 2>/dev/null
