// SPDX-License-Identifier: MIT
/* The task table: who there is, who comes, what they are called; and who is recorded. */
#include <pthread.h>

#include "kselftest_harness.h"
#include "lib.h"

static const struct kbarman_configure switches = { .sources = KBARMAN_SOURCE_SCHED };

static struct bm_kbarman_task fact_of(const void *map,
				      const struct bm_protocol_header_task_info *row)
{
	return *capture_task_facts(map, row - capture_tasks(map));
}

FIXTURE(tasks)
{
	int fd;
	const void *map;
};

FIXTURE_SETUP(tasks)
{
	self->fd = device_open_free();
	ASSERT_EQ(0, configure(self->fd, switches));
	self->map = map_cpu(self->fd, 0);
}

FIXTURE_TEARDOWN(tasks)
{
	close(self->fd);
}

TEST_F(tasks, tasks_there_at_start_have_rows)
{
	char name[32] = "";
	FILE *comm = fopen("/proc/1/comm", "r");

	ASSERT_NE(NULL, comm);
	ASSERT_EQ(1, fscanf(comm, "%31[^\n]", name));
	fclose(comm);
	ASSERT_EQ(0, start(self->fd));
	EXPECT_NE(NULL, capture_task(self->map, 1, name));
	EXPECT_NE(NULL, capture_task(self->map, 2, "kthreadd"));
	EXPECT_NE(NULL, capture_task(self->map, getpid(), "tasks"));
	EXPECT_NE(NULL, capture_task(self->map, 0, NULL));
	EXPECT_EQ(*capture_task_count(self->map), stats(self->fd, KBARMAN_CPU_ALL).tasks);
}

TEST_F(tasks, every_task_that_is_switched_to_has_a_row)
{
	struct walk walk;
	const union record *r;

	ASSERT_EQ(0, start(self->fd));
	ping_pong(0, 100);
	ASSERT_EQ(0, stop(self->fd));
	walk = walk_begin(self->map);
	while ((r = walk_next(&walk))) {
		EXPECT_NE(NULL, capture_task(self->map, r->task_switch.task_id, NULL))
			TH_LOG("task %u", r->task_switch.task_id);
	}
}

TEST_F(tasks, a_forked_child_has_a_row_with_its_parents_name)
{
	const struct bm_protocol_header_task_info *row;
	pid_t child;

	ASSERT_EQ(0, start(self->fd));
	child = fork();
	if (!child)
		_exit(0);
	waitpid(child, NULL, 0);
	row = capture_task(self->map, child, "tasks");
	ASSERT_NE(NULL, row);
	EXPECT_LE(clocks(self->fd).start.timestamp, row->timestamp);
	EXPECT_EQ(child, fact_of(self->map, row).tgid);
}

TEST_F(tasks, an_exec_gives_the_new_name)
{
	const struct bm_protocol_header_task_info *before, *after;
	pid_t child;

	ASSERT_EQ(0, start(self->fd));
	child = fork();
	if (!child) {
		setenv("KBARMAN_TEST_EXIT", "1", 1);
		execl("/proc/self/exe", "whatever", NULL);
		_exit(1);
	}
	waitpid(child, NULL, 0);
	before = capture_task(self->map, child, "tasks");
	after = capture_task(self->map, child, "exe");
	ASSERT_NE(NULL, before);
	ASSERT_NE(NULL, after);
	EXPECT_LT(before, after);
	EXPECT_LE(before->timestamp, after->timestamp);
}

TEST_F(tasks, a_rename_gives_the_new_name)
{
	ASSERT_EQ(0, start(self->fd));
	ASSERT_EQ(0, prctl(PR_SET_NAME, "called anew"));
	EXPECT_NE(NULL, capture_task(self->map, getpid(), "called anew"));
	EXPECT_LT(capture_task(self->map, getpid(), "tasks"),
		  capture_task(self->map, getpid(), "called anew"));
}

TEST_F(tasks, a_rename_to_the_same_name_makes_no_row)
{
	uint32_t before;

	ASSERT_EQ(0, start(self->fd));
	ASSERT_EQ(0, prctl(PR_SET_NAME, "same"));
	before = *capture_task_count(self->map);
	ASSERT_EQ(0, prctl(PR_SET_NAME, "same"));
	EXPECT_EQ(before, *capture_task_count(self->map));
}

