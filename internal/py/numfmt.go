package py

import (
	"math"
	"math/big"
	"strconv"
	"strings"
)

// maxPrecision limits the digits requested in formats.
const maxPrecision = 100000

// floatDigits formats |f| as C's printf does for e, f, g and their upper-case forms; alt keeps the point and g's zeros.
func floatDigits(f float64, prec int, typ byte, alt bool) string {
	f = math.Abs(f)
	upper := typ >= 'A' && typ <= 'Z'
	var s string
	switch {
	case math.IsInf(f, 0):
		s = "inf"
	case math.IsNaN(f):
		s = "nan"
	default:
		s = finiteDigits(f, prec, typ|0x20, alt)
	}
	if upper {
		return strings.ToUpper(s)
	}
	return s
}

func finiteDigits(f float64, prec int, typ byte, alt bool) string {
	switch typ {
	case 'e':
		s := strconv.FormatFloat(f, 'e', prec, 64)
		if alt && prec == 0 {
			s = strings.Replace(s, "e", ".e", 1)
		}
		return s
	case 'f':
		s := strconv.FormatFloat(f, 'f', prec, 64)
		if alt && prec == 0 {
			s += "."
		}
		return s
	}
	if prec == 0 {
		prec = 1
	}
	e := strconv.FormatFloat(f, 'e', prec-1, 64)
	mant, exp, _ := strings.Cut(e, "e")
	x, _ := strconv.Atoi(exp)
	if x < -4 || x >= prec {
		if !alt {
			mant = trimZeros(mant)
		}
		return mant + "e" + exp
	}
	s := strconv.FormatFloat(f, 'f', prec-1-x, 64)
	if !alt {
		return trimZeros(s)
	}
	if !strings.Contains(s, ".") {
		s += "."
	}
	return s
}

func trimZeros(s string) string {
	if !strings.Contains(s, ".") {
		return s
	}
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// intDigits returns |b| in a base.
func intDigits(b *big.Int, base int) (string, error) {
	if base == 10 {
		s, err := bigStr(b)
		return strings.TrimPrefix(s, "-"), err
	}
	return new(big.Int).Abs(b).Text(base), nil
}

// asciiRepr is ascii(v), given repr(v).
func asciiRepr(s string) string {
	if isASCII(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case r < 0x80:
			b.WriteByte(byte(r))
		case r < 0x100:
			b.WriteString(`\x`)
			hex(&b, r, 2)
		case r < 0x10000:
			b.WriteString(`\u`)
			hex(&b, r, 4)
		default:
			b.WriteString(`\U`)
			hex(&b, r, 8)
		}
	}
	return b.String()
}
