/* SPDX-License-Identifier: MIT */
/*
 * A profile of pprof in the form in which Parca takes it over HTTP: the JSON of its message
 * WriteRawRequest. Source: parca/profilestore/v1alpha1/profilestore.proto of Parca.
 */
#ifndef KB_LIB_EXPORT_OTLP_PARCA_H
#define KB_LIB_EXPORT_OTLP_PARCA_H

#include <kbarman/out.h>

#include "export/otlp/otlp.h"

#define KB_PARCA_PATH	"/profiles/writeraw"	/* with which the URL ends */

/*
 * Write a profile of @size bytes to @out. The attributes become labels, whose names can have
 * letters, digits and '_' only: everything else becomes '_'.
 */
void kb_parca_write(struct kb_out *out, const struct kb_otlp_attribute *attributes, size_t nr,
		    const void *profile, size_t size);

#endif
