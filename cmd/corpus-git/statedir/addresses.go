package statedir

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"

	"corpus-git/internal/vfs"
	"corpus-git/layout"
)

// Addresses is the content of addr.json in the state directory: the addresses on which a running server listens.
type Addresses struct {
	SSH  string `json:"ssh"`
	HTTP string `json:"http,omitempty"`
	PID  int    `json:"pid"`
}

// ReadAddresses reads what WriteAddresses wrote.
func ReadAddresses(state layout.State) (a Addresses, err error) {
	text, err := os.ReadFile(state.Addresses())
	if err != nil {
		return a, err
	}
	return a, json.Unmarshal(text, &a)
}

// WriteAddresses writes this process's addresses, for commands on this machine. Either listener may be nil. Durable on return.
func WriteAddresses(state layout.State, ssh, web net.Listener) error {
	a := Addresses{PID: os.Getpid()}
	if ssh != nil {
		a.SSH = ssh.Addr().String()
	}
	if web != nil {
		a.HTTP = web.Addr().String()
	}
	text, err := json.Marshal(a)
	if err != nil {
		return err
	}
	return vfs.WriteFileAtomic(vfs.OS{}, state.Addresses(), append(text, '\n'), 0o600)
}

// Announce prints the addresses on which a server listens, one line each, for people and scripts. web may be nil.
func Announce(w io.Writer, ssh, web net.Listener) {
	fmt.Fprintf(w, "listening on %s (ssh)\n", ssh.Addr())
	if web != nil {
		fmt.Fprintf(w, "listening on %s (http)\n", web.Addr())
	}
}
