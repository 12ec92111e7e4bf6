/* SPDX-License-Identifier: MIT */
#ifndef KB_CLI_BASE_END_LINE_H
#define KB_CLI_BASE_END_LINE_H

#include <kbarman/barman.h>

#include "base/text/json.h"

/* A line of JSON that says how the recording ended; none if the capture does not say. */
void end_line(struct kb_json *json, const struct kb_barman *barman);

#endif
