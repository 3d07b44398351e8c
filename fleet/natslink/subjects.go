package natslink

import "regexp"

// Every connection of an agent has a name of its own, which is new for each, and the subjects below  agents.NAME .

var validName = regexp.MustCompile(`^[A-Za-z0-9]{20,40}$`)

// ValidName reports whether an agent's connection may have a name.
func ValidName(name string) bool { return validName.MatchString(name) }

// All is the prefix of the subjects of an agent's connection.
func All(name string) string { return "agents." + name }

// Begin is where an agent is asked to begin a stream: the request is its ID.
func Begin(name string) string { return All(name) + ".open" }

// Call is where an agent asks the hub to run a verb; AnyCall is that of all.
func Call(name string) string { return All(name) + ".call" }

// AnyCall matches Call of every connection.
const AnyCall = "agents.*.call"

// Again is where agents are told to connect again.
const Again = "agents.again"

// Inbox is the prefix of the subjects at which an agent is answered.
func Inbox(name string) string { return All(name) + ".inbox" }

// ToAgent and ToHub are the two directions of a stream.
func ToAgent(name, id string) string { return All(name) + ".a." + id }

// ToHub is the other direction.
func ToHub(name, id string) string { return All(name) + ".h." + id }

// Request is what an agent asks the hub for: a verb, with a document as its standard input. Without a verb it only asks whether the connection is known.
type Request struct {
	Argv  []string `json:"argv,omitempty"`
	Input []byte   `json:"input,omitempty"`
}

// Answer is the exit status of a verb, and what it wrote on standard error.
type Answer struct {
	Exit int    `json:"exit"`
	Said string `json:"said,omitempty"`
	// Unknown reports that the hub does not know the connection: the agent is to connect again.
	Unknown bool `json:"unknown,omitempty"`
	// URL and CA are where the hub is reached from now on, after node publish: the addresses of its NATS servers, separated by commas, and the PEM of what their certificates are verified by.
	URL string `json:"url,omitempty"`
	CA  string `json:"ca,omitempty"`
}
