// Package names lists the names that Salt has: state functions, functions of salt['…'], and grains.
//
// It owns three lists, which were extracted from Salt 3008.3: of public functions, by the names under which Salt loads them, and of the
// grains that Salt has on Linux and this program does not collect. It decides nothing: a name that is listed here and not built in is
// one that Salt itself may support; one that is neither is a mistake in the file.
package names

import (
	_ "embed"
	"slices"
	"strings"
)

//go:embed states.txt
var states string

//go:embed modules.txt
var modules string

func has(list, name string) bool {
	return name != "" && !strings.Contains(name, "\n") && strings.Contains("\n"+list, "\n"+name+"\n")
}

// State reports whether Salt has a state function of that name: pip.removed.
func State(name string) bool { return has(states, name) }

// Function reports whether Salt has an execution function of that name: cp.list_master_dirs.
func Function(name string) bool { return has(modules, name) }

// Grains returns the grains of Salt on Linux that this program does not collect, since they are about Salt's Python, its plugins, or
// tools that Salt runs. Source: Salt, grains/core.py and the other files there.
func Grains() []string {
	return []string{"ca_truststore", "fibre_channel_host", "fibre_channel_wwn", "fqdns", "gpus", "iscsi_iqn", "mdadm", "num_gpus", "nvme_nqn", "package",
		"pythonexecutable", "pythonpath", "saltpath", "selinux", "systemd", "zfs_feature_flags", "zfs_support", "zmqversion", "zpool"}
}

// Grain reports whether a name is one of Grains.
func Grain(name string) bool { return slices.Contains(Grains(), name) }
