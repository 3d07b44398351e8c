package py

import (
	"math"
	"math/big"
)

// IsNumber reports whether v is a bool, int or float.
func IsNumber(v any) bool {
	switch v.(type) {
	case bool, int64, *big.Int, float64:
		return true
	}
	return false
}

// IsInt reports whether v is an int or a bool.
func IsInt(v any) bool {
	switch v.(type) {
	case bool, int64, *big.Int:
		return true
	}
	return false
}

// toBig returns an int or bool as a big.Int, which must not be written to; nil for anything else.
func toBig(v any) *big.Int {
	switch x := v.(type) {
	case int64:
		return big.NewInt(x)
	case *big.Int:
		return x
	case bool:
		if x {
			return big.NewInt(1)
		}
		return new(big.Int)
	}
	return nil
}

// toInt64 returns an int or bool that fits.
func toInt64(v any) (int64, bool) {
	switch x := v.(type) {
	case int64:
		return x, true
	case bool:
		if x {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

// toFloat returns a number as a float; an int beyond a float's range is an OverflowError.
func toFloat(v any) (float64, error) {
	switch x := v.(type) {
	case float64:
		return x, nil
	case int64:
		return float64(x), nil
	case bool:
		if x {
			return 1, nil
		}
		return 0, nil
	case *big.Int:
		f, _ := new(big.Float).SetInt(x).Float64()
		if math.IsInf(f, 0) {
			return 0, Errorf(OverflowError, "int too large to convert to float")
		}
		return f, nil
	}
	return 0, Errorf(TypeError, "must be real number, not %s", TypeName(v))
}
