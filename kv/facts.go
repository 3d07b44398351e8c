package kv

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"

	"corpus-git/internal/fault"
)

// Nodes is the prefix of what nodes report: nodes/NAME/facts/FACT. Only SetFacts writes there.
const Nodes = "nodes/"

// Limits of facts: those that a node reports, and those that a project sees, in bytes.
const (
	maxFacts     = 100
	maxFactsSeen = 256 << 10
)

// manyNodes is from how many nodes on their facts are selected from those of all nodes: a query takes as long as reading some twenty facts.
const manyNodes = 16

func factsOf(node string) string { return Nodes + node + "/facts/" }

// CheckWritable refuses keys that only the server writes.
func CheckWritable(verb, key string) error {
	if strings.HasPrefix(key, Nodes) {
		return fault.New(fault.Refused, verb, "%s is read-only: keys below %s are what nodes report", key, Nodes)
	}
	return nil
}

// SetFacts makes facts those of a node, in one transaction: what has changed is set, and what is not reported any more is deleted. Without facts, all are deleted. Facts that it has already are no
// change. Facts whose names cannot be part of a key are left out; more than 100 are fault.Refused. Durable on return.
func (s *Store) SetFacts(ctx context.Context, node string, facts map[string]string) error {
	if len(facts) > maxFacts {
		return fault.New(fault.Refused, "", "%s reports %d facts, and at most %d are accepted", node, len(facts), maxFacts)
	}
	prefix, want := factsOf(node), map[string]string{}
	for fact, value := range facts {
		if key := prefix + fact; validPart.MatchString(fact) && CheckKey(key) == nil && len(value) <= MaxValue {
			want[key] = value
		}
	}
	if set, gone, err := s.factChanges(ctx, s.db, prefix, want); err != nil || len(set)+len(gone) == 0 {
		return err
	}
	err := s.change(ctx, func(tx *sql.Tx) error {
		set, gone, err := s.factChanges(ctx, tx, prefix, want)
		if err != nil {
			return err
		}
		for _, key := range set {
			if _, err := s.put(ctx, tx, Put{Key: key, Value: want[key], By: "node " + node}, 0); err != nil {
				return err
			}
		}
		for _, key := range gone {
			if err := s.remove(ctx, tx, key); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		s.wakeWaiters()
	}
	return err
}

// factChanges returns which keys below a prefix are to be set, and which are to be deleted, so that they are those of want.
func (s *Store) factChanges(ctx context.Context, q querier, prefix string, want map[string]string) (set, gone []string, err error) {
	have, err := s.list(ctx, q, prefix)
	if err != nil {
		return nil, nil, err
	}
	old := map[string]string{}
	for _, e := range have {
		old[e.Key] = e.Value
		if _, ok := want[e.Key]; !ok {
			gone = append(gone, e.Key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if v, ok := old[key]; !ok || v != want[key] {
			set = append(set, key)
		}
	}
	return set, gone, nil
}

// hidden says, in the values that a project sees, why the facts of its nodes are not among them. It is no valid key.
const hidden = Nodes

// Hidden returns why a key, or keys with a prefix, may be absent from the values that a project sees although they are set; "" if they are not.
func Hidden(seen map[string]string, key string) string {
	if strings.HasPrefix(key, hidden) || strings.HasPrefix(hidden, key) {
		return seen[hidden]
	}
	return ""
}

// knownFacts are the facts of all nodes at a revision of the table.
type knownFacts struct {
	revision int64
	list     []fact
}

// fact is one fact: key is its whole key.
type fact struct{ node, key, value string }

// factsBelow returns the facts whose keys begin with a prefix.
func (s *Store) factsBelow(ctx context.Context, prefix string) (out []fact, err error) {
	list, err := s.List(ctx, prefix)
	if err != nil {
		return nil, err
	}
	out = make([]fact, len(list))
	for i, e := range list {
		node, _, _ := strings.Cut(e.Key[len(Nodes):], "/")
		out[i] = fact{node, e.Key, e.Value}
	}
	return out, nil
}

// allFacts returns the facts of all nodes: a deployment reads them several times, and with many nodes that takes long. The caller does not change them.
func (s *Store) allFacts(ctx context.Context) ([]fact, error) {
	s.reading.Lock()
	defer s.reading.Unlock()
	// The revision first: what changes after it is read again.
	revision, err := s.Revision(ctx)
	if err != nil {
		return nil, err
	}
	if s.known.list == nil || s.known.revision != revision {
		list, err := s.factsBelow(ctx, Nodes)
		if err != nil {
			return nil, err
		}
		s.known = knownFacts{revision, list}
	}
	return s.known.list, nil
}

// facts adds to the values that a project sees the facts of its nodes, or, if they are longer than 256 KiB, only why they are not there.
func (s *Store) facts(ctx context.Context, nodes []string, to map[string]string) error {
	of := make(map[string]bool, len(nodes))
	for _, node := range nodes {
		of[node] = true
	}
	var list []fact
	if len(nodes) > manyNodes {
		all, err := s.allFacts(ctx)
		if err != nil {
			return err
		}
		list = all
	} else {
		for _, node := range nodes {
			own, err := s.factsBelow(ctx, factsOf(node))
			if err != nil {
				return err
			}
			list = append(list, own...)
		}
	}
	size := 0
	for _, f := range list {
		if !of[f.node] {
			continue
		}
		if size += len(f.key) + len(f.value); size > maxFactsSeen {
			to[hidden] = fmt.Sprintf("the facts of the %d nodes of the project are longer than %d KiB, so its steps cannot read them", len(nodes), maxFactsSeen>>10)
			return nil
		}
	}
	for _, f := range list {
		if of[f.node] {
			to[f.key] = f.value
		}
	}
	return nil
}
