# drop goes beyond what is published
/^void kbarman_ring_drop(/,/^}/{
s/unsigned long commit = READ_ONCE(ring->commit), oldest, target;/unsigned long commit = READ_ONCE(ring->w), oldest, target;/
}
