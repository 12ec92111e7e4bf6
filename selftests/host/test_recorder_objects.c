// SPDX-License-Identifier: MIT
/* What the recorder sees of what tasks wait for, and which names it writes. */
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../user/lib/record/recorder/objects.c"
#include "../lib/tap.h"
#include "format/barman/writer.h"

static struct bm_protocol_header_start header;
static __u32 no_tasks;
static struct ring ring = { .mapped = { .header = &header, .nr_tasks = &no_tasks } };
static struct kb_recorder recorder = { .rings = &ring, .nr_cpus = 2 };
static char path[] = "/tmp/kbarman-objects-XXXXXX";

/* A switch of CPU @core to @next, whose last task waits for that. */
struct switched {
	bm_uintptr length;
	struct bm_protocol_task_switch record;
	struct bm_kbarman_callchain chain;
	struct bm_kbarman_object object;
} __attribute__((packed, aligned(8)));

static struct switched make(uint32_t core, uint32_t next, uint8_t kind, uint32_t id, uint64_t value)
{
	return (struct switched){
		.length = sizeof(struct switched) - sizeof(bm_uintptr),
		.record = { .header = { .record_type = BM_RECORD_TASK_SWITCH, .core = core },
			    .task_id = next, .flags = kind ? BM_TASK_SWITCH_OBJECT : 0 },
		.object = { .kind = kind, .id = id, .value = value },
	};
}

static void see(uint32_t core, uint32_t next, uint8_t kind, uint32_t id, uint64_t value)
{
	struct switched s = make(core, next, kind, id, value);

	recorder_objects_see(&recorder, &s.record, s.length);
}

static void begin(void)
{
	const struct kb_barman_layout layout = {
		.size = sizeof(layout), .word_size = sizeof(bm_uintptr), .max_cores = 2, .max_task_infos = 1,
		.max_string_table_length = 1U << 20,
	};
	int fd = mkstemp(path);

	if (fd < 0 || kb_barman_writer_create(&recorder.writer, fd, &layout, NULL) || recorder_objects_begin(&recorder))
		exit(1);
	unlink(path);
}

static void end(void)
{
	kb_barman_writer_destroy(recorder.writer);
	recorder_objects_destroy(&recorder);
	memcpy(path + sizeof(path) - 7, "XXXXXX", 6);
}

/* Whether the capture has the fact by now. */
static bool has(const char *fact)
{
	uint32_t at = 0;

	while (at < recorder.writer->string_bytes) {
		const char *string = (const char *)recorder.writer->header + BARMAN_AT_STRINGS + at;

		if (strcmp(string, fact) == 0)
			return true;
		at += (uint32_t)strlen(string) + 1;
	}
	return false;
}

/* However short the time is for a busy machine. */
static int look_at_all(void)
{
	int ret = 0;

	while (!ret && recorder.objects->nr_asked)
		ret = recorder_objects_look(&recorder, true, NULL);
	return ret;
}

static void names(int event, uint64_t inode)
{
	const uint32_t self = (uint32_t)getpid();
	char fact[96];
	int ret;

	begin();
	see(1, 77, KB_OBJECT_ANON, (uint32_t)event, inode);
	tap_is(recorder.objects->nr_asked, 0, "a_task_that_is_not_known_is_not_asked");
	see(0, self, 0, 0, 0);
	see(1, 0, 0, 0, 0);
	see(0, 5, KB_OBJECT_ANON, (uint32_t)event, inode);
	tap_is(recorder.objects->nr_asked, 1, "who_ran_on_that_cpu_is_asked");
	see(0, self, KB_OBJECT_CALL, 1, 2);
	see(0, self, KB_OBJECT_FUTEX, 1, 2);
	see(0, self, 99, 1, 2);
	see(9, self, KB_OBJECT_PIPE, 1, 2);
	see(0, 0, KB_OBJECT_ANON, (uint32_t)event, inode);
	tap_is(recorder.objects->nr_asked, 1, "once_and_not_of_calls_and_locks");
	ret = look_at_all();
	snprintf(fact, sizeof(fact), "kbarman.object.7.%" PRIu64 ".%d.%u=eventfd", inode, event, self);
	tap_ok(!ret && has(fact), "its_name_is_a_fact");
	see(0, self, 0, 0, 0);
	see(0, 0, KB_OBJECT_ANON, (uint32_t)event, inode);
	tap_is(recorder.objects->nr_asked, 0, "what_has_a_name_is_not_asked_for_again");
	see(0, self, 0, 0, 0);
	for (unsigned int i = 0; i < TRIES; i++) {
		see(0, self, KB_OBJECT_ANON, (uint32_t)event, inode + 1);
		look_at_all();
	}
	see(0, 0, KB_OBJECT_ANON, (uint32_t)event, inode + 1);
	tap_is(recorder.objects->nr_asked, 0, "what_has_none_is_asked_for_a_few_times");
	tap_ok(!has("kbarman.objects_unnamed=1"), "nothing_is_left_out");
	end();
}

