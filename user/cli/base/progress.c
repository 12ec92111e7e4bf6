// SPDX-License-Identifier: MIT
/*
 * Shows the progress of tasks that take longer than a second, in one line of the terminal, which is
 * erased at the end. Shows nothing if standard error is not a terminal, and with -q.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <kbarman/progress.h>

#include "base/clock.h"
#include "base/percent.h"
#include "cli/base/cli.h"

#define PATIENCE_MS	1000	/* a shorter task shows no progress */
#define EVERY_MS	250
#define LINE_BYTES	160

static int64_t began, said;		/* ms; said 0: nothing was shown yet */
static const char *label;
static bool shown;

static void put(const char *line)
{
	if (write(STDERR_FILENO, line, strlen(line)) < 0)
		kb_progress_listen(NULL, NULL);
}

static void tell(void *context, const char *what, uint64_t done, uint64_t total)
{
	int64_t now = kb_clock_ms();
	char line[LINE_BYTES], share[16] = "";

	(void)context;
	if (now - began < PATIENCE_MS || now - said < EVERY_MS)
		return;
	said = now;
	shown = true;
	if (total)
		snprintf(share, sizeof(share), ", %.0f%%", kb_percent(done, total));
	snprintf(line, sizeof(line), "\r\033[Kkbarman %s: %s%s", cli_verb_name,
		 label ? label : what, share);
	put(line);
}

void cli_progress(const char *what, bool prints)
{
	cli_progress_clear();
	label = what;
	began = kb_clock_ms();
	said = 0;
	if (cli_verbosity() >= 0 && isatty(STDERR_FILENO) && !(prints && isatty(STDOUT_FILENO)))
		kb_progress_listen(tell, NULL);
}

void cli_progress_clear(void)
{
	if (shown)
		put("\r\033[K");
	shown = false;
}

void cli_progress_end(void)
{
	kb_progress_listen(NULL, NULL);
	cli_progress_clear();
}
