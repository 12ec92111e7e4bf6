# a retry takes the old head
/^	do {$/i\	head = READ_ONCE(ring->w);
/^		head = READ_ONCE(ring->w);$/d