static void *thread_with_name(void *argument)
{
	prctl(PR_SET_NAME, "a thread");
	*(pid_t *)argument = thread_id();
	return NULL;
}

TEST_F(tasks, a_thread_has_a_row_and_its_process_is_known)
{
	const struct bm_protocol_header_task_info *row;
	pthread_t thread;
	pid_t id;

	ASSERT_EQ(0, start(self->fd));
	ASSERT_EQ(0, pthread_create(&thread, NULL, thread_with_name, &id));
	ASSERT_EQ(0, pthread_join(thread, NULL));
	row = capture_task(self->map, id, "a thread");
	ASSERT_NE(NULL, row);
	EXPECT_EQ(getpid(), fact_of(self->map, row).tgid);
	EXPECT_EQ(id, fact_of(self->map, row).task_id);
}

TEST_F(tasks, an_exit_is_a_fact_of_the_last_row)
{
	const struct bm_protocol_header_task_info *row;
	struct bm_kbarman_task fact;
	pid_t child;

	ASSERT_EQ(0, start(self->fd));
	child = fork();
	if (!child)
		_exit(0);
	waitpid(child, NULL, 0);
	row = capture_task(self->map, child, NULL);
	ASSERT_NE(NULL, row);
	fact = fact_of(self->map, row);
	EXPECT_LE(row->timestamp, fact.exit_timestamp);
	EXPECT_LE(fact.exit_timestamp, clocks(self->fd).now.timestamp);
	row = capture_task(self->map, getpid(), NULL);
	ASSERT_NE(NULL, row);
	EXPECT_EQ(0, fact_of(self->map, row).exit_timestamp);
}

/* When the thread that leads has exited, another one gives it a name. */
static void *rename_leader(void __attribute__((unused)) *unused)
{
	char path[64], state = 0;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", getpid(), getpid());
	while (state != 'Z') {
		FILE *stat = fopen(path, "re");

		if (!stat || fscanf(stat, "%*d (%*[^)]) %c", &state) != 1)
			_exit(1);
		fclose(stat);
		usleep(1000);
	}
	snprintf(path, sizeof(path), "/proc/%d/comm", getpid());
	write_file(path, "renamed");
	_exit(0);
}

TEST_F(tasks, a_thread_that_has_exited_and_gets_a_name_keeps_its_end)
{
	const struct bm_protocol_header_task_info *before, *after;
	pid_t child;
	int status;

	ASSERT_EQ(0, start(self->fd));
	child = fork();
	if (!child) {
		pthread_t thread;

		pthread_create(&thread, NULL, rename_leader, NULL);
		pthread_exit(NULL);
	}
	ASSERT_EQ(child, waitpid(child, &status, 0));
	ASSERT_EQ(0, status);
	before = capture_task(self->map, child, "tasks");
	after = capture_task(self->map, child, "renamed");
	ASSERT_NE(NULL, before);
	ASSERT_NE(NULL, after);
	EXPECT_NE(0, fact_of(self->map, before).exit_timestamp);
	EXPECT_EQ(fact_of(self->map, before).exit_timestamp,
		  fact_of(self->map, after).exit_timestamp);
	EXPECT_GT(after->timestamp, fact_of(self->map, after).exit_timestamp);
}

static void *exec_from_thread(void __attribute__((unused)) *unused)
{
	setenv("KBARMAN_TEST_EXIT", "1", 1);
	execl("/proc/self/exe", "whatever", NULL);
	return NULL;
}

/* The thread takes the process's id over; its own is gone, without an exit. */
TEST_F(tasks, an_exec_by_a_thread_keeps_the_process)
{
	const struct bm_protocol_header_task_info *row;
	pid_t child;
	int status;

	ASSERT_EQ(0, start(self->fd));
	child = fork();
	if (!child) {
		pthread_t thread;

		pthread_create(&thread, NULL, exec_from_thread, NULL);
		pthread_join(thread, NULL);
		_exit(1);
	}
	ASSERT_EQ(child, waitpid(child, &status, 0));
	ASSERT_EQ(0, status);
	row = capture_task(self->map, child, NULL);
	ASSERT_NE(NULL, row);
	EXPECT_STREQ("exe", capture_strings(self->map) + row->task_name_ptr);
	EXPECT_NE(0, fact_of(self->map, row).exit_timestamp);
}

