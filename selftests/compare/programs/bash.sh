f() {
	if (($1 > 1)); then
		f $(($1 - 1))
		f $(($1 - 2))
	fi
}
f 17
for i in {1..20000}; do
	s=${PATH//bin/$i}
done
