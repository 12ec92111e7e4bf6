/* SPDX-License-Identifier: MIT */
/*
 * stats/: how sure a difference is: Student's distribution, two means beside each other, slices of
 * one run, many comparisons at once. It is pure: numbers in, numbers out.
 *
 * Two groups of values, and how sure it is that their means differ.
 */
#ifndef KB_LIB_STATS_CONTRAST_H
#define KB_LIB_STATS_CONTRAST_H

#include <stdbool.h>

/* What is known of a mean. */
struct kb_mean {
	double value;
	double variance;	/* of the mean, not of a value */
	double freedom;		/* degrees of freedom of the variance; 0: the variance is not known */
	bool borrowed;		/* the variance is known from the other mean of a contrast */
};

/* @sum and @squares (of the distances from the mean) of @nr values. */
struct kb_mean kb_mean_of(double sum, double squares, unsigned int nr);

/* B minus @factor times A. */
struct kb_contrast {
	double value;
	double error;		/* the standard error; infinite: not known */
	double freedom;
};

/*
 * By Welch, whose degrees of freedom allow for different variances: "The generalization of
 * 'Student's' problem when several different population variances are involved", 1947.
 */
struct kb_contrast kb_contrast(const struct kb_mean *a, const struct kb_mean *b, double factor);

/* Two runs whose slices of time belong together, so that what both do in one phase is no error. */
struct kb_pair {
	double covariance;	/* of the two sums */
	double blocks;		/* how many equal blocks of time would be as good as those that have
				 * something: few if most of it is in one place */
};

/*
 * The same of such a pair. If many blocks have something, the ratio of B to A is taken to be the same
 * in all of them but for chance; else nothing is taken for granted.
 */
struct kb_contrast kb_contrast_paired(const struct kb_mean *a, const struct kb_mean *b,
				      const struct kb_pair *pair, double factor);

/*
 * The probability of such a distance from 0, or of such a value or a larger one, if the true value
 * is 0. 1 if nothing is known of the error.
 */
double kb_contrast_beyond(const struct kb_contrast *contrast);
double kb_contrast_above(const struct kb_contrast *contrast);

#endif
