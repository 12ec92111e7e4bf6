// SPDX-License-Identifier: MIT
/*
 * Captures of random content, written and read again: everything comes back, in
 * all four layouts, linear and circular, through files and pipes, compacted or
 * not, and at every sync in between.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "barman_random.h"
#include "../lib/tap.h"

#define RECORDS		100000		/* of each layout and store, at least */

enum sink {
	SINK_MEMORY,			/* a file that can't collapse */
	SINK_PIPE,
	SINK_DISK,			/* slow: it is synced */
};

static struct random_capture capture;

static bool write_tables(struct kb_barman_writer *w, const struct random_capture *c)
{
	int ret = kb_barman_writer_set_header(w, &c->header);

	if (!ret && c->extended)
		ret = kb_barman_writer_fact(w, "ext", "1");
	if (!ret && c->wide_states)
		ret = kb_barman_writer_fact(w, "states", "I402,D2,S1");
	if (!ret)
		ret = kb_barman_writer_fact(w, "host", "somewhere");
	for (uint32_t i = 0; !ret && i < c->layout.max_cores; i++)
		ret = kb_barman_writer_pmu(w, i, &c->pmus[i]);
	for (uint32_t i = 0; !ret && i < c->nr_tasks; i++)
		ret = kb_barman_writer_task(w, &c->tasks[i]);
	for (uint32_t i = 0; !ret && i < c->nr_maps; i++)
		ret = kb_barman_writer_map(w, &c->maps[i]);
	for (uint32_t i = 0; !ret && i < c->nr_charts; i++)
		ret = kb_barman_writer_chart(w, &c->charts[i]);
	for (uint32_t i = 0; !ret && i < c->nr_series; i++)
		ret = kb_barman_writer_series(w, &c->series[i]);
	if (ret)
		tap_note("a table: %s", strerror(-ret));
	return !ret;
}

static bool same_tables(const struct random_capture *c, const struct kb_barman *barman)
{
	const struct kb_header *h = kb_barman_header(barman);
	const char *host = kb_barman_fact(barman, "host");
	bool same;

	same = h->word_size == c->layout.word_size && h->big_endian == c->layout.big_endian &&
	       h->protocol_version == 2 && h->data_store_type == (c->layout.circular ? 2 : 1) &&
	       !strcmp(h->target_name, c->header.target_name) &&
	       h->timer_sample_rate == c->header.timer_sample_rate &&
	       h->timestamp_base == c->header.timestamp_base &&
	       h->timestamp_multiplier == c->header.timestamp_multiplier &&
	       h->timestamp_divisor == c->header.timestamp_divisor &&
	       h->unix_base_ns == c->header.unix_base_ns && h->extended == c->extended &&
	       host && !strcmp(host, "somewhere") && h->max_cores == c->layout.max_cores &&
	       h->nr_tasks == c->nr_tasks && h->nr_maps == c->nr_maps &&
	       h->nr_charts == c->nr_charts && h->nr_series == c->nr_series;
	for (uint32_t i = 0; same && i < h->max_cores; i++) {
		const struct kb_pmu *a = &h->pmus[i], *b = &c->pmus[i];

		same = a->configuration_timestamp == b->configuration_timestamp &&
		       a->midr == b->midr && a->mpidr == b->mpidr &&
		       a->cluster_id == b->cluster_id && a->num_counters == b->num_counters;
		for (uint32_t k = 0; same && k < a->num_counters; k++)
			same = a->counter_types[k] == b->counter_types[k];
	}
	for (uint32_t i = 0; same && i < h->nr_tasks; i++)
		same = h->tasks[i].timestamp == c->tasks[i].timestamp &&
		       h->tasks[i].task_id == c->tasks[i].task_id &&
		       !strcmp(h->tasks[i].name, c->tasks[i].name);
	for (uint32_t i = 0; same && i < h->nr_maps; i++) {
		const struct kb_map *a = &h->maps[i], *b = &c->maps[i];

		same = a->timestamp == b->timestamp && a->task_id == b->task_id &&
		       a->base_address == b->base_address && a->length == b->length &&
		       a->image_offset == b->image_offset && !strcmp(a->image, b->image);
	}
	for (uint32_t i = 0; same && i < h->nr_charts; i++) {
		const struct kb_chart *a = &h->charts[i], *b = &c->charts[i];

		same = !strcmp(a->name, b->name) &&
		       a->series_composition == b->series_composition &&
		       a->rendering_type == b->rendering_type &&
		       a->boolean_flags == b->boolean_flags;
	}
	for (uint32_t i = 0; same && i < h->nr_series; i++) {
		const struct kb_series *a = &h->series[i], *b = &c->series[i];

		same = a->chart_index == b->chart_index && !strcmp(a->name, b->name) &&
		       !strcmp(a->units, b->units) && !strcmp(a->description, b->description) &&
		       a->colour == b->colour && a->multiplier == b->multiplier &&
		       a->series_class == b->series_class && a->display == b->display &&
		       a->boolean_flags == b->boolean_flags;
	}
	if (!same)
		tap_note("tables differ");
	return same;
}

