// Package service has the state functions of Salt's module service, through systemctl, service, or what a state names.
package service
