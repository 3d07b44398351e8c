package layout

import "path/filepath"

// State is the directory of corpus-git's own state. Neither Salt nor git reads it.
type State string

// Path returns the state directory itself.
func (s State) Path() string { return string(s) }

// Database returns the SQLite file: keys, grants, projects, deployments, audit.
func (s State) Database() string { return filepath.Join(string(s), "corpus-git.db") }

// Socket returns the unix socket of the running server.
func (s State) Socket() string { return filepath.Join(string(s), "control.sock") }

// Lock returns the file whose advisory lock the owner of the state holds.
func (s State) Lock() string { return filepath.Join(string(s), "lock") }

// Addresses returns the file with the addresses on which the running server listens.
func (s State) Addresses() string { return filepath.Join(string(s), "addr.json") }

// Clean returns the file that exists while no process owns the state and its last owner shut down cleanly.
func (s State) Clean() string { return filepath.Join(string(s), "clean") }

// RestoreTemp is where a restore writes the state before it is renamed into place.
func (s State) RestoreTemp() string { return filepath.Clean(string(s)) + "-restore" }

// HostKey returns the server's ed25519 host key.
func (s State) HostKey() string { return filepath.Join(string(s), "ssh_host_ed25519_key") }

// AgentHub returns the file that names the hub to which this machine's agent connects.
func (s State) AgentHub() string { return filepath.Join(string(s), "agent.json") }

// AgentKey returns the private key with which this machine's agent authenticates to its hub.
func (s State) AgentKey() string { return filepath.Join(string(s), "agent_key") }

// AgentNewKey returns the private key that replaces AgentKey when it has joined.
func (s State) AgentNewKey() string { return s.AgentKey() + ".new" }

// NATS returns the folder of this hub's keys for NATS, and of the configuration of the NATS server for its agents.
func (s State) NATS() string { return filepath.Join(string(s), "nats") }

// JetStream returns the folder in which the NATS server beside this hub keeps the log that several hubs share.
func (s State) JetStream() string { return filepath.Join(s.NATS(), "jetstream") }

// AgentPrograms returns the folder of the programs that this machine's hub has sent for its agent.
func (s State) AgentPrograms() string { return filepath.Join(string(s), "agent_programs") }

// Cluster returns the folder of what this hub knows of the other hubs.
func (s State) Cluster() string { return filepath.Join(string(s), "cluster") }

// ClusterSelf returns the file that says which hub of a cluster this one is. It exists only in a cluster, and is the same on no other hub.
func (s State) ClusterSelf() string { return filepath.Join(s.Cluster(), "self.json") }

// ClusterHubs returns the file with the hubs of the cluster, the same on all of them.
func (s State) ClusterHubs() string { return filepath.Join(s.Cluster(), "hubs.json") }

// ClusterKey returns the private key with which this machine joins the other hubs; ClusterJoin the file that says where.
func (s State) ClusterKey() string { return filepath.Join(s.Cluster(), "join_key") }

// ClusterJoin returns the file that says which hub this machine is joining.
func (s State) ClusterJoin() string { return filepath.Join(s.Cluster(), "join.json") }

// ClusterPosition returns the file that says up to where this hub has applied the log of the hubs.
func (s State) ClusterPosition() string { return filepath.Join(s.Cluster(), "position.json") }

// Rollout returns the file with the progress of a rollout.
func (s State) Rollout(id string) string { return filepath.Join(string(s), "rollouts", id+".json") }

// BundleSigners returns the file of the keys whose bundles are deployed here, in the format of authorized_keys.
func (s State) BundleSigners() string { return filepath.Join(string(s), "bundle_signers") }

// RetiredHostKeys returns the file of the public host keys that were replaced.
func (s State) RetiredHostKeys() string { return filepath.Join(string(s), "retired_host_keys") }

// HostKeyECDSA returns the server's ECDSA host key, for clients that don't know ed25519.
func (s State) HostKeyECDSA() string { return filepath.Join(string(s), "ssh_host_ecdsa_key") }

