// SPDX-License-Identifier: MIT
/*
 * Ticks become nanoseconds: the module's own clock.c on a machine of the test's, of which
 * everything is known, and what the library makes of the capture. The counter ticks at
 * any rate; CLOCK_MONOTONIC_RAW is that counter times a fraction, as Linux has it.
 */
#include "clock_env.h"
#include "../../kmod/ring/clock.c"

#include <kbarman/barman.h>

#include "barman_image.h"
#include "../lib/random.h"
#include "../lib/tap.h"

#define HOUR		3600
#define MICROSECOND	1000

static struct {
	u32 hz;				/* nominal */
	u64 ticks;			/* now */
	u64 num, den;			/* CLOCK_MONOTONIC_RAW is ticks * num / den + raw */
	u64 raw, monotonic, real;	/* what the clocks were at tick 0 */
	u64 asleep;			/* the clocks stood still that long, in ns */
	u32 pause;			/* ticks lost now and then */
	bool unsteady;			/* Linux found that out */
	bool erratum;			/* the counter alone may be wrong: Linux does more */
} machine;

static u64 scale(u64 value, u64 num, u64 den)
{
	uint64_t rest;

	return kb_wide_div(kb_wide_mul(value, num), den, &rest).low;
}

static u64 raw_at(u64 ticks)
{
	return machine.raw + scale(ticks, machine.num, machine.den);
}

static void pass_time(void)
{
	/* Reading a clock takes 60 ns at most. */
	machine.ticks += (random_below(60) * machine.hz + random_below(NSEC_PER_SEC)) / NSEC_PER_SEC;
	if (machine.pause && random_below(32) == 0)
		machine.ticks += random_below(machine.pause);
}

u64 arch_timer_read_counter(void)
{
	pass_time();
	return machine.ticks;
}

bool counter_is_plain(void)
{
	return !machine.erratum;
}

u64 counter_alone(void)
{
	return arch_timer_read_counter() + (machine.erratum ? machine.hz : 0);
}

bool counter_is_steady(void)
{
	return !machine.unsteady;
}

u32 arch_timer_get_cntfrq(void)
{
	return machine.hz;
}

static u64 system_clock(u64 offset)
{
	u64 value;

	pass_time();
	value = raw_at(machine.ticks) - machine.raw - machine.asleep + offset;
	pass_time();
	return value;
}

u64 ktime_get_raw_ns(void)
{
	return system_clock(machine.raw);
}

u64 ktime_get_ns(void)
{
	return system_clock(machine.monotonic);
}

u64 ktime_get_real_ns(void)
{
	return system_clock(machine.real);
}

u64 ktime_get_raw_fast_ns(void)
{
	return system_clock(machine.raw);
}

/*
 * A counter of that nominal rate, and Linux's clock of it: nanoseconds are ticks times an
 * integer of some 24 bits, shifted, so that even of a round rate they are a bit off.
 */
static void machine_init(u32 hz, u64 num, u64 den)
{
	machine.hz = hz;
	machine.num = num;
	machine.den = den;
	machine.ticks = 1 + random_below(UINT64_C(1) << 44);
	machine.raw = random_below(UINT64_C(1) << 50);
	machine.monotonic = random_below(UINT64_C(1) << 50);
	machine.real = UINT64_C(1700000000) * NSEC_PER_SEC;
	machine.asleep = 0;
	machine.pause = 0;
	machine.unsteady = false;
	machine.erratum = false;
	missing = 0;
	kbarman_clock_init();
}

static void machine_of_rate(u32 hz)
{
	u64 factor;
	u32 shift = 40;

	do
		factor = scale(UINT64_C(1) << --shift, NSEC_PER_SEC, hz);
	while (factor >> 25 && shift > 8);
	machine_init(hz, factor, UINT64_C(1) << shift);
}

