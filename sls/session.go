package sls

// Opener is a Runner that keeps something alive for the length of one deployment, such as a Salt process that all
// steps share. A Runner that keeps nothing alive does not implement it.
type Opener interface {
	Runner
	// Open returns the runner of one deployment. close ends what it keeps; it must be called once, after the last
	// Check and Apply. Opening starts nothing yet, so that a deployment that does not need it has no cost.
	Open() (r Runner, close func() error)
}

// Open opens a runner for one deployment; a runner that keeps nothing is its own session.
func Open(r Runner) (Runner, func() error) {
	if o, ok := r.(Opener); ok {
		return o.Open()
	}
	return r, func() error { return nil }
}
