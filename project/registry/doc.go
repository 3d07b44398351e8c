// Package registry keeps the table of projects and their settings.
//
// It owns the table "projects" and a project's folder as a whole: it creates the
// directories, asks the ref store for the two bare repositories, and removes the
// folder again. What is inside (links, owners, modes, checkouts) belongs to
// the procedures, which are reached through Linker.
//
// It never runs a deployment and never reads a repository. Invariants: a name in the table is valid; a project that is being destroyed is
// unknown to all other callers from the start; data/ is kept unless its removal is requested. All methods are safe for concurrent use;
// creating and destroying are serialised.
//
// A crash may leave a partly created project, which is completed by creating it again, or a partly destroyed one, which is completed by
// destroying it again; and folders in the trash, which EmptyTrash removes.
package registry
