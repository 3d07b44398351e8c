package sha1dc

import (
	"math/bits"

	"github.com/pjbgf/sha1cd/ubc"
)

// scratch is what compress leaves of the last block. compress knows its layout.
type scratch struct {
	w      [80]uint32 // the message schedule
	before [5]uint32  // the state before the block
	at56   [5]uint32  // the state before step 56
}

const (
	k0 = 0x5A827999
	k1 = 0x6ED9EBA1
	k2 = 0x8F1BBCDC
	k3 = 0xCA62C1D6
)

// attack reports whether the block that s describes, after which the state is after, collides with another block to which one of the known
// disturbance vectors leads. M. Stevens, "Counter-cryptanalysis" (CRYPTO 2013); the procedure is sha1_process and
// sha1_recompression_step of https://github.com/cr-marcstevens/sha1collisiondetection, lib/sha1.c.
func attack(s *scratch, after *[5]uint32) bool {
	mask := ubc.CalculateDvMask(&s.w)
	if mask == 0 {
		return false
	}
	// The steps from which the other block is followed.
	at58 := plain(&s.w, s.at56, 56, 58)
	var at65 [5]uint32
	have65 := false
	for ; mask != 0; mask &= mask - 1 {
		dv := vectors[bits.TrailingZeros32(mask)]
		state := at58
		if dv.TestT == 65 {
			if !have65 {
				at65, have65 = plain(&s.w, at58, 58, 65), true
			}
			state = at65
		}
		end := forward(&s.w, &dv.Dm, state, int(dv.TestT), 80)
		begin := backward(&s.w, &dv.Dm, state, int(dv.TestT))
		same := true
		for i := range end {
			same = same && begin[i]+end[i] == after[i]
		}
		if same {
			return true
		}
	}
	return false
}

// vectors are the disturbance vectors by their bit in a mask. Nobody changes them.
var vectors = func() (by [32]*ubc.DvInfo) {
	all := ubc.SHA1_dvs()
	for i := range all {
		if all[i].DvType != 0 {
			by[all[i].MaskB] = &all[i]
		}
	}
	return by
}()

// plain performs the steps from to to-1, which are between 40 and 79.
func plain(w *[80]uint32, s [5]uint32, from, to int) [5]uint32 {
	a, b, c, d, e := s[0], s[1], s[2], s[3], s[4]
	i := from
	for ; i < min(to, 60); i++ {
		a, b, c, d, e = bits.RotateLeft32(a, 5)+((b|c)&d|b&c)+e+w[i]+k2, a, bits.RotateLeft32(b, 30), c, d
	}
	for ; i < to; i++ {
		a, b, c, d, e = bits.RotateLeft32(a, 5)+(b^c^d)+e+w[i]+k3, a, bits.RotateLeft32(b, 30), c, d
	}
	return [5]uint32{a, b, c, d, e}
}

// forward performs the steps from to to-1, with the schedule w XOR dm.
func forward(w, dm *[80]uint32, s [5]uint32, from, to int) [5]uint32 {
	a, b, c, d, e := s[0], s[1], s[2], s[3], s[4]
	i := from
	for ; i < min(to, 20); i++ {
		a, b, c, d, e = bits.RotateLeft32(a, 5)+(d^b&(c^d))+e+(w[i]^dm[i])+k0, a, bits.RotateLeft32(b, 30), c, d
	}
	for ; i < min(to, 40); i++ {
		a, b, c, d, e = bits.RotateLeft32(a, 5)+(b^c^d)+e+(w[i]^dm[i])+k1, a, bits.RotateLeft32(b, 30), c, d
	}
	for ; i < min(to, 60); i++ {
		a, b, c, d, e = bits.RotateLeft32(a, 5)+((b|c)&d|b&c)+e+(w[i]^dm[i])+k2, a, bits.RotateLeft32(b, 30), c, d
	}
	for ; i < min(to, 80); i++ {
		a, b, c, d, e = bits.RotateLeft32(a, 5)+(b^c^d)+e+(w[i]^dm[i])+k3, a, bits.RotateLeft32(b, 30), c, d
	}
	return [5]uint32{a, b, c, d, e}
}

// backward undoes the steps below from, which is at most 80.
func backward(w, dm *[80]uint32, s [5]uint32, from int) [5]uint32 {
	// The state before a step is (b, c<<<2, d, e, x) of the state after it.
	a, b, c, d, e := s[0], s[1], s[2], s[3], s[4]
	i := from - 1
	for ; i >= 60; i-- {
		p, q := b, bits.RotateLeft32(c, 2)
		a, b, c, d, e = p, q, d, e, a-bits.RotateLeft32(p, 5)-(q^d^e)-(w[i]^dm[i])-k3
	}
	for ; i >= 40; i-- {
		p, q := b, bits.RotateLeft32(c, 2)
		a, b, c, d, e = p, q, d, e, a-bits.RotateLeft32(p, 5)-((q|d)&e|q&d)-(w[i]^dm[i])-k2
	}
	for ; i >= 20; i-- {
		p, q := b, bits.RotateLeft32(c, 2)
		a, b, c, d, e = p, q, d, e, a-bits.RotateLeft32(p, 5)-(q^d^e)-(w[i]^dm[i])-k1
	}
	for ; i >= 0; i-- {
		p, q := b, bits.RotateLeft32(c, 2)
		a, b, c, d, e = p, q, d, e, a-bits.RotateLeft32(p, 5)-(e^q&(d^e))-(w[i]^dm[i])-k0
	}
	return [5]uint32{a, b, c, d, e}
}
