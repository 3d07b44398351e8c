package modules

import (
	"encoding/base64"

	"corpus-git/internal/py"
)

// addHashutil adds the module hashutil.
func addHashutil(s table) {
	s.add("hashutil.base64_b64encode", "instr", func(c *call) (any, error) {
		return base64.StdEncoding.EncodeToString([]byte(c.str("instr", ""))), nil
	})
	s.add("hashutil.base64_b64decode", "instr", func(c *call) (any, error) {
		b, err := base64.StdEncoding.DecodeString(c.str("instr", ""))
		if err != nil {
			return nil, py.Errorf(py.ValueError, "the text is not base64")
		}
		return string(b), nil
	})
	for _, f := range []string{"md5", "sha256", "sha512"} {
		s.add("hashutil."+f+"_digest", "instr", func(c *call) (any, error) { return hashHex(f, []byte(c.str("instr", ""))) })
	}
}

// addRandom adds the module random.
func addRandom(s table) {
	s.live("random.get_str", "length? chars? **", func(c *call) (any, error) {
		n, err := c.integer("length", 20)
		if err != nil {
			return nil, err
		}
		if n < 1 || n > 4096 {
			return nil, py.Errorf(py.ValueError, "random.get_str: the length must be between 1 and 4096")
		}
		return randomString(int(n), c.str("chars", "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"))
	})
}
