// SPDX-License-Identifier: MIT
/*
 * Rust names by the grammar of RFC 2603, "v0". It is recursive and may refer back to itself, so
 * depth, steps and text are limited. A name that exceeds a limit stays mangled.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "sym/names/demangle_rust.h"
#include "sym/names/punycode.h"
#include "sym/names/rust_text.h"

#define MAX_DEPTH	100
#define MAX_STEPS	10000

struct parser {
	const char *start, *at, *end;	/* start: after "_R" */
	struct kb_rust_text text;
	unsigned int depth, steps;
	uint64_t lifetimes;		/* that are bound where the parser is */
	bool silent;			/* parse without writing */
	bool open;			/* see put_open_path() */
	bool failed;
};

static void put_path(struct parser *parser, bool in_value);
static void put_type(struct parser *parser);
static void put_const(struct parser *parser);

static bool fail(struct parser *parser)
{
	parser->failed = true;
	parser->at = parser->end;
	return false;
}

static char peek(const struct parser *parser)
{
	return parser->at < parser->end ? *parser->at : '\0';
}

static bool eat(struct parser *parser, char c)
{
	if (peek(parser) != c || !c)
		return false;
	parser->at++;
	return true;
}

static char next(struct parser *parser)
{
	if (parser->at == parser->end) {
		fail(parser);
		return '\0';
	}
	return *parser->at++;
}

static void say_bytes(struct parser *parser, const char *bytes, size_t length)
{
	if (!parser->silent && !parser->failed)
		kb_rust_put_bytes(&parser->text, bytes, length);
	if (parser->text.failed)
		fail(parser);
}

static void say(struct parser *parser, const char *string)
{
	say_bytes(parser, string, strlen(string));
}

/* Call it in every rule that can nest. False: the name is too deep or too long. */
static bool enter(struct parser *parser)
{
	if (parser->failed || ++parser->depth > MAX_DEPTH || ++parser->steps > MAX_STEPS)
		return fail(parser);
	return true;
}

static void leave(struct parser *parser)
{
	parser->depth--;
}

static uint64_t base62(struct parser *parser)
{
	uint64_t value = 0;

	if (eat(parser, '_'))
		return 0;
	while (!parser->failed) {
		char c = next(parser);
		unsigned int digit;

		if (c == '_')
			return value + 1;
		if (c >= '0' && c <= '9')
			digit = c - '0';
		else if (c >= 'a' && c <= 'z')
			digit = c - 'a' + 10;
		else if (c >= 'A' && c <= 'Z')
			digit = c - 'A' + 36;
		else
			break;
		if (value > (UINT64_MAX - 62) / 62)
			break;
		value = value * 62 + digit;
	}
	fail(parser);
	return 0;
}

static uint64_t optional_base62(struct parser *parser, char tag)
{
	uint64_t value;

	if (!eat(parser, tag))
		return 0;
	value = base62(parser);
	return value == UINT64_MAX ? value : value + 1;
}

struct identifier {
	const char *name;
	size_t length;
	uint64_t disambiguator;
	bool punycode;
};

static struct identifier plain_identifier(struct parser *parser)
{
	struct identifier id = { .punycode = eat(parser, 'u') };

	if (peek(parser) < '0' || peek(parser) > '9')
		fail(parser);
	if (!eat(parser, '0'))
		while (peek(parser) >= '0' && peek(parser) <= '9' && id.length < KB_RUST_TEXT)
			id.length = id.length * 10 + (next(parser) - '0');
	eat(parser, '_');
	if (id.length > (size_t)(parser->end - parser->at)) {
		fail(parser);
		id.length = 0;
	}
	id.name = parser->at;
	parser->at += id.length;
	return id;
}

static struct identifier identifier(struct parser *parser)
{
	uint64_t disambiguator = optional_base62(parser, 's');
	struct identifier id = plain_identifier(parser);

	id.disambiguator = disambiguator;
	return id;
}

static void say_identifier(struct parser *parser, const struct identifier *id)
{
	char text[KB_PUNYCODE_BYTES];
	size_t length;

	if (!id->punycode) {
		say_bytes(parser, id->name, id->length);
		return;
	}
	length = kb_punycode_decode(text, id->name, id->length);
	if (length)
		say_bytes(parser, text, length);
	else
		fail(parser);
}

