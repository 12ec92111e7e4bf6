// SPDX-License-Identifier: MIT
/*
 * The calls of the device. The errnos of each ioctl have documented meanings, so each call can
 * say what is wrong and what to do.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <kbarman/device.h>

#define MAPS_AT_ONCE	4096		/* rows of one KBARMAN_ADD_MAPS */

struct kb_device {
	int fd;
	struct kbarman_event *events;		/* as configured, for error texts */
	unsigned int nr_events;
	uint32_t features;			/* KBARMAN_FEATURE_* */
};

/* Meaning of an errno of one call. */
struct meaning {
	int error;
	const char *sentence;
};

#define NOT_ITS_OWNER	{ EPERM, "the session belongs to another program: configure one of your own" }
#define NO_MEMORY	{ EOPNOTSUPP, "the module has no memory that survives a reset: load it with its parameter " \
					 "memory (kbarman-blackbox(7))" }
#define NOT_CONFIGURED	{ ENODATA, "nothing is configured: there is no recording to look at" }

/* Fill @err for a call that failed with errno. @meanings ends with error 0. */
static int call_failed(struct kb_error *err, const char *call, const struct meaning *meanings)
{
	int error = errno;

	for (; meanings->error; meanings++) {
		if (meanings->error == error)
			return kb_error_set(err, -error, KB_NO_OFFSET, "%s", meanings->sentence);
	}
	if (error == ENOTTY)
		return kb_error_set(err, -error, KB_NO_OFFSET,
				    KBARMAN_DEVICE " doesn't know %s: load the module that came with "
				    "this tool; on a 64-bit kernel use a 64-bit tool", call);
	return kb_error_set(err, -error, KB_NO_OFFSET, KBARMAN_DEVICE ": %s: %s", call,
			    strerror(error));
}

static const struct meaning no_meanings[] = { NOT_CONFIGURED, { 0, NULL } };

static int version_failed(struct kb_error *err, uint32_t abi)
{
	return kb_error_set(err, -EPROTO, KB_NO_OFFSET,
			    "the module speaks version %u of the ABI and this tool version %u: use a module "
			    "and a tool of one release", abi, KBARMAN_ABI);
}

/* A module of another ABI does not know this one's query. 0: it has this ABI. */
static int check_version(struct kb_device *device, struct kb_error *err)
{
	struct kbarman_get_abi version = { .size = sizeof(version) };
	struct kbarman_query query;
	int ret = kb_device_query(device, &query, err);

	device->features = query.features;
	if (!ret)
		return query.abi == KBARMAN_ABI ? 0 : version_failed(err, query.abi);
	return ret == -ENOTTY && !ioctl(device->fd, KBARMAN_GET_ABI, &version) ?
	       version_failed(err, version.abi) : ret;
}

static int open_failed(struct kb_error *err)
{
	static const struct meaning meanings[] = {
		{ ENOENT, "no " KBARMAN_DEVICE ": load the module ('insmod kbarman.ko' or 'modprobe "
			  "kbarman' as root)" },
		{ ENODEV, "the module behind " KBARMAN_DEVICE " is gone: load it again" },
		{ ENXIO, "the module behind " KBARMAN_DEVICE " is gone: load it again" },
		{ EACCES, "the permissions of " KBARMAN_DEVICE " don't let you record: run as root, or "
			  "have its group set by a udev rule" },
		{ EPERM, "recording requires CAP_PERFMON or CAP_SYS_ADMIN, and a kernel that is "
			 "not locked down: run as root" },
		{ 0, NULL },
	};

	return call_failed(err, "open", meanings);
}

/* @fd: -1 to open the device. */
static int open_device(struct kb_device **out, int fd, struct kb_error *err)
{
	struct kb_device *device = calloc(1, sizeof(*device));
	int ret;

	*out = NULL;
	if (!device)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	device->fd = fd >= 0 ? fd : open(KBARMAN_DEVICE, O_RDWR | O_CLOEXEC);
	if (device->fd < 0) {
		ret = open_failed(err);
		goto err_free;
	}
	ret = check_version(device, err);
	if (ret)
		goto err_close;
	*out = device;
	return 0;

err_close:
	if (fd < 0)
		close(device->fd);
err_free:
	free(device);
	return ret;
}

int kb_device_open(struct kb_device **out, struct kb_error *err)
{
	return open_device(out, -1, err);
}

int kb_device_take(struct kb_device **out, int fd, struct kb_error *err)
{
	return open_device(out, fd, err);
}

