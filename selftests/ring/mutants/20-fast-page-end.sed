# the short way takes a block that ends a page
s/position | (KBARMAN_RING_PAGE - 1)/(position | (KBARMAN_RING_PAGE - 1)) + 1/
