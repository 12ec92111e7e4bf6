# drop takes the start of a page for the start of a block
/^void kbarman_ring_drop(/,/^}/{
s/target = READ_ONCE(ring->pages\[page_of(ring, position)\].first);/target = position;/
}
