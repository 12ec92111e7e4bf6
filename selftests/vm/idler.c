// SPDX-License-Identifier: MIT
/*
 * Idling that is known, with the driver of module/idle_states.c loaded:
 *
 *	idler leave			wakes a task whose CPU is in each of the states
 *	idler around COMMAND...		runs COMMAND while no CPU can idle, except during:
 *	idler misses			states that are too deep and not deep enough
 *
 * and time that Linux accounts as well:
 *
 *	idler sums			tasks that run, wait and sleep
 *	idler random			tasks that do anything, and with IDLER_GAP=1 a recorder that
 *					loses some of it
 *
 * Each says on its standard output what it did and what Linux counted. With `around`, A, B, C and D
 * are readings of Linux: before COMMAND, in it, and behind it.
 */
#include <signal.h>

#include "details.h"

#define STATES		3
#define WAKES		3	/* of each state. All states together: the report shows ten waits */
#define NAPS		100
#define ROUNDS		40
#define ACTORS		6
#define ACTS		80
#define WORKERS_OF_CPU	3
#define BURNERS		"IDLER_BURNERS"
#define WORKERS		"IDLER_WORKERS"
#define PARAMETERS	"/sys/module/idle_states/parameters/"

static unsigned int nr_cpus(void)
{
	return (unsigned int)sysconf(_SC_NPROCESSORS_ONLN);
}

static uint32_t last_cpu(void)
{
	return nr_cpus() - 1;
}

static void set_parameter(const char *name, int value)
{
	char path[128], text[16];

	snprintf(path, sizeof(path), PARAMETERS "%s", name);
	snprintf(text, sizeof(text), "%d", value);
	write_file(path, text);
}

/* A child that does something of this program on @cpu, and that is called @name. */
static pid_t begin(const char *name, uint32_t cpu)
{
	pid_t child = fork();

	if (child < 0)
		lost("no process");
	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, name);
	pin(cpu);
	return 0;
}

static void end(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

/* Each process of the list that `around` made. */
static void for_each(const char *list, void (*take)(pid_t process, void *context), void *context)
{
	char *at = getenv(list);

	if (!at)
		lost("no %s: idler around", list);
	while (*at)
		take((pid_t)strtol(at, &at, 10), context);
}

/* ---- leaving a state ---- */

/* Only the one state of @cpu may be chosen; -1: all. */
static void allow_state(uint32_t cpu, int only)
{
	char path[128];
	int state;

	for (state = 0; state < STATES; state++) {
		snprintf(path, sizeof(path),
			 "/sys/devices/system/cpu/cpu%u/cpuidle/state%d/disable", cpu, state);
		write_file(path, only < 0 || only == state ? "0" : "1");
	}
}

static int state_now(uint32_t cpu)
{
	char text[1024], *at = text;
	int state = -1;

	read_file(PARAMETERS "now", text, sizeof(text));
	do
		state = (int)strtol(at, &at, 10);
	while (cpu--);
	return state;
}

/* @task waits, and its @cpu is in @state. */
static void wait_until_asleep(pid_t task, uint32_t cpu, int state)
{
	wait_until_waiting(task);
	while (state_now(cpu) != state)
		usleep(100);
}

static unsigned int caught(void)
{
	char text[16];

	read_file(PARAMETERS "caught", text, sizeof(text));
	return (unsigned int)strtoul(text, NULL, 10);
}

static void leave(void)
{
	uint32_t cpu = last_cpu();
	unsigned int enough;
	int ends[2], state;
	char byte = 0;
	pid_t waiter;

	if (pipe2(ends, O_CLOEXEC))
		lost("no pipe");
	waiter = begin("waiter", cpu);
	if (!waiter) {
		while (read(ends[0], &byte, 1) == 1)
			;
		_exit(0);
	}
	pin(0);
	wait_until_waiting(waiter);
	set_parameter("task", waiter);
	printf("waiter %d %u\n", waiter, cpu);
	for (state = 0; state < STATES; state++) {
		allow_state(cpu, state);
		/* a CPU may leave the state for another reason at this moment: that does not count */
		for (enough = caught() + WAKES; caught() < enough; ) {
			wait_until_asleep(waiter, cpu, state);
			if (write(ends[1], &byte, 1) != 1)
				lost("the waiter is gone");
		}
	}
	wait_until_asleep(waiter, cpu, STATES - 1);
	end(waiter);		/* this wakes it, too */
	set_parameter("task", -1);
	allow_state(cpu, -1);
}

/* ---- what Linux counts ---- */

/* What Linux counts of each CPU's states, and its times. */
static void read_counts(const char *reading)
{
	static const char *const files[] = { "above", "below", "usage", "time" };
	char path[128], text[64];
	unsigned int cpu, i;
	int state;

	for (cpu = 0; cpu < nr_cpus(); cpu++)
		for (state = 0; state < STATES; state++) {
			printf("%s %u %d", reading, cpu, state);
			for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
				snprintf(path, sizeof(path),
					 "/sys/devices/system/cpu/cpu%u/cpuidle/state%d/%s", cpu,
					 state, files[i]);
				read_file(path, text, sizeof(text));
				printf(" %s=%llu", files[i], strtoull(text, NULL, 10));
			}
			printf("\n");
		}
}

