# drop gives up when a writer came in between
s/while (cmpxchg_local(read_offset(ring), oldest, target) != oldest);/while (cmpxchg_local(read_offset(ring), oldest, target), 0);/
