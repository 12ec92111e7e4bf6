# a writer that the close interrupts on the short way goes on
/^void kbarman_ring_close(struct/,/^}/s/^	barrier();$/	return;/
