# a retry takes the old head
/^static noinline struct kbarman_slot ring_reserve(/,/^}/{
/^	do {$/i\	head = READ_ONCE(ring->w);
/^		head = READ_ONCE(ring->w);$/d
}
