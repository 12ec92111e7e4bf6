# SPDX-License-Identifier: MIT
# Static analyzers: `make analyze`. Each analyzer writes one log per source file.

ANALYZED	:= $(filter-out build/%,$(LIB_SRC)) $(CLI_SRC) $(PUSH_SRC) $(AGENT_SRC) $(wildcard user/examples/*.c) \
		   selftests/analyze/user.c

# Global exceptions of cppcheck: the kernel's style declares at the head of a function
# (variableScope), and `a & b ? c : d` is plain (clarifyCalculation); glibc's readdir() is safe
# on a directory of one's own (readdirCalled); gcc says what a shift of a negative number is
# (shiftTooManyBitsSigned); `a ?: b` is not understood (unreadVariable), nor is __has_include
# (preprocessorErrorDirective).
# Newer releases report more: what could be const, which a type says that several functions share
# (const...); functions with more branches than they follow (normalCheckLevelMaxBranches); and as
# uninitialized an array that another argument of the same call fills, as labels of exports are
# (uninitvar there: gcc -fanalyzer looks for the same bug). The struct of an export begins with KB_RUN,
# of which not each export uses all (unusedStructMember there).
CPPCHECK_FLAGS	:= --quiet -j2 --inline-suppr --enable=warning,style,performance,portability \
		   --std=c11 --platform=unix64 --library=posix,gnu -D_GNU_SOURCE -D__linux__ \
		   -D__x86_64__ -DKBARMAN_VERSION='"0"' -Iuser/include -Iuser/lib -Iuser -Ikmod \
		   $(addprefix --suppress=,variableScope clarifyCalculation readdirCalled \
		   shiftTooManyBitsSigned unreadVariable preprocessorErrorDirective \
		   constParameterPointer constParameterCallback constVariablePointer constVariable \
		   normalCheckLevelMaxBranches uninitvar:user/lib/export/* uninitvar:user/lib/export/*/* \
		   unusedStructMember:user/lib/export/*/*) \
		   --template='{file}:{line}:{column}: warning: {message} [{id}]'

.PHONY: analyze analyze-cppcheck analyze-fanalyzer analyze-tidy
analyze:		## clang-tidy, cppcheck, gcc -fanalyzer, coccinelle, checkpatch (PARTS="…")
	@exec env CI=$(CI) scripts/analyze $(PARTS)

analyze-cppcheck:
	@mkdir -p build/analyze/cppcheck
	cppcheck $(CPPCHECK_FLAGS) user selftests/analyze/user.c 2>build/analyze/cppcheck/all

analyze-fanalyzer: $(ANALYZED:%=build/analyze/fanalyzer/%)
analyze-tidy: $(ANALYZED:%=build/analyze/tidy/%)

# gcc 12 reports memory as leaked if only a structure behind a pointer refers to it. So this check
# is off; the sanitizers of `make fuzz` find leaks. Warnings of this run don't fail make: the script
# reads the log.
build/analyze/fanalyzer/%: %
	@mkdir -p $(@D)
	@scripts/cached-warnings $@ $(USER_CC) $(filter-out -Werror,$(USER_CFLAGS)) -fanalyzer \
		-Wno-analyzer-malloc-leak $(FANALYZER_FLAGS) $<

# What gcc 14 reports wrongly, file by file: descriptors that become 0, 1 and 2 and stay open, or
# that the caller closes; a loop that ends when a counter is not 0; a pointer that realloc() gave,
# as the one from before; a copy of no bytes; an array that has as many rows as were counted, or of
# which the last row comes first; columns of one table, of which one is there and another one not.
FANALYZED	:= build/analyze/fanalyzer/user
$(addprefix $(FANALYZED)/cli/,base/decoder.c flight.c dump/formats.c record/output.c): \
	FANALYZER_FLAGS := -Wno-analyzer-fd-leak
$(FANALYZED)/lib/base/error.c: FANALYZER_FLAGS := -Wno-analyzer-infinite-loop
$(FANALYZED)/lib/base/io/in.c: FANALYZER_FLAGS := -Wno-analyzer-deref-before-check
$(addprefix $(FANALYZED)/lib/,analysis/diff/tree.c base/tree_order.c): \
	FANALYZER_FLAGS := -Wno-analyzer-out-of-bounds
$(addprefix $(FANALYZED)/lib/export/,parquet/rows.c spans.c): \
	FANALYZER_FLAGS := -Wno-analyzer-use-of-uninitialized-value
$(addprefix $(FANALYZED)/lib/export/,parquet/waits.c viewers/speedscope.c): \
	FANALYZER_FLAGS := -Wno-analyzer-null-dereference

build/analyze/tidy/%: %
	@mkdir -p $(@D)
	clang-tidy --quiet $< -- $(USER_CFLAGS) >$@ 2>/dev/null
