package pillar

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/internal/saltyaml"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
	"corpus-git/project"
	"corpus-git/project/schema"
	"corpus-git/sls/fileroot"
	"corpus-git/sls/host"
	"corpus-git/sls/jinja"
	"corpus-git/sls/modules"
	"corpus-git/sls/render"
)

// Reader reads PILLAR.sample and the pillar: Jinja, then YAML, in the same way as Salt.
type Reader struct {
	Root layout.Root
	Host *host.Host
	Name project.Name
	// Grains are the facts of this machine.
	Grains *py.Dict
	// Passwords are the stored passwords for templates; nil means none.
	Passwords modules.Passwords
	// Node is the node that the pillar is read for: the files of its roles, in their order there, and then its own, override the others.
	// nil means none.
	Node *project.Node
	// Declared are the inputs that the project's recipes declare, of which Secrets hides the secret ones.
	Declared []*schema.Inputs
}

// Sample returns the mapping in PILLAR.sample, and which of its lists edit those of the recipes below.
func (d *Reader) Sample(ctx context.Context, dir fs.FS, file, display string) (*py.Dict, map[*py.List]saltyaml.Edit, error) {
	dir = vfs.Bounded{FS: dir, Max: maxFile}
	src, err := fs.ReadFile(dir, file)
	if err != nil {
		return nil, nil, fault.New(fault.Internal, "read "+display, "%w", err)
	}
	edits := map[*py.List]saltyaml.Edit{}
	v, err := d.parse(ctx, dataFile{display: display, src: src, roots: fileroot.Roots{{FS: dir}}, vars: render.Vars(file, ""), jinja: true, edits: edits})
	return v, edits, err
}

// dataFile is one file of values.
type dataFile struct {
	display string
	src     []byte
	// roots are the file roots for imports of its templates, vars the templates' variables.
	roots fileroot.Roots
	vars  *py.Dict
	jinja bool
	// private: no line of it is quoted in errors.
	private bool
	// edits receives the tagged lists; nil allows no tags.
	edits map[*py.List]saltyaml.Edit
}

// parse renders a file and reads its mapping.
func (d *Reader) parse(ctx context.Context, f dataFile) (*py.Dict, error) {
	text := string(f.src)
	if f.jinja {
		r := render.New(&modules.Env{Host: d.Host, Roots: f.roots, Grains: d.Grains, Pillar: py.NewDict(), Opts: py.NewDict(), Static: true, Passwords: d.Passwords})
		var err error
		if text, err = r.Text(ctx, f.display, text, f.vars); err != nil {
			return nil, templateFault(err, f.display, f.src, f.private)
		}
	}
	doc, err := saltyaml.Parse(f.display, []byte(text), saltyaml.Options{Private: f.private, Edits: f.edits})
	if err != nil {
		return nil, err
	}
	switch v := doc.Value.(type) {
	case nil:
		return py.NewDict(), nil
	case *py.Dict:
		return v, nil
	}
	return nil, fault.New(fault.Failed, "read "+f.display, "the file is not a mapping").
		WithPos(fault.Pos{File: f.display, Line: 1}).WithHint("it begins with  makina-projects.%s:", d.Name)
}

// templateFault adds the position to a template's error.
func templateFault(err error, display string, src []byte, private bool) error {
	var je *jinja.Error
	if !errors.As(err, &je) {
		return fault.New(fault.Failed, "render "+display, "%w", err)
	}
	pos := fault.Pos{File: display, Line: je.Line}
	if lines := strings.Split(string(src), "\n"); !private && je.Line > 0 && je.Line <= len(lines) {
		pos.Text = lines[je.Line-1]
	}
	return fault.New(fault.Failed, "", "%s", je.Msg).WithPos(pos).WithHint("see the Jinja template documentation")
}

// valuesIn returns the parts of a line of broken YAML that may be values.
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
