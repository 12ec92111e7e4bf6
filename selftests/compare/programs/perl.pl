sub f { my $n = shift; $n < 2 ? $n : f($n - 1) + f($n - 2) }
f(23);
for (1 .. 60000) {
	$h{$_ x 3} = join ",", map { $_ * 2 } 1 .. 9;
}
$_ = join " ", sort keys %h;
s/(\d)(\d)/$2$1/g;
