// Package registry has the table of projects and their settings.
//
// It owns the table "projects" and a project's folder as a whole: it creates the
// directories, asks the ref store for the two bare repositories, and removes the
// folder again. What is inside (links, owners, modes, checkouts) belongs to
// the procedures, which are reached through Linker.
//
// It never runs a deployment and never reads a repository. Invariants: a name in the table is valid; a project that is being destroyed is
// unknown to everybody else from the first moment; data/ is kept unless its removal is requested. All methods are safe for concurrent use;
// creating and destroying are serialised.
//
// A crash leaves a partly created project, which creating it again completes, or a partly
// destroyed one, which destroying it again completes; and folders in the trash,
// which EmptyTrash removes.
package registry
