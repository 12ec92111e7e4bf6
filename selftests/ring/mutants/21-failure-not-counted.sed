# the outermost writer's failure is not counted
s/^	if (counted) {/	if (counted \&\& ring->w != ring->commit) {/
