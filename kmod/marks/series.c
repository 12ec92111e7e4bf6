// SPDX-License-Identifier: GPL-2.0-only
#include <linux/compiler.h>
#include <linux/err.h>
#include <linux/hashtable.h>
#include <linux/jhash.h>
#include <linux/mutex.h>
#include <linux/random.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/xarray.h>

#include "capture/tables.h"
#include "marks/series.h"
#include "ring/record.h"
#include "session.h"

#define NO_ROOM		(~0U)	/* as a row: the session has no room for it */

struct kbarman_known_series {
	struct hlist_node node;	/* in series_by_name */
	struct rcu_head rcu;
	u32 number;
	u32 user;		/* who made it, and pays for its rows */
	struct kbarman_mark_series wanted;
	u32 rows[KBARMAN_SLOTS];	/* of the session in that slot; 0: has not asked yet, as the
					 * module's own series have the first rows; or NO_ROOM */
};

/* For all who add and remove series. Values are written under RCU. */
static DEFINE_MUTEX(series_lock);
static DEFINE_HASHTABLE(series_by_name, 8);
static DEFINE_XARRAY(series_by_number);
static u32 series_next = KBARMAN_SERIES_COUNT;
static u32 series_salt;		/* of the hash: programs choose the names */

static u32 series_hash(const struct kbarman_mark_series *wanted)
{
	if (!series_salt)
		series_salt = get_random_u32() | 1;
	return jhash(wanted->name, strlen(wanted->name),
		     jhash(wanted->chart, strlen(wanted->chart), series_salt));
}

static struct kbarman_known_series *
series_of_name(const struct kbarman_mark_series *wanted, u32 hash)
{
	struct kbarman_known_series *series;

	lockdep_assert_held(&series_lock);
	hash_for_each_possible(series_by_name, series, node, hash)
		if (!strcmp(series->wanted.name, wanted->name) &&
		    !strcmp(series->wanted.chart, wanted->chart))
			return series;
	return NULL;
}

/* A series that is in no list yet, or an ERR_PTR. */
static struct kbarman_known_series *
series_create(const struct kbarman_mark_series *wanted, u32 user)
{
	struct kbarman_known_series *series = kzalloc(sizeof(*series), GFP_KERNEL_ACCOUNT);
	int error;

	if (!series)
		return ERR_PTR(-ENOMEM);
	series->number = series_next;
	series->user = user;
	series->wanted = *wanted;
	error = xa_reserve(&series_by_number, series->number, GFP_KERNEL_ACCOUNT);
	if (!error)
		return series;
	kfree(series);
	return ERR_PTR(error);
}

static void series_publish(struct kbarman_known_series *series, u32 hash)
{
	hash_add(series_by_name, &series->node, hash);
	xa_store(&series_by_number, series->number, series, GFP_KERNEL_ACCOUNT);
	series_next++;
}

int kbarman_series_get(struct kbarman_mark_series *wanted, u32 user,
		       int (*rows)(struct kbarman_known_series *series))
{
	struct kbarman_known_series *series, *new = NULL;
	u32 hash;
	int error;

	mutex_lock(&series_lock);
	hash = series_hash(wanted);
	series = series_of_name(wanted, hash);
	if (!series) {
		new = series_create(wanted, user);
		series = new;
	}
	error = PTR_ERR_OR_ZERO(series);
	if (error)
		goto out;
	error = rows(series);
	if (!error)
		wanted->series = series->number;
	if (new && !error) {
		series_publish(new, hash);
	} else if (new) {
		xa_release(&series_by_number, new->number);
		kfree(new);
	}
out:
	mutex_unlock(&series_lock);
	return error;
}

int kbarman_series_add_row(struct kbarman_known_series *series, struct kbarman_session *session)
{
	u32 *row = &series->rows[session->slot];
	int made;

	if (READ_ONCE(*row) && READ_ONCE(*row) != NO_ROOM)
		return 0;
	made = kbarman_tables_add_series(session->capture, series->user, &series->wanted);
	if (made < 0) {
		WRITE_ONCE(*row, NO_ROOM);
		return made;
	}
	WRITE_ONCE(*row, made);
	return 0;
}

struct kbarman_known_series *kbarman_series_find(u32 number)
{
	return xa_load(&series_by_number, number);
}

int kbarman_series_row(struct kbarman_known_series *series, struct kbarman_session *session)
{
	u32 *row = &series->rows[session->slot];

	if (unlikely(!READ_ONCE(*row)))
		kbarman_series_add_row(series, session);
	return READ_ONCE(*row) == NO_ROOM ? -ENOSPC : READ_ONCE(*row);
}

static bool series_has_rows(const struct kbarman_known_series *series)
{
	unsigned int slot;
	u32 row;

	for (slot = 0; slot < KBARMAN_SLOTS; slot++) {
		row = READ_ONCE(series->rows[slot]);
		if (row && row != NO_ROOM)
			return true;
	}
	return false;
}

void kbarman_series_leave(const struct kbarman_session *session, bool last)
{
	struct kbarman_known_series *series;
	unsigned long number;

	mutex_lock(&series_lock);
	xa_for_each(&series_by_number, number, series) {
		WRITE_ONCE(series->rows[session->slot], 0);
		if (series_has_rows(series))
			continue;
		xa_erase(&series_by_number, number);
		hash_del(&series->node);
		kfree_rcu(series, rcu);
		cond_resched();
	}
	if (last && xa_empty(&series_by_number))
		series_next = KBARMAN_SERIES_COUNT;
	mutex_unlock(&series_lock);
}
