/* SPDX-License-Identifier: MIT */
/*
 * export/otlp/: requests to collectors of profiles (OpenTelemetry, Parca), parts of such requests,
 * and what collectors answer. It makes no connection.
 *
 * A capture as requests to a collector of OpenTelemetry profiles (fields.h), one for each
 * minute. A request stands alone: it has its own dictionary. Its samples are sums by task and call
 * chain, in one profile for each kind of value:
 *
 *	cpu		ns that the task ran up to its samples
 *	samples		number of samples
 *	off_cpu		ns that the task waited; waits whose switch has a call chain
 *	COUNTER		what the counter of that name counted up to the samples
 *
 * A sample belongs to the request of its time, a wait to the one of the record that shows its end.
 * Programs of different names are different resources, and so are those of different cgroups, if
 * the capture has these: service.name is then the unit of the program, if it has one.
 */
#ifndef KB_LIB_EXPORT_OTLP_OTLP_H
#define KB_LIB_EXPORT_OTLP_OTLP_H

#include <stddef.h>
#include <stdint.h>

#include <kbarman/error.h>
#include <kbarman/trace.h>

#define KB_OTLP_PATH	"/v1development/profiles"	/* of the URL of a collector */
#define KB_OTLP_TYPE	"application/x-protobuf"

/* What a request holds, for those who count what is sent. */
struct kb_otlp_request {
	const void *data;	/* encoded, compressed by gzip */
	size_t size;
	uint64_t from, until;	/* ns since 1970 */
	uint64_t profiles;
	uint64_t samples, waits;
	uint64_t wait_ns;
};

struct kb_otlp_attribute {
	const char *key, *value;
};

struct kb_otlp_options {
	uint64_t every_ns;	/* the time that a request covers; 0: a minute */
	const struct kb_otlp_attribute *attributes;	/* of every resource; they replace those
							 * of the capture */
	size_t nr_attributes;
	/* Takes a request; its data hold until then. Returns 0, or a negative errno to end. */
	int (*take)(void *context, const struct kb_otlp_request *request);
	void (*say)(void *context, const char *sentence);	/* as struct kb_export_options */
	void *context;
};

/*
 * Encode all of @trace. Returns 0; 1 if the capture is damaged: @err says where, and everything
 * whole in front of it is encoded; or a negative errno and @err, also that of take().
 */
int kb_otlp_run(struct kb_trace *trace, const struct kb_otlp_options *options,
		struct kb_error *err);

#endif
