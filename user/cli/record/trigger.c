// SPDX-License-Identifier: MIT
/*
 * The library finds the moments and writes their captures; here they get files. The kernel's symbols
 * are read once: each capture has a link to them, because reading them takes longer than a capture.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/io/create.h"
#include "base/io/disk.h"
#include "base/text/size.h"
#include "cli/base/sides.h"
#include "cli/record/bundler.h"
#include "cli/record/output.h"
#include "cli/record/trigger.h"

#define SYMBOLS_FILE	".kernel.kallsyms"
#define TIME_MAX_NS	(86400 * KB_NS_PER_S)
#define TELL_MS		60000	/* between two messages about losses */
#define NAMES_MAX	1000	/* captures of one millisecond */
#define MOST_BYTES	(1ULL << 30)
#define MOST		1000	/* captures */

void record_trigger_init(struct record_trigger *trigger)
{
	*trigger = (struct record_trigger){
		.how = {
			.size = sizeof(trigger->how),
			.before_ns = KB_WATCH_BEFORE_NS,
			.after_ns = KB_WATCH_AFTER_NS,
			.every_ns = KB_WATCH_EVERY_NS,
		},
		.most_bytes = MOST_BYTES, .most = MOST,
	};
}

/* ---- options ---- */

/* A length of time of up to a day. */
static int take_time(const char *option, const char *value, uint64_t *ns)
{
	return cli_take_duration(option, value, KB_NS_PER_S, 0, TIME_MAX_NS, ns);
}

static int parse_most(struct record_trigger *trigger, const char *value)
{
	char size[32], *rest = NULL;
	size_t length = strcspn(value, ",");

	snprintf(size, sizeof(size), "%.*s", (int)length, value);
	if (value[length]) {
		trigger->most = strtoul(value + length + 1, &rest, 10);
		if (value[length + 1] < '0' || value[length + 1] > '9' || *rest || !trigger->most)
			size[0] = '\0';
	}
	if (length < sizeof(size) && kb_size_parse(size, &trigger->most_bytes))
		return 0;
	return cli_fail("--folder-max %s: give a size, or that and a number of captures, as in 500M or "
			"2G,300", value);
}

static int add(struct record_trigger *trigger, const char *expression)
{
	struct kb_error err;

	if ((!trigger->triggers && kb_triggers_create(&trigger->triggers, &err)) ||
	    kb_triggers_add(trigger->triggers, expression, &err))
		return cli_fail("--trigger: %s", kb_error_text(&err));
	if (kb_triggers_get(trigger->triggers, kb_triggers_nr(trigger->triggers) - 1)->kind == KB_TRIGGER_BOOT)
		return cli_fail("--trigger: %s is for kbarmand(8): 'kbarman recover --previous' makes captures of what "
				"was recorded before this boot", expression);
	return 0;
}

int record_trigger_take(struct record_trigger *trigger, int option, const char *value)
{
	switch (option) {
	case OPTION_TRIGGER:
		return add(trigger, value);
	case OPTION_BEFORE:
		trigger->asked = true;
		trigger->how.before_ns = 0;
		if (!strcmp(value, "all"))
			return 0;
		if (take_time("--before", value, &trigger->how.before_ns))
			return CLI_IMPOSSIBLE;
		trigger->how.before_ns += !trigger->how.before_ns;	/* 0 is another wish */
		return 0;
	case OPTION_AFTER:
		trigger->asked = true;
		return take_time("--after", value, &trigger->how.after_ns);
	case OPTION_EVERY:
		trigger->asked = true;
		return take_time("--every", value, &trigger->how.every_ns);
	case OPTION_FOLDER_MAX:
		trigger->asked = true;
		return parse_most(trigger, value);
	default:
		return -1;
	}
}

int record_trigger_check(const struct record_trigger *trigger)
{
	if (trigger->asked && !trigger->triggers)
		return cli_fail("--before, --after, --every and --folder-max say what a trigger writes: give "
				"--trigger as well");
	return 0;
}

