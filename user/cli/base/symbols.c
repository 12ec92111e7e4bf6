// SPDX-License-Identifier: MIT
/* See symbols.h. */
#include "cli/base/symbols.h"

bool symbols_take(struct kb_symbol_options *symbols, int option, const char *value)
{
	switch (option) {
	case OPTION_KALLSYMS:
		symbols->kallsyms = value;
		return true;
	case OPTION_VMLINUX:
		symbols->vmlinux = value;
		return true;
	case OPTION_SYMFS:
		symbols->symfs = value;
		return true;
	case OPTION_NO_DEMANGLE:
		symbols->raw_names = true;
		return true;
	}
	return false;
}

void symbols_end(struct kb_symbol_options *symbols)
{
	symbols->complaints = cli_verbosity() > 0 ? UINT32_MAX : 0;
}
