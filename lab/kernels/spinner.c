// SPDX-License-Identifier: Apache-2.0
// Work without end, and without a system call.
#include <stdint.h>

int main(void)
{
	volatile uint64_t n = 0;

	for (;;)
		n++;
}
