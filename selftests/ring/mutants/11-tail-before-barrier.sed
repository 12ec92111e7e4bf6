# tail is renewed before the barrier
/^	smp_wmb();$/d
s/^	WRITE_ONCE(ring->tail, oldest);/&\n	barrier();\n	smp_wmb();/
