// SPDX-License-Identifier: MIT
/* Fuzz target of the answers of a collector of profiles: what they say lies in their bytes. */
#include <stdlib.h>

#include "export/otlp_answer.h"

static void check(const uint8_t *data, size_t size, const struct kb_otlp_answer *answer)
{
	const uint8_t *text = (const uint8_t *)answer->text;

	if (answer->length && (text < data || answer->length > size ||
			       (size_t)(text - data) > size - answer->length))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kb_otlp_answer answer;

	if (!kb_otlp_read_answer(data, size, &answer))
		check(data, size, &answer);
	if (!kb_otlp_read_failure(data, size, &answer))
		check(data, size, &answer);
	return 0;
}
