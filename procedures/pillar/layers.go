package pillar

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"corpus-git/fleet"
	"corpus-git/internal/py"
	"corpus-git/project"
	"corpus-git/sls/fileroot"
	"corpus-git/sls/modules"
)

// layersOf returns the files of a pillar that override the others on a node, the strongest last.
func layersOf(n *project.Node) (out []string) {
	for _, role := range n.Roles {
		out = append(out, fleet.RolesDir+"/"+role+".sls")
	}
	if n.Name != "" {
		out = append(out, fleet.NodesDir+"/"+n.Name+".sls")
	}
	return out
}

// layer returns the values of one of them: none if it does not exist.
func (t *tree) layer(ctx context.Context, path string) (*py.Dict, error) {
	if t.own == nil {
		return py.NewDict(), nil
	}
	if _, err := fs.Stat(t.own, path); errors.Is(err, fs.ErrNotExist) {
		return py.NewDict(), nil
	}
	// By path: the names of roles and nodes may contain dots, which mean folders in the name of an SLS. The folder is only needed for
	// relative includes.
	dir, file, _ := strings.Cut(strings.TrimSuffix(path, ".sls"), "/")
	name := SLS(t.data.Name.String()) + "." + dir + "." + strings.ReplaceAll(file, ".", "-")
	v, err := t.from(ctx, fileroot.File{Root: t.slses[0], Path: path, Rel: path}, name, nil)
	if err != nil {
		return nil, err
	}
	return py.DeepCopy(v).(*py.Dict), nil
}

// each returns the values of the pillar without its layers, or with those of Node, and then those of every existing layer by itself.
func (d *Reader) each(ctx context.Context, own fs.FS) ([]*py.Dict, error) {
	v, err := d.Pillar(ctx, own)
	if err != nil {
		return nil, err
	}
	out := []*py.Dict{v}
	if own == nil {
		return out, nil
	}
	t, err := d.tree(own)
	if err != nil {
		return nil, err
	}
	// A node's part of the pillar has no nodes.yaml. If it is not known whether these folders are layers, those that can't be read on
	// their own are skipped.
	_, err = fs.Stat(t.own, fleet.NodesFile)
	known := d.Node != nil || err == nil
	for _, dir := range []string{fleet.RolesDir, fleet.NodesDir} {
		entries, err := fs.ReadDir(t.own, dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, e := range entries {
			if e.IsDir() || !strings.HasSuffix(e.Name(), ".sls") {
				continue
			}
			v, err := t.layer(ctx, dir+"/"+e.Name())
			if err != nil && !known {
				continue
			}
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
	}
	return out, nil
}

// All returns the values of the pillar merged with those of every role and node: these are the values to hide, not those of one node.
func (d *Reader) All(ctx context.Context, own fs.FS) (*py.Dict, error) {
	all, err := d.each(ctx, own)
	if err != nil {
		return nil, err
	}
	out := py.NewDict()
	for _, v := range all {
		modules.Merge(out, py.DeepCopy(v).(*py.Dict), false)
	}
	return out, nil
}
