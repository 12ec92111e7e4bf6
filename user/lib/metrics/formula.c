// SPDX-License-Identifier: MIT
/*
 * See formula.h.
 *
 *	SUM	PRODUCT [+|- PRODUCT]...
 *	PRODUCT	FACTOR [*|/ FACTOR]...
 *	FACTOR	NUMBER | NAME | $NAME | (SUM)
 *
 * A name is a letter, then letters, digits, _ and -; so a minus needs a space in front. One parser
 * serves values and units: each value carries the exponents of its units.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "metrics/formula.h"

#define UNITS_MAX	8
#define DEPTH_MAX	16	/* of brackets */

/* The units of a formula have numbers in the order in which they were met. */
struct value {
	struct kb_range range;
	signed char exponents[UNITS_MAX];
};

struct formula {
	const char *at;
	unsigned int depth;
	int error;
	kb_formula_name name;
	void *context;
	const char *(*unit_of)(const char *name);	/* NULL: units are not asked for */
	void (*step)(void *context, const struct kb_formula_step *step);	/* NULL: not asked for */
	char units[UNITS_MAX][32];
};

static struct value fail(struct formula *f, int error)
{
	if (!f->error)
		f->error = error;
	return (struct value){ 0 };
}

static void tell(const struct formula *f, char operator, const char *name, double number)
{
	if (f->step)
		f->step(f->context, &(struct kb_formula_step){ operator, name, number });
}

static void skip_spaces(struct formula *f)
{
	while (*f->at == ' ')
		f->at++;
}

static void add_unit(struct formula *f, struct value *value, const char *unit, size_t length,
		     int exponent)
{
	if (length == 1 && *unit == '1')
		return;
	for (unsigned int i = 0; i < UNITS_MAX; i++) {
		if (!f->units[i][0] && length < sizeof(f->units[i]))
			memcpy(f->units[i], unit, length);
		if (strlen(f->units[i]) == length && !memcmp(f->units[i], unit, length)) {
			value->exponents[i] = (signed char)(value->exponents[i] + exponent);
			return;
		}
	}
	fail(f, -EINVAL);
}

/* "slot/cycle" */
static void add_units(struct formula *f, struct value *value, const char *text)
{
	int exponent = 1;

	while (text && *text) {
		size_t length = strcspn(text, "*/");

		add_unit(f, value, text, length, exponent);
		text += length;
		exponent = *text == '/' ? -1 : 1;
		text += !!*text;
	}
}

static struct value parse_name(struct formula *f)
{
	struct value value = { 0 };
	char name[KB_NAME_MAX];
	size_t length = 1;

	while (isalnum((unsigned char)f->at[length]) || f->at[length] == '_' ||
	       f->at[length] == '-')
		length++;
	if (length >= sizeof(name))
		return fail(f, -EINVAL);
	memcpy(name, f->at, length);
	name[length] = '\0';
	f->at += length;
	tell(f, 0, name, 0);
	if (!f->name(f->context, name, &value.range))
		return fail(f, -ENOENT);
	if (f->unit_of) {
		const char *unit = f->unit_of(name);

		if (!unit)
			return fail(f, -EINVAL);
		add_units(f, &value, unit);
	}
	return value;
}

static struct value parse_sum(struct formula *f);

static struct value parse_factor(struct formula *f)
{
	struct value value = { 0 };
	char *end;

	skip_spaces(f);
	if (*f->at == '(') {
		f->at++;
		if (f->depth++ == DEPTH_MAX)
			return fail(f, -EINVAL);
		value = parse_sum(f);
		f->depth--;
		skip_spaces(f);
		if (*f->at++ != ')') {
			f->at--;
			return fail(f, -EINVAL);
		}
		return value;
	}
	if (isalpha((unsigned char)*f->at) || *f->at == '$')
		return parse_name(f);
	if (!isdigit((unsigned char)*f->at))
		return fail(f, -EINVAL);
	value.range.value = value.range.low = value.range.high = strtod(f->at, &end);
	f->at = end;
	tell(f, 0, NULL, value.range.value);
	return value;
}

/* The bounds of a function that grows or falls in each argument are at the ends of these. */
static struct kb_range bounds(double value, const double corners[4])
{
	struct kb_range range = { value, corners[0], corners[0] };

	for (int i = 1; i < 4; i++) {
		if (corners[i] < range.low)
			range.low = corners[i];
		if (corners[i] > range.high)
			range.high = corners[i];
	}
	return range;
}

static struct kb_range multiply(struct kb_range a, struct kb_range b)
{
	const double corners[] = { a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high };

