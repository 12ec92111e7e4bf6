// SPDX-License-Identifier: MIT
/* A heap gives its items in order, in whatever order they came. */
#include "../lib/random.h"
#include "../lib/tap.h"
#include "base/heap.h"

#define ITEMS	1000U

struct item {
	uint32_t key, number;
};

static bool before(const struct item *a, const struct item *b)
{
	return a->key < b->key || (a->key == b->key && a->number < b->number);
}

KB_HEAP(items, struct item, before)

static bool is_heap(const struct item *heap, size_t nr)
{
	for (size_t i = 1; i < nr; i++)
		if (before(&heap[i], &heap[(i - 1) / 2]))
			return false;
	return true;
}

int main(void)
{
	bool filled = true, emptied = true, changed = true;
	struct item heap[ITEMS], last, top;
	size_t nr;

	random_start();
	for (int round = 0; round < 200; round++) {
		uint32_t items = random_below(ITEMS) + 1;

		for (nr = 0; nr < items; nr++) {
			heap[nr] = (struct item){ random_below(items), (uint32_t)nr };
			items_up(heap, nr);
			filled &= !(nr % 50) || is_heap(heap, nr + 1);
		}
		filled &= is_heap(heap, nr);
		for (int i = 0; i < 50; i++) {
			heap[0].key = random_below(2 * items);
			items_down(heap, nr);
			changed &= is_heap(heap, nr);
		}
		for (last = heap[0]; nr; last = top) {
			top = heap[0];
			emptied &= !before(&top, &last);
			heap[0] = heap[--nr];
			if (nr)
				items_down(heap, nr);
		}
	}
	tap_ok(filled, "a_new_item_finds_its_place");
	tap_ok(changed, "a_changed_top_finds_its_place");
	tap_ok(emptied, "items_come_in_order");
	return tap_done();
}
