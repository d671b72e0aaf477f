/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * Names of kernel functions, by the kernel's own look-up. A capture asks for a few hundred addresses; to print the list
 * of all symbols takes the kernel a hundred times as long.
 */
#include "kernel.h"

#include <bpf/bpf_helpers.h>

u64 address;
char name[512]; /* of the symbol, and in brackets of its module */

SEC("syscall")
int name_address(void *ctx)
{
	bpf_snprintf(name, sizeof(name), "%ps", &address, sizeof(address));
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