void record_trigger_mask(const struct record_trigger *trigger, sigset_t *mask)
{
	for (uint32_t i = 0; trigger->triggers && i < kb_triggers_nr(trigger->triggers); i++)
		if (kb_triggers_get(trigger->triggers, i)->signal)
			sigaddset(mask, kb_triggers_get(trigger->triggers, i)->signal);
}

/* ---- the folder ---- */

int record_trigger_open(struct record_trigger *trigger, const char *folder)
{
	struct stat st;

	trigger->folder = folder;
	if (mkdir(folder, 0777) && errno != EEXIST)
		return cli_fail("can't make the folder %s: %s", folder, strerror(errno));
	if (stat(folder, &st) || !S_ISDIR(st.st_mode))
		return cli_fail("-o %s: with --trigger give a folder, for the captures", folder);
	return access(folder, W_OK) ? cli_fail("can't write into %s: %s", folder, strerror(errno)) : 0;
}

FILE *record_trigger_symbols(struct record_trigger *t)
{
	FILE *file;
	int fd;

	if (asprintf(&t->symbols, "%s/" SYMBOLS_FILE, t->folder) < 0) {
		t->symbols = NULL;
		return NULL;
	}
	/* Those of former captures stay with them. */
	fd = kb_create(AT_FDCWD, t->symbols, KB_CREATE_NEW, KB_CREATE_PRIVATE);
	file = fd < 0 ? NULL : fdopen(fd, "w");
	if (fd < 0)
		cli_warn("kernel symbols will be missing: can't write %s: %s", t->symbols,
			 strerror(-fd));
	else if (!file)
		close(fd);
	return file;
}

void record_trigger_symbols_done(struct record_trigger *trigger, FILE *file, bool useful)
{
	bool broken;

	if (!file)
		return;
	broken = ferror(file);
	broken |= fclose(file) != 0;
	if (useful && broken)
		cli_warn("kernel symbols will be missing: can't write %s; check the free space",
			 trigger->symbols);
	if (useful && !broken)
		return;
	unlink(trigger->symbols);
	free(trigger->symbols);
	trigger->symbols = NULL;
}

static void link_symbols(const struct record_trigger *trigger, const struct record_output *output)
{
	if (!trigger->symbols || !output->side_final)
		return;
	if (link(trigger->symbols, output->side_final))
		cli_warn("%s has no kernel symbols: can't link %s: %s", output->name,
			 output->side_final, strerror(errno));
}

/* ---- a recording ---- */

int record_trigger_start(struct record_trigger *trigger, struct kb_device *device,
			 uint64_t off_cpu_min, uint32_t notes)
{
	struct kb_error err;

	trigger->how.off_cpu_min_ns = off_cpu_min;
	trigger->how.notes = notes;
	if (kb_watch_create(&trigger->watch, device, trigger->triggers, &trigger->how, &err))
		return cli_fail("--trigger: %s", kb_error_text(&err));
	for (uint32_t i = 0; i < kb_triggers_nr(trigger->triggers); i++)
		if (!kb_watch_knows(trigger->watch, i))
			cli_warn("--trigger %s: nothing counts that yet: give the event to -e, or let a "
				 "program make the counter",
				 kb_triggers_get(trigger->triggers, i)->text);
	cli_note("watching for %" PRIu32 " trigger%s; captures go to %s",
		 kb_triggers_nr(trigger->triggers),
		 kb_triggers_nr(trigger->triggers) == 1 ? "" : "s", trigger->folder);
	return 0;
}

int record_trigger_fd(const struct record_trigger *trigger)
{
	return trigger->watch ? kb_watch_fd(trigger->watch) : -1;
}

bool record_trigger_signal(struct record_trigger *trigger, int signal)
{
	return trigger->watch && kb_watch_signal(trigger->watch, signal);
}

