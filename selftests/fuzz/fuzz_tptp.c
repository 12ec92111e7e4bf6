// SPDX-License-Identifier: MIT
/*
 * Fuzz target of the TPTP reader, both forms. What it reads must be writable in both
 * forms again; nothing else is asked than that it ends, within its memory.
 */
#include <errno.h>
#include <stdlib.h>

#include <kbarman/tptp.h>

static int drop(void *context, const void *data, size_t size)
{
	(void)context;
	(void)data;
	(void)size;
	return 0;
}

static void must(int ret)
{
	if (ret && ret != -EMSGSIZE && ret != -EINVAL)
		abort();
}

static const struct kb_tptp_layout forms[] = {
	{ .size = sizeof(forms[0]), .binary = true },
	{ .size = sizeof(forms[0]) },
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kb_tptp_writer *writers[2];
	struct kb_tptp_message message;
	struct kb_out *out;
	struct kb_tptp *tptp;
	struct kb_error err;
	int ret;

	if (kb_tptp_open_memory(&tptp, data, size, &err))
		return 0;
	if (kb_out_function(&out, drop, NULL))
		abort();
	must(kb_tptp_writer_create(&writers[0], out, &forms[0]));
	must(kb_tptp_writer_create(&writers[1], out, &forms[1]));
	while ((ret = kb_tptp_next(tptp, &message, &err)) != 0) {
		if (ret < 0)
			continue;
		must(kb_tptp_writer_message(writers[0], &message));
		must(kb_tptp_writer_message(writers[1], &message));
	}
	kb_tptp_writer_destroy(writers[0]);
	kb_tptp_writer_destroy(writers[1]);
	kb_out_destroy(out);
	kb_tptp_close(tptp);
	return 0;
}
