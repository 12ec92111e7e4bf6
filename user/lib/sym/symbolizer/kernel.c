// SPDX-License-Identifier: MIT
/*
 * Kernel addresses differ after each boot. So the running kernel's symbols are used only if
 * host, release and time of boot all agree with the capture.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "sym/files/side.h"
#include "sym/symbolizer/kernel.h"

static bool fact_is(const struct kb_barman *barman, const char *key, const char *value)
{
	const char *fact = kb_barman_fact(barman, key);

	return fact && strcmp(fact, value) == 0;
}

bool kb_kernel_is_running(const struct kb_barman *barman)
{
	int64_t boot = kb_clock_ns(CLOCK_REALTIME) - kb_clock_ns(CLOCK_BOOTTIME);
	struct utsname name;

	return uname(&name) == 0 &&
	       fact_is(barman, "host", name.nodename) &&
	       fact_is(barman, "release", name.release) &&
	       (int64_t)kb_barman_header(barman)->unix_base_ns >= boot;
}

bool kb_kernel_is_elsewhere(const struct kb_barman *barman)
{
	const char *host = kb_barman_fact(barman, "host");
	struct utsname name;

	return host && uname(&name) == 0 && strcmp(host, name.nodename) != 0;
}

char *kb_kernel_symbols_path(const struct kb_barman *barman, const char *capture,
			     const char *option)
{
	char *path;

	if (option)
		return strdup(option);
	path = kb_side_find(barman, capture, ".kallsyms");
	if (path)
		return path;
	return kb_kernel_is_running(barman) ? strdup("/proc/kallsyms") : NULL;
}

char *kb_kernel_image_path(const struct kb_barman *barman, const char *symfs, const char *option)
{
	static const char *const places[] = {
		"%s/usr/lib/debug/boot/vmlinux-%s",
		"%s/usr/lib/debug/lib/modules/%s/vmlinux",
		"%s/lib/modules/%s/build/vmlinux",
		"%s/boot/vmlinux-%s",
	};
	const char *release = kb_barman_fact(barman, "release");
	char *path;
	size_t i;

	if (option)
		return strdup(option);
	if (!release || strchr(release, '/'))
		return NULL;
	for (i = 0; i < ARRAY_SIZE(places); i++) {
		if (asprintf(&path, places[i], symfs, release) < 0)
			return NULL;
		if (access(path, R_OK) == 0)
			return path;
		free(path);
	}
	return NULL;
}
