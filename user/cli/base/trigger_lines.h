/* SPDX-License-Identifier: MIT */
/* Lines of JSON about the triggers that wrote a capture. */
#ifndef KB_CLI_BASE_TRIGGER_LINES_H
#define KB_CLI_BASE_TRIGGER_LINES_H

#include <kbarman/barman.h>

#include "base/text/json.h"

/* A line for each moment, and one for all; none if no trigger wrote the capture. */
void trigger_lines(struct kb_json *json, const struct kb_barman *barman);

#endif
