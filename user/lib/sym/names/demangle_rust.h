/* SPDX-License-Identifier: MIT */
/* The two manglings of Rust. Hashes and disambiguators are left out. */
#ifndef KB_LIB_SYM_NAMES_DEMANGLE_RUST_H
#define KB_LIB_SYM_NAMES_DEMANGLE_RUST_H

/*
 * The legacy mangling, which looks like C++: "_ZN" ... "17h" and 16 digits "E". NULL: not such
 * a name. The caller frees the result.
 */
char *kb_demangle_rust_legacy(const char *name);

/* The "v0" mangling, "_R"... NULL: not such a name, or too deep or too long. */
char *kb_demangle_rust(const char *name);

#endif
