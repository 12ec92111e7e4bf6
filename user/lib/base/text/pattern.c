// SPDX-License-Identifier: MIT
#include "base/text/pattern.h"

bool kb_pattern_matches(const char *pattern, const char *text, size_t length)
{
	const char *end = text + length, *star = NULL, *from = NULL;

	if (!pattern)
		return true;
	while (text < end) {
		if (*pattern == '*') {
			star = ++pattern;	/* takes nothing at first */
			from = text;
		} else if (*pattern == '?' || (*pattern && *pattern == *text)) {
			pattern++;
			text++;
		} else if (star) {
			pattern = star;		/* takes one character more */
			text = ++from;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}
