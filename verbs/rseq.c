/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "rseq.h"

#if defined(__x86_64__) && __has_include(<sys/rseq.h>)

#include <stddef.h>
#include <sys/rseq.h>

bool rseq_usable(void)
{
	return __rseq_size > 0;
}

/*
 * A sequence is between SEQUENCE and COMMITTED, whose operands END_SEQUENCE are: interrupted in it,
 * the thread goes on at the abort handler, whose signature stands before it. After the one
 * instruction that nothing comes behind, be it `syscall`, it is done.
 */
#define SEQUENCE                                        \
	".pushsection .data.rel.ro.rseq_cs, \"aw\"\n\t" \
	".balign 32\n"                                  \
	"1:\n\t"                                        \
	".long 0, 0\n\t"                                \
	".quad 2f, 3f - 2f, 4f\n\t"                     \
	".popsection\n\t"                               \
	"leaq 1b(%%rip), %%rcx\n\t"                     \
	"movq %%rcx, %[section]\n"                      \
	"2:\n\t"                                        \
	"cmpq %[expected], %[word]\n\t"                 \
	"jne 5f\n\t"
#define COMMITTED                        \
	"3:\n\t"                         \
	"jmp 6f\n\t"                     \
	".byte 0x0f, 0xb9, 0x3d\n\t"     \
	".long %c[signature]\n"          \
	"4:\n\t"                         \
	"movq %[interrupted], %[rc]\n\t" \
	"jmp 6f\n"                       \
	"5:\n\t"                         \
	"movq %[changed], %[rc]\n"       \
	"6:\n\t"                         \
	"movq $0, %[section]\n"
#define END_SEQUENCE                                                            \
	[word] "m"(*word), [expected] "r"(expected), [signature] "i"(RSEQ_SIG), \
		[interrupted] "i"(RSEQ_INTERRUPTED), [changed] "i"(RSEQ_CHANGED)