TEST_F(tasks, rows_and_facts_agree)
{
	const struct bm_protocol_header_start *header = capture_header(self->map);
	const char *room_end = capture_strings(self->map) +
			       header->config_constants.max_string_table_length;
	const struct bm_kbarman_tasks *pages = capture_task_pages(self->map);
	uint32_t i;

	ASSERT_EQ(0, start(self->fd));
	ping_pong(0, 1);
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_EQ(sizeof(*pages), pages->size);
	EXPECT_EQ(sizeof(struct bm_kbarman_task), pages->element_size);
	EXPECT_EQ(header->config_constants.max_task_infos, pages->count);
	EXPECT_EQ(0, (uintptr_t)pages % 8);
	EXPECT_LE(capture_strings(self->map) + header->string_table_length, (const char *)pages);
	EXPECT_GE(room_end, (const char *)pages + pages->size + pages->count * pages->element_size);
	for (i = 0; i < *capture_task_count(self->map); i++) {
		EXPECT_EQ(capture_tasks(self->map)[i].task_id,
			  capture_task_facts(self->map, i)->task_id);
	}
}

TEST_F(tasks, a_full_table_is_counted)
{
	struct kbarman_configure c = switches;
	struct kbarman_stats s;

	c.max_tasks = 4;
	ASSERT_EQ(0, configure(self->fd, c));
	ASSERT_EQ(0, start(self->fd));
	s = stats(self->fd, KBARMAN_CPU_ALL);
	EXPECT_EQ(4, s.tasks);
	EXPECT_LT(0, s.missed[KBARMAN_MISSED_TASK]);
}

/* ---- rows of tasks that are gone ---- */

/* @count processes on CPU 0, one after the other, each with a name of its own. */
static void make_named(pid_t *ids, int count)
{
	char name[32];
	int i;

	pin(0);
	for (i = 0; i < count; i++) {
		ids[i] = fork();
		if (!ids[i]) {
			snprintf(name, sizeof(name), "named-%d", i);
			prctl(PR_SET_NAME, name);
			_exit(0);
		}
		if (ids[i] < 0)
			lost("no process");
		waitpid(ids[i], NULL, 0);
	}
}

static struct kbarman_configure first_cpu(enum kbarman_mode mode, uint32_t max_tasks)
{
	static const uint64_t first = 1;

	return (struct kbarman_configure) {
		.mode = mode, .sources = KBARMAN_SOURCE_SCHED, .ring_bytes = 64 * KIB,
		.max_tasks = max_tasks, .cpus_ptr = (uintptr_t)&first, .nr_cpu_words = 1 };
}

/*
 * A ring of 64 KiB has at most 2048 switches, of half as many processes here, each with
 * two rows: so 4096 rows are enough for ever, if those are used again that no record
 * needs.
 */
TEST_F_TIMEOUT(tasks, overwrite_uses_rows_again, 300 * SLOWNESS)
{
	enum { COUNT = 4500 };
	static pid_t ids[COUNT];
	uint32_t generation;
	struct kbarman_stats s;
	const union record *r;
	struct walk walk;
	const void *map;
	int found = 0;

	ASSERT_EQ(0, configure(self->fd, first_cpu(KBARMAN_MODE_OVERWRITE, 4096)));
	ASSERT_EQ(0, start(self->fd));
	generation = query(self->fd).generation;
	make_named(ids, COUNT);
	ASSERT_EQ(0, stop(self->fd));
	s = stats(self->fd, KBARMAN_CPU_ALL);
	EXPECT_EQ(0, s.missed[KBARMAN_MISSED_TASK]);
	EXPECT_GE(4096, s.tasks);
	EXPECT_LT(0, stats(self->fd, 0).overwritten);
	EXPECT_NE(generation, query(self->fd).generation);

	map = map_cpu(self->fd, 0);
	EXPECT_EQ(NULL, judge_cpu(self->fd, 0).fault);
	walk = walk_begin(map);
	while ((r = walk_next(&walk))) {
		char name[32];
		int i;

		EXPECT_NE(NULL, capture_task(map, r->task_switch.task_id, NULL))
			TH_LOG("task %u has no row", r->task_switch.task_id);
		/* Where there are fewer ids than that, the last owner of one is meant. */
		for (i = COUNT - 1; i >= 0 && ids[i] != (pid_t)r->task_switch.task_id; i--)
			;
		if (i < 0)
			continue;
		snprintf(name, sizeof(name), "named-%d", i);
		EXPECT_NE(NULL, capture_task(map, ids[i], name)) TH_LOG("%s", name);
		found++;
	}
	EXPECT_LE(100, found);
}