/* Rates that machines have; and any, near or far from what is round. */
static const u32 usual_rates[] = {
	19200000, 24000000, 25000000, 26000000, 27000000, 31250000, 38400000, 48000000, 50000000,
	54000000, 62500000, 83333333, 100000000, 1000000000, 1800000000, 2000000000, 2111998000,
	2400000000, 2500000000, 2599999000, 2899886000, 3000000000, 3600000000, 4200000000,
};
#define RATES	(sizeof(usual_rates) / sizeof(usual_rates[0]))
#define TURNS	3000

/*
 * By turn a usual rate, a random one, or a clock that is nanoseconds already and only
 * steered: by less than a part in a thousand, which may be next to nothing.
 */
static void machine_of_turn(u32 turn)
{
	if (turn < RATES) {
		machine_of_rate(usual_rates[turn]);
	} else if (turn % 3 == 0) {
		machine_of_rate(1000000 + random_below(UINT64_C(4200000000)));
	} else if (turn % 3 == 1) {
		u64 den = UINT64_C(1) << 41, drift = random_magnitude() >> 32;

		machine_init(NSEC_PER_SEC, turn & 1 ? den + drift : den - drift, den);
	} else {
		machine_of_rate(usual_rates[turn % RATES]);
		machine.num += random_below(machine.num / 1000 + 1);
	}
}

struct session {
	struct kbarman_clock_pair start, stop;
	struct kbarman_clock_sleep asleep;
	u64 multiplier, divisor;
};

static void stay_awake(u64 seconds)
{
	machine.ticks += seconds * machine.hz + random_below(machine.hz);
}

/* The counter goes on, the clocks made of it do not: see kmod/sessions/suspend.c. */
static void sleep_for(struct session *s, u64 seconds)
{
	u64 ticks = seconds * machine.hz + random_below(machine.hz);
	struct kbarman_clock_pair before, after;

	kbarman_clock_read(&before);
	machine.ticks += ticks;
	machine.asleep += scale(ticks, machine.num, machine.den);
	kbarman_clock_read(&after);
	s->asleep.ticks += after.timestamp - before.timestamp;
	s->asleep.raw_ns += after.raw_ns - before.raw_ns;
}

/* The counter went on for up to a second, or begins anew and is anything up to where it was. */
static void sleep_deeply(struct session *s)
{
	struct kbarman_clock_pair before, after;
	u64 fell, kept;

	kbarman_clock_read(&before);
	kbarman_clock_suspend();
	fell = machine.ticks;
	kept = raw_at(fell);
	machine.ticks = random_below(4) ? random_below(fell) : fell + random_below(machine.hz);
	/* What the kernel makes of it goes on from where it was. */
	machine.raw += kept - raw_at(machine.ticks);
	kbarman_clock_resume();
	kbarman_clock_read(&after);
	s->asleep.ticks += after.timestamp - before.timestamp;
	s->asleep.raw_ns += after.raw_ns - before.raw_ns;
}

static struct session begin(void)
{
	struct session s = { .multiplier = 0 };

	kbarman_clock_read(&s.start);
	return s;
}

static void end(struct session *s)
{
	kbarman_clock_read(&s->stop);
	kbarman_clock_fit(&s->start, &s->stop, &s->asleep, &s->multiplier, &s->divisor);
}

static struct session record(u64 seconds)
{
	struct session s = begin();

	stay_awake(seconds);
	end(&s);
	return s;
}

static u64 difference(u64 a, u64 b)
{
	return a > b ? a - b : b - a;
}

/* A moment of the session: the start and the stop are two of them. */
static u64 moment(const struct session *s, u32 i)
{
	u64 span = s->stop.timestamp - s->start.timestamp;

	if (i < 2)
		return i ? s->stop.timestamp : s->start.timestamp;
	return s->start.timestamp + random_below(span + 1);
}

/* How far the header's fraction is off, at most, with a product of 64 bits. */
static u64 error_of_header(const struct session *s)
{
	u64 most = 0, product, error;
	u32 i;

	for (i = 0; i < 20; i++) {
		u64 at = moment(s, i);

		if (__builtin_mul_overflow(at - s->start.timestamp, s->multiplier, &product))
			return U64_MAX;
		error = difference(s->start.raw_ns + product / s->divisor, raw_at(at));
		most = error > most ? error : most;
	}
	return most;
}

