// SPDX-License-Identifier: MIT
/*
 * kbarman doctor: checks everything that a recording needs and prints one line for each check. If
 * something is missing, the line says how to fix it. Each check is a function in one table. Checks
 * read files and query the device, and change nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <zlib.h>

#include <kbarman/device.h>
#include <kbarman/version.h>

#include "base/array.h"
#include "base/text/utf8.h"
#include "cli/base/cli.h"
#include "cli/base/fact_lines.h"
#include "cli/base/sandbox.h"
#include "cli/session/sessions.h"
#include "cli/session/sources.h"

#define DISK_LOW	(256ULL << 20)
#define LOW_RATE	1000		/* samples a second: what record takes by itself */
#define CAP_SYS_ADMIN	21
#define CAP_SYSLOG	34
#define CAP_PERFMON	38

enum { OPTION_ROOT = 256 };

static const struct cli_option options[] = {
	{ OPTION_ROOT, "root", "DIR", "read the files of /proc, /sys, /boot and /lib below DIR" },
	{ 'o', "output", "DIR",
	  "write to DIR, as record would: can it be done? (default: this folder)" },
	CLI_COLOR_OPTION,
	{ 'j', "json", NULL, "print JSON, one object per line" },
	{ 0 },
};

static const struct cli_usage usage = {
	.head =
	"usage: kbarman doctor [OPTIONS]\n"
	"\n"
	"Check everything that recording needs. Print what is missing and how to fix it.\n"
	"\n",
	.options = options,
	.column = 19,
	.tail =
	"\n"
	"Exit status: 0 recording works; 1 recording does not work.\n",
};

enum verdict {
	GOOD,
	WORSE,		/* recording works, but something will be missing */
	BAD,		/* no recording */
};

struct doctor {
	const char *root, *output;
	struct utsname system;
	struct kb_device *device;	/* NULL: could not be opened; @error says why */
	struct kb_error error;
	struct kbarman_query query;
	uint64_t capabilities;		/* effective */
	/* The result of a check. */
	char found[512], fix[512];
};

/* ---- files that checks read ---- */

/* Reads the beginning of a file as text. False: the file can't be read. */
static bool read_text(const struct doctor *doctor, const char *path, char *text, size_t size)
{
	char full[PATH_MAX];
	ssize_t length;
	int fd;

	if (snprintf(full, sizeof(full), "%s%s", doctor->root, path) >= (int)sizeof(full))
		return false;
	fd = open(full, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	length = read(fd, text, size - 1);
	close(fd);
	if (length < 0)
		return false;
	text[length] = '\0';
	return true;
}

static bool read_number(const struct doctor *doctor, const char *path, long *number)
{
	char text[64], *end;

	if (!read_text(doctor, path, text, sizeof(text)))
		return false;
	*number = strtol(text, &end, 10);
	return end != text;
}

static bool is_there(const struct doctor *doctor, const char *path)
{
	char full[PATH_MAX];

	return snprintf(full, sizeof(full), "%s%s", doctor->root, path) < (int)sizeof(full) &&
	       access(full, F_OK) == 0;
}

/*
 * CONFIG_NAME of the running kernel: 'y', 'm' or 'n'; 0: unknown. gzopen() also reads plain files.
 */
static char kernel_config(const struct doctor *doctor, const char *name)
{
	const char *const places[] = { "/proc/config.gz", "/boot/config-", "/lib/modules/" };
	char path[PATH_MAX], line[512];
	size_t length = strlen(name);

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		gzFile file;
		char value = 'n';

		snprintf(path, sizeof(path), "%s%s%s%s", doctor->root, places[i],
			 i ? doctor->system.release : "", i == 2 ? "/config" : "");
		file = gzopen(path, "r");
		if (!file)
			continue;
		while (gzgets(file, line, sizeof(line)))
			if (!strncmp(line, name, length) && line[length] == '=')
				value = line[length + 1];
		gzclose(file);
		return value;
	}
	return 0;
}

