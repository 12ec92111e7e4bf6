# eviction takes all that is published
s/^	return target;$/	return commit;/
