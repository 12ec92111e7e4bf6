# a ring is taken to be a word larger than it is
s/after(next - READ_ONCE(ring->tail), size)/after(next - READ_ONCE(ring->tail), size + WORD)/
s/if (!after(end - oldest, size))/if (!after(end - oldest, size + WORD))/