void kb_device_close(struct kb_device *device)
{
	if (!device)
		return;
	close(device->fd);
	free(device->events);
	free(device);
}

int kb_device_fd(const struct kb_device *device)
{
	return device->fd;
}

int kb_device_query(struct kb_device *device, struct kbarman_query *query, struct kb_error *err)
{
	memset(query, 0, sizeof(*query));
	query->size = sizeof(*query);
	if (ioctl(device->fd, KBARMAN_QUERY, query))
		return call_failed(err, "query", no_meanings);
	return 0;
}

/* The user would have too much memory: says how much there is. */
static int configure_too_dear(struct kb_device *device, struct kb_error *err)
{
	struct kbarman_sessions sessions = { .size = sizeof(sessions),
					     .info_bytes = sizeof(struct kbarman_session_info) };

	if (ioctl(device->fd, KBARMAN_SESSIONS, &sessions))
		sessions.memory_limit = 0;
	return kb_error_set(err, -EDQUOT, KB_NO_OFFSET,
			    "the buffers need more memory than your recordings may take: %llu of %llu MiB are "
			    "in use; make the buffers smaller (-m), record fewer CPUs (-C), end another "
			    "recording ('kbarman list --sessions'), or allow more in "
			    "/sys/module/kbarman/parameters/user_mib",
			    (unsigned long long)sessions.memory >> 20,
			    (unsigned long long)sessions.memory_limit >> 20);
}

static int keep_events(struct kb_device *device, const struct kbarman_configure *configure)
{
	size_t bytes = configure->nr_events * sizeof(*device->events);

	free(device->events);
	device->events = bytes ? malloc(bytes) : NULL;
	device->nr_events = device->events ? configure->nr_events : 0;
	if (device->events)
		memcpy(device->events, (const void *)(uintptr_t)configure->events_ptr, bytes);
	return device->nr_events == configure->nr_events ? 0 : -ENOMEM;
}

/* The module names the field that it refuses. */
static int configure_refused(const struct kb_device *device, const struct kbarman_configure *c, struct kb_error *err)
{
#define FIELD(name) { offsetof(struct kbarman_configure, name), #name }
	static const struct {
		size_t offset;
		const char *name;
	} fields[] = {
		FIELD(flags), FIELD(mode), FIELD(sources), FIELD(ring_bytes), FIELD(watermark),
		FIELD(max_tasks), FIELD(max_maps), FIELD(max_strings), FIELD(nr_cpu_words),
		FIELD(cpus_ptr), FIELD(pids_ptr), FIELD(nr_pids), FIELD(nr_events), FIELD(events_ptr),
		FIELD(target_name), FIELD(max_stack), FIELD(max_series), FIELD(count_ns),
		FIELD(stack_bytes), FIELD(stack_ns),
	};
	const char *name = "of a later version";
	int error = errno;

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (fields[i].offset == c->bad_offset)
			name = fields[i].name;
	if (c->bad_offset == offsetof(struct kbarman_configure, cpus_ptr))
		return kb_error_set(err, -error, KB_NO_OFFSET, "the machine has no CPU %u", c->bad_index);
	if (c->bad_offset == offsetof(struct kbarman_configure, pids_ptr) && c->bad_index < c->nr_pids)
		return kb_error_set(err, -error, KB_NO_OFFSET, "the process %u, which is to be recorded, does not "
				    "exist or has ended", ((const uint32_t *)(uintptr_t)c->pids_ptr)[c->bad_index]);
	if (c->bad_offset == offsetof(struct kbarman_configure, events_ptr) && c->bad_index < device->nr_events)
		return kb_error_set(err, -error, KB_NO_OFFSET, "the module refuses the event '%s'%s",
				    device->events[c->bad_index].name,
				    error == E2BIG ? ": it has what this kernel does not know" : "");
	return kb_error_set(err, -error, KB_NO_OFFSET, "the module refuses the configuration: its field %s "
			    "is out of range, or does not go with the others", name);
}

static const struct meaning no_memory[] = { NO_MEMORY, { 0, NULL } };

