package config

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"corpus-git/internal/fault"
	"corpus-git/internal/nearest"
	"corpus-git/internal/py"
	"corpus-git/internal/saltyaml"
	"corpus-git/layout"
)

// Sources is what Load reads, from the weakest to the strongest.
type Sources struct {
	// DefaultRoot is the root if nothing sets another.
	DefaultRoot string
	// File is the configuration file's name, for messages, and Text its content; a nil Text means no file.
	File string
	Text []byte
	// Env is the environment, as os.Environ returns it.
	Env []string
	// Flags are the values of the given flags, by name without dashes: see GivenFlags.
	Flags map[string]string
}

// Origin says where a value came from.
type Origin struct {
	// Source is "default", "file", "environment" or "flag".
	Source string `json:"source"`
	// Name is the file, variable or flag, and Line the line in the file.
	Name string `json:"name,omitempty"`
	Line int    `json:"line,omitempty"`
}

// String returns "default", "corpus-git.yaml:12", "CORPUS_GIT_LISTEN" or "--listen".
func (o Origin) String() string {
	switch {
	case o.Line > 0:
		return o.Name + ":" + strconv.Itoa(o.Line)
	case o.Name != "":
		return o.Name
	}
	return o.Source
}

const opLoad = "read the configuration"

// Load builds a Config. Errors are fault.Error of kind Usage, with the line for an error in the file.
func Load(in Sources) (*Config, error) {
	c := &Config{origins: map[string]Origin{}}
	v := reflect.ValueOf(c).Elem()
	all := fields()
	set := func(f field, text string, o Origin) error {
		val, err := f.parse(text)
		if err != nil {
			return fault.New(fault.Usage, opLoad, "%s: %s: %w", o, f.key, err)
		}
		v.FieldByIndex(f.index).Set(val)
		c.origins[f.key] = o
		return nil
	}
	for _, f := range all {
		def := f.def
		if f.key == "root" {
			def = in.DefaultRoot
		}
		if err := set(f, def, Origin{Source: "default"}); err != nil {
			return nil, err
		}
	}
	if in.Text != nil {
		if err := c.loadFile(in, v, all); err != nil {
			return nil, err
		}
	}
	vars := map[string]field{}
	for _, f := range all {
		vars[f.env()] = f
	}
	for _, e := range in.Env {
		name, text, _ := strings.Cut(e, "=")
		if !strings.HasPrefix(name, EnvPrefix) || name == EnvPrefix+"CONFIG" {
			continue
		}
		f, ok := vars[name]
		if !ok {
			c.Warnings = append(c.Warnings, fmt.Sprintf("unknown variable %s%s", name, suggest(name, keysOf(vars))))
			continue
		}
		if err := set(f, text, Origin{Source: "environment", Name: name}); err != nil {
			return nil, err
		}
	}
	slices.Sort(c.Warnings)
	for _, f := range all {
		if text, ok := in.Flags[f.flag()]; ok {
			if err := set(f, text, Origin{Source: "flag", Name: "--" + f.flag()}); err != nil {
				return nil, err
			}
		}
	}
	return c, c.settle()
}