/* The first @written events, or the newest of them in a ring. */
static bool same_events(const struct random_capture *c, struct kb_barman *barman, uint32_t written,
			bool is_pipe)
{
	uint64_t checksum = 0, n = 0, first = 0, newest = 0;
	struct kb_validation sum;
	struct kb_event event;
	int ret;

	ret = kb_barman_validate(barman, &sum, NULL);
	if (ret || kb_barman_rewind(barman)) {
		tap_note("validation: %s", strerror(-ret));
		return false;
	}
	for (uint32_t i = 0; i < written; i++) {
		if (c->events[i].timestamp > newest)
			newest = c->events[i].timestamp;
	}
	/* Down a pipe the header goes before the events. */
	if (!is_pipe && kb_barman_header(barman)->last_timestamp != newest) {
		tap_note("last_timestamp is not the newest");
		return false;
	}
	if (c->layout.circular)
		first = written - sum.records;
	if (first + sum.records != written || (written && !sum.records)) {
		tap_note("%" PRIu64 " of %" PRIu32 " records", sum.records, written);
		return false;
	}
	while ((ret = kb_barman_next(barman, &event, NULL)) == 1) {
		if (first + n >= written || !same_event(&c->events[first + n], &event)) {
			tap_note("record %" PRIu64 " of %" PRIu32 " differs", first + n, written);
			return false;
		}
		checksum += kb_event_checksum(&event);
		n++;
	}
	if (ret || kb_barman_damage(barman, NULL) || n != sum.records ||
	    checksum != sum.checksum) {
		tap_note("%" PRIu64 " records, %u findings, checksums %" PRIx64 " and %" PRIx64, n,
			 kb_barman_damage(barman, NULL), checksum, sum.checksum);
		return false;
	}
	return true;
}

static bool reads_back(const struct random_capture *c, int fd, uint32_t written, bool is_pipe)
{
	struct kb_barman *barman;
	struct kb_error err;
	char path[32];
	bool same;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (kb_barman_open(&barman, path, &err)) {
		tap_note("%s", err.text);
		return false;
	}
	kb_barman_set_counters(barman, KB_COUNTERS_DELTA);
	if (is_pipe && kb_barman_keep(barman, &err)) {
		tap_note("%s", err.text);
		kb_barman_close(barman);
		return false;
	}
	same = same_tables(c, barman) && same_events(c, barman, written, is_pipe);
	kb_barman_close(barman);
	return same;
}

static int open_sink(enum sink sink, int fds[2])
{
	if (sink == SINK_PIPE) {
		if (pipe(fds))
			return -errno;
		/* Room for all of it: nobody reads while it is written. */
		return fcntl(fds[1], F_SETPIPE_SZ, 1 << 20) < 0 ? -errno : 0;
	}
	if (sink == SINK_MEMORY)
		fds[0] = memfd_create("capture", 0);
	else
		fds[0] = open(".", O_TMPFILE | O_RDWR, 0600);
	fds[1] = fds[0];
	return fds[0] < 0 ? -errno : 0;
}

