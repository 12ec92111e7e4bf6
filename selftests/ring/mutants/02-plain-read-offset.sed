# read_offset is stored, not exchanged
s/cmpxchg_local(read_offset(ring), oldest, evict_target(ring, end));/WRITE_ONCE(*read_offset(ring), evict_target(ring, end));/
