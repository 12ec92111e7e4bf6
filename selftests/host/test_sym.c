// SPDX-License-Identifier: MIT
/*
 * The symbolizer as a whole: this very process, as /proc/self/maps shows it, is
 * recorded into a capture, and every function of it must be found again; dladdr(3)
 * and the addresses of our own functions are the truth.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <kbarman/barman.h>
#include <kbarman/symbol.h>

#include "../lib/tap.h"
#include "analysis/samples/sample_queue.h"

#define TASK	42
#define JIT	0x7000000000UL
#define SPAN	0x7100000000UL	/* of this program: more than it has */
#define BEYOND	0x7200000000UL	/* what this program has not */

struct session {
	struct kb_barman *barman;
	struct kb_symbolizer *symbolizer;
	int fd;
};

static void must(int ret)
{
	if (ret < 0) {
		fprintf(stderr, "can't make a capture: %s\n", strerror(-ret));
		exit(2);
	}
}

static void add_own_maps(struct kb_barman_writer *writer)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[4352], path[4096], flags[8];

	while (maps && fgets(line, sizeof(line), maps)) {
		struct kb_map row = { .timestamp = 10, .task_id = TASK };
		uint64_t end;

		path[0] = '\0';
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %4095s",
			   &row.base_address, &end, flags, &row.image_offset, path) < 4 ||
		    flags[2] != 'x')
			continue;
		row.length = end - row.base_address;
		row.image = path;
		must(kb_barman_writer_map(writer, &row));
	}
	if (maps)
		fclose(maps);
}

static void open_session(struct session *session, const struct kb_symbol_options *options)
{
	const struct kb_barman_layout layout = {
		.size = sizeof(layout),
		.max_cores = 1, .max_task_infos = 16, .max_mmap_layout = 1024,
		.max_string_table_length = 1 << 16,
	};
	const struct kb_header header = {
		.target_name = "test", .timestamp_multiplier = 1, .timestamp_divisor = 1,
	};
	static const struct kb_map others[] = {
		{ 10, TASK, 0, JIT, 0x1000, 0, "", { NULL, 0 } },
		{ 10, TASK, 0, JIT + 0x1000, 0x1000, 0, "/gone/program", { NULL, 0 } },
		{ 10, TASK, 0, JIT + 0x2000, 0x1000, 0, "/usr/bin/old (deleted)", { NULL, 0 } },
		{ 10, TASK, 0, JIT + 0x3000, 0x1000, 0, "/SYSV00000000 (deleted)", { NULL, 0 } },
		{ 10, TASK, 0, SPAN, 1 << 30, 0, "/proc/self/exe", { NULL, 0 } },
		{ 10, TASK, 0, BEYOND, 0x1000, 1 << 30, "/proc/thread-self/exe", { NULL, 0 } },
		{ 10, 0, 0, 0xffffffff81000000, 0x10000, 0, "[kernel.kallsyms]", { NULL, 0 } },
		{ 10, 0, 0, 0xffffffffc0000000, 0x1000, 0, "[some_module]", { NULL, 0 } },
	};
	struct kb_barman_writer *writer;
	struct kb_error err = { 0 };
	char path[32];
	size_t i;

	session->fd = memfd_create("capture", 0);
	must(kb_barman_writer_create(&writer, session->fd, &layout, &err));
	must(kb_barman_writer_set_header(writer, &header));
	add_own_maps(writer);
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		must(kb_barman_writer_map(writer, &others[i]));
	must(kb_barman_writer_finish(writer, true, &err));
	kb_barman_writer_destroy(writer);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", session->fd);
	must(kb_barman_open(&session->barman, path, &err));
	must(kb_symbolizer_create(&session->symbolizer, session->barman, path, options, &err));
}

static void close_session(struct session *session)
{
	kb_symbolizer_destroy(session->symbolizer);
	kb_barman_close(session->barman);
	close(session->fd);
}

static const struct kb_symbol *resolve(struct session *session, uint64_t pc)
{
	return kb_symbolizer_resolve(session->symbolizer, TASK, 20, pc);
}

__attribute__((noinline)) int one_of_ours(int x)
{
	return x * 7 + 1;
}

__attribute__((noinline)) static int another_of_ours(int x)
{
	return x / 3 - 1;
}