static void say_number(struct parser *parser, uint64_t number)
{
	char digits[24], *at = digits + sizeof(digits);

	*--at = '\0';
	do
		*--at = '0' + number % 10;
	while (number /= 10);
	say(parser, at);
}

/* "B" was read: parse an earlier place with @what, then return. */
static void backref(struct parser *parser, void (*what)(struct parser *parser))
{
	const char *place = parser->at - 1, *back;
	uint64_t offset = base62(parser);

	if (parser->failed || offset >= (uint64_t)(place - parser->start)) {
		fail(parser);
		return;
	}
	if (parser->silent)
		return;
	back = parser->at;
	parser->at = parser->start + offset;
	what(parser);
	if (!parser->failed)
		parser->at = back;
}

/* A lifetime by its number: 0 has no name, the others count from the innermost one outwards. */
static void say_lifetime(struct parser *parser, uint64_t number)
{
	char name[] = "'a";

	if (!number) {
		say(parser, "'_");
		return;
	}
	if (number > parser->lifetimes) {
		fail(parser);
		return;
	}
	number = parser->lifetimes - number;
	if (number < 26) {
		name[1] = (char)('a' + number);
		say(parser, name);
	} else {
		say(parser, "'_");
		say_number(parser, number);
	}
}

/* "for<'a> " if there is a binder. Returns how many lifetimes it binds, until unbind(). */
static uint64_t put_binder(struct parser *parser)
{
	uint64_t nr = optional_base62(parser, 'G'), i;

	if (nr > MAX_STEPS)
		fail(parser);
	for (i = 0; i < nr && !parser->failed; i++) {
		say(parser, i ? ", " : "for<");
		parser->lifetimes++;
		say_lifetime(parser, 1);
	}
	if (nr)
		say(parser, "> ");
	return nr;
}

static void unbind(struct parser *parser, uint64_t nr)
{
	parser->lifetimes -= parser->failed ? 0 : nr;
}

static void put_path_in_type(struct parser *parser)
{
	put_path(parser, false);
}

static void put_path_in_value(struct parser *parser)
{
	put_path(parser, true);
}

static void put_generic(struct parser *parser)
{
	if (eat(parser, 'L')) {
		say_lifetime(parser, base62(parser));
	} else if (eat(parser, 'K')) {
		put_const(parser);
	} else {
		put_type(parser);
	}
}

/* The caller writes the ">". */
static void put_generics(struct parser *parser)
{
	bool first = true;

	say(parser, "<");
	while (!parser->failed && !eat(parser, 'E')) {
		if (!first)
			say(parser, ", ");
		first = false;
		put_generic(parser);
	}
}

/* The place of an impl adds nothing to its type. */
static void skip_impl_path(struct parser *parser)
{
	bool silent = parser->silent;

	optional_base62(parser, 's');
	parser->silent = true;
	put_path(parser, false);
	parser->silent = silent;
}

static void put_nested(struct parser *parser, bool in_value)
{
	char namespace = next(parser);
	struct identifier id;

	put_path(parser, in_value);
	id = identifier(parser);
	if (namespace >= 'A' && namespace <= 'Z') {	/* closures, shims */
		say(parser, "::{");
		if (namespace == 'C')
			say(parser, "closure");
		else if (namespace == 'S')
			say(parser, "shim");
		else
			say_bytes(parser, &namespace, 1);
		if (id.length)
			say(parser, ":");
		say_identifier(parser, &id);
		say(parser, "#");
		say_number(parser, id.disambiguator);
		say(parser, "}");
	} else if (id.length) {
		say(parser, "::");
		say_identifier(parser, &id);
	}
}

static void put_path(struct parser *parser, bool in_value)
{
	struct identifier id;

	if (!enter(parser))
		return;
	switch (next(parser)) {
	case 'C':
		id = identifier(parser);
		say_identifier(parser, &id);
		break;
	case 'M':
		skip_impl_path(parser);
		say(parser, "<");
		put_type(parser);
		say(parser, ">");
		break;
	case 'X':
		skip_impl_path(parser);
		/* fall through */
	case 'Y':
		say(parser, "<");
		put_type(parser);
		say(parser, " as ");
		put_path(parser, false);
		say(parser, ">");
		break;
	case 'N':
		put_nested(parser, in_value);
		break;
	case 'I':
		put_path(parser, in_value);
		if (in_value)
			say(parser, "::");
		put_generics(parser);
		say(parser, ">");
		break;
	case 'B':
		backref(parser, in_value ? put_path_in_value : put_path_in_type);
		break;
	default:
		fail(parser);
	}
	leave(parser);
}

