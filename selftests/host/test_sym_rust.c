// SPDX-License-Identifier: MIT
/*
 * Rust names against those who know them: random names by the grammars of both manglings, read by
 * our demangler and by libiberty's. Left out is what libiberty does otherwise than Rust: characters
 * that are a blank, a tilde, a quote or a backslash, and integers of more than 64 bits.
 */
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "../lib/tap.h"

#if __has_include(<libiberty/demangle.h>)

#include <libiberty/demangle.h>

#include "../lib/random.h"
#include "sym/names/demangle_rust.h"

#define NAMES	200000
#define DEPTH	4

struct name {
	char text[1 << 14];
	size_t length;
	unsigned int bound;		/* lifetimes that are bound here */
	uint64_t paths[64], types[64];	/* where complete ones begin, behind "_R" */
	unsigned int nr_paths, nr_types;
};

static unsigned int dice(unsigned int sides)
{
	return (unsigned int)random_below(sides);
}

static void add(struct name *name, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct name *name, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	name->length += (size_t)vsnprintf(name->text + name->length,
					  sizeof(name->text) - name->length, format, args);
	va_end(args);
	if (name->length >= sizeof(name->text))
		abort();
}

static void add_base62(struct name *name, uint64_t value)
{
	char digits[16], *at = digits + sizeof(digits) - 1;

	*at = '\0';
	/* value - 1 as a number without leading zeros; 0 is the '_' alone */
	if (value--) {
		do {
			*--at = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				[value % 62];
			value /= 62;
		} while (value);
	}
	add(name, "%s_", at);
}

static void add_identifier(struct name *name)
{
	static const char *const words[] = { "a", "Vec", "into_iter", "_under", "x9", "deref_mut" };
	/* München, bücher, a name in Georgian, an emoji */
	static const char *const codes[] = { "Mnchen_3ya", "bcher_kva", "idents_7hkackfecea1cbdathfdh9hlq6y",
					     "ls8h" };
	const char *word;

	if (!dice(6)) {
		word = codes[dice(4)];
		add(name, "u%zu%s%s", strlen(word), *word == '_' ? "_" : "", word);
	} else {
		word = words[dice(6)];
		add(name, "%zu%s%s", strlen(word), *word == '_' ? "_" : "", word);
	}
}

static void add_disambiguator(struct name *name)
{
	if (dice(4))
		return;
	add(name, "s");
	add_base62(name, dice(3) ? dice(5) : dice(100000));
}

static void add_type(struct name *name, unsigned int depth);
static void add_path(struct name *name, unsigned int depth);

static void remember(const struct name *name, uint64_t *places, unsigned int *nr, size_t place)
{
	if (!name->bound && *nr < 64)
		places[(*nr)++] = place - 2;
}

/* True: an earlier path or type stands for this one. */
static bool add_reference(struct name *name, const uint64_t *places, unsigned int nr)
{
	if (!nr || dice(5))
		return false;
	add(name, "B");
	add_base62(name, places[dice(nr)]);
	return true;
}

static void add_lifetime(struct name *name)
{
	add(name, "L");
	add_base62(name, dice(2) ? dice(name->bound + 1) : 0);
}

static unsigned int add_binder(struct name *name)
{
	unsigned int nr = dice(3) ? 0 : 1 + dice(3);

	if (nr) {
		add(name, "G");
		add_base62(name, nr - 1);
	}
	name->bound += nr;
	return nr;
}

static void add_const(struct name *name)
{
	switch (dice(5)) {
	case 0:
		add(name, "b%u_", dice(2));
		break;
	case 1:		/* not all: see the head of this file */
		add(name, "c%x_", "aZ09\t\n\r\""[dice(8)]);
		break;
	case 2:
		add(name, "c%x_", 0x7f + dice(0xd000));
		break;
	case 3:
		add(name, "%cn%x_", "aslxni"[dice(6)], dice(1 << 30));
		break;
	default:
		add(name, "%c%llx_", "aslxnihtmyoj"[dice(12)], (unsigned long long)random_u64());
	}
}

static void add_generics(struct name *name, unsigned int depth)
{
	for (unsigned int i = 1 + dice(3); i--;) {
		if (!dice(4)) {
			add_lifetime(name);
		} else if (!dice(3)) {
			add(name, "K");
			add_const(name);
		} else {
			add_type(name, depth);
		}
	}
	add(name, "E");
}

static void add_function(struct name *name, unsigned int depth)
{
	static const char *const abis[] = { "", "U", "KC", "K5win64", "UK8C_unwind" };
	unsigned int bound = add_binder(name);

	add(name, "%s", abis[dice(5)]);
	for (unsigned int i = dice(3); i--;)
		add_type(name, depth);
	add(name, "E");
	if (dice(2))
		add(name, "u");
	else
		add_type(name, depth);
	name->bound -= bound;
}

static void add_dyn(struct name *name, unsigned int depth)
{
	unsigned int bound = add_binder(name);

	for (unsigned int i = 1 + dice(2); i--;) {
		add_path(name, depth);
		if (!dice(3)) {
			add(name, "p4Item");
			add_type(name, depth);
		}
	}
	add(name, "E");
	name->bound -= bound;
	add_lifetime(name);
}

