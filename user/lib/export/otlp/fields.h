/* SPDX-License-Identifier: MIT */
/*
 * The OpenTelemetry protocol for profiles, v1development: the field numbers of its messages. The
 * protocol is in development, and this is how opentelemetry-proto 1.10 and 1.11 have it. The
 * numbers of the message Sample moved in 1.10: `values` was 2 in 1.8 and 1.9 and is 4 now,
 * `attribute_indices` was 3 and is 2, `link_index` was 4 and is 3.
 *
 * Every table of the dictionary has the zero value at index 0, which means "none".
 *
 * Source: opentelemetry/proto/{profiles,collector/profiles}/v1development, common/v1 and
 * resource/v1 of opentelemetry-proto 1.11.
 */
#ifndef KB_LIB_EXPORT_OTLP_FIELDS_H
#define KB_LIB_EXPORT_OTLP_FIELDS_H

enum { KB_OTLP_REQUEST_RESOURCES = 1, KB_OTLP_REQUEST_DICTIONARY = 2 };

/* The tables of the dictionary; their numbers are those of the fields. */
enum kb_otlp_table {
	KB_OTLP_MAPPINGS = 1,
	KB_OTLP_LOCATIONS = 2,
	KB_OTLP_FUNCTIONS = 3,
	KB_OTLP_LINKS = 4,
	KB_OTLP_STRINGS = 5,
	KB_OTLP_ATTRIBUTES = 6,
	KB_OTLP_STACKS = 7,
};
#define KB_OTLP_TABLES	8	/* one more than the last number */

enum { KB_OTLP_RESOURCE = 1, KB_OTLP_RESOURCE_SCOPES = 2 };
enum { KB_OTLP_RESOURCE_ATTRIBUTES = 1 };
enum { KB_OTLP_KEY = 1, KB_OTLP_VALUE = 2 };
enum { KB_OTLP_VALUE_TEXT = 1, KB_OTLP_VALUE_INT = 3 };
enum { KB_OTLP_SCOPE = 1, KB_OTLP_SCOPE_PROFILES = 2 };
enum { KB_OTLP_SCOPE_NAME = 1, KB_OTLP_SCOPE_VERSION = 2 };
enum {
	KB_OTLP_PROFILE_TYPE = 1,
	KB_OTLP_PROFILE_SAMPLES = 2,
	KB_OTLP_PROFILE_TIME = 3,
	KB_OTLP_PROFILE_DURATION = 4,
	KB_OTLP_PROFILE_ID = 7,
};
enum { KB_OTLP_TYPE_NAME = 1, KB_OTLP_TYPE_UNIT = 2 };
enum { KB_OTLP_SAMPLE_STACK = 1, KB_OTLP_SAMPLE_ATTRIBUTES = 2, KB_OTLP_SAMPLE_VALUES = 4 };
enum {
	KB_OTLP_MAPPING_START = 1,
	KB_OTLP_MAPPING_LIMIT = 2,
	KB_OTLP_MAPPING_OFFSET = 3,
	KB_OTLP_MAPPING_FILE = 4,
	KB_OTLP_MAPPING_ATTRIBUTES = 5,
};
enum { KB_OTLP_STACK_LOCATIONS = 1 };
enum {
	KB_OTLP_LOCATION_MAPPING = 1,
	KB_OTLP_LOCATION_ADDRESS = 2,
	KB_OTLP_LOCATION_LINES = 3,
	KB_OTLP_LOCATION_ATTRIBUTES = 4,
};
enum { KB_OTLP_LINE_FUNCTION = 1, KB_OTLP_LINE_LINE = 2 };
enum { KB_OTLP_FUNCTION_NAME = 1, KB_OTLP_FUNCTION_SYSTEM_NAME = 2, KB_OTLP_FUNCTION_FILE = 3 };
enum { KB_OTLP_LINK_TRACE = 1, KB_OTLP_LINK_SPAN = 2 };

#endif
