// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/facts/irq_names.h"

#define BETWEEN		", "	/* two names */
#define MAX_IRQS	65536	/* no machine has more; a file may claim it */
#define MAX_NAMES	1024	/* bytes of the names of one: recorders write fewer */

struct row {
	uint64_t key;
	const char *name;
};

void kb_irq_names_init(struct kb_irq_names *names)
{
	kb_table_init(&names->rows, sizeof(struct row), 1);
}

void kb_irq_names_release(struct kb_irq_names *names)
{
	kb_table_release(&names->rows);
}

int kb_irq_names_take(struct kb_irq_names *names, const char *fact)
{
	unsigned long long irq;
	struct row *row;
	uint64_t key;
	char *end;

	if (*fact < '0' || *fact > '9')
		return 0;
	irq = strtoull(fact, &end, 10);
	if (*end != '=' || irq > UINT32_MAX || strnlen(end, MAX_NAMES + 2) > MAX_NAMES + 1)
		return 0;
	key = irq;
	row = names->rows.nr < MAX_IRQS ? kb_table_get(&names->rows, &key) :
					  kb_table_find(&names->rows, &key);
	if (!row)
		return names->rows.nr < MAX_IRQS ? -ENOMEM : 0;
	row->name = end + 1;
	return 0;
}

static uint32_t count_names(const char *list)
{
	uint32_t nr = 1;

	while ((list = strstr(list, BETWEEN))) {
		list += strlen(BETWEEN);
		nr++;
	}
	return nr;
}

struct kb_text kb_irq_names_find(const struct kb_irq_names *names, uint32_t irq, uint32_t behind)
{
	uint64_t key = irq;
	const struct row *row = kb_table_find(&names->rows, &key);
	const char *name, *end;
	uint32_t before;

	if (!row)
		return kb_text(NULL);
	name = row->name;
	before = count_names(name);
	if (behind >= before)
		return kb_text(name);
	for (before -= behind + 1; before; before--)
		name = strstr(name, BETWEEN) + strlen(BETWEEN);
	end = strstr(name, BETWEEN);
	return (struct kb_text){ name, end ? (size_t)(end - name) : strlen(name) };
}
