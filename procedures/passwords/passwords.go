// Package passwords keeps the secrets that the templates of a project generate.
package passwords

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"strings"
	"sync"

	"corpus-git/internal/redact"
	"corpus-git/internal/vfs"
	"corpus-git/sls/modules"
)

// File holds the secrets that a project's templates generate, one file for each project. While a deployment is prepared new ones are
// kept in memory, so that a refused push leaves nothing; Store makes them durable, and those generated after it are durable at once.
// They are redacted like the pillar.
type File struct {
	fs   vfs.FS
	path string
	hide *redact.Redactor
	// plan: nothing is generated, and templates see generatedLater.
	plan bool

	mu     sync.Mutex
	held   map[string]string
	stored bool
	// given are the secrets that templates have received.
	given map[string]bool
}

// generatedLater is what a plan shows for a secret that does not exist yet.
const generatedLater = "generated at deployment"

var _ modules.Passwords = (*File)(nil)

// Open returns the secrets of a file, which is read on first use. In a plan nothing is generated.
func Open(f vfs.FS, path string, hide *redact.Redactor, plan bool) *File {
	return &File{fs: f, path: path, hide: hide, plan: plan}
}

func (p *File) load() (map[string]string, error) {
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
func (p *File) Get(key string) (string, bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, ok := p.held[key]
	if !ok {
		m, err := p.load()
		if err != nil {
			return "", false, err
		}
		s, ok = m[key]
	}
	if ok && s != generatedLater {
		p.conceal(key, s)
	}
	return s, ok, nil
}

func (p *File) conceal(key, secret string) {
	if p.given == nil {
		p.given = map[string]bool{}
	}
	p.given[secret] = secret != ""
	p.hide.Extend([]redact.Secret{{Label: "generated." + key, Value: secret}})
}

// In reports whether a text contains a secret that templates have received.
func (p *File) In(text string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for s, holds := range p.given {
		if holds && strings.Contains(text, s) {
			return true
		}
	}
	return false
}

// Put implements modules.Passwords.
func (p *File) Put(key, secret string) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held == nil {
		p.held = map[string]string{}
	}
	if p.plan {
		p.held[key] = generatedLater
		return generatedLater, nil
	}
	p.conceal(key, secret)
	p.held[key] = secret
	if p.stored {
		return secret, p.write()
	}
	return secret, nil
}

// Store makes the secrets held so far durable.
func (p *File) Store() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.plan {
		return nil
	}
	p.stored = true
	return p.write()
}

func (p *File) write() error {
	if len(p.held) == 0 {
		return nil
	}
	m, err := p.load()
	if err != nil {
		return err
	}
	maps.Copy(m, p.held)
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	if err := vfs.MkdirAll(p.fs, filepath.Dir(p.path), 0o700); err != nil {
		return err
	}
	if err := vfs.WriteFileAtomic(p.fs, p.path, append(data, '\n'), 0o600); err != nil {
		return err
	}
	p.held = nil
	return nil
}
