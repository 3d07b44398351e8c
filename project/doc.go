// Package project holds the types shared by every room: a project's Name, a
// Change of a ref, a Deployment and its Result, the configuration handed to SLS
// files (Cfg), and Secret.
//
// It validates; it never runs anything and never opens a repository. Values are
// immutable once made and safe to share between goroutines.
package project
