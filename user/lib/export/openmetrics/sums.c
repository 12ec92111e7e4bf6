// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bisect.h"
#include "base/text/utf8.h"
#include "export/openmetrics/sums.h"

/* Three in each power of ten, from a microsecond to ten seconds. */
const uint64_t kb_om_bounds[KB_OM_BOUNDS] = {
	1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000, 500000, 1000000, 2000000, 5000000,
	10000000, 20000000, 50000000, 100000000, 200000000, 500000000, 1000000000, 2000000000,
	5000000000, 10000000000,
};

/* As Go prints them (%g), which is what OpenMetrics calls canonical. */
const char *const kb_om_bound_texts[KB_OM_BOUNDS] = {
	"1e-06", "2e-06", "5e-06", "1e-05", "2e-05", "5e-05", "0.0001", "0.0002", "0.0005", "0.001",
	"0.002", "0.005", "0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1.0", "2.0", "5.0", "10.0",
};

int kb_om_sums_init(struct kb_om_sums *sums, uint32_t cpus, uint32_t rows)
{
	*sums = (struct kb_om_sums){ .nr_cpus = cpus };
	sums->handlers.most = sums->idle.most = sums->lost.most = rows;
	sums->stopped.most = sums->missed.most = rows;
	sums->cpus = calloc((size_t)cpus + 1, sizeof(*sums->cpus));
	return sums->cpus ? 0 : -ENOMEM;
}

void kb_om_sums_release(struct kb_om_sums *sums)
{
	free(sums->handlers.rows);
	free(sums->idle.rows);
	free(sums->lost.rows);
	free(sums->stopped.rows);
	free(sums->missed.rows);
	free(sums->cpus);
}

void kb_om_times_add(struct kb_om_times *times, uint64_t ns)
{
	/* the first bound that is not below it */
	times->buckets[KB_BISECT(i, 0, KB_OM_BOUNDS, kb_om_bounds[i] < ns)]++;
	times->count++;
	times->sum_ns += ns;
}

static bool is_row(const struct kb_om_row *row, uint32_t a, uint32_t b, const char *text)
{
	return !row->other && row->a == a && row->b == b && !strcmp(row->text, text);
}

uint32_t kb_om_rows_get(struct kb_om_rows *rows, uint32_t a, uint32_t b, const char *text,
			size_t length)
{
	struct kb_om_row row = { .a = a, .b = b };
	uint32_t i;

	if (length >= sizeof(row.text))
		length = sizeof(row.text) - 1;
	row.text[kb_utf8_shown(row.text, text, length)] = 0;
	for (i = 0; i < rows->nr; i++)
		if (is_row(&rows->rows[i], a, b, row.text))
			return i;
	if (rows->nr > rows->most)
		return rows->most;
	if (rows->nr == rows->most)
		row = (struct kb_om_row){ .other = true };
	if (!KB_ARRAY_ROOM(rows->rows, rows->room, (size_t)rows->nr + 1))
		return UINT32_MAX;
	rows->rows[rows->nr] = row;
	return rows->nr++;
}
