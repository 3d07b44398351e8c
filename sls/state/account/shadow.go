package account

import (
	"cmp"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"corpus-git/internal/crypt3"
	"corpus-git/internal/py"
	"corpus-git/sls/host"
	"corpus-git/sls/state/core"
)

// noPassword is what shadow(5) contains for an account that never had one.
const noPassword = "!"

// aging are the arguments of user.present that shadow(5) stores: the key under which Salt shows each, its field there and the
// flag of chage that sets it. Source: chage(1); Salt documentation, shadow execution module for Linux.
type aging struct {
	arg, key, flag string
	field          int
	what           string
	// fromZero is true for those for which 0 has a meaning when the account is created.
	fromZero bool
}

// agings returns them in the order in which Salt compares them.
func agings() []aging {
	return []aging{
		{arg: "date", key: "lstchg", flag: "-d", field: 2, what: "last change date to", fromZero: true},
		{arg: "mindays", key: "min", flag: "-m", field: 3, what: "minimum days to"},
		{arg: "maxdays", key: "max", flag: "-M", field: 4, what: "maximum days to"},
		{arg: "inactdays", key: "inact", flag: "-I", field: 6, what: "inactive days to"},
		{arg: "warndays", key: "warn", flag: "-W", field: 5, what: "warn days to"},
		{arg: "expire", key: "expire", flag: "-E", field: 7, what: "expire days to"},
	}
}

// shadowEntry returns the shadow(5) entry of an account. All is "" if it has no entry or can't be read; a field without a
// number is -1.
func shadowEntry(c *core.Call) *py.Dict {
	none := py.NewDict("name", "", "passwd", "", "lstchg", "", "min", "", "max", "", "warn", "", "inact", "", "expire", "")
	b, err := os.ReadFile(filepath.Join(etcDir(c), "shadow"))
	if err != nil {
		return none
	}
	for _, l := range strings.Split(string(b), "\n") {
		f := strings.Split(strings.TrimSpace(l), ":")
		if f[0] != c.Name || len(f) < 8 {
			continue
		}
		out := py.NewDict("name", f[0], "passwd", f[1])
		for i, key := range []string{"lstchg", "min", "max", "warn", "inact", "expire"} {
			n, err := strconv.ParseInt(f[i+2], 10, 64)
			if err != nil {
				n = -1
			}
			out.SetStr(key, n)
		}
		return out
	}
	return none
}

// hashed returns the hash of a password: with the method and the salt of the one that the account has, so that an equal password
// is recognised; otherwise SHA-512 with a random salt, also if the current hash has other parts than those two. Source:
// salt/states/user.py.
func hashed(c *core.Call, password string) string {
	if has := core.DictText(shadowEntry(c), "passwd"); strings.Count(has, "$") == 3 {
		if _, setting, _ := strings.Cut(has, "$"); setting != "" {
			if hash, ok := crypt3.Hash(password, "$"+setting); ok {
				return hash
			}
		}
	}
	hash, _ := crypt3.Hash(password, "$6$"+cryptSalt(16))
	return hash
}

// etcDir returns the directory of shadow and login.defs.
func etcDir(c *core.Call) string { return cmp.Or(c.Host.EtcDir, "/etc") }

// chage sets one field, if the account has an entry with a different value.
func chage(c *core.Call, a aging) error {
	have := shadowEntry(c)
	want, _ := c.Value(a.arg)
	if was, _ := have.GetStr(a.key); core.DictText(have, "name") == "" || py.Equal(was, want) {
		return nil
	}
	return accountTool(c, "chage", a.flag, py.Str(want), c.Name)
}

// lockPassword locks or unlocks the password.
func lockPassword(c *core.Call, lock bool) error {
	have := shadowEntry(c)
	if core.DictText(have, "name") == "" || strings.HasPrefix(core.DictText(have, "passwd"), "!") == lock {
		return nil
	}
	return accountTool(c, "passwd", map[bool]string{true: "-l", false: "-u"}[lock], c.Name)
}

// setPassword passes it on standard input, since arguments are visible to others.
func setPassword(c *core.Call, hash string) error {
	q := *c
	q.Output = nil
	_, err := q.ToolShell(host.Shell{Argv: []string{"chpasswd", "-e"}, Stdin: c.Name + ":" + hash + "\n"})
	return err
}
