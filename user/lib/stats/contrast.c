// SPDX-License-Identifier: MIT
#include <math.h>

#include "stats/contrast.h"
#include "stats/student.h"

struct kb_mean kb_mean_of(double sum, double squares, unsigned int nr)
{
	struct kb_mean mean = { .value = nr ? sum / nr : 0 };

	if (nr > 1) {
		mean.freedom = nr - 1;
		mean.variance = squares / mean.freedom / nr;
	}
	return mean;
}

struct kb_contrast kb_contrast(const struct kb_mean *a, const struct kb_mean *b, double factor)
{
	double of_a = a->variance * factor * factor, sum = of_a + b->variance;
	struct kb_contrast contrast = {
		.value = b->value - factor * a->value,
		.error = INFINITY,
	};

	if (!(a->freedom > 0) || !(b->freedom > 0))
		return contrast;
	contrast.error = sqrt(sum);
	contrast.freedom = a->borrowed ? b->freedom : a->freedom;
	if (a->borrowed || b->borrowed)
		return contrast;
	contrast.freedom = sum > 0 ? sum * sum / (of_a * of_a / a->freedom +
						  b->variance * b->variance / b->freedom) :
				     a->freedom + b->freedom;
	return contrast;
}

#define BLOCKS_LEAST	6

/* The logarithmic mean: between the two, and next to the smaller one if that is far smaller. */
static double log_mean(double a, double b)
{
	return fabs(a - b) <= 1e-9 * (a + b) ? (a + b) / 2 : (b - a) / log(b / a);
}

/* What is off by a share is off by as much of itself. */
static double error_of_ratio(const struct kb_mean *a, const struct kb_mean *b, double covariance,
			     double factor)
{
	double share = a->variance / a->value / a->value + b->variance / b->value / b->value -
		       2 * covariance / a->value / b->value;

	return log_mean(factor * a->value, b->value) * sqrt(fmax(share, 0));
}

struct kb_contrast kb_contrast_paired(const struct kb_mean *a, const struct kb_mean *b,
				      const struct kb_pair *pair, double factor)
{
	struct kb_contrast contrast = kb_contrast(a, b, factor);

	if (isinf(contrast.error))
		return contrast;
	contrast.freedom = fmin(a->freedom, b->freedom);
	if (pair->blocks >= BLOCKS_LEAST && factor * a->value > 0 && b->value > 0) {
		contrast.error = error_of_ratio(a, b, pair->covariance, factor);
		contrast.freedom = fmin(contrast.freedom, pair->blocks - 1);
	} else {
		contrast.error = sqrt(fmax(b->variance + factor * factor * a->variance -
					   2 * factor * pair->covariance, 0));
	}
	return contrast;
}

/* Nothing is 0 errors away from 0, however small the error. */
static double errors(const struct kb_contrast *contrast)
{
	return contrast->value > 0 || contrast->value < 0 ? contrast->value / contrast->error : 0;
}

double kb_contrast_beyond(const struct kb_contrast *contrast)
{
	return isinf(contrast->error) ? 1 :
	       kb_student_beyond(errors(contrast), contrast->freedom);
}

double kb_contrast_above(const struct kb_contrast *contrast)
{
	return isinf(contrast->error) ? 1 :
	       kb_student_above(errors(contrast), contrast->freedom);
}
