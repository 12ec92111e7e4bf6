/* SPDX-License-Identifier: MIT */
/*
 * sym/names/: mangled names as a programmer wrote them: C++, both forms of Rust, Python.
 *
 * Names in source form: C++ (with the demangler of the C++ library, if that is installed) and
 * Rust. Files with names may be hostile, so a name that could take long or grow large is left
 * unchanged.
 */
#ifndef KB_LIB_SYM_NAMES_DEMANGLE_H
#define KB_LIB_SYM_NAMES_DEMANGLE_H

struct kb_demangler {
	void *library;		/* NULL: not opened yet, or not installed */
	char *(*cxx)(const char *name, char *buffer, unsigned long *length, int *status);
	int tried;
};

/* The demangled name; the caller frees it. NULL: @name is not mangled, or there is no memory. */
char *kb_demangle(struct kb_demangler *demangler, const char *name);

void kb_demangler_release(struct kb_demangler *demangler);

#endif
