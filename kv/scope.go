package kv

import (
	"context"
	"strings"

	"corpus-git/internal/fault"
	"corpus-git/project"
)

// The prefixes of keys: those of one project, those for all projects, and the services.
const (
	Projects = "projects/"
	Shared   = "shared/"
	Services = "services/"
)

// Owner returns the project that a key, or a prefix of keys, belongs to; "" for those of all projects.
func Owner(key string) project.Name {
	rest, ok := strings.CutPrefix(key, Projects)
	if !ok {
		return ""
	}
	name, _, below := strings.Cut(rest, "/")
	if !below {
		return ""
	}
	return project.Name(name)
}

// maxSeen limits the keys that a project sees, in bytes.
const maxSeen = 512 << 10

// Visible returns the values that the steps of a project see: its own, those for all projects, the services, and the facts of these nodes, which are those of the
// project. Facts of more than 256 KiB are left out, and Hidden returns that; other keys of more than 512 KiB are fault.Refused.
func (s *Store) Visible(ctx context.Context, name project.Name, nodes ...string) (map[string]string, error) {
	out, size := map[string]string{}, 0
	list, err := s.list(ctx, s.db, Projects+string(name)+"/", Shared, Services) // one query: a deployment asks several times
	if err != nil {
		return nil, err
	}
	for _, e := range list {
		if size += len(e.Key) + len(e.Value); size > maxSeen {
			return nil, fault.New(fault.Refused, "kv", "the keys that %s sees are longer than %d bytes", name, maxSeen).WithHint("corpus-git kv list")
		}
		out[e.Key] = e.Value
	}
	return out, s.facts(ctx, nodes, out)
}