// settle derives the keys that depend on others, and checks what can't be checked for one key alone.
func (c *Config) settle() error {
	if c.Root == "" {
		return fault.New(fault.Usage, opLoad, "%s: root: must not be empty", c.origins["root"])
	}
	root, err := filepath.Abs(c.Root)
	if err != nil {
		return fault.New(fault.Internal, opLoad, "root: %w", err)
	}
	c.Root = root
	if c.StateDir == "" {
		c.StateDir = layout.Root(root).DefaultState().Path()
	} else if c.StateDir, err = filepath.Abs(c.StateDir); err != nil {
		return fault.New(fault.Internal, opLoad, "state_dir: %w", err)
	}
	if _, err := c.Envs(); err != nil {
		at := "environments"
		if len(c.Environments) == 0 {
			at = "default_env"
		}
		return fault.New(fault.Usage, opLoad, "%s: %w", c.origins[at], err).WithHint("%s", fault.HintOf(err))
	}
	for _, m := range c.Submodules.Mirrors {
		from, to, _ := strings.Cut(m, "=")
		if !strings.Contains(from, "://") || !strings.HasPrefix(to, "https://") && !strings.HasPrefix(to, "http://") {
			return fault.New(fault.Usage, opLoad, "%s: submodules.mirrors: %q is not FROM=TO with two URLs", c.origins["submodules.mirrors"], m).
				WithHint("as in  https://github.com/=http://mirror.example.org:8417/git/")
		}
	}
	if _, err := c.Require.Policy(); err != nil {
		return fault.New(fault.Usage, opLoad, "%w", err).WithHint("as in  require: {signed_push: [prod, \"*/shop\"], approvals: [prod=1]}")
	}
	for _, f := range []struct{ key, path string }{{"require.allowed_signers", c.Require.AllowedSigners}, {"require.gpg_home", c.Require.GPGHome}} {
		if f.path != "" && !filepath.IsAbs(f.path) {
			return fault.New(fault.Usage, opLoad, "%s: %s: must be an absolute path", c.origins[f.key], f.key)
		}
	}
	for i, dir := range c.FileRoots {
		if !filepath.IsAbs(dir) {
			return fault.New(fault.Usage, opLoad, "%s: file_roots: item %d must be an absolute path", c.origins["file_roots"], i+1)
		}
	}
	if err := c.settleACME(); err != nil {
		return err
	}
	for i, text := range c.HTTPProxies {
		if _, err := ParseNetwork(text); err != nil {
			return fault.New(fault.Usage, opLoad, "%s: http_trusted_proxies: item %d %w", c.origins["http_trusted_proxies"], i+1, err)
		}
	}
	return nil
}

// settleACME checks the names that certificates of http_listen are for.
func (c *Config) settleACME() error {
	if len(c.ACME.Hosts) == 0 {
		return nil
	}
	at := c.origins["acme.hosts"]
	for i, name := range c.ACME.Hosts {
		if _, err := netip.ParseAddr(name); err == nil || len(name) > 253 || !hostName.MatchString(name) {
			return fault.New(fault.Usage, opLoad, "%s: acme.hosts: item %d must be a full host name in lower case, such as deploy.example.org", at, i+1)
		}
	}
	switch {
	case c.HTTP == "":
		return fault.New(fault.Usage, opLoad, "%s: acme.hosts: requires http_listen", at).WithHint("http_listen: :443")
	case c.HTTPCert != "" || c.HTTPKey != "":
		return fault.New(fault.Usage, opLoad, "%s: acme.hosts: conflicts with http_tls_cert", at).WithHint("remove one of them")
	}
	return nil
}

func (c *Config) loadFile(in Sources, v reflect.Value, all []field) error {
	doc, err := saltyaml.Parse(in.File, in.Text, saltyaml.Options{Private: true, MaxBytes: 1 << 20})
	if err != nil {
		var e *fault.Error
		e, _ = err.(*fault.Error)
		if e == nil {
			return err
		}
		e.Kind, e.Op = fault.Usage, opLoad
		return e
	}
	if doc.Root == nil || doc.Value == nil {
		return nil
	}
	l := fileLoader{c: c, doc: doc, file: in.File, v: v, fields: map[string]field{}, sections: map[string]bool{"": true}}
	for _, f := range all {
		l.fields[f.key] = f
		for p := f.key; ; {
			i := strings.LastIndexByte(p, '.')
			if i < 0 {
				break
			}
			p = p[:i]
			l.sections[p] = true
		}
	}
	return l.section("", doc.Root)
}

type fileLoader struct {
	c        *Config
	doc      *saltyaml.Doc
	file     string
	v        reflect.Value
	fields   map[string]field
	sections map[string]bool
}

func (l *fileLoader) fail(n *saltyaml.Node, format string, args ...any) *fault.Error {
	return fault.New(fault.Usage, opLoad, format, args...).WithPos(l.doc.Pos(n))
}

