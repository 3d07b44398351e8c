// Package db opens the embedded database and brings its schema up to date.
//
// It owns the connection settings (WAL, foreign keys, full fsync on commit; parsed statements are kept) and the migration table; each room owns its own tables and
// passes its migrations to Migrate. It contains no query of a room. A committed transaction survives a crash of the machine.
package db