/* Names of files and devices must not control the terminal. */
static void show(char *text)
{
	text[kb_utf8_shown(text, text, strlen(text))] = '\0';
}

__attribute__((format(printf, 3, 4)))
static enum verdict say(struct doctor *doctor, enum verdict verdict, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(doctor->found, sizeof(doctor->found), format, args);
	va_end(args);
	show(doctor->found);
	return verdict;
}

__attribute__((format(printf, 2, 3)))
static void advise(struct doctor *doctor, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(doctor->fix, sizeof(doctor->fix), format, args);
	va_end(args);
	show(doctor->fix);
}

static bool may(const struct doctor *doctor, unsigned int capability)
{
	return doctor->capabilities >> capability & 1;
}

/* ---- the checks ---- */

#define RELEASE		65	/* of a kernel, as uname(2) has it */

/* The kernel that the module in file @path was built for. False: the file does not say it. */
static bool built_for(const char *path, char release[RELEASE])
{
	static const char key[] = "vermagic=";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t size = 0, length, left;
	const char *file, *found = NULL;
	struct stat st;

	if (fd < 0)
		return false;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode))
		size = (size_t)st.st_size;
	file = size ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
	close(fd);
	if (file == MAP_FAILED)
		return false;
	found = memmem(file, size, key, sizeof(key) - 1);
	if (found) {
		found += sizeof(key) - 1;
		left = size - (size_t)(found - file);
		for (length = 0; length < RELEASE - 1 && length < left && found[length] > ' ';)
			length++;
		memcpy(release, found, length);
		release[length] = '\0';
	}
	munmap((void *)file, size);
	return found;
}

/*
 * Finds the module that is built but not loaded: beside this tool, as 'make' leaves it, or where
 * packages put it. Of several it is one for this kernel.
 */
static bool find_module(const struct doctor *doctor, char path[PATH_MAX], char release[RELEASE])
{
	static const char *const folders[] = { "updates/dkms", "updates", "extra" };
	char other[PATH_MAX + 32], built[RELEASE];
	bool found = false;

	for (size_t i = 0; i <= ARRAY_SIZE(folders); i++) {
		if (i) {
			snprintf(other, sizeof(other), "%s/lib/modules/%s/%s/kbarman.ko", doctor->root,
				 doctor->system.release, folders[i - 1]);
		} else {
			ssize_t length = readlink("/proc/self/exe", other, PATH_MAX);
			char *slash = length > 0 ? memrchr(other, '/', (size_t)length) : NULL;

			if (!slash)
				continue;
			strcpy(slash, "/kbarman.ko");
		}
		if (strlen(other) >= PATH_MAX || !built_for(other, built))
			continue;
		strcpy(path, other);
		strcpy(release, built);
		found = true;
		if (!strcmp(release, doctor->system.release))
			break;
	}
	return found;
}

static enum verdict not_loaded(struct doctor *doctor)
{
	char path[PATH_MAX], release[RELEASE];

	if (!find_module(doctor, path, release)) {
		advise(doctor, "load it: 'modprobe kbarman', or 'insmod kbarman.ko', as root");
		return say(doctor, BAD, "not loaded");
	}
	if (!strcmp(release, doctor->system.release)) {
		advise(doctor, "load it: 'insmod %.400s', as root", path);
		return say(doctor, BAD, "not loaded");
	}
	advise(doctor, "build it anew, with the headers of this kernel: 'make module', or "
	       "'dkms autoinstall'; then load it, by 'insmod' or 'modprobe kbarman'");
	return say(doctor, BAD, "not loaded; %.200s is for the kernel %s, and this one is %s", path,
		   release, doctor->system.release);
}

static enum verdict check_module(struct doctor *doctor)
{
	char version[32] = "";

