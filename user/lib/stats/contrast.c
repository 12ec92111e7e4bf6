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