static bool choose_path(const struct record_trigger *trigger, char path[PATH_MAX])
{
	char name[128];
	size_t stem;

	kb_watch_name(trigger->watch, name, sizeof(name));
	stem = strlen(name) - strlen(".cap");
	for (unsigned int i = 1; i < NAMES_MAX; i++) {
		char again[16] = "";

		if (i > 1)
			snprintf(again, sizeof(again), "-%u", i);
		if (snprintf(path, PATH_MAX, "%s/%.*s%s.cap", trigger->folder, (int)stem, name,
			     again) >= PATH_MAX)
			return false;
		if (access(path, F_OK))
			return true;
	}
	return false;
}

/* ---- its bound ---- */

struct capture {
	char *path;
	uint64_t inode;
	int64_t ns;			/* when it was changed; of this recording: see trigger.h */
	bool own;			/* of this recording */
};

/* TIME.MS-WORD.cap or TIME.MS-WORD-N.cap, as choose_path() makes them. */
static bool is_name(const char *name)
{
	static const char shape[] = "00000000T000000.000-";
	const char *word = name + sizeof(shape) - 1, *end;

	for (size_t i = 0; i < sizeof(shape) - 1; i++)
		if (shape[i] == '0' ? name[i] < '0' || name[i] > '9' : name[i] != shape[i])
			return false;
	end = word + strspn(word, "abcdefghijklmnopqrstuvwxyz");
	if (end == word)
		return false;
	if (*end == '-')
		end += 1 + strspn(end + 1, "0123456789");
	return !strcmp(end, ".cap");
}

static int by_inode(const void *a, const void *b)
{
	const struct record_trigger_own *left = a, *right = b;

	return left->inode < right->inode ? -1 : left->inode > right->inode;
}

static int by_age(const void *a, const void *b)
{
	const struct capture *left = a, *right = b;

	return left->ns != right->ns ? left->ns < right->ns ? -1 : 1 : strcmp(left->path, right->path);
}

static void release_captures(struct capture *captures, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		free(captures[i].path);
	free(captures);
}

/* The time of the day, which is never set back. */
static int64_t now_of(const struct record_trigger *trigger)
{
	int64_t now = kb_clock_ns(CLOCK_REALTIME);

	return now > trigger->last_ns ? now : trigger->last_ns;
}

/* The captures in the folder that are this user's, oldest first. Returns how many. */
static size_t list_captures(const struct record_trigger *trigger, struct capture **captures)
{
	int64_t now = now_of(trigger);
	DIR *dir = opendir(trigger->folder);
	struct dirent *entry;
	size_t nr = 0, max = 0;

	*captures = NULL;
	while (dir && (entry = readdir(dir))) {
		struct capture found = { 0 };
		const struct record_trigger_own *own;
		struct stat st;

		if (!is_name(entry->d_name) ||
		    fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
		    !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
		    asprintf(&found.path, "%s/%s", trigger->folder, entry->d_name) < 0)
			continue;
		own = trigger->nr_own ? bsearch(&(struct record_trigger_own){.inode = st.st_ino},
						trigger->own, trigger->nr_own,
						sizeof(*trigger->own), by_inode)
				      : NULL;
		found.inode = st.st_ino;
		found.own = own;
		found.ns = own ? own->ns : st.st_mtim.tv_sec * KB_NS_PER_S + st.st_mtim.tv_nsec;
		/* The clock was set back since. */
		if (found.ns > now)
			found.ns = INT64_MIN;
		if (!KB_ARRAY_ROOM(*captures, max, nr + 1)) {
			free(found.path);
			break;
		}
		(*captures)[nr++] = found;
	}
	if (dir)
		closedir(dir);
	if (nr)
		qsort(*captures, nr, sizeof(**captures), by_age);
	return nr;
}