	if (!is_there(doctor, "/sys/module/kbarman"))
		return not_loaded(doctor);
	read_text(doctor, "/sys/module/kbarman/version", version, sizeof(version));
	version[strcspn(version, "\n")] = '\0';
	if (strcmp(version, kb_version())) {
		advise(doctor, "build and load the module of this tool's release");
		return say(doctor, WORSE, "version %s, and this tool is %s",
			   *version ? version : "unknown", kb_version());
	}
	return say(doctor, GOOD, "loaded, version %s", version);
}

/* The current level of lockdown; "": the kernel has no lockdown. */
static const char *lockdown_level(const struct doctor *doctor)
{
	char text[128];

	if (!read_text(doctor, "/sys/kernel/security/lockdown", text, sizeof(text)))
		return "";
	return strstr(text, "[confidentiality]") ? "confidentiality" :
	       strstr(text, "[integrity]") ? "integrity" : "none";
}

/*
 * Would the kernel take an unsigned module? sig_enforce forbids it. Each level of lockdown forbids
 * it too, although sig_enforce stays N.
 */
static enum verdict check_signature(struct doctor *doctor)
{
	const char *level = lockdown_level(doctor);
	bool locked = *level && strcmp(level, "none");
	char text[16] = "";

	if (is_there(doctor, "/sys/module/kbarman"))
		return say(doctor, GOOD, "the kernel has loaded the module");
	read_text(doctor, "/sys/module/module/parameters/sig_enforce", text, sizeof(text));
	if (*text == 'Y' || locked) {
		advise(doctor, "sign it with a key that the kernel knows: 'scripts/sign-file sha256 KEY "
		       "CERT kbarman.ko' of the kernel's headers; kbarman-secureboot(7) says how");
		return say(doctor, WORSE, "the kernel takes only signed modules (%s%s)",
			   locked ? "lockdown=" : "sig_enforce", locked ? level : "");
	}
	return say(doctor, GOOD, "the kernel takes unsigned modules");
}

static enum verdict check_lockdown(struct doctor *doctor)
{
	const char *level = lockdown_level(doctor);

	if (!*level)
		return say(doctor, GOOD, "this kernel has none, or you may not read its state");
	if (!strcmp(level, "confidentiality")) {
		advise(doctor, "boot without lockdown=confidentiality: this level forbids tracing");
		return say(doctor, BAD, "confidentiality");
	}
	return say(doctor, GOOD, "%s", level);
}

static enum verdict check_device(struct doctor *doctor)
{
	if (!doctor->device) {
		advise(doctor, "%s", kb_error_text(&doctor->error));
		return say(doctor, BAD, "%s can't be used", KBARMAN_DEVICE);
	}
	return say(doctor, GOOD, "%s, version %u of the ABI", KBARMAN_DEVICE, doctor->query.abi);
}

static enum verdict check_permission(struct doctor *doctor)
{
	if (!may(doctor, CAP_PERFMON) && !may(doctor, CAP_SYS_ADMIN)) {
		advise(doctor, "run as root; or run 'setcap cap_perfmon,cap_syslog+ep kbarman' and "
		       "give your group access to the device with a udev rule");
		return say(doctor, BAD, "you have neither CAP_PERFMON nor CAP_SYS_ADMIN");
	}
	if (!may(doctor, CAP_SYSLOG)) {
		advise(doctor, "record with CAP_SYSLOG as well, or as root");
		return say(doctor, WORSE, "without CAP_SYSLOG kernel addresses are not recorded");
	}
	return say(doctor, GOOD, "you may record everything, including the kernel");
}

static enum verdict check_session(struct doctor *doctor)
{
	struct sessions sessions = { 0 };
	char all[160] = "", who[64];
	size_t length = 0;
	unsigned int nr = 0;

