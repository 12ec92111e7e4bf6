// SPDX-License-Identifier: MIT
/*
 * What ordinary machines do beside sessions: calls have the same results and the same errors, other
 * tracers count what happened, and nothing of others is changed.
 *
 * Suspend is in suspend.c, guests of KVM in guests.c, LTTng and bpftrace in tracers.c. What all of
 * this costs is counted by scripts/bench-neighbours.
 */
#include <ftw.h>
#include <linux/bpf.h>

#include "ftrace.h"
#include "kprobes.h"
#include "neighbours.h"

#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	(300 * SLOWNESS)

#define ROUNDS		SLOWED(24)
#define AGAIN		"--end-at-once"

/* The program ends at once when a neighbour starts it again. */
static void __attribute__((constructor)) end_at_once(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], AGAIN))
		_exit(42);
}

/* What a call gave: 0 or errno. */
static int outcome(long result)
{
	return result < 0 ? errno : 0;
}

static int written_to(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), error;

	if (fd < 0)
		return errno;
	error = outcome(write(fd, text, strlen(text)));
	close(fd);
	return error;
}

/* The wait status of a program that ends at once, in the root @root unless NULL. */
static int run(const char *root, const char *program)
{
	pid_t child = fork();
	int status = -1;

	if (!child) {
		if (root && (chroot(root) || chdir("/")))
			_exit(1);
		execl(program, program, AGAIN, NULL);
		_exit(2);
	}
	waitpid(child, &status, 0);
	return status;
}

/* ---- CPUs, modules, probes that are switched off ---- */

static void cpus_go_and_come(FILE *to)
{
	char path[64];

	for (unsigned int round = 0; round < 2; round++)
		for (unsigned int cpu = 1; cpu < 4; cpu++) {
			snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/online", cpu);
			fprintf(to, "%u goes: %d\n", cpu, written_to(path, "0"));
			fprintf(to, "%u comes: %d\n", cpu, written_to(path, "1"));
		}
}

TEST_F(neighbours, cpus_go_and_come_as_without)
{
	sees_no_difference(_metadata, self, cpus_go_and_come);
}

/* How often each module is used, without ours, and without what a test may have in use itself. */
static void tell_modules(FILE *to)
{
	char line[512], name[64];
	unsigned long bytes;
	FILE *modules = fopen("/proc/modules", "re");
	int users;

	while (modules && fgets(line, sizeof(line), modules))
		if (sscanf(line, "%63s %lu %d", name, &bytes, &users) == 3 &&
		    strcmp(name, "kbarman"))
			fprintf(to, "%s has %d users\n", name, users);
	if (modules)
		fclose(modules);
}

/* minix.ko of this kernel, which is beside the programs if there is one. */
static int other_module = -1;

static void modules_come_and_go(FILE *to)
{
	fprintf(to, "modules\n");
	for (unsigned int round = 0; round < 4; round++) {
		tell_modules(to);
		if (other_module < 0)
			break;
		fprintf(to, "comes: %d\n", outcome(syscall(SYS_finit_module, other_module, "", 0)));
		tell_modules(to);
		fprintf(to, "goes: %d\n", outcome(syscall(SYS_delete_module, "minix", O_NONBLOCK)));
	}
}

TEST_F(neighbours, modules_come_and_go_as_without)
{
	other_module = open("minix.ko", O_RDONLY | O_CLOEXEC);
	sees_no_difference(_metadata, self, modules_come_and_go);
	if (other_module >= 0)
		close(other_module);
}

#define KPROBES_ON	"debug/kprobes/enabled"
#define FTRACE_ON	"/proc/sys/kernel/ftrace_enabled"

static void probes_are_switched(FILE *to)
{
	mkdir("debug", 0700);
	fprintf(to, "debugfs: %d\n", outcome(mount("none", "debug", "debugfs", 0, NULL)));
	for (unsigned int round = 0; round < 2; round++) {
		fprintf(to, "ftrace off: %d\n", written_to(FTRACE_ON, "0"));
		fprintf(to, "program: %d\n", run(NULL, "/proc/self/exe"));
		fprintf(to, "ftrace on: %d\n", written_to(FTRACE_ON, "1"));
		fprintf(to, "kprobes off: %d\n", written_to(KPROBES_ON, "0"));
		fprintf(to, "program: %d\n", run(NULL, "/proc/self/exe"));
		fprintf(to, "kprobes on: %d\n", written_to(KPROBES_ON, "1"));
	}
}

