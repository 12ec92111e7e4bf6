/* SPDX-License-Identifier: MIT */
/*
 * The options for the sources of names. All verbs that resolve addresses have the same ones, even
 * those that print no source lines.
 */
#ifndef KB_CLI_BASE_SYMBOLS_H
#define KB_CLI_BASE_SYMBOLS_H

#include <stdbool.h>

#include <kbarman/symbol.h>

#include "cli/base/cli.h"

enum {
	OPTION_KALLSYMS = 0x1000, OPTION_VMLINUX, OPTION_SYMFS, OPTION_NO_DEMANGLE,
};

/* For a table of options. */
#define SYMBOLS_OPTIONS \
	{ OPTION_KALLSYMS, "kallsyms", "FILE", \
	  "kernel symbols, in the format of /proc/kallsyms" }, \
	{ OPTION_VMLINUX, "vmlinux", "FILE", \
	  "the kernel with debug information, for source lines" }, \
	{ OPTION_SYMFS, "symfs", "DIR", "look for programs and libraries below DIR" }, \
	{ OPTION_NO_DEMANGLE, "no-demangle", NULL, "keep C++ and Rust names mangled" }

/* Takes @option with its value. False: it is none of these options. */
bool symbols_take(struct kb_symbol_options *symbols, int option, const char *value);

/* All options were taken: with -v each image without names is told. */
void symbols_end(struct kb_symbol_options *symbols);

#endif
