package project

import (
	"strconv"
	"strings"

	"corpus-git/internal/py"
)

// Name returns the project's name.
func (c *Cfg) Name() Name { return c.name }

// Dict returns the configuration as SLS files read it; the caller may change it.
func (c *Cfg) Dict() *py.Dict { return py.DeepCopy(c.value).(*py.Dict) }

// Get returns the value at a path of keys, "data:db:password", and of list indexes. ok is false if there is none. The
// caller must not change the value.
func (c *Cfg) Get(path string) (v any, ok bool) {
	v = c.value
	if path == "" {
		return v, true
	}
	for part := range strings.SplitSeq(path, ":") {
		switch x := v.(type) {
		case *py.Dict:
			if v, ok = x.GetStr(part); ok {
				continue
			}
			n, err := strconv.ParseInt(part, 10, 64)
			if err != nil {
				return nil, false
			}
			if v, ok = x.Get(n); !ok {
				return nil, false
			}
		case *py.List:
			n, err := strconv.Atoi(part)
			if err != nil || n < 0 || n >= x.Len() {
				return nil, false
			}
			v = x.At(n)
		default:
			return nil, false
		}
	}
	return v, true
}

func (c *Cfg) str(key string) string {
	v, _ := c.value.GetStr(key)
	s, _ := v.(string)
	return s
}

func (c *Cfg) strs(key string) []string {
	v, _ := c.value.GetStr(key)
	var out []string
	if l, ok := v.(*py.List); ok {
		for _, x := range l.Items() {
			if s, ok := x.(string); ok {
				out = append(out, s)
			}
		}
	}
	return out
}

func (c *Cfg) flag(key string) bool {
	v, _ := c.value.GetStr(key)
	b, _ := v.(bool)
	return b
}

// Env returns the name of the environment.
func (c *Cfg) Env() string { return c.str("default_env") }

// EnvClass returns the class of the environment: dev, staging or prod.
func (c *Cfg) EnvClass() string { return c.class }

// Retention returns which archives of the project are kept: the server's settings, overridden by the project's own.
func (c *Cfg) Retention() Retention { return c.retention }

// User returns the user that owns the project's files.
func (c *Cfg) User() string { return c.str("user") }

// Group returns the group that owns the project's files.
func (c *Cfg) Group() string { return c.str("group") }

// Groups returns the user's groups, the main one first.
func (c *Cfg) Groups() []string { return c.strs("groups") }

// RemoteLess reports whether the project has no repositories to push to.
func (c *Cfg) RemoteLess() bool { return c.flag("remote_less") }

// Only returns the procedures to run, nil for all, in the form of cfg keys (release_sync).
func (c *Cfg) Only() []string { return c.strs("only") }

// OnlySteps returns the steps of the install procedure to run, nil for all; names without .sls.
func (c *Cfg) OnlySteps() []string { return c.strs("only_steps") }

// Runners returns the values that choose what runs SLS files.
func Runners() []string { return []string{"auto", "builtin", "salt-call"} }

// Runner returns the project's choice of what runs its SLS files, "" if it leaves that to the server.
func (c *Cfg) Runner() string { return c.str("runner") }

// StoreOtherBranches reports the project's choice of whether pushes of other branches are stored; set is false if it
// leaves that to the server.
func (c *Cfg) StoreOtherBranches() (store, set bool) {
	v, _ := c.value.GetStr("store_other_branches")
	store, set = v.(bool)
	return store, set
}

// Submodules returns how the project wants its submodules handled.
func (c *Cfg) Submodules() Submodules {
	return Submodules{Fetch: c.str("submodules") != SubmodulesEmpty, Base: c.str("submodules_base"), User: c.User()}
}

// RefusesLFS reports whether a push is refused if it has files that are git-lfs pointers.
func (c *Cfg) RefusesLFS() bool { return c.str("lfs") == LFSRefuse }

// Skip reports whether a procedure >is skipped, by skip_<procedure>> or by Only. Names may be written with - or _.
func (c *Cfg) Skip(procedure string) bool { return c.flag("skip_" + ProcedureKey(procedure)) }

// ArchiveDir returns the folder of this deployment's archive, "" outside of a deployment.
func (c *Cfg) ArchiveDir() string { return c.str("current_archive_dir") }
