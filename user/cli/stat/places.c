// SPDX-License-Identifier: MIT
/* Where kbarman stat counts: in a command, in processes or on CPUs, and which share a CPU is of. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kbarman/cpulist.h>

#include "base/array.h"
#include "cli/stat/stat.h"

/* Finds or adds the share @name. */
static int find_share(struct stat_run *run, const char *name, unsigned int *share)
{
	for (size_t i = 0; i < run->nr_shares; i++) {
		if (strcmp(run->shares[i].name, name))
			continue;
		*share = (unsigned int)i;
		run->shares[i].nr_cpus++;
		return 0;
	}
	if (!KB_ARRAY_ROOM(run->shares, run->max_shares, run->nr_shares + 1))
		return cli_fail("out of memory");
	*share = (unsigned int)run->nr_shares;
	run->shares[run->nr_shares] = (struct stat_share){ .nr_cpus = 1 };
	snprintf(run->shares[run->nr_shares].name, sizeof(run->shares[0].name), "%s", name);
	run->nr_shares++;
	return 0;
}

/* False: sysfs does not have it. */
static bool read_topology(int cpu, const char *file, int *number)
{
	char path[96];
	FILE *stream;
	bool good;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/%s", cpu, file);
	stream = fopen(path, "re");
	if (!stream)
		return false;
	good = fscanf(stream, "%d", number) == 1;
	fclose(stream);
	return good;
}

/* S0-D0-C1, as perf calls a core */
static int name_share(const struct stat_run *run, int cpu, char name[48])
{
	int socket = 0, die = 0, core = 0;

	*name = '\0';
	if (run->by == STAT_ALL)
		return 0;
	if (run->by == STAT_BY_CPU) {
		snprintf(name, 48, "CPU%d", cpu);
		return 0;
	}
	if (!read_topology(cpu, "physical_package_id", &socket) ||
	    (run->by == STAT_BY_CORE && !read_topology(cpu, "core_id", &core)))
		return cli_fail("the kernel does not say to which %s CPU %d belongs: use -A",
				run->by == STAT_BY_CORE ? "core" : "socket", cpu);
	/* A machine without a firmware that knows its sockets has the number -1. */
	if (socket < 0)
		socket = 0;
	if (!read_topology(cpu, "die_id", &die) || die < 0)
		die = 0;
	if (run->by == STAT_BY_SOCKET)
		snprintf(name, 48, "S%d", socket);
	else
		snprintf(name, 48, "S%d-D%d-C%d", socket, die, core);
	return 0;
}

static int add_place(struct stat_run *run, pid_t pid, int cpu)
{
	struct stat_place *place;
	char name[48];

	if (!KB_ARRAY_ROOM(run->places, run->max_places, run->nr_places + 1))
		return cli_fail("out of memory");
	place = &run->places[run->nr_places++];
	place->pid = pid;
	place->cpu = cpu;
	return name_share(run, cpu, name) ?: find_share(run, name, &place->share);
}

/* Returns the number of words, or -EINVAL after a message: the kernel is not understood. */
static int read_online(uint64_t words[KB_CPU_WORDS])
{
	char online[4096];
	struct kb_error err;
	FILE *file;
	int nr;

	file = fopen("/sys/devices/system/cpu/online", "re");
	if (!file || !fgets(online, sizeof(online), file))
		snprintf(online, sizeof(online), "0-%ld", sysconf(_SC_NPROCESSORS_CONF) - 1);
	if (file)
		fclose(file);
	online[strcspn(online, "\n")] = '\0';
	nr = kb_cpulist_parse(words, online, KB_CPUS_MAX, &err);
	if (nr < 0)
		cli_fail("/sys/devices/system/cpu/online: %s", kb_error_text(&err));
	return nr;
}

static bool has_cpu(const uint64_t *words, int cpu)
{
	return words[cpu / 64] >> cpu % 64 & 1;
}

static int add_cpus(struct stat_run *run)
{
	uint64_t online[KB_CPU_WORDS] = { 0 }, chosen[KB_CPU_WORDS] = { 0 };
	const uint64_t *words = run->cpus_text ? chosen : online;
	struct kb_error err;
	int nr = read_online(online);

	if (nr < 0)
		return CLI_IMPOSSIBLE;
	if (run->cpus_text)
		nr = kb_cpulist_parse(chosen, run->cpus_text, KB_CPUS_MAX, &err);
	if (nr < 0)
		return cli_fail("-C %s", kb_error_text(&err));
	for (int cpu = 0; cpu < nr * 64; cpu++) {
		if (!has_cpu(words, cpu))
			continue;
		/* A later run goes on with the others. */
		if (!has_cpu(online, cpu) && !run->nr_done)
			return cli_fail("-C %s: CPU %d is not online", run->cpus_text, cpu);
		if (add_place(run, -1, cpu))
			return CLI_IMPOSSIBLE;
	}
	return 0;
}

/* Adds all threads: new children inherit the counters, existing threads do not. */
static int add_process(struct stat_run *run, uint32_t pid)
{
	char path[64];
	struct dirent *entry;
	DIR *threads;
	int ret = 0;

	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	threads = opendir(path);
	if (!threads)
		return cli_fail("-p: there is no process %u", pid);
	while (!ret && (entry = readdir(threads)))
		if (*entry->d_name != '.')
			ret = add_place(run, atoi(entry->d_name), -1);
	closedir(threads);
	return ret;
}

static int add_processes(struct stat_run *run)
{
	/* once, for all runs */
	int ret = run->processes.fd < 0 ? processes_watch(&run->processes) : 0;

	for (uint32_t i = 0; i < run->processes.nr && !ret; i++)
		ret = add_process(run, run->processes.pids[i]);
	return ret;
}

int stat_places(struct stat_run *run)
{
	run->nr_places = 0;
	for (size_t i = 0; i < run->nr_shares; i++)
		run->shares[i].nr_cpus = 0;
	if (run->pids_text)
		return add_processes(run);
	if (run->all || run->cpus_text)
		return add_cpus(run);
	return add_place(run, run->command.pid, -1);
}
