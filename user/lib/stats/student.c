// SPDX-License-Identifier: MIT
/*
 * The tails of Student's distribution are an incomplete beta function, and that is a continued
 * fraction (Abramowitz and Stegun, 26.7.1 and 26.5.8), evaluated from the front by the method of
 * Lentz.
 */
#include <math.h>

#include "stats/student.h"

#define MOST_FREEDOM	1e5	/* more are as good as normal */
#define STEPS		2000
#define TINY		1e-300

/* Not 0, by which nobody could divide. */
static double nonzero(double value)
{
	return fabs(value) < TINY ? TINY : value;
}

/* The fraction converges fast for x < (a + 1) / (a + b + 2). */
static double fraction(double a, double b, double x)
{
	double above = 1, below = 1 / nonzero(1 - (a + b) * x / (a + 1)), result = below;

	for (int i = 1; i < STEPS; i++) {
		double even = i * (b - i) * x / ((a + 2 * i - 1) * (a + 2 * i));
		double odd = -(a + i) * (a + b + i) * x / ((a + 2 * i) * (a + 2 * i + 1)), factor;

		below = 1 / nonzero(1 + even * below);
		above = nonzero(1 + even / above);
		result *= below * above;
		below = 1 / nonzero(1 + odd * below);
		above = nonzero(1 + odd / above);
		factor = below * above;
		result *= factor;
		if (fabs(factor - 1) < 1e-14)
			break;
	}
	return result;
}

/* The logarithm of the gamma function, without the sign that lgamma() stores for all threads. */
static double log_gamma(double value)
{
	int sign;

	return lgamma_r(value, &sign);
}

static double incomplete_beta(double a, double b, double x)
{
	double front;

	if (x <= 0 || x >= 1)
		return x > 0;
	front = exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * log(x) + b * log1p(-x));
	if (x < (a + 1) / (a + b + 2))
		return front * fraction(a, b, x) / a;
	return 1 - front * fraction(b, a, 1 - x) / b;
}

double kb_student_beyond(double t, double freedom)
{
	if (!(freedom > 0) || isnan(t))
		return 1;
	if (isinf(t))
		return 0;
	freedom = fmin(freedom, MOST_FREEDOM);
	return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t));
}

double kb_student_above(double t, double freedom)
{
	double beyond = kb_student_beyond(t, freedom);

	return t < 0 ? 1 - beyond / 2 : beyond / 2;
}

double kb_student_reach(double within, double freedom)
{
	double low = 0, high = 1;

	if (!(freedom > 0) || within >= 1)
		return INFINITY;
	while (kb_student_beyond(high, freedom) > 1 - within) {
		low = high;
		high *= 2;
	}
	while (high - low > 1e-12 * high) {
		double middle = (low + high) / 2;

		if (kb_student_beyond(middle, freedom) > 1 - within)
			low = middle;
		else
			high = middle;
	}
	return high;
}
