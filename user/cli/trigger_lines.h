/* SPDX-License-Identifier: MIT */
/* Lines of JSON about the triggers that wrote a capture. */
#ifndef KBARMAN_CLI_TRIGGER_LINES_H
#define KBARMAN_CLI_TRIGGER_LINES_H

#include <kbarman/barman.h>

#include "base/json.h"

/* A line for each moment, and one for all; none if no trigger wrote the capture. */
void trigger_lines(struct kb_json *json, const struct kb_barman *barman);

#endif