static void tell(const struct session *s, u64 error)
{
	tap_note("%u Hz, %llu/%llu ns a tick, fitted by %llu/%llu"
		 ": %llu ns off after %llu ticks", machine.hz, machine.num,
		 machine.den, s->multiplier, s->divisor, error,
		 s->stop.timestamp - s->start.timestamp);
}

/* ---- the pairs ---- */

static void pairs_are_of_one_moment(void)
{
	bool raw = true, monotonic = true, real = true;

	for (u32 turn = 0; turn < TURNS; turn++) {
		struct kbarman_clock_pair pair;
		u64 elapsed, allowed;

		machine_of_turn(turn);
		machine.pause = machine.hz / 1000;
		kbarman_clock_read(&pair);
		elapsed = raw_at(pair.timestamp) - machine.raw;
		/* Half of an undisturbed reading, and a tick. */
		allowed = 3 * 60 / 2 + NSEC_PER_SEC / machine.hz + 2;
		raw &= difference(pair.raw_ns - machine.raw, elapsed) <= allowed;
		/* Brought back from up to some pauses later, at the nominal rate. */
		allowed += 40000;
		monotonic &= difference(pair.monotonic_ns - machine.monotonic, elapsed) <= allowed;
		real &= difference(pair.realtime_ns - machine.real, elapsed) <= allowed;
	}
	tap_ok(raw, "a_pair_is_of_one_moment_though_its_reading_is_disturbed");
	tap_ok(monotonic, "the_monotonic_clock_is_of_that_moment_too");
	tap_ok(real, "the_realtime_clock_is_of_that_moment_too");
}

/* ---- the header's fraction ---- */

static void three_minutes_are_exact_by_the_header(void)
{
	u64 error = 0;
	struct session s;

	for (u32 turn = 0; error <= MICROSECOND && turn < TURNS; turn++) {
		machine_of_turn(turn);
		s = record(random_below(180));
		error = error_of_header(&s);
	}
	if (!tap_ok(error <= MICROSECOND, "any_three_minutes_convert_to_a_microsecond"))
		tell(&s, error);
}

/* Next to a simple fraction there is none that 64 bits have room for: see kbarman.h. */
static void hours_are_as_exact_as_64_bits_can_be(void)
{
	u64 error = 0, allowed = 0;
	struct session s;

	for (u32 turn = 0; error <= allowed && turn < TURNS; turn++) {
		u64 seconds = random_below(HOUR);

		machine_of_turn(turn);
		s = record(seconds);
		error = error_of_header(&s);
		allowed = MICROSECOND + (seconds + 1) * (seconds + 1) / 36;
	}
	if (!tap_ok(error <= allowed, "an_hour_converts_as_well_as_64_bits_can"))
		tell(&s, error);
}

static void multipliers_stay_small(void)
{
	bool good = true;
	struct session s;

	for (u32 turn = 0; good && turn < TURNS; turn++) {
		u64 seconds = random_below(random_below(48 * HOUR) + 1);

		machine_of_turn(turn);
		s = record(seconds);
		good = s.multiplier < 1 << 20 ||
		       s.multiplier <= U64_MAX / (s.stop.timestamp - s.start.timestamp);
	}
	if (!tap_ok(good, "a_64_bit_product_does_not_overflow_within_the_capture"))
		tell(&s, 0);
}

static void nominal_rates(void)
{
	bool good = true;
	u64 multiplier, divisor;

	for (u32 turn = 0; good && turn < TURNS; turn++) {
		machine_of_turn(turn);
		machine.hz = turn < 32 ? 1U << turn : machine.hz;
		kbarman_clock_fit(NULL, NULL, NULL, &multiplier, &divisor);
		good = multiplier && multiplier <= 1 << 20 && divisor;
		/* To a part in a million, where a fraction can be. */
		if (good && machine.hz >= 1000000)
			good = difference(scale(UINT64_C(1) << 40, multiplier, divisor),
					  scale(UINT64_C(1) << 40, NSEC_PER_SEC, machine.hz)) <
			       scale(1 << 20, NSEC_PER_SEC, machine.hz) + 2;
	}
	if (!tap_ok(good, "before_the_stop_the_nominal_rate_holds"))
		tap_note("%u Hz: %llu/%llu", machine.hz, multiplier, divisor);
}

