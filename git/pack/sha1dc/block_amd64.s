//go:build gc

#include "textflag.h"

// The compression is that of https://github.com/pjbgf/sha1cd (sha1cdblock_amd64.s) and so of Go's crypto/sha1 (Copyright 2024 The Go Authors,
// BSD-style licence, https://github.com/golang/go/blob/master/LICENSE), made into a loop over blocks.

// KEEP stores four words of the schedule in their order.
#define KEEP(m, index) \
	PSHUFD $0x1B, m, X8; \
	MOVOU X8, (index*16)(R13)

// COLUMN makes a number of one bit of each of W[32] to W[63], which are in Y8 to Y11; W[32] gives the lowest. shift brings that bit to the top.
#define COLUMN(shift, out) \
	VPSLLD shift, Y8, Y1; \
	VPSLLD shift, Y9, Y2; \
	VPACKSSDW Y2, Y1, Y1; \
	VPSLLD shift, Y10, Y3; \
	VPSLLD shift, Y11, Y4; \
	VPACKSSDW Y4, Y3, Y3; \
	VPACKSSWB Y3, Y1, Y1; \
	VPERMD Y1, Y12, Y1; \
	VPMOVMSKB Y1, out

// LOW adds a row of 24 needs to what is not fulfilled: Y8, Y9, Y10.
#define LOW(c, at) \
	VMOVD c, X1; \
	VPBROADCASTD X1, Y1; \
	VPAND (at*96+0)(R12), Y1, Y2; \
	VPAND (at*96+32)(R12), Y1, Y3; \
	VPAND (at*96+64)(R12), Y1, Y4; \
	VPOR Y2, Y8, Y8; \
	VPOR Y3, Y9, Y9; \
	VPOR Y4, Y10, Y10

// HIGH adds a row of 16 needs to what is not fulfilled: Y11, Y13.
#define HIGH(c, at) \
	VMOVD c, X1; \
	VPBROADCASTD X1, Y1; \
	VPAND (480+at*64+0)(R12), Y1, Y2; \
	VPAND (480+at*64+32)(R12), Y1, Y3; \
	VPOR Y2, Y11, Y11; \
	VPOR Y3, Y13, Y13

// func compress(h *[5]uint32, p *byte, n int, s *scratch) (done int, suspect bool)
// Requires: SHA, SSSE3, SSE4.1, AVX2
TEXT ·compress(SB), NOSPLIT, $0-41
	MOVQ h+0(FP), DI
	MOVQ p+8(FP), SI
	MOVQ n+16(FP), DX
	MOVQ s+24(FP), R13
	LEAQ ·needs(SB), R12
	XORQ R15, R15

	PXOR   X5, X5
	PINSRD $0x03, 16(DI), X5
	MOVOU  (DI), X0
	PSHUFD $0x1b, X0, X0
	MOVOU  shuffle_mask<>+0(SB), X7

