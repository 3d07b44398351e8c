package project

import (
	"strings"

	"corpus-git/internal/py"
)

// chosen is the environment of a deployment, and the layer that sets it.
type chosen struct {
	name, class string
	layer       Layer
}

// environment finds default_env before the layers that depend on it are merged.
func environment(in CfgInputs, sample, pillar *py.Dict) (chosen, error) {
	var value any = in.Environments.def()
	out := chosen{layer: LayerDefault}
	look := func(d *py.Dict, layer Layer) {
		if v, ok := d.GetStr("default_env"); ok && v != nil {
			value, out.layer = v, layer
		}
	}
	for _, f := range in.Image {
		look(f.Values, Layer(f.File))
	}
	look(sample, LayerSample)
	look(pillar, LayerPillar)
	if in.Local != nil {
		look(in.Local.Values, LayerLocal)
	}
	if in.Env != "" {
		value, out.layer = in.Env, LayerCommand
	}
	if in.Deployment != nil {
		for _, s := range in.Deployment.Set {
			if s.Key == "default_env" {
				value, out.layer = s.Typed(), LayerCommand
			}
		}
	}
	name, ok := value.(string)
	if !ok {
		return out, cfgError(out.layer, "default_env", "must be the name of an environment: %s", strings.Join(in.Environments.Names(), ", "))
	}
	class, err := in.Environments.Class(name)
	if err != nil {
		return out, cfgError(out.layer, "default_env", "must be one of: %s", strings.Join(in.Environments.Names(), ", ")).
			WithHint("assign a class (dev, staging or prod) to other names in the server's configuration:  environments: [NAME=staging]")
	}
	out.name, out.class = name, class
	return out, nil
}