static inline struct rseq *of_thread(void)
{
	return (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
}

long rseq_call(const struct rseq_call *call, const uint64_t *word, uint64_t expected)
{
	struct rseq *rseq = of_thread();
	register const struct iovec *remote __asm__("r10") = call->remote;
	register unsigned long n_remote __asm__("r8") = call->n_remote;
	register unsigned long flags __asm__("r9") = 0;
	long rc;

	__asm__ volatile(SEQUENCE "syscall\n" COMMITTED
			 : [rc] "=a"(rc), [section] "=m"(rseq->rseq_cs)
			 : "a"(call->number), "D"((long)call->pid), "S"(call->local),
			   "d"(call->n_local), "r"(remote), "r"(n_remote), "r"(flags), END_SEQUENCE
			 : "rcx", "r11", "cc", "memory");
	return rc;
}

/*
 * Shorter ones are copied by 16 bytes: `rep` takes long to begin. By words, which is as fast as by
 * bytes where that is fast, and eight times as fast elsewhere, as in an emulator.
 */
#define STRING "512"

/* All but the last 8 bytes: `n` of them. */
/* clang-format off */
#define REST                           \
	"cmpq $" STRING ", %[n]\n\t"   \
	"jb 10f\n\t"                   \
	"movq %[n], %%rcx\n\t"         \
	"shrq $3, %%rcx\n\t"           \
	"rep movsq\n\t"                \
	"andq $7, %[n]\n\t"            \
	"jmp 11f\n"                    \
	"10:\n\t"                      \
	"subq $16, %[n]\n\t"           \
	"jb 11f\n\t"                   \
	"movdqu (%[from]), %%xmm0\n\t" \
	"movdqu %%xmm0, (%[to])\n\t"   \
	"addq $16, %[from]\n\t"        \
	"addq $16, %[to]\n\t"          \
	"jmp 10b\n"                    \
	"11:\n\t"                      \
	PIECE("8", "movq", "%%rcx")    \
	PIECE("4", "movl", "%%ecx")    \
	PIECE("2", "movw", "%%cx")     \
	PIECE("1", "movb", "%%cl")
/* clang-format on */

/* Of `size` bytes, a power of two, where that bit of what is left is set. */
#define PIECE(size, move, through)                                                      \
	"testb $" size ", %b[n]\n\t"                                                    \
	"jz 9f\n\t" move " (%[from]), " through "\n\t" move " " through ", (%[to])\n\t" \
	"addq $" size ", %[from]\n\t"                                                   \
	"addq $" size ", %[to]\n"                                                       \
	"9:\n\t"

static long copy_long(void *to, const void *from, uint64_t length, const uint64_t *word,
		      uint64_t expected)
{
	struct rseq *rseq = of_thread();
	uint64_t rest = length - sizeof(uint64_t);
	long rc = 0;

	__asm__ volatile(SEQUENCE REST "movq (%[from]), %%rcx\n\t"
				       "movq %%rcx, (%[to])\n" COMMITTED
			 : [rc] "+a"(rc), [to] "+D"(to), [from] "+S"(from), [n] "+d"(rest),
			   [section] "=m"(rseq->rseq_cs)
			 : END_SEQUENCE
			 : "rcx", "xmm0", "cc", "memory");
	return rc;
}

static long copy_short(void *to, const void *from, uint64_t length, const uint64_t *word,
		       uint64_t expected)
{
	struct rseq *rseq = of_thread();
	long rc = 0;

	__asm__ volatile(SEQUENCE PIECE("4", "movl", "%%ecx") PIECE("2", "movw", "%%cx")
				 PIECE("1", "movb", "%%cl") COMMITTED
			 : [rc] "+a"(rc), [to] "+D"(to), [from] "+S"(from), [n] "+d"(length),
			   [section] "=m"(rseq->rseq_cs)
			 : END_SEQUENCE
			 : "rcx", "cc", "memory");
	return rc;
}

long rseq_copy(void *to, const void *from, uint64_t length, const uint64_t *word, uint64_t expected)
{
	return length < sizeof(uint64_t) ? copy_short(to, from, length, word, expected)
					 : copy_long(to, from, length, word, expected);
}

static long compare_swap(struct rseq_atomic *atomic, const uint64_t *word, uint64_t expected)
{
	struct rseq *rseq = of_thread();
	uint64_t original = atomic->compare;
	long rc = 0;

	__asm__ volatile(SEQUENCE "lock cmpxchgq %[operand], (%[at])\n" COMMITTED
			 : [rc] "+r"(rc), "+a"(original), [section] "=m"(rseq->rseq_cs)
			 : [at] "r"(atomic->at), [operand] "r"(atomic->operand), END_SEQUENCE
			 : "rcx", "cc", "memory");
	atomic->original = original;
	return rc;
}

static long fetch_add(struct rseq_atomic *atomic, const uint64_t *word, uint64_t expected)
{
	struct rseq *rseq = of_thread();
	uint64_t original = atomic->operand;
	long rc = 0;

	__asm__ volatile(SEQUENCE "lock xaddq %[original], (%[at])\n" COMMITTED
			 : [rc] "+r"(rc), [original] "+r"(original), [section] "=m"(rseq->rseq_cs)
			 : [at] "r"(atomic->at), END_SEQUENCE
			 : "rcx", "cc", "memory");
	atomic->original = original;
	return rc;
}

long rseq_atomic(struct rseq_atomic *atomic, const uint64_t *word, uint64_t expected)
{
	return atomic->compare_swap ? compare_swap(atomic, word, expected)
				    : fetch_add(atomic, word, expected);
}

#else

bool rseq_usable(void)
{
	return false;
}

long rseq_call(const struct rseq_call *call, const uint64_t *word, uint64_t expected)
{
	(void)call;
	(void)word;
	(void)expected;
	return RSEQ_CHANGED;
}

long rseq_copy(void *to, const void *from, uint64_t length, const uint64_t *word, uint64_t expected)
{
	(void)to;
	(void)from;
	(void)length;
	(void)word;
	(void)expected;
	return RSEQ_CHANGED;
}

long rseq_atomic(struct rseq_atomic *atomic, const uint64_t *word, uint64_t expected)
{
	(void)atomic;
	(void)word;
	(void)expected;
	return RSEQ_CHANGED;
}

#endif
