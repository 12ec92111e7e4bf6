// SPDX-License-Identifier: MIT
/* kbarmand: the options. */
#include <getopt.h>
#include <stdio.h>

#include <kbarman/version.h>

#include "agent/agent.h"
#include "agent/config.h"

static const char usage[] =
	"usage: kbarmand [--config FILE] [--keep]\n"
	"       kbarmand [--config FILE] --check\n"
	"       kbarmand [--config FILE] --status [--json]\n"
	"\n"
	"Record all the time, as FILE says, into a folder of captures. kbarmand(8) and\n"
	"kbarmand.conf(5) say how.\n"
	"\n"
	"  -c, --config FILE  the configuration (default " AGENT_CONFIG ")\n"
	"  -k, --keep         the service manager keeps descriptors: sessions go on while the\n"
	"                     agent is started again\n"
	"  -n, --check        say what is wrong in the configuration, and end\n"
	"  -s, --status       print how the running agent is: 0 well, 1 trouble, 2 none runs\n"
	"  -j, --json         print it as JSON\n"
	"  -V, --version      print the version\n"
	"  -h, --help         print this help\n";

static const struct option options[] = {
	{ "config", required_argument, NULL, 'c' }, { "keep", no_argument, NULL, 'k' },
	{ "check", no_argument, NULL, 'n' }, { "status", no_argument, NULL, 's' },
	{ "json", no_argument, NULL, 'j' }, { "version", no_argument, NULL, 'V' },
	{ "help", no_argument, NULL, 'h' }, { 0 },
};

int main(int argc, char **argv)
{
	const char *config = AGENT_CONFIG;
	bool keep = false, json = false;
	int option, what = 0;

	while ((option = getopt_long(argc, argv, "c:knsjVh", options, NULL)) != -1) {
		switch (option) {
		case 'c':
			config = optarg;
			break;
		case 'k':
			keep = true;
			break;
		case 'j':
			json = true;
			break;
		case 'n':
		case 's':
			what = option;
			break;
		case 'V':
			printf("kbarmand %s\n", kb_version());
			return 0;
		case 'h':
			fputs(usage, stdout);
			return 0;
		default:
			fputs("try 'kbarmand --help'\n", stderr);
			return 2;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "kbarmand takes no '%s': try 'kbarmand --help'\n", argv[optind]);
		return 2;
	}
	if (what == 'n')
		return agent_check(config);
	return what == 's' ? agent_status(config, json) : agent_run(config, keep);
}