static void add_compound(struct name *name, unsigned int depth)
{
	char kind = "ASTRQPOFD"[dice(9)];

	add(name, "%c", kind);
	switch (kind) {
	case 'A':
		add_type(name, depth);
		add_const(name);
		break;
	case 'T':
		for (unsigned int i = dice(4); i--;)
			add_type(name, depth);
		add(name, "E");
		break;
	case 'F':
		add_function(name, depth);
		break;
	case 'D':
		add_dyn(name, depth);
		break;
	case 'R':
	case 'Q':
		if (dice(2))
			add_lifetime(name);
		add_type(name, depth);
		break;
	default:
		add_type(name, depth);
	}
}

static void add_type(struct name *name, unsigned int depth)
{
	size_t start = name->length;

	if (!depth || !dice(3)) {
		add(name, "%c", "abcdefhijlmnopstuvxyz"[dice(21)]);
		return;
	}
	if (add_reference(name, name->types, name->nr_types))
		return;
	if (dice(2))
		add_compound(name, depth - 1);
	else
		add_path(name, depth - 1);
	remember(name, name->types, &name->nr_types, start);
}

static void add_path(struct name *name, unsigned int depth)
{
	size_t start = name->length;
	char kind = depth ? "CNNNNMXYI"[dice(9)] : 'C';

	if (add_reference(name, name->paths, name->nr_paths))
		return;
	add(name, "%c", kind);
	switch (kind) {
	case 'C':
		add_disambiguator(name);
		add_identifier(name);
		break;
	case 'N':
		add(name, "%c", "vtCSz"[dice(5)]);
		add_path(name, depth - 1);
		add_disambiguator(name);
		if (dice(5))
			add_identifier(name);
		else
			add(name, "0");
		break;
	case 'M':
	case 'X':
		add_disambiguator(name);
		add_path(name, depth - 1);
		/* fall through */
	case 'Y':
		add_type(name, depth - 1);
		if (kind != 'M')
			add_path(name, depth - 1);
		break;
	default:
		add_path(name, depth - 1);
		add_generics(name, depth - 1);
	}
	remember(name, name->paths, &name->nr_paths, start);
}

/* What compilers add to the name of a copy of a function. */
static void add_suffix(struct name *name)
{
	static const char *const suffixes[] = { ".llvm.123456789ABCDEF0", ".cold", ".isra.0", ".constprop.1.part.2" };

	if (!dice(4))
		add(name, "%s", suffixes[dice(4)]);
}

static void make_v0(struct name *name)
{
	add(name, "_R");
	add_path(name, DEPTH);
	if (!dice(4))
		add_path(name, 1);	/* the crate that asked for it */
	add_suffix(name);
}

/* A hash; of a few digits at times, which make a name of C++ of it. */
static void add_hash(struct name *name)
{
	unsigned int digits = dice(4) ? 16 : 1 + dice(8);

	add(name, "17h");
	for (unsigned int i = 0; i < 16; i++)
		add(name, "%x", dice(digits));
	add(name, "E");
}

static void make_legacy(struct name *name)
{
	static const char *const parts[] = {
		"core", "$LT$", "$GT$", "$RF$", "$BP$", "$C$", "$u20$", "$LP$", "$RP$", "$u7b$", "$u7d$",
		"..", "fmt", "as_ref", "$u5b$", "$u5d$", "$u27$", "$SP$",
	};
	unsigned int i, k;

	add(name, "_ZN");
	for (i = 1 + dice(4); i--;) {
		char component[256] = "";

		if (dice(2))
			strcat(component, "a");
		else
			strcat(component, "_$LT$");
		for (k = dice(6); k--;)
			strcat(component, parts[dice(18)]);
		add(name, "%zu%s", strlen(component), component);
	}
	add_hash(name);
	if (!dice(4))
		add(name, ".llvm.123456789ABCDEF0");
}

/* How many names differ, of those that libiberty can read. */
static unsigned int compare(void (*make)(struct name *name), char *(*ours)(const char *name),
			    unsigned int *read)
{
	unsigned int i, differ = 0;

	for (i = *read = 0; i < NAMES; i++) {
		struct name name = { .length = 0 };
		char *text, *want;

		make(&name);
		want = rust_demangle(name.text, DMGL_NO_OPTS);
		text = ours(name.text);
		*read += want != NULL;
		/* Ours has limits that the other one has not. */
		if (text ? !want || strcmp(text, want) : want && strlen(want) < 4096) {
			if (differ++ < 5)
				tap_note("%s\n# ours: %s\n# libiberty's: %s", name.text, text ?: "-",
					 want ?: "-");
		}
		free(text);
		free(want);
	}
	return differ;
}

int main(void)
{
	unsigned int read;

	random_start();
	tap_is(compare(make_v0, kb_demangle_rust, &read), 0, "v0_names_are_those_of_libiberty");
	tap_ok(read > NAMES / 2, "which_reads_most_of_them");
	tap_is(compare(make_legacy, kb_demangle_rust_legacy, &read), 0,
	       "legacy_names_are_those_of_libiberty");
	tap_ok(read > NAMES / 2, "which_reads_most_of_these");
	return tap_done();
}

#else

int main(void)
{
	tap_skip("rust_names_are_those_of_libiberty", "its header is not installed (libiberty-dev)");
	return tap_done();
}

#endif