TEST_F(neighbours, ftrace_and_kprobes_are_switched_as_without)
{
	sees_no_difference(_metadata, self, probes_are_switched);
}

/* ---- file systems and containers ---- */

static int error_of_mount(const char *type, const char *to, const char *options)
{
	return outcome(mount("none", to, type, 0, options));
}

/* Code of a file is mapped and goes, and then the file system goes. */
static void mounts_come_and_go(FILE *to)
{
	void *code;
	int file;

	mkdir("m", 0700);
	for (unsigned int i = 0; i < ROUNDS; i++) {
		if (error_of_mount("tmpfs", "m", NULL))
			lost("no file system");
		write_program("m/program");
		file = open("m/program", O_RDONLY | O_CLOEXEC);
		code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
		fprintf(to, "unmapped: %d\n", outcome(munmap(code, 4096)));
		close(file);
		if (run(NULL, "m/program") != 42 << 8)
			lost("the program does not run");
		fprintf(to, "umount: %d\n", outcome(umount("m")));
	}
}

TEST_F(neighbours, mounts_come_and_go_as_without)
{
	sees_no_difference(_metadata, self, mounts_come_and_go);
}

/* overlay.ko of this kernel, which is beside the programs unless the kernel has it built in. */
static void load_overlay(void)
{
	int fd = open("overlay.ko", O_RDONLY | O_CLOEXEC);

	if (fd >= 0)
		syscall(SYS_finit_module, fd, "", 0);
	close(fd);
}

/* A root in which the program is, made of two folders. */
static bool overlay_comes(FILE *to)
{
	int error;

	mkdir("lower", 0700);
	mkdir("upper", 0700);
	mkdir("work", 0700);
	mkdir("root", 0700);
	write_program("lower/program");
	error = error_of_mount("overlay", "root", "lowerdir=lower,upperdir=upper,workdir=work");
	fprintf(to, "overlay: %d\n", error);
	return !error;
}

static void overlay_goes(FILE *to)
{
	fprintf(to, "umount: %d\n", outcome(umount("root")));
	fprintf(to, "rm: %d\n", outcome(unlink("lower/program")));
}

static void chroots_come_and_go(FILE *to)
{
	for (unsigned int i = 0; i < ROUNDS && overlay_comes(to); i++) {
		if (run("root", "/program") != 42 << 8)
			lost("the program does not run");
		fprintf(to, "change: %d\n", outcome(chmod("root/program", 0500)));
		if (run("root", "/program") != 42 << 8)
			lost("the changed program does not run");
		overlay_goes(to);
	}
}

TEST_F(neighbours, chroots_on_overlays_come_and_go_as_without)
{
	load_overlay();
	sees_no_difference(_metadata, self, chroots_come_and_go);
}

/* The first process of a container: it runs programs, and leaves one that waits for ever. */
static void __attribute__((noreturn)) live_as_init(void)
{
	if (chroot("root") || chdir("/"))
		_exit(1);
	for (unsigned int i = 0; i < 4; i++)
		if (run(NULL, "/program") != 42 << 8)
			_exit(2);
	if (!fork())
		for (;;)
			pause();
	_exit(43);
}