int kb_device_configure(struct kb_device *device, struct kbarman_configure *configure,
			struct kb_error *err)
{
	static const struct meaning meanings[] = {
		{ EADDRINUSE, "others have the memory that survives a reset: wait for the recording to end, and for "
			      "who reads its map or a recording of before this boot ('kbarman list --sessions')" },
		{ ENOSPC, "the buffers and tables do not fit into a half of the memory that survives a reset: make "
			  "them smaller (-m, --max-tasks), record fewer CPUs (-C), or load the module with more of "
			  "it (memory=)" },
		{ EBUSY, "as many programs record as the module allows: wait for one to end, find them "
			 "with 'kbarman list --sessions', or allow more of them in "
			 "/sys/module/kbarman/parameters/sessions (at most 32)" },
		{ ENOMEM, "there is not enough memory for the buffers, in the machine or in this "
			  "program's memory cgroup (memory.max): make them smaller (-m), record "
			  "fewer CPUs (-C), or end another recording" },
		{ ESRCH, "one of the processes to record does not exist or has ended" },
		{ EINVAL, "the module refuses the configuration: it has a CPU that does not "
			  "exist, or a size, period or frequency out of range" },
		{ E2BIG, "too many events (at most 32) or processes (at most 4096), or call "
			 "chains that fill more than an eighth of a buffer: shorten the chains "
			 "(--max-stack), or make the buffers larger (-m)" },
		{ EOPNOTSUPP, "call chains of this kind can't be followed on this architecture, or "
			      "this kernel lacks tracepoints ('kbarman doctor' names them)" },
		{ 0, NULL },
	};

	configure->size = sizeof(*configure);
	if (keep_events(device, configure))
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	if (configure->flags & KBARMAN_CONFIGURE_RESERVED && !(device->features & KBARMAN_FEATURE_RESERVED)) {
		errno = EOPNOTSUPP;
		return call_failed(err, "configure", no_memory);
	}
	if (ioctl(device->fd, KBARMAN_CONFIGURE, configure)) {
		if (errno == EDQUOT)
			return configure_too_dear(device, err);
		/* The others have words of their own. */
		return configure->bad_offset && (errno == EINVAL || errno == ESRCH ||
						 configure->bad_offset == offsetof(struct kbarman_configure, events_ptr)) ?
		       configure_refused(device, configure, err) :
		       call_failed(err, "configure", meanings);
	}
	return 0;
}

/* @event could not be set up on @cpu. */
static int event_failed(struct kb_error *err, const struct kbarman_event *event, unsigned int cpu,
			int error)
{
	const char *why;

	switch (error) {
	case ENOENT:
	case EOPNOTSUPP:
	case ENODEV:
		if (event->attr.precise_ip && error == EOPNOTSUPP)
			why = "this CPU can't sample it precisely and read its counter, as AMD's "
			      "CPUs, which sample by IBS: leave out the 'p'";
		else
			why = "this CPU has no such event, or no PMU: use another event, "
			      "-e cpu-clock always works";
		break;
	case ENOSPC:
		why = "the PMU can't count it together with the events before it: use fewer events";
		break;
	case EINVAL:
		why = "the PMU refuses its number, period or frequency: see the PMU's events in "
		      "sysfs, and /proc/sys/kernel/perf_event_max_sample_rate";
		break;
	case EFAULT:
		why = "kprobe and uprobe can't be given the address of a name (config1): make a tracepoint "
		      "of it, in kprobe_events or uprobe_events of tracefs";
		break;
	case EBUSY:
		why = "another program uses the PMU exclusively";
		break;
	default:
		why = strerror(error);
	}
	return kb_error_set(err, -error, KB_NO_OFFSET, "event '%s' on CPU %u: %s", event->name, cpu,
			    why);
}

int kb_device_start(struct kb_device *device, struct kb_error *err)
{
	static const struct meaning meanings[] = {
		{ EBUSY, "the session runs already" },
		NOT_ITS_OWNER,
		NOT_CONFIGURED,
		{ ENODEV, "none of the CPUs to record is online" },
		{ ERANGE, "the frequency is above the limit of Linux "
			  "(kernel.perf_event_max_sample_rate): sample less often (-F), or raise "
			  "it ('kbarman doctor' says when it is low)" },
		{ ENOMEM, "there is not enough memory: make the buffers smaller (-m), or record "
			  "fewer CPUs (-C)" },
		{ 0, NULL },
	};
	struct kbarman_start start = { .size = sizeof(start), .event = ~0U, .cpu = ~0U };

	if (!ioctl(device->fd, KBARMAN_START, &start))
		return 0;
	if (start.event < device->nr_events)
		return event_failed(err, &device->events[start.event], start.cpu, errno);
	return call_failed(err, "start", meanings);
}

int kb_device_turn(struct kb_device *device, uint32_t turn, struct kb_error *err)
{
	static const struct meaning meanings[] = { NOT_ITS_OWNER, NOT_CONFIGURED, { 0, NULL } };
	struct kbarman_turn call = { .size = sizeof(call), .turn = turn };

	if (ioctl(device->fd, KBARMAN_TURN, &call))
		return call_failed(err, "turn", meanings);
	return 0;
}

