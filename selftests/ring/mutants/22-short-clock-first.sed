# the short way reads the clock before it knows where the block goes
/kbarman_ring_reserve_short/,/^}/{
/^	now = ring_clock();$/d
s/^	head = READ_ONCE(ring->commit);/	now = ring_clock();\n	barrier();\n&/
}
