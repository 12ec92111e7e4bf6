// SPDX-License-Identifier: MIT
/*
 * Fuzz target of the exports: a capture with whatever in its header and records. What
 * they write of it must be whole in the formats that this project reads, and text must
 * be UTF-8. The last byte, which stands behind the records of most captures, says which
 * variants are written, so that the expensive ones do not slow down the others.
 */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kbarman/annotate.h>
#include <kbarman/export.h>
#include <kbarman/heph.h>
#include <kbarman/report.h>
#include <kbarman/tptp.h>

#include "base/text/utf8.h"
#include "export/otlp/otlp.h"

static void must(bool good)
{
	if (!good)
		abort();
}

static void check_heph(const void *data, size_t size, bool limits)
{
	struct kb_heph_reader *reader;
	struct kb_heph_packet packet;
	const struct kb_error *first;
	struct kb_error err;
	int result;

	must(!kb_heph_open_memory(&reader, data, size, &err));
	while ((result = kb_heph_next(reader, &packet, &err)) > 0)
		must(!limits || packet.size <= 128);
	must(!result && !kb_heph_damage(reader, &first));
	kb_heph_close(reader);
}

static void check_annotate(const void *data, size_t size)
{
	struct kb_annotate_reader *reader;
	struct kb_annotate_message m;
	const struct kb_error *first;
	struct kb_error err;
	int result;

	must(!kb_annotate_open_memory(&reader, data, size, &err));
	while ((result = kb_annotate_next(reader, &m, &err)) > 0)
		;
	must(!result && !kb_annotate_damage(reader, &first));
	kb_annotate_close(reader);
}

/* ---- TPTP ---- */

#define MAX_OPEN	65536
#define MAX_METHODS	65536

struct tptp_state {
	struct {
		int64_t thread, ticket;
	} open[MAX_OPEN];		/* in the order of their entries */
	unsigned int nr_open;
	bool methods[MAX_METHODS];	/* defined */
};

static void enter(struct tptp_state *state, const union kb_tptp_value *v)
{
	uint64_t method = v[KB_TPTP_METHOD_ENTRY_METHOD_ID].number;

	must(method < MAX_METHODS && state->methods[method]);
	must(state->nr_open < MAX_OPEN);
	state->open[state->nr_open].thread = v[KB_TPTP_METHOD_ENTRY_THREAD_ID].number;
	state->open[state->nr_open++].ticket = v[KB_TPTP_METHOD_ENTRY_TICKET].number;
}

/* An exit closes the innermost entry that its thread has open. */
static void leave(struct tptp_state *state, const union kb_tptp_value *v)
{
	unsigned int at = state->nr_open;

	while (at && state->open[at - 1].thread != v[KB_TPTP_METHOD_EXIT_THREAD_ID].number)
		at--;
	must(at && state->open[at - 1].ticket == v[KB_TPTP_METHOD_EXIT_TICKET].number);
	memmove(&state->open[at - 1], &state->open[at],
		(state->nr_open - at) * sizeof(*state->open));
	state->nr_open--;
}

static void check_tptp(const void *data, size_t size)
{
	struct tptp_state *state = calloc(1, sizeof(*state));
	struct kb_tptp_message m;
	struct kb_tptp *tptp;
	struct kb_error err;
	int result;

	must(state && !kb_tptp_open_memory(&tptp, data, size, &err));
	while ((result = kb_tptp_next(tptp, &m, &err)) > 0) {
		if (m.table->id == KB_TPTP_METHOD_DEF &&
		    m.values[KB_TPTP_METHOD_DEF_METHOD_ID].number < MAX_METHODS)
			state->methods[m.values[KB_TPTP_METHOD_DEF_METHOD_ID].number] = true;
		else if (m.table->id == KB_TPTP_METHOD_ENTRY)
			enter(state, m.values);
		else if (m.table->id == KB_TPTP_METHOD_EXIT)
			leave(state, m.values);
	}
	must(!result && !state->nr_open && !kb_tptp_info(tptp)->skipped);
	kb_tptp_close(tptp);
	free(state);
}

/* ---- all of them ---- */

