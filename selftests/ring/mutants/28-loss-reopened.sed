# the short way is opened again over a loss that another writer had
/^static void open_short(/,/^}/s/if (unlikely(kbarman_ring_owes(ring) != KBARMAN_LOST_REASONS ||/if (unlikely(/