static void read_worker(pid_t worker, void *reading)
{
	unsigned long long ran, waited, times;
	char path[64], text[128];

	snprintf(path, sizeof(path), "/proc/%d/schedstat", worker);
	read_file(path, text, sizeof(text));
	if (sscanf(text, "%llu %llu %llu", &ran, &waited, &times) != 3)
		lost("no times in %s", path);
	printf("%s worker %d ran=%llu waited=%llu times=%llu\n", (const char *)reading, worker,
	       ran, waited, times);
}

/* What /proc/stat says, in clock ticks. */
static void read_stat(const char *reading)
{
	unsigned long long idle, iowait;
	char line[1024];
	unsigned int cpu;
	FILE *file = fopen("/proc/stat", "r");

	if (!file)
		lost("no /proc/stat");
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "cpu%u %*u %*u %*u %llu %llu", &cpu, &idle, &iowait) == 3 &&
		    line[3] != ' ')
			printf("%s stat %u ticks=%llu\n", reading, cpu, idle + iowait);
	fclose(file);
}

/* What it is made of, in ns. */
static void read_timers(const char *reading)
{
	unsigned long long ns, idle = 0;
	char line[1024];
	unsigned int cpu = 0;
	FILE *file = fopen("/proc/timer_list", "r");

	if (!file)
		lost("no /proc/timer_list");
	while (fgets(line, sizeof(line), file)) {
		sscanf(line, "cpu: %u", &cpu);
		if (sscanf(line, " .idle_sleeptime : %llu", &ns) == 1)
			idle = ns;
		if (sscanf(line, " .iowait_sleeptime: %llu", &ns) == 1)
			printf("%s timers %u ns=%llu\n", reading, cpu, idle + ns);
	}
	fclose(file);
}

static void read_all(const char *reading)
{
	if (!access(PARAMETERS, F_OK))
		read_counts(reading);
	for_each(WORKERS, read_worker, (void *)reading);
	read_stat(reading);
	read_timers(reading);
	fflush(stdout);
}

/* ---- who keeps CPUs from idling ---- */

static uint64_t time_of(pid_t task)
{
	struct timespec time;
	clockid_t clock;

	if (clock_getcpuclockid(task, &clock) || clock_gettime(clock, &time))
		lost("task %d has no clock", task);
	return time.tv_sec * 1000000000ULL + time.tv_nsec;
}

/* A task that runs is in the queue of its CPU from then on, which can't idle any more. */
static void wait_until_running(pid_t task)
{
	uint64_t from = time_of(task);

	while (time_of(task) == from)
		usleep(1000);
}

static void stop_burner(pid_t burner, void *unused __attribute__((unused)))
{
	kill(burner, SIGSTOP);
}

static void continue_burner(pid_t burner, void *unused __attribute__((unused)))
{
	kill(burner, SIGCONT);
	wait_until_running(burner);
}

static pid_t begin_burner(uint32_t cpu)
{
	pid_t burner = begin("burner", cpu);

	if (burner) {
		wait_until_running(burner);
		return burner;
	}
	for (;;)
		;
}

/* ---- states that do not pay ---- */

/* Sleeps of many lengths, the same in each run: Linux's guess of them is often wrong. */
static void nap(unsigned int seed)
{
	static const unsigned int lengths[] = { 500, 3000, 9000, 30000 };
	unsigned int i;

	for (i = 0; i < NAPS; i++) {
		seed = seed * 1103515245 + 12345;
		usleep((seed >> 8) % lengths[(seed >> 24) % 4]);
	}
	_exit(0);
}

/* Half of them with a driver that takes other states than Linux has chosen. */
static void misses(void)
{
	unsigned int cpu, nr = nr_cpus();
	pid_t nappers[nr];
	int swapped;

	read_all("B");
	for_each(BURNERS, stop_burner, NULL);
	for (swapped = 0; swapped < 2; swapped++) {
		set_parameter("swap", swapped);
		for (cpu = 0; cpu < nr; cpu++) {
			nappers[cpu] = begin("napper", cpu);
			if (!nappers[cpu])
				nap(cpu + 1);
		}
		for (cpu = 0; cpu < nr; cpu++)
			waitpid(nappers[cpu], NULL, 0);
	}
	set_parameter("swap", 0);
	for_each(BURNERS, continue_burner, NULL);
	read_all("C");
}

/* ---- times ---- */

static void spin(uint64_t ns)
{
	uint64_t until = clock_ns(CLOCK_THREAD_CPUTIME_ID) + ns;

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < until)
		;
}

static void work(unsigned int number)
{
	unsigned int i, seed = number + 1;

	for (;;) {
		raise(SIGSTOP);
		for (i = 0; i < ROUNDS; i++) {
			seed = seed * 1103515245 + 12345;
			spin((seed >> 8) % 8000000);
			if (number % 2)
				usleep((seed >> 8) % 3000);
		}
	}
}