static void test_own_functions(struct session *session)
{
	int (*volatile function)(int) = one_of_ours;
	const struct kb_symbol *symbol = resolve(session, (uintptr_t)function + 1);

	tap_is_string(symbol->name, "one_of_ours", "a_function_of_a_program_is_found");
	tap_ok(symbol->address == (uintptr_t)function && symbol->size > 1,
	       "its_address_is_in_the_process");
	tap_ok(!strcmp(symbol->image_base, "test_sym") || strstr(symbol->image, symbol->image_base),
	       "its_image_has_a_base_name");
	tap_ok(!symbol->kernel, "it_is_not_of_the_kernel");
	symbol = resolve(session, (uintptr_t)function + symbol->size - 1);
	tap_is_string(symbol->name, "one_of_ours", "its_last_byte_is_found");
	function = another_of_ours;
	symbol = resolve(session, (uintptr_t)function);
	tap_is_string(symbol->name, "another_of_ours", "a_static_function_is_found");
}

/* Exported functions of libc, which this process has mapped somewhere. */
static void test_libc(struct session *session)
{
	static const char *const names[] = { "malloc", "qsort_r", "printf", "getenv", "strtod" };
	unsigned int i, wrong = 0;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		uintptr_t address = (uintptr_t)dlsym(RTLD_DEFAULT, names[i]);
		const struct kb_symbol *symbol = resolve(session, address + 4);

		if (symbol->address != address || !strstr(symbol->name, names[i]) ||
		    !strstr(symbol->image, "libc")) {
			tap_note("%s is %s of %s", names[i], symbol->name, symbol->image);
			wrong++;
		}
	}
	tap_is(wrong, 0, "functions_of_a_shared_library_are_found");
}

static void test_ids(struct session *session)
{
	uintptr_t a = (uintptr_t)one_of_ours, b = (uintptr_t)another_of_ours;
	uint32_t id_a = resolve(session, a)->id, id_b = resolve(session, b)->id;

	tap_ok(id_a != id_b, "symbols_have_ids_of_their_own");
	tap_is(resolve(session, a + 1)->id, id_a, "ids_stay");
	tap_ok(id_a < kb_symbolizer_count(session->symbolizer) &&
	       id_b < kb_symbolizer_count(session->symbolizer), "ids_are_below_the_count");
}

static void test_no_symbols(struct session *session)
{
	const struct kb_symbol *symbol = resolve(session, JIT + 5);

	tap_is_string(symbol->image, "[anon]", "memory_without_a_file_is_anonymous");
	tap_is_string(symbol->name, "", "and_has_no_symbols");
	symbol = resolve(session, JIT + 0x1005);
	tap_is_string(symbol->image, "/gone/program", "a_missing_image_has_its_name");
	tap_is_string(symbol->image_base, "program", "and_its_base_name");
	tap_is_string(resolve(session, JIT + 0x2005)->image, "/usr/bin/old (deleted)",
		      "a_deleted_image_has_its_name");
	tap_is_string(resolve(session, JIT + 0x3005)->image, "/SYSV00000000 (deleted)",
		      "shared_memory_has_its_name");
	tap_is_string(resolve(session, 1)->image, "[unknown]", "what_is_not_mapped_is_unknown");
	tap_ok(!resolve(session, 1)->kernel, "low_addresses_are_not_the_kernels");
	symbol = resolve(session, 0xffffffffa0000000);
	tap_ok(symbol->kernel, "high_addresses_are_the_kernels");
	symbol = kb_symbolizer_resolve(session->symbolizer, 7, 20, (uintptr_t)one_of_ours);
	tap_is_string(symbol->image, "[unknown]", "another_task_has_other_mappings");
}

struct said {
	unsigned int gone, deleted, memory, kernel, span, beyond, other;
};

static void listen(void *context, const char *sentence)
{
	struct said *said = context;

	if (strstr(sentence, "/gone/program"))
		said->gone++;
	else if (strstr(sentence, "/usr/bin/old"))
		said->deleted++;
	else if (strstr(sentence, "/SYSV"))
		said->memory++;
	else if (strstr(sentence, "/proc/self/exe"))
		said->span++;
	else if (strstr(sentence, "/proc/thread-self/exe"))
		said->beyond++;
	else if (strstr(sentence, "kernel"))
		said->kernel++;
	else
		said->other++;
}

static void test_complaints(struct session *session)
{
	struct said said = { 0 };

	kb_symbolizer_complaints(session->symbolizer, listen, &said);
	tap_is(said.gone, 1, "a_missing_image_is_said_once");
	tap_is(said.deleted, 1, "a_deleted_image_is_said_once");
	tap_is(said.memory, 0, "memory_that_never_was_a_file_is_not_missed");
	tap_is(said.kernel, 1, "missing_kernel_symbols_are_said");
	tap_is(said.other, 1, "unmapped_addresses_are_said");
}

