# the short way is opened again over a loss that another writer had
/^static void open_short(/,/^}/s/if (unlikely(kbarman_ring_is_owing(ring) ||/if (unlikely(/
