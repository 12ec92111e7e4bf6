/* SPDX-License-Identifier: MIT */
/*
 * TAP for test programs: one line a promise, with the reason where it is broken.
 *
 *	int main(void)
 *	{
 *		tap_ok(sum == 3, "sums_add_up");
 *		if (!tap_is(sum, 3, "sums_add_up_exactly"))
 *			tap_note("the parts were %d and %d", a, b);
 *		return tap_done();
 *	}
 */
#ifndef KBARMAN_TAP_H
#define KBARMAN_TAP_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static int tap_count, tap_failures;

static inline void __attribute__((format(printf, 1, 2))) tap_note(const char *format, ...)
{
	va_list args;

	fputs("# ", stdout);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
}

static inline bool tap_result(bool good, const char *name, const char *file, int line)
{
	printf("%sok %d - %s\n", good ? "" : "not ", ++tap_count, name);
	if (!good) {
		tap_failures++;
		tap_note("%s:%d", file, line);
	}
	fflush(stdout);
	return good;
}

#define tap_ok(condition, name)	tap_result(condition, name, __FILE__, __LINE__)

static inline bool tap_is_at(int64_t got, int64_t want, const char *name, const char *file,
			     int line)
{
	if (!tap_result(got == want, name, file, line))
		tap_note("got %" PRId64 ", want %" PRId64, got, want);
	return got == want;
}

/* Integers are equal. */
#define tap_is(got, want, name)	tap_is_at((int64_t)(got), (int64_t)(want), name, __FILE__, __LINE__)

static inline bool tap_is_string_at(const char *got, const char *want, const char *name,
				    const char *file, int line)
{
	bool same = got && want ? strcmp(got, want) == 0 : got == want;

	if (!tap_result(same, name, file, line))
		tap_note("got \"%s\", want \"%s\"", got ? got : "(null)", want ? want : "(null)");
	return same;
}

/* Strings are equal. */
#define tap_is_string(got, want, name)	tap_is_string_at(got, want, name, __FILE__, __LINE__)

static inline void tap_skip(const char *name, const char *reason)
{
	printf("ok %d - %s # SKIP %s\n", ++tap_count, name, reason);
	fflush(stdout);
}

/* The plan, and main()'s status. */
static inline int tap_done(void)
{
	printf("1..%d\n", tap_count);
	return tap_failures ? 1 : 0;
}

#endif
