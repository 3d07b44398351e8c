// Package formats reads and writes the formats of file.serialize that no other package handles: INI as in Python's
// configparser, TOML, MessagePack.
package formats
