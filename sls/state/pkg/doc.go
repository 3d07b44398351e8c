// Package pkg implements the state functions of Salt's module pkg, for Debian and its derivatives: through apt-get, dpkg and
// apt-cache.
package pkg
