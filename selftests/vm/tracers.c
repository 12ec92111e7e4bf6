// SPDX-License-Identifier: MIT
/*
 * LTTng and bpftrace, alone and beside sessions, at one tracepoint: they count what a task does,
 * which the task knows itself. tracers.sh runs them. That ftrace, perf and BPF count the
 * same is told by neighbours.c.
 */
#include "neighbours.h"

#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	300

/* Switches of this thread while it has the name @name, or -1 if one was at its begin or end. */
static long switches_while_named(const char *name, const struct echo *e)
{
	long before = switches(), first, last, after;

	prctl(PR_SET_NAME, name);
	first = switches();
	echo_rounds(e, 200);
	last = switches();
	prctl(PR_SET_NAME, "unnamed");
	after = switches();
	return before == first && last == after ? last - first : -1;
}

/* With --switch the program says under which name it had how many switches. */
static void __attribute__((constructor)) switch_at_once(int argc, char **argv)
{
	struct echo e;
	char name[16];
	long nr = -1;

	if (argc < 2 || strcmp(argv[1], "--switch"))
		return;
	pin(0);
	e = echo_create(0);
	for (unsigned int i = 0; nr < 0; i++) {
		snprintf(name, sizeof(name), "try_%u", i);
		nr = switches_while_named(name, &e);
	}
	echo_destroy(&e);
	printf("%s %ld\n", name, nr);
	fflush(stdout);
	_exit(0);
}

static const char *script, *tracer;

static void run_tracer(FILE *to)
{
	char command[4096], line[512];
	FILE *said;

	snprintf(command, sizeof(command), "sh '%s' %s 2>&1", script, tracer);
	said = popen(command, "re");
	while (said && fgets(line, sizeof(line), said))
		fputs(line, to);
	if (!said || pclose(said))
		fprintf(to, "%s failed\n", tracer);
}

static void counts_all(struct __test_metadata *_metadata, FIXTURE_DATA(neighbours) *self,
		       const char *name)
{
	char all[64], *said;

	script = realpath("tracers.sh", NULL);
	tracer = name;
	snprintf(all, sizeof(all), "%s: off by 0, lost nothing\n", name);
	said = said_by(run_tracer);
	EXPECT_STREQ(all, said);
	free(said);
	sees_no_difference(_metadata, self, run_tracer);
}

TEST_F(neighbours, lttng_counts_what_it_counts_without)
{
	counts_all(_metadata, self, "lttng");
}

TEST_F(neighbours, bpftrace_counts_what_it_counts_without)
{
	counts_all(_metadata, self, "bpftrace");
}

TEST_HARNESS_MAIN
