// SPDX-License-Identifier: BSD-2-Clause
// stacks_cxx.cc - frames of C++: through a virtual call, a template, a lambda behind std::function, while an exception is
// in flight (in a destructor that unwinding runs) and in its handler. shoot() is that of stacks.c.
#include <functional>
#include <stdexcept>

#define NOINLINE __attribute__((noinline, noclone))
#define AFTER() __asm__ volatile("" ::: "memory")

extern "C" void shoot();
extern "C" void cxx_run(int which);

namespace shape {

struct Base {
	virtual ~Base() = default;
	virtual int draw(int n) = 0;
};

template <typename T> struct Square : Base {
	NOINLINE int draw(int n) override
	{
		shoot();
		AFTER();
		return n + (int)sizeof(T);
	}
};

struct Guard {
	NOINLINE ~Guard()
	{
		shoot();
		AFTER();
	}
};

NOINLINE void thrower(int n)
{
	if (n)
		throw std::runtime_error("thrown");
	AFTER();
}

NOINLINE void guarded(int n)
{
	Guard g;

	thrower(n);
	AFTER();
}

NOINLINE int handler(int n)
{
	try {
		guarded(n);
	} catch (const std::exception &) {
		shoot();
		AFTER();
	}
	return n;
}

NOINLINE int apply(const std::function<int(int)> &f, int n)
{
	n = f(n);
	AFTER();
	return n;
}

} // namespace shape

NOINLINE void cxx_run(int which)
{
	shape::Square<double> square;
	shape::Base *volatile base = &square;

	if (which == 1)
		base->draw(1);
	if (which == 2)
		shape::apply([](int n) { shoot(); AFTER(); return n + 1; }, 2);
	if (which == 3)
		shape::handler(3);
	AFTER();
}