next:
	CMPQ R15, DX
	JGE  done

	// The state before the block: to be added, and kept in s.before.
	MOVO   X5, X15
	MOVO   X0, X14
	PSHUFD $0x1B, X0, X8
	MOVOU  X8, 320(R13)
	PEXTRD $3, X5, 336(R13)

	// Rounds 0-3
	MOVOU     (SI), X1
	PSHUFB    X7, X1
	PADDD     X1, X5
	MOVO      X0, X6
	SHA1RNDS4 $0x00, X5, X0
	KEEP(X1, 0)

	// Rounds 4-7
	MOVOU     16(SI), X2
	PSHUFB    X7, X2
	SHA1NEXTE X2, X6
	MOVO      X0, X5
	SHA1RNDS4 $0x00, X6, X0
	SHA1MSG1  X2, X1
	KEEP(X2, 1)

	// Rounds 8-11
	MOVOU     32(SI), X3
	PSHUFB    X7, X3
	SHA1NEXTE X3, X5
	MOVO      X0, X6
	SHA1RNDS4 $0x00, X5, X0
	SHA1MSG1  X3, X2
	PXOR      X3, X1
	KEEP(X3, 2)

	// Rounds 12-15
	MOVOU     48(SI), X4
	PSHUFB    X7, X4
	SHA1NEXTE X4, X6
	MOVO      X0, X5
	SHA1MSG2  X4, X1
	SHA1RNDS4 $0x00, X6, X0
	SHA1MSG1  X4, X3
	PXOR      X4, X2
	KEEP(X4, 3)

	// Rounds 16-19
	SHA1NEXTE X1, X5
	MOVO      X0, X6
	SHA1MSG2  X1, X2
	SHA1RNDS4 $0x00, X5, X0
	SHA1MSG1  X1, X4
	PXOR      X1, X3
	KEEP(X1, 4)

	// Rounds 20-23
	SHA1NEXTE X2, X6
	MOVO      X0, X5
	SHA1MSG2  X2, X3
	SHA1RNDS4 $0x01, X6, X0
	SHA1MSG1  X2, X1
	PXOR      X2, X4
	KEEP(X2, 5)

	// Rounds 24-27
	SHA1NEXTE X3, X5
	MOVO      X0, X6
	SHA1MSG2  X3, X4
	SHA1RNDS4 $0x01, X5, X0
	SHA1MSG1  X3, X2
	PXOR      X3, X1
	KEEP(X3, 6)

	// Rounds 28-31
	SHA1NEXTE X4, X6
	MOVO      X0, X5
	SHA1MSG2  X4, X1
	SHA1RNDS4 $0x01, X6, X0
	SHA1MSG1  X4, X3
	PXOR      X4, X2
	KEEP(X4, 7)

	// Rounds 32-35
	SHA1NEXTE X1, X5
	MOVO      X0, X6
	SHA1MSG2  X1, X2
	SHA1RNDS4 $0x01, X5, X0
	SHA1MSG1  X1, X4
	PXOR      X1, X3
	KEEP(X1, 8)

	// Rounds 36-39
	SHA1NEXTE X2, X6
	MOVO      X0, X5
	SHA1MSG2  X2, X3
	SHA1RNDS4 $0x01, X6, X0
	SHA1MSG1  X2, X1
	PXOR      X2, X4
	KEEP(X2, 9)

	// Rounds 40-43
	SHA1NEXTE X3, X5
	MOVO      X0, X6
	SHA1MSG2  X3, X4
	SHA1RNDS4 $0x02, X5, X0
	SHA1MSG1  X3, X2
	PXOR      X3, X1
	KEEP(X3, 10)

	// Rounds 44-47
	SHA1NEXTE X4, X6
	MOVO      X0, X5
	SHA1MSG2  X4, X1
	SHA1RNDS4 $0x02, X6, X0
	SHA1MSG1  X4, X3
	PXOR      X4, X2
	KEEP(X4, 11)

	// Rounds 48-51
	SHA1NEXTE X1, X5
	MOVO      X0, X6
	SHA1MSG2  X1, X2
	SHA1RNDS4 $0x02, X5, X0
	SHA1MSG1  X1, X4
	PXOR      X1, X3
	KEEP(X1, 12)

	// Rounds 52-55
	SHA1NEXTE X2, X6
	MOVO      X0, X5
	SHA1MSG2  X2, X3
	SHA1RNDS4 $0x02, X6, X0
	SHA1MSG1  X2, X1
	PXOR      X2, X4
	KEEP(X2, 13)

	// The state before round 56: its E is the A before round 52, turned.
	PSHUFD $0x1B, X0, X8
	MOVOU  X8, 340(R13)
	PEXTRD $3, X5, CX
	ROLL   $30, CX
	MOVL   CX, 356(R13)

	// Rounds 56-59
	SHA1NEXTE X3, X5
	MOVO      X0, X6
	SHA1MSG2  X3, X4
	SHA1RNDS4 $0x02, X5, X0
	SHA1MSG1  X3, X2
	PXOR      X3, X1
	KEEP(X3, 14)

	// Rounds 60-63
	SHA1NEXTE X4, X6
	MOVO      X0, X5
	SHA1MSG2  X4, X1
	SHA1RNDS4 $0x03, X6, X0
	SHA1MSG1  X4, X3
	PXOR      X4, X2
	KEEP(X4, 15)

	// Rounds 64-67
	SHA1NEXTE X1, X5
	MOVO      X0, X6
	SHA1MSG2  X1, X2
	SHA1RNDS4 $0x03, X5, X0
	SHA1MSG1  X1, X4
	PXOR      X1, X3
	KEEP(X1, 16)

	// Rounds 68-71
	SHA1NEXTE X2, X6
	MOVO      X0, X5
	SHA1MSG2  X2, X3
	SHA1RNDS4 $0x03, X6, X0
	PXOR      X2, X4
	KEEP(X2, 17)

	// Rounds 72-75
	SHA1NEXTE X3, X5
	MOVO      X0, X6
	SHA1MSG2  X3, X4
	SHA1RNDS4 $0x03, X5, X0
	KEEP(X3, 18)

	// Rounds 76-79
	SHA1NEXTE X4, X6
	MOVO      X0, X5
	SHA1RNDS4 $0x03, X6, X0
	KEEP(X4, 19)

	SHA1NEXTE X15, X5
	PADDD     X14, X0

	ADDQ $64, SI
	INCQ R15

	// Loads as wide as the stores were: wider ones wait for them.
	VMOVDQU     128(R13), X8
	VINSERTI128 $1, 144(R13), Y8, Y8
	VMOVDQU     160(R13), X9
	VINSERTI128 $1, 176(R13), Y9, Y9
	VMOVDQU     192(R13), X10
	VINSERTI128 $1, 208(R13), Y10, Y10
	VMOVDQU     224(R13), X11
	VINSERTI128 $1, 240(R13), Y11, Y11
	VMOVDQU     unpack<>+0(SB), Y12

	COLUMN($2, R8)
	COLUMN($27, R9)
	COLUMN($25, R10)
	COLUMN($30, R11)

	VPXOR Y8, Y8, Y8
	VPXOR Y9, Y9, Y9
	VPXOR Y10, Y10, Y10
	VPXOR Y11, Y11, Y11
	VPXOR Y13, Y13, Y13

	// W[i].29 ^ W[i+1].29
	MOVL R8, AX
	SHRL $1, AX
	XORL R8, AX
	LOW(AX, 0)

	// W[i].4 ^ W[i+3].29
	MOVL R8, BX
	SHRL $3, BX
	XORL R9, BX
	LOW(BX, 1)

	// W[i].29 ^ W[i+2].29 ^ 1
	MOVL R8, CX
	SHRL $2, CX
	XORL R8, CX
	NOTL CX
	LOW(CX, 2)

	// W[i].4 ^ W[i+4].29
	MOVL R8, AX
	SHRL $4, AX
	XORL R9, AX
	LOW(AX, 3)

	// W[i].4 ^ W[i+2].4 ^ 1
	MOVL R9, BX
	SHRL $2, BX
	XORL R9, BX
	NOTL BX
	LOW(BX, 4)

	// W[i].6 ^ W[i+2].6
	MOVL R10, CX
	SHRL $2, CX
	XORL R10, CX
	HIGH(CX, 0)

	// W[i].1 ^ W[i+1].6 ^ 1
	MOVL R10, AX
	SHRL $1, AX
	XORL R11, AX
	NOTL AX
	HIGH(AX, 1)

	// W[i].6 ^ W[i+1].1
	MOVL R11, BX
	SHRL $1, BX
	XORL R10, BX
	HIGH(BX, 2)

	// W[i].1 ^ W[i+4].1 ^ 1
	MOVL R11, CX
	SHRL $4, CX
	XORL R11, CX
	NOTL CX
	HIGH(CX, 3)

	// W[i].1 ^ W[i+2].1 ^ 1
	MOVL R11, AX
	SHRL $2, AX
	XORL R11, AX
	NOTL AX
	HIGH(AX, 4)

	// W[i].1 ^ W[i+8].1 ^ 1
	MOVL R11, BX
	SHRL $8, BX
	XORL R11, BX
	NOTL BX
	HIGH(BX, 5)

	VPXOR     Y1, Y1, Y1
	VPCMPEQD  Y1, Y8, Y8
	VPCMPEQD  Y1, Y9, Y9
	VPCMPEQD  Y1, Y10, Y10
	VPCMPEQD  Y1, Y11, Y11
	VPCMPEQD  Y1, Y13, Y13
	VPOR      Y9, Y8, Y8
	VPOR      Y11, Y10, Y10
	VPOR      Y13, Y8, Y8
	VPOR      Y10, Y8, Y8
	VPMOVMSKB Y8, CX
	VZEROUPPER
	TESTL     CX, CX
	JZ        next

	MOVB $1, suspect+40(FP)
	JMP  store

