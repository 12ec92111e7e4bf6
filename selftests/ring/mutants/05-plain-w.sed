# w is stored, not exchanged
s/while (unlikely(cmpxchg_local(&ring->w, head, next) != head));/while (WRITE_ONCE(ring->w, next), 0);/
s/unlikely(!ring_try_cmpxchg(&ring->w, head, end))/(WRITE_ONCE(ring->w, end), 0)/
