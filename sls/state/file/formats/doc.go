// Package formats reads and writes the formats of file.serialize that no other package has: INI as Python's configparser,
// TOML, MessagePack.
package formats
