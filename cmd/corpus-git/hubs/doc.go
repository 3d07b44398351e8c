// Package hubs makes a machine one of several hubs.
//
// It owns the words of hub join. What is exchanged and kept is cluster/member's.
package hubs
