# what is written in all is not stored with each page
s/^			WRITE_ONCE(\*kbarman_ring_low_word(&ring->header->total_written), end);$//
