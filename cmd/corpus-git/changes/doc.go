// Package changes makes the check of a condition and the change that depends on it one step: If-Match of the API, against changes over SSH, over the socket and by pushes.
//
// It owns one lock, which every change takes: shared, or alone with a condition. A change here is a short write, such as adding a deployment to a queue or moving a branch; what follows from it (the
// deployment itself) runs without the lock. It decides nothing, and stores nothing.
//
// Invariants: nothing waits for a deployment, a client or the network while it holds the lock, and no change is made inside of another one. A Gate is safe for concurrent use. A crash leaves nothing.
package changes
