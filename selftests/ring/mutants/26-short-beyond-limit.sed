# the short way goes on to the end of the page, whatever room there is
s/kbarman_ring_after(last, limit) ? limit : last/last/
