// SPDX-License-Identifier: MIT
/*
 * Lines are "NUMBER: COUNT... CHIP HARDWARE-NUMBER TYPE  NAME, NAME". Chip and type differ between
 * machines and may have blanks. Names always stand behind two blanks, and a line without any ends
 * with blanks. Source: show_interrupts() of kernel/irq/proc.c.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/recorder/irq_table.h"

/* The names in @line, whose end is cut off; NULL: there are none. */
static char *find_names(char *line)
{
	size_t length = strlen(line);
	char *names = NULL;

	if (length && line[length - 1] == '\n')
		line[--length] = '\0';
	if (!length || line[length - 1] == ' ')
		return NULL;
	for (char *at = line; (at = strstr(at, "  ")); at++)
		names = at + 2;
	return names && strlen(names) < KB_IRQ_TABLE_NAMES ? names : NULL;
}

static int take_line(char *line, int (*take)(void *context, uint32_t irq, const char *names),
		     void *context)
{
	unsigned long irq;
	char *end, *names;

	line += strspn(line, " ");
	if (*line < '0' || *line > '9')
		return 0;	/* the heads of the columns, or what has no number: NMI, IPI0 */
	irq = strtoul(line, &end, 10);
	if (*end != ':' || irq > UINT32_MAX)
		return 0;
	names = find_names(end);
	return names ? take(context, (uint32_t)irq, names) : 0;
}

int kb_irq_table_read(const char *proc, int (*take)(void *context, uint32_t irq, const char *names),
		       void *context)
{
	char path[PATH_MAX], *line = NULL;
	size_t room = 0;
	FILE *file;
	int ret = 0;

	snprintf(path, sizeof(path), "%s/interrupts", proc ?: "/proc");
	file = fopen(path, "re");
	if (!file)
		return 0;
	while (!ret && getline(&line, &room, file) > 0)
		ret = take_line(line, take, context);
	free(line);
	fclose(file);
	return ret;
}