	return bounds(a.value * b.value, corners);
}

static struct kb_range divide(struct kb_range a, struct kb_range b)
{
	const double corners[] = { a.low / b.low, a.low / b.high, a.high / b.low, a.high / b.high };
	struct kb_range range = bounds(a.value / b.value, corners);

	/* what may be divided by 0 may be anything on that side, and on both if it changes sign */
	if (b.low <= 0 && b.high >= 0 && b.low != b.high) {
		range.high = INFINITY;
		if (a.low < 0 || b.low < 0)
			range.low = -INFINITY;
	}
	return range;
}

static struct value parse_product(struct formula *f)
{
	struct value value = parse_factor(f);

	for (;;) {
		struct value other;
		char sign;

		skip_spaces(f);
		sign = *f->at;
		if (f->error || (sign != '*' && sign != '/'))
			return value;
		f->at++;
		other = parse_factor(f);
		tell(f, sign, NULL, 0);
		for (unsigned int i = 0; i < UNITS_MAX; i++)
			value.exponents[i] = (signed char)(value.exponents[i] + (sign == '*' ?
						other.exponents[i] : -other.exponents[i]));
		value.range = sign == '*' ? multiply(value.range, other.range) :
			      divide(value.range, other.range);
	}
}

static struct value parse_sum(struct formula *f)
{
	struct value value = parse_product(f);

	for (;;) {
		struct value other;
		char sign;

		skip_spaces(f);
		sign = *f->at;
		if (f->error || (sign != '+' && sign != '-'))
			return value;
		f->at++;
		other = parse_product(f);
		tell(f, sign, NULL, 0);
		if (f->unit_of && memcmp(value.exponents, other.exponents, sizeof(value.exponents)))
			return fail(f, -EINVAL);
		if (sign == '+')
			value.range = (struct kb_range) {
				value.range.value + other.range.value,
				value.range.low + other.range.low,
				value.range.high + other.range.high };
		else
			value.range = (struct kb_range) {
				value.range.value - other.range.value,
				value.range.low - other.range.high,
				value.range.high - other.range.low };
	}
}

static int parse(struct formula *f, struct value *value)
{
	*value = parse_sum(f);
	if (!f->error && *f->at)
		f->error = -EINVAL;
	return f->error;
}

int kb_formula_evaluate(const char *formula, kb_formula_name name, void *context,
			struct kb_range *range)
{
	struct formula f = { .at = formula, .name = name, .context = context };
	struct value value;
	int ret = parse(&f, &value);

	*range = value.range;
	return ret;
}

static bool any_name(void *context, const char *name, struct kb_range *range)
{
	(void)context;
	(void)name;
	*range = (struct kb_range){ 1, 1, 1 };
	return true;
}

struct visit {
	void (*visit)(void *context, const char *name);
	void *context;
};

static bool visit_name(void *context, const char *name, struct kb_range *range)
{
	struct visit *visit = context;

	visit->visit(visit->context, name);
	*range = (struct kb_range){ 1, 1, 1 };
	return true;
}

bool kb_formula_names(const char *formula, void (*visit)(void *context, const char *name),
		      void *context)
{
	struct visit visitor = { visit, context };
	struct formula f = { .at = formula, .name = visit_name, .context = &visitor };
	struct value value;

	return !parse(&f, &value);
}

bool kb_formula_steps(const char *formula,
		      void (*step)(void *context, const struct kb_formula_step *step),
		      void *context)
{
	struct formula f = { .at = formula, .name = any_name, .step = step, .context = context };
	struct value value;

	return !parse(&f, &value);
}

/* First what is above the line, then what is below it. */
static void put_unit(const struct formula *f, const struct value *value, char *unit, size_t size)
{
	size_t used = 0;

	unit[0] = '\0';
	for (int sign = 1; sign >= -1; sign -= 2) {
		for (unsigned int i = 0; i < UNITS_MAX; i++) {
			for (int n = value->exponents[i] * sign; n > 0; n--) {
				used += (size_t)snprintf(unit + used, size - used, "%s%s",
							 sign < 0 ? used ? "/" : "1/" :
							 used ? "*" : "", f->units[i]);
				if (used >= size)
					return;
			}
		}
	}
	if (!used)
		snprintf(unit, size, "1");
}

int kb_formula_unit(const char *formula, const char *(*unit_of)(const char *name), char *unit,
		    size_t size)
{
	struct formula f = { .at = formula, .name = any_name, .unit_of = unit_of };
	struct value value;
	int ret = parse(&f, &value);

	if (!ret)
		put_unit(&f, &value, unit, size);
	return ret;
}