static uint64_t tasks_without_row(int fd)
{
	return stats(fd, KBARMAN_CPU_ALL).missed[KBARMAN_MISSED_TASK];
}

/*
 * A task named "writer" writes a mark. Its row may find no room for a moment, as tasks that have
 * exited may still be there: this is counted, and another task tries. Returns the writer.
 */
static pid_t write_mark(int fd)
{
	struct kbarman_mark mark = { .size = sizeof(mark), .type = KBARMAN_MARK_STRING };
	enum { WRITTEN, NOT_WRITTEN, NO_ROW };
	int status, tries = 0;
	uint64_t before;
	pid_t writer;

	do {
		writer = fork();
		if (!writer) {
			before = tasks_without_row(fd);
			prctl(PR_SET_NAME, "writer");
			if (tasks_without_row(fd) != before)
				_exit(NO_ROW);
			_exit(write(open(KBARMAN_DEVICE, O_WRONLY), &mark, sizeof(mark)) ==
			      sizeof(mark) ? WRITTEN : NOT_WRITTEN);
		}
		if (writer < 0 || waitpid(writer, &status, 0) != writer)
			lost("a task");
	} while (status == W_EXITCODE(NO_ROW, 0) && ++tries < 1000 && !usleep(10000));
	return status ? -1 : writer;
}

/* Rows may be asked for again before there is any record that could want one. */
TEST_F(tasks, overwrite_keeps_the_row_of_the_first_record)
{
	struct kbarman_configure config = first_cpu(KBARMAN_MODE_OVERWRITE, 256);
	static pid_t ids[300];
	pid_t writer;

	config.sources = KBARMAN_SOURCE_MARKS;
	ASSERT_EQ(0, configure(self->fd, config));
	ASSERT_EQ(0, start(self->fd));
	make_named(ids, 300);
	ASSERT_EQ(0, stats(self->fd, KBARMAN_CPU_ALL).written);
	writer = write_mark(self->fd);
	ASSERT_LT(0, writer);
	make_named(ids, 300);
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_EQ(1, stats(self->fd, KBARMAN_CPU_ALL).written);
	EXPECT_NE(NULL, capture_task(map_cpu(self->fd, 0), writer, "writer"));
}

/* There the reader may still want what it has not read: rows stay. */
TEST_F(tasks, stream_counts_what_finds_no_row)
{
	static pid_t ids[300];

	ASSERT_EQ(0, configure(self->fd, first_cpu(KBARMAN_MODE_STREAM, 256)));
	ASSERT_EQ(0, start(self->fd));
	make_named(ids, 300);
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_EQ(256, stats(self->fd, KBARMAN_CPU_ALL).tasks);
	EXPECT_LE(300, stats(self->fd, KBARMAN_CPU_ALL).missed[KBARMAN_MISSED_TASK]);
}

/*
 * A child of user @user takes @names names, one after the other. It has no capability: user 0 is
 * then the root of a container that may do nothing outside.
 */
static void rename_as(uid_t user, unsigned int names)
{
	pid_t child = fork();
	char name[16];
	unsigned int i;
	int status;

	if (!child) {
		if (setresuid(user, user, user))
			_exit(1);
		keep_only(0);
		for (i = 0; i < names; i++) {
			snprintf(name, sizeof(name), "r%u-%u", user, i);
			prctl(PR_SET_NAME, name);
		}
		_exit(0);
	}
	if (waitpid(child, &status, 0) != child || status)
		lost("the child did not rename itself");
}

static void expect_room_beside(struct __test_metadata *_metadata, int fd, uid_t user)
{
	enum { ROWS = 1024 };
	struct kbarman_stats s;
	pid_t child;

	ASSERT_EQ(0, configure(fd, first_cpu(KBARMAN_MODE_STREAM, ROWS)));
	ASSERT_EQ(0, start(fd));
	rename_as(user, 2 * ROWS);
	s = stats(fd, KBARMAN_CPU_ALL);
	EXPECT_LE(ROWS, s.missed[KBARMAN_MISSED_TASK]);
	EXPECT_GE(ROWS - ROWS / 8, s.tasks);
	rename_as(1001, 1);
	EXPECT_EQ(s.missed[KBARMAN_MISSED_TASK],
		  stats(fd, KBARMAN_CPU_ALL).missed[KBARMAN_MISSED_TASK]);
	make_named(&child, 1);
	ASSERT_EQ(0, stop(fd));
	EXPECT_NE(NULL, capture_task(map_cpu(fd, 0), child, "named-0"));
	/* Nor do names without a row take room. */
	EXPECT_GE(32 * KIB, stats(fd, KBARMAN_CPU_ALL).strings);
}

