# the outermost writer's failure is not counted
s/^	if (counted && !READ_ONCE(ring->closed)) {/	if (counted \&\& ring->w != ring->commit) {/