static void odd_pairs(void)
{
	struct kbarman_clock_pair from = { .timestamp = 1000, .raw_ns = 1000 }, to = from;
	struct kbarman_clock_sleep asleep = { .ticks = 0 };
	u64 multiplier, divisor;

	machine_of_rate(50000000);
	to.raw_ns += 1000;
	kbarman_clock_fit(&from, &to, &asleep, &multiplier, &divisor);
	tap_ok(multiplier == 20 && divisor == 1, "no_ticks_between_pairs_mean_the_nominal_rate");
	to = (struct kbarman_clock_pair) { .timestamp = 500, .raw_ns = 500 };
	kbarman_clock_fit(&from, &to, &asleep, &multiplier, &divisor);
	tap_ok(multiplier == 20 && divisor == 1, "pairs_in_disorder_mean_the_nominal_rate");
	to = (struct kbarman_clock_pair) { .timestamp = 1100, .raw_ns = 4000 };
	kbarman_clock_fit(&from, &to, &asleep, &multiplier, &divisor);
	tap_ok(multiplier == 20 && divisor == 1, "an_absurd_drift_means_the_nominal_rate");
	asleep = (struct kbarman_clock_sleep) { .ticks = 100, .raw_ns = 3000 };
	kbarman_clock_fit(&from, &to, &asleep, &multiplier, &divisor);
	tap_ok(multiplier == 20 && divisor == 1 && kbarman_clock_slept(&from, &to, &asleep) == 0,
	       "a_session_that_slept_all_the_time_means_the_nominal_rate");
}

/* ---- the library, which knows where the capture ended ---- */

static struct kb_barman *open_session(struct image *im, const struct session *s, u64 end, u64 end_ns)
{
	struct image_header h = {
		.version = 2, .store_type = 1, .cores = 1, .strings_max = 256, .base = s->start.timestamp,
		.multiplier = s->multiplier, .divisor = s->divisor,
	};
	char strings[256];
	struct kb_barman *barman;
	struct kb_error err;

	h.strings = strings;
	h.strings_used = 1 + snprintf(strings, sizeof(strings),
				      "host%ckbarman.ext=1%ckbarman.raw_base=%llu"
				      "%ckbarman.raw_end=%llu,%llu", 0, 0,
				      s->start.raw_ns, 0, end, end_ns);
	image_header(im, &h);
	image_linear(im);
	if (!kb_barman_open_memory(&barman, im->data, im->length, &err))
		return barman;
	tap_note("%s", err.text);
	return NULL;
}

static u64 error_of_library(const struct session *s)
{
	struct image im = { .word = 8 };
	struct kb_barman *barman = open_session(&im, s, s->stop.timestamp, s->stop.raw_ns);
	u64 most = barman ? 0 : U64_MAX, error;

	for (u32 i = 0; barman && i < 20; i++) {
		u64 at = moment(s, i);

		error = difference(s->start.raw_ns + kb_barman_ns(barman, at), raw_at(at));
		most = error > most ? error : most;
	}
	kb_barman_close(barman);
	image_free(&im);
	return most;
}

static void hours_are_exact_by_the_library(void)
{
	u64 error = 0;
	struct session s;

	for (u32 turn = 0; error <= MICROSECOND && turn < TURNS; turn++) {
		machine_of_turn(turn);
		s = record(HOUR - random_below(2) * random_below(HOUR));
		error = error_of_library(&s);
	}
	if (!tap_ok(error <= MICROSECOND, "any_hour_converts_to_a_microsecond"))
		tell(&s, error);
	for (u32 turn = 0; error <= MICROSECOND && turn < TURNS; turn++) {
		machine_of_turn(turn);
		s = record(30 * 24 * HOUR);
		error = error_of_library(&s);
	}
	if (!tap_ok(error <= MICROSECOND, "and_so_does_a_month"))
		tell(&s, error);
}

