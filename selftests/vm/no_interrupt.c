// SPDX-License-Identifier: MIT
/*
 * A PMU that counts and has no interrupt, as firmware leaves some: `make test` boots a machine
 * whose device tree says so. Nothing would ever overflow there.
 */
#include "burn.h"
#include "kselftest_harness.h"

FIXTURE(no_interrupt)
{
	int fd;
};

FIXTURE_SETUP(no_interrupt)
{
	self->fd = device_open_free();
	ASSERT_TRUE(query(self->fd).features & KBARMAN_FEATURE_PMU);
	pin(0);
}

FIXTURE_TEARDOWN(no_interrupt)
{
	close(self->fd);
}

TEST_F(no_interrupt, such_a_pmu_is_refused_to_sample)
{
	struct kbarman_start s = { .size = sizeof(s) };

	ASSERT_EQ(0, configure(self->fd, sampling(&cycles, 1)));
	EXPECT_EQ(-EOPNOTSUPP, call(self->fd, KBARMAN_START, &s));
	EXPECT_EQ(0, s.event);
}

TEST_F(no_interrupt, the_fallback_samples_in_its_place)
{
	struct kbarman_configure config = sampling(&cycles, 1);
	const void *map;

	config.events_ptr = sampled_or_clock(&cycles, PERIOD_NS);
	config.nr_events = 2;
	ASSERT_EQ(0, configure(self->fd, config));
	ASSERT_EQ(0, start(self->fd));
	EXPECT_TRUE(query(self->fd).state & KBARMAN_STATE_FALLBACK);
	map = map_cpu(self->fd, 0);
	burn_for(map, 20);
}

TEST_F(no_interrupt, it_counts_beside_something_that_samples)
{
	const struct kbarman_event both[] = { cpu_clock, cycles };

	ASSERT_EQ(0, configure(self->fd, sampling(both, 2)));
	ASSERT_EQ(0, start(self->fd));
	burn_for(map_cpu(self->fd, 0), 20);
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_EQ(NULL, judge_cpu(self->fd, 0).fault);
	EXPECT_EQ(0, stats(self->fd, 0).missed[KBARMAN_MISSED_COUNTER]);
}

TEST_HARNESS_MAIN
