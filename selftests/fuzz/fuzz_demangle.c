// SPDX-License-Identifier: MIT
/* Fuzz target of demangling: it ends, soon, with a name of limited length or none. */
#include <stdlib.h>
#include <string.h>

#include "sym/names/demangle.h"
#include "sym/names/demangle_rust.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	static struct kb_demangler demangler;
	char *name = strndup((const char *)data, size), *text;

	text = kb_demangle_rust_legacy(name);
	if (text && strlen(text) > 4096)
		abort();
	free(text);
	text = kb_demangle_rust(name);
	if (text && strlen(text) > 4096)
		abort();
	free(text);
	free(kb_demangle(&demangler, name));
	free(name);
	return 0;
}