	if (!doctor->device)
		return say(doctor, GOOD, "none");
	if (sessions_read(&sessions, doctor->device, NULL))
		return say(doctor, GOOD, "the module is older than this tool and can't tell");
	for (uint32_t i = 0; i < sessions.nr; i++) {
		if (!(sessions.list[i].state & KBARMAN_STATE_OWNED))
			continue;
		session_who(&sessions.list[i], who, sizeof(who));
		if (length < sizeof(all))
			length += (size_t)snprintf(all + length, sizeof(all) - length, "%s%s",
						   nr ? ", " : "", who);
		nr++;
	}
	if (!nr)
		return say(doctor, GOOD, "no other program is recording");
	if (nr >= sessions.most) {
		advise(doctor, "wait until one of them ends ('kbarman list --sessions'), or allow "
		       "more in /sys/module/kbarman/parameters/sessions");
		return say(doctor, BAD, "as many programs record as may: %s", all);
	}
	return say(doctor, GOOD, "other programs record, too, which does not disturb you: %s", all);
}

static enum verdict check_pmu(struct doctor *doctor)
{
	if (doctor->device && doctor->query.features & KBARMAN_FEATURE_PMU)
		return say(doctor, GOOD, "%s", doctor->query.pmu_name);
	if (!doctor->device && (is_there(doctor, "/sys/bus/event_source/devices/cpu") ||
				is_there(doctor, "/sys/bus/event_source/devices/armv8_pmuv3_0") ||
				is_there(doctor, "/sys/bus/event_source/devices/armv8_pmuv3")))
		return say(doctor, GOOD, "the kernel has one");
	advise(doctor, "sample by cpu-clock, which is the default without a PMU; in a virtual "
	       "machine, let the host pass its PMU to the guest");
	return say(doctor, WORSE, "the kernel knows none");
}

static enum verdict check_kptr(struct doctor *doctor)
{
	long restricted;

	if (!read_number(doctor, "/proc/sys/kernel/kptr_restrict", &restricted))
		return say(doctor, GOOD, "this kernel has no kptr_restrict");
	if (restricted >= 2 || (restricted == 1 && !may(doctor, CAP_SYSLOG))) {
		advise(doctor, "'sysctl kernel.kptr_restrict=%d'%s", restricted >= 2 ? 1 : 0,
		       restricted >= 2 ? "" : ", or record as root");
		return say(doctor, WORSE, "kptr_restrict is %ld: kernel functions have no names",
			   restricted);
	}
	return say(doctor, GOOD, "kptr_restrict is %ld", restricted);
}

/* Distributions strip programs and libraries; a server or packages have their names. */
static enum verdict check_names(struct doctor *doctor)
{
	const char *urls = getenv("DEBUGINFOD_URLS");

	if (urls && *urls)
		return say(doctor, GOOD, "DEBUGINFOD_URLS is set");
	if (is_there(doctor, "/usr/lib/debug/.build-id"))
		return say(doctor, GOOD, "/usr/lib/debug has debug symbols");
	advise(doctor, "install the debug symbols that 'kbarman report' tells, such as libc6-dbg, "
	       "or set DEBUGINFOD_URLS (Debian: https://debuginfod.debian.net)");
	return say(doctor, WORSE, "no debug symbols: functions of stripped files are named by their "
		   "place, FILE+0xADDRESS");
}

static enum verdict check_paranoid(struct doctor *doctor)
{
	long level, rate;

	if (!read_number(doctor, "/proc/sys/kernel/perf_event_paranoid", &level)) {
		advise(doctor, "boot a kernel with CONFIG_PERF_EVENTS");
		return say(doctor, BAD, "this kernel has no perf events: nothing can be sampled");
	}
	if (read_number(doctor, "/proc/sys/kernel/perf_event_max_sample_rate", &rate) &&
	    rate < LOW_RATE) {
		advise(doctor, "sysctl kernel.perf_event_max_sample_rate=100000: Linux lowers it for "
		       "all programs when handlers of samples take long, and never raises it again");
		return say(doctor, WORSE, "no more than %ld samples a second are allowed", rate);
	}
	return say(doctor, GOOD, "perf_event_paranoid is %ld, recording does not depend on it",
		   level);
}

static enum verdict check_clock(struct doctor *doctor)
{
	char source[64] = "unknown";

