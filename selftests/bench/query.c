// SPDX-License-Identifier: MIT
/*
 * How fast questions in SQL are answered, and in how much memory.
 *
 *	query DIRECTORY TOOL [RECORDS]
 *
 * The tool asks a capture of 1 GiB (mix.h), which is made in DIRECTORY and removed. Time is of the
 * processor, the best of ROUNDS; rows are those that SQLite sees. Prints a member of a JSON object:
 * rows_per_s is that of count(*), the others read one column, group by a task's number, and ask for a
 * millisecond in the middle.
 */
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "mix.h"

#define ROUNDS	3
#define RECORDS	30400000U

static const struct question {
	const char *name, *sql;
	double part;			/* of the records: rows that SQLite sees */
} questions[] = {
	{ "rows_per_s", "SELECT count(*) FROM records", 1 },
	{ "column_rows_per_s", "SELECT sum(at_ns) FROM records", 1 },
	{ "switch_rows_per_s", "SELECT sum(next_tid) FROM switches", 0.6 },
	{ "group_rows_per_s", "SELECT tid, count(*) FROM records GROUP BY tid", 1 },
};

/* Run the tool; seconds of the processor. *@mib is not less than its peak. */
static double run(const char *tool, const char *path, const char *sql, double *mib)
{
	struct rusage usage;
	int status, null;
	pid_t pid = fork();

	if (!pid) {
		null = open("/dev/null", O_WRONLY);
		dup2(null, 1);
		execl(tool, tool, "query", path, sql, (char *)NULL);
		_exit(127);
	}
	if (pid < 0 || wait4(pid, &status, 0, &usage) != pid || status)
		die(tool, NULL);
	if (usage.ru_maxrss / 1024.0 > *mib)
		*mib = usage.ru_maxrss / 1024.0;
	return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec +
	       (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static double best_of(const char *tool, const char *path, const char *sql, double *mib)
{
	double best = 1e9, now;

	for (int round = 0; round < ROUNDS; round++) {
		now = run(tool, path, sql, mib);
		best = now < best ? now : best;
	}
	return best;
}

int main(int argc, char **argv)
{
	uint64_t records = argc > 3 ? strtoull(argv[3], NULL, 0) : RECORDS;
	char path[4096], sql[256];
	double mib = 0;

	if (argc < 3) {
		fprintf(stderr, "usage: query DIRECTORY TOOL [RECORDS]\n");
		return 2;
	}
	snprintf(path, sizeof(path), "%s/query.cap", argv[1]);
	fprintf(stderr, "making a capture of %llu records\n", (unsigned long long)records);
	make_capture(path, records);
	printf("\"query\":{");
	for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++)
		printf("\"%s\":%.0f,", questions[i].name, questions[i].part * (double)records /
		       best_of(argv[2], path, questions[i].sql, &mib));
	snprintf(sql, sizeof(sql), "SELECT count(*) FROM switches WHERE at_ns BETWEEN %llu AND %llu",
		 (unsigned long long)records * 250, (unsigned long long)records * 250 + 1000000);
	printf("\"range_s\":%.2f,", best_of(argv[2], path, sql, &mib));
	printf("\"rss_mib\":%.1f}", mib);
	unlink(path);
	return 0;
}