static bool write_events(struct kb_barman_writer *w, const struct random_capture *c, int fd,
			 enum sink sink)
{
	for (uint32_t i = 0; i < c->nr_events; i++) {
		int ret = kb_barman_writer_event(w, &c->events[i]);

		if (ret) {
			tap_note("event %" PRIu32 ": %s", i, strerror(-ret));
			return false;
		}
		if (random_below(500))
			continue;
		if (kb_barman_writer_sync(w))
			return false;
		if (sink != SINK_PIPE && !reads_back(c, fd, i + 1, false)) {
			tap_note("after the sync behind event %" PRIu32, i);
			return false;
		}
	}
	return true;
}

/* One capture there and back. */
static bool round_trip(const struct random_capture *c, enum sink sink)
{
	struct kb_barman_writer *w;
	struct kb_error err;
	bool good;
	int fds[2];

	if (open_sink(sink, fds))
		return false;
	if (kb_barman_writer_create(&w, fds[1], &c->layout, &err)) {
		tap_note("%s", err.text);
		return false;
	}
	good = write_tables(w, c) && write_events(w, c, fds[1], sink);
	if (good && kb_barman_writer_finish(w, random_below(2), &err)) {
		tap_note("%s", err.text);
		good = false;
	}
	kb_barman_writer_destroy(w);
	if (sink == SINK_PIPE)
		close(fds[1]);
	good = good && reads_back(c, fds[0], c->nr_events, sink == SINK_PIPE);
	close(fds[0]);
	return good;
}

static void everything_comes_back(unsigned int word, bool big, bool circular, enum sink sink,
				  uint64_t records, const char *sink_name)
{
	uint64_t done = 0, captures = 0;
	bool good = true;
	char name[96];

	while (good && done < records) {
		random_capture(&capture, word, big, circular);
		good = round_trip(&capture, sink);
		done += capture.nr_events;
		captures++;
	}
	if (!good)
		tap_note("capture %" PRIu64, captures);
	snprintf(name, sizeof(name), "everything_comes_back_%u_%s_%s_through_%s", word * 8,
		 big ? "big" : "little", circular ? "circular" : "linear", sink_name);
	tap_ok(good, name);
}

/* More data than the buffer holds: they are in the file when it is compacted. */
static void compacting_keeps_what_was_written(bool disk)
{
	struct kb_barman_writer *w;
	uint64_t checksum = 0;
	struct kb_validation sum;
	struct kb_barman *barman;
	struct kb_error err;
	bool good = false;
	char path[32];
	int fds[2];

	random_capture(&capture, 8, false, false);
	capture.layout.max_string_table_length = 1 << 20;
	if (open_sink(disk ? SINK_DISK : SINK_MEMORY, fds)) {
		tap_skip("compacting_keeps_what_was_written", "no temporary file here");
		return;
	}
	if (kb_barman_writer_create(&w, fds[1], &capture.layout, &err) ||
	    !write_tables(w, &capture))
		goto out;
	random_event(&capture, 0);
	for (int i = 0; i < 100000; i++) {
		capture.events[0].timestamp = i;
		if (kb_barman_writer_event(w, &capture.events[0]))
			goto out;
		checksum += kb_event_checksum(&capture.events[0]);
	}
	good = !kb_barman_writer_finish(w, true, &err);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fds[0]);
	if (good && !kb_barman_open(&barman, path, &err)) {
		good = !kb_barman_validate(barman, &sum, &err) && sum.records == 100000 &&
		       sum.checksum == checksum && same_tables(&capture, barman) &&
		       kb_barman_header(barman)->header_length < 1 << 19;
		kb_barman_close(barman);
	}
out:
	tap_ok(good, disk ? "compacting_keeps_what_was_written_on_disk"
			  : "compacting_keeps_what_was_written");
	kb_barman_writer_destroy(w);
	close(fds[0]);
}

