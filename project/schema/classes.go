package schema

import (
	"slices"

	"corpus-git/internal/py"
	"corpus-git/internal/saltyaml"
)

// ClassesFile is the file in which a recipe declares its classes: parts that are on or off.
const ClassesFile = "classes.yaml"

// Class is a part of a recipe.
type Class struct {
	Name, Description string
	// Steps, by name, run only if the class is on. Data is what it sets below data; the pillar overrides it.
	Steps []string
	Data  *py.Dict
	// Default, Environments (names, or classes of environments), Roles and Nodes say where it is on by default.
	Default                    bool
	Environments, Roles, Nodes []string
	// File and Line are the position of its declaration.
	File string
	Line int
}

// Classes are the classes of a recipe, in the order in which their data is merged. A nil *Classes declares none, and the key classes has no meaning.
type Classes struct{ List []*Class }

// Find returns the class with a name, nil if there is none.
func (c *Classes) Find(name string) *Class {
	if c == nil {
		return nil
	}
	if i := slices.IndexFunc(c.List, func(x *Class) bool { return x.Name == name }); i >= 0 {
		return c.List[i]
	}
	return nil
}

// Names returns the names of all classes.
func (c *Classes) Names() (out []string) {
	for _, x := range c.List {
		out = append(out, x.Name)
	}
	return out
}

// ParseClasses reads .salt/classes.yaml on top of the classes of the recipes below, which may be nil: a class with the same name replaces theirs. file is
// its name in messages. Errors are fault.Failed with the position.
func ParseClasses(file string, src []byte, below *Classes) (*Classes, error) {
	r, root, err := open(file, src)
	if err != nil {
		return nil, err
	}
	out := &Classes{}
	if below != nil {
		out.List = slices.Clone(below.List)
	}
	if root == nil {
		return out, nil
	}
	if len(root.Keys) > maxFields {
		return nil, r.bad(root, "more than %d classes", maxFields)
	}
	for i, k := range root.Keys {
		c, err := r.class(k, root.Items[i])
		if err != nil {
			return nil, err
		}
		out.List = append(slices.DeleteFunc(out.List, func(x *Class) bool { return x.Name == c.Name }), c)
	}
	return out, nil
}

// class reads one declaration.
func (r *reader) class(name, n *saltyaml.Node) (c *Class, err error) {
	c = &Class{File: r.file, Line: name.Line}
	if c.Name, err = r.text(name, "a name"); err != nil {
		return nil, err
	}
	if !validClass(c.Name) {
		return nil, r.bad(name, "the name of a class has letters, digits and _, and begins with a letter")
	}
	if n.Kind != saltyaml.Mapping {
		return nil, r.bad(n, "%s must be a mapping with steps, data, default, environments, roles, nodes or description", c.Name)
	}
	for i, k := range n.Keys {
		v, key := n.Items[i], py.Str(k.Value)
		switch key {
		case "description":
			c.Description, err = r.text(v, key)
		case "default":
			c.Default, err = r.boolean(v, key)
		case "data":
			var ok bool
			if c.Data, ok = v.Value.(*py.Dict); !ok {
				err = r.bad(v, "data must be a mapping")
			}
		case "steps":
			c.Steps, err = r.texts(v, key)
		case "environments":
			c.Environments, err = r.texts(v, key)
		case "roles":
			c.Roles, err = r.texts(v, key)
		case "nodes":
			c.Nodes, err = r.texts(v, key)
		default:
			err = r.unknown(k, key, []string{"steps", "data", "default", "environments", "roles", "nodes", "description"})
		}
		if err != nil {
			return nil, err
		}
	}
	return c, nil
}

// texts returns a list of strings.
func (r *reader) texts(n *saltyaml.Node, what string) (out []string, err error) {
	if n.Kind != saltyaml.Sequence {
		return nil, r.bad(n, "%s must be a list", what)
	}
	for _, item := range n.Items {
		s, err := r.text(item, "an item of "+what)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

func validClass(name string) bool {
	for i, c := range name {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c != '_' && (c < '0' || c > '9')) {
			return false
		}
	}
	return name != "" && len(name) <= 100
}
