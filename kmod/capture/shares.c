// SPDX-License-Identifier: GPL-2.0-only
#include "capture/shares.h"

#define ROOT	0
#define REST	(KBARMAN_PAYERS - 1)

u32 kbarman_shares_limit(const struct kbarman_shares *shares, u8 payer, enum kbarman_resource what)
{
	u32 others = shares->used[what] - shares->payers[payer].used[what];
	u32 left = shares->size[what] - others;

	if (payer == ROOT)
		return left;
	if (shares->payers[payer].user == KBARMAN_USER_UNWANTED)
		return left / 4;
	return left - left / 4;
}

static void payer_set_alarm(struct kbarman_shares *shares, u8 payer, enum kbarman_resource what)
{
	struct kbarman_payer *it = &shares->payers[payer];
	u32 limit = kbarman_shares_limit(shares, payer, what);
	u32 left = limit - min(limit, it->used[what]);

	it->alarm[what] = it->used[what] + max(left / 2, 1U);
}

static void shares_set_alarms(struct kbarman_shares *shares, u8 payer)
{
	int what;

	for (what = 0; what < KBARMAN_SHARES; what++)
		payer_set_alarm(shares, payer, what);
}

void kbarman_shares_init(struct kbarman_shares *shares, const u32 size[KBARMAN_SHARES])
{
	memset(shares, 0, sizeof(*shares));
	memcpy(shares->size, size, sizeof(shares->size));
	shares_set_alarms(shares, ROOT);
}

static bool payer_is_idle(const struct kbarman_payer *payer)
{
	int what;

	for (what = 0; what < KBARMAN_SHARES; what++)
		if (payer->used[what])
			return false;
	return true;
}

u8 kbarman_shares_payer(struct kbarman_shares *shares, u32 user)
{
	u8 payer, idle = REST;

	if (user == KBARMAN_USER_ROOT)
		return ROOT;
	for (payer = REST - 1; payer > ROOT; payer--) {
		if (shares->payers[payer].user == user)
			return payer;
		if (payer_is_idle(&shares->payers[payer]))
			idle = payer;
	}
	if (idle != REST) {
		shares->payers[idle].user = user;
		shares_set_alarms(shares, idle);
	}
	return idle;
}

bool kbarman_shares_take(struct kbarman_shares *shares, u8 payer, enum kbarman_resource what,
			 u32 count, bool *low)
{
	struct kbarman_payer *it = &shares->payers[payer];
	bool may = it->used[what] + count <= kbarman_shares_limit(shares, payer, what);

	if (may) {
		it->used[what] += count;
		shares->used[what] += count;
	}
	if (!may || it->used[what] >= it->alarm[what]) {
		*low = true;
		payer_set_alarm(shares, payer, what);
	}
	return may;
}

void kbarman_shares_give(struct kbarman_shares *shares, u8 payer, enum kbarman_resource what,
			 u32 count)
{
	shares->payers[payer].used[what] -= count;
	shares->used[what] -= count;
}

void kbarman_shares_looked(struct kbarman_shares *shares)
{
	u8 payer;

	for (payer = 0; payer < KBARMAN_PAYERS; payer++)
		shares_set_alarms(shares, payer);
}

/* What the rings keep, all together, if each keeps @level at most. */
static u64 level_kept(const u32 *needs, size_t stride, u32 count, u32 level)
{
	u64 sum = 0;
	u32 i;

	for (i = 0; i < count; i++)
		sum += min(needs[i * stride], level);
	return sum;
}

u32 kbarman_shares_level(const u32 *needs, size_t stride, u32 count, u64 budget)
{
	u32 low = 0, high = ~0U;

	if (level_kept(needs, stride, count, high) <= budget)
		return high;
	/* `low` suits the budget, `high` does not. */
	while (high - low > 1) {
		u32 middle = low + (high - low) / 2;

		if (level_kept(needs, stride, count, middle) <= budget)
			low = middle;
		else
			high = middle;
	}
	return low;
}
