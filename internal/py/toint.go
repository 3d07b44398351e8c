package py

import (
	"math/big"
	"strconv"
	"strings"
	"unicode"
)

// ToInt is int(v), or int(v, base) for a string. The text is not part of its errors.
func ToInt(v any, base int) (any, error) {
	switch x := v.(type) {
	case int64, bool, *big.Int:
		return Norm(toBig(x)), nil
	case float64:
		return FloatToInt(x)
	case string:
		return parseInt(x, base)
	}
	if err := failing(v); err != nil {
		return nil, err
	}
	return nil, Errorf(TypeError, "int() argument must be a string, a bytes-like object or a real number, not '%s'", TypeName(v))
}

func parseInt(s string, base int) (any, error) {
	if base != 0 && (base < 2 || base > 36) {
		return nil, Errorf(ValueError, "int() base must be >= 2 and <= 36, or 0")
	}
	bad := Errorf(ValueError, "invalid literal for int() with base %d", base)
	s = Strip(s)
	neg := false
	if s != "" && (s[0] == '+' || s[0] == '-') {
		neg = s[0] == '-'
		s = s[1:]
	}
	if len(s) > 1 && s[0] == '0' {
		b := map[byte]int{'x': 16, 'o': 8, 'b': 2}[s[1]|0x20]
		if b != 0 && (base == 0 || base == b) {
			base = b
			s = strings.TrimPrefix(s[2:], "_")
		} else if base == 0 && strings.Trim(s, "0_") != "" {
			return nil, bad
		}
	}
	if base == 0 {
		base = 10
	}
	if s == "" || s[0] == '_' || s[len(s)-1] == '_' || strings.Contains(s, "__") || s[0] == '+' || s[0] == '-' {
		return nil, bad
	}
	digits := strings.ReplaceAll(asciiDigits(s), "_", "")
	if len(digits) > maxStrDigits && base&(base-1) != 0 {
		return nil, errDigits()
	}
	if len(digits) > maxBits {
		return nil, errDigits()
	}
	n, ok := new(big.Int).SetString(digits, base)
	if !ok {
		return nil, bad
	}
	if neg {
		n.Neg(n)
	}
	return Norm(n), nil
}

// ToFloat is float(v). The text is not part of its errors.
func ToFloat(v any) (float64, error) {
	s, ok := v.(string)
	if !ok {
		if err := failing(v); err != nil {
			return 0, err
		}
		f, err := toFloat(v)
		if IsErr(err, TypeError) {
			err = Errorf(TypeError, "float() argument must be a string or a real number, not '%s'", TypeName(v))
		}
		return f, err
	}
	bad := Errorf(ValueError, "could not convert string to float")
	s = asciiDigits(Strip(s))
	if s == "" || s[0] == '_' || s[len(s)-1] == '_' || strings.Contains(s, "__") || strings.ContainsAny(s, "xXpP") {
		return 0, bad
	}
	for i := 1; i < len(s)-1; i++ {
		if s[i] == '_' && !(s[i-1] >= '0' && s[i-1] <= '9' && s[i+1] >= '0' && s[i+1] <= '9') {
			return 0, bad
		}
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64)
	if err != nil {
		if ne, isNum := err.(*strconv.NumError); isNum && ne.Err == strconv.ErrRange {
			return f, nil
		}
		return 0, bad
	}
	return f, nil
}

// asciiDigits maps the decimal digits of other scripts to ASCII, as int() and float() read them.
func asciiDigits(s string) string {
	if isASCII(s) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if r < 0x80 || !unicode.IsDigit(r) {
			return r
		}
		// Digits of one script follow each other, from a zero whose code ends in 0 or 6.
		zero := r
		for unicode.IsDigit(zero-1) && r-zero < 9 {
			zero--
		}
		return '0' + (r - zero)
	}, s)
}
