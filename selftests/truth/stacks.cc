// SPDX-License-Identifier: MIT
/*
 * The same for C++: exceptions through several frames, destructors on the way, containers,
 * streams. selftests/host/test_unwind_walker.c executes it one instruction at a time.
 */
#include <algorithm>
#include <iostream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#define NOINLINE	__attribute__((noinline))

static volatile int destroyed;

struct guard {
	int n;

	NOINLINE ~guard()
	{
		destroyed = destroyed + n;
	}
};

struct shape {
	virtual ~shape() = default;
	virtual int area(int n) const = 0;
};

struct square : shape {
	NOINLINE int area(int n) const override
	{
		return n * n + destroyed;
	}
};

static NOINLINE int thrower(int n, const shape &what)
{
	guard local { n };

	if (n == 0)
		throw std::runtime_error("at the bottom of " + std::to_string(what.area(n)));
	return thrower(n - 1, what) + local.n;
}

static NOINLINE int catcher(int n)
{
	square what;

	try {
		return thrower(n, what);
	} catch (const std::exception &error) {
		return static_cast<int>(std::string(error.what()).size());
	}
}

static NOINLINE int rethrower(int n)
{
	try {
		guard local { n };

		if (n > 1)
			throw n;
		return catcher(n);
	} catch (int value) {
		try {
			throw;
		} catch (...) {
			return catcher(value);
		}
	}
}

int main()
{
	std::map<std::string, std::vector<int>> table;
	std::ostringstream text;
	int n = 0;

	for (int i = 0; i < 3; i++) {
		n += catcher(i) + rethrower(i);
		table["key" + std::to_string(i)].push_back(n);
	}
	for (auto &row : table)
		std::sort(row.second.begin(), row.second.end());
	text << n << ' ' << table.size() << ' ' << 1.5 * n;
	std::cout << text.str() << '\n';
	return 0;
}
