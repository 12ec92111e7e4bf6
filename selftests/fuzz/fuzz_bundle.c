// SPDX-License-Identifier: MIT
/* Fuzz target of the reader of CAPTURE.symbols: what was read can be written again. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sym/symbolizer/bundle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kb_images images = { .symfs = calloc(1, 1) };
	static int in = -1;
	char path[32], out[64];

	if (in < 0)
		in = memfd_create("in", 0);
	if (ftruncate(in, 0) || pwrite(in, data, size, 0) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", in);
	snprintf(out, sizeof(out), "/tmp/kbarman-fuzz-%d.symbols", (int)getpid());
	if (kb_bundle_read(&images, path, NULL) == 0 &&
	    kb_bundle_write(&images, out, NULL))
		abort();
	unlink(out);
	kb_images_release(&images);
	return 0;
}
