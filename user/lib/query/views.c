// SPDX-License-Identifier: MIT
/* Views that answer what is asked most often; each is what a user could write. */
#include <errno.h>

#include "base/array.h"
#include "query/query_inside.h"

static const char *const views[] = {
	"CREATE VIEW runs AS SELECT file, record, at_ns, end_ns, duration_ns, cpu, tid, pid, task, "
	"ended, next_tid FROM slices WHERE kind = 'run' -- runs of a task on a CPU\n",

	"CREATE VIEW idle AS SELECT file, record, at_ns, end_ns, duration_ns, cpu, ended, idle_state, "
	"idle_state_name, state, state_name FROM slices WHERE kind = 'idle' "
	"-- halts of a CPU; the last two columns are old names\n",

	"CREATE VIEW gaps AS SELECT file, record, at_ns, end_ns, duration_ns, cpu, records, reason "
	"FROM slices WHERE kind = 'lost' -- times in which records are missing\n",

	"CREATE VIEW run_time AS SELECT file, tid, pid, task, sum(duration_ns) AS run_ns, "
	"count(*) AS slices, max(duration_ns) AS longest_ns FROM slices WHERE kind = 'run' "
	"GROUP BY file, tid ORDER BY run_ns DESC -- time on a CPU, by task\n",

	"CREATE VIEW latency AS SELECT file, tid, pid, task, count(*) AS waits, "
	"sum(duration_ns) AS sum_ns, median(duration_ns) AS median_ns, "
	"percentile(duration_ns, 99) AS p99_ns, max(duration_ns) AS max_ns FROM delays "
	"WHERE NOT preempted GROUP BY file, tid ORDER BY sum_ns DESC "
	"-- how late tasks ran after wakeups\n",

	"CREATE VIEW hot AS SELECT file, task, image, symbol, count(*) AS samples, "
	"sum(weight) AS weight FROM samples WHERE pc IS NOT NULL AND NOT idle "
	"GROUP BY file, task, image, symbol ORDER BY weight DESC -- samples by function\n",

	"CREATE VIEW ipc AS SELECT file, at_ns / 100000000 * 100000000 AS at_ns, cpu, "
	"sum(value) FILTER (WHERE event IN ('instructions', 'inst_retired')) AS instructions, "
	"sum(value) FILTER (WHERE event IN ('cycles', 'cpu-cycles')) AS cycles, "
	"1.0 * sum(value) FILTER (WHERE event IN ('instructions', 'inst_retired')) / "
	"sum(value) FILTER (WHERE event IN ('cycles', 'cpu-cycles')) AS ipc "
	"FROM (SELECT file, at_ns, cpu, value, substr(event, 1, instr(event || ':', ':') - 1) "
	"AS event FROM counters) GROUP BY 1, 2, 3 "
	"-- instructions per cycle, by CPU and tenth of a second\n",
};

int query_add_views(struct kb_query *query, struct kb_error *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(views); i++)
		if (kb_sql.exec(query->db, views[i], NULL, NULL, NULL))
			return kb_error_set(err, -EINVAL, KB_NO_OFFSET, "%s",
					    kb_sql.errmsg(query->db));
	return 0;
}