/* As many as were named, and the same records. */
static void compacting_drops_spare_series(bool disk)
{
	static const struct kb_barman_layout layout = {
		.size = sizeof(layout),
		.max_cores = 1, .max_task_infos = 8, .max_mmap_layout = 8, .max_pmu_counters = 4,
		.max_string_table_length = 4096, .max_custom_charts = 8, .max_custom_series = 64,
		.spare_series = true,
	};
	const struct kb_chart chart = { .name = "c", .series_composition = 1, .rendering_type = 1 };
	struct kb_series series = { .multiplier = 1.0, .series_class = 3, .display = 2 };
	struct kb_event event = { .type = KB_EVENT_CUSTOM_COUNTER };
	struct kb_barman_writer *w;
	struct kb_validation sum;
	struct kb_barman *barman;
	struct kb_error err;
	bool good = false;
	char path[32];
	int fds[2];

	if (open_sink(disk ? SINK_DISK : SINK_MEMORY, fds)) {
		tap_skip("compacting_drops_spare_series", "no temporary file here");
		return;
	}
	if (kb_barman_writer_create(&w, fds[1], &layout, &err) ||
	    kb_barman_writer_chart(w, &chart))
		goto out;
	series.name = "a";
	good = !kb_barman_writer_series(w, &series);
	good = good && !kb_barman_writer_sync(w);
	for (event.timestamp = 0; good && event.timestamp < 1000; event.timestamp++)
		good = !kb_barman_writer_event(w, &event);
	series.name = "late";
	good = good && !kb_barman_writer_series(w, &series);
	event.custom_counter.counter = 1;
	good = good && !kb_barman_writer_event(w, &event);
	good = good && !kb_barman_writer_finish(w, true, &err);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fds[0]);
	if (good && !kb_barman_open(&barman, path, &err)) {
		const struct kb_header *h = kb_barman_header(barman);

		good = !kb_barman_validate(barman, &sum, &err) && sum.records == 1001 &&
		       h->nr_charts == 1 && h->nr_series == 2 &&
		       !strcmp(h->series[0].name, "a") && !strcmp(h->series[1].name, "late");
		kb_barman_close(barman);
	}
out:
	tap_ok(good, disk ? "compacting_drops_spare_series_on_disk"
			  : "compacting_drops_spare_series");
	kb_barman_writer_destroy(w);
	close(fds[0]);
}

/* Behind something else in the file, from where the descriptor is. */
static void a_capture_may_start_anywhere(bool disk, bool compact)
{
	const char *name = disk ? "a_capture_may_start_anywhere_on_disk"
				: "a_capture_may_start_anywhere";
	struct kb_barman_writer *w;
	struct kb_barman *barman;
	char before[4099] = "x";
	struct kb_error err;
	bool good = false;
	int fds[2];

	random_capture(&capture, 8, false, false);
	capture.layout.max_string_table_length = 1 << 16;
	if (open_sink(disk ? SINK_DISK : SINK_MEMORY, fds)) {
		tap_skip(name, "no temporary file here");
		return;
	}
	if (write(fds[1], before, sizeof(before)) != sizeof(before) ||
	    kb_barman_writer_create(&w, fds[1], &capture.layout, &err))
		return;
	good = write_tables(w, &capture);
	for (int turn = 0; good && turn < 100; turn++) {
		for (uint32_t i = 0; good && i < capture.nr_events; i++)
			good = !kb_barman_writer_event(w, &capture.events[i]);
	}
	good = good && !kb_barman_writer_finish(w, compact, &err);
	kb_barman_writer_destroy(w);
	/* What is behind it is where the descriptor is left. */
	good = good && write(fds[1], "behind", 6) == 6;
	good = good && lseek(fds[1], sizeof(before), SEEK_SET) == sizeof(before) &&
	       dup2(fds[1], STDIN_FILENO) == STDIN_FILENO && !kb_barman_open(&barman, "-", &err);
	if (good) {
		struct kb_validation sum;

		good = same_tables(&capture, barman) &&
		       !kb_barman_validate(barman, &sum, &err) &&
		       sum.records == 100 * (uint64_t)capture.nr_events &&
		       !kb_barman_damage(barman, NULL);
		kb_barman_close(barman);
	}
	tap_ok(good && pread(fds[0], before, 1, 0) == 1 && before[0] == 'x', name);
	close(fds[0]);
}

