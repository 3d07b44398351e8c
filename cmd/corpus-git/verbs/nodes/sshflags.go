package nodes

import (
	"path/filepath"

	"github.com/spf13/pflag"
)

// SSHFlags say how ssh(1) reaches a machine: by its own flags, and any option of ssh_config(5).
type SSHFlags struct {
	port, identity, jump string
	options              []string
}

// Register adds the flags.
func (o *SSHFlags) Register(f *pflag.FlagSet) {
	f.StringVarP(&o.port, "port", "p", "", "port of ssh there")
	f.StringVarP(&o.identity, "identity", "i", "", "private key `FILE` of ssh")
	f.StringVarP(&o.jump, "jump", "J", "", "connect through this `HOST` (ProxyJump)")
	f.StringSliceVar(&o.options, "ssh-option", nil, "additional ssh options, as for ssh -o, separated by commas")
}

// Absolute makes the path of the private key absolute, for an ssh(1) that runs in another directory.
func (o *SSHFlags) Absolute() (err error) {
	if o.identity != "" {
		o.identity, err = filepath.Abs(o.identity)
	}
	return err
}

// Options returns the arguments for ssh(1).
func (o *SSHFlags) Options() (out []string) {
	for _, f := range []struct{ flag, value string }{{"-p", o.port}, {"-i", o.identity}, {"-J", o.jump}} {
		if f.value != "" {
			out = append(out, f.flag, f.value)
		}
	}
	for _, v := range o.options {
		out = append(out, "-o", v)
	}
	return out
}
