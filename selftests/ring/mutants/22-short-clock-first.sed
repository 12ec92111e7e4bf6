# the short way reads the clock before it knows where the block goes
/bool kbarman_ring_reserve_within(/,/^}/{
s/^	unsigned long head = READ_ONCE(ring->commit);/	u64 early = called ? ring_clock() : ring_counter();\n&/
s/^	now = .*/	now = early;/
}