	read_text(doctor, "/sys/devices/system/clocksource/clocksource0/current_clocksource", source,
		  sizeof(source));
	source[strcspn(source, "\n")] = '\0';
	if (doctor->device && !(doctor->query.features & KBARMAN_FEATURE_RAW_CLOCK)) {
		advise(doctor, "if you know that the counter (TSC) is reliable, boot with "
		       "tsc=reliable: each record then costs less");
		return say(doctor, WORSE, "the kernel does not trust the CPUs' counter; its clock "
			   "%s is used", source);
	}
	if (doctor->device)
		return say(doctor, GOOD, "the CPUs' counter, %.3f MHz",
			   (double)doctor->query.clock_hz / 1e6);
	return say(doctor, GOOD, "the kernel uses %s", source);
}

/* What the kernel lacks, as far as it fits into @text. */
static void name_absent(uint32_t absent, char *text, size_t size)
{
	const struct kb_source_word *source;
	size_t used = 0;

	if (absent & KBARMAN_ABSENT_TASKS)
		used = (size_t)snprintf(text, size, "one of sched_process_fork, _exec, _exit, _free and "
					"task_rename: nothing can be recorded");
	for (size_t i = 0; (source = kb_source_word(i)); i++)
		if (source->tracepoint && absent & source->bit && used < size)
			used += (size_t)snprintf(text + used, size - used, "%s%s (no %s)",
						 used ? ", " : "", source->tracepoint, source->what);
}

/* The module finds tracepoints by their names. */
static enum verdict check_tracepoints(struct doctor *doctor)
{
	uint32_t all = KBARMAN_SOURCE_SCHED | KBARMAN_SOURCE_IDLE | KBARMAN_SOURCE_DETAILS;
	char missing[448] = "", words[SOURCES_TEXT];

	if (!doctor->device)
		return say(doctor, GOOD, "unknown without the device");
	if (doctor->query.absent) {
		name_absent(doctor->query.absent, missing, sizeof(missing));
		advise(doctor, "boot a kernel with CONFIG_TRACEPOINTS; if this one has it, load a later "
		       "release of the module");
		return say(doctor, doctor->query.absent & KBARMAN_ABSENT_TASKS ? BAD : WORSE,
			   "the kernel lacks %s", missing);
	}
	if (!(doctor->query.features & KBARMAN_FEATURE_DETAILS)) {
		advise(doctor, "load the module of this version: without it record has no --latency");
		return say(doctor, WORSE, "the module is too old for %s",
			   sources_text(KBARMAN_SOURCE_DETAILS, ", ", words));
	}
	return say(doctor, GOOD, "the module has found all of them, for %s",
		   sources_text(all, ", ", words));
}

static enum verdict check_chains(struct doctor *doctor)
{
	uint32_t has = doctor->query.features;
	const char *user = has & KBARMAN_FEATURE_CHAIN_STACK ?
			   has & KBARMAN_FEATURE_CHAIN_USER ? "unwind tables or frame pointers" :
			   "unwind tables" : "frame pointers";

	if (!doctor->device)
		return say(doctor, GOOD, "unknown without the device");
	if (has & (KBARMAN_FEATURE_CHAIN_STACK | KBARMAN_FEATURE_CHAIN_USER))
		return say(doctor, GOOD, "of user code by %s%s", user,
			   has & KBARMAN_FEATURE_CHAIN_KERNEL ? ", and of the kernel" : "");
	if (has & KBARMAN_FEATURE_CHAIN_KERNEL) {
		advise(doctor, "give -gkernel: the module knows no user code of this architecture");
		return say(doctor, WORSE, "of the kernel only");
	}
	advise(doctor, "leave out -g: the module knows no call chains of this architecture");
	return say(doctor, WORSE, "none");
}

