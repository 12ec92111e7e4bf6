// SPDX-License-Identifier: MIT
/*
 * Source: the OpenMetrics specification 1.0, "Text format", and Prometheus' "Exposition formats". A
 * counter is called by its name without "_total" in the head of OpenMetrics, and with it in that of
 * the older text, which knows neither units nor the type "info".
 */
#include <inttypes.h>
#include <string.h>

#include "export/openmetrics/put.h"

void kb_om_head(struct kb_om_put *put, const char *name, enum kb_om_type type, const char *unit,
		const char *help)
{
	static const char *const types[] = { "counter", "gauge", "histogram", "info" };
	bool old = put->form == KB_OPENMETRICS_PROMETHEUS;
	const char *suffix = type == KB_OM_COUNTER ? "_total" : type == KB_OM_INFO ? "_info" : "";

	put->name = name;
	put->suffix = suffix;
	if (old && type == KB_OM_INFO)
		type = KB_OM_GAUGE;
	kb_out_printf(put->out, "# TYPE %s%s %s\n", name, old ? suffix : "", types[type]);
	if (unit && !old)
		kb_out_printf(put->out, "# UNIT %s %s\n", name, unit);
	kb_out_printf(put->out, "# HELP %s%s %s\n", name, old ? suffix : "", help);
}

static void put_escaped(struct kb_out *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\n')
			kb_out_bytes(out, "\\n", 2);
		else if (*text == '"' || *text == '\\')
			kb_out_printf(out, "\\%c", *text);
		else
			kb_out_bytes(out, text, 1);
	}
}

static void put_number(struct kb_out *out, uint64_t value, unsigned int digits)
{
	uint64_t one = 1;

	for (unsigned int i = 0; i < digits; i++)
		one *= 10;
	if (digits)
		kb_out_printf(out, "%" PRIu64 ".%0*" PRIu64 "\n", value / one, (int)digits, value % one);
	else
		kb_out_printf(out, "%" PRIu64 "\n", value);
}

void kb_om_line(struct kb_om_put *put, const char *more, const char *const *labels, uint64_t value,
		unsigned int digits)
{
	char before = '{';

	kb_out_printf(put->out, "%s%s%s", put->name, put->suffix, more ? more : "");
	for (; labels && labels[0]; labels += 2) {
		if (!labels[1])
			continue;
		kb_out_printf(put->out, "%c%s=\"", before, labels[0]);
		put_escaped(put->out, labels[1]);
		kb_out_bytes(put->out, "\"", 1);
		before = ',';
	}
	kb_out_bytes(put->out, "} ", before == ',' ? 2 : 0);
	if (before == '{')
		kb_out_bytes(put->out, " ", 1);
	put_number(put->out, value, digits);
}

int kb_openmetrics_value(const struct kb_openmetrics_value *value, enum kb_openmetrics_form form,
			 struct kb_out *out)
{
	struct kb_om_put put = { .out = out, .form = form };
	const char *const labels[] = { value->label, value->text, NULL };

	kb_om_head(&put, value->name, value->counter ? KB_OM_COUNTER : KB_OM_GAUGE, value->unit,
		   value->help);
	kb_om_line(&put, NULL, labels, value->value, value->digits);
	return kb_out_error(out);
}

int kb_openmetrics_eof(enum kb_openmetrics_form form, struct kb_out *out)
{
	if (form == KB_OPENMETRICS)
		kb_out_printf(out, "# EOF\n");
	return kb_out_error(out);
}
