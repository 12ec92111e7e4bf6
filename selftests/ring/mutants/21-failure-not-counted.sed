# the outermost writer's failure is not counted
s/^	if (counted) {/	if (counted \&\& ring->nest > 1) {/