static void what_does_not_fit_is_refused_alone(void)
{
	static const struct kb_barman_layout layout = {
		.size = sizeof(layout),
		.word_size = 4, .max_cores = 2, .max_task_infos = 1, .max_mmap_layout = 1,
		.max_pmu_counters = 1, .max_string_table_length = 16, .buffer_length = 64,
	};
	struct kb_task task = { .name = "a" };
	struct kb_map map = { .base_address = UINT64_C(1) << 32 };
	struct kb_header header = { .target_name = "t" };
	struct kb_event e = { .type = KB_EVENT_TASK_SWITCH };
	struct kb_pmu pmu = { .num_counters = 2 };
	int fd = memfd_create("capture", 0);
	struct kb_barman_writer *w;
	struct kb_error err;

	if (kb_barman_writer_create(&w, fd, &layout, &err)) {
		tap_ok(false, "writer_opens");
		return;
	}
	tap_is(kb_barman_writer_set_header(w, &header), 0, "header_fits");
	tap_is(kb_barman_writer_string(w, "a string that is too long"), -ENOSPC,
	       "string_table_is_full");
	tap_is(kb_barman_writer_string(w, "t"), 0, "known_string_is_found");
	tap_is(kb_barman_writer_task(w, &task), 0, "task_fits");
	tap_is(kb_barman_writer_task(w, &task), -ENOSPC, "task_table_is_full");
	tap_is(kb_barman_writer_map(w, &map), -ERANGE, "address_is_too_large");
	tap_is(kb_barman_writer_pmu(w, 2, &pmu), -EINVAL, "no_such_core");
	tap_is(kb_barman_writer_pmu(w, 0, &pmu), -EINVAL, "too_many_counters");
	e.core = 2;
	tap_is(kb_barman_writer_event(w, &e), -EINVAL, "event_of_no_such_core");
	e.core = 0;
	tap_is(kb_barman_writer_event(w, &e), 0, "first_event_fits");
	tap_is(kb_barman_writer_event(w, &e), 0, "second_event_fits");
	tap_is(kb_barman_writer_event(w, &e), -ENOSPC, "linear_buffer_is_full");
	e.type = KB_EVENT_CUSTOM_COUNTER;
	tap_is(kb_barman_writer_event(w, &e), -EINVAL, "no_such_series");
	tap_is(kb_barman_writer_finish(w, true, &err), 0, "finishes_nevertheless");
	kb_barman_writer_destroy(w);
	close(fd);
}

static void a_full_disk_is_an_error(void)
{
	struct kb_barman_layout layout = { .size = sizeof(layout), .max_cores = 1, .max_task_infos = 1 };
	struct kb_event e = { .type = KB_EVENT_TASK_SWITCH };
	int fd = open("/dev/full", O_WRONLY), ret = 0;
	struct kb_barman_writer *w;
	struct kb_error err;

	if (fd < 0 || kb_barman_writer_create(&w, fd, &layout, &err)) {
		tap_skip("a_full_disk_is_an_error", "no /dev/full");
		return;
	}
	for (int i = 0; i < 1000000 && !ret; i++)
		ret = kb_barman_writer_event(w, &e);
	tap_is(ret, -ENOSPC, "a_full_disk_is_an_error");
	tap_is(kb_barman_writer_event(w, &e), -ENOSPC, "the_error_stays");
	tap_ok(kb_barman_writer_finish(w, false, &err) == -ENOSPC &&
	       strstr(err.text, "No space"), "the_error_is_told");
	kb_barman_writer_destroy(w);
	close(fd);
}

int main(void)
{
	const char *tmp = getenv("TMPDIR");

	random_start();
	if (chdir(tmp ? tmp : "/tmp"))
		return 1;
	for (unsigned int word = 4; word <= 8; word += 4) {
		for (int big = 0; big < 2; big++) {
			for (int circular = 0; circular < 2; circular++) {
				everything_comes_back(word, big, circular, SINK_MEMORY, RECORDS,
						      "a_file");
				everything_comes_back(word, big, circular, SINK_PIPE, 2000,
						      "a_pipe");
				everything_comes_back(word, big, circular, SINK_DISK, 1000,
						      "the_disk");
			}
		}
	}
	compacting_keeps_what_was_written(false);
	compacting_keeps_what_was_written(true);
	compacting_drops_spare_series(false);
	compacting_drops_spare_series(true);
	for (int i = 0; i < 4; i++)
		a_capture_may_start_anywhere(i & 1, i & 2);
	what_does_not_fit_is_refused_alone();
	a_full_disk_is_an_error();
	return tap_done();
}
