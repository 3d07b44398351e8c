package project

import (
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"corpus-git/internal/py"
	"corpus-git/internal/quantity"
	"corpus-git/project/permission"
)

// maxKeep bounds keep_archives: a larger value is more likely a typo.
const maxKeep = 10_000

// validate checks and normalises the keys that corpus-git itself reads.
func (c *Cfg) validate(in CfgInputs) error {
	if l := c.root.get([]string{"data"}); l.sub == nil {
		return cfgError(l.layer, "data", "must be a mapping, not %s", py.TypeName(l.value))
	}
	if err := c.keeps(in); err != nil {
		return err
	}
	if err := c.rollbacks(); err != nil {
		return err
	}
	if err := c.register(); err != nil {
		return err
	}
	if err := c.watch(); err != nil {
		return err
	}
	if err := c.converge(); err != nil {
		return err
	}
	for _, key := range []string{"only", "only_steps"} {
		l := c.root.get([]string{key})
		names, err := nameList(l, key)
		if err != nil {
			return err
		}
		for i, name := range names {
			if key == "only_steps" {
				names[i] = strings.TrimSuffix(name, ".sls")
				continue
			}
			names[i] = ProcedureKey(name)
			if !slices.Contains(procedureKeys(), names[i]) {
				return cfgError(l.layer, key, "unknown procedure").WithHint("procedures are: %s", strings.Join(Procedures(), ", "))
			}
		}
		l.value, l.sub = nil, nil
		if len(names) > 0 {
			l.value = strList(names)
		}
	}
	for _, key := range []string{"no_user", "remote_less"} {
		if err := c.boolean(key); err != nil {
			return err
		}
	}
	if l := c.root.get([]string{"runner"}); l.sub != nil || l.value != nil && !slices.Contains(Runners(), py.Str(l.value)) {
		return cfgError(l.layer, "runner", "must be one of: %s", strings.Join(Runners(), ", "))
	}
	for key, words := range map[string][]string{"submodules": {SubmodulesFetch, SubmodulesEmpty}, "lfs": {LFSNote, LFSRefuse}} {
		if l := c.root.get([]string{key}); l.sub != nil || l.value != nil && !slices.Contains(words, py.Str(l.value)) {
			return cfgError(l.layer, key, "must be one of: %s", strings.Join(words, ", "))
		}
	}
	if l := c.root.get([]string{"submodules_base"}); l.sub != nil || l.value != nil && !isText(l.value) {
		return cfgError(l.layer, "submodules_base", "must be the address of the project's repository on another server, as a text")
	}
	if l := c.root.get([]string{"store_other_branches"}); l.sub != nil || l.value != nil {
		if err := c.boolean("store_other_branches"); err != nil {
			return err
		}
	}
	return c.skips(in)
}

func isText(v any) bool {
	_, ok := v.(string)
	return ok
}

// keeps determines which archives are kept: what the project does not set is the server's choice.
func (c *Cfg) keeps(in CfgInputs) error {
	c.retention = in.Retention
	count := func(key string, least int64, to *int) error {
		l := c.root.get([]string{key})
		if l.value == nil && l.sub == nil {
			l.value = int64(*to)
		}
		n, ok := asInt(l.value)
		if l.sub != nil || !ok || n < least || n > maxKeep {
			return cfgError(l.layer, key, "must be an integer from %d to %d", least, maxKeep)
		}
		l.value, *to = n, int(n)
		return nil
	}
	if err := count("keep_archives", 1, &c.retention.Keep); err != nil {
		return err
	}
	if err := count("keep_failed_archives", 0, &c.retention.KeepFailed); err != nil {
		return err
	}
	if l := c.root.get([]string{"archives_max_bytes"}); l.sub != nil || l.value != nil {
		n, err := quantity.ParseSize(py.Str(l.value))
		if err != nil || l.sub != nil {
			return cfgError(l.layer, "archives_max_bytes", "must be a size such as 512MiB or 2GiB; 0 sets no bound")
		}
		c.retention.MaxBytes = n
	}
	for _, age := range []struct {
		key string
		to  *time.Duration
	}{{"archives_max_age", &c.retention.MaxAge}, {"failed_archives_max_age", &c.retention.FailedMaxAge}} {
		l := c.root.get([]string{age.key})
		if l.sub == nil && l.value == nil {
			continue
		}
		d, err := quantity.ParseDuration(py.Str(l.value))
		if n, isInt := asInt(l.value); isInt && n == 0 {
			err = nil
		}
		if err != nil || l.sub != nil || d < 0 {
			return cfgError(l.layer, age.key, "must be a duration such as 12h or 30d; 0 sets no bound")
		}
		*age.to = d
	}
	return nil
}

