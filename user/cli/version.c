// SPDX-License-Identifier: MIT
/* kbarman version: prints the version and what this build can do. */
#include <string.h>

#include <kbarman/export.h>
#include <kbarman/version.h>
#include <uapi/kbarman.h>

#include "cli/base/cli.h"
#include "cli/base/fact_lines.h"
#include "cli/base/sandbox.h"
#include "cli/dump/formats.h"

static const struct cli_option options[] = {
	{ 'j', "json", NULL, "print JSON, one object per line: also what this build can do" },
	{ 0 },
};

static const struct cli_usage usage = {
	.head =
	"usage: kbarman version [OPTIONS]\n"
	"\n"
	"Print the version.\n"
	"\n",
	.options = options,
	.column = 15,
};

/* The formats of `convert --to` and `dump`, and the verbs, for scripts. */
#define JSON_VERSION	2	/* of keys: kbarman-json(5) */

static void print_features(struct kb_json *json)
{
	const struct kb_export *const *export;
	bool seccomp;
	int landlock;

	kb_json_begin(json, "version");
	kb_json_string(json, "version", kb_version());
	kb_json_u64(json, "abi", KBARMAN_ABI);
	kb_json_u64(json, "json", JSON_VERSION);
	kb_json_end(json);
	kb_json_begin(json, "verbs");
	kb_json_array(json, "names");
	for (const struct cli_verb *verb = cli_verbs; verb->name; verb++)
		kb_json_string(json, NULL, verb->name);
	kb_json_array_end(json);
	kb_json_end(json);
	for (export = kb_export_all(); *export; export++) {
		kb_json_begin(json, "export");
		kb_json_string(json, "name", (*export)->name);
		kb_json_string(json, "extension", (*export)->extension);
		kb_json_string(json, "description", (*export)->description);
		kb_json_end(json);
	}
	cli_sandbox_features(&seccomp, &landlock);
	kb_json_begin(json, "sandbox");
	kb_json_bool(json, "seccomp", seccomp);
	kb_json_u64(json, "landlock", (uint64_t)landlock);
	kb_json_end(json);
	kb_json_begin(json, "reads");
	kb_json_array(json, "formats");
	for (const struct cli_format *format = cli_formats(); format->name; format++)
		kb_json_string(json, NULL, format->name);
	kb_json_array_end(json);
	kb_json_end(json);
}

static int version_json(void)
{
	struct kb_json lines;

	if (lines_open(&lines, false))
		return CLI_IMPOSSIBLE;
	print_features(&lines);
	return lines_close(&lines, CLI_OK);
}

int cmd_version(int argc, char **argv)
{
	bool json = false;
	int option;

	while ((option = cli_getopt(argc, argv, &usage)) != -1) {
		if (option != 'j')
			return cli_usage(option == 'h', &usage);
		json = true;
	}
	if (optind < argc) {
		cli_warn("leave out '%s': version takes only options", argv[optind]);
		return cli_usage(false, &usage);
	}
	return json ? version_json() : cli_version();
}
