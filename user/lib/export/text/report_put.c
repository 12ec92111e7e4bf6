// SPDX-License-Identifier: MIT
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/io/out_packet.h"
#include "base/percent.h"
#include "base/text/utf8.h"
#include "export/text/report_put.h"

void text_printf(const struct report_text *report, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	kb_out_vprintf(report->out, format, args);
	va_end(args);
}

void text_put_padded(const struct report_text *report, const char *text, size_t length, int width)
{
	char shown[4];
	size_t taken, size;
	int columns;

	for (columns = 0; length; columns++) {
		taken = 1;
		if (kb_utf8_is_plain(*text)) {
			kb_out_bytes(report->out, text, 1);
		} else {
			size = kb_utf8_shown_next(shown, text, length, &taken);
			kb_out_bytes(report->out, shown, size);
		}
		text += taken;
		length -= taken;
	}
	if (columns < width)
		text_printf(report, "%*s", width - columns, "");
}

void text_put(const struct report_text *report, const char *text, int width)
{
	text_put_padded(report, text, strlen(text), width);
}

void text_put_share(const struct report_text *report, uint64_t part, uint64_t whole, int width)
{
	double percent = kb_percent(part, whole);
	const char *color = report->options.colors ? kb_share_color(percent) : NULL;

	text_printf(report, "%s%*.2f%%%s", color ? color : "", width, percent,
		    color ? KB_COLOR_END : "");
}

void text_put_title(const struct report_text *report, const char *title)
{
	text_printf(report, "#\n# %s\n#\n", title);
}

void text_put_capture(const struct report_text *report, const char *capture)
{
	if (!capture)
		return;
	text_printf(report, "# capture  : ");
	text_put(report, capture, 0);
	text_printf(report, "\n");
}

int text_end(const struct report_text *report, int made, struct kb_error *err)
{
	int ret = made ?: kb_out_flush(report->out);

	return ret ? kb_error_set(err, ret, KB_NO_OFFSET, "can't write the report: %s", strerror(-ret)) : 0;
}

void text_put_damage(const struct report_text *report, bool damaged)
{
	if (damaged)
		text_printf(report, "# damaged  : records are missing, those behind the damage; nobody knows how "
			    "many\n");
}

void text_put_only(const struct report_text *report, const char *only)
{
	if (!report->filter || !only)
		return;
	text_printf(report, "# only     : ");
	text_put(report, only, 0);
	text_printf(report, "; the lines above are of the whole capture\n");
}

void text_put_chosen(const struct report_text *report, const char *title, bool all_tasks)
{
	const struct kb_filter *filter = report->filter;
	bool tasks = filter && (filter->task || filter->has_tid);

	text_printf(report, "#\n# %s\n", title);
	if (filter && report->options.filter) {
		text_printf(report, "# only ");
		text_put(report, report->options.filter, 0);
		text_printf(report, "%s\n", tasks && all_tasks ? "; here all tasks count" : "");
	}
	text_printf(report, "#\n");
}

void text_put_origin(const struct report_text *report, const struct kb_origin *origin,
		     uint64_t ticks)
{
	char name[KB_ORIGIN_NAME];

	text_put(report, kb_origin_name(report->trace, origin, ticks, name, sizeof(name)), 0);
	if (origin->kind == KB_TILE_TASK)
		text_printf(report, " (%" PRIu32 ")", origin->id);
	if (kb_origin_call(report->trace, origin))
		text_printf(report, " in %s", kb_origin_call(report->trace, origin));
	else if (origin->id != KB_ORIGIN_ANY)
		text_printf(report, "%s",
			    origin->kind == KB_TILE_SOFTIRQ ? " (softirq)"
			    : origin->kind == KB_TILE_IRQ   ? " (interrupt)"
							    : "");
}

/* Returns the process of the task. */
static uint32_t put_task(const struct report_text *report, uint32_t task_id, uint64_t timestamp)
{
	char buffer[KB_TASK_NAME_BUFFER];
	struct kb_task_hit hit;

	kb_tasks_find(report->tasks, task_id, timestamp, &hit);
	text_printf(report, "  %7u  %7u  ", hit.tgid, task_id);
	text_put(report, kb_tasks_name(report->tasks, task_id, timestamp, buffer), 0);
	return hit.tgid;
}

void text_put_task_name(const struct report_text *report, uint32_t task_id, uint64_t timestamp)
{
	put_task(report, task_id, timestamp);
	text_printf(report, "\n");
}

#define COMMAND_WIDTH	60		/* bytes of a command line that are shown */

/* Whether @command is more than the path of a program of that name. */
static bool says_more(const char *command, const char *name)
{
	const char *slash = strrchr(command, '/');

	return strcmp(slash ? slash + 1 : command, name) != 0;
}

void text_put_task_command(const struct report_text *report, uint32_t task_id, uint64_t timestamp)
{
	const struct kb_process_notes *notes = kb_trace_notes(report->trace, NULL);
	uint32_t process = put_task(report, task_id, timestamp);
	char buffer[KB_TASK_NAME_BUFFER];
	const char *command = notes ? kb_process_notes_find(notes, process, timestamp).command : NULL;
	size_t length = command ? strlen(command) : 0;

	if (command && says_more(command, kb_tasks_name(report->tasks, task_id, timestamp, buffer))) {
		text_printf(report, "  ");
		text_put_padded(report, command, length > COMMAND_WIDTH ? COMMAND_WIDTH - 3 : length, 0);
		text_printf(report, "%s", length > COMMAND_WIDTH ? "..." : "");
	}
	text_printf(report, "\n");
}

bool text_is_shown(const struct report_text *report, uint64_t part, uint64_t whole)
{
	return kb_percent(part, whole) >= report->options.percent_limit;
}