/* The capture that was just written is younger than the others of this recording. */
static void add_own(struct record_trigger *trigger, const char *path)
{
	struct stat st;

	if (stat(path, &st) || !KB_ARRAY_ROOM(trigger->own, trigger->room_own, trigger->nr_own + 1))
		return;
	trigger->last_ns = now_of(trigger) + 1;
	trigger->own[trigger->nr_own++] = (struct record_trigger_own){st.st_ino, trigger->last_ns};
	qsort(trigger->own, trigger->nr_own, sizeof(*trigger->own), by_inode);
}

/* Forgets those that are gone: others may get their inodes. */
static void forget_own(struct record_trigger *trigger, const struct capture *captures, size_t nr)
{
	trigger->nr_own = 0;
	for (size_t i = 0; i < nr; i++)
		if (captures[i].own &&
		    KB_ARRAY_ROOM(trigger->own, trigger->room_own, trigger->nr_own + 1))
			trigger->own[trigger->nr_own++] =
				(struct record_trigger_own){captures[i].inode, captures[i].ns};
	if (trigger->nr_own)
		qsort(trigger->own, trigger->nr_own, sizeof(*trigger->own), by_inode);
}

static void tell_removed(struct record_trigger *trigger)
{
	int64_t now = kb_clock_ms();

	if (trigger->removed == trigger->removed_told ||
	    (trigger->removed_told && now - trigger->removed_ms < TELL_MS))
		return;
	cli_note("%s: removed the %" PRIu64
		 " oldest capture%s: there are more than --folder-max allows, or "
		 "the disk is nearly full",
		 trigger->folder, trigger->removed - trigger->removed_told,
		 trigger->removed - trigger->removed_told == 1 ? "" : "s");
	trigger->removed_told = trigger->removed;
	trigger->removed_ms = now;
}

