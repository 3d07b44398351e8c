package procedures

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/internal/redact"
	"corpus-git/internal/saltyaml"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
	"corpus-git/project"
	"corpus-git/sls/fileroot"
	"corpus-git/sls/jinja"
	"corpus-git/sls/modules"
	"corpus-git/sls/render"
)

// dataFiles reads PILLAR.sample and the pillar: Jinja, then YAML, as Salt reads a pillar.
type dataFiles struct {
	tools     *Tools
	name      project.Name
	grains    *py.Dict
	passwords modules.Passwords
}

// read gives the mapping in a file. Of a private file no line is ever quoted.
func (d *dataFiles) read(ctx context.Context, dir fs.FS, file, display string, private bool) (*py.Dict, error) {
	src, err := fs.ReadFile(dir, file)
	if err != nil {
		return nil, fault.New(fault.Internal, "read "+display, "%w", err)
	}
	roots := fileroot.Roots{{FS: dir}}
	r := render.New(&modules.Env{Host: d.tools.Host, Roots: roots, Grains: d.grains, Pillar: py.NewDict(), Opts: py.NewDict(), Static: true, Passwords: d.passwords})
	text, err := r.Text(ctx, display, string(src), render.Vars(file, ""))
	if err != nil {
		return nil, templateFault(err, display, src, private)
	}
	doc, err := saltyaml.Parse(display, []byte(text), saltyaml.Options{Private: private})
	if err != nil {
		return nil, err
	}
	switch v := doc.Value.(type) {
	case nil:
		return py.NewDict(), nil
	case *py.Dict:
		if _, ok := v.GetStr("include"); ok && private {
			return nil, fault.New(fault.Refused, "read "+display, "include is not supported in a project's pillar").
				WithPos(fault.Pos{File: display}).WithHint("put everything into %s", layout.PillarFile)
		}
		return v, nil
	}
	return nil, fault.New(fault.Failed, "read "+display, "the file is not a mapping").
		WithPos(fault.Pos{File: display, Line: 1}).WithHint("it begins with  makina-projects.%s:", d.name)
}

// templateFault gives a template's error its place.
func templateFault(err error, display string, src []byte, private bool) error {
	var je *jinja.Error
	if !errors.As(err, &je) {
		return fault.New(fault.Failed, "render "+display, "%w", err)
	}
	pos := fault.Pos{File: display, Line: je.Line}
	if lines := strings.Split(string(src), "\n"); !private && je.Line > 0 && je.Line <= len(lines) {
		pos.Text = lines[je.Line-1]
	}
	return fault.New(fault.Failed, "", "%s", je.Msg).WithPos(pos).WithHint("see the Jinja template documentation; the line is counted in the file as it is stored")
}

// ReadPillar gives the values of a pillar.
func ReadPillar(ctx context.Context, t *Tools, name project.Name, pillar fs.FS) (*py.Dict, error) {
	d := &dataFiles{tools: t, name: name, grains: t.Grains()}
	return d.read(ctx, pillar, layout.PillarFile, "pillar "+layout.PillarFile, true)
}

// PillarSecrets are the values of a pillar that must not be shown, but where they stand in code (redact.NotIn), and those that
// it says may be. Of a pillar that can't be read, everything that looks like a value is a secret.
func PillarSecrets(ctx context.Context, t *Tools, name project.Name, pillar fs.FS) (secrets []redact.Secret, shown map[string]bool) {
	d := &dataFiles{tools: t, name: name, grains: t.Grains()}
	v, err := d.read(ctx, pillar, layout.PillarFile, "pillar "+layout.PillarFile, true)
	if err == nil {
		return redact.Secrets(v, nil), redact.Shown(v)
	}
	src, err := fs.ReadFile(pillar, layout.PillarFile)
	if err != nil {
		return nil, nil
	}
	loose := py.NewDict()
	for i, line := range strings.Split(string(src), "\n") {
		for j, tok := range valuesIn(line) {
			loose.SetStr(fmt.Sprintf("line %d value %d", i+1, j+1), tok)
		}
	}
	return redact.Secrets(loose, nil), nil
}

// valuesIn picks what may be values out of a line of broken YAML.
func valuesIn(line string) []string {
	if _, after, ok := strings.Cut(line, ": "); ok {
		line = after
	}
	trim := func(s string) string { return strings.Trim(strings.TrimSpace(s), `'"[]{},-`) }
	out := []string{trim(line)}
	for _, f := range strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t,[]{}'\"", r) }) {
		if f = trim(f); !strings.HasSuffix(f, ":") && f != out[0] {
			out = append(out, f)
		}
	}
	return out
}

// passwords keeps what templates generate, one file for a project; what is in it is hidden like the pillar.
type passwords struct {
	fs   vfs.FS
	path string
	hide *redact.Redactor

	mu sync.Mutex
}

var _ modules.Passwords = (*passwords)(nil)

func (p *passwords) load() (map[string]string, error) {
	m := map[string]string{}
	data, err := vfs.ReadFile(p.fs, p.path)
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return nil, err
	}
	return m, json.Unmarshal(data, &m)
}

// Get implements modules.Passwords.
func (p *passwords) Get(key string) (string, bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m, err := p.load()
	s, ok := m[key]
	if ok {
		p.hide.Extend([]redact.Secret{{Label: "generated." + key, Value: s}})
	}
	return s, ok, err
}

// Put implements modules.Passwords.
func (p *passwords) Put(key, secret string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	m, err := p.load()
	if err != nil {
		return err
	}
	m[key] = secret
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	dir := p.path[:strings.LastIndexByte(p.path, '/')]
	if err := vfs.MkdirAll(p.fs, dir, 0o700); err != nil {
		return err
	}
	p.hide.Extend([]redact.Secret{{Label: "generated." + key, Value: secret}})
	return vfs.WriteFileAtomic(p.fs, p.path, append(data, '\n'), 0o600)
}
