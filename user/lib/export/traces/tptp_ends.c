// SPDX-License-Identifier: MIT
/*
 * The beginning and the end of a TPTP trace: what was recorded, where and how, from the header
 * and the facts of the capture.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <kbarman/version.h>

#include "analysis/facts/process_notes.h"
#include "export/traces/tptp_ends.h"

#define FACT_PREFIX	"kbarman."

static void write_option(struct kb_tptp_writer *writer, const char *key, const char *value)
{
	struct kb_tptp_message message;

	kb_tptp_message_init(&message, KB_TPTP_OPTION);
	message.values[KB_TPTP_OPTION_KEY].string = kb_text(key);
	message.values[KB_TPTP_OPTION_VALUE].string = kb_text(value);
	kb_tptp_writer_message(writer, &message);
}

static void write_filter(struct kb_tptp_writer *writer, const char *pattern)
{
	struct kb_tptp_message message;

	kb_tptp_message_init(&message, KB_TPTP_FILTER);
	message.values[KB_TPTP_FILTER_PATTERN].string = kb_text(pattern);
	message.values[KB_TPTP_FILTER_MODE].string = kb_text("INCLUDE");
	message.values[KB_TPTP_FILTER_GENERIC_PATTERN].string = kb_text("NONE");
	message.values[KB_TPTP_FILTER_METHOD_PATTERN].string = kb_text("*");
	message.values[KB_TPTP_FILTER_METHOD_MODE].string = kb_text("INCLUDE");
	message.values[KB_TPTP_FILTER_METHOD_GENERIC_PATTERN].string = kb_text("NONE");
	kb_tptp_writer_message(writer, &message);
}

/* Facts "exit.ROW=TICKS" and "tgid.ROW=ID", one for each task, where all of them are, and notes. */
static bool is_row_fact(const char *key)
{
	return strncmp(key, "exit.", 5) == 0 || strncmp(key, "tgid.", 5) == 0 ||
	       strncmp(key, "tasks=", 6) == 0 || kb_process_notes_are(key);
}

const char *tptp_next_fact(const struct kb_header *header, uint32_t *at)
{
	while (*at < header->string_table_length) {
		const char *string = header->strings + *at;

		*at += strnlen(string, header->string_table_length - *at) + 1;
		if (strncmp(string, FACT_PREFIX, sizeof(FACT_PREFIX) - 1) == 0 &&
		    strchr(string, '='))
			return string + sizeof(FACT_PREFIX) - 1;
	}
	return NULL;
}

static void write_settings(struct kb_tptp_writer *writer, const struct kb_barman *barman,
			   bool aggregate)
{
	const struct kb_header *header = kb_barman_header(barman);
	const char *fact, *filter = kb_barman_fact(barman, "filter");
	char key[256], number[24];
	uint32_t at = 0;

	if (filter && strcmp(filter, "none") != 0)
		write_filter(writer, filter);
	write_option(writer, "methods", aggregate ? "aggregated" : "sampled and held");
	snprintf(number, sizeof(number), "%u", header->timer_sample_rate);
	write_option(writer, "timer_sample_rate", number);
	while ((fact = tptp_next_fact(header, &at))) {
		const char *equals = strchr(fact, '=');

		if (is_row_fact(fact))
			continue;
		snprintf(key, sizeof(key), "%.*s", (int)(equals - fact), fact);
		write_option(writer, key, equals + 1);
	}
}

/*
 * Ids of the trace's parts. They are the same for the same capture and differ between captures.
 */
#define ID_BYTES	32

static struct kb_text part_id(char id[ID_BYTES], const struct kb_header *header, const char *part)
{
	snprintf(id, ID_BYTES, "%016" PRIx64 "-%s", header->unix_base_ns, part);
	return kb_text(id);
}

void tptp_write_beginning(struct kb_tptp_writer *writer, const struct kb_barman *barman,
			  bool aggregate, int64_t time)
{
	const struct kb_header *header = kb_barman_header(barman);
	const char *host = kb_barman_fact(barman, "host");
	const char *release = kb_barman_fact(barman, "release");
	char process[ID_BYTES], agent[ID_BYTES], trace[ID_BYTES], name[256];
	struct kb_tptp_message m;

	snprintf(name, sizeof(name), "linux%s%s", release ? " " : "", release ? release : "");
	if (!host)
		host = header->target_name;

	kb_tptp_message_init(&m, KB_TPTP_NODE);
	m.values[KB_TPTP_NODE_NODE_ID].string = kb_text(host);
	m.values[KB_TPTP_NODE_HOSTNAME].string = kb_text(host);
	m.values[KB_TPTP_NODE_TIMESTAMP].number = time;
	kb_tptp_writer_message(writer, &m);

	kb_tptp_message_init(&m, KB_TPTP_PROCESS_CREATE);
	m.values[KB_TPTP_PROCESS_CREATE_PROCESS_ID].string = part_id(process, header, "linux");
	m.values[KB_TPTP_PROCESS_CREATE_NAME].string = kb_text(name);
	m.values[KB_TPTP_PROCESS_CREATE_NODE_ID_REF].string = kb_text(host);
	m.values[KB_TPTP_PROCESS_CREATE_TIMESTAMP].number = time;
	kb_tptp_writer_message(writer, &m);

	kb_tptp_message_init(&m, KB_TPTP_AGENT_CREATE);
	m.values[KB_TPTP_AGENT_CREATE_AGENT_ID].string = part_id(agent, header, "agent");
	m.values[KB_TPTP_AGENT_CREATE_PROCESS_ID].string = kb_text(process);
	m.values[KB_TPTP_AGENT_CREATE_NAME].string = kb_text("kbarman");
	m.values[KB_TPTP_AGENT_CREATE_TYPE].string = kb_text("Profiler");
	m.values[KB_TPTP_AGENT_CREATE_VERSION].string = kb_text(kb_version());
	m.values[KB_TPTP_AGENT_CREATE_TIMESTAMP].number = time;
	kb_tptp_writer_message(writer, &m);

	kb_tptp_message_init(&m, KB_TPTP_TRACE_START);
	m.values[KB_TPTP_TRACE_START_TRACE_ID].string = part_id(trace, header, "trace");
	m.values[KB_TPTP_TRACE_START_AGENT_ID].string = kb_text(agent);
	m.values[KB_TPTP_TRACE_START_TIMESTAMP].number = time;
	kb_tptp_writer_message(writer, &m);
	write_settings(writer, barman, aggregate);
}

void tptp_write_ending(struct kb_tptp_writer *writer, const struct kb_header *header, int64_t time)
{
	struct kb_tptp_message m;
	char agent[ID_BYTES];

	kb_tptp_message_init(&m, KB_TPTP_TRACE_END);
	m.values[KB_TPTP_TRACE_END_TIMESTAMP].number = time;
	kb_tptp_writer_message(writer, &m);
	kb_tptp_message_init(&m, KB_TPTP_AGENT_DESTROY);
	m.values[KB_TPTP_AGENT_DESTROY_AGENT_ID].string = part_id(agent, header, "agent");
	m.values[KB_TPTP_AGENT_DESTROY_TIMESTAMP].number = time;
	kb_tptp_writer_message(writer, &m);
}
