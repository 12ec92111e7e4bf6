/* SPDX-License-Identifier: MIT */
/*
 * Names as people write them: C++ (by the C++ library's own demangler, if there is
 * one on this machine) and Rust. Names come from files that may be hostile, so what
 * could take long or grow large is left as it is.
 */
#ifndef KBARMAN_SYM_DEMANGLE_H
#define KBARMAN_SYM_DEMANGLE_H

struct kb_demangler {
	void *library;		/* NULL: not opened yet, or there is none */
	char *(*cxx)(const char *name, char *buffer, unsigned long *length, int *status);
	int tried;
};

/* The name for people, to be freed; NULL: @name is as good, or there is no memory. */
char *kb_demangle(struct kb_demangler *demangler, const char *name);

void kb_demangler_release(struct kb_demangler *demangler);

#endif
