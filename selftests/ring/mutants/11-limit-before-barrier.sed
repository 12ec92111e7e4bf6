# the limit is renewed before the barrier
/^	smp_wmb();$/d
s/^	WRITE_ONCE(ring->limit, oldest + size);/&\n	barrier();\n	smp_wmb();/
