// Package secrets remembers the secrets of recent deployments of each project: a file on the machine may contain a value until it is written again, and diffs show
// removed values.
//
// It owns which values are still secret, and for how long, and finds them in pillars and settings. It hides nothing itself. Everything is in memory: after a restart it is read from the
// records and the archives anew.
package secrets

import (
	"slices"
	"sync"

	"corpus-git/internal/redact"
	"corpus-git/project"
)

// recent is for how many commits of a pillar old values stay secret.
const recent = 20

// most is the number of secrets up to which a commit keeps those of earlier reads.
const most = 2000

// Memory holds the secrets of all projects. The zero value is empty. All methods are safe for concurrent use.
type Memory struct {
	mu sync.Mutex
	of map[project.Name]*Project
}

// Project holds the secrets of one project. Whoever calls Read or Under holds its lock.
type Project struct {
	sync.Mutex
	// Loaded reports that the pillars of recent deployments were read.
	Loaded  bool
	commits []project.Commit // the newest last
	of      map[project.Commit][]redact.Secret
}

// Project returns what is known of a project, the same each time.
func (m *Memory) Project(name project.Name) *Project {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of == nil {
		m.of = map[project.Name]*Project{}
	}
	p := m.of[name]
	if p == nil {
		p = &Project{of: map[project.Commit][]redact.Secret{}}
		m.of[name] = p
	}
	return p
}

// Forget drops the secrets of a project that was deleted.
func (m *Memory) Forget(name project.Name) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.of, name)
}

// add makes a commit the newest one, and forgets the oldest of too many.
func (p *Project) add(c project.Commit, found []redact.Secret) {
	p.commits = append(slices.DeleteFunc(p.commits, func(x project.Commit) bool { return x == c }), c)
	p.of[c] = found
	for len(p.commits) > recent {
		delete(p.of, p.commits[0])
		p.commits = p.commits[1:]
	}
}

// Remember keeps secrets of one deployment, such as those of its command line, as if a pillar had had them. It takes the lock itself.
func (p *Project) Remember(id project.ID, found []redact.Secret) {
	if len(found) == 0 {
		return
	}
	p.Lock()
	defer p.Unlock()
	p.add(project.Commit("settings of "+id), found)
}

// Read takes in the secrets that were read of a commit of the pillar. Values that were read of it before stay secret, too.
func (p *Project) Read(c project.Commit, found []redact.Secret) {
	had := map[string]bool{}
	for _, s := range found {
		had[s.Value] = true
	}
	for _, s := range p.of[c] {
		if len(found) < most && !had[s.Value] {
			found = append(found, s)
		}
	}
	p.add(c, found)
}

// Under returns secrets and, after them, those of the commits, of the newest first, each value once. What shown has, the newest pillar says may be shown, though an
// older one did not: it is left out of those of the commits.
func (p *Project) Under(secrets []redact.Secret, shown map[string]bool) []redact.Secret {
	had := map[string]bool{}
	for _, c := range slices.Backward(p.commits) {
		for _, s := range p.of[c] {
			if !had[s.Value] && !shown[s.Value] {
				had[s.Value] = true
				secrets = append(secrets, s)
			}
		}
	}
	return secrets
}
