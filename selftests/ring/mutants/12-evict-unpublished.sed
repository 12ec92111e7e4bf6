# eviction goes beyond what is published
s/return after(target, commit) || after(needed, target) ? commit : target;/return target;/
s/^	if (after(target, commit))$/	if (false)/
