// SPDX-License-Identifier: MIT
#include <string.h>

#include "record/perf/modifiers.h"

bool kb_modifiers_apply(const char *text, __u32 *flags)
{
	__u32 precise = *flags >> KB_PERF_PRECISE_SHIFT & 3, where = 0;

	if (!*text)
		return false;
	for (; *text; text++) {
		switch (*text) {
		case 'u':
			where |= KB_PERF_NO_USER;
			break;
		case 'k':
			where |= KB_PERF_NO_KERNEL;
			break;
		case 'h':
			where |= KB_PERF_NO_HV;
			break;
		case 'H':	/* this machine without its guests, as ever */
			break;
		case 'p':
			if (precise++ < 3)
				break;
			return false;
		default:
			return false;
		}
	}
	if (where && !(*flags & KB_EVENT_NOWHERE))
		*flags |= KB_EVENT_NOWHERE;
	*flags &= ~(where | KB_PERF_PRECISE);
	*flags |= precise << KB_PERF_PRECISE_SHIFT;
	return true;
}

const char *kb_modifiers_text(__u32 flags, char text[KB_MODIFIERS_MAX])
{
	char *at = text;

	if (flags & KB_EVENT_NOWHERE) {
		if (!(flags & KB_PERF_NO_USER))
			*at++ = 'u';
		if (!(flags & KB_PERF_NO_KERNEL))
			*at++ = 'k';
		if (!(flags & KB_PERF_NO_HV))
			*at++ = 'h';
	}
	for (__u32 precise = flags >> KB_PERF_PRECISE_SHIFT & 3; precise; precise--)
		*at++ = 'p';
	*at = '\0';
	return text;
}