TEST_F(tasks, a_user_that_takes_many_names_leaves_rows_for_others)
{
	expect_room_beside(_metadata, self->fd, 1000);
}

TEST_F(tasks, root_without_capabilities_leaves_rows_for_others)
{
	expect_room_beside(_metadata, self->fd, 0);
}

TEST_F(tasks, nothing_is_missed_with_the_default_tables)
{
	struct kbarman_stats s;
	int i;

	ASSERT_EQ(0, start(self->fd));
	for (i = 0; i < 50; i++)
		ping_pong(0, 1);
	ASSERT_EQ(0, stop(self->fd));
	s = stats(self->fd, KBARMAN_CPU_ALL);
	for (i = 0; i < 8; i++) {
		EXPECT_EQ(0, s.missed[i]) TH_LOG("reason %d", i);
	}
}

/* ---- which tasks are recorded ---- */

FIXTURE(filter)
{
	int fd;
	pid_t noise;		/* ping-pongs on CPU 1 with its child, when told */
	int go, done;
	struct kbarman_configure config;
	uint32_t pid;
};

/* The calling task has @names names, one after the other. */
static pid_t take_names(unsigned int names)
{
	char name[16];
	unsigned int i;

	for (i = 0; i < names; i++) {
		snprintf(name, sizeof(name), "noise-%u", i);
		prctl(PR_SET_NAME, name);
	}
	return getpid();
}

FIXTURE_SETUP(filter)
{
	int go[2], done[2];
	char byte;

	self->fd = device_open_free();
	if (query(self->fd).nr_cpus < 2)
		SKIP(skip_test(), "one CPU only");
	ASSERT_EQ(0, pipe(go));
	ASSERT_EQ(0, pipe(done));
	self->noise = fork();
	if (!self->noise) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pin(1);
		while (read(go[0], &byte, 1) == 1) {
			pid_t echo = byte == 'n' ? take_names(2000) : ping_pong(1, 200);

			if (write(done[1], &echo, sizeof(echo)) != sizeof(echo))
				break;
		}
		_exit(0);
	}
	self->go = go[1];
	self->done = done[0];
	self->pid = getpid();
	self->config = (struct kbarman_configure) {
		.sources = KBARMAN_SOURCE_SCHED | KBARMAN_SOURCE_IDLE,
		.flags = KBARMAN_CONFIGURE_INHERIT,
		.pids_ptr = (uintptr_t)&self->pid, .nr_pids = 1 };
	pin(0);
}

FIXTURE_TEARDOWN(filter)
{
	kill(self->noise, SIGKILL);
	waitpid(self->noise, NULL, 0);
	close(self->fd);
}

static pid_t tell_noise(int go, int done, char what)
{
	pid_t echo;

	if (write(go, &what, 1) != 1 || read(done, &echo, sizeof(echo)) != sizeof(echo))
		lost("the noise does not answer");
	return echo;
}

/* Returns the noise's child. */
static pid_t make_noise(int go, int done)
{
	return tell_noise(go, done, 'p');
}

TEST_F(filter, the_process_and_its_children_are_recorded)
{
	pid_t echo;

	ASSERT_EQ(0, configure(self->fd, self->config));
	ASSERT_EQ(0, start(self->fd));
	echo = ping_pong(0, 100);
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_LE(100, switches_to(self->fd, 0, getpid()));
	EXPECT_LE(100, switches_to(self->fd, 0, echo));
}

TEST_F(filter, grandchildren_are_recorded)
{
	int pipes[2];
	pid_t child, echo;

	ASSERT_EQ(0, pipe(pipes));
	ASSERT_EQ(0, configure(self->fd, self->config));
	ASSERT_EQ(0, start(self->fd));
	child = fork();
	if (!child) {
		echo = ping_pong(0, 100);
		_exit(write(pipes[1], &echo, sizeof(echo)) != sizeof(echo));
	}
	waitpid(child, NULL, 0);
	ASSERT_EQ(sizeof(echo), read(pipes[0], &echo, sizeof(echo)));
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_LE(100, switches_to(self->fd, 0, echo));
}

