/* SPDX-License-Identifier: MIT */
/*
 * The options for the sources of names. All verbs that resolve addresses have the same ones, even
 * those that print no source lines.
 */
#ifndef KBARMAN_CLI_SYMBOLS_H
#define KBARMAN_CLI_SYMBOLS_H

#include <stdbool.h>

#include <kbarman/symbol.h>

enum {
	OPTION_KALLSYMS = 0x1000, OPTION_VMLINUX, OPTION_SYMFS, OPTION_NO_DEMANGLE,
};

/* For a table of options. */
#define SYMBOLS_OPTIONS \
	{ "kallsyms", required_argument, NULL, OPTION_KALLSYMS }, \
	{ "vmlinux", required_argument, NULL, OPTION_VMLINUX }, \
	{ "symfs", required_argument, NULL, OPTION_SYMFS }, \
	{ "no-demangle", no_argument, NULL, OPTION_NO_DEMANGLE }

/* For a usage. @pad: blanks that align the text with the verb's other options. */
#define SYMBOLS_USAGE(pad) \
	"      --kallsyms FILE   " pad "kernel symbols, in the format of /proc/kallsyms\n" \
	"      --vmlinux FILE    " pad "the kernel with debug information, for source lines\n" \
	"      --symfs DIR       " pad "look for programs and libraries below DIR\n" \
	"      --no-demangle     " pad "keep C++ and Rust names mangled\n"

/* Takes @option with its value. False: it is none of these options. */
bool symbols_take(struct kb_symbol_options *symbols, int option, const char *value);

#endif
