/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * Kernel stacks in a hash of our own. A stack map of the kernel's loses entries without a word when
 * two stacks share a bucket; here the key is the whole 64-bit hash and a full map is counted.
 */
#pragma once

#define STACK_FRAMES 48

struct kernel_stack {
	u64 ip[STACK_FRAMES]; /* leaf first, 0 after the last */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u64);
	__type(value, struct kernel_stack);
} stacks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct kernel_stack);
} scratch SEC(".maps");

/* Key of a stack of `frames` addresses; never 0. */
static __always_inline u64 stack_key(const struct kernel_stack *stack, u32 frames)
{
	u64 key = 0xcbf29ce484222325ULL;

	for (u32 i = 0; i < STACK_FRAMES && i < frames; i++)
		key = (key ^ stack->ip[i]) * 0x100000001b3ULL;
	return key ?: 1;
}

/*
 * Takes the kernel stack of a thread that is not running; 0 = could not.
 * `taken` counts stacks, `lost` those that found the map full.
 */
static __always_inline u64 take_stack(struct task_struct *task, u64 *taken, u64 *lost)
{
	u32 zero = 0;
	struct kernel_stack *stack = bpf_map_lookup_elem(&scratch, &zero);
	long bytes;
	u64 key;

	if (!stack)
		return 0;
	bytes = bpf_get_task_stack(task, stack, sizeof(*stack), 0);
	if (bytes <= 0)
		return 0;
	(*taken)++;
	for (u32 i = 0; i < STACK_FRAMES; i++)
		if (i >= (u32)bytes / sizeof(u64))
			stack->ip[i] = 0;
	key = stack_key(stack, (u32)bytes / sizeof(u64));
	if (bpf_map_lookup_elem(&stacks, &key))
		return key;
	if (bpf_map_update_elem(&stacks, &key, stack, BPF_ANY)) {
		(*lost)++;
		return 0;
	}
	return key;
}
