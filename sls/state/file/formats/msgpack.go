package formats

import (
	"encoding/binary"
	"math"
	"math/big"

	"corpus-git/internal/py"
	"corpus-git/sls/state/core"
)

// Msgpack is msgpack.packb of the Python package, with its defaults. Source: the MessagePack specification.
func Msgpack(out []byte, v any) ([]byte, error) {
	be := binary.BigEndian
	switch x := v.(type) {
	case nil:
		return append(out, 0xc0), nil
	case bool:
		if x {
			return append(out, 0xc3), nil
		}
		return append(out, 0xc2), nil
	case float64:
		return be.AppendUint64(append(out, 0xcb), math.Float64bits(x)), nil
	case string:
		return append(msgpackLen(out, len(x), 0xa0, 32, 0xd9), x...), nil
	case *py.List:
		return msgpackList(out, x.Items())
	case py.Tuple:
		return msgpackList(out, x)
	case *py.Dict:
		out = msgpackLen(out, x.Len(), 0x80, 16, 0xde-1)
		var err error
		for _, e := range x.Items() {
			if out, err = Msgpack(out, e.Key); err != nil {
				return nil, err
			}
			if out, err = Msgpack(out, e.Value); err != nil {
				return nil, err
			}
		}
		return out, nil
	case int64:
		return msgpackInt(out, x), nil
	case *big.Int: // beyond signed 64 bits
		if !x.IsUint64() {
			return nil, core.Errorf("Integer value out of range")
		}
		return be.AppendUint64(append(out, 0xcf), x.Uint64()), nil
	}
	return nil, core.Errorf("can not serialize '%s' object", py.TypeName(v))
}

func msgpackList(out []byte, items []any) ([]byte, error) {
	out = msgpackLen(out, len(items), 0x90, 16, 0xdc-1)
	var err error
	for _, it := range items {
		if out, err = Msgpack(out, it); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// msgpackLen writes a length: in the first byte below short, else in 1, 2 or 4 bytes; one has the byte for 1, those for 2
// and 4 follow it. Lists and mappings have none for 1.
func msgpackLen(out []byte, n int, fix byte, short int, one byte) []byte {
	be := binary.BigEndian
	switch {
	case n < short:
		return append(out, fix|byte(n))
	case n < 1<<8 && fix == 0xa0:
		return append(out, one, byte(n))
	case n < 1<<16:
		return be.AppendUint16(append(out, one+1), uint16(n))
	}
	return be.AppendUint32(append(out, one+2), uint32(n))
}

func msgpackInt(out []byte, n int64) []byte {
	be := binary.BigEndian
	switch {
	case n >= 0 && n < 1<<7, n < 0 && n >= -32:
		return append(out, byte(n))
	case n >= 0 && n < 1<<8:
		return append(out, 0xcc, byte(n))
	case n >= 0 && n < 1<<16:
		return be.AppendUint16(append(out, 0xcd), uint16(n))
	case n >= 0 && n < 1<<32:
		return be.AppendUint32(append(out, 0xce), uint32(n))
	case n >= 0:
		return be.AppendUint64(append(out, 0xcf), uint64(n))
	case n >= math.MinInt8:
		return append(out, 0xd0, byte(n))
	case n >= math.MinInt16:
		return be.AppendUint16(append(out, 0xd1), uint16(n))
	case n >= math.MinInt32:
		return be.AppendUint32(append(out, 0xd2), uint32(n))
	}
	return be.AppendUint64(append(out, 0xd3), uint64(n))
}
