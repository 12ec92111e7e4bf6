# the short way stays open when the clock has to be called
/^void kbarman_ring_close_short(/,/^}/s/^	WRITE_ONCE(ring->short_limit, closed);$//
