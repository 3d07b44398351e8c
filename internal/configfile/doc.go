// Package configfile writes values as configuration files: ini, json, yaml and env (KEY=value lines, as shells, systemd and dotenv libraries read
// them).
//
// It either writes a whole file, or changes values in an existing one, which keeps everything else of it: its other values, their order and, except in
// json, its comments. It keeps nothing and touches no file.
//
// Invariants: the same values always give the same bytes; a value that a format cannot express is an error that names the key, never a changed value; a
// file whose values are already as wanted is returned byte for byte.
package configfile
