package project

import (
	"regexp"
	"slices"
	"strings"

	"corpus-git/internal/fault"
)

// The class of an environment says how deployments behave: in dev a failed tree stays in place, staging and prod roll
// back.
const (
	ClassDev     = "dev"
	ClassStaging = "staging"
	ClassProd    = "prod"
)

// Classes returns the classes of environments, each of which is also the name of an environment.
func Classes() []string { return []string{ClassDev, ClassStaging, ClassProd} }

// Environments are the environments of a server. The zero value has dev, staging and prod, and prod is the default.
type Environments struct {
	// Default is the environment of a project that sets none.
	Default string
	// classes holds the classes of further names.
	classes map[string]string
	names   []string
}

var envForm = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,31}$`)

// ParseEnvironments reads a server's list of name=class, and its default. Errors are fault.Usage.
func ParseEnvironments(list []string, def string) (Environments, error) {
	e := Environments{Default: def, classes: map[string]string{}}
	for _, item := range list {
		name, class, _ := strings.Cut(item, "=")
		name, class = strings.TrimSpace(name), strings.TrimSpace(class)
		switch {
		case !envForm.MatchString(name):
			return e, fault.New(fault.Usage, "environments", "%.40q is not of the form name=class: a name has a-z 0-9 _ - and begins with a letter", item).WithHint("as in  environments: [preprod=staging, qa=dev]")
		case slices.Contains(Classes(), name):
			return e, fault.New(fault.Usage, "environments", "%s is a class", name)
		case !slices.Contains(Classes(), class):
			return e, fault.New(fault.Usage, "environments", "the class of %s must be one of: %s", name, strings.Join(Classes(), ", "))
		case e.classes[name] != "":
			return e, fault.New(fault.Usage, "environments", "%s is listed twice", name)
		}
		e.classes[name] = class
		e.names = append(e.names, name)
	}
	if def != "" {
		if _, err := e.Class(def); err != nil {
			return e, err
		}
	}
	return e, nil
}

// Names returns the environments, the classes first.
func (e Environments) Names() []string { return append(Classes(), e.names...) }

// Class returns the class of an environment; fault.Usage if the server does not know the name.
func (e Environments) Class(name string) (string, error) {
	if slices.Contains(Classes(), name) {
		return name, nil
	}
	if c := e.classes[name]; c != "" {
		return c, nil
	}
	err := fault.New(fault.Usage, "environment", "unknown environment %.40q", name)
	if !envForm.MatchString(name) {
		return "", err.WithHint("use one of: %s", strings.Join(e.Names(), ", "))
	}
	return "", err.WithHint("use one of: %s; or assign a class in the server's configuration:  environments: [%s=staging]", strings.Join(e.Names(), ", "), name)
}

// def returns the default environment.
func (e Environments) def() string {
	if e.Default == "" {
		return DefaultEnv
	}
	return e.Default
}
