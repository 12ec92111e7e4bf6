/* SPDX-License-Identifier: MIT */
/*
 * The environment variables of OpenTelemetry's exporters (OTEL_EXPORTER_OTLP_…). Of each there is one
 * for profiles alone (OTEL_EXPORTER_OTLP_PROFILES_…), which counts more.
 */
#ifndef KBARMAN_PUSH_ENVIRONMENT_H
#define KBARMAN_PUSH_ENVIRONMENT_H

#include <stdbool.h>

/*
 * What the variables say of @name, such as "TIMEOUT". NULL: nothing. *@variable, if not NULL: which one
 * does, until the next call.
 */
const char *push_environment(const char *name, const char **variable);

/*
 * The URL of a collector, to be freed; NULL: the variables have none. The URL for profiles alone is taken
 * as it is (*@exact); the other one is that of the collector, to which the path of profiles is added.
 */
char *push_environment_url(const char *path, bool *exact);

/*
 * Calls @take with "NAME: VALUE" for each header that the variables have, which @take may keep. Returns 0,
 * the first result of @take that is not 0, or an exit status after a message.
 */
int push_environment_headers(int (*take)(void *context, const char *header), void *context);

/* Removes blanks at both ends, and makes %XX the byte that it stands for. Returns the beginning. */
char *push_unescape(char *text);

#endif