/*
 * What was recorded is in its place by the counter, which did not stand still: the stop's
 * CLOCK_MONOTONIC_RAW is as if it had gone on, too.
 */
static void sleeps_move_no_record(void)
{
	const u64 allowed = 2 * MICROSECOND;
	u64 header = 0, library = 0, slept = 0;
	struct session s;

	for (u32 turn = 0; turn < TURNS; turn++) {
		if (header > allowed || library > allowed || slept > allowed)
			break;
		machine_of_turn(turn);
		s = begin();
		for (u32 i = 0; i < 3; i++) {
			stay_awake(30);
			sleep_for(&s, random_below(i == 2 ? 60 : 4));
		}
		stay_awake(0);
		end(&s);
		slept = kbarman_clock_slept(&s.start, &s.stop, &s.asleep);
		s.stop.raw_ns += slept;
		slept = difference(slept, machine.asleep);
		header = error_of_header(&s);
		library = error_of_library(&s);
	}
	if (!tap_ok(header <= allowed, "a_sleep_does_not_move_what_was_recorded"))
		tell(&s, header);
	if (!tap_ok(library <= allowed, "nor_does_it_by_the_library"))
		tell(&s, library);
	if (!tap_ok(slept <= allowed, "how_long_it_slept_is_known"))
		tell(&s, slept);
}

/* A record each second: their order, and how far apart they are. */
static void counters_that_begin_anew(void)
{
	bool forth = true, exact = true;

	for (u32 turn = 0; forth && exact && turn < TURNS; turn++) {
		struct session s;
		u64 stamps[40], raw[40];

		machine_of_turn(turn);
		s = begin();
		for (u32 i = 0; i < 40; i++) {
			if (i == 10 || i == 20 || i == 30)
				sleep_deeply(&s);
			machine.ticks += machine.hz;
			stamps[i] = kbarman_clock();
			raw[i] = raw_at(machine.ticks);
			forth &= stamps[i] > (i ? stamps[i - 1] : s.start.timestamp);
		}
		end(&s);
		forth &= s.stop.timestamp >= stamps[39];
		for (u32 i = 1; forth && i < 40; i++) {
			u64 from = (stamps[i - 1] - s.start.timestamp) * s.multiplier / s.divisor;
			u64 to = (stamps[i] - s.start.timestamp) * s.multiplier / s.divisor;

			if (i == 10 || i == 20 || i == 30)
				continue;
			exact &= difference(to - from, raw[i] - raw[i - 1]) <= MICROSECOND;
		}
	}
	tap_ok(forth, "a_counter_that_begins_anew_does_not_turn_time_back");
	tap_ok(exact, "nor_does_it_change_what_a_second_is");
}

/*
 * Linux may find out at any time that a counter is not to be trusted: a session that runs is
 * told so, and the next one has another clock.
 */
static void verdicts(void)
{
	struct kbarman_clock_pair from, to;
	bool chosen;

	machine_of_rate(2111998000);
	kbarman_clock_choose();
	tap_ok(kbarman_clock_counts() && !kbarman_clock_is_unsteady() &&
	       kbarman_clock_hz() == 2111998000, "a_steady_counter_is_the_clock");
	machine.unsteady = true;
	kbarman_clock_read(&from);
	tap_ok(kbarman_clock_is_unsteady() && kbarman_clock_counts() && kbarman_clock_raw &&
	       from.timestamp > machine.ticks - machine.hz,
	       "a_session_is_told_of_a_verdict_and_keeps_its_clock");
	kbarman_clock_choose();
	chosen = !kbarman_clock_counts() && !kbarman_clock_raw && !kbarman_clock_is_unsteady() &&
		 kbarman_clock_hz() == NSEC_PER_SEC;
	kbarman_clock_read(&from);
	machine.ticks += machine.hz;
	kbarman_clock_read(&to);
	tap_ok(chosen && difference(from.timestamp, from.raw_ns) <= MICROSECOND &&
	       difference(to.timestamp, to.raw_ns) <= MICROSECOND &&
	       to.timestamp - from.timestamp >= NSEC_PER_SEC,
	       "the_next_one_has_CLOCK_MONOTONIC_RAW_which_is_never_adjusted");
	machine.unsteady = false;
	kbarman_clock_choose();
	tap_ok(!kbarman_clock_counts(), "nobody_goes_back_to_a_counter_that_was_not_steady");
	machine_of_rate(1000000000);
	machine.unsteady = true;
	kbarman_clock_init();
	tap_ok(!kbarman_clock_counts() && !kbarman_clock_is_unsteady(),
	       "a_counter_that_is_not_steady_at_first_is_never_the_clock");
}

