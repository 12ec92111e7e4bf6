// SPDX-License-Identifier: MIT
/*
 * Fuzz target of the Barman reader: it must end, within its memory, both of its
 * ways must give the same records, and what it gives must be writable again.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <kbarman/barman.h>

static void must(bool good)
{
	if (!good)
		abort();
}

/* A writer of the same layout, whose output goes nowhere. */
static struct kb_barman_writer *writer_like(const struct kb_header *h, int fd)
{
	struct kb_barman_layout layout = {
		.size = sizeof(layout),
		.word_size = h->word_size,
		.big_endian = h->big_endian,
		.circular = h->data_store_type == 2,
		.buffer_length = h->data_store_type == 2 ? 4096 : 0,
		.max_cores = h->max_cores,
		.max_task_infos = h->nr_tasks ? h->nr_tasks : !!h->max_task_infos,
		.max_mmap_layout = h->nr_maps ? h->nr_maps : !!h->max_mmap_layout,
		.max_pmu_counters = h->max_pmu_counters,
		.max_string_table_length = h->string_table_length + 64,
		.max_custom_charts = h->nr_charts,
		.max_custom_series = h->nr_charts ? h->nr_series : 0,
	};
	struct kb_barman_writer *w;

	if (kb_barman_writer_create(&w, fd, &layout, NULL))
		return NULL;
	must(!kb_barman_writer_set_header(w, h));
	if (h->extended)
		kb_barman_writer_fact(w, "ext", "1");
	if (h->wide_states)
		kb_barman_writer_fact(w, "states", "S1");
	for (uint32_t i = 0; i < h->max_cores; i++)
		must(!kb_barman_writer_pmu(w, i, &h->pmus[i]));
	for (uint32_t i = 0; i < h->nr_tasks; i++)
		kb_barman_writer_task(w, &h->tasks[i]);
	for (uint32_t i = 0; i < h->nr_maps; i++)
		kb_barman_writer_map(w, &h->maps[i]);
	for (uint32_t i = 0; i < h->nr_charts; i++)
		kb_barman_writer_chart(w, &h->charts[i]);
	for (uint32_t i = 0; h->nr_charts && i < h->nr_series; i++)
		kb_barman_writer_series(w, &h->series[i]);
	return w;
}

/* Of what was cut off, no more than there is; and it ends without an error of its end. */
static void salvage(struct kb_barman *barman, size_t size)
{
	uint64_t records = 0, again = 0;
	struct kb_salvage salvage;
	struct kb_validation sum;
	struct kb_event event;

	must(!kb_barman_salvage(barman, &salvage, NULL));
	must(salvage.told <= size && salvage.untold <= size - salvage.told &&
	     salvage.dropped <= size);
	while (kb_barman_next(barman, &event, NULL) == 1)
		records++;
	kb_barman_validate(barman, &sum, NULL);
	must(!kb_barman_rewind(barman));
	while (kb_barman_next(barman, &event, NULL) == 1)
		again++;
	must(sum.records == records && again == records);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int nowhere = -1;
	uint64_t checksum = 0, records = 0;
	struct kb_barman_writer *w;
	struct kb_validation sum;
	struct kb_barman *barman;
	struct kb_event event;
	struct kb_error err;
	int ret;

	if (nowhere < 0)
		nowhere = open("/dev/null", O_WRONLY);
	ret = kb_barman_open_memory(&barman, data, size, &err);
	if (ret) {
		must(err.code == ret && err.text[0]);
		return 0;
	}
	/* As in the file, or found out: chosen by a byte that says nothing else. */
	if (size < 1 || !(data[size - 1] & 1))
		kb_barman_set_counters(barman, KB_COUNTERS_DELTA);
	w = writer_like(kb_barman_header(barman), nowhere);
	while ((ret = kb_barman_next(barman, &event, &err)) == 1) {
		records++;
		checksum += kb_event_checksum(&event);
		kb_barman_ns(barman, event.timestamp);
		if (!w)
			continue;
		ret = kb_barman_writer_event(w, &event);
		must(!ret || ret == -EINVAL || ret == -E2BIG);
	}
	must(!ret || (err.text[0] && kb_barman_damage(barman, NULL)));
	kb_barman_validate(barman, &sum, NULL);
	must(sum.records == records);
	if (size < 1 || !(data[size - 1] & 1))
		must(sum.checksum == checksum);
	if (w)
		must(!kb_barman_writer_finish(w, records & 1, &err));
	kb_barman_writer_destroy(w);
	salvage(barman, size);
	kb_barman_close(barman);
	return 0;
}
