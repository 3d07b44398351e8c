// Package service implements the state functions of Salt's module service, through systemctl, service, or the commands
// that a state names.
package service