/*
 * Loaders map a file's whole span as code first, and its data over it: an address there, as a
 * chain may have it, says nothing of the file. That a mapping begins where the file has nothing
 * does.
 */
static void test_spans(struct session *session)
{
	struct said said = { 0 };

	tap_is_string(resolve(session, SPAN + (1 << 29))->name, "", "behind_a_file_is_no_symbol");
	tap_is_string(resolve(session, BEYOND)->name, "", "beyond_a_file_is_no_symbol");
	kb_symbolizer_complaints(session->symbolizer, listen, &said);
	tap_is(said.span, 0, "addresses_behind_a_file_are_no_sign_of_another_one");
	tap_is(said.beyond, 1, "mappings_beyond_a_file_are");
}

static void test_kernel(void)
{
	static const char text[] = "ffffffff81000000 T schedule\nffffffff81000100 t idle\n"
				   "ffffffff81000200 D data\nffffffffc0000000 t work\t[some_module]\n";
	struct kb_symbol_options options = { .size = sizeof(options) };
	char path[] = "/tmp/kbarman-sym-XXXXXX";
	struct session session;
	int fd = mkstemp(path);

	if (write(fd, text, sizeof(text) - 1) != sizeof(text) - 1)
		exit(2);
	close(fd);
	options.kallsyms = path;
	open_session(&session, &options);
	tap_is_string(resolve(&session, 0xffffffff81000101)->name, "idle",
		      "kernel_symbols_are_found");
	tap_is_string(resolve(&session, 0xffffffff81000101)->image, "[kernel.kallsyms]",
		      "the_kernel_has_its_name");
	tap_is_string(resolve(&session, 0xffffffff81000300)->name, "", "kernel_data_has_no_name");
	tap_is_string(resolve(&session, 0xffffffffc0000010)->image, "[some_module]",
		      "a_module_has_its_name");
	tap_ok(resolve(&session, 0xffffffffc0000010)->kernel, "a_module_is_of_the_kernel");
	close_session(&session);
	unlink(path);
}

/* What comes out of a queue of samples: each once, as it went in, and in order. */
static void take_sample(const struct kb_event *event, uint64_t *taken, unsigned int *wrong)
{
	uint32_t i;

	*wrong += event->timestamp != ++*taken || event->sample.pc != event->timestamp * 64;
	for (i = 0; i < event->sample.nr_counters; i++)
		*wrong += event->sample.counters[i] != event->timestamp + i;
}

static void test_queue(struct session *session)
{
	uint64_t counters[KB_SAMPLE_COUNTERS + 1], chain = 4096, taken = 0, n;
	struct kb_sample_queue queue = { .first = 0 };
	const struct kb_event *out;
	unsigned int wrong = 0, waited = 0, i;

	for (n = 1; n <= 10000; n++) {
		struct kb_event event = {
			.type = KB_EVENT_SAMPLE, .task_id = n % 3, .timestamp = n,
			.sample = { .has_pc = true, .pc = n * 64, .counters = counters,
				    .nr_counters = n % (KB_SAMPLE_COUNTERS + 1) },
		};

		for (i = 0; i <= KB_SAMPLE_COUNTERS; i++)
			counters[i] = n + i;
		out = kb_sample_queue_put(&queue, session->symbolizer, &event);
		memset(counters, 0xff, sizeof(counters));
		waited += !out || out->timestamp != n;
		if (out)
			take_sample(out, &taken, &wrong);
	}
	while ((out = kb_sample_queue_take(&queue)))
		take_sample(out, &taken, &wrong);
	tap_ok(taken == 10000 && waited == 10000 && !wrong, "samples_that_wait_come_as_they_came");

	wrong = 0;
	for (i = 0; i < 2; i++) {
		struct kb_event event = {
			.type = KB_EVENT_SAMPLE,
			.sample = { .has_pc = true, .counters = counters, .chain = &chain,
				    .nr_chain = !i, .nr_counters = i ? KB_SAMPLE_COUNTERS + 1 : 0 },
		};

		wrong += kb_sample_queue_put(&queue, session->symbolizer, &event) != &event;
	}
	tap_is(wrong, 0, "samples_with_much_to_carry_do_not_wait");
}

int main(void)
{
	struct session session;

	open_session(&session, NULL);
	test_own_functions(&session);
	test_libc(&session);
	test_ids(&session);
	test_no_symbols(&session);
	test_complaints(&session);
	test_spans(&session);
	test_queue(&session);
	close_session(&session);
	test_kernel();
	return tap_done();
}
