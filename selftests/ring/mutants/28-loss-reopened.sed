# the short way is opened again over a loss that another writer had
/^static void open_short(/,/^}/s/if (unlikely(local_read(&ring->unreported) ||/if (unlikely(/