static pid_t begin_worker(unsigned int number)
{
	pid_t worker = begin("worker", number % nr_cpus());

	if (!worker)
		work(number / nr_cpus());
	wait_until_off(worker, 'T');
	return worker;
}

static void continue_worker(pid_t worker, void *unused __attribute__((unused)))
{
	kill(worker, SIGCONT);
}

static void wait_for_worker(pid_t worker, void *unused __attribute__((unused)))
{
	wait_until_off(worker, 'T');
}

static void sums(void)
{
	unsigned int i;

	read_all("B");
	for_each(BURNERS, stop_burner, NULL);
	for_each(WORKERS, continue_worker, NULL);
	for_each(WORKERS, wait_for_worker, NULL);
	for (i = 0; i < NAPS / 2; i++)
		usleep(i * 100);
	for_each(BURNERS, continue_burner, NULL);
	read_all("C");
}

/* ---- what no CPU idles around ---- */

static void list_child(const char *list, pid_t child)
{
	const char *before = getenv(list);
	char text[4096];

	snprintf(text, sizeof(text), "%s %d", before ? before : "", child);
	setenv(list, text, 1);
}

static void end_child(pid_t child, void *unused __attribute__((unused)))
{
	end(child);
}

static int around(char **command)
{
	unsigned int i;
	pid_t child;
	int status;

	for (i = 0; i < WORKERS_OF_CPU * nr_cpus(); i++)
		list_child(WORKERS, begin_worker(i));
	for (i = 0; i < nr_cpus(); i++)
		list_child(BURNERS, begin_burner(i));
	read_all("A");
	child = fork();
	if (!child) {
		execvp(command[0], command);
		_exit(127);
	}
	waitpid(child, &status, 0);
	read_all("D");
	for_each(BURNERS, end_child, NULL);
	for_each(WORKERS, end_child, NULL);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* ---- anything ---- */

static unsigned int next(unsigned int *seed, unsigned int below)
{
	*seed = *seed * 1103515245 + 12345;
	return (*seed >> 8) % below;
}

/* Who shares the pipe @ends wakes others, and is woken. */
static void act(unsigned int seed, unsigned int acts, const int ends[2])
{
	char bytes[64];
	pid_t child;

	while (acts--)
		switch (next(&seed, 8)) {
		case 0:
			spin(next(&seed, 3000000));
			break;
		case 1:
			usleep(next(&seed, 5000));
			break;
		case 2:
			sched_yield();
			break;
		case 3:
			pin(next(&seed, nr_cpus()));
			break;
		case 4:
			child = fork();
			if (!child)
				_exit(0);
			waitpid(child, NULL, 0);
			break;
		case 5:
			spin(next(&seed, 100000));
			break;
		default:	/* neither end blocks for long: readers don't wait */
			if (next(&seed, 2) ? write(ends[1], bytes, sizeof(bytes)) < 0
					   : read(ends[0], bytes, sizeof(bytes)) < 0)
				sched_yield();
		}
	_exit(0);
}

static void act_all(unsigned int seed, unsigned int acts)
{
	pid_t actors[ACTORS];
	unsigned int i;
	int ends[2];

	if (pipe2(ends, O_NONBLOCK))
		lost("no pipe");
	for (i = 0; i < ACTORS; i++) {
		actors[i] = begin("actor", i % nr_cpus());
		if (!actors[i])
			act(seed + i * 7919, acts, ends);
	}
	for (i = 0; i < ACTORS; i++)
		waitpid(actors[i], NULL, 0);
	close(ends[0]);
	close(ends[1]);
}

static void do_anything(void)
{
	unsigned int seed = (unsigned int)clock_ns(CLOCK_REALTIME);

	printf("seed %u\n", seed);
	fflush(stdout);
	if (getenv("IDLER_GAP")) {	/* nobody reads the rings for a while */
		kill(getppid(), SIGSTOP);
		act_all(seed, 2 * ACTS);
		kill(getppid(), SIGCONT);
	}
	act_all(seed + 1, ACTS);
}

/* The driver logs times of the clock of recordings. */
static void choose_clock(void)
{
	int fd = device_open();

	if (fd < 0)
		lost("no device");
	if (!access(PARAMETERS "counter", F_OK))
		set_parameter("counter", !!(query(fd).features & KBARMAN_FEATURE_RAW_CLOCK));
	close(fd);
}

int main(int argc, char **argv)
{
	const char *verb = argc > 1 ? argv[1] : "";

	choose_clock();
	if (!strcmp(verb, "around") && argc > 2)
		return around(argv + 2);
	if (!strcmp(verb, "leave"))
		leave();
	else if (!strcmp(verb, "misses"))
		misses();
	else if (!strcmp(verb, "sums"))
		sums();
	else if (!strcmp(verb, "random"))
		do_anything();
	else
		return 2;
	return 0;
}
