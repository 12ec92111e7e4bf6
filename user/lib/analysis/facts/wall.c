// SPDX-License-Identifier: MIT
/*
 * Where an error comes from: the readings are as wrong as the clock was. On a straight line between
 * two readings no time is more wrong than the worse one of them, but for the counter's own
 * unsteadiness. With one reading, the counter may be as wrong as the clock that Linux measured with it
 * may be: NTP's daemons do not correct more than that.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "analysis/facts/wall.h"
#include "format/barman/inside.h"

#define MILLION		1000000U
#define RATE_PPM	500U	/* of a counter that was not measured: the most that Linux corrects */
#define WANDER_PPM	1U	/* of one that was measured, in between */
#define READING_NS	1000U	/* a pair of readings */
#define SET_NS		1000000U	/* less is no proof that a clock was set */

struct told {
	bool known, synchronized;
	uint64_t most, likely;
};

static struct told read_error(const struct kb_barman *barman, const char *key)
{
	const char *fact = kb_barman_fact(barman, key);
	struct told told = { .known = false };
	unsigned int synchronized;

	told.known = fact && sscanf(fact, "%1u,%" SCNu64 ",%" SCNu64, &synchronized, &told.most,
				    &told.likely) == 3;
	told.synchronized = told.known && synchronized == 1;
	return told;
}

static uint64_t part_of(uint64_t ns, unsigned int ppm)
{
	return ns / MILLION * ppm + ns % MILLION * ppm / MILLION;
}

static uint64_t difference(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static uint64_t add(uint64_t a, uint64_t b)
{
	return a == KB_WALL_UNKNOWN || b == KB_WALL_UNKNOWN || a > INT64_MAX || b > INT64_MAX ?
	       KB_WALL_UNKNOWN : a + b;
}

/* The reading at the end. Returns false if there is none that can be right. */
static bool read_end(struct kb_wall *wall, const struct kb_barman *barman, uint64_t *capture_ns)
{
	const char *fact = kb_barman_fact(barman, "realtime_end");
	uint64_t base = kb_barman_header(barman)->timestamp_base, ticks, ns;
	int64_t by_capture;

	if (!fact || sscanf(fact, "%" SCNu64 ",%" SCNu64, &ticks, &ns) != 2 || ticks <= base ||
	    ns > INT64_MAX || (int64_t)ns <= wall->at)
		return false;
	by_capture = kb_barman_ns(barman, ticks);
	/* half or twice as fast is another clock */
	if (by_capture <= 0 || ns - (uint64_t)wall->at > 2 * (uint64_t)by_capture ||
	    2 * (ns - (uint64_t)wall->at) < (uint64_t)by_capture)
		return false;
	wall->has_end = true;
	wall->ticks = ticks - base;
	wall->ns = ns - (uint64_t)wall->at;
	wall->end = (int64_t)ns;
	*capture_ns = (uint64_t)by_capture;
	return true;
}

/*
 * The first reading is of a time when nobody looked how right it was, the second one is known: what is
 * before it is measured from there, by the capture's own rate.
 */
static void begin_at_end(struct kb_wall *wall, uint64_t capture_ns)
{
	wall->at = wall->end - (int64_t)capture_ns;
	wall->has_end = false;
	wall->between = READING_NS + part_of(capture_ns, RATE_PPM);
}

static void judge_rate(struct kb_wall *wall, uint64_t capture_ns)
{
	uint64_t apart = difference(wall->ns, capture_ns);
	uint64_t allowed = part_of(capture_ns, RATE_PPM) + SET_NS;

	if (wall->clock != KB_WALL_UNKNOWN)
		allowed += 2 * wall->clock;
	wall->ppm = ((double)wall->ns - (double)capture_ns) / (double)capture_ns * MILLION;
	wall->was_set = apart > allowed;
	wall->between = READING_NS + part_of(capture_ns, WANDER_PPM);
	/* it is not known when that happened */
	if (wall->was_set)
		wall->between += apart;
}

static void judge_clock(struct kb_wall *wall, struct told base, struct told end)
{
	wall->clock = wall->likely = KB_WALL_UNKNOWN;
	if (!base.known || !end.known) {
		wall->why = "the capture does not say how exact the clock was";
		return;
	}
	wall->synchronized = base.synchronized && end.synchronized;
	if (!wall->synchronized) {
		wall->why = "the clock was not synchronized: nobody had told the kernel the time";
		return;
	}
	wall->clock = base.most > end.most ? base.most : end.most;
	wall->likely = base.likely > end.likely ? base.likely : end.likely;
}

int kb_wall_read(struct kb_wall *wall, const struct kb_barman *barman, struct kb_error *err)
{
	const struct kb_header *header = kb_barman_header(barman);
	const char *unsteady = kb_barman_fact(barman, "clock_unsteady");
	struct told base = read_error(barman, "realtime_error_base"), end = base;
	uint64_t capture_ns = 0;

	*wall = (struct kb_wall){ .at = (int64_t)header->unix_base_ns };
	/* up to the year 2200, so that nothing overflows */
	if (!header->unix_base_ns || header->unix_base_ns > INT64_C(7258118400) * 1000000000)
		return kb_error_set(err, -ENODATA, KB_NO_OFFSET,
				    "the capture does not say when it was recorded");
	if (read_end(wall, barman, &capture_ns))
		end = read_error(barman, "realtime_error_end");
	judge_clock(wall, base.known ? base : end, end);
	if (wall->has_end && !base.known && end.known) {
		begin_at_end(wall, capture_ns);
	} else if (wall->has_end) {
		judge_rate(wall, capture_ns);
	} else {
		int64_t last = kb_barman_ns(barman, header->last_timestamp);

		if (__builtin_add_overflow(wall->at, last > 0 ? last : 0, &wall->end))
			wall->end = INT64_MAX;
		wall->between = READING_NS + part_of(last > 0 ? (uint64_t)last : 0, RATE_PPM);
	}
	wall->error = add(wall->clock, wall->between);
	if (unsteady) {
		wall->error = KB_WALL_UNKNOWN;
		wall->why = "the kernel found the CPU's counter unstable";
	}
	return 0;
}