func (l *fileLoader) section(prefix string, n *saltyaml.Node) error {
	if prefix == "notify" && n.Kind == saltyaml.Sequence {
		return l.value(l.fields["notify.sinks"], n, n)
	}
	if n.Kind != saltyaml.Mapping {
		if prefix != "" && n.Value == nil {
			return nil
		}
		return l.fail(n, "%smust be a mapping of keys", strings.TrimPrefix(prefix+": ", ": "))
	}
	for i, k := range n.Keys {
		name, ok := k.Value.(string)
		if !ok {
			return l.fail(k, "a key must be text")
		}
		key := strings.TrimPrefix(prefix+"."+name, ".")
		if l.sections[key] {
			if err := l.section(key, n.Items[i]); err != nil {
				return err
			}
			continue
		}
		f, ok := l.fields[key]
		if !ok {
			e := l.fail(k, "there is no key %q", key)
			if s := suggest(key, slices.Concat(keysOf(l.fields), keysOf(l.sections))); s != "" {
				e = e.WithHint("%s", strings.TrimPrefix(s, "; "))
			} else {
				e = e.WithHint("corpus-git serve --print-config  lists all keys")
			}
			return e
		}
		if err := l.value(f, k, n.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

func (l *fileLoader) value(f field, k, n *saltyaml.Node) error {
	if n.Value == nil {
		return nil // a key without a value leaves the default
	}
	var val reflect.Value
	if f.typ == sinksType {
		list, err := l.sinks(f, n)
		if err != nil {
			return err
		}
		l.v.FieldByIndex(f.index).Set(reflect.ValueOf(list))
		l.c.origins[f.key] = Origin{Source: "file", Name: l.file, Line: k.Line}
		return nil
	}
	switch x := n.Value.(type) {
	case *py.List:
		if f.typ != listType {
			return l.fail(k, "%s: must be %s, not a list", f.key, f.kind())
		}
		items := []string{}
		for _, item := range n.Items {
			s, ok := item.Value.(string)
			if !ok {
				return l.fail(item, "%s: must be a list of texts", f.key)
			}
			items = append(items, s)
		}
		val = reflect.ValueOf(items)
	case *py.Dict:
		return l.fail(k, "%s: must be %s, not a mapping", f.key, f.kind())
	case string:
		if f.typ == listType {
			val = reflect.ValueOf([]string{x})
			break
		}
		var err error
		if val, err = f.parse(x); err != nil {
			return l.fail(n, "%s: %w", f.key, err)
		}
	default:
		if _, ok := x.(bool); ok != (f.typ.Kind() == reflect.Bool) || f.typ == durationType || f.typ == listType || f.typ == secretType || f.typ.Kind() == reflect.String {
			return l.fail(n, "%s: must be %s", f.key, f.kind()).WithHint("quote a text that YAML reads as a number or as true or false")
		}
		s := py.Str(x)
		var err error
		if val, err = f.parse(s); err != nil {
			return l.fail(n, "%s: %w", f.key, err)
		}
	}
	l.v.FieldByIndex(f.index).Set(val)
	l.c.origins[f.key] = Origin{Source: "file", Name: l.file, Line: k.Line}
	return nil
}

func keysOf[V any](m map[string]V) []string {
	var out []string
	for k := range m {
		if k != "" {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return out
}

// suggest returns "; did you mean x?" for the nearest of the names, "" if none is near.
func suggest(name string, names []string) string {
	best := nearest.To(name, names)
	if best == "" {
		// The last part of the key alone: max_commands for limits.max_commands.
		for _, n := range names {
			if i := strings.LastIndexByte(n, '.'); i >= 0 && n[i+1:] == name {
				best = n
			}
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// flagValue stores a flag's text; Load reads it.
type flagValue struct {
	f    field
	text string
}

func (v *flagValue) String() string { return v.text }
func (v *flagValue) Type() string   { return v.f.kind() }
func (v *flagValue) Set(s string) error {
	if _, err := v.f.parse(s); err != nil {
		return err
	}
	v.text = s
	return nil
}

// AddFlags defines a flag for every key. Flags of sections are not shown in the help, which they would make too
// long.
func AddFlags(fs *pflag.FlagSet) {
	for _, f := range fields() {
		if fs.Lookup(f.flag()) != nil {
			continue // the caller defines its own, such as a persistent --root
		}
		fl := fs.VarPF(&flagValue{f: f, text: f.def}, f.flag(), "", f.help)
		if f.typ.Kind() == reflect.Bool {
			fl.NoOptDefVal = "true"
		}
		fl.Hidden = strings.Contains(f.key, ".")
	}
}

// GivenFlags returns the flags that were typed, for Sources.
func GivenFlags(fs *pflag.FlagSet) map[string]string {
	out := map[string]string{}
	fs.Visit(func(f *pflag.Flag) { out[f.Name] = f.Value.String() })
	return out
}
