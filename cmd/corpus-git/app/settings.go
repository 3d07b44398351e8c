package app

import (
	"errors"
	"os"
	"strings"

	"corpus-git/internal/fault"
	"corpus-git/project/config"
)

// DefaultConfig is the configuration file that is read by default, if it exists.
const DefaultConfig = "/etc/corpus-git/corpus-git.yaml"

// Environment is the environment of the process.
type Environment struct {
	Env []string
	// UID is the effective user.
	UID int
}

func (e Environment) get(name string) string {
	for i := len(e.Env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(e.Env[i], name+"="); ok {
			return v
		}
	}
	return ""
}

// defaultRoot is /srv for root and ./srv for others.
func (e Environment) defaultRoot() string {
	if e.UID == 0 {
		return "/srv"
	}
	return "srv"
}

// settings finds and reads the configuration. file is --config, "" if it was not given.
type settings struct {
	env   Environment
	file  string
	flags map[string]string
}

func (s settings) load() (*config.Config, error) {
	name, must := s.file, true
	if name == "" {
		name = s.env.get(config.EnvPrefix + "CONFIG")
	}
	if name == "" {
		name, must = DefaultConfig, false
	}
	text, err := os.ReadFile(name)
	switch {
	case err == nil && text == nil:
		text = []byte{}
	case err != nil && !must && (errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission)):
		text = nil
	case err != nil:
		return nil, fault.New(fault.Usage, "read the configuration", "%w", err)
	}
	return config.Load(config.Sources{DefaultRoot: s.env.defaultRoot(), File: name, Text: text, Env: s.env.Env, Flags: s.flags})
}