/* Task @task wakes another one by a call on that. */
static void see_wakeup(uint32_t task, uint8_t what, uint8_t kind, uint64_t value, size_t bytes)
{
	const struct {
		struct bm_protocol_custom_counter record;
		struct bm_kbarman_detail detail;
		struct bm_kbarman_object object;
	} __attribute__((packed, aligned(4))) wakeup = {
		.record = { .header = { .record_type = BM_RECORD_CUSTOM_COUNTER }, .task_id = task },
		.detail = { .what = what }, .object = { .kind = kind, .value = value },
	};

	recorder_objects_see(&recorder, &wakeup, bytes ?: sizeof(wakeup));
}

static void wakeups(void)
{
	begin();
	see_wakeup(5, BM_KBARMAN_WAKING, KB_OBJECT_SOCKET, 99, sizeof(struct bm_protocol_custom_counter) + 8);
	see_wakeup(5, BM_KBARMAN_MIGRATE, KB_OBJECT_SOCKET, 99, 0);
	see_wakeup(5, BM_KBARMAN_LOST, KB_OBJECT_SOCKET, 99, 0);
	see_wakeup(5, 0, KB_OBJECT_SOCKET, 99, 0);
	see_wakeup(5, BM_KBARMAN_WAKING, KB_OBJECT_CALL, 99, 0);
	tap_is(recorder.objects->nr_asked, 0, "only_wakeups_have_an_object");
	see_wakeup(5, BM_KBARMAN_WAKING, KB_OBJECT_SOCKET, 99, 0);
	see_wakeup(6, BM_KBARMAN_WAKING_NEW, KB_OBJECT_PIPE, 98, 0);
	tap_is(recorder.objects->nr_asked, 2, "who_wakes_is_asked_for_what_its_call_is_about");
	tap_ok(recorder.objects->asked[0].task == 5 && recorder.objects->asked[0].value == 99 &&
	       recorder.objects->asked[1].task == 6, "each_of_its_own");
	end();
}

static void runs(int event, uint64_t inode)
{
	const struct switched blocks[] = {
		make(0, (uint32_t)getpid(), 0, 0, 0), make(0, 0, KB_OBJECT_ANON, (uint32_t)event, inode),
	};
	const struct kb_raw_run run = { .blocks = blocks, .bytes = sizeof(blocks), .records = 2 };

	begin();
	recorder_objects_see_run(&recorder, &run);
	tap_is(recorder.objects->nr_asked, 1, "records_of_a_run_are_seen");
	tap_is(recorder.objects->asked[0].value, inode, "with_what_they_wait_for");
	end();
}

static void limits(void)
{
	begin();
	see(0, 0x7ffffff0, 0, 0, 0);
	for (uint32_t i = 0; i < ASKED_MAX + 5; i++)
		see(0, 0x7ffffff0, KB_OBJECT_SOCKET, 0, i);
	tap_is(recorder.objects->nr_asked, ASKED_MAX, "a_look_is_for_a_few_objects");
	for (uint32_t i = 0; i < KNOWN_MAX + 5; i++) {
		see(0, 0x7ffffff0, KB_OBJECT_SOCKET, 0, i);
		if (recorder.objects->nr_asked == ASKED_MAX)
			look_at_all();
	}
	tap_is(recorder.objects->known.nr, KNOWN_MAX, "objects_that_are_remembered_have_a_limit");
	recorder_objects_look(&recorder, true, NULL);
	tap_ok(has("kbarman.objects_unnamed=1"), "which_is_told");
	end();
}

int main(void)
{
	int event = eventfd(0, EFD_CLOEXEC);
	struct stat st;

	fstat(event, &st);
	names(event, st.st_ino);
	wakeups();
	runs(event, st.st_ino);
	limits();
	return tap_done();
}