done:
	MOVB $0, suspect+40(FP)

store:
	PSHUFD $0x1b, X0, X0
	MOVOU  X0, (DI)
	PEXTRD $0x03, X5, 16(DI)
	MOVQ   R15, done+32(FP)
	RET

// func hasSHA() bool
TEXT ·hasSHA(SB), NOSPLIT, $0-1
	XORL AX, AX
	XORL CX, CX
	CPUID
	CMPL AX, $7
	JLT  no
	MOVL $7, AX
	XORL CX, CX
	CPUID
	SHRL $29, BX
	ANDL $1, BX
	MOVB BX, ret+0(FP)
	RET

no:
	MOVB $0, ret+0(FP)
	RET

DATA shuffle_mask<>+0(SB)/8, $0x08090a0b0c0d0e0f
DATA shuffle_mask<>+8(SB)/8, $0x0001020304050607
GLOBL shuffle_mask<>(SB), RODATA|NOPTR, $16

// The order that brings back what two rounds of packing in halves have mixed.
DATA unpack<>+0(SB)/4, $0
DATA unpack<>+4(SB)/4, $4
DATA unpack<>+8(SB)/4, $1
DATA unpack<>+12(SB)/4, $5
DATA unpack<>+16(SB)/4, $2
DATA unpack<>+20(SB)/4, $6
DATA unpack<>+24(SB)/4, $3
DATA unpack<>+28(SB)/4, $7
GLOBL unpack<>(SB), RODATA|NOPTR, $32
