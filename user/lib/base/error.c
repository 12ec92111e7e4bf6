// SPDX-License-Identifier: MIT
/* Errors as one sentence. A text that is too long is cut; code and offset are always complete. */
#include <stdarg.h>
#include <stdio.h>

#include <kbarman/error.h>

int kb_error_set(struct kb_error *err, int code, uint64_t offset, const char *format, ...)
{
	va_list args;

	if (!err)
		return code;
	err->code = code;
	err->offset = offset;
	va_start(args, format);
	vsnprintf(err->text, sizeof(err->text), format, args);
	va_end(args);
	return code;
}
