//go:build gc

package sha1dc

import "golang.org/x/sys/cpu"

// fast reports whether compress can run: with Intel's SHA extensions and AVX2, which processors have since 2017 (AMD) and 2019.
var fast = cpu.X86.HasSSSE3 && cpu.X86.HasSSE41 && cpu.X86.HasAVX2 && hasSHA()

// compress hashes up to n blocks at p into h. It stops after a block that may be part of an attack: suspect. Then s has that block's schedule
// and the state before it. Most suspects are not part of an attack: the conditions that it checks are some of those that an attack cannot avoid.
//
//go:noescape
func compress(h *[5]uint32, p *byte, n int, s *scratch) (done int, suspect bool)

func hasSHA() bool
