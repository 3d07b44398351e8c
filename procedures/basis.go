package procedures

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/procedures/others"
	"corpus-git/procedures/passwords"
	"corpus-git/procedures/recipe"
	"corpus-git/procedures/resume"
	"corpus-git/project"
	"corpus-git/project/approval"
)

// Basis returns what the deployment depends on besides its commits: recipes, configuration, and what was changed by hand in the live
// trees. Recipes of other projects count if they are mentioned or have been read so far, so Basis is called after Plan.
func (e *Env) Basis(ctx context.Context) (b approval.Basis, err error) {
	if b.Recipe, err = resume.Files(e.Prepared.recipe); err != nil {
		return b, err
	}
	read, err := others.Digests(e.Prepared.others, recipe.TextsOf(e.Prepared.recipe), nil)
	if err != nil {
		return b, err
	}
	b.Others = strings.Join(read, "\n")
	cfg := e.Prepared.Cfg.Dict()
	for _, address := range []string{"push_salt_url", "push_pillar_url"} { // these depend on where the server listens
		cfg.Delete(address)
	}
	// The steps of a project with nodes run there, and know those machines: which one of several hubs leads makes no difference.
	if len(e.Prepared.nodes) == 0 {
		b.Machine = fmt.Sprintf("%s %s", text(cfg, "minion_id"), text(cfg, "fqdn"))
	}
	fqdn := text(cfg, "fqdn")
	for _, key := range []string{"minion_id", "fqdn", "this_host", "remote_host"} {
		if key == "minion_id" || text(cfg, key) == fqdn { // a pillar may set the two hosts
			cfg.Delete(key)
		}
	}
	b.Root = e.Paths.Root().Path()
	for _, d := range []*py.Dict{cfg, e.Prepared.pillar} {
		d, _ = passwords.Without(d, e.Prepared.passwords.In).(*py.Dict)
		sum, err := resume.Cfg(d)
		if err != nil {
			return b, err
		}
		b.Cfg += sum
	}
	b.Live, err = e.edits(ctx)
	return b, err
}

// text returns the text of a key, "" if it has none.
func text(d *py.Dict, key string) string {
	v, _ := d.GetStr(key)
	s, _ := v.(string)
	return s
}

// CloseRecipes prevents recipes of further projects from being read: a file that includes one fails. An approved plan uses no others.
func (e *Env) CloseRecipes() { others.Close(e.Prepared.others) }

// edits returns the tracked files of the live trees that were changed on this machine, with their lstat data; "" if there are none.
func (e *Env) edits(ctx context.Context) (string, error) {
	if e.RemoteLess {
		return "", nil
	}
	var out []string
	d := e.Deployment
	for _, x := range []struct {
		repo   project.Repo
		commit project.Commit
		dir    string
	}{{project.Code, d.LiveCode, e.Paths.Live()}, {project.PillarRepo, d.LivePillar, e.Paths.Pillar()}} {
		if x.commit == "" {
			continue
		}
		st, err := e.Tools.Repository(d.Project, x.repo).TryCheckout(ctx, project.Checkout{Commit: x.commit, Dir: x.dir}, nil)
		switch {
		case fault.KindOf(err) == fault.Busy || fault.KindOf(err) == fault.Refused:
			out = append(out, fmt.Sprintf("%s was not compared", x.repo))
			continue
		case err != nil:
			return "", fault.New(fault.KindOf(err), "compare "+string(x.repo), "%w", err)
		}
		if st.LocalCount > 0 {
			out = append(out, fmt.Sprintf("%s %d", x.repo, st.LocalCount))
		}
		for _, name := range st.Local {
			var f unix.Stat_t
			if err := unix.Lstat(filepath.Join(x.dir, name), &f); err != nil {
				f = unix.Stat_t{} // removed
			}
			out = append(out, fmt.Sprintf("%q %o %d %d %d", name, f.Mode, f.Size, f.Mtim.Sec, f.Mtim.Nsec))
		}
	}
	return strings.Join(out, "\n"), nil
}
