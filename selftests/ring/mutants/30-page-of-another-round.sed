# a page that says where an earlier or later round ended is taken for one of this round
s/if (page_end - boundary - 1 >= KBARMAN_RING_PAGE ||/if (false ||/