int kb_device_stop(struct kb_device *device, struct kb_error *err)
{
	static const struct meaning meanings[] = { NOT_ITS_OWNER, NOT_CONFIGURED, { 0, NULL } };

	if (ioctl(device->fd, KBARMAN_STOP, 0))
		return call_failed(err, "stop", meanings);
	return 0;
}

static int consume_call(struct kb_device *device, struct kbarman_consume *consume, struct kb_error *err)
{
	static const struct meaning meanings[] = { NOT_ITS_OWNER, NOT_CONFIGURED, { 0, NULL } };

	return ioctl(device->fd, KBARMAN_CONSUME, consume) ? call_failed(err, "consume", meanings) : 0;
}

int kb_device_consume(struct kb_device *device, unsigned int cpu, uint64_t position,
		      struct kb_error *err)
{
	struct kbarman_consume consume = {
		.size = sizeof(consume),
		.cpu = cpu,
		.position = position,
	};

	return consume_call(device, &consume, err);
}

int kb_device_consume_each(struct kb_device *device, const uint64_t *positions, unsigned int nr_cpus,
			   struct kb_error *err)
{
	struct kbarman_consume consume = {
		.size = sizeof(consume),
		.cpu = KBARMAN_CPU_ALL,
		.positions_ptr = (uintptr_t)positions,
		.nr_positions = nr_cpus,
	};
	int ret = 0;

	if (device->features & KBARMAN_FEATURE_EACH)
		return consume_call(device, &consume, err);
	for (unsigned int cpu = 0; cpu < nr_cpus && !ret; cpu++)
		if (positions[cpu] != KBARMAN_NO_POSITION)
			ret = kb_device_consume(device, cpu, positions[cpu], err);
	return ret;
}

int kb_device_stats(struct kb_device *device, unsigned int cpu, struct kbarman_stats *stats,
		    struct kb_error *err)
{
	memset(stats, 0, sizeof(*stats));
	stats->size = sizeof(*stats);
	stats->cpu = cpu;
	if (ioctl(device->fd, KBARMAN_STATS, stats))
		return call_failed(err, "stats", no_meanings);
	return 0;
}

int kb_device_clock(struct kb_device *device, struct kbarman_clock *clock, struct kb_error *err)
{
	memset(clock, 0, sizeof(*clock));
	clock->size = sizeof(*clock);
	if (ioctl(device->fd, KBARMAN_CLOCK, clock))
		return call_failed(err, "clock", no_meanings);
	return 0;
}

int kb_device_add_maps(struct kb_device *device, const struct kbarman_map_row *rows,
		       uint32_t *count, struct kb_error *err)
{
	static const struct meaning meanings[] = {
		NOT_ITS_OWNER,
		NOT_CONFIGURED,
		{ ENOSPC, "the capture's table of mappings or strings is full" },
		{ EACCES, "kernel addresses require CAP_SYSLOG: run as root" },
		{ 0, NULL },
	};
	uint32_t left = *count;

	*count = 0;
	while (left) {
		struct kbarman_add_maps call = {
			.size = sizeof(call),
			.count = left < MAPS_AT_ONCE ? left : MAPS_AT_ONCE,
			.row_bytes = sizeof(*rows),
			.rows_ptr = (uintptr_t)(rows + *count),
		};
		uint32_t asked = call.count;

		if (ioctl(device->fd, KBARMAN_ADD_MAPS, &call)) {
			if (errno == ENOSPC)
				*count += call.count;
			return call_failed(err, "add maps", meanings);
		}
		*count += asked;
		left -= asked;
	}
	return 0;
}

int kb_device_add_symbols(struct kb_device *device, const void *symbols, uint64_t bytes,
			  struct kb_error *err)
{
	static const struct meaning meanings[] = {
		{ EPERM, "kernel addresses require CAP_SYSLOG, and a session of one's own: run as root" },
		{ EEXIST, "the session has symbols already" },
		{ ENOSPC, "the memory that survives a reset has no room for them beside the buffers: make these "
			  "smaller (-m), or load the module with more of it (memory=)" },
		{ EINVAL, "they are none, or have more than 16 MiB" },
		{ ENOMEM, "there is not enough memory" },
		{ EDQUOT, "your recordings would take more memory than they may" },
		NOT_CONFIGURED,
		{ 0, NULL },
	};
	struct kbarman_add_symbols call = { .size = sizeof(call), .bytes_ptr = (uintptr_t)symbols, .bytes = bytes };

