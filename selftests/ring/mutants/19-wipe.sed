# eviction takes all that is published
s/return after(target, commit) || after(needed, target) ? commit : target;/return commit;/
