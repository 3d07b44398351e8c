package project

// Submodules says how a project's submodules are handled.
type Submodules struct {
	// Fetch fetches them; otherwise their folders stay empty.
	Fetch bool
	// Base is the address that relative URLs are relative to; "" means the project's own address on
	// this server.
	Base string
	// User is the system user whose ssh key is used.
	User string
}

// SubmoduleRequest is a search for the submodules of a commit.
type SubmoduleRequest struct {
	Submodules
	// Offline fetches nothing: what is not stored locally is skipped.
	Offline bool
	// Pusher is the user on whose behalf projects of this server are read.
	Pusher Pusher
	// Say is called with a line for the pusher before each fetch, Hide with what must not be shown.
	// Both may be nil.
	Say  func(line string)
	Hide func(secrets []string)
}

// The values of the configuration's key submodules.
const (
	SubmodulesFetch = "fetch"
	SubmodulesEmpty = "empty"
)

// LFS words are the values of the configuration's key lfs.
const (
	// LFSNote deploys pointer files of git-lfs as they are, and prints a note.
	LFSNote = "note"
	// LFSRefuse refuses a push whose files are pointers.
	LFSRefuse = "refuse"
)
