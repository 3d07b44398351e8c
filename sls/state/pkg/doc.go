// Package pkg has the state functions of Salt's module pkg, for Debian and its kin: through apt-get, dpkg and apt-cache.
package pkg