TEST_F(filter, others_are_not_recorded)
{
	pid_t echo;

	ASSERT_EQ(0, configure(self->fd, self->config));
	ASSERT_EQ(0, start(self->fd));
	echo = make_noise(self->go, self->done);
	ping_pong(0, 100);
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_EQ(0, switches_to(self->fd, 1, echo));
	EXPECT_EQ(0, switches_to(self->fd, 1, self->noise));
}

/* The first record of a CPU says who runs there. It is no business of those who record others. */
TEST_F(filter, others_that_run_at_the_start_are_not_recorded)
{
	pid_t child;

	self->config.flags = 0;
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pin(1);
		for (;;)
			getppid();
	}
	usleep(100000);
	ASSERT_EQ(0, configure(self->fd, self->config));
	ASSERT_EQ(0, start(self->fd));
	ASSERT_EQ(0, stop(self->fd));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	EXPECT_EQ(0, switches_to(self->fd, 1, child));
}

TEST_F(filter, switches_away_and_idling_are_recorded)
{
	struct judgement j;
	int i;

	ASSERT_EQ(0, configure(self->fd, self->config));
	ASSERT_EQ(0, start(self->fd));
	/* Another task may be next at some of them, and the idle task behind it. */
	for (i = 0; i < 20; i++)
		usleep(20000);
	ASSERT_EQ(0, stop(self->fd));
	j = judge_cpu(self->fd, 0);
	EXPECT_EQ(NULL, j.fault) TH_LOG("%s", j.fault);
	EXPECT_LE(1, switches_to(self->fd, 0, 0));
	EXPECT_LE(1, switches_to(self->fd, 0, getpid()));
	EXPECT_LE(2, j.by_type[BM_RECORD_HALTING_EVENT]);
}

TEST_F(filter, children_are_others_if_not_asked_for)
{
	pid_t child, echo;
	int pipes[2];

	ASSERT_EQ(0, pipe(pipes));
	self->config.flags = 0;
	ASSERT_EQ(0, configure(self->fd, self->config));
	ASSERT_EQ(0, start(self->fd));
	child = fork();
	if (!child) {
		echo = ping_pong(1, 100);
		_exit(write(pipes[1], &echo, sizeof(echo)) != sizeof(echo));
	}
	waitpid(child, NULL, 0);
	ASSERT_EQ(sizeof(echo), read(pipes[0], &echo, sizeof(echo)));
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_EQ(0, switches_to(self->fd, 1, echo));
}

struct player {
	volatile pid_t id;
	volatile bool go;
};

static void *ping_pong_in_thread(void *argument)
{
	struct player *player = argument;

	player->id = thread_id();
	while (!player->go)
		sched_yield();
	ping_pong(0, 100);
	return NULL;
}

TEST_F(filter, others_leave_rows_for_those_that_are_recorded)
{
	pid_t child, named[3];
	int status;

	self->config.mode = KBARMAN_MODE_STREAM;
	self->config.max_tasks = 1024;
	ASSERT_EQ(0, configure(self->fd, self->config));
	ASSERT_EQ(0, start(self->fd));
	tell_noise(self->go, self->done, 'n');
	EXPECT_LE(1000, stats(self->fd, KBARMAN_CPU_ALL).missed[KBARMAN_MISSED_TASK]);
	EXPECT_GE(300, stats(self->fd, KBARMAN_CPU_ALL).tasks);
	make_named(named, 3);
	child = fork();
	if (!child)
		_exit(0);
	ASSERT_EQ(child, waitpid(child, &status, 0));
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_NE(NULL, capture_task(map_cpu(self->fd, 0), named[2], "named-2"));
	EXPECT_NE(NULL, capture_task(map_cpu(self->fd, 0), child, NULL));
}

TEST_F(filter, threads_made_later_are_recorded)
{
	struct player player = { .go = true };
	pthread_t thread;

	self->config.flags = 0;
	ASSERT_EQ(0, configure(self->fd, self->config));
	ASSERT_EQ(0, start(self->fd));
	ASSERT_EQ(0, pthread_create(&thread, NULL, ping_pong_in_thread, &player));
	ASSERT_EQ(0, pthread_join(thread, NULL));
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_LE(100, switches_to(self->fd, 0, player.id));
}

