package kv

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"time"

	"corpus-git/internal/fault"
)

// by marks the keys that an instance has registered.
func by(instance string) string { return "instance " + instance }

var validPart = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._@:-]*$`)

// maxRegistered limits the services of an instance.
const maxRegistered = 500

// Register sets services/SERVICE/INSTANCE for each service of an instance to its description, a JSON object, under a lease, and deletes the keys that it registered before and that are not among
// them. A key that somebody else has set is replaced. Durable on return.
func (s *Store) Register(ctx context.Context, instance string, services map[string]string, lease time.Duration) error {
	if !validPart.MatchString(instance) || len(services) > maxRegistered {
		return fault.New(fault.Refused, "kv", "%q with %d services cannot be registered", instance, len(services))
	}
	for service, text := range services {
		var doc map[string]any
		if !validPart.MatchString(service) || json.Unmarshal([]byte(text), &doc) != nil || doc == nil {
			return fault.New(fault.Refused, "kv", "the service %q cannot be registered: its value is to be a JSON object", service)
		}
		if _, err := s.Set(ctx, Put{Key: Services + service + "/" + instance, Value: text, Lease: lease, By: by(instance)}); err != nil {
			return err
		}
	}
	list, err := s.List(ctx, Services)
	if err != nil {
		return err
	}
	for _, e := range list {
		service := ""
		if n := len(e.Key) - len(instance) - 1; e.By == by(instance) && n > len(Services) {
			service = e.Key[len(Services):n]
		}
		if _, ok := services[service]; service == "" || ok {
			continue
		}
		if err := s.Delete(ctx, e.Key, nil); err != nil && fault.KindOf(err) != fault.Refused {
			return err
		}
	}
	return nil
}

// checkService refuses a value of an instance that no step could read: each reader of the service would fail.
func checkService(key, value string) error {
	var doc map[string]any
	if rest, ok := strings.CutPrefix(key, Services); !ok || strings.Count(rest, "/") != 1 || json.Unmarshal([]byte(value), &doc) == nil && doc != nil {
		return nil
	}
	return fault.New(fault.Usage, "kv set", "the value of %s is not a JSON object, as those of services are", key).
		WithHint(`such as  '{"address": "10.0.0.1", "port": 5432}' ; over ssh quote it twice`)
}
