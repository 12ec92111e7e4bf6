# no barrier between read_offset and the overwriting data
s/^	smp_wmb();$//
