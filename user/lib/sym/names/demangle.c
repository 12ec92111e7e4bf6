// SPDX-License-Identifier: MIT
/*
 * The C++ library is opened when the first C++ name comes, so that the tool, which is written
 * in C, works without it. Its demangler expands back-references without limit, and a pair of
 * them may double the text. So names with many back-references stay mangled: nine of 73,000
 * names of libstdc++ and LLVM.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "sym/names/demangle.h"
#include "sym/names/demangle_rust.h"
#include "sym/question/question.h"

#define MAX_LENGTH	1024
#define MAX_REFERENCES	28

static bool open_library(struct kb_demangler *demangler)
{
	if (!demangler->tried) {
		demangler->tried = 1;
		demangler->library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
		if (!demangler->library)
			demangler->library = dlopen("libc++abi.so.1", RTLD_LAZY | RTLD_LOCAL);
		if (demangler->library)
			*(void **)&demangler->cxx = dlsym(demangler->library, "__cxa_demangle");
	}
	return demangler->cxx;
}

/* "S_", "S0_", "T_", "T12_" and similar. */
static bool is_harmless(const char *name)
{
	unsigned int references = 0;
	const char *at;

	if (strnlen(name, MAX_LENGTH + 1) > MAX_LENGTH)
		return false;
	for (at = name; *at; at++)
		if ((*at == 'S' || *at == 'T') &&
		    at[1 + strspn(at + 1, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ")] == '_')
			references++;
	return references <= MAX_REFERENCES;
}

static char *demangle_cxx(struct kb_demangler *demangler, const char *name)
{
	int status;

	if (!is_harmless(name) || !open_library(demangler))
		return NULL;
	/* cppcheck-suppress returnDanglingLifetime ; the result is memory of its own */
	return demangler->cxx(name, NULL, NULL, &status);
}

/*
 * The demangler refuses suffixes that compilers add to a mangled name, such as
 * "_Z3foov.isra.0". They are cut off.
 */
static char *demangle_stem(struct kb_demangler *demangler, const char *name)
{
	const char *dot = strchr(name, '.');
	char *stem, *text;

	if (!dot)
		return demangle_cxx(demangler, name);
	stem = strndup(name, dot - name);
	text = stem ? demangle_cxx(demangler, stem) : NULL;
	free(stem);
	return text;
}

/* Let the decoder process demangle: its answer is a symbol with the demangled name. */
static char *demangle_elsewhere(const char *name)
{
	struct kb_question question = { .what = KB_QUESTION_NAME };
	struct kb_elf found = { 0 };
	char *text = NULL;

	if ((name[1] != 'R' && name[1] != 'Z') || strlen(name) >= sizeof(question.name))
		return NULL;
	strcpy(question.name, name);
	if (!kb_decode_elsewhere(&question, -1, name, &found, NULL) && found.symbols.nr_symbols == 1)
		text = strdup(kb_symtab_name(&found.symbols, &found.symbols.symbols[0]));
	kb_elf_release(&found);
	return text;
}

char *kb_demangle(struct kb_demangler *demangler, const char *name)
{
	char *text;

	if (name[0] != '_')
		return NULL;
	if (kb_decodes_elsewhere())
		return demangle_elsewhere(name);
	if (name[1] == 'R')
		return kb_demangle_rust(name);
	if (name[1] != 'Z')
		return NULL;
	text = kb_demangle_rust_legacy(name);
	return text ? text : demangle_stem(demangler, name);
}

void kb_demangler_release(struct kb_demangler *demangler)
{
	if (demangler->library)
		dlclose(demangler->library);
	*demangler = (struct kb_demangler) { 0 };
}
