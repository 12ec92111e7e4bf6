/* SPDX-License-Identifier: MIT */
/*
 * metrics/: what counts say in relation to each other: published formulas (facts.h) with units and
 * bounds. It is pure: it knows of no capture.
 *
 * Formulas of metrics: values with bounds, and units.
 */
#ifndef KB_LIB_METRICS_FORMULA_H
#define KB_LIB_METRICS_FORMULA_H

#include <stdbool.h>
#include <stddef.h>

#define KB_NAME_MAX	64	/* bytes of a name in a formula */

struct kb_range {
	double value, low, high;
};

/*
 * What stands for a name. @name is that of an event or a constant with its $. False ends the
 * evaluation.
 */
typedef bool (*kb_formula_name)(void *context, const char *name, struct kb_range *range);

/* Returns 0; -ENOENT: @name returned false; -EINVAL: @formula is malformed. */
int kb_formula_evaluate(const char *formula, kb_formula_name name, void *context,
			struct kb_range *range);

/* Called for each name in the formula. False: @formula is malformed. */
bool kb_formula_names(const char *formula, void (*visit)(void *context, const char *name),
		      void *context);

/*
 * Call @step for each step of the formula, operands before what is done with them: a number, a name,
 * or one of + - * / with what the last two steps left. False: @formula is malformed.
 */
struct kb_formula_step {
	char operator;		/* 0: an operand */
	const char *name;	/* of an operand; NULL: the number */
	double number;
};

bool kb_formula_steps(const char *formula,
		      void (*step)(void *context, const struct kb_formula_step *step),
		      void *context);

/*
 * Check that the units of @formula fit: + and - take the same units. The unit of the result is
 * written to @unit, for example "instruction/cycle", "1" if it has none. @unit_of is the unit of a
 * name, NULL: not known. Returns 0 or -EINVAL.
 */
int kb_formula_unit(const char *formula, const char *(*unit_of)(const char *name), char *unit,
		    size_t size);

#endif