static int container(void)
{
	pid_t child = fork();
	int status = -1;

	if (child) {
		waitpid(child, &status, 0);
		return status;
	}
	if (unshare(CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC))
		_exit(errno);
	child = fork();
	if (!child)
		live_as_init();
	waitpid(child, &status, 0);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

static void containers_end(FILE *to)
{
	for (unsigned int i = 0; i < ROUNDS && overlay_comes(to); i++) {
		if (container() != 43 << 8)
			lost("the container did not come to its end");
		overlay_goes(to);
	}
}

TEST_F(neighbours, containers_end_as_without)
{
	load_overlay();
	sees_no_difference(_metadata, self, containers_end);
}

/* ---- other tracers of the same places ---- */

/* A count, and how often this thread was switched away at that moment. */
static long counted(uint64_t (*count)(int fd), int fd, uint64_t *value)
{
	long before;

	do {
		before = switches();
		*value = count(fd);
	} while (switches() != before);
	return before;
}

/* By how many a count of this thread's switches is off while it has many of them. */
static long off_by(uint64_t (*count)(int fd), int fd)
{
	struct echo e = echo_create(0);
	uint64_t first, last;
	long before = counted(count, fd, &first), after;

	echo_rounds(&e, 200);
	after = counted(count, fd, &last);
	echo_destroy(&e);
	if (after <= before)
		lost("there were no switches");
	return (long)(last - first) - (after - before);
}

static int task_counter(uint32_t type, uint64_t config)
{
	struct perf_event_attr attr = { .type = type, .size = sizeof(attr), .config = config,
					.read_format = COUNTER_READING };

	return syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static void perf_counts(FILE *to)
{
	const struct {
		const char *name;
		uint32_t type;
		uint64_t config;
	} events[] = {
		{ "switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES },
		{ "sched_switch", PERF_TYPE_TRACEPOINT, tracepoint_id("sched/sched_switch") },
	};
	int fd;

	pin(0);
	for (unsigned int i = 0; i < 2; i++) {
		fd = task_counter(events[i].type, events[i].config);
		if (fd < 0)
			fprintf(to, "%s: errno %d\n", events[i].name, errno);
		else
			fprintf(to, "%s: off by %ld\n", events[i].name, off_by(counter_now, fd));
		close(fd);
	}
	fd = task_counter(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES);
	fprintf(to, "cycles: errno %d\n", outcome(fd));
	close(fd);
}

TEST_F(neighbours, perf_counts_what_it_counts_without)
{
	sees_no_difference(_metadata, self, perf_counts);
}

static struct ftrace_field prev_pid;
static unsigned int switch_event;

static void take_switch(void *to, const uint8_t *bytes)
{
	uint16_t number;

	memcpy(&number, bytes, sizeof(number));
	*(long *)to += number == switch_event && ftrace_value(bytes, prev_pid) == thread_id();
}

/* False if there was a switch just when the tracer was switched on or off. */
static bool traced(const struct echo *e, long *off)
{
	long before = switches(), after, seen = 0;
	bool sure;

	ftrace_set("tracing_on", "1");
	sure = switches() == before;
	echo_rounds(e, 200);
	after = switches();
	ftrace_set("tracing_on", "0");
	sure = sure && switches() == after;
	ftrace_read(0, take_switch, &seen);
	*off = seen - (after - before);
	return sure;
}

static void ftrace_traces(FILE *to)
{
	struct echo e;
	long off;

	if (!ftrace_begin(4096)) {
		fprintf(to, "no ftrace\n");
		return;
	}
	pin(0);
	switch_event = ftrace_id("sched/sched_switch");
	prev_pid = ftrace_field("sched/sched_switch", "prev_pid");
	ftrace_set("events/sched/sched_switch/enable", "1");
	e = echo_create(0);
	while (!traced(&e, &off))
		;
	echo_destroy(&e);
	fprintf(to, "ftrace: off by %ld, lost %llu\n", off, (unsigned long long)ftrace_lost(0));
	ftrace_set("events/enable", "0");
	ftrace_end();
}

TEST_F(neighbours, ftrace_traces_what_it_traces_without)
{
	sees_no_difference(_metadata, self, ftrace_traces);
}

static long bpf(unsigned int command, union bpf_attr *attr)
{
	return syscall(SYS_bpf, command, attr, sizeof(*attr));
}

static uint64_t bpf_count(int map)
{
	uint32_t key = 0;
	uint64_t value = 0;
	union bpf_attr attr = { .map_fd = map, .key = (uintptr_t)&key,
				.value = (uintptr_t)&value };

	if (bpf(BPF_MAP_LOOKUP_ELEM, &attr))
		lost("the program's count can't be read");
	return value;
}

/* A program of BPF at sched_switch adds to the one value of @map what this thread does. */
static int bpf_at_switches(int map)
{
#define INSN(code_, dst, src, off_, imm_)	\
	{ .code = (code_), .dst_reg = (dst), .src_reg = (src), .off = (off_), .imm = (imm_) }
	const struct bpf_insn program[] = {
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_get_current_pid_tgid),
		INSN(BPF_ALU | BPF_MOV | BPF_X, 0, 0, 0, 0),	/* its lower half */
		INSN(BPF_JMP | BPF_JNE | BPF_K, 0, 0, 9, thread_id()),
		INSN(BPF_ST | BPF_MEM | BPF_W, 10, 0, -4, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_X, 2, 10, 0, 0),
		INSN(BPF_ALU64 | BPF_ADD | BPF_K, 2, 0, 0, -4),
		INSN(BPF_LD | BPF_DW | BPF_IMM, 1, BPF_PSEUDO_MAP_FD, 0, map), INSN(0, 0, 0, 0, 0),
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_map_lookup_elem),
		INSN(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 2, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 1, 0, 0, 1),
		INSN(BPF_STX | BPF_XADD | BPF_DW, 0, 1, 0, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
	union bpf_attr load = {
		.prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT, .insns = (uintptr_t)program,
		.insn_cnt = sizeof(program) / sizeof(*program), .license = (uintptr_t)"GPL" };
	union bpf_attr attach = { .raw_tracepoint.name = (uintptr_t)"sched_switch" };
	int fd = bpf(BPF_PROG_LOAD, &load);

	if (fd < 0)
		return fd;
	attach.raw_tracepoint.prog_fd = fd;
	return bpf(BPF_RAW_TRACEPOINT_OPEN, &attach);
}

static void bpf_counts(FILE *to)
{
	union bpf_attr attr = { .map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 8,
				.max_entries = 1 };
	int map = bpf(BPF_MAP_CREATE, &attr), program = map < 0 ? -1 : bpf_at_switches(map);

	if (program < 0) {
		fprintf(to, "no BPF: %d\n", errno);
		return;
	}
	pin(0);
	fprintf(to, "BPF: off by %ld\n", off_by(bpf_count, map));
}

TEST_F(neighbours, a_bpf_program_counts_what_it_counts_without)
{
	sees_no_difference(_metadata, self, bpf_counts);
}

/* Calls of @function in this task while it maps and moves, by a probe of its own. */
static void tell_calls(FILE *to, const char *function)
{
	char *room = mmap(NULL, 2 * 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int exe = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), fd;
	char command[64];
	int error;

	snprintf(command, sizeof(command), "p:kbarman_test/neighbour %s", function);
	error = kprobe_command(command);
	fprintf(to, "probe of %s: %d\n", function, error);
	if (error)
		return;
	fd = task_counter(PERF_TYPE_TRACEPOINT, tracepoint_id("kbarman_test/neighbour"));
	for (unsigned int i = 0; fd >= 0 && i < 100; i++) {
		void *code = mmap(NULL, 65536, PROT_READ | PROT_EXEC, MAP_PRIVATE, exe, 0);

		code = mremap(code, 65536, 65536, MREMAP_MAYMOVE | MREMAP_FIXED, room);
		munmap(code, 65536);
	}
	fprintf(to, "calls: %lld\n", fd < 0 ? -1LL : (long long)counter_now(fd));
	close(fd);
	close(exe);
	fprintf(to, "probe goes: %d\n", kprobe_command("-:kbarman_test/neighbour"));
}

static void kprobes_count(FILE *to)
{
	/* to mount it */
	tracepoint_id("sched/sched_switch");
	tell_calls(to, "perf_event_mmap");
	tell_calls(to, "copy_vma");
}

TEST_F(neighbours, kprobes_count_what_they_count_without)
{
	sees_no_difference(_metadata, self, kprobes_count);
}

/* ---- memory, settings, other tasks ---- */

/* It maps, forks and runs in a cgroup where that fits, with little to spare. */
static void live_in_a_cgroup(FILE *to)
{
	char self[16], *memory;
	pid_t child;
	int status;

	mkdir("cg", 0700);
	if (mount("none", "cg", "cgroup2", 0, NULL) ||
	    written_to("cg/cgroup.subtree_control", "+memory")) {
		fprintf(to, "no cgroups of memory\n");
		return;
	}
	mkdir("cg/kbarman_test", 0700);
	fprintf(to, "limit: %d\n", written_to("cg/kbarman_test/memory.max", "24M"));
	child = fork();
	if (!child) {
		snprintf(self, sizeof(self), "%d", getpid());
		if (written_to("cg/kbarman_test/cgroup.procs", self))
			_exit(3);
		memory = mmap(NULL, 16 * MIB, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (memory == MAP_FAILED)
			_exit(4);
		memset(memory, 1, 16 * MIB);
		for (unsigned int i = 0; i < ROUNDS; i++)
			if (run(NULL, "/proc/self/exe") != 42 << 8)
				_exit(5);
		_exit(0);
	}
	waitpid(child, &status, 0);
	fprintf(to, "status: %x\n", status);
	/* What is charged to it may go a moment later than the process. */
	while (rmdir("cg/kbarman_test"))
		if (errno != EBUSY) {
			fprintf(to, "rmdir: %d\n", errno);
			break;
		}
}

TEST_F(neighbours, memory_of_a_cgroup_suffices_as_without)
{
	sees_no_difference(_metadata, self, live_in_a_cgroup);
}

static FILE *settings_to;

/* Linux itself changes these. */
static bool changes_by_itself(const char *path)
{
	static const char *const names[] = { "/random/", "/ns_last_pid", "/pty/nr", "/stat_refresh",
					     "/perf_event_max_sample_rate" };

	for (unsigned int i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strstr(path, names[i]))
			return true;
	return false;
}

static int tell_setting(const char *path, const struct stat *file, int type, struct FTW *unused)
{
	char value[4096];
	ssize_t got;
	int fd;

	(void)unused;
	if (type != FTW_F || !(file->st_mode & 0444) || changes_by_itself(path))
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	got = fd < 0 ? -1 : read(fd, value, sizeof(value) - 1);
	close(fd);
	if (got > 0) {
		value[got] = 0;
		for (char *at = value; (at = strchr(at, '\n'));)
			*at = ' ';
		fprintf(settings_to, "%s: %s\n", path, value);
	}
	return 0;
}

static void tell_settings(FILE *to)
{
	settings_to = to;
	nftw("/proc/sys/kernel", tell_setting, 16, FTW_PHYS);
	nftw("/proc/sys/vm", tell_setting, 16, FTW_PHYS);
}

TEST_F(neighbours, settings_are_what_they_are_without)
{
	char *alone = said_by(tell_settings), *said;

	sees_no_difference(_metadata, self, tell_settings);
	said = said_by(tell_settings);
	expect_same(_metadata, alone, said);
	free(said);
	free(alone);
}

static pid_t bystander;

static void tell_file(FILE *to, const char *name)
{
	char path[64], line[1024];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/%s", bystander, name);
	file = fopen(path, "re");
	/* These are what it does itself, or of all tasks of a user, or counted late. */
	while (file && fgets(line, sizeof(line), file))
		if (!strstr(line, "ctxt_switches") && strncmp(line, "SigQ", 4) &&
		    strncmp(line, "Rss", 3) && strncmp(line, "VmRSS", 5) &&
		    strncmp(line, "VmHWM", 5) && strncmp(line, "VmPeak", 6) &&
		    strncmp(line, "State", 5))
			fputs(line, to);
	if (file)
		fclose(file);
}

static void tell_bystander(FILE *to)
{
	char path[64], link[256];
	struct sched_param priority;
	cpu_set_t cpus;

	tell_file(to, "status");
	tell_file(to, "maps");
	tell_file(to, "limits");
	tell_file(to, "oom_score_adj");
	tell_file(to, "timerslack_ns");
	tell_file(to, "cgroup");
	for (unsigned int fd = 0; fd < 64; fd++) {
		ssize_t length;

		snprintf(path, sizeof(path), "/proc/%d/fd/%u", bystander, fd);
		length = readlink(path, link, sizeof(link));
		if (length > 0)
			fprintf(to, "%u is %.*s\n", fd, (int)length, link);
	}
	sched_getaffinity(bystander, sizeof(cpus), &cpus);
	sched_getparam(bystander, &priority);
	fprintf(to, "%d CPUs, policy %d, priority %d, nice %d\n", CPU_COUNT(&cpus),
		sched_getscheduler(bystander), priority.sched_priority,
		getpriority(PRIO_PROCESS, bystander));
	fprintf(to, "it is there: %d\n", waitpid(bystander, NULL, WNOHANG));
}

/* It is recorded while it answers; its parent sees no other child, and it no signal. */
TEST_F(neighbours, tasks_of_others_are_left_as_they_are)
{
	char *alone, *said;
	struct echo e;

	e = echo_create(0);
	bystander = e.echo;
	ASSERT_EQ(0, setpriority(PRIO_PROCESS, bystander, 5));
	/* Its stack and what it reads lazily are there. */
	echo_rounds(&e, 100);
	alone = said_by(tell_bystander);
	EXPECT_NE(NULL, strstr(alone, "nice 5"));
	sessions_begin(self);
	echo_rounds(&e, 500);
	said = said_by(tell_bystander);
	expect_same(_metadata, alone, said);
	free(said);
	sessions_end(_metadata, self);
	echo_rounds(&e, 100);
	said = said_by(tell_bystander);
	expect_same(_metadata, alone, said);
	free(said);
	free(alone);
	echo_destroy(&e);
}

TEST_HARNESS_MAIN