/* Between configure and start nobody watches forks; start has to catch up. */
TEST_F(filter, threads_made_between_configure_and_start_are_recorded)
{
	struct player player = { .go = false };
	pthread_t thread;

	ASSERT_EQ(0, configure(self->fd, self->config));
	ASSERT_EQ(0, pthread_create(&thread, NULL, ping_pong_in_thread, &player));
	while (!player.id)
		sched_yield();
	ASSERT_EQ(0, start(self->fd));
	player.go = true;
	ASSERT_EQ(0, pthread_join(thread, NULL));
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_LE(100, switches_to(self->fd, 0, player.id));
}

#define CROWD	64

struct crowd {
	pid_t ids[CROWD];
	volatile unsigned int made;
	volatile bool go;
};

struct member {
	struct crowd *crowd;
	unsigned int number;
};

/* Each makes the next one, so that who makes a thread may itself have been made a moment ago. */
static void *join_crowd(void *argument)
{
	struct member *own = argument, next = { own->crowd, own->number + 1 };
	struct crowd *crowd = own->crowd;
	pthread_t thread;
	unsigned int i;

	crowd->ids[own->number] = thread_id();
	crowd->made = next.number;
	if (next.number < CROWD && pthread_create(&thread, NULL, join_crowd, &next))
		lost("no thread");
	while (!crowd->go)
		usleep(10000);
	for (i = 0; i < 3; i++)
		usleep(1000);
	if (next.number < CROWD)
		pthread_join(thread, NULL);
	return NULL;
}

/* Whatever start is at when they are made. */
TEST_F(filter, threads_made_while_the_recording_starts_are_recorded)
{
	struct crowd crowd;
	struct member first = { &crowd, 0 };
	unsigned int round, i;
	pthread_t thread;

	self->config.flags = 0;
	ASSERT_EQ(0, configure(self->fd, self->config));
	for (round = 0; round < 5; round++) {
		memset(&crowd, 0, sizeof(crowd));
		pin(1);
		ASSERT_EQ(0, pthread_create(&thread, NULL, join_crowd, &first));
		pin(0);
		while (crowd.made < round)
			sched_yield();
		ASSERT_EQ(0, start(self->fd));
		while (crowd.made < CROWD)
			sched_yield();
		crowd.go = true;
		ASSERT_EQ(0, pthread_join(thread, NULL));
		ASSERT_EQ(0, stop(self->fd));
		for (i = 0; i < CROWD; i++)
			EXPECT_LE(3, switches_to(self->fd, 1, crowd.ids[i]))
				TH_LOG("thread %u of round %u", i, round);
	}
}

/* While nothing is recorded nobody sees an id go to somebody else. */
TEST_F(filter, an_id_that_comes_again_between_two_recordings_is_not_recorded)
{
	struct echo e;
	char byte;
	pid_t again;
	int go[2];

	if (access(LAST_ID, W_OK))
		SKIP(return, "thread ids can't be chosen on this kernel");
	ASSERT_EQ(0, configure(self->fd, self->config));
	do {
		ASSERT_EQ(0, start(self->fd));
		e = echo_create(0);
		echo_rounds(&e, 100);
		ASSERT_EQ(0, stop(self->fd));
		ASSERT_LE(100, switches_to(self->fd, 0, e.echo));
		echo_destroy(&e);
		ASSERT_EQ(0, pipe(go));
		choose_id(e.echo);
		again = fork();
		if (!again) {
			pin(1);
			_exit(read(go[0], &byte, 1) != 1);
		}
		ASSERT_EQ(0, start(self->fd));
		ASSERT_EQ(1, write(go[1], "", 1));
		waitpid(again, NULL, 0);
		ASSERT_EQ(0, stop(self->fd));
		close(go[0]);
		close(go[1]);
	} while (again != e.echo);
	EXPECT_EQ(0, switches_to(self->fd, 1, again));
}

/* For the tests of exec: be a program that ends. */
static void __attribute__((constructor)) exit_if_told(void)
{
	if (getenv("KBARMAN_TEST_EXIT"))
		_exit(0);
}

TEST_HARNESS_MAIN