func (c *Cfg) boolean(key string) error {
	l := c.root.get([]string{key})
	if l.sub == nil && l.value == nil {
		l.value = false
	}
	if _, ok := l.value.(bool); !ok {
		return cfgError(l.layer, key, "must be true or false")
	}
	return nil
}

// skips checks skip_<procedure>, and turns only into skips: a procedure named by only runs even if a file
// skips it; only the command line can skip it.
func (c *Cfg) skips(in CfgInputs) error {
	var only []string
	if l, ok := c.root.get([]string{"only"}).value.(*py.List); ok {
		for _, x := range l.Items() {
			only = append(only, x.(string))
		}
	}
	var err error
	c.root.each(func(l *leaf) {
		key, _ := l.key.(string)
		name, ok := strings.CutPrefix(key, "skip_")
		if !ok || err != nil {
			return
		}
		if err = c.boolean(key); err != nil {
			return
		}
		if !slices.Contains(procedureKeys(), name) {
			e := cfgError(l.layer, key, "unknown procedure")
			err = e.WithHint("procedures are: %s", strings.Join(Procedures(), ", "))
			return
		}
		if len(only) > 0 && name != "deploy" {
			l.value, l.secret = !slices.Contains(only, name), false
		}
	})
	if err != nil || in.Deployment == nil {
		return err
	}
	for _, p := range in.Deployment.Select.Skip {
		c.root.get([]string{"skip_" + ProcedureKey(p)}).value = true
	}
	return nil
}

// nameList reads "a,b" or [a, b].
func nameList(l *leaf, key string) ([]string, error) {
	bad := cfgError(l.layer, key, "must be a list of names, or names with commas between them")
	var out []string
	switch x := l.value.(type) {
	case nil:
		if l.sub != nil {
			return nil, bad
		}
	case string:
		out = strings.Split(x, ",")
	case *py.List:
		for _, i := range x.Items() {
			s, ok := i.(string)
			if !ok {
				return nil, bad
			}
			out = append(out, s)
		}
	default:
		return nil, bad
	}
	names := out[:0]
	for _, s := range out {
		if s = strings.TrimSpace(s); s != "" {
			names = append(names, s)
		}
	}
	return names, nil
}

func asInt(v any) (int64, bool) {
	switch x := v.(type) {
	case int64:
		return x, true
	case string:
		n, err := strconv.ParseInt(strings.TrimSpace(x), 10, 64)
		return n, err == nil
	case *big.Int:
		return 0, false
	}
	return 0, false
}

// accounts settles user, group and groups, after references in them are resolved.
func (c *Cfg) accounts() error {
	get := func(key string) (*leaf, string, error) {
		l := c.root.get([]string{key})
		s, ok := l.value.(string)
		if l.value == nil && l.sub == nil {
			s, ok = map[string]string{"user": c.name.User(), "group": c.name.Group()}[key], true
			l.value = s
		}
		if !ok || !permission.ValidAccount(s) {
			return nil, "", cfgError(l.layer, key, "must be a name of at most 32 of a-z 0-9 _ -").WithHint("%s: %s", key, c.name+"-"+Name(key))
		}
		return l, s, nil
	}
	if _, _, err := get("user"); err != nil {
		return err
	}
	l := c.root.get([]string{"groups"})
	groups, err := nameList(l, "groups")
	if err != nil {
		return err
	}
	for _, g := range groups {
		if !permission.ValidAccount(g) {
			return cfgError(l.layer, "groups", "each must be a name of at most 32 of a-z 0-9 _ -")
		}
	}
	// The main group is the one that is set, otherwise the first of groups, as in the original.
	gl := c.root.get([]string{"group"})
	if gl.layer == LayerDefault && len(groups) > 0 {
		gl.value, gl.layer, gl.secret = groups[0], l.layer, l.secret
	}
	_, main, err := get("group")
	if err != nil {
		return err
	}
	if i := slices.Index(groups, main); i >= 0 {
		groups = slices.Delete(groups, i, i+1)
	}
	l.value, l.sub = strList(append([]string{main}, groups...)), nil
	return nil
}