static void check_text(const char *data, size_t size)
{
	for (size_t i = 0, length; i < size; i += length) {
		uint32_t code;

		length = kb_utf8_next(data + i, size - i, &code);
		/* what stands for broken bytes, not what was written as U+FFFD */
		must(code != KB_UTF8_REPLACEMENT || (length == 3 && (uint8_t)data[i] == 0xef));
	}
}

static void check(const char *name, const void *data, size_t size, bool flag)
{
	if (strcmp(name, "heph") == 0)
		check_heph(data, size, !flag);
	else if (strcmp(name, "annotate") == 0)
		check_annotate(data, size);
	else if (strcmp(name, "tptp") == 0)
		check_tptp(data, size);
	else if (strcmp(name, "perfetto") != 0 && strcmp(name, "pprof") != 0 &&
		 strcmp(name, "barman") != 0)
		check_text(data, size);		/* those three are binary */
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *place)
{
	(void)st;
	(void)type;
	(void)place;
	return remove(path);
}

static void export(struct kb_trace *trace, const struct kb_export *export, const char *format,
		   bool flag)
{
	const uint64_t cpus = 0x5555555555555555;
	const struct kb_filter part = {
		.size = sizeof(part), .cpus = &cpus, .nr_cpu_words = 1, .has_time = true,
		.from = 1000, .until = 1000000000, .has_tid = format, .tid = 7,
	};
	struct kb_export_options options = {
		.size = sizeof(options),
		.format = format, .arrays = flag, .sample_text = flag, .aggregate = flag,
		.filter = flag ? &part : NULL,
	};
	char folder[] = "/dev/shm/kbarman-fuzz.XXXXXX";
	struct kb_error err;
	struct kb_out *out;
	const void *data;
	size_t size;

	if (export->directory) {
		must(mkdtemp(folder));
		options.directory = folder;
	}
	must(!kb_out_memory(&out));
	if (kb_export_run(export, trace, &options, out, &err) >= 0) {
		data = kb_out_data(out, &size);
		check(export->name, data, size, flag);
	}
	kb_out_destroy(out);
	if (export->directory)
		must(!nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS));
}

static int take(void *context, const struct kb_otlp_request *request)
{
	uint64_t *samples = context;

	must(request->size && request->profiles);
	must(request->until - request->from <= 60000000000);
	*samples += request->samples;
	return 0;
}

/* Makes requests of OTLP, which is no format of a file. */
static void push(struct kb_trace *trace)
{
	uint64_t samples = 0;
	const struct kb_otlp_options options = { .take = take, .context = &samples };
	struct kb_error err;

	kb_otlp_run(trace, &options, &err);
}

/* Makes a report and reads its rows. */
static void report(struct kb_trace *trace, bool flag)
{
	const struct kb_filter filter = {
		.size = sizeof(filter), .has_time = true, .until = 1000000000,
	};
	const struct kb_report_options options = {
		.size = sizeof(options), .children = flag, .call_graph = flag, .idle = !flag,
		.filter = flag ? &filter : NULL,
	};
	const struct kb_report *report;
	struct kb_error err;
	uint64_t samples = 0;

	if (kb_report_create(&report, trace, &options, &err) < 0)
		return;
	for (uint32_t i = 0; i < report->samples.nr; i++) {
		const struct kb_sample_row row = kb_report_sample(&report->samples, i);

		samples += row.samples;
		kb_report_counter(&report->samples, &row, 0);
	}
	must(samples == report->totals.samples);
	kb_report_destroy(report);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* no image of this machine is read, whatever the capture calls for */
	const struct kb_symbol_options nothing = { .size = sizeof(nothing), .symfs = "/nonexistent" };
	const struct kb_trace_options how = { .size = sizeof(how), .symbols = &nothing };
	const struct kb_export *const *e = kb_export_all();
	struct kb_trace *trace;
	struct kb_error err;
	unsigned int choice, nr = 0;

	if (!size || kb_trace_open_memory(&trace, data, size, &how, &err))
		return 0;
	while (e[nr])
		nr++;
	choice = data[size - 1];
	if (choice == 255)
		push(trace);
	e += choice / 2 % nr;
	export(trace, *e, NULL, choice & 1);
	for (const char *const *f = (*e)->formats; f && *f; f += 2)
		export(trace, *e, *f, choice & 1);
	report(trace, choice & 1);
	kb_trace_close(trace);
	return 0;
}
