/* SPDX-License-Identifier: MIT */
/* Rust's two manglings; hashes and disambiguators are left out. */
#ifndef KBARMAN_SYM_DEMANGLE_RUST_H
#define KBARMAN_SYM_DEMANGLE_RUST_H

/*
 * The first form, "_ZN" ... "17h" and 16 digits "E", which looks like C++. NULL if it
 * is not that; to be freed.
 */
char *kb_demangle_rust_legacy(const char *name);

/* The second one ("v0"), "_R" .... NULL if it is not that, or too deep or too long. */
char *kb_demangle_rust(const char *name);

#endif