static enum verdict check_maps(struct doctor *doctor)
{
	if (!doctor->device)
		return say(doctor, GOOD, "unknown without the device");
	if (doctor->query.features & KBARMAN_FEATURE_MAPS)
		return say(doctor, GOOD, "new ones are recorded");
	if (doctor->query.features & KBARMAN_FEATURE_MAPS_MADE) {
		advise(doctor, "boot a kernel in which copy_vma() takes a kprobe; without it "
		       "samples in code that mremap(2) has moved have no image");
		return say(doctor, WORSE, "new ones are recorded, except what mremap(2) moves");
	}
	advise(doctor, "switch kprobes on (sysctl kernel.ftrace_enabled=1, and 1 into "
	       "/sys/kernel/debug/kprobes/enabled), or boot a kernel with CONFIG_KPROBES, in "
	       "which perf_event_mmap() takes a kprobe; without it code that programs load "
	       "after the start has no image");
	return say(doctor, WORSE, "only those that exist when the recording starts are recorded");
}

static enum verdict check_config(struct doctor *doctor)
{
	static const struct {
		const char *name;
		bool needed;
	} settings[] = {
		{ "CONFIG_TRACEPOINTS", true },	{ "CONFIG_PERF_EVENTS", true },
		{ "CONFIG_MODULES", true },	{ "CONFIG_KPROBES", false },
		{ "CONFIG_CPU_IDLE", false },	{ "CONFIG_KALLSYMS_ALL", false },
	};
	char missing[128] = "";
	enum verdict verdict = GOOD;
	size_t used = 0;

	if (!kernel_config(doctor, "CONFIG_MODULES"))
		return say(doctor, GOOD, "not found (/proc/config.gz, /boot/config-%s)",
			   doctor->system.release);
	for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
		if (kernel_config(doctor, settings[i].name) != 'n')
			continue;
		used += (size_t)snprintf(missing + used, sizeof(missing) - used, " %s",
					 settings[i].name);
		if (settings[i].needed)
			verdict = BAD;
		else if (verdict == GOOD)
			verdict = WORSE;
	}
	if (verdict == GOOD)
		return say(doctor, GOOD, "all useful options are set");
	advise(doctor, "boot a kernel with%s", missing);
	return say(doctor, verdict, "not set:%s", missing);
}

static enum verdict check_headers(struct doctor *doctor)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "/lib/modules/%s/build/Makefile", doctor->system.release);
	if (is_there(doctor, path))
		return say(doctor, GOOD, "installed: the module can be built here%s",
			   kernel_config(doctor, "CONFIG_CC_IS_CLANG") == 'y' ?
			   ", by 'make LLVM=1', because clang has built this kernel" : "");
	if (is_there(doctor, "/sys/module/kbarman"))
		return say(doctor, GOOD, "not installed, not needed: the module is loaded");
	advise(doctor, "'apt-get install linux-headers-%.100s' where you build the module",
	       doctor->system.release);
	return say(doctor, WORSE, "none for %.100s", doctor->system.release);
}

/* The sandbox, which protects against malicious files. */
static enum verdict check_sandbox(struct doctor *doctor)
{
	bool seccomp;
	int landlock;

	cli_sandbox_features(&seccomp, &landlock);
	if (seccomp && landlock)
		return say(doctor, GOOD, "seccomp and Landlock %d confine the decoding of files",
			   landlock);
	advise(doctor, "read other people's files on another machine, or boot a kernel with %s",
	       seccomp ? "lsm=landlock,..." : "CONFIG_SECCOMP_FILTER");
	return say(doctor, WORSE, "%s", seccomp ? "seccomp only: 'convert' can write more than its output" :
						  "none: this kernel or build has no seccomp");
}

static enum verdict check_disk(struct doctor *doctor)
{
	struct statvfs fs;
	uint64_t space;

