# the short way goes on to the end of the page, whatever room there is
/^static void open_short(/,/^}/s/if (kbarman_ring_after(limit, last))/if (true)/
