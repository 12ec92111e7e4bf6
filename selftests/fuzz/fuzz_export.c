// SPDX-License-Identifier: MIT
/*
 * Fuzz target of the exports: a capture with whatever in its header and records. What
 * they write of it must be whole in the formats that this project reads.
 */
#include <stdlib.h>

#include <kbarman/annotate.h>
#include <kbarman/export.h>
#include <kbarman/heph.h>

static void check_heph(const void *data, size_t size, bool limits)
{
	struct kb_heph_reader *reader;
	struct kb_heph_packet packet;
	const struct kb_error *first;
	struct kb_error err;
	int result;

	if (kb_heph_open_memory(&reader, data, size, &err))
		abort();
	while ((result = kb_heph_next(reader, &packet, &err)) > 0)
		if (limits && packet.size > 128)
			abort();
	if (result < 0 || kb_heph_damage(reader, &first))
		abort();
	kb_heph_close(reader);
}

static void check_annotate(const void *data, size_t size)
{
	struct kb_annotate_reader *reader;
	struct kb_annotate_message m;
	const struct kb_error *first;
	struct kb_error err;
	int result;

	if (kb_annotate_open_memory(&reader, data, size, &err))
		abort();
	while ((result = kb_annotate_next(reader, &m, &err)) > 0)
		;
	if (result < 0 || kb_annotate_damage(reader, &first))
		abort();
	kb_annotate_close(reader);
}

static void export(struct kb_barman *barman, const char *name, bool flag)
{
	struct kb_export_options options = { .arrays = flag, .sample_text = flag };
	struct kb_error err;
	struct kb_out *out;
	const void *data;
	size_t size;

	if (kb_out_memory(&out))
		abort();
	if (kb_export_find(name)->run(barman, NULL, &options, out, &err) >= 0) {
		data = kb_out_data(out, &size);
		if (name[0] == 'h')
			check_heph(data, size, !flag);
		else
			check_annotate(data, size);
	}
	kb_out_destroy(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kb_barman *barman;
	struct kb_error err;

	if (kb_barman_open_memory(&barman, data, size, &err))
		return 0;
	export(barman, "heph", false);
	export(barman, "heph", true);
	export(barman, "annotate", false);
	export(barman, "annotate", true);
	kb_barman_close(barman);
	return 0;
}