	return ioctl(device->fd, KBARMAN_ADD_SYMBOLS, &call) ? call_failed(err, "add symbols", meanings) : 0;
}

int kb_device_series(struct kb_device *device, struct kbarman_mark_series *series,
		     struct kb_error *err)
{
	static const struct meaning meanings[] = {
		{ EAGAIN, "no recording takes marks now" },
		{ ENOSPC, "the capture has no room for another series of a chart" },
		{ EINVAL, "the module refuses the series: a name is missing or too long, or a "
			  "field has a value that is not allowed" },
		{ 0, NULL },
	};

	series->size = sizeof(*series);
	return ioctl(device->fd, KBARMAN_MARK_SERIES, series) ?
		       call_failed(err, "series", meanings) : 0;
}

int kb_device_sessions(struct kb_device *device, struct kbarman_sessions *sessions,
		       struct kb_error *err)
{
	sessions->size = sizeof(*sessions);
	sessions->info_bytes = sizeof(struct kbarman_session_info);
	return ioctl(device->fd, KBARMAN_SESSIONS, sessions) ?
		       call_failed(err, "sessions", no_meanings) : 0;
}

int kb_device_choose(struct kb_device *device, uint64_t session, struct kb_error *err)
{
	static const struct meaning meanings[] = {
		{ ENOENT, "there is no such session: 'kbarman list --sessions' lists them" },
		{ EBUSY, "this program has a session of its own" },
		{ 0, NULL },
	};
	struct kbarman_choose choose = { .size = sizeof(choose), .session = session };

	if (ioctl(device->fd, KBARMAN_CHOOSE, &choose))
		return call_failed(err, "choose", meanings);
	return 0;
}

int kb_device_adopt(struct kb_device *device, uint64_t session, struct kb_error *err)
{
	static const struct meaning meanings[] = {
		{ ENOENT, "no recording began when the module was loaded, or another program has taken it "
			  "over: load the module with its parameter boot, as in 'modprobe kbarman "
			  "boot=usual'" },
		{ EBUSY, "this program has a session of its own" },
		{ EPERM, "the recording has kernel addresses, which require CAP_SYSLOG: run as root" },
		{ 0, NULL },
	};
	struct kbarman_adopt adopt = { .size = sizeof(adopt), .session = session };

	if (ioctl(device->fd, KBARMAN_ADOPT, &adopt))
		return call_failed(err, "adopt", meanings);
	return 0;
}

int kb_device_former(struct kb_device *device, struct kbarman_former *former, struct kb_error *err)
{
	static const struct meaning meanings[] = {
		{ ENOENT, "there is no recording of before this boot with that number, or no more" },
		{ EBUSY, "another program reads the recording of before this boot: try again when that has ended" },
		{ EPERM, "the recording of before this boot is another user's, or has kernel addresses: run as root" },
		{ ESTALE, "that number has another recording by now" },
		NO_MEMORY,
		{ 0, NULL },
	};

	former->size = sizeof(*former);
	former->fd = -1;
	errno = EOPNOTSUPP;
	if (!(device->features & KBARMAN_FEATURE_RESERVED) || ioctl(device->fd, KBARMAN_FORMER, former))
		return call_failed(err, "former", meanings);
	return 0;
}

int kb_device_map(struct kb_device *device, unsigned int cpu, struct kb_mapped *mapped,
		  struct kb_error *err)
{
	struct kbarman_query query;
	void *bytes;
	int ret;

	memset(mapped, 0, sizeof(*mapped));
	ret = kb_device_query(device, &query, err);
	if (ret)
		return ret;
	bytes = mmap(NULL, query.map_bytes, PROT_READ, MAP_SHARED, device->fd,
		     (off_t)(cpu * query.map_stride));
	if (bytes == MAP_FAILED)
		return kb_error_set(err, -errno, KB_NO_OFFSET, "the buffer of CPU %u can't be mapped: %s",
				    cpu, errno == EPERM ? "it contains kernel addresses, which "
				    "require CAP_SYSLOG: run as root" :
							  strerror(errno));
	ret = kb_mapped_view(mapped, bytes, query.map_bytes, err);
	if (!ret && mapped->tail && mapped->tail->session != query.session)
		ret = kb_error_set(err, -ESTALE, KB_NO_OFFSET,
				   "the session was configured again in the meantime: try again");
	if (ret) {
		munmap(bytes, query.map_bytes);
		memset(mapped, 0, sizeof(*mapped));
	}
	return ret;
}
