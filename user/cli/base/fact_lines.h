/* SPDX-License-Identifier: MIT */
/* Lines of facts on standard output, as JSON or as text for people: see base/text/json.h. */
#ifndef KB_CLI_BASE_FACT_LINES_H
#define KB_CLI_BASE_FACT_LINES_H

#include "base/text/json.h"

/* Returns 0, or CLI_IMPOSSIBLE after a message. */
int lines_open(struct kb_json *json, bool people);

/* Returns @status, or CLI_IMPOSSIBLE after a message if the output could not be written. */
int lines_close(struct kb_json *json, int status);

#endif