static const char *basic_type(char c)
{
	static const char *const names[26] = {
		/* cppcheck-suppress duplicateExpression ; the first of the letters */
		['a' - 'a'] = "i8", ['b' - 'a'] = "bool", ['c' - 'a'] = "char",
		['d' - 'a'] = "f64", ['e' - 'a'] = "str", ['f' - 'a'] = "f32",
		['h' - 'a'] = "u8", ['i' - 'a'] = "isize", ['j' - 'a'] = "usize",
		['l' - 'a'] = "i32", ['m' - 'a'] = "u32", ['n' - 'a'] = "i128",
		['o' - 'a'] = "u128", ['p' - 'a'] = "_", ['s' - 'a'] = "i16",
		['t' - 'a'] = "u16", ['u' - 'a'] = "()", ['v' - 'a'] = "...",
		['x' - 'a'] = "i64", ['y' - 'a'] = "u64", ['z' - 'a'] = "!",
	};

	return c >= 'a' && c <= 'z' ? names[c - 'a'] : NULL;
}

static void put_types(struct parser *parser, const char *between, bool tuple)
{
	unsigned int nr;

	for (nr = 0; !parser->failed && !eat(parser, 'E'); nr++) {
		if (nr)
			say(parser, between);
		put_type(parser);
	}
	if (tuple && nr == 1)
		say(parser, ",");
}

/* Names of calling conventions have '-' where identifiers have '_'. */
static void say_abi(struct parser *parser)
{
	struct identifier abi = plain_identifier(parser);

	if (abi.punycode)
		fail(parser);
	for (size_t i = 0; i < abi.length; i++)
		say_bytes(parser, abi.name[i] == '_' ? "-" : &abi.name[i], 1);
}

static void put_function(struct parser *parser)
{
	uint64_t bound = put_binder(parser);

	if (eat(parser, 'U'))
		say(parser, "unsafe ");
	if (eat(parser, 'K')) {
		say(parser, "extern \"");
		if (eat(parser, 'C'))
			say(parser, "C");
		else
			say_abi(parser);
		say(parser, "\" ");
	}
	say(parser, "fn(");
	put_types(parser, ", ", false);
	say(parser, ")");
	if (!eat(parser, 'u')) {
		say(parser, " -> ");
		put_type(parser);
	}
	unbind(parser, bound);
}

/* A path whose last generic arguments stay open for more, if it has any: `open`. */
static void put_open_path(struct parser *parser)
{
	bool open = false;

	parser->open = false;
	if (!enter(parser))
		return;
	if (eat(parser, 'B')) {
		backref(parser, put_open_path);
		open = parser->open;
	} else {
		open = eat(parser, 'I');
		put_path(parser, false);
		if (open)
			put_generics(parser);
	}
	parser->open = open;
	leave(parser);
}

/* Write a trait and its associated types, both in one pair of angle brackets. */
static void put_trait(struct parser *parser)
{
	bool open;

	put_open_path(parser);
	open = parser->open;
	while (!parser->failed && eat(parser, 'p')) {
		struct identifier id = plain_identifier(parser);

		say(parser, open ? ", " : "<");
		open = true;
		say_identifier(parser, &id);
		say(parser, " = ");
		put_type(parser);
	}
	if (open)
		say(parser, ">");
}

static void put_dyn(struct parser *parser)
{
	uint64_t bound, lifetime;
	unsigned int nr;

	say(parser, "dyn ");
	bound = put_binder(parser);
	for (nr = 0; !parser->failed && !eat(parser, 'E'); nr++) {
		if (nr)
			say(parser, " + ");
		put_trait(parser);
	}
	unbind(parser, bound);
	if (!eat(parser, 'L')) {
		fail(parser);
		return;
	}
	lifetime = base62(parser);
	if (lifetime) {
		say(parser, " + ");
		say_lifetime(parser, lifetime);
	}
}

/* "R" or "Q" was read: a reference, maybe with a lifetime. */
static void put_reference(struct parser *parser, bool mutable)
{
	uint64_t lifetime = eat(parser, 'L') ? base62(parser) : 0;

	say(parser, "&");
	if (lifetime) {
		say_lifetime(parser, lifetime);
		say(parser, " ");
	}
	if (mutable)
		say(parser, "mut ");
	put_type(parser);
}

