package project

// Submodules is what a project wants done about its submodules.
type Submodules struct {
	// Fetch brings them; otherwise their folders stay empty.
	Fetch bool
	// Base is the address that relative URLs lead from; "" is the project's own place on this server.
	Base string
	// User is the system user whose ssh key is used.
	User string
}

// SubmoduleRequest is a search for the submodules of a commit.
type SubmoduleRequest struct {
	Submodules
	// Offline fetches nothing: what is not here is left out.
	Offline bool
	// Pusher is on whose behalf projects of this server are read.
	Pusher Pusher
	// Say gets a line for the pusher before each fetch, Hide what must not be shown. Both may be nil.
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
	// LFSNote deploys pointer files of git-lfs as they are, and says so.
	LFSNote = "note"
	// LFSRefuse refuses a push whose files are pointers.
	LFSRefuse = "refuse"
)