/* Who records on has one clock; a session that begins later reads the counter alone again. */
static void restarts(void)
{
	struct kbarman_clock_pair before, after;

	machine_of_rate(25000000);
	machine.ticks = machine.hz;
	kbarman_clock_read(&before);
	kbarman_clock_suspend();
	machine.ticks = 1;
	kbarman_clock_resume();
	kbarman_clock_read(&after);
	tap_ok(!kbarman_clock_raw && after.timestamp >= before.timestamp,
	       "time_goes_on_after_a_suspend_in_which_the_counter_restarts");
	kbarman_clock_choose();
	kbarman_clock_read(&after);
	tap_ok(kbarman_clock_raw && kbarman_clock_counts() && after.timestamp < before.timestamp,
	       "the_next_session_reads_the_counter_by_itself_again");
	machine.erratum = true;
	kbarman_clock_init();
	kbarman_clock_choose();
	tap_ok(!kbarman_clock_raw, "if_it_did_before");
	machine_of_rate(1000000000);
}

/* Then no probe reads the counter by itself, and the ticks are those of Linux. */
static void erratum(void)
{
	struct kbarman_clock_pair pair;

	machine_of_rate(25000000);
	tap_ok(kbarman_clock_counts() && kbarman_clock_raw, "a_plain_counter_is_read_by_itself");
	machine.erratum = true;
	kbarman_clock_init();
	kbarman_clock_read(&pair);
	tap_ok(kbarman_clock_counts() && !kbarman_clock_raw && pair.timestamp <= machine.ticks &&
	       kbarman_clock_hz() == 25000000, "a_counter_with_an_erratum_is_read_as_Linux_reads_it");
	machine_of_rate(1000000000);
}

/* An end that does not go with the header is none. */
static void hostile_ends(void)
{
	const struct session s = {
		.start = { .timestamp = 1000, .raw_ns = 5000 }, .multiplier = 10, .divisor = 1,
	};
	static const u64 ends[][2] = {
		{ 1000, 5000 }, { 999, 5000 }, { 2000, 4999 }, { 2000, 5000 }, { 2000, 5000000 },
		{ U64_MAX, 0 }, { 0, U64_MAX }, { U64_MAX, U64_MAX }, { 2000, 15100 },
	};
	bool good = true;

	for (size_t i = 0; good && i < sizeof(ends) / sizeof(ends[0]); i++) {
		struct image im = { .word = 8 };
		struct kb_barman *barman = open_session(&im, &s, ends[i][0], ends[i][1]);

		good = barman && kb_barman_ns(barman, 1500) == 5000;
		kb_barman_close(barman);
		image_free(&im);
	}
	tap_ok(good, "an_end_that_does_not_go_with_the_header_is_none");
}

int main(void)
{
	random_start();
	pairs_are_of_one_moment();
	three_minutes_are_exact_by_the_header();
	hours_are_as_exact_as_64_bits_can_be();
	multipliers_stay_small();
	nominal_rates();
	odd_pairs();
	hours_are_exact_by_the_library();
	sleeps_move_no_record();
	counters_that_begin_anew();
	verdicts();
	restarts();
	erratum();
	hostile_ends();
	return tap_done();
}