// ServerLog returns the log of the server process, JSON lines.
func (s State) ServerLog() string { return filepath.Join(string(s), "server.log") }

// Journal returns the append-only journal of one project's deployments.
func (s State) Journal(project string) string {
	return filepath.Join(string(s), "journal", project+".journal")
}

// Journals returns the folder of all journals.
func (s State) Journals() string { return filepath.Join(string(s), "journal") }

// Events returns the folder of one project's event logs.
func (s State) Events(project string) string { return filepath.Join(string(s), "events", project) }

// EventLog returns the event log of one deployment, JSON lines.
func (s State) EventLog(project, id string) string {
	return filepath.Join(s.Events(project), id+".jsonl")
}

// Hooks returns the folder of the server's own hooks for one point.
func (s State) Hooks(point string) string { return filepath.Join(string(s), HooksDir, point+".d") }

// Steps returns the folder of the operator's programs that apply steps of further tools: <group>/run.
func (s State) Steps() string { return filepath.Join(string(s), "steps.d") }

// SaltConfig returns the configuration directory of salt-call for one deployment.
func (s State) SaltConfig(project, id string) string {
	return filepath.Join(string(s), "salt", project, id)
}

// Recipes returns the folder of the private copies of recipes that run.
func (s State) Recipes() string { return filepath.Join(string(s), "recipes") }

// RecipesOf returns the folder of one deployment's private copies.
func (s State) RecipesOf(id string) string { return filepath.Join(s.Recipes(), id) }

// Recipe returns one private copy of a deployment: of the commit that it brings, or of the one that was live before.
func (s State) Recipe(id, which string) string { return filepath.Join(s.RecipesOf(id), which) }

// KeptRecipe returns the folder in which the private copy of a project's last deployment waits for the next one.
func (s State) KeptRecipe(project string) string { return filepath.Join(s.Recipes(), ".kept-"+project) }

// Resume returns the file that records where the last deployment of a project failed, for a deployment that continues there.
func (s State) Resume(project string) string {
	return filepath.Join(string(s), "resume", project+".json")
}

// Undo returns the folder of one deployment's undo log.
func (s State) Undo(id string) string { return filepath.Join(string(s), "undo", id) }

// LiveUndo returns the folder of the undo logs of a project's deployments that went live, one folder each: an ascending number, a hyphen, the
// ID.
func (s State) LiveUndo(project string) string {
	return filepath.Join(string(s), "undo", "live", project)
}

// Underway returns the folder of notes on projects in which something is running.
func (s State) Underway() string { return filepath.Join(string(s), "underway") }

// Processes returns the folder of notes on running commands.
func (s State) Processes() string { return filepath.Join(string(s), "processes") }

// ReserveFile returns a file that is removed when the disk is full, to have room for the rollback.
func (s State) ReserveFile() string { return filepath.Join(string(s), "ballast") }

// Extends returns the file of the commits of the recipes that a project's releases extend.
func (s State) Extends(project string) string {
	return filepath.Join(string(s), "extends", project+".json")
}

// Passwords returns the file of the secrets that one project's templates generated.
func (s State) Passwords(project string) string {
	return filepath.Join(string(s), "passwords", project+".json")
}

// ResetPerms returns the program that templates know as the location resetperms.
func (s State) ResetPerms() string { return filepath.Join(string(s), "bin", "reset-perms") }

// ACME returns the folder of the accounts, keys and certificates that a certificate authority issued for the web listener.
func (s State) ACME() string { return filepath.Join(string(s), "acme") }

// Skeletons returns the folder of the operator's skeletons, a folder each.
func (s State) Skeletons() string { return filepath.Join(string(s), "skeletons") }

// Containers returns the folder of the containers of this machine: their records, root file systems and credentials. It is in no backup.
func (s State) Containers() string { return filepath.Join(string(s), "containers") }

// Trash returns the folder to which large folders are moved before they are deleted in the background.
func (s State) Trash() string { return filepath.Join(string(s), "trash") }
