package saltyaml

import (
	"errors"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"

	"corpus-git/internal/py"
)

// The tags of YAML 1.1 that the loader knows, in the long form. Source: https://yaml.org/type/.
const (
	tagPrefix    = "tag:yaml.org,2002:"
	tagStr       = tagPrefix + "str"
	tagInt       = tagPrefix + "int"
	tagFloat     = tagPrefix + "float"
	tagBool      = tagPrefix + "bool"
	tagNull      = tagPrefix + "null"
	tagMerge     = tagPrefix + "merge"
	tagValue     = tagPrefix + "value"
	tagTimestamp = tagPrefix + "timestamp"
	tagSeq       = tagPrefix + "seq"
	tagMap       = tagPrefix + "map"
	tagOmap      = tagPrefix + "omap"
	tagPairs     = tagPrefix + "pairs"
	tagSet       = tagPrefix + "set"
	tagBinary    = tagPrefix + "binary"
	tagUnicode   = tagPrefix + "python/unicode" // Salt's loader reads it as a string
)

// What a plain scalar may be, as in PyYAML's resolver (the types of YAML 1.1, with its deviations: an
// exponent needs a dot and a sign, base 60 integers do not start with 0, a signed float starts with a digit).
var (
	intPattern = regexp.MustCompile(`^(?:[-+]?0b[01_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+` +
		`|[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+)$`)
	floatPattern = regexp.MustCompile(`^(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?` +
		`|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$`)
	timestampPattern = regexp.MustCompile(`^(?:[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt]|[ \t]+)[0-9]{1,2}` +
		`:[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?(?:[ \t]*(?:Z|[-+][0-9]{1,2}(?::[0-9]{2})?))?)$`)
)

// resolvePlain returns the tag of a scalar that is neither quoted nor tagged.
func resolvePlain(s string) string {
	if s == "" {
		return tagNull
	}
	switch c := s[0]; {
	case c >= '0' && c <= '9', c == '-', c == '+', c == '.':
		if floatPattern.MatchString(s) {
			return tagFloat
		}
		if c != '.' && intPattern.MatchString(s) {
			return tagInt
		}
		if c >= '0' && c <= '9' && timestampPattern.MatchString(s) {
			return tagTimestamp
		}
	case strings.IndexByte("yYnNtTfFoO", c) >= 0:
		if _, ok := boolOf(s); ok {
			return tagBool
		}
		if s == "null" || s == "Null" || s == "NULL" {
			return tagNull
		}
	case s == "~":
		return tagNull
	case s == "<<":
		return tagMerge
	case s == "=":
		return tagValue
	}
	return tagStr
}

// boolOf reads the spellings of a boolean that a plain scalar may have.
func boolOf(s string) (v, ok bool) {
	switch s {
	case "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON":
		return true, true
	case "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF":
		return false, true
	}
	return false, false
}

var (
	errNotInt   = errors.New("not an integer")
	errNotFloat = errors.New("not a number")
	errNotBool  = errors.New("not a boolean")
	errDigits   = errors.New("an integer of more than 4300 digits")
)

// maxDigits is CPython's limit for reading a decimal integer (sys.int_info.default_max_str_digits).
const maxDigits = 4300

// parseInt reads the text of an !!int. Salt drops the leading zeros of an unsigned one, so that 0644 is 644;
// a signed one with a leading zero is octal, as in YAML 1.1.
func parseInt(s string) (any, error) {
	if s != "0" && strings.HasPrefix(s, "0") && !strings.HasPrefix(s, "0b") && !strings.HasPrefix(s, "0x") {
		if s = strings.TrimLeft(s, "0"); s == "" {
			s = "0"
		}
	}
	s = strings.ReplaceAll(s, "_", "")
	neg := strings.HasPrefix(s, "-")
	if neg || strings.HasPrefix(s, "+") {
		s = s[1:]
	}
	var (
		v   *big.Int
		err error
	)
	switch {
	case s == "":
		return nil, errNotInt
	case s == "0":
		return int64(0), nil
	case strings.HasPrefix(s, "0b"):
		v, err = digits(s[2:], 2)
	case strings.HasPrefix(s, "0x"):
		v, err = digits(s[2:], 16)
	case s[0] == '0':
		v, err = digits(s, 8)
	case strings.Contains(s, ":"):
		v = new(big.Int)
		sixty := big.NewInt(60)
		if len(s) > maxDigits {
			return nil, errDigits
		}
		for part := range strings.SplitSeq(s, ":") {
			d, err := digits(part, 10)
			if err != nil {
				return nil, err
			}
			v.Add(v.Mul(v, sixty), d)
		}
	default:
		v, err = digits(s, 10)
	}
	if err != nil {
		return nil, err
	}
	if neg {
		v.Neg(v)
	}
	return py.Norm(v), nil
}

func digits(s string, base int) (*big.Int, error) {
	if base == 10 && len(s) > maxDigits {
		return nil, errDigits
	}
	if s == "" || s[0] == '+' || s[0] == '-' {
		return nil, errNotInt
	}
	v, ok := new(big.Int).SetString(s, base)
	if !ok {
		return nil, errNotInt
	}
	return v, nil
}

// parseFloat reads the text of a !!float.
func parseFloat(s string) (any, error) {
	s = strings.ToLower(strings.ReplaceAll(s, "_", ""))
	if s == "" {
		return nil, errNotFloat
	}
	sign := 1.0
	if s[0] == '-' {
		sign = -1
	}
	if s[0] == '-' || s[0] == '+' {
		s = s[1:]
	}
	switch {
	case s == ".inf":
		return math.Inf(int(sign)), nil
	case s == ".nan":
		return math.NaN(), nil
	case strings.Contains(s, ":"):
		// Summed from the last part to the first, as the reference does: the order decides the rounding.
		parts := strings.Split(s, ":")
		total, base := 0.0, 1.0
		for i := len(parts) - 1; i >= 0; i-- {
			f, err := decimal(parts[i])
			if err != nil {
				return nil, err
			}
			total += f * base
			base *= 60
		}
		return sign * total, nil
	}
	f, err := decimal(s)
	if err != nil {
		return nil, err
	}
	return sign * f, nil
}

// decimal is Python's float() for a text without sign and underscores; too large is infinite.
func decimal(s string) (float64, error) {
	s = strings.TrimSpace(s)
	if strings.HasPrefix(s, "0x") {
		return 0, errNotFloat
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, errNotFloat
	}
	return f, nil
}
