// Package pkgrepo implements the state functions of Salt's module pkgrepo, for Debian and its derivatives: entries of sources.list,
// deb822 files, PPAs and their keys.
package pkgrepo
