# the fast test looks at read_offset, which another may have moved just now
s/after(next - READ_ONCE(ring->tail), size)/after(next - READ_ONCE(*read_offset(ring)), size)/