/* The oldest captures make room, whatever the clock does; the youngest one stays. */
static void keep_bound(struct record_trigger *trigger)
{
	int fd = trigger->most_bytes ? open(trigger->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
				     : -1;
	uint64_t total = 0, excess;
	struct capture *captures;
	size_t nr, left;

	if (fd < 0)
		return;
	excess = kb_disk_missing(fd, KB_KEEP_FREE_USUAL);
	close(fd);
	nr = left = list_captures(trigger, &captures);
	forget_own(trigger, captures, nr);
	for (size_t i = 0; i < nr; i++)
		total += sides_bytes(captures[i].path);
	if (total > trigger->most_bytes && total - trigger->most_bytes > excess)
		excess = total - trigger->most_bytes;
	for (size_t i = 0; i + 1 < nr && (excess || left > trigger->most); i++) {
		uint64_t bytes = sides_bytes(captures[i].path);

		if (unlink(captures[i].path))
			continue;
		left--;
		sides_remove(captures[i].path);
		excess -= bytes < excess ? bytes : excess;
		trigger->removed++;
	}
	release_captures(captures, nr);
	tell_removed(trigger);
}

static void tell(struct record_trigger *trigger, const char *path, const struct kb_fired *first,
		 uint32_t nr, const struct kb_watch_written *written)
{
	if (nr > 1)
		cli_note("%s: %s: %s; and %" PRIu32 " more", path, first->trigger->text, first->reason,
			 nr - 1);
	else
		cli_note("%s: %s: %s", path, first->trigger->text, first->reason);
	if (!written->has_moment)
		cli_warn("%s: the moment itself was overwritten before it could be written: use larger "
			 "buffers (-m)", path);
	else if (written->cut && trigger->how.before_ns)
		cli_note("%s begins %.3f s before the moment: the buffers do not reach back further; use "
			 "larger ones (-m)", path, (double)written->before_ns / 1e9);
	if (written->damaged)
		cli_warn("%s: buffers were damaged in %" PRIu64 " places, records there were skipped: "
			 "please report this bug", path, written->damaged);
}

/* Writes the capture that is due. */
static void write_due(struct record_trigger *trigger, const struct kb_fired *fired, uint32_t nr)
{
	const struct kb_fired first = fired[0];
	struct kb_watch_written written;
	struct record_output output;
	char path[PATH_MAX];
	struct kb_error err;

	record_output_init(&output);
	keep_bound(trigger);
	if (!choose_path(trigger, path) || record_output_open(&output, path)) {
		cli_warn("nothing was written of this: %s: %s", first.trigger->text, first.reason);
		kb_watch_drop(trigger->watch);
		trigger->failed = true;
	} else if (kb_watch_write(trigger->watch, output.fd, &written, &err)) {
		cli_warn("nothing was written of this: %s: %s: %s", first.trigger->text, first.reason,
			 kb_error_text(&err));
		trigger->failed = true;
	} else if (record_output_commit(&output)) {
		trigger->failed = true;
	} else {
		add_own(trigger, path);
		link_symbols(trigger, &output);
		if (trigger->bundler)
			bundler_begin(trigger->bundler, path);
		tell(trigger, path, &first, nr, &written);
		trigger->failed |= !written.has_moment || written.damaged;
	}
	record_output_close(&output);
	keep_bound(trigger);
}

/* What was not seen is said as soon as it is known, and then now and then. */
static void tell_losses(struct record_trigger *trigger)
{
	struct kb_watch_totals totals;
	int64_t now = kb_clock_ms();

	kb_watch_totals(trigger->watch, &totals);
	if (totals.lost_times == trigger->lost_times ||
	    (trigger->lost_times && now - trigger->told_ms < TELL_MS))
		return;
	trigger->told_ms = now;
	cli_warn("the buffers were overwritten before the triggers could look at them (%" PRIu64
		 " KiB so far): what happened there is not known; use larger buffers (-m), or "
		 "sample less often (-F)", totals.lost_bytes >> 10);
	trigger->lost_times = totals.lost_times;
}

static void write_all(struct record_trigger *trigger)
{
	const struct kb_fired *fired;
	uint32_t nr;

	while ((fired = kb_watch_due(trigger->watch, &nr)) != NULL)
		write_due(trigger, fired, nr);
	tell_losses(trigger);
}

int record_trigger_serve(struct record_trigger *trigger, struct kb_error *err)
{
	int ret = kb_watch_serve(trigger->watch, err);

	if (!ret)
		write_all(trigger);
	return ret;
}

static void summary(struct record_trigger *trigger)
{
	struct kb_watch_totals totals;

	kb_watch_totals(trigger->watch, &totals);
	cli_note("%s: %" PRIu64 " capture%s of %" PRIu64 " moment%s; %" PRIu64
		 " more came too soon after "
		 "a capture (--every)",
		 trigger->folder, totals.captures, totals.captures == 1 ? "" : "s", totals.kept,
		 totals.kept == 1 ? "" : "s", totals.suppressed);
	if (totals.failed)
		cli_warn("%" PRIu64 " moments have no capture, because it could not be written",
			 totals.failed);
	if (totals.lost_times)
		cli_warn("%" PRIu64 " times buffers were overwritten before the triggers could look at "
			 "them, %" PRIu64 " KiB together", totals.lost_times, totals.lost_bytes >> 10);
	if (totals.lost_records)
		cli_warn("%" PRIu64 " records were lost: triggers could not see them", totals.lost_records);
}

int record_trigger_finish(struct record_trigger *trigger)
{
	struct kb_error err;

	if (kb_watch_finish(trigger->watch, &err))
		return cli_fail_error(&err);
	write_all(trigger);
	summary(trigger);
	return trigger->failed ? CLI_DAMAGED : CLI_OK;
}

void record_trigger_close(struct record_trigger *trigger)
{
	kb_watch_destroy(trigger->watch);
	kb_triggers_destroy(trigger->triggers);
	if (trigger->symbols)
		unlink(trigger->symbols);
	free(trigger->symbols);
	free(trigger->own);
	record_trigger_init(trigger);
}
