package project

import (
	"strings"
	"time"
)

// UnitKind says what runs a unit.
type UnitKind string

// The kinds of units, as the keys of cfg spell them.
const (
	// UnitSystemd is one or more units of systemd.
	UnitSystemd UnitKind = "systemd"
	// UnitSupervisor is one or more programs of supervisord.
	UnitSupervisor UnitKind = "supervisor"
	// UnitCommand is started and stopped by the project's own commands.
	UnitCommand UnitKind = "command"
)

// Unit is an entry of the key units: something that the project runs.
type Unit struct {
	Name string
	Kind UnitKind
	// Pattern is a name, or a glob (glob(7)) of names, of systemd's units with their type, or of supervisord's programs.
	Pattern string
	// Start, Stop, Restart and Status are command lines for /bin/sh, of kind command; "" if there is none. Status succeeds while
	// the unit runs.
	Start, Stop, Restart, Status string
	// User runs them; "" is the project's.
	User string
}

// UnitAction is what can be done to a unit.
type UnitAction string

// The actions, as the commands are called.
const (
	StartUnit   UnitAction = "start"
	StopUnit    UnitAction = "stop"
	RestartUnit UnitAction = "restart"
)

// Command is the command line of an action, of kind command. A unit without a command to restart it is stopped and started.
func (u Unit) Command(a UnitAction) string {
	switch a {
	case StartUnit:
		return u.Start
	case StopUnit:
		return u.Stop
	}
	return u.Restart
}

// UnitState is the current state of one unit.
type UnitState struct {
	// Unit is its own name, Entry the entry of the key units that it belongs to.
	Unit  string   `json:"unit"`
	Entry string   `json:"entry"`
	Kind  UnitKind `json:"kind"`
	// State is active, inactive, failed, activating and the like, in the words of systemd; "unknown" if it can't be determined.
	State string `json:"state"`
	// Detail is further information, in the words of whatever runs the unit: running, "exit status 1", "pid 4711, uptime
	// 0:01:02".
	Detail string `json:"detail,omitempty"`
	// Since is when it entered this state, if known; PID is its main process, 0 for none.
	Since time.Time `json:"since,omitzero"`
	PID   int       `json:"pid,omitempty"`
	// Restarts is how often systemd has restarted it automatically.
	Restarts int `json:"restarts,omitempty"`
	// Log are its last log lines, if they were requested.
	Log []string `json:"log,omitempty"`
}

// Active reports whether the unit is running.
func (s UnitState) Active() bool { return s.State == UnitActive }

// The states that every kind of unit has.
const (
	UnitActive   = "active"
	UnitInactive = "inactive"
	UnitFailed   = "failed"
	UnitUnknown  = "unknown"
)

// LogFiles is an entry of the key logs: files that the project's processes write.
type LogFiles struct {
	// Name is the name of the entry, "" if the key is a list.
	Name string
	// Globs (glob(7)) are absolute.
	Globs []string
}

// unitTypes returns the unit types of systemd.unit(5) that can be started and stopped.
func unitTypes() []string {
	return []string{".service", ".socket", ".target", ".timer", ".path", ".mount", ".automount", ".slice", ".scope", ".swap", ".device"}
}

// FullUnitName adds the type .service if a name or glob of systemd units has none, as systemctl(1) does.
func FullUnitName(name string) string {
	for _, t := range unitTypes() {
		if strings.HasSuffix(name, t) {
			return name
		}
	}
	return name + ".service"
}
