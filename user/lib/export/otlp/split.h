/* SPDX-License-Identifier: MIT */
/*
 * Parts of a request to a collector of profiles (otlp.h), for a server that takes no request of its
 * size. A part has some of the profiles, and a dictionary of what these refer to.
 */
#ifndef KB_LIB_EXPORT_OTLP_SPLIT_H
#define KB_LIB_EXPORT_OTLP_SPLIT_H

#include <stdbool.h>
#include <stddef.h>

#include "export/otlp/otlp.h"

struct kb_otlp_split;

/*
 * Reads the request, which is not kept; @out is to be closed. A wait is counted with its time: the
 * waits of all parts are those of the request. Returns 0, -ENOMEM, or -EINVAL: this is no such request.
 */
int kb_otlp_split_open(struct kb_otlp_split **out, const struct kb_otlp_request *request);
void kb_otlp_split_close(struct kb_otlp_split *split);

/* How many profiles the request has. */
size_t kb_otlp_split_profiles(const struct kb_otlp_split *split);

/*
 * Makes the part of the profiles i with wanted[i], which has to be one at least. Its data are to be
 * freed. Returns 0 or a negative errno.
 */
int kb_otlp_split_part(struct kb_otlp_split *split, const bool *wanted, struct kb_otlp_request *part);

#endif
