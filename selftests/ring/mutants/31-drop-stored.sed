# drop stores read_offset, and does not exchange it
s/while (cmpxchg_local(read_offset(ring), oldest, target) != oldest);/while (WRITE_ONCE(*read_offset(ring), target), 0);/
