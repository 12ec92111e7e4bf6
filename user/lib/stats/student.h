/* SPDX-License-Identifier: MIT */
/* Student's distribution: what a mean of few values may be off by. */
#ifndef KB_LIB_STATS_STUDENT_H
#define KB_LIB_STATS_STUDENT_H

/*
 * The probability that a value of Student's distribution with @freedom degrees of freedom, which
 * need not be a whole number, is further from 0 than @t. 1 if @freedom is not above 0.
 */
double kb_student_beyond(double t, double freedom);

/* The probability that such a value is above @t. */
double kb_student_above(double t, double freedom);

/*
 * How far from 0 the value is with probability @within (0 to 1, such as 0.95): the half width of an
 * interval in units of the standard error. Infinite if @freedom is not above 0.
 */
double kb_student_reach(double within, double freedom);

#endif