	if (access(doctor->output, W_OK | X_OK) || statvfs(doctor->output, &fs)) {
		advise(doctor, "go to a folder that you may write to, or record to one with -o");
		return say(doctor, BAD, "%.200s: %s", doctor->output, strerror(errno));
	}
	space = (uint64_t)fs.f_bavail * fs.f_frsize;
	if (space < DISK_LOW) {
		advise(doctor, "free some space: a busy machine records 1 MiB per second or more");
		return say(doctor, WORSE, "%" PRIu64 " MiB are free", space >> 20);
	}
	return say(doctor, GOOD, "%" PRIu64 " MiB are free", space >> 20);
}

static const struct check {
	const char *name;
	enum verdict (*run)(struct doctor *doctor);
} checks[] = {
	{ "module", check_module },
	{ "signature", check_signature },
	{ "lockdown", check_lockdown },
	{ "device", check_device },
	{ "permission", check_permission },
	{ "session", check_session },
	{ "pmu", check_pmu },
	{ "kernel symbols", check_kptr },
	{ "debug symbols", check_names },
	{ "perf events", check_paranoid },
	{ "clock", check_clock },
	{ "tracepoints", check_tracepoints },
	{ "call chains", check_chains },
	{ "mappings", check_maps },
	{ "kernel config", check_config },
	{ "kernel headers", check_headers },
	{ "disk", check_disk },
	{ "sandbox", check_sandbox },
};

/* ---- output ---- */

static void print(struct kb_json *json, const struct doctor *doctor, const char *name,
		  enum verdict verdict)
{
	static const char *const words[] = { "ok", "warn", "FAIL" };
	static const char *const colours[] = { "\033[32m", "\033[33m", "\033[31m" };
	bool colour = json->people && cli_color(stdout);

	if (!json->people) {
		kb_json_begin(json, "check");
		kb_json_string(json, "name", name);
		kb_json_string(json, "verdict", verdict == BAD ? "fail" : words[verdict]);
		kb_json_string(json, "found", doctor->found);
		kb_json_string(json, "fix", verdict == GOOD ? NULL : doctor->fix);
		kb_json_end(json);
		return;
	}
	kb_out_printf(json->out, "%s%-4s%s  %-15s %s%s%s\n", colour ? colours[verdict] : "",
		      words[verdict], colour ? "\033[0m" : "", name, doctor->found,
		      verdict == GOOD ? "" : "; to do: ", verdict == GOOD ? "" : doctor->fix);
}

static void look(struct doctor *doctor)
{
	char text[4096];
	const char *at;

	uname(&doctor->system);
	if (kb_device_open(&doctor->device, &doctor->error) == 0 &&
	    kb_device_query(doctor->device, &doctor->query, &doctor->error)) {
		kb_device_close(doctor->device);
		doctor->device = NULL;
	}
	if (read_text(doctor, "/proc/self/status", text, sizeof(text))) {
		at = strstr(text, "CapEff:");
		if (at)
			doctor->capabilities = strtoull(at + 7, NULL, 16);
	}
}

int cmd_doctor(int argc, char **argv)
{
	struct doctor doctor = { .root = "", .output = "." };
	int option, status = CLI_OK;
	struct kb_json json;
	bool people = true;

	while ((option = cli_getopt(argc, argv, &usage)) != -1) {
		switch (option) {
		case OPTION_ROOT:
			doctor.root = optarg;
			break;
		case 'o':
			doctor.output = optarg;
			break;
		case 'j':
			people = false;
			break;
		default:
			return cli_usage(option == 'h', &usage);
		}
	}
	if (optind < argc) {
		cli_warn("leave out '%s': doctor takes only options", argv[optind]);
		return cli_usage(false, &usage);
	}
	if (lines_open(&json, people))
		return CLI_IMPOSSIBLE;
	look(&doctor);
	for (size_t i = 0; i < ARRAY_SIZE(checks); i++) {
		enum verdict verdict = checks[i].run(&doctor);

		print(&json, &doctor, checks[i].name, verdict);
		if (verdict == BAD)
			status = CLI_DAMAGED;
	}
	kb_device_close(doctor.device);
	return lines_close(&json, status);
}