static void put_type(struct parser *parser)
{
	const char *basic = basic_type(peek(parser));

	if (basic) {
		parser->at++;
		say(parser, basic);
		return;
	}
	if (!enter(parser))
		return;
	switch (next(parser)) {
	case 'A':
		say(parser, "[");
		put_type(parser);
		say(parser, "; ");
		put_const(parser);
		say(parser, "]");
		break;
	case 'S':
		say(parser, "[");
		put_type(parser);
		say(parser, "]");
		break;
	case 'T':
		say(parser, "(");
		put_types(parser, ", ", true);
		say(parser, ")");
		break;
	case 'R':
		put_reference(parser, false);
		break;
	case 'Q':
		put_reference(parser, true);
		break;
	case 'P':
		say(parser, "*const ");
		put_type(parser);
		break;
	case 'O':
		say(parser, "*mut ");
		put_type(parser);
		break;
	case 'F':
		put_function(parser);
		break;
	case 'D':
		put_dyn(parser);
		break;
	case 'B':
		backref(parser, put_type);
		break;
	default:
		parser->at--;
		put_path(parser, false);
	}
	leave(parser);
}

/* Read hexadecimal digits and the '_' after them. Returns their number. */
static size_t read_digits(struct parser *parser, uint64_t *value)
{
	const char *digits = parser->at;

	for (*value = 0; !eat(parser, '_');) {
		char c = next(parser);

		if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) {
			fail(parser);
			return 0;
		}
		*value = *value << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
	}
	return (size_t)(parser->at - digits - 1);
}

/* Write an integer in decimal. One of more than 64 bits stays hexadecimal. */
static void put_integer(struct parser *parser)
{
	const char *digits = parser->at;
	uint64_t value;
	size_t nr = read_digits(parser, &value);

	if (!nr) {
		fail(parser);
	} else if (nr <= 16) {
		say_number(parser, value);
	} else {
		say(parser, "0x");
		say_bytes(parser, digits, nr);
	}
}

static void put_bool(struct parser *parser)
{
	uint64_t value;

	if (read_digits(parser, &value) != 1 || value > 1)
		fail(parser);
	else
		say(parser, value ? "true" : "false");
}

/* Write a character as Rust does. */
static void put_character(struct parser *parser)
{
	const char *digits = parser->at;
	uint64_t value;
	size_t nr = read_digits(parser, &value);
	char c = (char)value;

	if (!nr || nr > 8 || parser->failed) {
		fail(parser);
		return;
	}
	say(parser, "'");
	if (value == '\t' || value == '\n' || value == '\r') {
		say(parser, value == '\t' ? "\\t" : value == '\n' ? "\\n" : "\\r");
	} else if (value >= ' ' && value <= '~') {
		if (c == '\'' || c == '\\')
			say(parser, "\\");
		say_bytes(parser, &c, 1);
	} else {
		say(parser, "\\u{");
		say_bytes(parser, digits, nr);
		say(parser, "}");
	}
	say(parser, "'");
}

static void put_const(struct parser *parser)
{
	char type = peek(parser);

	if (!enter(parser))
		return;
	parser->at += type != '\0';
	if (type == 'B') {
		backref(parser, put_const);
	} else if (type == 'p') {
		say(parser, "_");
	} else if (type == 'b') {
		put_bool(parser);
	} else if (type == 'c') {
		put_character(parser);
	} else if (type && strchr("aslxnihtmyoj", type)) {
		if (strchr("aslxni", type) && eat(parser, 'n'))
			say(parser, "-");
		put_integer(parser);
	} else {
		fail(parser);
	}
	leave(parser);
}

char *kb_demangle_rust(const char *name)
{
	struct parser parser = { .start = name + 2, .at = name + 2 };
	size_t length = strcspn(name, ".$");	/* without the compiler's suffix */

	if (strncmp(name, "_R", 2) != 0 || length < 4 || length > KB_RUST_TEXT)
		return NULL;
	if (name[2] < 'A' || name[2] > 'Z' || !kb_rust_begin(&parser.text))
		return NULL;
	parser.end = name + length;
	put_path(&parser, true);
	if (!parser.failed && parser.at < parser.end) {		/* the instantiating crate */
		parser.silent = true;
		put_path(&parser, false);
	}
	return kb_rust_end(&parser.text, !parser.failed && parser.at == parser.end);
}
